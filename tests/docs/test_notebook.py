"""The notebooks in `examples/` run from their first cell to their last, and hold no outputs.

Their cells are run in this process, in an event loop as a kernel has one. A kernel (nbclient, ipykernel, pyzmq, tornado
and what they need) would be twenty packages for the same lines.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from tools.docs import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells with code."""
    found = json.loads(notebook.read_text("utf-8"))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    return [cell for cell in found["cells"] if cell["cell_type"] == "code"]


async def run_cell(source: str, place: str, names: dict[str, Any]) -> Any:
    """Runs a cell as a kernel does, and returns the value of its last expression."""
    tree, value = ast.parse(source), None
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body.pop()
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    parts: list[tuple[ast.Module | ast.Expression, str]] = [(tree, "exec")]
    if isinstance(last, ast.Expr):
        parts.append((ast.Expression(last.value), "eval"))
    for part, how in parts:
        value = eval(compile(part, place, how, flags=flags), names)
        value = await value if inspect.iscoroutine(value) else value
    return value


@pytest.mark.pages
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROCTOR_STORE", raising=False)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown: list[Any] = []

    async def kernel() -> None:
        for number, cell in enumerate(cells(notebook), start=1):
            shown.append(await run_cell("".join(cell["source"]), f"{notebook.name}, cell {number}", names))

    asyncio.run(kernel())
    pages = [one._repr_html_() for one in shown if hasattr(one, "_repr_html_")]
    assert len(pages) >= 5
    assert any("100.0 %" in page for page in pages)
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_holds_no_outputs(notebook: Path) -> None:
    assert [cell["outputs"] for cell in cells(notebook) if cell["outputs"]] == []
    assert [cell["execution_count"] for cell in cells(notebook) if cell["execution_count"]] == []


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS

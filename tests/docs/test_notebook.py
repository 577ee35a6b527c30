"""The notebooks in `examples/` run under a real kernel from their first cell to their last, show each table once, and hold
no outputs."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.runs import Store
from tests.conftest import missing
from tests.support.report_store import a_store
from tools.docs import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells with code."""
    found = json.loads(notebook.read_text("utf-8"))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    return [cell for cell in found["cells"] if cell["cell_type"] == "code"]


def executed(notebook: Path, folder: Path) -> list[list[dict[str, Any]]]:
    """The outputs of each cell, as a kernel gives them: of this interpreter, whatever kernels are installed here."""
    try:
        import nbformat
        from jupyter_client.kernelspec import KernelSpecManager
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient
    except ImportError:
        missing("no Jupyter here (pip install nbclient ipykernel)")
    spec = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python"}
    kernels = folder / "kernels" / "python3"
    kernels.mkdir(parents=True)
    (kernels / "kernel.json").write_text(json.dumps(spec | {"display_name": "here"}))
    manager = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(folder / "kernels")], ensure_native_kernel=False),
    )
    read = nbformat.read(notebook, as_version=4)
    client = NotebookClient(read, km=manager, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    return [cell["outputs"] for cell in read["cells"] if cell["cell_type"] == "code"]


@pytest.mark.pages
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_each_table_once(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROCTOR_STORE", raising=False)
    shown = [
        [one for one in outputs if one["output_type"] in {"display_data", "execute_result"}]
        for outputs in executed(notebook, tmp_path)
    ]
    assert max(map(len, shown)) == 1  # a table in plain text beside itself was a second output
    pages = [one["data"]["text/html"] for (one,) in filter(None, shown) if "text/html" in one["data"]]
    assert len(pages) >= 5
    assert any("100.0 %" in page for page in pages)
    for page in pages:
        tables = re.findall(r"<table.*?</table>", page, re.DOTALL)
        assert len(tables) == len(set(tables))
    assert (tmp_path / "report.html").is_file()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return a_store(tmp_path)


def test_text_of_a_table_is_no_output_of_a_notebook(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich displays what it renders where it believes to be in a notebook, also what was asked for as text."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    displayed: list[object] = []
    monkeypatch.setattr("rich.jupyter.display", lambda *given: displayed.append(given))
    tables = (
        proctor.results(store, "toy", draws=20),
        proctor.compare(store, "toy", draws=20, systems="looker"),
        proctor.leaderboard(store, "toy", draws=20),
    )
    for table in tables:
        assert "looker" in repr(table)
        assert table._repr_html_().count("<table") == len(table.tables)
    assert displayed == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_holds_no_outputs(notebook: Path) -> None:
    assert [cell["outputs"] for cell in cells(notebook) if cell["outputs"]] == []
    assert [cell["execution_count"] for cell in cells(notebook) if cell["execution_count"]] == []


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS

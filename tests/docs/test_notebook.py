"""The notebooks in `examples/` run under a real kernel from their first cell to their last, show each table once, and hold
no outputs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.runs import Store
from tests.support.means import missing
from tests.support.report_store import a_store
from tools.docs import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells with code."""
    found = json.loads(notebook.read_text("utf-8"))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    return [cell for cell in found["cells"] if cell["cell_type"] == "code"]


EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook, folder, out = sys.argv[1:]
read = nbformat.read(notebook, as_version=4)
NotebookClient(read, kernel_name="here", timeout=600, resources={"metadata": {"path": folder}}).execute()
nbformat.write(read, out)
"""


def executed(notebook: Path, folder: Path) -> list[list[dict[str, Any]]]:
    """The outputs of each cell, as a kernel gives them: of this interpreter, whatever kernels are installed here."""
    if not all(map(find_spec, ("nbclient", "ipykernel"))):
        missing("no Jupyter here (pip install nbclient ipykernel)")
    kernel = folder / "jupyter" / "kernels" / "here"
    kernel.mkdir(parents=True)
    launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": launch, "language": "python", "display_name": "here"}))
    out = folder / "executed.ipynb"
    found = subprocess.run(
        [sys.executable, "-c", EXECUTE, notebook, folder, out],
        env={**os.environ, "JUPYTER_PATH": str(folder / "jupyter"), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-4000:]
    return [cell["outputs"] for cell in json.loads(out.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


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
    pages = ["".join(one["data"]["text/html"]) for (one,) in filter(None, shown) if "text/html" in one["data"]]
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
        proctor.results(store, "toy", draws=100),
        proctor.compare(store, "toy", draws=100, systems="looker"),
        proctor.leaderboard(store, "toy", draws=100),
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

"""What is printed and written for the public: no names of judges, and pseudonyms where they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.runs import Store
from tests.support.panelled_store import JUDGES, panelled
from tests.support.program import within


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("publish")
    store: Store = panelled(folder)
    store.close()
    return str(folder / "runs.db")


@pytest.mark.parametrize("output", ["table", "json", "csv", "tsv"])
def test_boards_without_the_names_of_judges(url: str, output: str) -> None:
    arguments = ("rank", "focus", "--store", url, "--stability", "20", "--format", output)
    whole, public = within(*arguments), within(*arguments, "--publish")
    assert (whole[0], public[0]) == (0, 0)
    assert "team-red" in public[1]
    assert not [name for name in JUDGES if name in public[1]]
    if output in {"table", "json"}:
        assert [name for name in JUDGES if name in whole[1]]


def test_tables_of_an_analysis_without_the_names_of_judges(url: str, tmp_path: Path) -> None:
    code, printed = within(
        *("analyze", "focus", "--store", url, "--out", tmp_path / "out", "--stability", "20"),
        *("--draws", "100", "--publish"),
    )
    assert code == 0, printed
    written = "".join(file.read_text() for file in (tmp_path / "out").iterdir())
    assert "team-red" in written
    assert not [name for name in JUDGES if name in written + printed]


def test_a_public_report_with_pseudonyms_says_whose_is_whose(url: str, tmp_path: Path) -> None:
    out = tmp_path / "public.html"
    code, printed = within(
        *("report", "focus", "--store", url, "--out", out, "--draws", "100", "--publish", "--pseudonyms")
    )
    assert code == 0, printed
    assert "is team-red" in printed
    assert "System 1 is team-" in printed
    assert not [name for name in (*JUDGES, "team-red", "team-blue") if name in out.read_text()]


@pytest.mark.parametrize("more", [("--pseudonyms",), ("--publish", "--media", "videos")])
def test_options_that_contradict_each_other(url: str, tmp_path: Path, more: tuple[str, ...]) -> None:
    code, _ = within("report", "focus", "--store", url, "--out", tmp_path / "x.html", *more)
    assert code == 2
    assert not (tmp_path / "x.html").exists()

"""`proctor build table` writes what a stage has for people, and says what a stage does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import proctor


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert proctor("build", "new", tmp_path / "p", "--kind", "focus").returncode == 0
    return tmp_path / "p"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("presence",), "Nothing to write. Give --out FILE for a table, --tracks FOLDER for boxes, or both."),
        (("corrections", "--out", "c.csv"), "The stage corrections has no table for people. Leave --out out."),
        (("presence", "--out", "p.csv"), "The stage presence has no table for people. Leave --out out."),
        (("tracks", "--tracks", "t"), "The stage tracks has no tracks. Leave --tracks out."),
        (("presence", "--apply"), "--apply writes copies of sources. Leave it out."),
        (("sources", "--out", "s.csv"), "The table of sources is sources/decisions.csv."),
    ],
)
def test_what_a_stage_does_not_have_is_said(project: Path, words: tuple[str, ...], told: str) -> None:
    done = proctor("build", "table", project, *words)
    assert done.returncode == 2
    assert told in done.stderr


def test_what_is_there_is_not_written_over(project: Path) -> None:
    file = project / "seconds.csv"
    file.write_text("mine")
    done = proctor("build", "table", project, "boxes", "--out", file)
    assert (done.returncode, file.read_text()) == (1, "mine")
    assert "something there already" in done.stderr


def test_an_unknown_stage_is_refused_before_anything_runs(project: Path) -> None:
    for words in (("build", "table", project, "presense", "--out", "x.csv"), ("build", "run", project, "--until", "x")):
        done = proctor(*words)
        assert done.returncode in {1, 2}
        assert "presence" in done.stderr

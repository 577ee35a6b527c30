"""`challenge.yaml`: all problems at once, each with its location."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from proctor.core import InputError, ProblemsError
from proctor_challenge.settings import read_challenge, size_of

GOOD = """
title: Sponges
benchmark: focus
track: procedure
phases:
  - name: training
    questions: public/training
  - name: pre-evaluation
    opens: 2026-07-15T00:00:00Z
    closes: 2026-09-01T00:00:00Z
    questions: public/pre
    sealed: sealed/pre
    quota: {scored: 10, attempted: 30}
  - name: test
    sealed: sealed/test
    accepts: [image]
    gate: {phase: pre-evaluation}
baselines:
  - name: frontier
    answers: {test: sealed/frontier.json}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("training", "pre"):
        (tmp_path / "public" / name).mkdir(parents=True)
    (tmp_path / "challenge.yaml").write_text(GOOD)
    return tmp_path


def problems(folder: Path, old: str, new: str, *, sealed: bool = False) -> tuple[str, ...]:
    assert old in GOOD
    (folder / "challenge.yaml").write_text(GOOD.replace(old, new))
    with pytest.raises(ProblemsError) as caught:
        read_challenge(folder, sealed=sealed)
    return caught.value.problems


def test_a_challenge_is_read(folder: Path) -> None:
    read = read_challenge(folder)
    assert [(one.name, one.hidden) for one in read.phases] == [
        ("training", False),
        ("pre-evaluation", True),
        ("test", True),
    ]
    before, within = datetime(2026, 7, 14, tzinfo=UTC), datetime(2026, 7, 15, tzinfo=UTC)
    phase = read.phase("pre-evaluation")
    assert [phase.is_open(at) for at in (before, within, datetime(2026, 9, 1, tzinfo=UTC))] == [False, True, False]
    assert read.phase("test").is_open(before)


def test_the_sealed_part_is_looked_for_by_who_may_open_it(folder: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        read_challenge(folder, sealed=True)
    assert caught.value.problems == (
        "phases 2 (pre-evaluation), sealed: found nothing at 'sealed/pre', expected a folder",
        "phases 3 (test), sealed: found nothing at 'sealed/test', expected a folder",
        "baselines 1 (frontier), answers, test: found no file 'sealed/frontier.json'",
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("benchmark: focus", "", "benchmark: missing"),
        ("attempted: 30", "attempted: 3", "at least as many attempts as results (10)"),
        ("2026-09-01T00:00:00Z", "2026-07-15T00:00:00Z", "an end after the beginning"),
        (
            "2026-07-15T00:00:00Z",
            "2026-07-15T00:00:00",
            "phases 2, opens: expected a time with its time zone, such as 2026-07-15T00:00:00Z",
        ),
        ("phase: pre-evaluation", "phase: final", "test, gate: found 'final', expected a phase before it"),
        ("name: test", "name: training", "found the phase 'training' twice"),
        ("sealed: sealed/test", "sealed: public/test", "expected a folder inside sealed/"),
        ("accepts: [image]", "accepts: [file]", "the questions are expected where answer files are accepted"),
        ("title: Sponges", "answers: sealed/all.db", "expected {phase} in it"),
        ("title: Sponges", "answers: 'public/{phase}.db'", "expected a file inside sealed/ or an SQLAlchemy URL"),
        ("title: Sponges", "judge: {name: panel}", "judge, models: missing"),
        (
            "accepts: [image]",
            "accepts: [image]\n    counts: last\n    results: {rule: ladder}",
            "counts: best is expected",
        ),
        ("title: Sponges", "titel: Sponges", "titel: no field of this name is expected (one of title, benchmark,"),
        ("title: Sponges", "titel: Sponges", "; did you mean 'title'?)"),
        (
            "gate: {phase:",
            "gate: {phase: x, fase:",
            "gate, fase: no field of this name is expected (one of phase, beats; did you mean",
        ),
        ("answers: {test:", "answers: {final:", "found no phase of this name"),
        ("questions: public/training", "questions: public/none", "found nothing at 'public/none'"),
    ],
)
def test_each_problem_is_told_with_its_place(folder: Path, old: str, new: str, told: str) -> None:
    assert any(told in one for one in problems(folder, old, new))


def test_all_problems_are_told_at_once(folder: Path) -> None:
    assert len(problems(folder, "title: Sponges", "title: 3\ntracks: 4\ncontact: [1]")) == 3


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"challenge\.yaml"):
        read_challenge(tmp_path)


@pytest.mark.parametrize(
    ("text", "size"), [("1k", 1024), ("512m", 2**29), ("2GiB", 2**31), ("7", 7), ("1.5g", 3 * 2**29)]
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size

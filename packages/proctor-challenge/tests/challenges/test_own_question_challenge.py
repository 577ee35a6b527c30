"""A challenge of somebody's own questions, without code: a spreadsheet, answers as a table of ids and answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.api import validate
from proctor.core import InputError
from proctor_challenge.challenge import SealedPart
from proctor_challenge.folder import NewChallenge, check_challenge, new_challenge
from proctor_challenge.scoring import Entrant, score_entrant
from proctor_challenge.settings import read_challenge

PHASE = "pre-evaluation"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = ["id,group,ward,question,options,answer,rationale"]
    for number in range(40):
        kind = (
            f"Is lamp {number} on?,,{'yes' if number % 2 else 'no'}"
            if number % 4
            else f"Which lamp is {number}?,left;right,right"
        )
        rows.append(f"q{number:02d},p{number % 8},{'east' if number % 3 else 'west'},{kind},canary {number}")
    (tmp_path / "questions.csv").write_text("\n".join(rows) + "\n")
    new_challenge(tmp_path / "c", NewChallenge("own-questions", tmp_path / "questions.csv", pre_evaluation=5, test=3))
    return tmp_path / "c"


def test_participants_get_the_questions_and_nothing_that_tells(folder: Path) -> None:
    assert check_challenge(folder).problems == ()
    public = "".join(one.read_text() for one in (folder / "public" / PHASE).iterdir())
    assert "Is lamp" in public
    assert "canary" not in public
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    given, scored = sealed.handed_out(PHASE), sealed.benchmark(PHASE)
    assert given is not None
    assert {one.id: (one.options, one.tags) for one in given.items} == {
        one.id: (one.options, one.tags) for one in scored.items
    }
    assert len(scored.items) == 25


def test_answers_are_a_table(folder: Path, tmp_path: Path) -> None:
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    items = sealed.benchmark(PHASE).items
    right = [item.answer.write(item.reference.answer) if item.reference else "" for item in items]
    file = tmp_path / "answers.csv"
    file.write_text("id,answer\n" + "".join(f"{item.id},{text}\n" for item, text in zip(items, right, strict=True)))
    report = validate("own-questions", file, data=folder / "public" / PHASE)
    assert report.shown[-1] == "25 answers to 25 items: 0 errors, 0 warnings"
    figures = score_entrant(sealed, PHASE, Entrant("A#1", file, ".csv"))
    assert (figures.boards[0].mean, figures.statuses) == (1.0, {"readable": 25})
    file.write_text("id,answer\nq99,yes\n")
    with pytest.raises(InputError, match="q99"):
        validate("own-questions", file, data=folder / "public" / PHASE)

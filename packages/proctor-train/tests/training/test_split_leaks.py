"""No encounter on both sides of a split, under whatever name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proctor.core import InputError
from proctor.judges.dimensions import Case, Dimension, RatedCase, ReferenceAnswer, encounter_scores
from proctor_train import encounter_folds, refuse_leaks

LONG = "For three weeks I have had an itching red patch behind my left knee; what could it be, and what helps?"


def case(encounter: str, query: str = "What is it?", reference: str = "", **other: object) -> Case:
    known = Case(
        f"{encounter}/en", encounter, "d", "en", query, (ReferenceAnswer(text=reference or f"Answer {encounter}."),),
        "Eczema.", (Dimension("overall", (0.0, 0.5, 1.0)),),
    )  # fmt: skip
    return replace(known, **other)  # type: ignore[arg-type]


def test_an_encounter_on_both_sides_is_refused_by_name_text_and_picture(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"pixels")
    (tmp_path / "b.jpg").write_bytes(b"pixels")
    first = case("e1", images=("a.jpg",), image_root=tmp_path)
    with pytest.raises(InputError, match=r"e1 \(its name\)"):
        refuse_leaks([first], [case("e1", "Another question?")])
    with pytest.raises(InputError, match=r"e9 \(the same image as e1\)"):
        refuse_leaks([first], [case("e9", images=("b.jpg",), image_root=tmp_path)])
    with pytest.raises(InputError, match=r"e9 \(the same text as e1\)"):
        refuse_leaks([case("e1", LONG)], [case("e9", LONG.upper(), "Another reference.")])
    refuse_leaks([first, case("e1", LONG)], [case("e2"), case("e3", LONG.replace("knee", "ear"))])


def test_a_short_question_is_no_score_without_its_references() -> None:
    assert not encounter_scores(case("e1")) & encounter_scores(case("e2"))
    assert encounter_scores(case("e1", reference="Wart.")) == encounter_scores(case("e2", reference="wart"))


def test_folds_hold_every_encounter_out_once_with_its_copies() -> None:
    names = [f"e{number}" for number in range(20)]
    rated = [RatedCase(case(name), {"overall": 0.5}) for name in names for _ in range(3)]
    rated += [RatedCase(case("copy", reference="Answer e3."), {"overall": 0.5})]
    held: list[int] = []
    for train, out in encounter_folds(rated, 5, seed=1):
        refuse_leaks([rated[k].case for k in train], [rated[k].case for k in out])
        assert sorted(train + out) == list(range(61))
        held += out
    assert sorted(held) == list(range(61))
    assert encounter_folds(rated, 5, seed=1) != encounter_folds(rated, 5, seed=2)


def test_more_folds_than_encounters_are_refused() -> None:
    rated = [RatedCase(case(name), {"overall": 0.5}) for name in ("e1", "e2")]
    with pytest.raises(InputError, match="2 encounters with nothing shared"):
        encounter_folds(rated, 3, seed=0)

"""Rationales of answers in a run, scored against those of the references."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from proctor.core import Answer, Item, Reference, Status
from proctor.core.formats import ChoiceFormat, OrderingFormat
from proctor.metrics.text import RATIONALE_F1, BertScore, RationaleScorer, rationale_of
from proctor.metrics.text.encoders import LongTexts, TextTokens


class Letters:
    """An encoder with a direction of its own for each letter."""

    name, layer, ends = "letters", 1, frozenset[int]()
    long_texts: LongTexts = "windows"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> dict[str, TextTokens]:
        self.asked += [list(texts)] if texts else []
        codes = {text: np.array([ord(char) for char in text], dtype=np.int64) for text in texts}
        eye = np.eye(128, dtype=np.float32)
        return {text: TextTokens(ids, eye[ids], empty=not len(ids)) for text, ids in codes.items()}


def item(name: str = "q1", **changes: Any) -> Item:
    fields: dict[str, Any] = {
        "id": name,
        "group": "v1",
        "question": "In which order?",
        "answer": OrderingFormat(labels=("A", "B")),
        "reference": Reference(answer=["B", "A"], rationale="abcd"),
    }
    return Item.model_validate(fields | changes)


def said(why: Any, name: str = "q1", **changes: Any) -> Answer:
    fields = {"item_id": name, "parsed": ["B", "A"], "extra": {"rationale": why}}
    return Answer.model_validate(fields | changes)


def approx(value: float) -> Any:
    return pytest.approx(value)


def scored(scorer: RationaleScorer, answer: Answer) -> tuple[float, str]:
    (score,) = asyncio.run(scorer.score(item(), answer))
    assert (score.metric, score.scorer) == (RATIONALE_F1.name, scorer.name)
    return score.value, score.label


def test_a_rationale_is_scored_and_silence_is_nothing() -> None:
    scorer = RationaleScorer(BertScore(Letters()))
    assert scorer.name.startswith("bertscore[letters_L1_no-idf_version=")
    assert scorer.metrics == (RATIONALE_F1,)
    value, label = scored(scorer, said("ab"))  # P 1, R 1/2
    assert (value, label) == (approx(2 / 3), "")
    for nothing in (said(""), said(5), said("ab", parsed=None), said("ab", status=Status.TIMED_OUT, reason="late")):
        assert scored(scorer, nothing) == (0.0, "no rationale")
    assert (rationale_of(said(" ab ")), rationale_of(said(None)), rationale_of(Answer(item_id="q"))) == ("ab", "", "")


def test_below_unrelated_is_nothing_too() -> None:
    scorer = RationaleScorer(BertScore(Letters(), baseline=(0.9, 0.9, 0.9)))
    assert scored(scorer, said("ab")) == (0.0, "")
    assert scored(scorer, said("abcd")) == (approx(1.0), "")


def test_all_are_scored_at_once_and_none_twice() -> None:
    letters = Letters()
    scorer = RationaleScorer(BertScore(letters))
    scorer.prepare(
        [(item(), said("ab")), (item(), said("cd")), (item(), said("ab")), (item(reference=None), said("x"))]
    )
    assert [scored(scorer, said(why))[0] for why in ("ab", "cd")] == pytest.approx([2 / 3, 2 / 3])
    assert letters.asked == [["ab", "abcd", "cd"]]


def test_what_it_does_not_score() -> None:
    scorer = RationaleScorer(BertScore(Letters()))
    assert scorer.applies(item())
    without = item(reference=Reference(answer=["B", "A"], rationale=" "))
    choice = item(answer=ChoiceFormat(), options=("a", "b"), reference=Reference(answer="A", rationale="why"))
    for other in (without, choice, item(reference=None)):
        assert not scorer.applies(other)
        with pytest.raises(ValueError, match="'q1': its reference has no rationale"):
            asyncio.run(scorer.score(other, said("ab")))
    with pytest.raises(ValueError, match="'q1': a failed answer is never scored"):
        asyncio.run(scorer.score(item(), said("ab", status=Status.FAILED, reason="no connection")))

"""Boxes, points, selections, short texts, scales and preferences: right, how far off, and by chance, worked by hand."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.core import Answer, Item, Reference
from proctor.core.formats import (
    AnswerFormat,
    BoxesFormat,
    ChoicesFormat,
    IntervalsFormat,
    PointFormat,
    PreferenceFormat,
    QuantityFormat,
    ScaleFormat,
    ShortTextFormat,
    word_f1,
)
from proctor.metrics import Constants, GradedScorer, chance_of, is_right
from proctor.systems.baselines import RandomGuess
from proctor.systems.replies import reply

FOUR = ("liver", "spleen", "left kidney", "aorta")


def item(form: AnswerFormat, *references: Any, number: int = 1) -> Item:
    answer, *accepted = references
    known = Reference(answer=answer, accepted=tuple(accepted))
    return Item(id=f"q{number}", group="v1", question="?", options=FOUR, answer=form, reference=known)


def test_a_box_is_right_from_its_overlap_on() -> None:
    form = BoxesFormat(iou=0.5)
    assert form.match([[0, 0, 10, 10]], [[0, 0, 10, 5]])  # half of it: 50 of 100
    assert not form.match([[0, 0, 10, 10]], [[0, 0, 10, 4.9]])
    assert not form.match([[0, 0, 10, 10]], [[0, 0, 10, 10], [20, 20, 30, 30]])
    assert form.distance([[0, 0, 10, 10]], [[5, 0, 15, 10]]) == pytest.approx(1 - 50 / 150)
    several = BoxesFormat(several=True)
    assert several.match([[0, 0, 10, 10], [20, 0, 30, 10]], [[20, 0, 30, 10], [0, 0, 10, 10]])


def test_a_point_is_right_near_a_point_or_in_a_box() -> None:
    form = PointFormat(tolerance=5)
    assert form.match([100, 100], [103, 104])  # 5 away
    assert not form.match([100, 100], [104, 104])
    assert form.match([0, 0, 10, 10], [10, 0])
    assert not form.match([0, 0, 10, 10], [11, 0])  # the tolerance is that of points
    assert form.distance([0, 0, 10, 10], [13, 14]) == 5


def test_the_chance_of_a_point_is_an_area() -> None:
    form = PointFormat(tolerance=100)
    assert form.chance([[500, 500]]) == pytest.approx(math.pi * 100**2 / 1000**2, rel=1e-3)
    assert form.chance([[0, 0]]) == pytest.approx(math.pi * 100**2 / 4 / 1000**2, rel=1e-3)  # a quarter lies inside
    assert form.chance([[0, 0, 500, 200]]) == pytest.approx(0.1)
    assert form.chance([[0, 0, 500, 200], [250, 0, 750, 200]]) == pytest.approx(0.15)  # what lies in both counts once
    assert PointFormat().chance([[500, 500]]) == 0
    wide = PointFormat(width=1920, height=1080)
    assert wide.chance([[0, 0, 960, 1080]]) == pytest.approx(0.5)
    assert form.chance([]) is None


def test_the_chance_levels_of_the_others() -> None:
    assert chance_of(item(ChoicesFormat(), ["A", "C"])) == 1 / 15
    assert chance_of(item(ChoicesFormat(), ["A"], ["A", "C"])) == 2 / 15
    assert chance_of(item(ScaleFormat(), 1)) == 1 / 5
    assert chance_of(item(ScaleFormat(tolerance=1), 1)) == 2 / 5
    assert chance_of(item(ScaleFormat(tolerance=1), 3)) == 3 / 5
    assert chance_of(item(PreferenceFormat(), "A")) == 1 / 3
    assert chance_of(item(PreferenceFormat(ties=False), "A")) == 1 / 2
    assert chance_of(item(PreferenceFormat(), "A", "tie")) == 2 / 3
    for form, value in ((IntervalsFormat(), [[0, 1]]), (BoxesFormat(), [[0, 0, 1, 1]]), (ShortTextFormat(), "liver")):
        assert chance_of(item(form, value)) is None
    assert chance_of(item(QuantityFormat(unit="mm"), 3.0)) is None


DRAWN: list[tuple[Any, Any]] = [
    (ChoicesFormat(), ["A", "C"]),
    (ScaleFormat(tolerance=1), 2),
    (PreferenceFormat(), "tie"),
    (PointFormat(tolerance=200), [500, 500]),
]


@pytest.mark.parametrize(("form", "key"), DRAWN, ids=lambda one: getattr(one, "kind", ""))
def test_random_guesses_reach_the_chance_level(form: Any, key: Any) -> None:
    one = item(form, key)
    guess = RandomGuess(seed=3)
    draws = [guess.draw(one.model_copy(update={"id": f"q{number}"})) for number in range(3000)]
    share = sum(is_right(one, value) for value in draws) / len(draws)
    wanted = chance_of(one)
    assert wanted is not None
    assert abs(share - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / len(draws))
    for value in draws[:200]:
        assert reply(one, value).parsed is not None


EVERY: list[tuple[Any, Any]] = [
    *DRAWN,
    (IntervalsFormat(), [[10, 20]]),
    (IntervalsFormat(several=True), [[10, 20], [30, 40]]),
    (BoxesFormat(), [[0, 0, 10, 10]]),
    (BoxesFormat(several=True), [[0, 0, 10, 10], [20, 0, 30, 10]]),
    (PointFormat(), [0, 0, 10, 10]),
    (QuantityFormat(unit="mm"), 35.0),
    (ShortTextFormat(), "left kidney"),
]


@pytest.mark.parametrize(("form", "key"), EVERY, ids=lambda one: getattr(one, "kind", ""))
def test_baselines_answer_and_their_answers_are_marked(form: Any, key: Any) -> None:
    one = item(form, key)
    constant = reply(one, Constants([one]).answer(one))
    assert is_right(one, constant.parsed)
    scores = asyncio.run(GradedScorer().score(one, constant))
    assert all(score.value == (1 if "error" not in score.metric else 0) for score in scores), scores
    if RandomGuess().supports(one):
        guessed = reply(one, RandomGuess().draw(one))
        assert one.answer.check(guessed.parsed, one.options) == guessed.parsed


def test_selections_and_words_by_hand() -> None:
    assert ChoicesFormat().distance(["A", "C"], ["A", "B"]) == pytest.approx(2 / 3)
    short = ShortTextFormat()
    assert short.match("The left-kidney.", "left  KIDNEY")
    assert not short.match("left kidney", "kidney")
    assert word_f1("a large left kidney", "left kidney cyst") == pytest.approx(2 * 2 / (3 + 3))
    assert word_f1("liver", "spleen") == 0
    assert not ShortTextFormat(strict=True).match("Liver", "liver")


def test_scales_and_preferences_by_hand() -> None:
    assert ScaleFormat(tolerance=1).match(4, 5)
    assert not ScaleFormat().match(4, 5)
    assert ScaleFormat(low=-2, high=2).parse("Answer: -1") == -1
    assert [PreferenceFormat().distance("A", value) for value in ("A", "tie", "B")] == [0, 0.5, 1]
    with pytest.raises(ValidationError, match="2 labels: expected a name for each of 5 levels, or none"):
        ScaleFormat(labels=("poor", "good"))
    with pytest.raises(ValidationError, match="a scale from 5 to 1: expected a higher level than the lowest"):
        ScaleFormat(low=5, high=1)


def test_the_error_on_a_scale_is_a_share_of_its_length() -> None:
    one = item(ScaleFormat(), 5)
    marked = GradedScorer().compute(one, Answer(item_id="q1", text="2", parsed=2))
    assert [(score.metric, score.value) for score in marked] == [("scale_error", 0.75)]
    late = GradedScorer().compute(one, Answer(item_id="q1", text="?", problem="expected one level"))
    assert [(score.value, score.label) for score in late] == [(1.0, "unreadable")]

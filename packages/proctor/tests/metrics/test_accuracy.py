"""Right and wrong by code."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import JsonValue

from proctor.core import ACCURACY, Answer, Item, Reference, Status
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    FreeTextFormat,
    OrderingFormat,
    PercentageFormat,
    RatingsFormat,
    TimestampsFormat,
)
from proctor.metrics import AccuracyScorer, is_right

SCORER = AccuracyScorer()


def _item(form: AnswerFormat, answer: JsonValue, *accepted: JsonValue, options: tuple[str, ...] = ()) -> Item:
    return Item(
        id="q1",
        group="v1",
        question="What?",
        answer=form,
        options=options,
        reference=Reference(answer=answer, accepted=accepted),
    )


CASES: list[tuple[AnswerFormat, JsonValue, JsonValue, JsonValue]] = [
    (ChoiceFormat(), "B", "B", "A"),
    (BinaryFormat(), True, True, False),
    (CountFormat(), 3, 3, 2),
    (PercentageFormat(tolerance=5), 40.0, 45.0, 45.5),
    (OrderingFormat(labels=("A", "B")), ["B", "A"], ["B", "A"], ["A", "B"]),
    (ClassesFormat(classes=("clip", "sponge")), ["clip"], ["clip"], ["clip", "sponge"]),
    (TimestampsFormat(tolerance=1), [10.0], [11.0], [11.5]),
]


@pytest.mark.parametrize(("form", "reference", "right", "wrong"), CASES)
def test_every_format_that_code_can_compare(
    form: AnswerFormat, reference: JsonValue, right: JsonValue, wrong: JsonValue
) -> None:
    item = _item(form, reference, options=("liver", "spleen"))
    hit = SCORER.compute(item, Answer(item_id="q1", parsed=right))
    miss = SCORER.compute(item, Answer(item_id="q1", parsed=wrong))
    assert (hit.value, hit.label, hit.metric, hit.scorer) == (1.0, "right", ACCURACY.name, "code")
    assert (miss.value, miss.label) == (0.0, "wrong")


def test_accepted_alternatives_count_as_right() -> None:
    item = _item(CountFormat(), 2, 3, 4)
    assert [is_right(item, number) for number in (1, 2, 3, 4, 5)] == [False, True, True, True, False]
    assert SCORER.compute(item, Answer(item_id="q1", parsed=4)).value == 1.0


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (Answer(item_id="q1", status=Status.TIMED_OUT, parsed=2), "timed out"),
        (Answer(item_id="q1", status=Status.REFUSED), "refused"),
        (Answer(item_id="q1", text="two or three", problem="expected one whole number"), "unreadable"),
    ],
)
def test_no_readable_answer_in_time_is_wrong_and_says_why(answer: Answer, label: str) -> None:
    score = SCORER.compute(_item(CountFormat(), 2), answer)
    assert (score.value, score.label) == (0.0, label)


def test_false_and_zero_are_answers() -> None:
    assert SCORER.compute(_item(BinaryFormat(), False), Answer(item_id="q1", parsed=False)).value == 1.0
    assert SCORER.compute(_item(CountFormat(), 0), Answer(item_id="q1", parsed=0)).value == 1.0
    empty = _item(ClassesFormat(classes=("clip",)), [])
    assert SCORER.compute(empty, Answer(item_id="q1", parsed=[])).value == 1.0


def test_free_text_ratings_and_keyless_items_are_for_others() -> None:
    assert not SCORER.applies(_item(FreeTextFormat(), "a clip"))
    assert not SCORER.applies(_item(RatingsFormat(dimensions=("accuracy",)), {"accuracy": 1.0}))
    assert not SCORER.applies(_item(CountFormat(), 2).as_asked())
    assert SCORER.applies(_item(CountFormat(), 2))


def test_what_must_never_be_scored_is_an_error() -> None:
    item = _item(CountFormat(), 2)
    with pytest.raises(ValueError, match="item 'q1': a failed answer is no answer and is never scored"):
        SCORER.compute(item, Answer(item_id="q1", status=Status.FAILED))
    with pytest.raises(ValueError, match="the answer is to item 'q2', not to 'q1'"):
        SCORER.compute(item, Answer(item_id="q2", parsed=2))
    with pytest.raises(ValueError, match=r"item 'q1': its answers \(format free_text\) can't be scored by code"):
        SCORER.compute(_item(FreeTextFormat(), "a clip"), Answer(item_id="q1", parsed="a clip"))
    with pytest.raises(ValueError, match="item 'q1' has no reference to be right by"):
        is_right(item.as_asked(), 2)


def test_the_scorer_gives_what_it_declares() -> None:
    scores = asyncio.run(SCORER.score(_item(CountFormat(), 2), Answer(item_id="q1", parsed=2)))
    assert [score.metric for score in scores] == [metric.name for metric in SCORER.metrics]
    assert scores == [SCORER.compute(_item(CountFormat(), 2), Answer(item_id="q1", parsed=2))]

"""What methods that order key frames share: labels as they are meant, answers as they are said."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import Frame, InputError, Item, Usage
from proctor.core.formats import BinaryFormat, OrderingFormat
from proctor.core.text import kept_json
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    MOST_RATIONALE,
    OrderReply,
    key_frames,
    order_answer,
    ordering_labels,
    read_labels,
)
from tests.systems.test_ordering_systems import Shown

LABELS = ("A", "B", "C", "D")


def item() -> Item:
    return Item(id="q1", group="v1", question="In which order?", answer=OrderingFormat(labels=LABELS))


@pytest.mark.parametrize(
    "said", ["b", " B ", "B.jpg", "b.JPEG", "frames/B.png", "Frame B", "picture_b.webp", "(B)", '"B",', "Image: b"]
)
def test_one_label_in_many_spellings(said: str) -> None:
    assert read_labels([said], LABELS).said == ("B",)


@pytest.mark.parametrize("said", ["", "BA", "E", "B and C", "2", "Frame", "none"])
def test_what_is_no_label_stays_unknown(said: str) -> None:
    found = read_labels([said], LABELS)
    assert (found.known, found.unknown, found.complete) == ((), (said,), False)


def test_lower_case_labels_are_apart_from_upper_case_ones() -> None:
    assert read_labels(["a", "A"], ["A", "a"]).said == ("a", "A")


@given(st.lists(st.text(max_size=8), max_size=8))
def test_nothing_is_added_or_moved(names: list[str]) -> None:
    found = read_labels(names, LABELS)
    assert len(found.said) == len(names)
    assert list(found.known) == list(dict.fromkeys(one for one in found.said if one in LABELS))
    assert set(found.known) | set(found.missing) == set(LABELS)
    answer = order_answer(item(), found.said, rationale="", usage=Usage(), extra={})
    stated = len([one for one in found.said if one in LABELS]) >= 2 or len(names) >= 2
    assert (answer.parsed == kept_json([*found.said])) == (answer.parsed is not None)
    assert (answer.parsed is not None) <= stated
    assert bool(answer.problem) == (answer.parsed is None)


def test_an_order_is_stated_as_it_was_said() -> None:
    good = order_answer(item(), list("DBAC"), rationale=" why ", usage=Usage(requests=2), extra={"calls": 2})
    assert (good.text, good.parsed, good.problem) == ("Answer: D > B > A > C", list("DBAC"), "")
    assert good.extra == {"rationale": "why", "calls": 2}
    assert good.usage.requests == 2
    odd = order_answer(item(), ["D", "X1", "D", "A"], rationale="", usage=Usage(), extra={})
    assert (odd.text, odd.parsed) == ('["D", "X1", "D", "A"]', ["D", "X1", "D", "A"])
    assert item().answer.parse(odd.text) == odd.parsed
    assert odd.extra == {"rationale": "", "labels": {"missing": ["B", "C"], "repeated": ["D"], "unknown": ["X1"]}}


@pytest.mark.parametrize("order", [[], ["A"]])
def test_no_order_is_no_answer(order: list[str]) -> None:
    none = order_answer(item(), order, rationale="", usage=Usage(), extra={})
    assert none.parsed is None
    assert none.problem.startswith("expected the labels A, B, C, D in an order, found ")


def test_long_rationales_are_cut_where_it_shows() -> None:
    kept = order_answer(item(), LABELS, rationale="x" * 9000, usage=Usage(), extra={}).extra["rationale"]
    assert isinstance(kept, str)
    assert (len(kept), kept[-2:]) == (MOST_RATIONALE, "x…")


@pytest.mark.parametrize(
    "order", ['["D","B","A","C"]', '"D > B > A > C"', '"D, B, A, C"', '"D→B→A→C"', '["D > B > A > C"]', '"D B A C"']
)
def test_an_order_may_come_as_one_text(order: str) -> None:
    assert OrderReply.model_validate_json(f'{{"rationale": "", "order": {order}}}').order == list("DBAC")


def test_frames_are_found_by_label() -> None:
    some = [Frame(b"1", None, "C"), Frame(b"2", None, "A")]
    found = asyncio.run(key_frames(item(), Shown(some)))
    assert (found.shown, found.unseen) == (("C", "A"), ("B", "D"))
    assert [(frame.jpeg, frame.label) for frame in found.captioned(["A"])] == [(b"2", "Picture A")]
    assert [frame.label for frame in found.captioned()] == ["Picture C", "Picture A"]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ("AEB", "item 'q1': found a picture labelled 'E' that the answer does not know, expected A, B, C, D, each"),
        ("ABA", "item 'q1': found a picture labelled 'A' twice, expected A, B, C, D, each at most once"),
    ],
)
def test_frames_that_do_not_fit_the_item(labels: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        asyncio.run(key_frames(item(), Shown([Frame(b"", None, label) for label in labels])))
    assert str(caught.value).startswith(text)


def test_orderings_alone() -> None:
    other = Item(id="q1", group="v1", question="Is it?", answer=BinaryFormat())
    with pytest.raises(ValueError, match="an answer of the format binary has no order"):
        ordering_labels(other)

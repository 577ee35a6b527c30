"""JSON objects that were cut off, by a token limit: every member that stands in them is read, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.core import ParseError
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    ChoicesFormat,
    CountFormat,
    Format,
    IntervalsFormat,
    OrderingFormat,
    PercentageFormat,
    TimestampsFormat,
)
from proctor.core.formats.cut_json import cut_object

OPTIONS = ("left", "right", "up", "down")
ORDER = OrderingFormat(labels=("A", "B", "C", "D"))


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        (ORDER, '{"order": ["D", "B", "A", "C"], "why": "Final answer: D. Picture A', ["D", "B", "A", "C"]),
        (ORDER, '```json\n{"order": ["D", "B", "A", "C"],\n "why": "A > B is wrong, since', ["D", "B", "A", "C"]),
        (ORDER, '<think>A > B?</think>{"order": ["D", "B", "A", "C"', ["D", "B", "A", "C"]),
        (ORDER, '{"why": "A > B is wrong, since D > A', None),
        (ORDER, '{"why": "so the final answer is D > B > A > C", "ord', None),
        (ChoiceFormat(), '{"answer": "B", "explanation": "Option A is wrong, since', "B"),
        (ChoiceFormat(), '{"explanation": "The answer is A? No, the', None),
        (ChoicesFormat(), '{"answer": ["A", "C"], "why": "B and D are', ["A", "C"]),
        (CountFormat(), '{"count": 3, "why": "there are 4 clips, one of which', 3),
        (CountFormat(), '{"why": "there are 4 clips, one of which', None),
        (PercentageFormat(), '{"percentage": 40, "why": "60 % of the', 40.0),
        (BinaryFormat(), '{"answer": "yes", "why": "no clip is', True),
        (TimestampsFormat(), '{"time": "00:01:05", "why": "at 00:00:30 the', [65.0]),
        (IntervalsFormat(), '{"start": 10, "end": 20, "why": "at 00:00:30 the', [[10.0, 20.0]]),
    ],
)
def test_an_answer_in_an_object_that_is_cut_off(form: Format, text: str, value: Any) -> None:
    try:
        found = form.parse(text, OPTIONS)
    except ParseError:
        found = None
    assert found == value


WHOLE: dict[str, Any] = {"n": 12, "yes": True, "no": None, "in": {"a": [1, "x", {"b": "ü\n\"\\"}]}, "list": ["p", "q"], "s": "end"}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("plain", [True, False])
def test_every_beginning_holds_what_was_whole_by_then(indent: int | None, plain: bool) -> None:
    text, names = json.dumps(WHOLE, indent=indent, ensure_ascii=plain), [*WHOLE]
    most = 0
    for position in range(8, len(text)):
        found = cut_object(text[:position])
        assert found is not None
        most = max(most, len(found))
        assert [*found] == names[: len(found)]
        done = names[: max(0, len(found) - 1)]  # the last member may be half of one
        assert {name: found[name] for name in done} == {name: WHOLE[name] for name in done}
    assert (most, found) == (len(names), WHOLE)
    assert cut_object(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "", "{", '{"', "{}", "[1, 2", "B", '{"a": 1}', '{"a": 1} and {"b": ', "{order: [A, B", '{"order": [D, B, A', '{"a": x, "b": "',
        "{A} > {B", "{'a': 'b", 'See {"a": 1, "b', '{"a"}: {"b": "',
    ],
)  # fmt: skip
def test_other_texts_are_none(text: str) -> None:
    assert cut_object(text) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ('{"a":' * 20_000, None), ('{"a": ' + "[" * 300 + "1," * 9_000, 1), ('{"a": "' + "\\" * 20_000, 10_000),
        ('{"a": "' + "x " * 10_000, 19_999), ('{"a": ' + "9" * 6_000, None), ('{"a": [' + '"b", ' * 4_000, 4_000),
        ('{"a": "' + "\\u00e9" * 3_000, 3_000),
    ],
)  # fmt: skip
def test_long_and_deep_texts_are_read_or_none(text: str, size: int | None) -> None:
    """None: nested too deeply, or a number too long."""
    found: Any = cut_object(text)
    assert (None if found is None else len(found["a"])) == size

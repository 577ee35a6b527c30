"""Replies as models write them, each with the reading that two people would agree on; and replies of no sense at
all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from proctor.core import ParseError
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    BoxesFormat,
    ChoiceFormat,
    ChoicesFormat,
    ClassesFormat,
    CountFormat,
    Format,
    FreeTextFormat,
    IntervalsFormat,
    OrderingFormat,
    PatternFormat,
    PercentageFormat,
    PointFormat,
    PreferenceFormat,
    QuantityFormat,
    RatingsFormat,
    ScaleFormat,
    ShortTextFormat,
    TimestampsFormat,
)
from proctor.core.formats.reply import MAX_ANSWER_CHARS
from proctor.core.formats.thoughts import without_thoughts
from tests.support.generated_replies import KINDS, generate

FILES = sorted((Path(__file__).parent / "replies").glob("*.jsonl"))
SECOND = sorted((Path(__file__).parent / "replies" / "second").glob("*.jsonl"))
"""Replies by another hand, written without a look at the parsers; then the parsers were mended."""
_MOST_UNREAD = 0.01
_FORMATS: TypeAdapter[Format] = TypeAdapter(AnswerFormat)


def corpus(file: Path) -> tuple[Format, list[str], list[dict[str, Any]]]:
    """The first line holds the format and the options, each further one a reply with its value, null if unreadable.
    Of an `unclear` one not everybody is sure: it may be unreadable, too, but nothing else."""
    head, *rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return _FORMATS.validate_python(head["format"]), head.get("options", []), rows


def read(form: Format, text: str, options: list[str]) -> Any:
    try:
        return form.parse(text, options)
    except ParseError:
        return None


@pytest.mark.parametrize("file", [*FILES, *SECOND], ids=lambda file: file.stem)
def test_replies_are_read_as_two_people_would(file: Path, record_property: Any) -> None:
    form, options, rows = corpus(file)
    read_all = [(row, read(form, row["text"], options)) for row in rows]
    found = [
        (row["text"], row["value"], value) for row, value in read_all if not (row.get("unclear") and value is None)
    ]
    wrong = [one for one in found if one[2] is not None and one[2] != one[1]]
    unread = [one for one in found if one[2] is None and one[1] is not None]
    record_property("error rate", f"{file.stem}: {len(wrong)} wrong, {len(unread)} unread of {len(rows)}")
    assert wrong == []
    assert len(unread) <= _MOST_UNREAD * len(rows), unread


@pytest.mark.parametrize("name", KINDS)
def test_replies_drawn_at_random_are_read_as_they_were_meant(name: str) -> None:
    """A slice of `python bench/replies.py --generated 5000`."""
    kind, rows = KINDS[name], list(generate(name, 200, seed=0))
    assert rows == list(generate(name, 200, seed=0))
    found = [(text, wanted, read(kind.form, text, [*kind.options])) for text, wanted in rows]
    differ = [
        row for row in found if row[1] != row[2] and not (None not in row[1:] and kind.form.match(row[1], row[2]))
    ]
    assert [row for row in differ if row[2] is not None] == []
    assert len(differ) <= 0.005 * len(rows), differ


_LATER = {"intervals", "quantity", "boxes", "point", "choices", "short_text", "scale", "preference"}
"""The formats that have at least a hundred replies; all others have three hundred."""


def test_every_format_has_hundreds_of_replies_and_no_reply_twice() -> None:
    counts: dict[str, int] = {}
    for file in FILES:
        rows = corpus(file)[2]
        texts = [row["text"] for row in rows]
        assert len(set(texts)) == len(texts), file.stem
        kind = file.stem.removesuffix("_several")
        counts[kind] = counts.get(kind, 0) + len(rows)
        unreadable = sum(row["value"] is None for row in rows)
        assert unreadable >= 10, file.stem  # to read everything is no way to win
    assert len(counts) == 10 + len(_LATER)
    assert all(count >= (100 if kind in _LATER else 300) for kind, count in counts.items()), counts


ALL: list[Format] = [
    ChoiceFormat(),
    BinaryFormat(),
    CountFormat(),
    PercentageFormat(),
    ClassesFormat(classes=("sponge", "clip", "specimen bag")),
    TimestampsFormat(),
    TimestampsFormat(several=True),
    OrderingFormat(labels=("A", "B", "C", "D")),
    OrderingFormat(labels=("S3H", "K-2", "(")),
    FreeTextFormat(),
    RatingsFormat(dimensions=("accuracy",)),
    PatternFormat(pattern="[1-4]/[1-4]"),
    IntervalsFormat(),
    IntervalsFormat(several=True),
    IntervalsFormat(several=True, strict=True),
    QuantityFormat(unit="mm"),
    QuantityFormat(unit="s", tolerance=2, strict=True),
    QuantityFormat(),
    BoxesFormat(),
    BoxesFormat(several=True),
    BoxesFormat(several=True, strict=True),
    PointFormat(tolerance=5),
    PointFormat(strict=True),
    ChoicesFormat(),
    ChoicesFormat(strict=True),
    ShortTextFormat(),
    ShortTextFormat(strict=True),
    ScaleFormat(labels=("poor", "fair", "good", "very good", "excellent")),
    ScaleFormat(low=-2, high=2, strict=True),
    PreferenceFormat(),
    PreferenceFormat(ties=False),
    PreferenceFormat(strict=True),
    ChoiceFormat(strict=True),
    BinaryFormat(strict=True),
    CountFormat(strict=True),
    PercentageFormat(strict=True),
    ClassesFormat(classes=("Sponge", "Clip"), strict=True),
    TimestampsFormat(strict=True, several=True),
    PatternFormat(pattern=r"(\w+-)*x", strict=True),
    FreeTextFormat(strict=True, max_chars=300),
]
ORGANS = ["liver", "spleen", "left kidney", "kidney"]
PIECES = (
    "Answer: ",
    "final answer",
    "<think>",
    "</think>",
    "<answer>",
    "\\boxed{",
    "}",
    '{"answer": ',
    '"B"',
    "[",
    "]",
    "A",
    " or ",
    "B",
    " > ",
    "not ",
    "yes",
    "no",
    "答案",
    "：",
    "是",
    "三个",
    "３",
    "²",
    "40%",
    "1:05",
    "1:05-1:20",
    '{"start": 65, "end": ',
    " to ",
    "35 mm",
    "[1, 2, 3, 4]",
    "(5, 6)",
    '{"x": 1, "y": ',
    "tie",
    " is better than ",
    "good",
    "4/5",
    "3.5 cm",
    " 10^9",
    "00:01:75",
    "65 s",
    "clip",
    ", ",
    "\n",
    "9" * 400,
    "9" * 5000,
    "1e999",
    "-",
    "NaN",
    "\ud800",
    "\x00",
    "**",
    "```json",
    "I can't see",
    "between ",
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=14), st.sampled_from(ALL))
def test_any_reply_ends_in_a_value_or_a_parse_error(pieces: list[str], form: Format) -> None:
    value = None
    try:
        value = form.parse("".join(pieces), ORGANS)
    except ParseError as error:
        problem = str(error)
    else:
        problem = ""
    assert "\n" not in problem
    assert len(problem) < 400
    json.dumps(value, allow_nan=False)
    if not problem and not isinstance(form, OrderingFormat):  # an incomplete order is an answer, though no reference
        assert form.match(form.check(value, ORGANS), value)


FIELDS = st.sampled_from(
    ["answer", "order", "start", "end", "time", "minutes", "seconds", "box", "x", "value", "unit", "A"]
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.just(10**400), st.sampled_from(PIECES))
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=3))


@settings(max_examples=300, deadline=None)
@given(JSON, st.sampled_from(ALL))
@example([True], TimestampsFormat())
def test_any_json_ends_in_a_value_or_a_parse_error(said: Any, form: Format) -> None:
    value = read(form, json.dumps(said), ORGANS)
    json.dumps(value, allow_nan=False)
    if value is not None and not isinstance(form, OrderingFormat):
        assert form.match(form.check(value, ORGANS), value)


_LONG = 1_000  # characters
HOSTILE = (
    "answer ",
    "answer is ",
    "answer: {",
    "(",
    "[",
    "{",
    '{"a":',
    "<think>",
    "<answer>",
    "<",
    " ",
    "\n",
    "a",
    "9",
    "1,000,",
    "1:05 ",
    "1 ",
    "1-",
    "A>",
    "A and then ",
    "no ",
    "not ",
    "clip ",
    "correct ",
    "\\boxed{",
    "> ",
    "一",
    "x:",
    "1:05-1:20 ",
    "from 1:05 to ",
    "start 1 ",
    "1 min 2 s - ",
    "[1, 2], ",
    "35 mm, ",
    "1, 2, 3, 4, ",
    "(1, 2), ",
    "x1=1, ",
    "A, B, ",
    "A\n",
    "B is better than A ",
    "good or ",
    "[[",
    "1 h ",
    "1.5 x 10^9 ",
    "A > B ",
    "wait, no, ",
    "A) x\n",
    "i) ",
    "A but ",
    "<a_think_",
)


def calls(form: Format, text: str) -> int:
    """How many functions are called to read a text, those of `re` included."""
    read(form, text, ORGANS)  # compiles the patterns
    count = 0

    def called(frame: object, event: str, what: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(called)
    try:
        read(form, text, ORGANS)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("form", ALL, ids=lambda form: f"{form.kind}{'-strict' if getattr(form, 'strict', 0) else ''}")
def test_a_long_text_of_anything_is_read_in_linear_time(form: Format) -> None:
    """In calls of functions; that each pattern takes linear time is shown in test_pattern_steps.py."""
    for piece in HOSTILE:
        once, twice = (calls(form, piece * (size // len(piece))) for size in (_LONG, 2 * _LONG))
        assert twice <= 2.5 * once, piece


@pytest.mark.parametrize(("text", "count"), [("Sıx clips.", 6), ("EİGHT", 8), ("Twenty-nıne", 29)])
def test_a_turkish_i_is_an_i(text: str, count: int) -> None:
    assert CountFormat().parse(text) == count


def test_numbers_in_circles_count_to_twenty() -> None:
    order = [*"LKJIHGFEDCBA"]
    text = " ".join(f"{chr(0x2460 + position)} {label}" for position, label in enumerate(order))
    assert text.endswith("⑫ A")
    assert OrderingFormat(labels=tuple(sorted(order))).parse(text) == order


def test_a_long_reply_is_read_at_both_ends() -> None:
    filler = "The camera moves on. " * MAX_ANSWER_CHARS
    assert CountFormat().parse(f"Answer: 3\n\n{filler}") == 3
    assert CountFormat().parse(f"{filler}\n\nAnswer: 3") == 3
    assert CountFormat().parse(f"<think>{filler}</think>3") == 3


def test_thoughts_are_taken_away() -> None:
    assert without_thoughts("a <think>b <think>c</think> d") == "a  d"
    assert without_thoughts("b</think>c</think>d") == "d"
    assert without_thoughts("a<think>b") == "a"
    assert without_thoughts("<|channel|>analysis<|message|>x<|channel|>final<|message|>y<|return|>") == "y"

"""Reading answers: a ledger of what models write, and what it means."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import ParseError
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    ChoicesFormat,
    ClassesFormat,
    CountFormat,
    Format,
    FreeTextFormat,
    OrderingFormat,
    PercentageFormat,
    RatingsFormat,
    TimestampsFormat,
)

ORGANS = ["liver", "spleen", "left kidney", "kidney"]
CLASSES = ClassesFormat(classes=("sponge", "clip", "specimen bag"))

CHOICES = [
    ("A", "A"),
    ("b", "B"),
    ("(C)", "C"),
    ("D.", "D"),
    ("**B**", "B"),
    ("Answer: B", "B"),
    ("answer: (d)", "D"),
    ("The answer is C.", "C"),
    ("The correct answer is option B: spleen", "B"),
    ("I would choose option D", "D"),
    ("\\boxed{A}", "A"),
    ("Answer: $\\boxed{B}$", "B"),
    ("A transverse sweep of the spleen", "B"),
    ("A. liver", "A"),
    ("the left kidney", "C"),
    ("a kidney", "D"),
    ("Answer: B\n\nOption C is wrong since there is no colour. Option D too.", "B"),
    ("Answer: B\n\nWait. Re-evaluating, the correct answer is A.", "A"),
    ("Answer: B\n\nWait. Re-evaluating, the answer may well be A.", "B"),
    ("Option A looks right, but final answer: D", "D"),
    ("A or B", None),
    ("A, because it lies under the diaphragm", "A"),
    ("liver and spleen", None),
    ("either (B) or (C)", None),
    ("I cannot tell.", None),
    ("", None),
    ("E", None),
    ("Answer: E", None),
]


@pytest.mark.parametrize(("text", "expected"), CHOICES)
def test_choice_ledger(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ParseError):
            ChoiceFormat().parse(text, ORGANS)
    else:
        assert ChoiceFormat().parse(text, ORGANS) == expected


CLAMPS = ["Kelly clamp", "Babcock clamp", "Veress needle", "Trocar"]
EPONYMS = [
    ("A Veress needle is inserted.", "C"),
    ("Answer: A Veress needle", "C"),
    ("**A Veress needle**", "C"),
    ("The best answer is A Veress needle", "C"),
    ("Answer: C, A Veress needle is used", "C"),
    ("A Babcock clamp holds the bowel.", "B"),
    ("A Trocar (Hasson)", "D"),
    ("I see a Veress needle", "C"),
    ("A Kelly clamp", "A"),
    ("Answer: A Kelly clamp, not a Veress needle", "A"),
    ("A Kelly", "A"),
    ("A. Kelly clamp", "A"),
    ("A The jaws are curved.", "A"),
    ("Answer: A Explanation: curved jaws", "A"),
    ("Answer: A\nA Veress needle would be thinner", "A"),
    ("A is right", "A"),
    ("A Foley catheter", None),
    ("Answer: A Foley catheter", None),
    ("The answer is A Kocher clamp", None),
    ("A Kelly retractor", None),
]


@pytest.mark.parametrize(("text", "expected"), EPONYMS)
def test_an_article_before_a_name_is_no_option(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ParseError):
            ChoiceFormat().parse(text, CLAMPS)
    else:
        assert ChoiceFormat().parse(text, CLAMPS) == expected


def test_an_article_in_a_set_of_options_is_no_option() -> None:
    def read(text: str) -> object:
        return ChoicesFormat().parse(text, CLAMPS)

    assert read("A Veress needle and a Trocar") == ["C", "D"]
    assert read("A Kelly clamp and a Trocar") == ["A", "D"]
    assert read("A Babcock clamp, A Trocar") == ["B", "D"]
    assert read("Answer: A Veress needle") == ["C"]
    assert read("A and C") == ["A", "C"]
    with pytest.raises(ParseError):
        read("A Foley catheter")


def test_an_option_within_the_one_that_is_named_is_not_named() -> None:
    needles = ["The needle", "The Veress needle", "The trocar"]
    assert ChoiceFormat().parse("I see a Veress needle.", needles) == "B"
    assert ChoiceFormat().parse("I see a needle.", needles) == "A"
    assert ChoicesFormat().parse("I see a Veress needle and a trocar.", needles) == ["B", "C"]


def test_the_pronoun_i_is_no_option() -> None:
    ten = [f"finding {number}" for number in range(8)] + ["Kocher incision", "Pfannenstiel incision"]
    assert ChoiceFormat().parse("I", ten) == "I"
    assert ChoiceFormat().parse("I Kocher incision", ten) == "I"
    assert ChoiceFormat().parse("I believe it is J", ten) == "J"
    assert ChoiceFormat().parse("A Pfannenstiel incision", ten) == "J"


def test_what_else_says_nothing_may_be_an_option() -> None:
    sides = ["Left", "Right", "N/A", "Not visible"]
    for text in ("N/A", "n/a.", "NA", "Answer: N/A"):
        assert ChoiceFormat().parse(text, sides) == "C"
    assert ChoiceFormat().parse("Answer: Not visible", sides) == "D"
    with pytest.raises(ParseError):
        ChoiceFormat().parse("N/A", CLAMPS)


def test_choice_error_names_what_was_expected_and_what_came() -> None:
    with pytest.raises(ParseError, match=re.escape("expected one of the letters A, B, found 'no idea'")):
        ChoiceFormat().parse("no idea", ["yes, at once", "later on"])


OTHERS: list[tuple[Format, str, object]] = [
    (BinaryFormat(), "Answer: no", False),
    (BinaryFormat(), "True.", True),
    (BinaryFormat(), "No needle is left, yes, all were retrieved", True),
    (BinaryFormat(), "perhaps", None),
    (CountFormat(), "Answer: 3", 3),
    (CountFormat(), "I count two sponges", 2),
    (CountFormat(), "At 00:01:05 there are 4 clips", 4),
    (CountFormat(), "2 or 3", None),
    (CountFormat(), "-1", None),
    (CountFormat(), "2.5", None),
    (PercentageFormat(), "Answer: 40 %", 40.0),
    (PercentageFormat(), "12,5 percent of 8 frames", 12.5),
    (PercentageFormat(), "140 %", None),
    (CLASSES, "Answer: Sponges and a specimen bag", ["specimen bag", "sponge"]),
    (CLASSES, "none", []),
    (CLASSES, "a towel", None),
    (TimestampsFormat(), "Answer: 00:01:05", [65.0]),
    (TimestampsFormat(), "1:05.5", [65.5]),
    (TimestampsFormat(), "00:01:75", None),
    (TimestampsFormat(), "between 00:00:10 and 00:00:20", None),
    (TimestampsFormat(several=True), "00:00:20, 00:00:10", [10.0, 20.0]),
    (OrderingFormat(labels=("A", "B", "C")), "B > C > A", ["B", "C", "A"]),
    (OrderingFormat(labels=("A", "B", "C")), '{"order": ["c", "a", "b"]}', ["C", "A", "B"]),
    (OrderingFormat(labels=("A", "B", "C")), "Answer: B, B, A", ["B", "B", "A"]),
    (OrderingFormat(labels=("A", "B", "C")), "I can't say", None),
    (FreeTextFormat(max_chars=10), "a caudal slide", None),
    (FreeTextFormat(), " slides caudally ", "slides caudally"),
    (RatingsFormat(dimensions=("overall",)), '```json\n{"overall": 1}\n```', {"overall": 1.0}),
    (RatingsFormat(dimensions=("overall",)), '{"overall": 1.5}', None),
    (RatingsFormat(dimensions=("overall",)), '{"overall": "high"}', None),
    (RatingsFormat(dimensions=("overall",)), '{"overall": true}', None),
    (RatingsFormat(dimensions=("overall",)), "[1", None),
]


@pytest.mark.parametrize(("form", "text", "expected"), OTHERS)
def test_ledger_of_other_formats(form: Format, text: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(ParseError):
            form.parse(text)
    else:
        assert form.parse(text) == expected


def test_matching_and_distance() -> None:
    times = TimestampsFormat(tolerance=2, several=True)
    assert times.match([10.0, 30.0], [11.0, 32.0])
    assert not times.match([10.0, 30.0], [11.0])
    assert times.distance([10.0, 30.0], [11.0, 33.0]) == 3.0
    assert CLASSES.distance(["clip", "sponge"], ["sponge"]) == 0.5
    assert CLASSES.distance([], []) == 0.0
    assert CountFormat().distance(3, 5) == 2.0
    order = OrderingFormat(labels=("A", "B", "C"))
    assert order.distance(["A", "B", "C"], ["C", "B", "A"]) == 1.0
    # A before B holds, A and B before C do not: C is missing.
    assert order.distance(["A", "B", "C"], ["A", "B"]) == pytest.approx(2 / 3)
    assert RatingsFormat(dimensions=("a", "b")).distance({"a": 0.0, "b": 1.0}, {"a": 0.5, "b": 1.0}) == 0.25


FORMATS: list[Format] = [form for form, _, _ in OTHERS] + [ChoiceFormat()]


@given(st.text(max_size=300), st.sampled_from(FORMATS))
def test_any_text_parses_to_a_checked_value_or_a_parse_error(text: str, form: Format) -> None:
    try:
        value = form.parse(text, ORGANS)
    except ParseError as error:
        _check_message(str(error))
        return
    if not isinstance(form, OrderingFormat):  # an incomplete order is an answer, though no reference
        assert form.match(form.check(value, ORGANS), value)


def _check_message(message: str) -> None:
    assert "\n" not in message
    assert len(message) < 400

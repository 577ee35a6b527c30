"""Strict formats: the bare value, and nothing else, states an answer."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from proctor.core import Item, ParseError, content_hash
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    Format,
    PatternFormat,
    PercentageFormat,
    TimestampsFormat,
)

YES_NO = BinaryFormat(strict=True)
COUNT = CountFormat(strict=True)
SHARE = PercentageFormat(strict=True, tolerance=1)
NAMES = ClassesFormat(classes=("Sponge", "Specimen", "Specimen Bag"), strict=True)
TIMES = TimestampsFormat(strict=True, several=True, tolerance=5)
ONE_TIME = TimestampsFormat(strict=True)

PATTERNS = [
    r"[ab]+",
    r"a{e}",
    r"a{,3}b?",
    r"(?i)ä+",
    r"\w+ ?\d*",
    r"a.b",
    r"(?s)a.b",
    r"(a|b)*?-",
    r"(?<!a)b+",
    r"(?=a)\w+",
]
PATTERNS += [
    r"[^a-]+",
    r"a{1,2}{",
    r"x|^a$|b\Z",
    r"(?m)^a$",
    r"\bab\b.*",
    r"[\w\s]{2,5}",
    r"(a)?(?(1)b|-)",
    r"a++b|(?>a+)-",
]

LEDGER = [
    (YES_NO, "NO", False),
    (YES_NO, " Yes. ", True),
    (YES_NO, "Answer: yes", None),
    (YES_NO, "true", None),
    (YES_NO, "", None),
    (COUNT, " 3", 3),
    (COUNT, "007", 7),
    (COUNT, "7 sponges", None),
    (COUNT, "3.0", None),
    (COUNT, "-1", None),
    (COUNT, "three", None),
    (COUNT, "٣", 3),
    (COUNT, "9" * 16, None),
    (COUNT, "9" * 5000, None),
    (COUNT, "3 .", 3),
    (SHARE, "76%.", 76.0),
    (SHARE, "9" * 400, None),
    (SHARE, "40 %", 40.0),
    (SHARE, "41%", 41.0),
    (SHARE, "12.5", 12.5),
    (SHARE, "100.1", 100.1),
    (SHARE, "-5", None),
    (SHARE, "about half", None),
    (NAMES, "specimen bag,, SPONGE, sponge,", ["Specimen Bag", "Sponge"]),
    (NAMES, "specimen  bag", None),
    (NAMES, "none, none", None),
    (NAMES, "None,.", []),
    (NAMES, "Specimen", ["Specimen"]),
    (NAMES, "none", []),
    (NAMES, "none, Sponge", None),
    (NAMES, "Grasper", None),
    (NAMES, "a Sponge", None),
    (NAMES, "", None),
    (TIMES, "00:21:51, 00:11:19", [679.0, 1311.0]),
    (TIMES, "00:00:01, 00:00:01", [1.0, 1.0]),
    (TIMES, "1:2:3", None),
    (TIMES, "00:75:00", None),
    (TIMES, "11:19", None),
    (TIMES, "00:00:01,, 00:00:02 .", [1.0, 2.0]),
    (ONE_TIME, "00:00:01, 00:00:09", None),
]


@pytest.mark.parametrize(("form", "text", "expected"), LEDGER)
def test_strict_ledger(form: Format, text: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(ParseError):
            form.parse(text)
    else:
        assert form.parse(text) == expected


def test_strict_choice_takes_a_letter_or_a_whole_option() -> None:
    form, options = ChoiceFormat(strict=True), ["left", "left of the sponge"]
    assert [form.parse(text, options) for text in ("b", "A)", "Left.", "LEFT  of the sponge")] == list("BAAB")
    with pytest.raises(ParseError, match="one option's letter or text and nothing else, found 'Answer: B'"):
        form.parse("Answer: B", options)


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(ParseError, match=re.escape("or none, found 'grasper, needle'")):
        NAMES.parse("needle, sponge, grasper")


def test_a_strict_instruction_asks_for_nothing_else() -> None:
    for form in (YES_NO, COUNT, SHARE, TIMES):
        assert "Answer:" not in form.instruction()
        assert "nothing else" in form.instruction()


def test_a_format_that_is_not_strict_keeps_its_fingerprint() -> None:
    item = Item(id="q1", group="v1", question="Is it?", answer=BinaryFormat())
    assert item.model_dump(mode="json")["answer"] == {"kind": "binary"}
    strict = item.model_copy(update={"answer": YES_NO})
    assert strict.model_dump(mode="json")["answer"] == {"kind": "binary", "strict": True}
    assert content_hash(item) != content_hash(strict)
    assert Item.model_validate(strict.model_dump(mode="json")) == strict


def test_a_pattern_matches_as_a_whole() -> None:
    form = PatternFormat(pattern="[A-C][0-9]", strict=True)
    assert form.parse(" B2 ") == "B2"
    assert form.match("B2", "b2")
    assert not form.match("B2", "b3")
    for text in ("b2", "B2 or B3", "B22", "", "B2" + " " * 400 + "x"):
        with pytest.raises(ParseError, match="a text of the form"):
            form.parse(text)
    with pytest.raises(ParseError):
        form.check(3)
    with pytest.raises(ValidationError, match="is no regular expression"):
        TypeAdapter(AnswerFormat).validate_python({"kind": "pattern", "pattern": "("})


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a|aa)+$", "it takes too long on a short text"),
        ("a{99999999999}", "the repetition number is too large"),
        ("(" * 400 + ")" * 400, "it is nested too deep"),
        ("((a{5000}){5000})", "it repeats too often"),
        ("[[a]", "Possible nested set at position 1"),
        ("x" * 1001, "at most 1000 characters"),
    ],
)
def test_a_pattern_that_could_hang_is_refused_when_it_is_read(pattern: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(problem)):
        PatternFormat(pattern=pattern)


def test_an_answer_on_which_a_pattern_takes_too_long_is_unreadable() -> None:
    form = PatternFormat(pattern="(?:xy|x|y|yx)*-", strict=True)  # slow on a mixture that no probe at reading has
    assert form.parse("xyxyx-") == "xyxyx-"
    with pytest.raises(ParseError, match="a text of the form"):
        form.parse("xy" * 140)


@given(st.sampled_from(PATTERNS), st.text("ab-{e}1\n xÄä٣", max_size=12))
def test_a_strict_pattern_is_python_s(pattern: str, text: str) -> None:
    """The matcher with a time limit takes what `re` takes."""
    said = text.strip()
    try:
        found = PatternFormat(pattern=pattern, strict=True).parse(text) == said
    except ParseError:
        found = False
    assert found == bool(said and re.fullmatch(pattern, said))

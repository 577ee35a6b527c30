"""References as people write them in cells and in JSON: read strictly, and written so that they are read again."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core import ParseError
from proctor.core.formats import (
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

ORGANS = ["liver", "spleen", "left kidney", "a|b"]
TWO = RatingsFormat(dimensions=("accuracy", "safety"))
CLASSES = ClassesFormat(classes=("clip", "Specimen Bag"))
THREE = OrderingFormat(labels=("A", "B", "C"))
WINDOWS = IntervalsFormat(several=True)
BOXES = BoxesFormat(several=True)
SEVERAL = TimestampsFormat(several=True)

CELLS: list[tuple[Format, Any, list[Any]]] = [
    (ChoiceFormat(), "b", ["B"]),
    (ChoiceFormat(), "(C)", ["C"]),
    (ChoiceFormat(), " Left  Kidney ", ["C"]),
    (ChoiceFormat(), "A | spleen", ["A", "B"]),
    (ChoiceFormat(), "A | liver", ["A"]),  # once
    (ChoiceFormat(), "a|b", ["D"]),  # an option with a bar in it
    (ChoiceFormat(), "Ａ", ["A"]),
    (THREE, "c > a > b", [["C", "A", "B"]]),
    (THREE, "C → A → B", [["C", "A", "B"]]),
    (THREE, "C, A, B", [["C", "A", "B"]]),
    (THREE, '["C", "A", "B"]', [["C", "A", "B"]]),
    (THREE, ["C", "A", "B"], [["C", "A", "B"]]),
    (THREE, "A>B>C | A>C>B", [["A", "B", "C"], ["A", "C", "B"]]),
    (BinaryFormat(), "TRUE", [True]),
    (BinaryFormat(), "no", [False]),
    (BinaryFormat(), False, [False]),
    (CountFormat(), "3", [3]),
    (CountFormat(), "3.0", [3]),
    (CountFormat(), "3,0", [3]),
    (CountFormat(), "٣", [3]),
    (CountFormat(), "2 | 3", [2, 3]),
    (CountFormat(), 3, [3]),
    (PercentageFormat(), "37,5 %", [37.5]),
    (PercentageFormat(), "40", [40.0]),
    (CLASSES, "specimen bag; CLIP", [["Specimen Bag", "clip"]]),
    (CLASSES, "None", [[]]),
    (CLASSES, "clip | none", [["clip"], []]),
    (TimestampsFormat(), "00:01:05", [[65.0]]),
    (TimestampsFormat(), "1:05.5", [[65.5]]),
    (TimestampsFormat(), "65,5", [[65.5]]),
    (TimestampsFormat(), "65.5 s", [[65.5]]),
    (TimestampsFormat(), "1 min 5 s", [[65.0]]),
    (TimestampsFormat(), [65], [[65.0]]),
    (SEVERAL, "1:05, 0:30", [[30.0, 65.0]]),
    (SEVERAL, "65;30", [[30.0, 65.0]]),
    (PatternFormat(pattern=r"\d/\d"), "2/3 | 3/3", ["2/3", "3/3"]),
    (PatternFormat(pattern=r"\[\d\]"), "[2]", ["[2]"]),
    (PatternFormat(pattern=r"a\|b"), "a|b", ["a|b"]),
    (FreeTextFormat(), "liver | hepar", ["liver", "hepar"]),
    (FreeTextFormat(), r"|x\| is the norm".lstrip("|"), ["x| is the norm"]),
    (FreeTextFormat(), "[1, 2]", ["[1, 2]"]),
    (IntervalsFormat(), "00:01:05-00:01:20", [[[65.0, 80.0]]]),
    (IntervalsFormat(), "1:05 – 1:20", [[[65.0, 80.0]]]),
    (IntervalsFormat(), "65 to 80,5 s".replace(",", "."), [[[65.0, 80.5]]]),
    (IntervalsFormat(), "65-80 | 70-85", [[[65.0, 80.0]], [[70.0, 85.0]]]),
    (IntervalsFormat(), [65, 80], [[[65.0, 80.0]]]),
    (IntervalsFormat(), "[[65, 80]]", [[[65.0, 80.0]]]),
    (WINDOWS, "1:05-1:20, 2:05-2:20", [[[65.0, 80.0], [125.0, 140.0]]]),
    (QuantityFormat(unit="mm"), "3,5 cm", [35.0]),
    (QuantityFormat(unit="mm"), "35", [35.0]),
    (QuantityFormat(unit="mm"), "35mm | 4 cm", [35.0, 40.0]),
    (QuantityFormat(unit="°C"), "−5", [-5.0]),
    (QuantityFormat(unit="°C"), "98.6 F", [37.0]),
    (QuantityFormat(), "1e3", [1000.0]),
    (QuantityFormat(), 3, [3.0]),
    (BoxesFormat(), "[120, 80, 460, 300]", [[[120.0, 80.0, 460.0, 300.0]]]),
    (BoxesFormat(), "120; 80; 460; 300", [[[120.0, 80.0, 460.0, 300.0]]]),
    (BoxesFormat(), [120, 80, 460, 300], [[[120.0, 80.0, 460.0, 300.0]]]),
    (BOXES, "1, 2, 3, 4; 5, 6, 7, 8", [[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]]),
    (PointFormat(), "512, 300 | 10 20", [[512.0, 300.0], [10.0, 20.0]]),
    (PointFormat(), "120, 80, 460, 300", [[120.0, 80.0, 460.0, 300.0]]),
    (ChoicesFormat(), "A, c", [["A", "C"]]),
    (ChoicesFormat(), "CA", [["A", "C"]]),
    (ChoicesFormat(), "liver; left kidney", [["A", "C"]]),
    (ChoicesFormat(), "A, B | A, C", [["A", "B"], ["A", "C"]]),
    (ShortTextFormat(), "left kidney | ren sinister", ["left kidney", "ren sinister"]),
    (ScaleFormat(labels=("poor", "fair", "good"), high=3), "Fair", [2]),
    (ScaleFormat(), "4.0", [4]),
    (ScaleFormat(low=-2, high=2), "-2", [-2]),
    (PreferenceFormat(), "b", ["B"]),
    (PreferenceFormat(), "Tie", ["tie"]),
    (TWO, "safety=1; accuracy: 0,5", [{"accuracy": 0.5, "safety": 1.0}]),
    (TWO, '{"accuracy": 0.5, "safety": 1}', [{"accuracy": 0.5, "safety": 1.0}]),
]


@pytest.mark.parametrize(("form", "cell", "wanted"), CELLS, ids=lambda one: str(one)[:40])
def test_a_cell_states_a_reference(form: Format, cell: Any, wanted: list[Any]) -> None:
    assert list(form.read_reference(cell, ORGANS)) == wanted


REFUSED: list[tuple[Format, Any, str]] = [
    (ChoiceFormat(), "E", "expected one of the letters A, B, C, D, or the text of one option, found 'E'"),
    (ChoiceFormat(), "A or B", "expected one of the letters A, B, C, D, or the text of one option, found 'A or B'"),
    (ChoiceFormat(), "", "expected a reference of the format choice, found 'an empty cell'"),
    (ChoiceFormat(), ["A"], "expected one of A, B, C, D, found \"['A']\""),
    (THREE, "A > B", "expected a permutation of A, B, C, found \"['A', 'B']\""),
    (BinaryFormat(), "perhaps", "expected yes or no, found 'perhaps'"),
    (BinaryFormat(), 1, "expected true or false, found '1'"),
    (CountFormat(), "2.5", "expected a whole number of 0 or more, found '2.5'"),
    (CountFormat(), "-1", "expected a whole number of 0 or more, found '-1'"),
    (CountFormat(), "2 |", "expected a whole number of 0 or more, found ''"),
    (
        CountFormat(),
        "1,000",
        "expected a whole number of 0 or more (1000 or 1.0: a comma before three digits may mean either), found",
    ),
    (PercentageFormat(), "140 %", "expected a number from 0 to 100, found '140.0'"),
    (PercentageFormat(), "nan", "expected a number from 0 to 100, found 'nan'"),
    (CLASSES, "clip, scalpel", "expected some of clip, Specimen Bag, or none, found 'scalpel'"),
    (TimestampsFormat(), "00:01:75", "expected a time as hh:mm:ss, found '00:01:75'"),
    (TimestampsFormat(), "soon", "expected a time as hh:mm:ss, mm:ss or seconds, found 'soon'"),
    (TimestampsFormat(), [10**400], "expected a list of times in seconds, found '[1000"),
    (PatternFormat(pattern=r"\d/\d"), "2-3", r"expected a text of the form \d/\d, found '2-3'"),
    (IntervalsFormat(), "1:20-1:05", "expected an end after the start, found '1:20-1:05'"),
    (IntervalsFormat(), "1:05", "expected a start and an end, such as 00:01:05-00:01:20, found '1:05'"),
    (IntervalsFormat(), [[65, 80], [90, 95]], "expected one interval, found '[[65, 80], [90, 95]]'"),
    (WINDOWS, [[65, 10**400]], "expected a list of [start, end] in seconds, found '[[65, 1000"),
    (WINDOWS, [], "expected a list of [start, end] in seconds, found '[]'"),
    (WINDOWS, [[65, [80]]], "expected a list of [start, end] in seconds, found '[[65, [80]]]'"),
    (QuantityFormat(unit="mm"), "35 mg", "expected a unit of length, such as mm, found 'mg'"),
    (QuantityFormat(unit="mm"), "about 35", "expected one number in mm, found 'about 35'"),
    (QuantityFormat(unit="mm"), "35-40", "expected a unit of length, such as mm, found '-40'"),
    (QuantityFormat(unit="mm"), 10**400, "expected one number in mm, found '1000"),
    (QuantityFormat(unit="mm"), True, "expected one number in mm, found 'True'"),
    (QuantityFormat(unit="mg"), "1,000 mg", "expected one number in mg (1000 or 1.0: a comma"),
    (BoxesFormat(), "460, 80, 120, 300", "expected left before right and top above bottom, found '460, 80, 120, 300'"),
    (BoxesFormat(), "1, 2, 3, 1400", "expected a box inside the picture (1000 × 1000), found '1, 2, 3, 1400'"),
    (BoxesFormat(), "upper left", "expected one box as [left, top, right, bottom], found 'upper left'"),
    (BoxesFormat(), [1, 2, 3, 10**400], "expected a list of [left, top, right, bottom], found '[1, 2, 3, 1000"),
    (PointFormat(), "512", "expected [x, y], or the box [left, top, right, bottom] that it lies in, found '512'"),
    (ChoicesFormat(), "A or C", "expected one of the letters A, B, C, D, or the text of one option, found 'A or C'"),
    (ChoicesFormat(), [], "expected a list of some of A, B, C, D, found '[]'"),
    (ShortTextFormat(), "...", "expected a text of 1 to 80 characters, found '...'"),
    (ScaleFormat(), "6", "expected one level from 1 to 5, found '6.0'"),
    (ScaleFormat(), "good", "expected one level from 1 to 5, found 'good'"),
    (PreferenceFormat(ties=False), "tie", "expected A or B, found 'tie'"),
    (TWO, "accuracy: 0.5", "expected an object with the keys accuracy, safety, found \"{'accuracy': 0.5}\""),
    (TWO, "good", "expected accuracy: number, safety: number, found 'good'"),
    (TWO, "accuracy: 2, safety: 1", "expected 0 to 1 for 'accuracy', found '2.0'"),
]


@pytest.mark.parametrize(("form", "cell", "problem"), REFUSED, ids=lambda one: str(one)[:40])
def test_what_states_none_names_found_and_expected(form: Format, cell: Any, problem: str) -> None:
    with pytest.raises(ParseError, match=re.escape(problem)):
        form.read_reference(cell, ORGANS)


def test_two_options_of_one_text_have_no_text_that_names_one() -> None:
    with pytest.raises(ParseError, match="found '2 options with the text liver'"):
        ChoiceFormat().read_reference("liver", ["liver", "Liver"])
    assert ChoiceFormat().read_reference("B", ["B", "A"]) == ("A",)  # the text of an option goes before its letter


_SECONDS = st.integers(0, 10**7 - 1).map(lambda number: number / 1000 * 1000 // 1)
_CLOCKS = st.integers(0, 10**6).map(lambda one: one / 8)
_VALUES: list[tuple[Format, st.SearchStrategy[Any]]] = [
    (ChoiceFormat(), st.sampled_from("ABCD")),
    (THREE, st.permutations("ABC").map(list)),
    (BinaryFormat(), st.booleans()),
    (CountFormat(), st.integers(0, 10**14)),
    (PercentageFormat(), st.integers(0, 10**6).map(lambda one: one / 10**4)),
    (CLASSES, st.sets(st.sampled_from(CLASSES.classes)).map(sorted)),
    (TimestampsFormat(), st.lists(_SECONDS.filter(lambda one: one < 999 * 3600), min_size=1, max_size=1)),
    (SEVERAL, st.sets(_SECONDS.filter(lambda one: one < 999 * 3600), min_size=1, max_size=4).map(sorted)),
    (
        WINDOWS,
        st.lists(
            st.tuples(_CLOCKS, _CLOCKS).map(lambda one: [one[0], one[0] + one[1] + 1]),
            min_size=1,
            max_size=3,
            unique_by=tuple,
        ),
    ),
    (QuantityFormat(unit="mm"), st.integers(-(10**9), 10**9).map(lambda one: one / 1000)),
    (
        BOXES,
        st.lists(
            st.tuples(*[st.integers(0, 900)] * 2).map(lambda one: [one[0], one[1], one[0] + 50, one[1] + 99]),
            min_size=1,
            max_size=3,
            unique_by=tuple,
        ),
    ),
    (PointFormat(), st.tuples(*[st.integers(0, 1000)] * 2).map(list)),
    (ChoicesFormat(), st.sets(st.sampled_from("ABCD"), min_size=1).map(sorted)),
    (ShortTextFormat(), st.sampled_from(["left kidney", "L3/L4", "5-0 Prolene"])),
    (ScaleFormat(low=-3), st.integers(-3, 5)),
    (PreferenceFormat(), st.sampled_from(["A", "B", "tie"])),
    (TWO, st.fixed_dictionaries({"accuracy": st.floats(0, 1), "safety": st.floats(0, 1)})),
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(_VALUES).flatmap(lambda one: st.tuples(st.just(one[0]), one[1])))
def test_what_is_written_is_read_again(pair: tuple[Format, Any]) -> None:
    form, value = pair
    assert form.read_reference(form.write(value), ORGANS) == (form.check(value, ORGANS),)
    assert form.read_reference(json.loads(json.dumps(value)) if not isinstance(value, str) else value, ORGANS)


_PIECES = st.sampled_from(["|", "\\|", ",", ";", ">", "[", "{", "1e999", "9" * 400, "NaN", "\ud800", "\x00", "٣", "1:05", "A", "clip", "-", "\n", '"', "[" * 2000])  # fmt: skip


@pytest.mark.parametrize("cell", ["|", ",", ";", " ; ,", "\\|", "1:05-1:20 |"])
@pytest.mark.parametrize("form", [form for form, _ in _VALUES if getattr(form, "several", False)])
def test_a_cell_of_separators_states_nothing(form: Format, cell: str) -> None:
    with pytest.raises(ParseError):
        form.read_reference(cell, ORGANS)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(_PIECES, st.text(max_size=5)), max_size=8), st.sampled_from([one for one, _ in _VALUES]))
def test_any_cell_is_a_reference_or_a_parse_error(pieces: list[str], form: Format) -> None:
    found: tuple[Any, ...] = ()
    with contextlib.suppress(ParseError):
        found = form.read_reference("".join(pieces), ORGANS)
    for value in found:
        assert form.check(value, ORGANS) == value
        json.dumps(value, allow_nan=False)

"""Drawings: the same bytes each time, names as they are, axes that fit, nothing that a page must forbid."""

from __future__ import annotations

import doctest
import importlib
import re
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from proctor.core import ACCURACY, Column, Metric, Table, difference, interval, value
from proctor.reports.figures import (
    Axis,
    ChartSeries,
    Dot,
    Panel,
    Stack,
    draw_columns,
    draw_rows,
    signed_axis,
    value_axis,
)
from proctor.reports.figures.canvas import SLIM

NAMES = ["plain", r"$\frac{1}{0$ & <b>", "a\x00b\u202ec", "很长的名字", "x" * 300]
AXIS = value_axis(ACCURACY, 0.0, 1.0)


def bars(parts: list[str], counts: list[list[int]]) -> str:
    series = [ChartSeries(part, number) for number, part in enumerate(parts)]
    scale = Axis((0.0, max(map(sum, counts))))
    return draw_rows("c", "Bars", NAMES[: len(counts)], [Panel("", list(map(Stack, counts)))], scale, series=series)


def all_drawings() -> list[str]:
    dots = [Dot(0.1 * position, 0.05 * position, 0.15 * position) for position in range(1, len(NAMES))]
    series = [ChartSeries(name, number) for number, name in enumerate(NAMES[:4])]
    return [
        draw_rows("a", "Dots", NAMES, [Panel(name, [Dot(), *dots], (0.25, "chance")) for name in NAMES], AXIS),
        draw_rows("b", "Series", NAMES, [Panel("", [dots] * 5, (0.25, "chance"))], AXIS, series=series),
        bars(["one", "two"], [[3, 4], [0, 0], [1, 0], [0, 9], [500, 1]]),
        draw_columns("d", "Columns", ["A", "B"], [191, 3], 97.0),
    ]


@cache
def drawn() -> list[str]:
    return all_drawings()


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert all_drawings() == drawn()


def test_every_part_of_a_bar_is_drawn_and_named_in_the_legend() -> None:
    parts = [f"part {letter}" for letter in "abcdefgh"]
    root = ElementTree.fromstring(bars(parts, [[*range(101, 109)]]))
    texts = [one.text for one in root.iter() if one.text and one.tag.endswith("text")]
    assert [text for text in texts if text in parts] == parts
    assert [text for text in texts if text.isdigit()] == [str(count) for count in range(101, 109)]


@pytest.mark.parametrize("position", range(4))
def test_a_drawing_is_well_formed_and_has_nothing_forbidden(position: int) -> None:
    svg = drawn()[position]
    root = ElementTree.fromstring(svg)
    names = {name for element in root.iter() for name in element.attrib}
    assert not names & {"style", "onload", "xmlns"}
    assert {element.tag for element in root.iter()} <= {
        "svg", "title", "desc", "path", "text", "circle", "rect",
    }  # fmt: skip
    assert not re.search(r"[\x00\u202e]", svg)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    for reference in re.findall(r"#([\w-]+)\)?\"", svg):
        assert reference in ids or re.fullmatch("[0-9a-f]{6}", reference)


def test_names_are_shown_as_written_and_long_ones_end() -> None:
    texts = ["".join(element.itertext()) for element in ElementTree.fromstring(drawn()[0]).iter("text")]
    assert r"$\frac{1}{0$ & <b>" in texts
    assert "a\ufffdb\ufffdc" in texts
    assert "x" * 29 + "…" in texts
    assert "no score" in "".join(texts)


def test_a_dot_stands_where_its_value_is() -> None:
    """In a panel of 0 to 100 %, the dots of 0, 50 and 100 % are evenly spaced on the lines of the axis."""
    panel = Panel("only", [Dot(0.0), Dot(0.5), Dot(1.0)])
    svg = draw_rows("a", "Dots", ["p", "q", "r"], [panel], value_axis(ACCURACY, 0.0, 1.0, lines=2))
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]
    lines = sorted({float(x) for x in re.findall(r'd="M ([\d.]+) [\d.]+ L \1 [\d.]+"', svg)})
    assert dots == pytest.approx(lines)
    assert dots[1] - dots[0] == pytest.approx(dots[2] - dots[1])


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 1.0, ("0 %", "25 %", "50 %", "75 %", "100 %")),
        (0.2, 0.6, ("20 %", "30 %", "40 %", "50 %", "60 %")),
        (-0.5, 1.0, ("−50 %", "0 %", "50 %", "100 %")),
    ],
)
def test_value_axes_have_round_labels(low: float, high: float, labels: tuple[str, ...]) -> None:
    axis = value_axis(ACCURACY, low, high)
    assert axis.labels == labels
    assert axis.limits[0] < low < high < axis.limits[1]


def test_axes_of_differences_have_signs_and_always_hold_zero() -> None:
    assert signed_axis(ACCURACY, 0.1, 0.5).labels == ("0 pts", "+10 pts", "+20 pts", "+30 pts", "+40 pts", "+50 pts")
    rubric = Metric("rubric", "Rubric", high=2.0)
    assert signed_axis(rubric, -1.0, 1.0).labels == ("−1.0", "−0.5", "0", "+0.5", "+1.0")
    flat = signed_axis(rubric, 0.0, 0.0)
    assert flat.limits[0] < 0 < flat.limits[1]


def test_numbers_in_words() -> None:
    rubric = Metric("rubric", "Rubric", high=2.0)
    assert [value(ACCURACY, 0.6626), value(rubric, 0.9), value(rubric, None)] == ["66.3 %", "0.90", "–"]
    assert interval(ACCURACY, -0.051, 0.5) == "−5.1 to 50.0"
    assert interval(ACCURACY, None, 0.5) == "–"
    assert [difference(ACCURACY, number) for number in (0.1, -0.1, 0.0, -0.0001, None)] == [
        "+10.0 pts",
        "−10.0 pts",
        "0.0 pts",
        "0.0 pts",
        "–",
    ]


def test_a_table_with_a_missing_cell_is_an_error() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells under 2 columns"):
        Table("", (Column("a"), Column("b")), (("x",),))


@pytest.mark.parametrize("name", ["core.formatting", "reports.leaderboard", "reports.renderers", "reports.costs"])
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"proctor.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("ends", [(-0.44, 0.83), (-0.1, 0.1), (-1.0, 1.0), (0.0, 0.03)])
def test_labels_of_an_axis_do_not_touch_on_a_phone(ends: tuple[float, float]) -> None:
    """Each tick keeps its line; 0 keeps its label."""
    axis = signed_axis(ACCURACY, *ends)
    svg = draw_rows("a", "Dots", ["classical-vision"], [Panel("", [Dot(0.01, *ends)])], axis, width=SLIM)
    root = ElementTree.fromstring(svg)
    labels = [(float(one.attrib["x"]), one.text) for one in root.iter() if (one.text or "").endswith(" pts")]
    assert "0 pts" in [text for _, text in labels]
    for (left, first), (right, second) in pairwise(labels):
        assert right - left > 5.8 * (len(first or "") + len(second or "")) / 2

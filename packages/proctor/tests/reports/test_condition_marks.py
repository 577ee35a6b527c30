"""A condition has one colour and one shape in every figure, and every score can be told from the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from matplotlib.colors import to_hex

import proctor
from proctor.media import CONDITIONS
from proctor.reports import LeaderboardChart, Source
from proctor.reports.analysis import _CAUSES
from proctor.reports.completion import _STATUSES
from proctor.reports.figures import GREYS, RIGHT, WRONG, ChartSeries, SvgCanvas, condition_numbers, plot_style
from proctor.reports.figures.canvas import COLOURS
from proctor.reports.figures.marks import DARK, DARK_GREYS, LIGHT, LIGHT_GREYS, PLOT_SHAPES, SHAPES, series_colour
from proctor.reports.figures.rows import _part
from proctor.reports.headline import headline_section
from proctor.results import Options
from proctor.runs import Store
from tests.support.paths import CORE

ASSETS = CORE / "reports" / "assets"
STYLE = "".join((ASSETS / name).read_text("utf-8") for name in ("shared/tokens.css", "report.css"))


def luminance(colour: str) -> float:
    channels = [int(colour[row : row + 2], 16) / 255 for row in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("colours", "paper"), [(LIGHT, "#ffffff"), (LIGHT_GREYS, "#ffffff"), (DARK, "#14171b"), (DARK_GREYS, "#14171b")]
)
def test_scores_stand_out_from_the_page(colours: tuple[str, ...], paper: str) -> None:
    """WCAG 1.4.11 asks for 3."""
    assert {colour: round(contrast(colour, paper), 2) for colour in colours if contrast(colour, paper) < 3} == {}
    assert len(set(colours)) == len(colours)


def test_the_style_sheet_has_the_same_colours() -> None:
    for prefix, light, dark in (("s", LIGHT, DARK), ("m", LIGHT_GREYS, DARK_GREYS)):
        for number, both in enumerate(zip(light, dark, strict=True)):
            assert tuple(re.findall(rf"--{prefix}{number}: (#[0-9a-f]+);", STYLE)) == both
            assert COLOURS[f"{prefix}{number}"] == both[0]
            assert f".f-{prefix}{number} {{" in STYLE


def test_every_outcome_of_an_answer_has_a_style() -> None:
    script = (ASSETS / "browser.js").read_text("utf-8")
    (outcomes,) = re.findall(r"const OUTCOMES = \{(.*)\};", script)
    names = re.findall(r"(\w+): ", outcomes)
    assert names == ["right", "partly", "wrong", "unscored"]
    assert [name for name in names if not re.search(rf"(?m)^(?:\.\w+, )*\.{name}\b", STYLE)] == []


def test_every_condition_has_its_own_score_whatever_others_there_are() -> None:
    names = CONDITIONS.names()
    every = condition_numbers(names)
    assert {name: condition_numbers([name])[name] for name in names} == every
    scores = {(LIGHT[number % len(LIGHT)], SHAPES[number % len(SHAPES)]) for number in every.values()}
    assert len(scores) == len(names)
    more = condition_numbers([*names, "one of a package", "another"])
    assert len({*more.values()}) == len(names) + 2
    assert condition_numbers(["another", "text-only"]) == condition_numbers(["text-only", "another"])


def test_right_is_blue_wrong_is_orange_and_what_is_missing_is_a_hatched_grey() -> None:
    """Each kind of missing has a grey and a hatching of its own; green is none of them."""
    causes = {cause: number for cause, (_, number) in _CAUSES.items()}
    assert (causes.pop("right"), causes.pop("wrong")) == (RIGHT, WRONG) == (0, 1)
    assert all(number < 0 for number in causes.values())
    assert len(set(causes.values())) == len(causes)
    statuses = {status.name: status.number for status in _STATUSES}
    assert statuses.pop("answered") == RIGHT
    assert all(number < 0 for number in statuses.values())
    looks = {_look(number) for number in range(-len(causes), 0)}
    assert len(looks) == len(causes)
    assert {series_colour(number) for number in GREYS} == {"m0", "m1", "m2", "m3"}


def _look(number: int) -> str:
    canvas = SvgCanvas(40, 20)
    _part(canvas, 0, 0, (30, 15), ChartSeries("x", number))
    assert canvas.inner.count("<path") > 3  # hatched
    return canvas.inner


def drawn(figure: Any) -> dict[str, tuple[str, str]]:
    """The colour and the shape of each group of a plot."""
    (axes,) = figure.axes
    return {
        str(line.get_label()): (to_hex(line.get_color()), str(line.get_marker()))
        for line in axes.lines
        if line.get_marker() in PLOT_SHAPES and not str(line.get_label()).startswith("_")
    }


def test_a_plot_has_the_scores_of_the_report(store: Store) -> None:
    """`text-only` was blue and `video` orange in a plot, and the other way round in the report."""
    numbers = Source(store, "toy", Options(draws=100)).numbers
    wanted = {name: plot_style(number) for name, number in numbers.items()}
    assert drawn(proctor.results(store, "toy", draws=100).plot()) == wanted
    some = drawn(proctor.results(store, "toy", draws=100, conditions=["shuffled", "text-only"]).plot())
    assert some == {name: wanted[name] for name in ("text-only", "shuffled")}
    board = proctor.leaderboard(store, "toy", condition="text-only", draws=100).plot()
    (line,) = [one for one in board.axes[0].lines if one.get_marker() in PLOT_SHAPES]
    assert (to_hex(line.get_color()), line.get_marker()) == wanted["text-only"]


def test_the_first_screen_has_the_same_scores(store: Store) -> None:
    """Also where some conditions are left out, which changed all colours after them."""
    source = Source(store, "toy", Options(draws=100, conditions=("text-only", "shuffled")))
    chart = next(block for block in headline_section(source).blocks if isinstance(block, LeaderboardChart))
    assert {lane.name: lane.mark for row in chart.rows for lane in row.lanes} == condition_numbers(
        ["text-only", "shuffled"]
    )

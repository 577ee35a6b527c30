"""Values with their intervals: rows of a forest, panels of dots, conditions within rows, and the first screen's overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import Metric, shorten, value
from proctor.reports.figures.axes import CHARACTER, LABEL, SLIM_LABEL, Axis, draw_labels, draw_ticks, label_width
from proctor.reports.figures.canvas import (
    FAINT,
    GRID,
    INK,
    MARKERS,
    PAPER,
    SERIES,
    WIDE,
    bare_axes,
    drawing,
    put,
    stamp,
    svg,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW = 440, 38
DOWN = 0.07
"""How far below the middle of its row a mark stands, in rows."""
_ROWS_SIDE, _ROWS_HEAD, _ROWS_FOOT = 26, 40, 24
_ROWS_DIGIT = 6.3  # pixels of a letter of the numbers
_BAND = (-0.12, 0.26)


def rows_height(count: int) -> float:
    """Pixels that a number of rows need, with head and foot."""
    return _ROWS_HEAD + ROW * count + _ROWS_FOOT


def row_axes(
    figure: Figure,
    axis: Axis,
    names: Sequence[str],
    texts: Sequence[str],
    *,
    head: str,
    mark: tuple[float, str] | None = None,
) -> Axes:
    """Axes with one unit a row, named at the left, with the text at the right, and the value axis below; `head`
    names the texts, `mark` is a broken line across."""
    axes = bare_axes(figure, (_ROWS_SIDE, _ROWS_HEAD, WIDTH - 2 * _ROWS_SIDE, ROW * len(names)))
    low, high = axis.limits
    pixel = (high - low) / (WIDTH - 2 * _ROWS_SIDE)
    axes.set_xlim(low, high)
    axes.set_ylim(len(names) - 0.5, -0.5)
    start, end = low - (_ROWS_SIDE - 6) * pixel, high + (_ROWS_SIDE - 6) * pixel
    put(axes, end, -0.5 - 30 / ROW, head, color=FAINT, fontsize=11, ha="right")
    longest = max((len(text) for text in texts), default=0)
    room = int((WIDTH - 18 - _ROWS_DIGIT * longest) / CHARACTER)
    for row, (name, text) in enumerate(zip(names, texts, strict=True)):
        put(axes, start, row - 0.31, shorten(name, room))
        put(axes, end, row - 0.31, text, fontsize=11, ha="right")
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        _line(axes, tick, len(names), color=GRID, linewidth=1, zorder=0)
        put(axes, tick, len(names) - 0.5 + 11 / ROW, label, color=FAINT, fontsize=10, ha="center")
    if mark is not None:
        _line(axes, mark[0], len(names), color=FAINT, linewidth=1.4, linestyle=(0, (3, 2)), zorder=1)
        put(axes, mark[0], -0.5 - 10 / ROW, mark[1], color=FAINT, fontsize=11, ha="center")
    return axes


def _line(axes: Axes, at: float, rows: int, **style: object) -> None:
    """A line across all rows that leaves their names out, as one path."""
    ys = [y for row in range(rows) for y in (row + _BAND[0], row + _BAND[1], float("nan"))]
    axes.plot([at] * len(ys), ys, **style)  # type: ignore[arg-type]


_ACROSS = 3
_ROW, _DOTS_HEAD, _DOTS_FOOT, _DOTS_GAP = 20, 40, 28, 40
_BOLD = 7.8  # pixels of an average bold letter


@dataclass(frozen=True)
class Dot:
    """A value with its interval; all None where there is nothing to draw."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Panel:
    """One value of a facet: its name, a dot for each row, and the level of blind guessing, if known (or another one
    that `mark` names)."""

    name: str
    dots: Sequence[Dot]
    chance: float | None = None
    mark: str = "chance"


def draw_dots(
    key: str, title: str, rows: Sequence[str], panels: Sequence[Panel], axis: Axis, metric: Metric, *, width: int = WIDE
) -> str:
    """Panels side by side, at most three on a screen and one on a phone, then below each other; rows are named at the
    left."""
    names = [shorten(row, LABEL if width == WIDE else SLIM_LABEL) for row in rows]
    left = label_width(names)
    across = min(_ACROSS, len(panels)) if width == WIDE else 1
    lines = -(-len(panels) // across)
    line = _DOTS_HEAD + _ROW * len(rows) + _DOTS_FOOT
    inner = (width - left - _DOTS_GAP * across) / across
    with drawing(width, lines * line) as figure:
        for place, panel in enumerate(panels):
            down, right = divmod(place, across)
            box = (left + right * (inner + _DOTS_GAP), down * line + _DOTS_HEAD, inner, _ROW * len(rows))
            axes = bare_axes(figure, box)
            axes.set_xlim(*axis.limits)
            axes.set_ylim(len(rows) - 0.5, -0.5)
            _draw_panel(axes, panel, axis, int((inner + _DOTS_GAP - 12) / _BOLD))
            if right == 0:
                draw_labels(axes, names, axis)
        return svg(figure, key=key, title=title, description=_dots_described(rows, panels, metric))


def _draw_panel(axes: Axes, panel: Panel, axis: Axis, room: int) -> None:
    count = len(panel.dots)
    draw_ticks(axes, axis, count)
    put(axes, axis.limits[0], -0.5 - 24 / _ROW, shorten(panel.name, room), fontweight="bold")
    if panel.chance is not None:
        axes.plot([panel.chance] * 2, [-0.5, count - 0.5], color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
        put(axes, panel.chance, -0.5 - 8 / _ROW, panel.mark, color=FAINT, fontsize=10, ha="center")
    for row, dot in enumerate(panel.dots):
        if dot.value is None:
            put(axes, axis.limits[0], row, " no score", color=FAINT, fontsize=10)
            continue
        if dot.low is not None and dot.high is not None:
            axes.plot([dot.low, dot.high], [row, row], color=SERIES[0], linewidth=2, alpha=0.55)
        axes.plot([dot.value], [row], "o", color=SERIES[0], markersize=6.5, markeredgewidth=0, clip_on=False)


def _dots_described(rows: Sequence[str], panels: Sequence[Panel], metric: Metric) -> str:
    parts = []
    for panel in panels[:12]:
        shown = [
            f"{shorten(row, 40)} {value(metric, dot.value)}"
            for row, dot in list(zip(rows, panel.dots, strict=True))[:12]
        ]
        parts.append(f"{shorten(panel.name, 40)}: {', '.join(shown)}")
    return "; ".join(parts) + ". All numbers stand in the table below."


@dataclass(frozen=True)
class Forest:
    """Rows with their dots, and a text for each at the right under `head`; `mark` is the line that says "no
    difference", with its name."""

    rows: Sequence[str]
    dots: Sequence[Dot]
    texts: Sequence[str]
    head: str
    mark: tuple[float, str]


def draw_forest(key: str, title: str, forest: Forest, axis: Axis) -> str:
    """A dot is filled where the interval leaves the line of no difference out, else hollow. An interval that
    leaves the axis ends in an arrow."""
    with drawing(WIDTH, rows_height(len(forest.rows))) as figure:
        axes = row_axes(figure, axis, forest.rows, forest.texts, head=forest.head, mark=forest.mark)
        for row, dot in enumerate(forest.dots):
            _forest_draw_row(axes, row + DOWN, dot, axis, forest.mark[0])
        return svg(figure, key=key, title=title, description=_forest_described(forest))


def _forest_draw_row(axes: Axes, row: float, dot: Dot, axis: Axis, mark: float) -> None:
    if dot.value is None:
        return
    low, high = axis.limits
    apart = False
    if dot.low is not None and dot.high is not None:
        apart = not dot.low <= mark <= dot.high
        ends = (min(max(dot.low, low), high), max(min(dot.high, high), low))
        axes.plot(ends, [row, row], color=SERIES[0], linewidth=2, solid_capstyle="butt")
        if dot.low < low:
            stamp(axes, [(low, row)], "left", 9, facecolor=SERIES[0])
        if dot.high > high:
            stamp(axes, [(high, row)], "right", 9, facecolor=SERIES[0])
    axes.plot(
        [min(max(dot.value, low), high)],
        [row],
        "o",
        markerfacecolor=SERIES[0] if apart else PAPER,
        markeredgecolor=INK if dot.low is None else SERIES[0],
        markeredgewidth=1.5,
        markersize=7,
        clip_on=False,
    )


def _forest_described(forest: Forest) -> str:
    lines = [f"{shorten(row, 60)}: {text}" for row, text in list(zip(forest.rows, forest.texts, strict=True))[:60]]
    return f"{forest.head}. " + "; ".join(lines) + ". All numbers stand below."


_STEP, _SLOPES_HEAD, _LEGEND, _SLOPES_FOOT = 13, 22, 18, 30


@dataclass(frozen=True)
class Slopes:
    """Rows × series: `dots[row][series]`; `mark` is a line across with its name (chance, no difference).
    `looks` gives each series its colour and marker by number, so that it has the same in two drawings."""

    rows: Sequence[str]
    series: Sequence[str]
    dots: Sequence[Sequence[Dot]]
    looks: Sequence[int]
    mark: tuple[float, str] | None = None


def draw_slopes(key: str, title: str, slopes: Slopes, axis: Axis, metric: Metric, *, width: int = WIDE) -> str:
    """The series below each other within a row, each with colour and marker of its own, and its name
    above; a thin line joins the marks of a row."""
    names = [shorten(row, LABEL if width == WIDE else SLIM_LABEL) for row in slopes.rows]
    left = label_width(names)
    row = _STEP * len(slopes.series) + 12
    height = row * len(names)
    legend = _legend_lines(slopes, width - left - 30 if width == WIDE else width - 10)
    head = _SLOPES_HEAD + _LEGEND * len(legend)
    with drawing(width, head + height + _SLOPES_FOOT) as figure:
        axes = bare_axes(figure, (left, head, width - left - 30, height))
        axes.set_xlim(*axis.limits)
        axes.set_ylim(len(names) - 0.5, -0.5)
        draw_ticks(axes, axis, len(names))
        for line in range(1, len(names)):
            axes.plot(axis.limits, [line - 0.5] * 2, color=GRID, linewidth=0.6)
        if slopes.mark is not None:
            at, name = slopes.mark
            axes.plot([at, at], [-0.5, len(names) - 0.5], color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
            put(axes, at, -0.5 - 6 / row, name, color=FAINT, fontsize=10, ha="center")
        for place, dots in enumerate(slopes.dots):
            _slopes_draw_row(axes, place, dots, slopes.looks, _STEP / row)
        draw_labels(axes, names, axis)
        start = 0.0 if width == WIDE else left - 10
        _draw_legend(axes, axis, legend, (start, row))
        return svg(figure, key=key, title=title, description=_slopes_described(slopes, metric))


def _slopes_draw_row(axes: Axes, place: int, dots: Sequence[Dot], looks: Sequence[int], step: float) -> None:
    ups = [place + (number - (len(dots) - 1) / 2) * step for number in range(len(dots))]
    there = [(dot.value, up) for dot, up in zip(dots, ups, strict=True) if dot.value is not None]
    axes.plot([x for x, _ in there], [y for _, y in there], color=FAINT, linewidth=0.8, alpha=0.7)
    for dot, up, number in zip(dots, ups, looks, strict=True):
        if dot.value is None:
            continue
        colour = SERIES[number % len(SERIES)]
        if dot.low is not None and dot.high is not None:
            axes.plot([dot.low, dot.high], [up, up], color=colour, linewidth=2, alpha=0.55)
        style = {"color": colour, "markersize": 7.5, "markeredgecolor": PAPER, "markeredgewidth": 0.8}
        axes.plot([dot.value], [up], MARKERS[number % len(MARKERS)], clip_on=False, **style)  # type: ignore[arg-type]


def _legend_lines(slopes: Slopes, room: float) -> list[list[tuple[int, str]]]:
    """The series with their names, as many in a line as fit."""
    lines: list[list[tuple[int, str]]] = [[]]
    x = 0.0
    for number, name in zip(slopes.looks, slopes.series, strict=True):
        shown = shorten(name, 24)
        size = 30 + CHARACTER * len(shown)
        if lines[-1] and x + size > room:
            lines.append([])
            x = 0.0
        lines[-1].append((number, shown))
        x += size
    return lines


def _draw_legend(axes: Axes, axis: Axis, lines: Sequence[Sequence[tuple[int, str]]], at: tuple[float, float]) -> None:
    """`at` is how many pixels left of the axis it begins, and the height of a row."""
    low, high = axis.limits
    pixel = (high - low) / axes.get_window_extent().width
    start, row = at
    for down, line in enumerate(reversed(lines)):
        x, y = low - start * pixel, -0.5 - (23 + _LEGEND * down) / row
        for number, shown in line:
            style = {"color": SERIES[number % len(SERIES)], "markersize": 7.5, "markeredgewidth": 0}
            axes.plot([x + 5 * pixel], [y], MARKERS[number % len(MARKERS)], clip_on=False, **style)  # type: ignore[arg-type]
            put(axes, x + 14 * pixel, y, shown)
            x += (30 + CHARACTER * len(shown)) * pixel


def _slopes_described(slopes: Slopes, metric: Metric) -> str:
    lines = []
    for row, dots in list(zip(slopes.rows, slopes.dots, strict=True))[:20]:
        shown = [
            f"{shorten(name, 24)} {value(metric, dot.value)}" for name, dot in zip(slopes.series, dots, strict=True)
        ]
        lines.append(f"{shorten(row, 40)}: {', '.join(shown)}")
    return "; ".join(lines) + ". The tables have all numbers."


_WIDTH, _OVERVIEW_HEAD, _OVERVIEW_FOOT, _OVERVIEW_SIDE = 440, 26, 22, 8
_NAME, _LINE, _OVERVIEW_GAP = 21, 17, 9
_LONGEST = 16  # characters of a condition's name
_OVERVIEW_DIGIT = 6.6  # pixels of a letter of the values


@dataclass(frozen=True)
class Overview:
    """`dots[system][condition]` with what stands beside each (`texts`); a dot without a value is left out. `mark` is a line
    across with its name, such as the chance level."""

    systems: Sequence[str]
    conditions: Sequence[str]
    dots: Sequence[Sequence[Dot]]
    texts: Sequence[Sequence[str]]
    mark: tuple[float, str] | None = None


def draw_overview(key: str, title: str, overview: Overview, axis: Axis) -> str:
    """Below each system's name a line for each of its conditions: its name, the interval, the value."""
    shown = [[place for place, dot in enumerate(dots) if dot.value is not None] for dots in overview.dots]
    labels = [shorten(name, _LONGEST) for name in overview.conditions]
    left = _OVERVIEW_SIDE + 10 + CHARACTER * 0.9 * max((len(name) for name in labels), default=0)
    texts = [text for row in overview.texts for text in row]
    right = _OVERVIEW_SIDE + 8 + _OVERVIEW_DIGIT * max((len(text) for text in texts), default=0)
    width = _WIDTH - left - right
    height = sum(_NAME + _LINE * len(places) + _OVERVIEW_GAP for places in shown)
    with drawing(_WIDTH, _OVERVIEW_HEAD + height + _OVERVIEW_FOOT) as figure:
        axes = bare_axes(figure, (left, _OVERVIEW_HEAD, width, height))
        axes.set_xlim(*axis.limits)
        axes.set_ylim(height, 0)
        pixel = (axis.limits[1] - axis.limits[0]) / width
        _draw_lines(axes, overview, axis, height)
        top = 0.0
        for name, places, dots, said in zip(overview.systems, shown, overview.dots, overview.texts, strict=True):
            room = int((_WIDTH - 2 * _OVERVIEW_SIDE) / (CHARACTER + 0.6))
            start = axis.limits[0] - (left - _OVERVIEW_SIDE) * pixel
            put(axes, start, top + _NAME / 2, shorten(name, room), fontweight="bold")
            for line, place in enumerate(places):
                up = top + _NAME + _LINE * (line + 0.5)
                put(axes, start, up, labels[place], color=FAINT, fontsize=11)
                put(axes, axis.limits[1] + (right - _OVERVIEW_SIDE) * pixel, up, said[place], fontsize=11, ha="right")
                _draw_dot(axes, axis, dots[place], up, place)
            top += _NAME + _LINE * len(places) + _OVERVIEW_GAP
        return svg(figure, key=key, title=title, description=_overview_described(overview))


def _draw_lines(axes: Axes, overview: Overview, axis: Axis, height: float) -> None:
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        axes.plot([tick, tick], [0, height], color=GRID, linewidth=1, zorder=0)
        put(axes, tick, height + 10, label, color=FAINT, fontsize=10, ha="center")
    if overview.mark is not None:
        at, name = overview.mark
        axes.plot([at, at], [0, height], color=FAINT, linewidth=1.4, linestyle=(0, (3, 2)), zorder=1)
        put(axes, at, -9, name, color=FAINT, fontsize=11, ha="center")


def _draw_dot(axes: Axes, axis: Axis, dot: Dot, up: float, place: int) -> None:
    if dot.value is None:
        return
    low, high = axis.limits
    colour = SERIES[place % len(SERIES)]
    if dot.low is not None and dot.high is not None:
        ends = [min(max(one, low), high) for one in (dot.low, dot.high)]
        axes.plot(ends, [up, up], color=colour, linewidth=3, alpha=0.55, solid_capstyle="butt")
    style = {"color": colour, "markersize": 8, "markeredgecolor": PAPER, "markeredgewidth": 0.8}
    axes.plot([min(max(dot.value, low), high)], [up], MARKERS[place % len(MARKERS)], clip_on=False, **style)  # type: ignore[arg-type]


def _overview_described(overview: Overview) -> str:
    lines = []
    for name, dots, texts in zip(overview.systems, overview.dots, overview.texts, strict=True):
        said = [
            f"{condition} {text}"
            for condition, dot, text in zip(overview.conditions, dots, texts, strict=True)
            if dot.value is not None
        ]
        lines.append(f"{shorten(name, 40)}: {', '.join(said)}")
    mark = f" {overview.mark[1]}." if overview.mark else ""
    return "; ".join(lines) + f".{mark} The leaderboard below has the intervals."

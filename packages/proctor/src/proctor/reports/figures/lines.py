"""Line and column charts: ranks under several rules, curves, podium plots, and histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.core import count_of, shorten
from proctor.reports.figures.canvas import LABEL, WIDE, Axis, SvgCanvas, label_width, legend_height, plain_axis
from proctor.reports.figures.marks import series_colour
from proctor.reports.figures.rows import Dot

_WIDTH = 760
_ROW = 23
_DASHES = ("", "12 4", "4 4")
_LIGHT = {4, 5, 7}  # series whose colour needs dark text


def draw_rank_lines(
    key: str, title: str, rows: Sequence[str], columns: Sequence[str], ranks: Sequence[Sequence[int]]
) -> str:
    """A bump chart of ranks (rows × columns, from 1); columns are rankings. Rows of equal rank are drawn one below the
    other, so that no line is hidden; marks show the rank. Names are at both ends."""
    names = [shorten(row, LABEL) for row in rows]
    if 2 * label_width(names) > 0.62 * _WIDTH:
        names = [shorten(row, 20) for row in rows]
    side, last = label_width(names), len(columns) - 1
    step = (_WIDTH - 2 * side - 24) / max(last, 1)
    slots = [_slots([row[column] for row in ranks]) for column in range(len(columns))]
    drawing = SvgCanvas(_WIDTH, 34 + _ROW * len(rows) + 8)
    for column, name in enumerate(columns):
        drawing.text(side + 12 + step * column, 18, name, size=11, fill="faint", anchor="middle")
    paths = [
        [(side + 12 + step * column, 34 + _ROW * (slots[column][row] + 0.5)) for column in range(len(columns))]
        for row in range(len(rows))
    ]
    numbers = [row if row < 8 else 7 for row in range(len(rows))]
    for row in reversed(range(len(rows))):
        colour, dashes = series_colour(numbers[row]), _DASHES[row % len(_DASHES)]
        drawing.line(paths[row], colour, 2, dashes=dashes, opacity=0.85)
    for row, (name, path) in enumerate(zip(names, paths, strict=True)):
        drawing.text(path[0][0] - 12, path[0][1], name, anchor="end")
        drawing.text(path[-1][0] + 12, path[-1][1], name)
        for (x, y), rank in zip(path, ranks[row], strict=True):
            drawing.circle(x, y, 8, series_colour(numbers[row]), edge="paper", width=1)
            ink = "dark" if numbers[row] in _LIGHT else "paper"
            drawing.text(x, y, str(rank), size=9, fill=ink, anchor="middle")
    description = [
        (name, [f"{column} {rank}" for column, rank in zip(columns, own, strict=True)])
        for name, own in zip(rows, ranks, strict=True)
    ]
    return drawing.svg(key, title, description)


def _slots(ranks: Sequence[int]) -> dict[int, int]:
    order = sorted(range(len(ranks)), key=lambda row: (ranks[row], row))
    return {row: number for number, row in enumerate(order)}


_ACROSS, _HEIGHT, _HEAD, _FOOT, _LEFT, _RIGHT = 3, 150, 30, 44, 46, 18
_BOLD = 7.8  # average width of a bold character


@dataclass(frozen=True)
class Curve:
    """A panel with one curve: x positions (`positions`) and dots. `names` label the x positions instead of numbers;
    `empty` is the reason why there are no points. With a `band` the intervals are one area, and the dots have no marks."""

    name: str
    positions: Sequence[float]
    dots: Sequence[Dot]
    names: Sequence[str] = ()
    empty: str = ""
    band: bool = False


def draw_curves(
    key: str, title: str, curves: Sequence[Curve], axis: Axis, labels: tuple[str, str], *, mark: float | None = None
) -> str:
    """Panels with a curve each, three per row, with a common y axis and separate x axes. `labels` are the titles of the
    x and y axes; `mark` is a dashed horizontal line in every panel."""
    across = min(_ACROSS, max(1, len(curves)))
    width, line = WIDE / _ACROSS, _HEAD + _HEIGHT + _FOOT
    drawing = SvgCanvas(width * across, 22 + line * -(-len(curves) // across))
    drawing.text(8, 11, f"Upwards: {labels[1]}. To the right: {labels[0]}.", fill="faint", size=11)
    for number, curve in enumerate(curves):
        down, right = divmod(number, across)
        _draw_curve(drawing, curve, axis, (right * width + _LEFT, 22 + down * line + _HEAD), mark)
    description = []
    for curve in curves:
        names = curve.names or [f"{position:.3g}" for position in curve.positions]
        both = zip(names, curve.dots, strict=True)
        description.append(
            (curve.name, [f"{name}: {dot.value:.2f}" for name, dot in both if dot.value is not None] or [curve.empty])
        )
    return drawing.svg(key, title, [(f"{labels[1]} by {labels[0]}", []), *description])


def _draw_curve(drawing: SvgCanvas, curve: Curve, axis: Axis, at: tuple[float, float], mark: float | None) -> None:
    left, top = at
    width = WIDE / _ACROSS - _LEFT - _RIGHT
    low, high = (min(curve.positions), max(curve.positions)) if curve.positions else (0.0, 1.0)
    pad = (0.07 * (high - low) or 0.5) if curve.positions else 0.0
    below = Axis((low - pad, high + pad))

    def x(position: float) -> float:
        return left + width * below.share(position)

    def y(value: float) -> float:
        return top + _HEIGHT * (1 - axis.share(axis.within(value)))

    drawing.text(left, top - 13, shorten(curve.name, int((width + _RIGHT) / _BOLD)), bold=True)
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        drawing.line([(left, y(tick)), (left + width, y(tick))], "grid")
        drawing.text(left - 6, y(tick), label, fill="faint", size=10, anchor="end")
    if mark is not None:
        drawing.line([(left, y(mark)), (left + width, y(mark))], "faint", 1.4, dashes="3 2")
    if curve.empty:
        room = int(width / 6.2)
        drawing.text(left + 6, top + 0.3 * _HEIGHT, shorten(curve.empty, room), fill="faint", size=11)
        return
    ticks = plain_axis(*below.limits)
    inside = [
        (tick, label) for tick, label in zip(ticks.ticks, ticks.labels, strict=True) if below.within(tick) == tick
    ]
    for position, name in zip(curve.positions, curve.names, strict=True) if curve.names else inside:
        drawing.text(x(position), top + _HEIGHT + 12, name, fill="faint", size=10, anchor="middle")
    known = [
        (x(position), dot) for position, dot in zip(curve.positions, curve.dots, strict=True) if dot.value is not None
    ]
    _draw_dots(drawing, curve, known, y)


def _draw_dots(
    drawing: SvgCanvas, curve: Curve, known: Sequence[tuple[float, Dot]], y: Callable[[float], float]
) -> None:
    """The line of a curve, and its intervals: bars with marks, or one area."""
    ends = [(at_x, y(dot.low), y(dot.high)) for at_x, dot in known if dot.low is not None and dot.high is not None]
    line = [(at_x, y(dot.value or 0.0)) for at_x, dot in known]
    if curve.band:
        upper, lower = [(at_x, high) for at_x, _, high in ends], [(at_x, low) for at_x, low, _ in reversed(ends)]
        if ends:
            drawing.area([*upper, *lower], "s0", 0.2)
        drawing.line(line, "s0", 2)
        return
    drawing.line(line, "s0")
    bars = {at_x: (low, high) for at_x, low, high in ends}
    for at_x, at_y in line:
        if at_x in bars:
            drawing.line([(at_x, bars[at_x][0]), (at_x, bars[at_x][1])], "s0", 2)
        drawing.marker(at_x, at_y, 0, 7)


MAX_ON_PODIUM = 6
"""The maximum number of systems with distinguishable marks in a podium plot."""
_FRAME, _PLOT, _BARS, _BETWEEN = 62, 300, 84, 30
_MAX_LINES = 80  # groups whose marks are joined by lines


def draw_podium(
    key: str,
    title: str,
    names: Sequence[str],
    values: Sequence[Sequence[float]],
    ranks: Sequence[Sequence[int]],
    axis: Axis,
) -> str:
    """A podium plot of up to six systems; `values[group][system]` and `ranks[group][system]` (1 is best, ties share a
    rank).

    There is one field per rank, with a mark at the value of each system that has this rank in a group. Thin lines join
    the marks of a group. Below are the numbers of groups by system and rank."""
    n = len(names)
    legend = [(number, shorten(name, 40)) for number, name in enumerate(names)]
    top = 10 + legend_height(legend, _WIDTH - 14)
    bottom = top + _PLOT
    cell = (_WIDTH - _FRAME - 8) / (n * n)
    drawing = SvgCanvas(_WIDTH, bottom + _BETWEEN + _BARS + 22)
    drawing.legend(14, 9, legend, _WIDTH - 14)

    def spot(system: int, rank: int, value: float) -> tuple[float, float]:
        return _FRAME + cell * ((rank - 1) * n + system + 0.5), bottom - _PLOT * axis.share(value)

    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        y = bottom - _PLOT * axis.share(tick)
        drawing.line([(_FRAME, y), (_WIDTH - 8, y)], "grid")
        drawing.text(_FRAME - 6, y, label, size=10, fill="faint", anchor="end")
    for rank in range(n + 1):
        drawing.rule(_FRAME + cell * rank * n, top, bottom, width=1.5)
    groups = [
        [spot(system, rank, value) for system, (rank, value) in enumerate(zip(own, line, strict=True))]
        for own, line in zip(ranks, values, strict=True)
    ]
    for points in groups[:_MAX_LINES]:
        drawing.line(sorted(points), "faint", 0.7, opacity=0.35)
    for system in range(n):
        for points in groups:
            drawing.marker(*points[system], system, 6.5)
    _draw_counts(drawing, ranks, n, (cell, bottom + _BETWEEN))
    description = []
    for system, name in enumerate(names):
        first, second, third = (sum(own[system] == rank for own in ranks) for rank in (1, 2, 3))
        description.append((name, [f"first on {first}", f"second on {second}", f"third on {third}"]))
    return drawing.svg(key, title, [(count_of(len(values), "group"), []), *description])


def _draw_counts(drawing: SvgCanvas, ranks: Sequence[Sequence[int]], n: int, at: tuple[float, float]) -> None:
    cell, top = at
    counts = [[sum(own[system] == rank for own in ranks) for system in range(n)] for rank in range(1, n + 1)]
    highest = max(max(row) for row in counts) or 1
    base = top + _BARS
    drawing.text(_FRAME - 6, base - 0.4 * _BARS, "groups", size=10, fill="faint", anchor="end")
    for rank, row in enumerate(counts):
        for system, count in enumerate(row):
            if count:
                x, height = _FRAME + cell * (rank * n + system), _BARS * count / highest / 1.25
                drawing.rect(x + 0.1 * cell, base - height, 0.8 * cell, height, series_colour(system))
                drawing.text(x + cell / 2, base - height - 7, str(count), size=9, anchor="middle")
        left = _FRAME + cell * rank * n
        drawing.line([(left + 0.1 * cell, base), (left + cell * (n - 0.1), base)], "ink")
        drawing.text(left + cell * n / 2, base + 11, f"rank {rank + 1}", size=11, fill="faint", anchor="middle")


_POSITION, _COLUMNS, _COLUMNS_HEAD = 56, 110, 24


def draw_columns(key: str, title: str, names: Sequence[str], counts: Sequence[int], even: float) -> str:
    """A column chart with numbers; a dashed line shows `even`, the count expected for equal frequencies."""
    width = _POSITION * len(names)
    highest = max([*counts, even, 1])
    base = _COLUMNS_HEAD + _COLUMNS
    drawing = SvgCanvas(width + 98, base + 24)
    for number, (name, count) in enumerate(zip(names, counts, strict=True)):
        x, height = 8 + _POSITION * number, _COLUMNS * count / highest
        drawing.rect(x + 0.15 * _POSITION, base - height, 0.7 * _POSITION, height, "s0")
        inside = count > 0.2 * highest
        y = base - height + (10 if inside else -9)
        drawing.text(x + _POSITION / 2, y, str(count), fill="paper" if inside else "ink", anchor="middle")
        drawing.text(x + _POSITION / 2, base + 11, name, fill="faint", anchor="middle")
    y = base - _COLUMNS * even / highest
    drawing.line([(8, y), (8 + width, y)], "faint", 1.2, dashes="5 4")
    drawing.text(width + 13, y, f"even: {even:.1f}", fill="faint", size=10)
    description = [(name, [str(count)]) for name, count in zip(names, counts, strict=True)]
    return drawing.svg(key, title, description, f"Evenly spread: {even:.1f}.")

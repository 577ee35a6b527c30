"""How values spread: boxes, every group's mark, and curves of one number over another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import shorten
from proctor.reports.figures.axes import CHARACTER, LABEL, Axis, draw_labels, draw_ticks, label_width, plain_axis
from proctor.reports.figures.canvas import FAINT, GRID, INK, MARKERS, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.figures.intervals import DOWN, WIDTH, Dot, row_axes, rows_height

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOXES_WIDTH, _BOXES_ACROSS = 960, 3
_ROW, _BOXES_HEAD, _BOXES_FOOT, _BOXES_GAP = 20, 28, 28, 40


@dataclass(frozen=True)
class Box:
    """Quartiles, the ends of the whiskers, and the values beyond them."""

    low: float
    q1: float
    median: float
    q3: float
    high: float
    beyond: Sequence[float] = ()


@dataclass(frozen=True)
class BoxPanel:
    """One part of the questions: its name, a box for each row (None where there is nothing), and the value that guessing
    at random reaches, where it is known: a broken line."""

    name: str
    boxes: Sequence[Box | None]
    chance: float | None = None


def draw_box_rows(
    key: str,
    title: str,
    rows: Sequence[str],
    boxes: Sequence[Box | None],
    texts: Sequence[str],
    axis: Axis,
    head: str,
    chance: float | None = None,
) -> str:
    """One narrow panel: a row's name and text stand above its box; a thick line is the median, a broken one beside
    each box is `chance`."""
    with drawing(WIDTH, rows_height(len(rows))) as figure:
        axes = row_axes(figure, axis, rows, texts, head=head)
        for row, box in enumerate(boxes):
            _draw_chance(axes, chance, row + DOWN, 0.24)
            _draw_box(axes, row + DOWN, box, axis, 0.34)
        return svg(figure, key=key, title=title, description=_boxes_described(rows, [BoxPanel(head, boxes)]))


def draw_boxes(key: str, title: str, rows: Sequence[str], panels: Sequence[BoxPanel], axis: Axis) -> str:
    """Panels side by side, three across; a thick line is the median."""
    names = [shorten(row, LABEL) for row in rows]
    left = label_width(names)
    across = min(_BOXES_ACROSS, len(panels))
    width = (_BOXES_WIDTH - left - _BOXES_GAP * across) / across
    line = _BOXES_HEAD + _ROW * len(rows) + _BOXES_FOOT
    with drawing(_BOXES_WIDTH, -(-len(panels) // across) * line) as figure:
        for place, panel in enumerate(panels):
            down, right = divmod(place, across)
            box = (left + right * (width + _BOXES_GAP), down * line + _BOXES_HEAD, width, _ROW * len(rows))
            axes = bare_axes(figure, box)
            axes.set_xlim(*axis.limits)
            axes.set_ylim(len(rows) - 0.5, -0.5)
            draw_ticks(axes, axis, len(rows))
            put(axes, axis.limits[0], -0.5 - 13 / _ROW, shorten(panel.name, int(width / 6.6)), fontweight="bold")
            _draw_chance(axes, panel.chance, (len(rows) - 1) / 2, len(rows) / 2)
            for row, one in enumerate(panel.boxes):
                _draw_box(axes, row, one, axis, 0.56)
            if right == 0:
                draw_labels(axes, names, axis)
        return svg(figure, key=key, title=title, description=_boxes_described(rows, panels))


def _draw_chance(axes: Axes, chance: float | None, middle: float, half: float) -> None:
    if chance is not None:
        axes.plot([chance] * 2, [middle - half, middle + half], color=FAINT, linewidth=1, linestyle=(0, (4, 3)))


def _draw_box(axes: Axes, row: float, box: Box | None, axis: Axis, height: float) -> None:
    if box is None:
        put(axes, axis.limits[0], row, " no value", color=FAINT, fontsize=10)
        return
    axes.plot([box.low, box.high], [row, row], color=SERIES[0], linewidth=1.2)
    for end in (box.low, box.high):
        axes.plot([end, end], [row - 0.35 * height, row + 0.35 * height], color=SERIES[0], linewidth=1.2)
    axes.barh(row, box.q3 - box.q1, left=box.q1, height=height, facecolor=SERIES[4], edgecolor=SERIES[0], linewidth=1.2)
    axes.plot([box.median] * 2, [row - 0.62 * height, row + 0.62 * height], color=SERIES[0], linewidth=3.5)
    axes.plot(
        box.beyond,
        [row] * len(box.beyond),
        "o",
        markerfacecolor=PAPER,
        markeredgecolor=SERIES[0],
        markersize=4,
        clip_on=False,
    )


def _boxes_described(rows: Sequence[str], panels: Sequence[BoxPanel]) -> str:
    parts = []
    for panel in panels[:8]:
        shown = [
            f"{shorten(row, 40)} median {box.median:.3g}, quartiles {box.q1:.3g} and {box.q3:.3g}"
            for row, box in list(zip(rows, panel.boxes, strict=True))[:12]
            if box is not None
        ]
        parts.append(f"{shorten(panel.name, 40)}: {', '.join(shown)}")
    return "; ".join(parts) + ". All numbers stand below."


MOST_ON_PODIUM = 6
"""The most systems that a podium plot can show so that marks can be told apart."""
_PODIUM_WIDTH, _PODIUM_LEFT, _PLOT, _BARS, _PODIUM_GAP, _LINE, _PODIUM_FOOT = 760, 62, 300, 84, 30, 20, 22
_MOST_LINES = 80  # groups whose marks are joined; more would be a grey field


@dataclass(frozen=True)
class Podium:
    """At most six systems; `values[group][system]` and `places[group][system]` (1 best, equal ones share it)."""

    names: Sequence[str]
    values: Sequence[Sequence[float]]
    places: Sequence[Sequence[int]]


def draw_podium(key: str, title: str, podium: Podium, axis: Axis) -> str:
    """A field a place; in it a mark for each group on which a system had that place, at its value; a thin line joins
    the marks of a group. Below, how many groups gave each system each place."""
    names = [shorten(name, 40) for name in podium.names]
    n = len(names)
    rows = _legend_rows(names)
    head = 10 + _LINE * len(rows)
    with drawing(_PODIUM_WIDTH, head + _PLOT + _PODIUM_GAP + _BARS + _PODIUM_FOOT) as figure:
        upper = bare_axes(figure, (_PODIUM_LEFT, head, _PODIUM_WIDTH - _PODIUM_LEFT - 8, _PLOT))
        upper.set_xlim(-0.5, n * n - 0.5)
        upper.set_ylim(*axis.limits)
        _draw_frame(upper, n, axis)
        _draw_marks(upper, podium, n)
        for line, row in enumerate(rows):
            for at, number in row:
                where = (at - _PODIUM_LEFT) / (_PODIUM_WIDTH - _PODIUM_LEFT - 8) * n * n - 0.5
                up = axis.limits[1] + (head - 8 - _LINE * line) / _PLOT * (axis.limits[1] - axis.limits[0])
                upper.plot([where], [up], MARKERS[number], color=SERIES[number], markersize=8, clip_on=False)
                put(upper, where + 0.013 * n * n, up, names[number])
        lower = bare_axes(figure, (_PODIUM_LEFT, head + _PLOT + _PODIUM_GAP, _PODIUM_WIDTH - _PODIUM_LEFT - 8, _BARS))
        _draw_counts(lower, podium, n)
        return svg(figure, key=key, title=title, description=_podium_described(podium))


def _legend_rows(names: Sequence[str]) -> list[list[tuple[float, int]]]:
    rows: list[list[tuple[float, int]]] = [[]]
    x = 14.0
    for number, name in enumerate(names):
        wide = 30 + CHARACTER * len(name)
        if rows[-1] and x + wide > _PODIUM_WIDTH:
            rows.append([])
            x = 14.0
        rows[-1].append((x, number))
        x += wide
    return rows


def _draw_frame(axes: Axes, n: int, axis: Axis) -> None:
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        axes.plot([-0.5, n * n - 0.5], [tick, tick], color=GRID, linewidth=1, zorder=0)
        put(axes, -0.5 - 0.008 * n * n, tick, label, ha="right", fontsize=10, color=FAINT)
    for place in range(n + 1):
        axes.plot([place * n - 0.5] * 2, axis.limits, color=GRID, linewidth=1.5, zorder=0)


def _draw_marks(axes: Axes, podium: Podium, n: int) -> None:
    spots: list[list[tuple[float, float]]] = [[] for _ in range(n)]
    for number, (values, places) in enumerate(zip(podium.values, podium.places, strict=True)):
        path = sorted(((place - 1) * n + system, values[system]) for system, place in enumerate(places))
        if number < _MOST_LINES:
            axes.plot(
                [x for x, _ in path],
                [y for _, y in path],
                color=FAINT,
                linewidth=0.7,
                alpha=0.35,
                zorder=1,
                clip_on=False,
            )
        for system, place in enumerate(places):
            spots[system].append(((place - 1) * n + system, values[system]))
    for system, points in enumerate(spots):
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            MARKERS[system],
            color=SERIES[system],
            markersize=6.5,
            markeredgecolor=PAPER,
            markeredgewidth=0.6,
            clip_on=False,
        )


def _draw_counts(axes: Axes, podium: Podium, n: int) -> None:
    counts = [
        [sum(places[system] == place + 1 for places in podium.places) for system in range(n)] for place in range(n)
    ]
    most = max(max(row) for row in counts) or 1
    axes.set_xlim(-0.5, n * n - 0.5)
    axes.set_ylim(0, 1.25 * most)
    put(axes, -0.5 - 0.008 * n * n, 0.5 * most, "groups", ha="right", fontsize=10, color=FAINT)
    for place, row in enumerate(counts):
        for system, count in enumerate(row):
            if count:
                x = place * n + system
                axes.bar(x, count, width=0.8, facecolor=SERIES[system], linewidth=0)
                put(axes, x, count + 0.1 * most, str(count), ha="center", fontsize=9)
        axes.plot([place * n - 0.4, (place + 1) * n - 0.6], [0, 0], color=INK, linewidth=1)
        name = f"place {place + 1}"
        put(axes, place * n + (n - 1) / 2, -0.14 * most, name, ha="center", fontsize=11, color=FAINT)


def _podium_described(podium: Podium) -> str:
    lines = []
    for system, name in enumerate(podium.names):
        counts = [sum(places[system] == place for places in podium.places) for place in (1, 2, 3)]
        lines.append(f"{shorten(name, 40)}: first on {counts[0]}, second on {counts[1]}, third on {counts[2]}")
    return f"{len(podium.values)} groups. " + "; ".join(lines) + ". All numbers stand below."


_CURVES_WIDTH, _CURVES_ACROSS = 960, 3
_HEIGHT, _CURVES_HEAD, _CURVES_FOOT, _CURVES_LEFT, _CURVES_GAP = 150, 30, 44, 46, 18
_BOLD = 7.8  # pixels of an average bold letter


@dataclass(frozen=True)
class Curve:
    """One panel: for each point its place on the lower axis and its dot on the left one. `names` stand at the
    points where places are no numbers; `empty` says why there are no points."""

    name: str
    places: Sequence[float]
    dots: Sequence[Dot]
    names: Sequence[str] = ()
    empty: str = ""


def draw_curves(
    key: str, title: str, curves: Sequence[Curve], axis: Axis, labels: tuple[str, str], *, mark: float | None = None
) -> str:
    """Three panels across. All share the left axis; each has its own lower axis. `labels` name the lower axis
    and the left one, `mark` is a broken line across every panel."""
    across = min(_CURVES_ACROSS, max(1, len(curves)))
    lines = -(-len(curves) // across)
    width = _CURVES_WIDTH / _CURVES_ACROSS
    line = _CURVES_HEAD + _HEIGHT + _CURVES_FOOT
    with drawing(width * across, 22 + lines * line) as figure:
        for place, curve in enumerate(curves):
            down, right = divmod(place, across)
            box = (
                right * width + _CURVES_LEFT,
                22 + down * line + _CURVES_HEAD,
                width - _CURVES_LEFT - _CURVES_GAP,
                _HEIGHT,
            )
            axes = bare_axes(figure, box)
            axes.set_ylim(*axis.limits)
            _draw_panel(axes, curve, axis, mark, int((width - _CURVES_LEFT) / _BOLD))
            if place == 0:
                _draw_legend(axes, axis, f"Upwards: {labels[1]}. To the right: {labels[0]}.")
        return svg(figure, key=key, title=title, description=_curves_described(curves, labels))


def _draw_panel(axes: Axes, curve: Curve, axis: Axis, mark: float | None, room: int) -> None:
    low, high = _reach(curve)
    axes.set_xlim(low, high)
    pixel = (high - low) / axes.get_window_extent().width
    rise = (axis.limits[1] - axis.limits[0]) / _HEIGHT
    put(axes, low, axis.limits[1] + 13 * rise, shorten(curve.name, room), fontweight="bold")
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        axes.plot([low, high], [tick, tick], color=GRID, linewidth=1, zorder=0)
        put(axes, low - 6 * pixel, tick, label, color=FAINT, fontsize=10, ha="right")
    if mark is not None:
        axes.plot([low, high], [mark, mark], color=FAINT, linewidth=1.4, linestyle=(0, (3, 2)), zorder=1)
    if curve.empty:
        middle = (axis.limits[0] + axis.limits[1]) / 2
        put(axes, low + 6 * pixel, middle, shorten(curve.empty, room), color=FAINT, fontsize=11)
        return
    for place, name in _named(curve, low, high):
        put(axes, place, axis.limits[0] - 12 * rise, name, color=FAINT, fontsize=10, ha="center")
    _draw_points(axes, curve, axis)


def _draw_legend(axes: Axes, axis: Axis, said: str) -> None:
    low, high = axes.get_xlim()
    pixel = (high - low) / axes.get_window_extent().width
    rise = (axis.limits[1] - axis.limits[0]) / _HEIGHT
    start = low - (_CURVES_LEFT - 8) * pixel
    put(axes, start, axis.limits[1] + (_CURVES_HEAD + 10) * rise, said, color=FAINT, fontsize=11)


def _draw_points(axes: Axes, curve: Curve, axis: Axis) -> None:
    low, high = axis.limits
    known = [
        (place, dot, dot.value) for place, dot in zip(curve.places, curve.dots, strict=True) if dot.value is not None
    ]
    axes.plot([place for place, *_ in known], [at for *_, at in known], color=SERIES[0], linewidth=1)
    for place, dot, at in known:
        if dot.low is not None and dot.high is not None:
            ends = [min(max(one, low), high) for one in (dot.low, dot.high)]
            axes.plot([place, place], ends, color=SERIES[0], linewidth=2, alpha=0.55)
        style = {"color": SERIES[0], "markersize": 7, "markeredgecolor": PAPER, "markeredgewidth": 0.8}
        axes.plot([place], [min(max(at, low), high)], "o", clip_on=False, **style)  # type: ignore[arg-type]


def _reach(curve: Curve) -> tuple[float, float]:
    if not curve.places:
        return 0.0, 1.0
    low, high = min(curve.places), max(curve.places)
    pad = 0.07 * (high - low) or 0.5
    return low - pad, high + pad


def _named(curve: Curve, low: float, high: float) -> list[tuple[float, str]]:
    if curve.names:
        return list(zip(curve.places, curve.names, strict=True))
    ticks = plain_axis(low, high, lines=4)
    return [(tick, label) for tick, label in zip(ticks.ticks, ticks.labels, strict=True) if low <= tick <= high]


def _curves_described(curves: Sequence[Curve], labels: tuple[str, str]) -> str:
    parts = []
    for curve in curves[:12]:
        names = curve.names or [f"{place:.3g}" for place in curve.places]
        shown = [
            f"{name}: {dot.value:.2f}"
            for name, dot in list(zip(names, curve.dots, strict=True))[:10]
            if dot.value is not None
        ]
        parts.append(f"{shorten(curve.name, 40)}: {', '.join(shown) or curve.empty}")
    return f"{labels[1]} by {labels[0]}. " + "; ".join(parts) + ". All numbers stand below."

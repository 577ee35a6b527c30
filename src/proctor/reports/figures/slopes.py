"""One row a system, one mark a condition: who keeps a score without seeing, and who loses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import Metric
from proctor.reports.figures.axes import CHARACTER, LABEL, Axis, draw_labels, draw_ticks, label_width
from proctor.reports.figures.canvas import FAINT, GRID, MARKERS, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.figures.dots import Dot
from proctor.reports.words import shorten, value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Slopes", "draw_slopes"]

_WIDTH, _STEP, _HEAD, _FOOT = 960, 13, 40, 30


@dataclass(frozen=True)
class Slopes:
    """Rows × series: `dots[row][series]`; `mark` is a line across with its name (chance, no difference).
    `looks` gives each series its colour and marker by number, so that it has the same in two drawings."""

    rows: Sequence[str]
    series: Sequence[str]
    dots: Sequence[Sequence[Dot]]
    looks: Sequence[int]
    mark: tuple[float, str] | None = None


def draw_slopes(key: str, title: str, slopes: Slopes, axis: Axis, metric: Metric) -> str:
    """The series below each other within a row, each with colour and marker of its own, and its name
    above; a thin line joins the marks of a row."""
    names = [shorten(row, LABEL) for row in slopes.rows]
    left = label_width(names)
    row = _STEP * len(slopes.series) + 12
    height = row * len(names)
    with drawing(_WIDTH, _HEAD + height + _FOOT) as figure:
        axes = bare_axes(figure, (left, _HEAD, _WIDTH - left - 30, height))
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
            _draw_row(axes, place, dots, slopes.looks, _STEP / row)
        draw_labels(axes, names, axis)
        _draw_legend(axes, axis, slopes, row)
        return svg(figure, key=key, title=title, description=_described(slopes, metric))


def _draw_row(axes: Axes, place: int, dots: Sequence[Dot], looks: Sequence[int], step: float) -> None:
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


def _draw_legend(axes: Axes, axis: Axis, slopes: Slopes, row: float) -> None:
    low, high = axis.limits
    pixel = (high - low) / axes.get_window_extent().width
    x = low
    for number, name in zip(slopes.looks, slopes.series, strict=True):
        shown = shorten(name, 24)
        style = {"color": SERIES[number % len(SERIES)], "markersize": 7.5, "markeredgewidth": 0}
        axes.plot([x + 5 * pixel], [-0.5 - 23 / row], MARKERS[number % len(MARKERS)], clip_on=False, **style)  # type: ignore[arg-type]
        put(axes, x + 14 * pixel, -0.5 - 23 / row, shown)
        x += (30 + CHARACTER * len(shown)) * pixel


def _described(slopes: Slopes, metric: Metric) -> str:
    lines = []
    for row, dots in list(zip(slopes.rows, slopes.dots, strict=True))[:20]:
        shown = [
            f"{shorten(name, 24)} {value(metric, dot.value)}"
            for name, dot in zip(slopes.series, dots, strict=True)
        ]
        lines.append(f"{shorten(row, 40)}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand in the table below."

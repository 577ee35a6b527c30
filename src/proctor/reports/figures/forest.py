"""A forest: a row a comparison, its value with the interval, and the numbers above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import Axis
from proctor.reports.figures.canvas import INK, PAPER, SERIES, drawing, stamp, svg
from proctor.reports.figures.dots import Dot
from proctor.reports.figures.rows import DOWN, WIDTH, row_axes, rows_height
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Forest", "draw_forest"]


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
            _draw_row(axes, row + DOWN, dot, axis, forest.mark[0])
        return svg(figure, key=key, title=title, description=_described(forest))


def _draw_row(axes: Axes, row: float, dot: Dot, axis: Axis, mark: float) -> None:
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


def _described(forest: Forest) -> str:
    lines = [
        f"{shorten(row, 60)}: {text}" for row, text in list(zip(forest.rows, forest.texts, strict=True))[:60]
    ]
    return f"{forest.head}. " + "; ".join(lines) + ". All numbers stand below."

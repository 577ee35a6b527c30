"""Narrow drawings that a phone shows whole: each row's name and numbers stand above its mark, not beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import CHARACTER, Axis
from proctor.reports.figures.canvas import FAINT, GRID, bare_axes, put
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["DOWN", "ROW", "WIDTH", "row_axes", "rows_height"]

WIDTH, ROW = 440, 38
DOWN = 0.07
"""How far below the middle of its row a mark stands, in rows."""
_SIDE, _HEAD, _FOOT = 26, 40, 24
_DIGIT = 6.3  # pixels of a letter of the numbers
_BAND = (-0.12, 0.26)


def rows_height(count: int) -> float:
    """Pixels that so many rows need, with head and foot."""
    return _HEAD + ROW * count + _FOOT


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
    axes = bare_axes(figure, (_SIDE, _HEAD, WIDTH - 2 * _SIDE, ROW * len(names)))
    low, high = axis.limits
    pixel = (high - low) / (WIDTH - 2 * _SIDE)
    axes.set_xlim(low, high)
    axes.set_ylim(len(names) - 0.5, -0.5)
    start, end = low - (_SIDE - 6) * pixel, high + (_SIDE - 6) * pixel
    put(axes, end, -0.5 - 30 / ROW, head, color=FAINT, fontsize=11, ha="right")
    longest = max((len(text) for text in texts), default=0)
    room = int((WIDTH - 18 - _DIGIT * longest) / CHARACTER)
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

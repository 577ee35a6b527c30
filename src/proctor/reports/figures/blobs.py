"""Blobs: the chance of every place for every system, as areas; a ring is the place that it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import LABEL, label_width
from proctor.reports.figures.canvas import FAINT, GRID, INK, SERIES, bare_axes, drawing, put, svg
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Blobs", "draw_blobs"]

_WIDTH, _ROW, _FOOT = 960, 22, 32
_CELL = 44  # the most pixels of a place, so that three systems do not fill a page
_SEEN = 0.004  # a chance below this would be a speck


@dataclass(frozen=True)
class Blobs:
    """Rows × places of chances (each row adds up to 1), and each row's place, from 1."""

    rows: Sequence[str]
    chances: Sequence[Sequence[float]]
    places: Sequence[int]


def draw_blobs(key: str, title: str, blobs: Blobs) -> str:
    """The area of a blob is the chance; a whole one fills its cell."""
    names = [shorten(row, LABEL) for row in blobs.rows]
    left = label_width(names)
    n_places = max((len(row) for row in blobs.chances), default=0) or 1
    cell = min(_CELL, (_WIDTH - left - 10) / n_places)
    width = cell * n_places
    with drawing(max(left + width + 10, 320), _ROW * len(names) + _FOOT) as figure:
        axes = bare_axes(figure, (left, 0, width, _ROW * len(names)))
        axes.set_xlim(0.5, n_places + 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        _draw_places(axes, n_places, len(names), cell)
        for row, (name, chances) in enumerate(zip(names, blobs.chances, strict=True)):
            put(axes, 0.5 - 10 / cell, row, name, ha="right")
            _draw_row(axes, row, chances, blobs.places[row], min(cell, _ROW) - 2)
        return svg(figure, key=key, title=title, description=_described(blobs))


def _draw_places(axes: Axes, n_places: int, n_rows: int, cell: float) -> None:
    step = 1 if cell >= 18 else 5
    for place in range(1, n_places + 1):
        axes.plot([place, place], [-0.5, n_rows - 0.5], color=GRID, linewidth=1, zorder=0)
        if place == 1 or place % step == 0:
            put(axes, place, n_rows - 0.5 + 14 / _ROW, str(place), color=FAINT, fontsize=10, ha="center")
    put(axes, 0.5 - 10 / cell, n_rows - 0.5 + 14 / _ROW, "place", color=FAINT, fontsize=10, ha="right")


def _draw_row(axes: Axes, row: int, chances: Sequence[float], own: int, size: float) -> None:
    for place, chance in enumerate(chances, start=1):
        if chance >= _SEEN:
            axes.plot(
                [place],
                [row],
                "o",
                color=SERIES[0],
                markersize=size * chance**0.5,
                markeredgewidth=0,
                clip_on=False,
            )
    axes.plot([own], [row], "o", markerfacecolor="none", markeredgecolor=INK, markersize=size, clip_on=False)


def _described(blobs: Blobs) -> str:
    lines = []
    for row, chances, own in list(zip(blobs.rows, blobs.chances, blobs.places, strict=True))[:40]:
        shown = [
            f"place {place} in {100 * chance:.0f} %"
            for place, chance in enumerate(chances, start=1)
            if chance >= 0.005
        ]
        lines.append(f"{shorten(row, 60)}, place {own}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand in the table below."

"""Places: under every rule, and over samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import shorten
from proctor.reports.figures.axes import LABEL, label_width
from proctor.reports.figures.canvas import DARK, FAINT, GRID, INK, PAPER, SERIES, bare_axes, drawing, put, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RANKLINES_WIDTH, _RANKLINES_ROW, _HEAD, _RANKLINES_FOOT = 760, 23, 34, 8
_DASHES = ("solid", (0, (6, 2)), (0, (2, 2)))
_LIGHT = {SERIES[3], SERIES[4], SERIES[5], SERIES[7]}


@dataclass(frozen=True)
class RankLines:
    """Rows × columns of places, from 1; columns are the rankings. Rows stand in the order of the first."""

    rows: Sequence[str]
    columns: Sequence[str]
    places: Sequence[Sequence[int]]


def draw_rank_lines(key: str, title: str, lines: RankLines) -> str:
    """Who shares a place stands below each other in the order of the rows, so that no line hides another; the
    number in a mark is the place. The first eight have colours and dashes, all have their name at both ends."""
    names = [shorten(row, LABEL) for row in lines.rows]
    side = label_width(names)
    if 2 * side > 0.62 * _RANKLINES_WIDTH:
        names = [shorten(row, 20) for row in lines.rows]
        side = label_width(names)
    n, width = len(names), _RANKLINES_WIDTH - 2 * side
    slots = [_slots([row[column] for row in lines.places]) for column in range(len(lines.columns))]
    with drawing(_RANKLINES_WIDTH, _HEAD + _RANKLINES_ROW * n + _RANKLINES_FOOT) as figure:
        axes = bare_axes(figure, (side, _HEAD, width, _RANKLINES_ROW * n))
        last = len(lines.columns) - 1
        pad = 12 * max(last, 1) / width
        axes.set_xlim(-pad, last + pad)
        axes.set_ylim(n - 0.5, -0.5)
        for column, name in enumerate(lines.columns):
            put(axes, column, -0.5 - 16 / _RANKLINES_ROW, name, ha="center", fontsize=11, color=FAINT)
        for row, name in enumerate(names):
            colour = SERIES[row] if row < len(SERIES) else SERIES[7]
            style = _DASHES[row % len(_DASHES)]
            path = [slots[column][row] for column in range(last + 1)]
            axes.plot(range(last + 1), path, color=colour, linewidth=2, linestyle=style, alpha=0.85, zorder=n - row)
            put(axes, -2 * pad, path[0], name, ha="right")
            put(axes, last + 2 * pad, path[-1], name)
            axes.plot(
                range(last + 1),
                path,
                "o",
                color=colour,
                markersize=16,
                markeredgecolor=PAPER,
                markeredgewidth=1,
                zorder=2 * n,
            )
            for column, at in enumerate(path):
                ink = DARK if colour in _LIGHT else PAPER
                text = str(lines.places[row][column])
                put(axes, column, at, text, ha="center", fontsize=9, color=ink, zorder=3 * n)
        return svg(figure, key=key, title=title, description=_ranklines_described(lines))


def _slots(places: Sequence[int]) -> list[int]:
    order = sorted(range(len(places)), key=lambda row: (places[row], row))
    slot = {row: number for number, row in enumerate(order)}
    return [slot[row] for row in range(len(places))]


def _ranklines_described(lines: RankLines) -> str:
    rows = []
    for name, places in list(zip(lines.rows, lines.places, strict=True))[:30]:
        shown = [f"{column} {place}" for column, place in zip(lines.columns, places, strict=True)]
        rows.append(f"{shorten(name, 40)}: {', '.join(shown)}")
    return "; ".join(rows) + ". All numbers stand below."


_BLOBS_WIDTH, _BLOBS_ROW, _BLOBS_FOOT = 960, 22, 32
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
    cell = min(_CELL, (_BLOBS_WIDTH - left - 10) / n_places)
    width = cell * n_places
    with drawing(max(left + width + 10, 320), _BLOBS_ROW * len(names) + _BLOBS_FOOT) as figure:
        axes = bare_axes(figure, (left, 0, width, _BLOBS_ROW * len(names)))
        axes.set_xlim(0.5, n_places + 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        _draw_places(axes, n_places, len(names), cell)
        for row, (name, chances) in enumerate(zip(names, blobs.chances, strict=True)):
            put(axes, 0.5 - 10 / cell, row, name, ha="right")
            _draw_row(axes, row, chances, blobs.places[row], min(cell, _BLOBS_ROW) - 2)
        return svg(figure, key=key, title=title, description=_blobs_described(blobs))


def _draw_places(axes: Axes, n_places: int, n_rows: int, cell: float) -> None:
    step = 1 if cell >= 18 else 5
    for place in range(1, n_places + 1):
        axes.plot([place, place], [-0.5, n_rows - 0.5], color=GRID, linewidth=1, zorder=0)
        if place == 1 or place % step == 0:
            put(axes, place, n_rows - 0.5 + 14 / _BLOBS_ROW, str(place), color=FAINT, fontsize=10, ha="center")
    put(axes, 0.5 - 10 / cell, n_rows - 0.5 + 14 / _BLOBS_ROW, "place", color=FAINT, fontsize=10, ha="right")


def _draw_row(axes: Axes, row: int, chances: Sequence[float], own: int, size: float) -> None:
    for place, chance in enumerate(chances, start=1):
        if chance >= _SEEN:
            axes.plot(
                [place], [row], "o", color=SERIES[0], markersize=size * chance**0.5, markeredgewidth=0, clip_on=False
            )
    axes.plot([own], [row], "o", markerfacecolor="none", markeredgecolor=INK, markersize=size, clip_on=False)


def _blobs_described(blobs: Blobs) -> str:
    lines = []
    for row, chances, own in list(zip(blobs.rows, blobs.chances, blobs.places, strict=True))[:40]:
        shown = [
            f"place {place} in {100 * chance:.0f} %" for place, chance in enumerate(chances, start=1) if chance >= 0.005
        ]
        lines.append(f"{shorten(row, 60)}, place {own}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand in the table below."

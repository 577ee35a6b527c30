"""Lines of places: one line a system over several rankings; every mark carries its place as a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.reports.figures.axes import LABEL, label_width
from proctor.reports.figures.canvas import DARK, FAINT, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.words import shorten

__all__ = ["RankLines", "draw_rank_lines"]

_WIDTH, _ROW, _HEAD, _FOOT = 760, 23, 34, 8
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
    if 2 * side > 0.62 * _WIDTH:
        names = [shorten(row, 20) for row in lines.rows]
        side = label_width(names)
    n, width = len(names), _WIDTH - 2 * side
    slots = [_slots([row[column] for row in lines.places]) for column in range(len(lines.columns))]
    with drawing(_WIDTH, _HEAD + _ROW * n + _FOOT) as figure:
        axes = bare_axes(figure, (side, _HEAD, width, _ROW * n))
        last = len(lines.columns) - 1
        pad = 12 * max(last, 1) / width
        axes.set_xlim(-pad, last + pad)
        axes.set_ylim(n - 0.5, -0.5)
        for column, name in enumerate(lines.columns):
            put(axes, column, -0.5 - 16 / _ROW, name, ha="center", fontsize=11, color=FAINT)
        for row, name in enumerate(names):
            colour = SERIES[row] if row < len(SERIES) else SERIES[7]
            style = _DASHES[row % len(_DASHES)]
            path = [slots[column][row] for column in range(last + 1)]
            axes.plot(
                range(last + 1), path, color=colour, linewidth=2, linestyle=style, alpha=0.85, zorder=n - row
            )
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
        return svg(figure, key=key, title=title, description=_described(lines))


def _slots(places: Sequence[int]) -> list[int]:
    order = sorted(range(len(places)), key=lambda row: (places[row], row))
    slot = {row: number for number, row in enumerate(order)}
    return [slot[row] for row in range(len(places))]


def _described(lines: RankLines) -> str:
    rows = []
    for name, places in list(zip(lines.rows, lines.places, strict=True))[:30]:
        shown = [f"{column} {place}" for column, place in zip(lines.columns, places, strict=True)]
        rows.append(f"{shorten(name, 40)}: {', '.join(shown)}")
    return "; ".join(rows) + ". All numbers stand below."

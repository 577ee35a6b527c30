"""Stacked shares: a panel a format, a row a system; every part has a letter, so that no colour has to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import CHARACTER, LABEL, label_width
from proctor.reports.figures.canvas import DARK, FAINT, GRID, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Part", "SharePanel", "draw_shares"]

_WIDTH, _ACROSS, _ROW, _HEAD, _FOOT, _GAP, _KEY = 960, 3, 20, 28, 22, 30, 30
_COLOURS = (SERIES[0], SERIES[7], SERIES[5], SERIES[4], SERIES[3], SERIES[6], SERIES[2], SERIES[1])
_DEEP = {SERIES[0], SERIES[6], SERIES[2], SERIES[1]}


@dataclass(frozen=True)
class Part:
    """What a stretch of a bar is: its letter, its name, and the number of its colour (0 to 7), the same in all drawings."""

    letter: str
    name: str
    look: int


@dataclass(frozen=True)
class SharePanel:
    """One format: its name, and for each row the counts of the parts."""

    name: str
    counts: Sequence[Sequence[int]]


def draw_shares(
    key: str, title: str, rows: Sequence[str], parts: Sequence[Part], panels: Sequence[SharePanel]
) -> str:
    """Every bar is its row's whole; its letter stands in a part that
    has room for it."""
    names = [shorten(row, LABEL) for row in rows]
    left = label_width(names)
    across = min(_ACROSS, len(panels))
    width = (_WIDTH - left - _GAP * across) / across
    line = _HEAD + _ROW * len(rows) + _FOOT
    with drawing(_WIDTH, _KEY + -(-len(panels) // across) * line) as figure:
        for place, panel in enumerate(panels):
            down, right = divmod(place, across)
            box = (left + right * (width + _GAP), _KEY + down * line + _HEAD, width, _ROW * len(rows))
            axes = bare_axes(figure, box)
            axes.set_xlim(0, 1)
            axes.set_ylim(len(rows) - 0.5, -0.5)
            put(axes, 0, -0.5 - 13 / _ROW, shorten(panel.name, int(width / 6.8)), fontweight="bold")
            for row, counts in enumerate(panel.counts):
                _draw_bar(axes, row, counts, parts, width)
            for tick in (0, 0.5, 1):
                put(
                    axes,
                    tick,
                    len(rows) - 0.5 + 9 / _ROW,
                    f"{100 * tick:.0f} %",
                    color=FAINT,
                    fontsize=10,
                    ha="center",
                )
            if right == 0:
                for row, name in enumerate(names):
                    put(axes, -10 / width, row, name, ha="right")
            if place == 0:
                _draw_key(axes, parts, -left / width, width)
        return svg(figure, key=key, title=title, description=_described(rows, parts, panels))


def _draw_bar(axes: Axes, row: int, counts: Sequence[int], parts: Sequence[Part], width: float) -> None:
    whole, start = sum(counts), 0.0
    if not whole:
        axes.plot([0, 0], [row - 0.3, row + 0.3], color=GRID, linewidth=1)
        return
    for part, count in zip(parts, counts, strict=True):
        colour, share = _COLOURS[part.look], count / whole
        if not count:
            continue
        axes.barh(row, share, left=start, height=0.76, facecolor=colour, edgecolor=PAPER, linewidth=0.6)
        if share * width >= 11:
            ink = PAPER if colour in _DEEP else DARK
            put(axes, start + share / 2, row, part.letter, color=ink, fontsize=10, ha="center")
        start += share


def _draw_key(axes: Axes, parts: Sequence[Part], start: float, width: float) -> None:
    x = start + 14 / width
    up = -0.5 - (_HEAD + 14) / _ROW
    for part in parts:
        colour = _COLOURS[part.look]
        axes.plot([x + 7 / width], [up], "s", color=colour, markersize=14, markeredgewidth=0, clip_on=False)
        ink = PAPER if colour in _DEEP else DARK
        put(axes, x + 7 / width, up, part.letter, color=ink, fontsize=10, ha="center")
        put(axes, x + 18 / width, up, part.name)
        x += (38 + CHARACTER * len(part.name)) / width


def _described(rows: Sequence[str], parts: Sequence[Part], panels: Sequence[SharePanel]) -> str:
    lines = []
    for panel in panels[:10]:
        for row, counts in list(zip(rows, panel.counts, strict=True))[:10]:
            shown = [f"{count} {part.name}" for count, part in zip(counts, parts, strict=True) if count]
            lines.append(f"{shorten(panel.name, 40)}, {shorten(row, 40)}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand below."

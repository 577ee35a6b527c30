"""Stacked bars of counts: one bar a row, every part with its number where it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import CHARACTER, LABEL, label_width
from proctor.reports.figures.canvas import DARK, GRID, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Bars", "draw_bars"]

_WIDTH, _ROW, _HEAD = 960, 21, 32
# Answered in quiet blue, what went wrong in warm colours, what never happened in grey.
_COLOURS = (SERIES[0], SERIES[4], SERIES[5], SERIES[3], SERIES[1], SERIES[7])


@dataclass(frozen=True)
class Bars:
    """Rows × parts of counts, at most six parts."""

    rows: Sequence[str]
    parts: Sequence[str]
    counts: Sequence[Sequence[int]]


def draw_bars(key: str, title: str, bars: Bars) -> str:
    """All bars on one scale of counts."""
    names = [shorten(row, LABEL + 14) for row in bars.rows]
    left = label_width(names)
    most = max((sum(counts) for counts in bars.counts), default=0) or 1
    width = _WIDTH - left - 20
    with drawing(_WIDTH, _HEAD + _ROW * len(names) + 6) as figure:
        axes = bare_axes(figure, (left, _HEAD, width, _ROW * len(names)))
        axes.set_xlim(0, most)
        axes.set_ylim(len(names) - 0.5, -0.5)
        for row, (name, counts) in enumerate(zip(names, bars.counts, strict=True)):
            put(axes, -10 * most / width, row, name, ha="right")
            _draw_bar(axes, row, counts, width / most)
        _draw_legend(axes, bars.parts, most / width)
        return svg(figure, key=key, title=title, description=_described(bars))


def _draw_bar(axes: Axes, row: int, counts: Sequence[int], scale: float) -> None:
    start = 0
    for colour, count in zip(_COLOURS, counts, strict=False):
        if not count:
            continue
        axes.barh(row, count, left=start, height=0.72, color=colour, edgecolor=PAPER, linewidth=0.8)
        if count * scale > CHARACTER * len(str(count)) + 4:
            ink = PAPER if colour in {SERIES[0], SERIES[1]} else DARK
            put(axes, start + count / 2, row, str(count), color=ink, fontsize=10, ha="center")
        start += count
    if not start:
        axes.plot([0, 0], [row - 0.3, row + 0.3], color=GRID, linewidth=1)


def _draw_legend(axes: Axes, parts: Sequence[str], pixel: float) -> None:
    x = 0.0
    for colour, part in zip(_COLOURS, parts, strict=False):
        at = -0.5 - 14 / _ROW
        axes.plot([x + 5 * pixel], [at], "s", color=colour, markersize=9, markeredgewidth=0, clip_on=False)
        put(axes, x + 15 * pixel, at, part)
        x += (32 + CHARACTER * len(part)) * pixel


def _described(bars: Bars) -> str:
    lines = []
    for row, counts in list(zip(bars.rows, bars.counts, strict=True))[:40]:
        shown = [f"{count} {part}" for part, count in zip(bars.parts, counts, strict=True) if count]
        lines.append(f"{shorten(row, 60)}: {', '.join(shown) or 'nothing'}")
    return "; ".join(lines) + ". All numbers stand in the table below."

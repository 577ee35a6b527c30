"""Counts: stacked bars, columns, and shares of causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import shorten
from proctor.reports.figures.axes import CHARACTER, LABEL, label_width
from proctor.reports.figures.canvas import DARK, FAINT, GRID, INK, PAPER, SERIES, bare_axes, drawing, put, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BARS_WIDTH, _BARS_ROW, _BARS_HEAD = 960, 21, 32
# Answered in quiet blues, what went wrong in warm colours, what never happened in greys.
_BARS_COLOURS = (*(SERIES[place] for place in (0, 4, 2, 5, 3, 1, 6, 7)), GRID)


@dataclass(frozen=True)
class Bars:
    """Rows × parts of counts, at most nine parts; each has its colour, and those without any count are not in the legend."""

    rows: Sequence[str]
    parts: Sequence[str]
    counts: Sequence[Sequence[int]]


def draw_bars(key: str, title: str, bars: Bars) -> str:
    """All bars on one scale of counts."""
    names = [shorten(row, LABEL + 14) for row in bars.rows]
    left = label_width(names)
    most = max((sum(counts) for counts in bars.counts), default=0) or 1
    width = _BARS_WIDTH - left - 20
    with drawing(_BARS_WIDTH, _BARS_HEAD + _BARS_ROW * len(names) + 6) as figure:
        axes = bare_axes(figure, (left, _BARS_HEAD, width, _BARS_ROW * len(names)))
        axes.set_xlim(0, most)
        axes.set_ylim(len(names) - 0.5, -0.5)
        colours = _BARS_COLOURS[: len(bars.parts)]
        for row, (name, counts) in enumerate(zip(names, bars.counts, strict=True)):
            put(axes, -10 * most / width, row, name, ha="right")
            _bars_draw_bar(axes, row, list(zip(colours, counts, strict=True)), width / most)
        totals = [sum(column) for column in zip(*bars.counts, strict=True)]
        there = [one for one, total in zip(zip(colours, bars.parts, strict=True), totals, strict=True) if total]
        _draw_legend(axes, there, most / width)
        return svg(figure, key=key, title=title, description=_bars_described(bars))


def _bars_draw_bar(axes: Axes, row: int, counts: Sequence[tuple[str, int]], scale: float) -> None:
    start = 0
    for colour, count in counts:
        if not count:
            continue
        axes.barh(row, count, left=start, height=0.72, color=colour, edgecolor=PAPER, linewidth=0.8)
        if count * scale > CHARACTER * len(str(count)) + 4:
            ink = PAPER if colour in {SERIES[0], SERIES[1], SERIES[6]} else INK if colour == GRID else DARK
            put(axes, start + count / 2, row, str(count), color=ink, fontsize=10, ha="center")
        start += count
    if not start:
        axes.plot([0, 0], [row - 0.3, row + 0.3], color=GRID, linewidth=1)


def _draw_legend(axes: Axes, parts: Sequence[tuple[str, str]], pixel: float) -> None:
    x = 0.0
    for colour, part in parts:
        at = -0.5 - 14 / _BARS_ROW
        axes.plot([x + 5 * pixel], [at], "s", color=colour, markersize=9, markeredgewidth=0, clip_on=False)
        put(axes, x + 15 * pixel, at, part)
        x += (32 + CHARACTER * len(part)) * pixel


def _bars_described(bars: Bars) -> str:
    lines = []
    for row, counts in list(zip(bars.rows, bars.counts, strict=True))[:40]:
        shown = [f"{count} {part}" for part, count in zip(bars.parts, counts, strict=True) if count]
        lines.append(f"{shorten(row, 60)}: {', '.join(shown) or 'nothing'}")
    return "; ".join(lines) + ". All numbers stand in the table below."


_PLACE, _HEIGHT, _COLUMNS_HEAD, _COLUMNS_FOOT = 56, 110, 24, 24


@dataclass(frozen=True)
class Columns:
    """Counts with the names of their places; `even` is the count to expect if all were alike."""

    names: Sequence[str]
    counts: Sequence[int]
    even: float


def draw_columns(key: str, title: str, columns: Columns) -> str:
    """Columns with their numbers above, the even count as a broken line with its name at the right."""
    width = _PLACE * len(columns.names)
    top = max([*columns.counts, columns.even, 1])
    with drawing(width + 90, _COLUMNS_HEAD + _HEIGHT + _COLUMNS_FOOT) as figure:
        axes = bare_axes(figure, (8, _COLUMNS_HEAD, width, _HEIGHT))
        axes.set_xlim(-0.5, len(columns.names) - 0.5)
        axes.set_ylim(0, top)
        for place, (name, count) in enumerate(zip(columns.names, columns.counts, strict=True)):
            axes.bar(place, count, width=0.7, color=SERIES[0], linewidth=0)
            inside = count > 0.2 * top
            style = {"color": PAPER if inside else INK}
            put(axes, place, count + (-0.09 if inside else 0.08) * top, str(count), ha="center", **style)
            put(axes, place, -0.1 * top, name, color=FAINT, ha="center")
        end = len(columns.names) - 0.5
        axes.plot([-0.5, end], [columns.even] * 2, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
        put(axes, end + 0.08, columns.even, f"even: {columns.even:.1f}", color=FAINT, fontsize=10)
        said = ", ".join(f"{name} {count}" for name, count in zip(columns.names, columns.counts, strict=True))
        return svg(figure, key=key, title=title, description=f"{said}; evenly spread: {columns.even:.1f}.")


_SHARES_WIDTH, _ACROSS, _SHARES_ROW, _SHARES_HEAD, _SHARES_FOOT, _GAP, _KEY = 960, 3, 20, 28, 22, 30, 30
_SHARES_COLOURS = (SERIES[0], SERIES[7], SERIES[5], SERIES[4], SERIES[3], SERIES[6], SERIES[2], SERIES[1])
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


def draw_shares(key: str, title: str, rows: Sequence[str], parts: Sequence[Part], panels: Sequence[SharePanel]) -> str:
    """Every bar is its row's whole; its letter stands in a part that
    has room for it."""
    names = [shorten(row, LABEL) for row in rows]
    left = label_width(names)
    across = min(_ACROSS, len(panels))
    width = (_SHARES_WIDTH - left - _GAP * across) / across
    line = _SHARES_HEAD + _SHARES_ROW * len(rows) + _SHARES_FOOT
    with drawing(_SHARES_WIDTH, _KEY + -(-len(panels) // across) * line) as figure:
        for place, panel in enumerate(panels):
            down, right = divmod(place, across)
            box = (left + right * (width + _GAP), _KEY + down * line + _SHARES_HEAD, width, _SHARES_ROW * len(rows))
            axes = bare_axes(figure, box)
            axes.set_xlim(0, 1)
            axes.set_ylim(len(rows) - 0.5, -0.5)
            put(axes, 0, -0.5 - 13 / _SHARES_ROW, shorten(panel.name, int(width / 6.8)), fontweight="bold")
            for row, counts in enumerate(panel.counts):
                _shares_draw_bar(axes, row, counts, parts, width)
            for tick in (0, 0.5, 1):
                put(
                    axes,
                    tick,
                    len(rows) - 0.5 + 9 / _SHARES_ROW,
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
        return svg(figure, key=key, title=title, description=_shares_described(rows, parts, panels))


def _shares_draw_bar(axes: Axes, row: int, counts: Sequence[int], parts: Sequence[Part], width: float) -> None:
    whole, start = sum(counts), 0.0
    if not whole:
        axes.plot([0, 0], [row - 0.3, row + 0.3], color=GRID, linewidth=1)
        return
    for part, count in zip(parts, counts, strict=True):
        colour, share = _SHARES_COLOURS[part.look], count / whole
        if not count:
            continue
        axes.barh(row, share, left=start, height=0.76, facecolor=colour, edgecolor=PAPER, linewidth=0.6)
        if share * width >= 11:
            ink = PAPER if colour in _DEEP else DARK
            put(axes, start + share / 2, row, part.letter, color=ink, fontsize=10, ha="center")
        start += share


def _draw_key(axes: Axes, parts: Sequence[Part], start: float, width: float) -> None:
    x = start + 14 / width
    up = -0.5 - (_SHARES_HEAD + 14) / _SHARES_ROW
    for part in parts:
        colour = _SHARES_COLOURS[part.look]
        axes.plot([x + 7 / width], [up], "s", color=colour, markersize=14, markeredgewidth=0, clip_on=False)
        ink = PAPER if colour in _DEEP else DARK
        put(axes, x + 7 / width, up, part.letter, color=ink, fontsize=10, ha="center")
        put(axes, x + 18 / width, up, part.name)
        x += (38 + CHARACTER * len(part.name)) / width


def _shares_described(rows: Sequence[str], parts: Sequence[Part], panels: Sequence[SharePanel]) -> str:
    lines = []
    for panel in panels[:10]:
        for row, counts in list(zip(rows, panel.counts, strict=True))[:10]:
            shown = [f"{count} {part.name}" for count, part in zip(counts, parts, strict=True) if count]
            lines.append(f"{shorten(panel.name, 40)}, {shorten(row, 40)}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand below."

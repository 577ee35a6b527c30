"""A significance map: who is better than whom, told by triangles and not by colours alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import label_width
from proctor.reports.figures.canvas import FAINT, GRID, SERIES, bare_axes, drawing, put, stamp, svg
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Verdicts", "draw_verdict_panels", "draw_verdicts"]

_WIDTH, _MOST_WIDTH, _CELL, _LEAST, _FOOT, _HEAD = 760, 960, 34, 13.5, 8, 70
_SMALL_CELL, _ACROSS, _GAP, _TITLE, _TOP = 18, 3, 34, 44, 46
_LABEL = 22  # the table beside it has the names in full
_DIGIT = 5.6  # pixels of a character in a cell
_KEY = (
    ("up", SERIES[0], "the row is better"),
    ("down", SERIES[1], "the row is worse"),
    ("square", GRID, "no difference shown"),
)


@dataclass(frozen=True)
class Verdicts:
    """`signs[row][column]`: 1 where the row is better than the column, −1 where it is worse, 0 where neither is
    shown, None on the diagonal and where nothing was asked. `texts` stand in the cells that have room."""

    name: str
    signs: Sequence[Sequence[int | None]]
    texts: Sequence[Sequence[str]] = ()


def draw_verdicts(key: str, title: str, names: Sequence[str], verdicts: Verdicts) -> str:
    """One map: rows are named with their number, columns by the numbers alone."""
    shown = [f"{shorten(name, _LABEL)} · {number}" for number, name in enumerate(names, start=1)]
    left = label_width(shown)
    n = len(names)
    roomy = _DIGIT * max((len(text) for row in verdicts.texts for text in row), default=0) + 8
    cell = min(max(_CELL, roomy), max((_WIDTH - left - 10) / max(n, 1), _LEAST))
    cell = min(cell, (_MOST_WIDTH - left - 10) / max(n, 1))
    with drawing(max(left + cell * n + 10, 360), _HEAD + min(cell, _CELL) * n + _FOOT) as figure:
        axes = bare_axes(figure, (left, _HEAD, cell * n, min(cell, _CELL) * n))
        _draw_map(axes, verdicts, cell, texts=bool(verdicts.texts) and cell >= roomy)
        for row, name in enumerate(shown):
            put(axes, -0.5 - 10 / cell, row, name, ha="right", fontsize=12 if cell > 14 else 11)
        _draw_key(axes, (cell, min(cell, _CELL)), -left + 14, 56)
        return svg(figure, key=key, title=title, description=_described(names, verdicts))


def draw_verdict_panels(key: str, title: str, names: Sequence[str], panels: Sequence[Verdicts]) -> str:
    """A small map for each bucket, three across; rows and columns are numbers."""
    n = max(1, len(names))
    cell = min(_SMALL_CELL, (_WIDTH - 24 - _GAP * _ACROSS) / _ACROSS / n)
    side = cell * n
    step = max(side + _GAP, 226.0)
    line = _TITLE + side + 12
    with drawing(24 + step * min(_ACROSS, len(panels)), _TOP + line * -(-len(panels) // _ACROSS)) as figure:
        for place, panel in enumerate(panels):
            down, right = divmod(place, _ACROSS)
            axes = bare_axes(figure, (24 + right * step, _TOP + down * line + _TITLE, side, side))
            _draw_map(axes, panel, cell, texts=False)
            put(
                axes,
                -0.5 - 22 / cell,
                -0.5 - 28 / cell,
                shorten(panel.name, 31),
                fontweight="bold",
                fontsize=11,
            )
            for row in range(n):
                put(axes, -0.5 - 5 / cell, row, str(row + 1), ha="right", fontsize=9, color=FAINT)
            if place == 0:
                _draw_key(axes, (cell, cell), -20, _TITLE + _TOP - 14)
        described = "; ".join(f"{panel.name}: {_described(names, panel)}" for panel in panels[:10])
        return svg(figure, key=key, title=title, description=described)


def _draw_map(axes: Axes, verdicts: Verdicts, cell: float, *, texts: bool) -> None:
    n = len(verdicts.signs)
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_ylim(n - 0.5, -0.5)
    size = min(cell, _CELL)
    found: dict[int, list[tuple[float, float]]] = {1: [], -1: [], 0: []}
    for row, signs in enumerate(verdicts.signs):
        for column, sign in enumerate(signs):
            if sign is not None:
                found[sign].append((column, row + (-0.2 if texts else 0.0)))
    cells = [(x, round(y)) for points in found.values() for x, y in points]
    stamp(axes, cells, "square", (cell - 1.5, size - 1.5), facecolor=GRID, alpha=0.55)
    mark = min(0.62 * size, 11)
    stamp(axes, found[1], "up", mark, facecolor=SERIES[0])
    stamp(axes, found[-1], "down", mark, facecolor=SERIES[1])
    if texts:
        for row, line in enumerate(verdicts.texts):
            for column, text in enumerate(line):
                if verdicts.signs[row][column] is not None:
                    put(axes, column, row + 0.28, text, ha="center", fontsize=9)
    step = 1 if cell >= 12 else 5
    for number in range(1, n + 1):
        if number == 1 or number % step == 0:
            put(axes, number - 1, -0.5 - 8 / size, str(number), ha="center", fontsize=9, color=FAINT)


def _draw_key(axes: Axes, cell: tuple[float, float], start: float, above: float) -> None:
    """Two lines, so that a phone shows them whole; `start` and `above` are pixels from the first cell."""
    wide, high = cell
    for place, (shape, colour, text) in enumerate(_KEY):
        x = -0.5 + (start + 150 * (place % 2)) / wide
        y = -0.5 - (above - 20 * (place // 2)) / high
        stamp(axes, [(x + 5 / wide, y)], shape, 10, facecolor=colour)
        put(axes, x + 14 / wide, y, text, fontsize=11)


def _described(names: Sequence[str], verdicts: Verdicts) -> str:
    lines = []
    for name, signs in list(zip(names, verdicts.signs, strict=True))[:20]:
        better = [shorten(names[place], 30) for place, sign in enumerate(signs) if sign == 1]
        lines.append(f"{shorten(name, 40)} better than {', '.join(better[:20]) or 'nobody'}")
    return "; ".join(lines) + ". All numbers stand below."

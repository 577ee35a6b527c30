"""Cells with a value: shares of right answers, correlations, and who is better than whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import shorten
from proctor.reports.figures.axes import CHARACTER, LABEL, label_width
from proctor.reports.figures.canvas import FAINT, GRID, INK, PAPER, SERIES, bare_axes, drawing, put, stamp, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST, _HEAT_ROW, _HEAT_CELL, _HEAT_FOOT, _HEAT_HEADS = 960, 20, 44, 22, 34
_HEAT_DEEP = 0.6  # the opacity of a whole share: dark text can still be read on it


@dataclass(frozen=True)
class Heat:
    """`shares[row][column]` from 0 to 1, None where nothing was asked; `starts` are columns with a line before
    them, `counts` how many questions stand behind each column."""

    rows: Sequence[str]
    columns: Sequence[str]
    shares: Sequence[Sequence[float | None]]
    starts: Sequence[int] = ()
    counts: Sequence[str] = ()


def draw_heat(key: str, title: str, heat: Heat) -> str:
    """Columns are named upwards; numbers are percent; below stands how many questions each column has."""
    names = [shorten(row, LABEL) for row in heat.rows]
    heads = [shorten(column, _HEAT_HEADS) for column in heat.columns]
    left = label_width([*names, "questions"])
    cell = min(_HEAT_CELL, (_MOST - left - 10) / max(1, len(heads)))
    width, height = cell * len(heads), _HEAT_ROW * len(names)
    head = 12 + CHARACTER * max((len(name) for name in heads), default=0)
    with drawing(left + width + 10, head + height + _HEAT_FOOT) as figure:
        axes = bare_axes(figure, (left, head, width, height))
        axes.set_xlim(-0.5, len(heads) - 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        for column, name in enumerate(heads):
            put(axes, column, -0.5 - 6 / _HEAT_ROW, name, rotation=90, ha="center", va="bottom", fontsize=11)
        for row, name in enumerate(names):
            put(axes, -0.5 - 10 / cell, row, name, ha="right")
            _draw_row(axes, row, heat.shares[row], cell)
        for column, count in enumerate(heat.counts):
            put(axes, column, len(names) - 0.5 + 11 / _HEAT_ROW, count, ha="center", fontsize=9, color=FAINT)
        if heat.counts:
            put(
                axes,
                -0.5 - 10 / cell,
                len(names) - 0.5 + 11 / _HEAT_ROW,
                "questions",
                ha="right",
                fontsize=10,
                color=FAINT,
            )
        for start in heat.starts:
            axes.plot([start - 0.5] * 2, [-0.5, len(names) - 0.5], color=FAINT, linewidth=1.5)
        return svg(figure, key=key, title=title, description=_heat_described(heat))


def _draw_row(axes: Axes, row: int, shares: Sequence[float | None], cell: float) -> None:
    for column, share in enumerate(shares):
        if share is None:
            put(axes, column, row, "–", ha="center", color=FAINT, fontsize=10)
            continue
        if share > 0:
            axes.bar(
                column,
                1,
                bottom=row - 0.5,
                width=1,
                facecolor=SERIES[0],
                alpha=_HEAT_DEEP * share,
                edgecolor=PAPER,
                linewidth=0.5,
            )
        size = 11 if cell >= 26 else 9
        put(axes, column, row, f"{100 * share:.0f}", ha="center", fontsize=size)


def _heat_described(heat: Heat) -> str:
    lines = []
    for row, shares in list(zip(heat.rows, heat.shares, strict=True))[:20]:
        shown = [
            f"{shorten(name, 40)} {100 * share:.0f} %"
            for name, share in list(zip(heat.columns, shares, strict=True))[:12]
            if share is not None
        ]
        lines.append(f"{shorten(row, 40)}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand below."


_GRID_ROW, _GRID_CELL, _GRID_HEADS, _BAND = 22, 44, 28, 22
_GRID_DEEP = 0.6  # the opacity at a correlation of ±1: dark text can still be read on it


@dataclass(frozen=True)
class Grid:
    """`values[row][column]` from −1 to 1, None where there is none; `bands` names columns that stand together
    (name, first column, number of columns)."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    bands: Sequence[tuple[str, int, int]] = ()


def draw_grid(key: str, title: str, grid: Grid) -> str:
    """Columns are named upwards, their bands above them; numbers have two digits."""
    names = [shorten(row, LABEL) for row in grid.rows]
    heads = [shorten(column, _GRID_HEADS) for column in grid.columns]
    left = label_width(names)
    width, height = _GRID_CELL * len(heads), _GRID_ROW * len(names)
    words = 12 + CHARACTER * max((len(name) for name in heads), default=0)
    head = words + (_BAND if grid.bands else 0)
    with drawing(left + width + 10, head + height + 6) as figure:
        axes = bare_axes(figure, (left, head, width, height))
        axes.set_xlim(-0.5, len(heads) - 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        for column, name in enumerate(heads):
            put(axes, column, -0.5 - 6 / _GRID_ROW, name, rotation=90, ha="center", va="bottom", fontsize=11)
        for row, name in enumerate(names):
            put(axes, -0.5 - 10 / _GRID_CELL, row, name, ha="right")
            for column, value in enumerate(grid.values[row]):
                _draw_cell(axes, row, column, value)
        for name, first, count in grid.bands:
            put(
                axes,
                first + (count - 1) / 2,
                -0.5 - (words + 8) / _GRID_ROW,
                shorten(name, int(count * _GRID_CELL / CHARACTER)),
                ha="center",
                fontweight="bold",
            )
            if first:
                axes.plot([first - 0.5] * 2, [-0.5, len(names) - 0.5], color=INK, linewidth=1.5)
        return svg(figure, key=key, title=title, description=_grid_described(grid))


def _draw_cell(axes: Axes, row: int, column: int, value: float | None) -> None:
    if value is None:
        put(axes, column, row, "–", ha="center", color=FAINT, fontsize=11)
        return
    axes.bar(
        column,
        1,
        bottom=row - 0.5,
        width=1,
        facecolor=SERIES[0] if value >= 0 else SERIES[1],
        alpha=_GRID_DEEP * min(1.0, abs(value)),
        edgecolor=PAPER,
        linewidth=0.5,
    )
    shown = f"{value:.2f}".replace("-", "−")
    put(axes, column, row, "0.00" if shown == "−0.00" else shown, ha="center", fontsize=11)


def _grid_described(grid: Grid) -> str:
    lines = []
    for row, values in list(zip(grid.rows, grid.values, strict=True))[:20]:
        shown = [
            f"{shorten(name, 40)} {value:.2f}"
            for name, value in list(zip(grid.columns, values, strict=True))[:18]
            if value is not None
        ]
        lines.append(f"{shorten(row, 40)}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand below."


_WIDTH, _MOST_WIDTH, _VERDICTS_CELL, _LEAST, _VERDICTS_FOOT, _HEAD = 760, 960, 34, 13.5, 8, 70
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
    cell = min(max(_VERDICTS_CELL, roomy), max((_WIDTH - left - 10) / max(n, 1), _LEAST))
    cell = min(cell, (_MOST_WIDTH - left - 10) / max(n, 1))
    with drawing(max(left + cell * n + 10, 360), _HEAD + min(cell, _VERDICTS_CELL) * n + _VERDICTS_FOOT) as figure:
        axes = bare_axes(figure, (left, _HEAD, cell * n, min(cell, _VERDICTS_CELL) * n))
        _draw_map(axes, verdicts, cell, texts=bool(verdicts.texts) and cell >= roomy)
        for row, name in enumerate(shown):
            put(axes, -0.5 - 10 / cell, row, name, ha="right", fontsize=12 if cell > 14 else 11)
        _draw_key(axes, (cell, min(cell, _VERDICTS_CELL)), -left + 14, 56)
        return svg(figure, key=key, title=title, description=_verdicts_described(names, verdicts))


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
            put(axes, -0.5 - 22 / cell, -0.5 - 28 / cell, shorten(panel.name, 31), fontweight="bold", fontsize=11)
            for row in range(n):
                put(axes, -0.5 - 5 / cell, row, str(row + 1), ha="right", fontsize=9, color=FAINT)
            if place == 0:
                _draw_key(axes, (cell, cell), -20, _TITLE + _TOP - 14)
        described = "; ".join(f"{panel.name}: {_verdicts_described(names, panel)}" for panel in panels[:10])
        return svg(figure, key=key, title=title, description=described)


def _draw_map(axes: Axes, verdicts: Verdicts, cell: float, *, texts: bool) -> None:
    n = len(verdicts.signs)
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_ylim(n - 0.5, -0.5)
    size = min(cell, _VERDICTS_CELL)
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


def _verdicts_described(names: Sequence[str], verdicts: Verdicts) -> str:
    lines = []
    for name, signs in list(zip(names, verdicts.signs, strict=True))[:20]:
        better = [shorten(names[place], 30) for place, sign in enumerate(signs) if sign == 1]
        lines.append(f"{shorten(name, 40)} better than {', '.join(better[:20]) or 'nobody'}")
    return "; ".join(lines) + ". All numbers stand below."

"""A grid of correlations: every cell with its number, blue above 0, orange below, deeper farther away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import CHARACTER, LABEL, label_width
from proctor.reports.figures.canvas import FAINT, INK, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Grid", "draw_grid"]

_ROW, _CELL, _HEADS, _BAND = 22, 44, 28, 22
_DEEP = 0.6  # the opacity at a correlation of ±1: dark text can still be read on it


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
    heads = [shorten(column, _HEADS) for column in grid.columns]
    left = label_width(names)
    width, height = _CELL * len(heads), _ROW * len(names)
    words = 12 + CHARACTER * max((len(name) for name in heads), default=0)
    head = words + (_BAND if grid.bands else 0)
    with drawing(left + width + 10, head + height + 6) as figure:
        axes = bare_axes(figure, (left, head, width, height))
        axes.set_xlim(-0.5, len(heads) - 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        for column, name in enumerate(heads):
            put(axes, column, -0.5 - 6 / _ROW, name, rotation=90, ha="center", va="bottom", fontsize=11)
        for row, name in enumerate(names):
            put(axes, -0.5 - 10 / _CELL, row, name, ha="right")
            for column, value in enumerate(grid.values[row]):
                _draw_cell(axes, row, column, value)
        for name, first, count in grid.bands:
            put(
                axes,
                first + (count - 1) / 2,
                -0.5 - (words + 8) / _ROW,
                shorten(name, int(count * _CELL / CHARACTER)),
                ha="center",
                fontweight="bold",
            )
            if first:
                axes.plot([first - 0.5] * 2, [-0.5, len(names) - 0.5], color=INK, linewidth=1.5)
        return svg(figure, key=key, title=title, description=_described(grid))


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
        alpha=_DEEP * min(1.0, abs(value)),
        edgecolor=PAPER,
        linewidth=0.5,
    )
    shown = f"{value:.2f}".replace("-", "−")
    put(axes, column, row, "0.00" if shown == "−0.00" else shown, ha="center", fontsize=11)


def _described(grid: Grid) -> str:
    lines = []
    for row, values in list(zip(grid.rows, grid.values, strict=True))[:20]:
        shown = [
            f"{shorten(name, 40)} {value:.2f}"
            for name, value in list(zip(grid.columns, values, strict=True))[:18]
            if value is not None
        ]
        lines.append(f"{shorten(row, 40)}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand below."

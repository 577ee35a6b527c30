"""A heat map: rows × columns of shares, every cell with its number, so that no colour has to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import CHARACTER, LABEL, label_width
from proctor.reports.figures.canvas import FAINT, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Heat", "draw_heat"]

_MOST, _ROW, _CELL, _FOOT, _HEADS = 960, 20, 44, 22, 34
_DEEP = 0.6  # the opacity of a whole share: dark text can still be read on it


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
    heads = [shorten(column, _HEADS) for column in heat.columns]
    left = label_width([*names, "questions"])
    cell = min(_CELL, (_MOST - left - 10) / max(1, len(heads)))
    width, height = cell * len(heads), _ROW * len(names)
    head = 12 + CHARACTER * max((len(name) for name in heads), default=0)
    with drawing(left + width + 10, head + height + _FOOT) as figure:
        axes = bare_axes(figure, (left, head, width, height))
        axes.set_xlim(-0.5, len(heads) - 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        for column, name in enumerate(heads):
            put(axes, column, -0.5 - 6 / _ROW, name, rotation=90, ha="center", va="bottom", fontsize=11)
        for row, name in enumerate(names):
            put(axes, -0.5 - 10 / cell, row, name, ha="right")
            _draw_row(axes, row, heat.shares[row], cell)
        for column, count in enumerate(heat.counts):
            put(axes, column, len(names) - 0.5 + 11 / _ROW, count, ha="center", fontsize=9, color=FAINT)
        if heat.counts:
            put(
                axes,
                -0.5 - 10 / cell,
                len(names) - 0.5 + 11 / _ROW,
                "questions",
                ha="right",
                fontsize=10,
                color=FAINT,
            )
        for start in heat.starts:
            axes.plot([start - 0.5] * 2, [-0.5, len(names) - 0.5], color=FAINT, linewidth=1.5)
        return svg(figure, key=key, title=title, description=_described(heat))


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
                alpha=_DEEP * share,
                edgecolor=PAPER,
                linewidth=0.5,
            )
        size = 11 if cell >= 26 else 9
        put(axes, column, row, f"{100 * share:.0f}", ha="center", fontsize=size)


def _described(heat: Heat) -> str:
    lines = []
    for row, shares in list(zip(heat.rows, heat.shares, strict=True))[:20]:
        shown = [
            f"{shorten(name, 40)} {100 * share:.0f} %"
            for name, share in list(zip(heat.columns, shares, strict=True))[:12]
            if share is not None
        ]
        lines.append(f"{shorten(row, 40)}: {', '.join(shown)}")
    return "; ".join(lines) + ". All numbers stand below."

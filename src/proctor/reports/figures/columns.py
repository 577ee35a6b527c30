"""A small histogram: counts over places, with the count that evenly spread ones would have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.reports.figures.canvas import FAINT, INK, PAPER, SERIES, bare_axes, drawing, put, svg

__all__ = ["Columns", "draw_columns"]

_PLACE, _HEIGHT, _HEAD, _FOOT = 56, 110, 24, 24


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
    with drawing(width + 90, _HEAD + _HEIGHT + _FOOT) as figure:
        axes = bare_axes(figure, (8, _HEAD, width, _HEIGHT))
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

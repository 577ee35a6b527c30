"""Dots with whiskers: one row a system, one panel a value of a facet, one axis for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import Metric
from proctor.reports.figures.axes import LABEL, Axis, draw_labels, draw_ticks, label_width
from proctor.reports.figures.canvas import FAINT, SERIES, bare_axes, drawing, put, svg
from proctor.reports.words import shorten, value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Dot", "Panel", "draw_dots"]

_WIDTH, _ACROSS = 960, 3
_ROW, _HEAD, _FOOT, _GAP = 20, 40, 28, 40
_BOLD = 7.8  # pixels of an average bold letter


@dataclass(frozen=True)
class Dot:
    """A value with its interval; all None where there is nothing to draw."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Panel:
    """One value of a facet: its name, a dot for each row, and the level of blind guessing, if known (or another one
    that `mark` names)."""

    name: str
    dots: Sequence[Dot]
    chance: float | None = None
    mark: str = "chance"


def draw_dots(
    key: str, title: str, rows: Sequence[str], panels: Sequence[Panel], axis: Axis, metric: Metric
) -> str:
    """Panels side by side, at most three, then below each other; rows are named at the left."""
    names = [shorten(row, LABEL) for row in rows]
    left = label_width(names)
    across = min(_ACROSS, len(panels))
    lines = -(-len(panels) // across)
    line = _HEAD + _ROW * len(rows) + _FOOT
    width = (_WIDTH - left - _GAP * across) / across
    with drawing(_WIDTH, lines * line) as figure:
        for place, panel in enumerate(panels):
            down, right = divmod(place, across)
            box = (left + right * (width + _GAP), down * line + _HEAD, width, _ROW * len(rows))
            axes = bare_axes(figure, box)
            axes.set_xlim(*axis.limits)
            axes.set_ylim(len(rows) - 0.5, -0.5)
            _draw_panel(axes, panel, axis, int((width + _GAP - 12) / _BOLD))
            if right == 0:
                draw_labels(axes, names, axis)
        return svg(figure, key=key, title=title, description=_described(rows, panels, metric))


def _draw_panel(axes: Axes, panel: Panel, axis: Axis, room: int) -> None:
    count = len(panel.dots)
    draw_ticks(axes, axis, count)
    put(axes, axis.limits[0], -0.5 - 24 / _ROW, shorten(panel.name, room), fontweight="bold")
    if panel.chance is not None:
        axes.plot([panel.chance] * 2, [-0.5, count - 0.5], color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
        put(axes, panel.chance, -0.5 - 8 / _ROW, panel.mark, color=FAINT, fontsize=10, ha="center")
    for row, dot in enumerate(panel.dots):
        if dot.value is None:
            put(axes, axis.limits[0], row, " no score", color=FAINT, fontsize=10)
            continue
        if dot.low is not None and dot.high is not None:
            axes.plot([dot.low, dot.high], [row, row], color=SERIES[0], linewidth=2, alpha=0.55)
        axes.plot([dot.value], [row], "o", color=SERIES[0], markersize=6.5, markeredgewidth=0, clip_on=False)


def _described(rows: Sequence[str], panels: Sequence[Panel], metric: Metric) -> str:
    parts = []
    for panel in panels[:12]:
        shown = [
            f"{shorten(row, 40)} {value(metric, dot.value)}"
            for row, dot in list(zip(rows, panel.dots, strict=True))[:12]
        ]
        parts.append(f"{shorten(panel.name, 40)}: {', '.join(shown)}")
    return "; ".join(parts) + ". All numbers stand in the table below."

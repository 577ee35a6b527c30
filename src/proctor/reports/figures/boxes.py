"""Box plots: a row a system, a panel a part of the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import LABEL, Axis, draw_labels, draw_ticks, label_width
from proctor.reports.figures.canvas import FAINT, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.figures.rows import DOWN, WIDTH, row_axes, rows_height
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Box", "BoxPanel", "draw_box_rows", "draw_boxes"]

_WIDTH, _ACROSS = 960, 3
_ROW, _HEAD, _FOOT, _GAP = 20, 28, 28, 40


@dataclass(frozen=True)
class Box:
    """Quartiles, the ends of the whiskers, and the values beyond them."""

    low: float
    q1: float
    median: float
    q3: float
    high: float
    beyond: Sequence[float] = ()


@dataclass(frozen=True)
class BoxPanel:
    """One part of the questions: its name, a box for each row (None where there is nothing), and the value that guessing
    by lot reaches, where it is known: a broken line."""

    name: str
    boxes: Sequence[Box | None]
    chance: float | None = None


def draw_box_rows(
    key: str,
    title: str,
    rows: Sequence[str],
    boxes: Sequence[Box | None],
    texts: Sequence[str],
    axis: Axis,
    head: str,
    chance: float | None = None,
) -> str:
    """One narrow panel: a row's name and text stand above its box; a thick line is the median, a broken one beside
    each box is `chance`."""
    with drawing(WIDTH, rows_height(len(rows))) as figure:
        axes = row_axes(figure, axis, rows, texts, head=head)
        for row, box in enumerate(boxes):
            _draw_chance(axes, chance, row + DOWN, 0.24)
            _draw_box(axes, row + DOWN, box, axis, 0.34)
        return svg(figure, key=key, title=title, description=_described(rows, [BoxPanel(head, boxes)]))


def draw_boxes(key: str, title: str, rows: Sequence[str], panels: Sequence[BoxPanel], axis: Axis) -> str:
    """Panels side by side, three across; a thick line is the median."""
    names = [shorten(row, LABEL) for row in rows]
    left = label_width(names)
    across = min(_ACROSS, len(panels))
    width = (_WIDTH - left - _GAP * across) / across
    line = _HEAD + _ROW * len(rows) + _FOOT
    with drawing(_WIDTH, -(-len(panels) // across) * line) as figure:
        for place, panel in enumerate(panels):
            down, right = divmod(place, across)
            box = (left + right * (width + _GAP), down * line + _HEAD, width, _ROW * len(rows))
            axes = bare_axes(figure, box)
            axes.set_xlim(*axis.limits)
            axes.set_ylim(len(rows) - 0.5, -0.5)
            draw_ticks(axes, axis, len(rows))
            put(
                axes,
                axis.limits[0],
                -0.5 - 13 / _ROW,
                shorten(panel.name, int(width / 6.6)),
                fontweight="bold",
            )
            _draw_chance(axes, panel.chance, (len(rows) - 1) / 2, len(rows) / 2)
            for row, one in enumerate(panel.boxes):
                _draw_box(axes, row, one, axis, 0.56)
            if right == 0:
                draw_labels(axes, names, axis)
        return svg(figure, key=key, title=title, description=_described(rows, panels))


def _draw_chance(axes: Axes, chance: float | None, middle: float, half: float) -> None:
    if chance is not None:
        axes.plot(
            [chance] * 2, [middle - half, middle + half], color=FAINT, linewidth=1, linestyle=(0, (4, 3))
        )


def _draw_box(axes: Axes, row: float, box: Box | None, axis: Axis, height: float) -> None:
    if box is None:
        put(axes, axis.limits[0], row, " no value", color=FAINT, fontsize=10)
        return
    axes.plot([box.low, box.high], [row, row], color=SERIES[0], linewidth=1.2)
    for end in (box.low, box.high):
        axes.plot([end, end], [row - 0.35 * height, row + 0.35 * height], color=SERIES[0], linewidth=1.2)
    axes.barh(
        row,
        box.q3 - box.q1,
        left=box.q1,
        height=height,
        facecolor=SERIES[4],
        edgecolor=SERIES[0],
        linewidth=1.2,
    )
    axes.plot([box.median] * 2, [row - 0.62 * height, row + 0.62 * height], color=SERIES[0], linewidth=3.5)
    axes.plot(
        box.beyond,
        [row] * len(box.beyond),
        "o",
        markerfacecolor=PAPER,
        markeredgecolor=SERIES[0],
        markersize=4,
        clip_on=False,
    )


def _described(rows: Sequence[str], panels: Sequence[BoxPanel]) -> str:
    parts = []
    for panel in panels[:8]:
        shown = [
            f"{shorten(row, 40)} median {box.median:.3g}, quartiles {box.q1:.3g} and {box.q3:.3g}"
            for row, box in list(zip(rows, panel.boxes, strict=True))[:12]
            if box is not None
        ]
        parts.append(f"{shorten(panel.name, 40)}: {', '.join(shown)}")
    return "; ".join(parts) + ". All numbers stand below."

"""Plots of values with their intervals."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proctor.core import need_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from proctor.core import Metric


@dataclass(frozen=True)
class Mark:
    """One value with its interval, drawn on the line `label` in the colour of its `group`."""

    label: str
    group: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Scale:
    """The value axis: its label, the factor that values are multiplied by, its limits, and a reference line."""

    label: str
    factor: float = 1.0
    low: float | None = None
    high: float | None = None
    line: float | None = None
    line_label: str = ""

    @staticmethod
    def of(metric: Metric, chance: float | None = None) -> Scale:
        """The axis of a metric, with a line at the level of chance if it is given."""
        return Scale(
            f"{metric.label}{' in per cent' if metric.percent else ''}",
            100.0 if metric.percent else 1.0,
            metric.low,
            metric.high,
            chance,
            "chance" if chance is not None else "",
        )


def draw_intervals(
    marks: Sequence[Mark], scale: Scale, *, title: str = "", ax: Any = None, numbers: Mapping[str, int] | None = None
) -> Figure:
    """Draw a line for each label, with a dot and an interval for each of its groups. `numbers` are those of the groups,
    from which their colours and shapes follow (conditions have their own, as in reports); by default their positions. Draws
    into `ax` if it is given, else into a new figure. Unknown values are left out."""
    from proctor.reports.figures import plot_style

    labels = list(dict.fromkeys(mark.label for mark in marks))
    groups = list(dict.fromkeys(mark.group for mark in marks))
    figure, axes = _canvas(ax, 0.9 + 0.22 * len(labels) * (1 + len(groups)))
    if scale.line is not None:
        axes.axvline(scale.factor * scale.line, color="#777777", linewidth=1, linestyle="--", label=scale.line_label)
    step = 0.7 / max(1, len(groups))
    for number, group in enumerate(groups):
        own = [mark for mark in marks if mark.group == group and mark.value is not None]
        rows = [labels.index(mark.label) + (number - (len(groups) - 1) / 2) * step for mark in own]
        values = [scale.factor * float(mark.value or 0) for mark in own]
        colour, shape = plot_style((numbers or {}).get(group, number))
        axes.plot(values, rows, shape, color=colour, label=group or None)
        for mark, row in zip(own, rows, strict=True):
            if mark.low is not None and mark.high is not None:
                ends = [scale.factor * mark.low, scale.factor * mark.high]
                axes.plot(ends, [row, row], "-", color=colour, linewidth=1.5)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(max(1, len(labels)) - 0.5, -0.5)
    if scale.low is not None and scale.high is not None:
        axes.set_xlim(scale.factor * scale.low, scale.factor * scale.high)
    axes.set_xlabel(scale.label)
    axes.set_title(title, loc="left")
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    if any(groups) or scale.line_label:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def _canvas(ax: Any, height: float) -> tuple[Figure, Any]:
    if ax is not None:
        return ax.figure, ax
    need_extra("plots", "a plot", "matplotlib")
    if "IPython" in sys.modules:  # a notebook shows the figures of pyplot alone
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7, max(1.6, height)), layout="constrained")
        pyplot.close(figure)
        return figure, axes
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, max(1.6, height)), layout="constrained")
    return figure, figure.subplots()

"""What all drawings with rows share: the value axis, its lines and the rows' names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import Metric
from proctor.reports.figures.canvas import FAINT, GRID, put

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL = 30
"""The most characters of a name beside a drawing; the tables have it in full."""

SLIM_LABEL = 16
"""And beside a drawing for a phone."""

CHARACTER = 7.2
"""Pixels of an average letter."""
_STEPS = (1, 2, 2.5, 5, 10)
_DECADES, _FINE = 3, 2


@dataclass(frozen=True)
class Axis:
    """Limits of a value axis, and where its lines stand with their labels."""

    limits: tuple[float, float]
    ticks: tuple[float, ...]
    labels: tuple[str, ...]


def value_axis(metric: Metric, low: float, high: float, *, lines: int = 4) -> Axis:
    """An axis from low to high in the metric's own unit."""
    return _axis(low, high, lines, 100 if metric.percent else 1, " %" if metric.percent else "", signed=False)


def signed_axis(metric: Metric, low: float, high: float, *, lines: int = 6) -> Axis:
    """An axis of differences: around zero, with signs; of percentages in points."""
    reach = max(abs(low), abs(high), 1e-9)
    unit = " pts" if metric.percent else ""
    return _axis(
        min(low, -0.15 * reach), max(high, 0.15 * reach), lines, 100 if metric.percent else 1, unit, signed=True
    )


def plain_axis(low: float, high: float, *, lines: int = 4) -> Axis:
    """An axis of plain numbers from low to high."""
    return _axis(low, high, lines, 1, "", signed=False)


def ratio_axis(low: float, high: float) -> Axis:
    """An axis of ratios on a logarithmic scale, between 1/1000 and 1000; limits and ticks are log10 of them."""
    first = max(_floor_log10(min(low, 0.5)), -_DECADES)
    last = min(-_floor_log10(1 / max(high, 2.0)), _DECADES)
    fine = last - first <= _FINE
    whole = [digit * 10.0**power for power in range(first, last + 1) for digit in ((1, 2, 5) if fine else (1,))]
    inside = [one for one in whole if 10.0**first <= one <= 10.0**last]
    labels = tuple(f"{one:g}" for one in inside)
    return Axis((float(first), float(last)), tuple(math.log10(one) for one in inside), labels)


def label_width(names: Sequence[str]) -> float:
    """Pixels that the longest of the names needs at the left."""
    return 14 + CHARACTER * max((len(name) for name in names), default=0)


def draw_ticks(axes: Axes, axis: Axis, rows: int) -> None:
    """Faint lines across all rows, with their labels below."""
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        axes.plot([tick, tick], [-0.5, rows - 0.5], color=GRID, linewidth=1, zorder=0)
        put(axes, tick, rows - 0.5, label, color=FAINT, fontsize=10, ha="center", va="top")


def draw_labels(axes: Axes, names: Sequence[str], axis: Axis) -> None:
    """The rows' names at the left of the axes."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.figure
    moved = axes.transData + ScaledTranslation(-10 / 72, 0, figure.dpi_scale_trans)
    for row, name in enumerate(names):
        put(axes, axis.limits[0], row, name, ha="right", transform=moved)


def _axis(low: float, high: float, lines: int, scale: float, unit: str, *, signed: bool) -> Axis:
    if high <= low:  # one value alone: room on both sides of it
        room = max(0.05, 0.05 * abs(low))
        low, high = low - room, high + room
    span = (high - low) * scale
    power = 10.0 ** _floor_log10(span / lines)
    step = next(power * factor for factor in _STEPS if span / (power * factor) <= lines + 1e-9)
    first, last = _ceil(low * scale / step), _ceil(high * scale / step + 1e-9) - 1
    if last * step < high * scale - 1e-9 and abs((last + 1) * step - high * scale) < 1e-9:
        last += 1
    whole = [step * number for number in range(first, last + 1)]
    digits = next((n for n in range(4) if all(abs(round(one, n) - one) < 1e-9 for one in whole)), 4)
    sign = "+" if signed else ""
    labels = tuple(
        (f"{number:{sign}.{digits}f}" if abs(number) > 1e-12 else "0").replace("-", "−") + unit for number in whole
    )
    pad = 0.02 * (high - low)
    return Axis((low - pad, high + pad), tuple(number / scale for number in whole), labels)


def _floor_log10(number: float) -> int:
    return math.floor(math.log10(number))


def _ceil(number: float) -> int:
    return math.ceil(number - 1e-9)

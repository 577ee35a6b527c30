"""Curves of one number over another, panels beside each other: points with intervals, and how many stand behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import Axis, plain_axis
from proctor.reports.figures.canvas import FAINT, GRID, PAPER, SERIES, bare_axes, drawing, put, svg
from proctor.reports.figures.dots import Dot
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Curve", "draw_curves"]

_WIDTH, _ACROSS = 960, 3
_HEIGHT, _HEAD, _FOOT, _LEFT, _GAP = 150, 30, 44, 46, 18
_BOLD = 7.8  # pixels of an average bold letter


@dataclass(frozen=True)
class Curve:
    """One panel: for each point its place on the lower axis and its dot on the left one. `names` stand at the
    points where places are no numbers; `empty` says why there are no points."""

    name: str
    places: Sequence[float]
    dots: Sequence[Dot]
    names: Sequence[str] = ()
    empty: str = ""


def draw_curves(
    key: str,
    title: str,
    curves: Sequence[Curve],
    axis: Axis,
    labels: tuple[str, str],
    *,
    mark: float | None = None,
) -> str:
    """Three panels across. All share the left axis; each has its own lower axis. `labels` name the lower axis
    and the left one, `mark` is a broken line across every panel."""
    across = min(_ACROSS, max(1, len(curves)))
    lines = -(-len(curves) // across)
    width = _WIDTH / _ACROSS
    line = _HEAD + _HEIGHT + _FOOT
    with drawing(width * across, 22 + lines * line) as figure:
        for place, curve in enumerate(curves):
            down, right = divmod(place, across)
            box = (
                right * width + _LEFT,
                22 + down * line + _HEAD,
                width - _LEFT - _GAP,
                _HEIGHT,
            )
            axes = bare_axes(figure, box)
            axes.set_ylim(*axis.limits)
            _draw_panel(axes, curve, axis, mark, int((width - _LEFT) / _BOLD))
            if place == 0:
                _draw_legend(axes, axis, f"Upwards: {labels[1]}. To the right: {labels[0]}.")
        return svg(figure, key=key, title=title, description=_described(curves, labels))


def _draw_panel(axes: Axes, curve: Curve, axis: Axis, mark: float | None, room: int) -> None:
    low, high = _reach(curve)
    axes.set_xlim(low, high)
    pixel = (high - low) / axes.get_window_extent().width
    rise = (axis.limits[1] - axis.limits[0]) / _HEIGHT
    put(axes, low, axis.limits[1] + 13 * rise, shorten(curve.name, room), fontweight="bold")
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        axes.plot([low, high], [tick, tick], color=GRID, linewidth=1, zorder=0)
        put(axes, low - 6 * pixel, tick, label, color=FAINT, fontsize=10, ha="right")
    if mark is not None:
        axes.plot([low, high], [mark, mark], color=FAINT, linewidth=1.4, linestyle=(0, (3, 2)), zorder=1)
    if curve.empty:
        middle = (axis.limits[0] + axis.limits[1]) / 2
        put(axes, low + 6 * pixel, middle, shorten(curve.empty, room), color=FAINT, fontsize=11)
        return
    for place, name in _named(curve, low, high):
        put(axes, place, axis.limits[0] - 12 * rise, name, color=FAINT, fontsize=10, ha="center")
    _draw_points(axes, curve, axis)


def _draw_legend(axes: Axes, axis: Axis, said: str) -> None:
    low, high = axes.get_xlim()
    pixel = (high - low) / axes.get_window_extent().width
    rise = (axis.limits[1] - axis.limits[0]) / _HEIGHT
    start = low - (_LEFT - 8) * pixel
    put(axes, start, axis.limits[1] + (_HEAD + 10) * rise, said, color=FAINT, fontsize=11)


def _draw_points(axes: Axes, curve: Curve, axis: Axis) -> None:
    low, high = axis.limits
    known = [
        (place, dot, dot.value)
        for place, dot in zip(curve.places, curve.dots, strict=True)
        if dot.value is not None
    ]
    axes.plot([place for place, *_ in known], [at for *_, at in known], color=SERIES[0], linewidth=1)
    for place, dot, at in known:
        if dot.low is not None and dot.high is not None:
            ends = [min(max(one, low), high) for one in (dot.low, dot.high)]
            axes.plot([place, place], ends, color=SERIES[0], linewidth=2, alpha=0.55)
        style = {"color": SERIES[0], "markersize": 7, "markeredgecolor": PAPER, "markeredgewidth": 0.8}
        axes.plot([place], [min(max(at, low), high)], "o", clip_on=False, **style)  # type: ignore[arg-type]


def _reach(curve: Curve) -> tuple[float, float]:
    if not curve.places:
        return 0.0, 1.0
    low, high = min(curve.places), max(curve.places)
    pad = 0.07 * (high - low) or 0.5
    return low - pad, high + pad


def _named(curve: Curve, low: float, high: float) -> list[tuple[float, str]]:
    if curve.names:
        return list(zip(curve.places, curve.names, strict=True))
    ticks = plain_axis(low, high, lines=4)
    return [
        (tick, label) for tick, label in zip(ticks.ticks, ticks.labels, strict=True) if low <= tick <= high
    ]


def _described(curves: Sequence[Curve], labels: tuple[str, str]) -> str:
    parts = []
    for curve in curves[:12]:
        names = curve.names or [f"{place:.3g}" for place in curve.places]
        shown = [
            f"{name}: {dot.value:.2f}"
            for name, dot in list(zip(names, curve.dots, strict=True))[:10]
            if dot.value is not None
        ]
        parts.append(f"{shorten(curve.name, 40)}: {', '.join(shown) or curve.empty}")
    return f"{labels[1]} by {labels[0]}. " + "; ".join(parts) + ". All numbers stand below."

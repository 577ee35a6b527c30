"""A podium plot: who came first, second, third on each group, how well, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.reports.figures.axes import CHARACTER, Axis
from proctor.reports.figures.canvas import (
    FAINT,
    GRID,
    INK,
    MARKERS,
    PAPER,
    SERIES,
    bare_axes,
    drawing,
    put,
    svg,
)
from proctor.reports.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST_ON_PODIUM", "Podium", "draw_podium"]

MOST_ON_PODIUM = 6
"""The most systems that a podium plot can show so that marks can be told apart."""
_WIDTH, _LEFT, _PLOT, _BARS, _GAP, _LINE, _FOOT = 760, 62, 300, 84, 30, 20, 22
_MOST_LINES = 80  # groups whose marks are joined; more would be a grey field


@dataclass(frozen=True)
class Podium:
    """At most six systems; `values[group][system]` and `places[group][system]` (1 best, equal ones share it)."""

    names: Sequence[str]
    values: Sequence[Sequence[float]]
    places: Sequence[Sequence[int]]


def draw_podium(key: str, title: str, podium: Podium, axis: Axis) -> str:
    """A field a place; in it a mark for each group on which a system had that place, at its value; a thin line joins
    the marks of a group. Below, how many groups gave each system each place."""
    names = [shorten(name, 40) for name in podium.names]
    n = len(names)
    rows = _legend_rows(names)
    head = 10 + _LINE * len(rows)
    with drawing(_WIDTH, head + _PLOT + _GAP + _BARS + _FOOT) as figure:
        upper = bare_axes(figure, (_LEFT, head, _WIDTH - _LEFT - 8, _PLOT))
        upper.set_xlim(-0.5, n * n - 0.5)
        upper.set_ylim(*axis.limits)
        _draw_frame(upper, n, axis)
        _draw_marks(upper, podium, n)
        for line, row in enumerate(rows):
            for at, number in row:
                where = (at - _LEFT) / (_WIDTH - _LEFT - 8) * n * n - 0.5
                up = axis.limits[1] + (head - 8 - _LINE * line) / _PLOT * (axis.limits[1] - axis.limits[0])
                upper.plot([where], [up], MARKERS[number], color=SERIES[number], markersize=8, clip_on=False)
                put(upper, where + 0.013 * n * n, up, names[number])
        lower = bare_axes(figure, (_LEFT, head + _PLOT + _GAP, _WIDTH - _LEFT - 8, _BARS))
        _draw_counts(lower, podium, n)
        return svg(figure, key=key, title=title, description=_described(podium))


def _legend_rows(names: Sequence[str]) -> list[list[tuple[float, int]]]:
    rows: list[list[tuple[float, int]]] = [[]]
    x = 14.0
    for number, name in enumerate(names):
        wide = 30 + CHARACTER * len(name)
        if rows[-1] and x + wide > _WIDTH:
            rows.append([])
            x = 14.0
        rows[-1].append((x, number))
        x += wide
    return rows


def _draw_frame(axes: Axes, n: int, axis: Axis) -> None:
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        axes.plot([-0.5, n * n - 0.5], [tick, tick], color=GRID, linewidth=1, zorder=0)
        put(axes, -0.5 - 0.008 * n * n, tick, label, ha="right", fontsize=10, color=FAINT)
    for place in range(n + 1):
        axes.plot([place * n - 0.5] * 2, axis.limits, color=GRID, linewidth=1.5, zorder=0)


def _draw_marks(axes: Axes, podium: Podium, n: int) -> None:
    spots: list[list[tuple[float, float]]] = [[] for _ in range(n)]
    for number, (values, places) in enumerate(zip(podium.values, podium.places, strict=True)):
        path = sorted(((place - 1) * n + system, values[system]) for system, place in enumerate(places))
        if number < _MOST_LINES:
            axes.plot(
                [x for x, _ in path],
                [y for _, y in path],
                color=FAINT,
                linewidth=0.7,
                alpha=0.35,
                zorder=1,
                clip_on=False,
            )
        for system, place in enumerate(places):
            spots[system].append(((place - 1) * n + system, values[system]))
    for system, points in enumerate(spots):
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            MARKERS[system],
            color=SERIES[system],
            markersize=6.5,
            markeredgecolor=PAPER,
            markeredgewidth=0.6,
            clip_on=False,
        )


def _draw_counts(axes: Axes, podium: Podium, n: int) -> None:
    counts = [
        [sum(places[system] == place + 1 for places in podium.places) for system in range(n)]
        for place in range(n)
    ]
    most = max(max(row) for row in counts) or 1
    axes.set_xlim(-0.5, n * n - 0.5)
    axes.set_ylim(0, 1.25 * most)
    put(axes, -0.5 - 0.008 * n * n, 0.5 * most, "groups", ha="right", fontsize=10, color=FAINT)
    for place, row in enumerate(counts):
        for system, count in enumerate(row):
            if count:
                x = place * n + system
                axes.bar(x, count, width=0.8, facecolor=SERIES[system], linewidth=0)
                put(axes, x, count + 0.1 * most, str(count), ha="center", fontsize=9)
        axes.plot([place * n - 0.4, (place + 1) * n - 0.6], [0, 0], color=INK, linewidth=1)
        name = f"place {place + 1}"
        put(axes, place * n + (n - 1) / 2, -0.14 * most, name, ha="center", fontsize=11, color=FAINT)


def _described(podium: Podium) -> str:
    lines = []
    for system, name in enumerate(podium.names):
        counts = [sum(places[system] == place for places in podium.places) for place in (1, 2, 3)]
        lines.append(
            f"{shorten(name, 40)}: first on {counts[0]}, second on {counts[1]}, third on {counts[2]}"
        )
    return f"{len(podium.values)} groups. " + "; ".join(lines) + ". All numbers stand below."

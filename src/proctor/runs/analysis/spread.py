"""How differently a system does from group to group (video to video)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.runs.analysis.gathered import Gathered, Row
from proctor.stats.clusters import Floats

__all__ = ["ALL", "box_of", "group_rows", "video_rows"]

ALL = "all"
_REACH = 1.5  # whiskers end at the last value within so many widths of the box (Tukey 1977)


def video_rows(data: Gathered) -> list[Row]:
    """Per system the spread of the groups' accuracies, on all questions and on those that carry each label: the
    standard deviation, and what a box plot shows. Whiskers end at the last group within 1.5 widths of the box."""
    rows = []
    parts = {ALL: np.ones(len(data.items.ids), dtype=np.bool_)} | data.carriers(data.labels)
    for part, inside in parts.items():
        for entry in data.entries:
            _, count, total = _sums(data, entry.right, inside)
            means = total / count
            row: Row = {"system": entry.name, "part": part, "groups": len(means)}
            row["sd"] = float(np.std(means, ddof=1)) if len(means) > 1 else None
            rows.append(row | box_of(means))
    return rows


def box_of(means: Floats) -> Row:
    """What a box plot shows of the groups' accuracies; all None without a group."""
    names = ("lowest", "whisker_low", "q1", "median", "q3", "whisker_high", "highest")
    if not len(means):
        return dict.fromkeys(names)
    q1, median, q3 = (float(one) for one in np.quantile(means, (0.25, 0.5, 0.75)))
    reach = _REACH * (q3 - q1) + 1e-12
    low = float(means[means >= q1 - reach].min())
    high = float(means[means <= q3 + reach].max())
    values = (float(means.min()), min(low, q1), q1, median, q3, max(high, q3), float(means.max()))
    return dict(zip(names, values, strict=True))


def group_rows(data: Gathered) -> list[Row]:
    """Every system on every group where it has a mark: its accuracy on its own questions, and its place there among the
    systems that are no baselines (equal ones share a place; None for a baseline): what a podium plot shows."""
    everything = np.ones(len(data.items.ids), dtype=np.bool_)
    values: dict[int, dict[str, tuple[int, float]]] = {}
    for entry in data.entries:
        groups, counts, totals = _sums(data, entry.right, everything)
        for group, count, total in zip(groups.tolist(), counts, totals, strict=True):
            values.setdefault(group, {})[entry.name] = (int(count), round(float(total / count), 12))
    contestants = [entry.name for entry in data.entries if not entry.baseline]
    rows = []
    for group in sorted(values):
        here = values[group]
        ranked = [here[name][1] for name in contestants if name in here]
        rows += [
            {
                "group": data.items.groups[group],
                "system": name,
                "n": count,
                "value": value,
                "place": 1 + sum(other > value for other in ranked) if name in contestants else None,
            }
            for name, (count, value) in here.items()
        ]
    return rows


def _sums(
    data: Gathered, right: Floats, inside: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """The groups with a mark inside, how many marks each has, and how many of them are right."""
    marked = np.flatnonzero(~np.isnan(right) & inside)
    group = data.items.group[marked]
    count = np.bincount(group, minlength=len(data.items.groups)).astype(np.float64)
    total = np.bincount(group, right[marked], minlength=len(data.items.groups)).astype(np.float64)
    there = np.flatnonzero(count)
    return there, count[there], total[there]

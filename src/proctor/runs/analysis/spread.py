"""How differently a system does from group to group (video to video)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.runs.analysis.gathered import Gathered, Row
from proctor.stats.clusters import Floats

__all__ = ["ALL", "group_rows", "video_rows"]

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
            row: Row = {"system": entry.run.system, "part": part, "groups": len(means)}
            row["sd"] = float(np.std(means, ddof=1)) if len(means) > 1 else None
            rows.append(row | _box(means))
    return rows


def _box(means: Floats) -> Row:
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
    """Every system on every group, on the questions that all systems have a mark for: its accuracy, and its place
    among them there (equal ones share a place): what a podium plot shows."""
    here = np.zeros(len(data.items.ids), dtype=np.bool_)
    here[data.common()] = True
    sums = [_sums(data, entry.right, here) for entry in data.entries]
    groups, count, _ = sums[0]
    means = np.round(np.stack([total / count for _, _, total in sums]), 12)
    place = 1 + (means[None] > means[:, None]).sum(axis=1)
    return [
        {
            "group": data.items.groups[group],
            "system": name,
            "n": int(count[column]),
            "value": float(means[row, column]),
            "place": int(place[row, column]),
        }
        for column, group in enumerate(groups.tolist())
        for row, name in enumerate(data.names)
    ]


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

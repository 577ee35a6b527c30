"""Orders over many items: shares with intervals, what chance would do, and where frames are put instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import factorial
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, Metric
from proctor.metrics.marks import Mark
from proctor.metrics.ordering.comparison import Comparison
from proctor.stats import mean_interval
from proctor.stats.clusters import Groups
from proctor.stats.options import Options

__all__ = [
    "ORDERING_METRICS",
    "PAIR_CHANCE",
    "exact_chance",
    "order_marks",
    "overall_score",
    "place_confusion",
]

PAIR_CHANCE = 0.5
"""The pairwise accuracy of an order by lot."""

_FORMATS = ("ordering",)
TASK = Metric("task_accuracy", "Task accuracy (exact order)", percent=True, formats=_FORMATS)
PAIR = Metric(
    "pairwise_accuracy",
    "Pairwise accuracy",
    percent=True,
    chance=PAIR_CHANCE,
    formats=_FORMATS,
    per="neighbours",
)
TAU = Metric("kendall_tau", "Kendall's tau", low=-1.0, chance=0.0, formats=_FORMATS)
RUN = Metric("longest_run", "Longest run in order, of all frames", percent=True, formats=_FORMATS)
FIRST = Metric("first_right", "First frame right", percent=True, formats=_FORMATS)
LAST = Metric("last_right", "Last frame right", percent=True, formats=_FORMATS)
EITHER_WAY = Metric("up_to_reversal", "Right up to reversal", percent=True, formats=_FORMATS)
PARTIAL = Metric(
    "pairwise_partial",
    "Pairwise accuracy, partial credit for invalid orders",
    percent=True,
    chance=PAIR_CHANCE,
    formats=_FORMATS,
    per="neighbours",
)
VALID = Metric(
    "valid_order",
    "Valid orders (each label once)",
    percent=True,
    formats=_FORMATS,
    levels=("valid", "invalid", "no order"),
)
ORDERING_METRICS = (TASK, PAIR, TAU, RUN, FIRST, LAST, EITHER_WAY)


def exact_chance(frames: Sequence[int]) -> float | None:
    """The task accuracy of orders by lot: the mean of 1/n! over items of so many frames; None for no item.

    >>> exact_chance([4]), exact_chance([6])
    (0.041666666666666664, 0.001388888888888889)
    >>> exact_chance([4, 6]) == (1 / 24 + 1 / 720) / 2
    True
    """
    return sum(1 / factorial(count) for count in frames) / len(frames) if frames else None


def overall_score(
    task_accuracy: float,
    pairwise_accuracy: float,
    rationale_f1: float,
    *,
    alpha: float = 0.7,
    beta: float = 0.8,
) -> float:
    """100 · [β · (α · task + (1 − α) · pairwise) + (1 − β) · F1], from 0 to 100; all parts from 0 to 1.

    The overall score of the ClinicalSkillQA 2026 shared task (its overview, section 4.4), where α = 0.7 and
    β = 0.8. Raises `InputError` for a part or weight outside 0 to 1.

    >>> round(overall_score(0.63, 0.86, 0.79), 2)
    71.72
    """
    given = {
        "task_accuracy": task_accuracy,
        "pairwise_accuracy": pairwise_accuracy,
        "rationale_f1": rationale_f1,
        "alpha": alpha,
        "beta": beta,
    }
    for name, value in given.items():
        if not 0 <= value <= 1:
            raise InputError(None, name, found=f"{value:g}", expected="a number from 0 to 1")
    ordering = alpha * task_accuracy + (1 - alpha) * pairwise_accuracy
    return 100 * (beta * ordering + (1 - beta) * rationale_f1)


def order_marks(comparisons: Sequence[Comparison], groups: Groups, **options: Unpack[Options]) -> list[Mark]:
    """All `ORDERING_METRICS`, in this order, over many items, with intervals clustered by group.

    Pairwise accuracy is aggregated: neighbours in order over all neighbours of all items, so an item of six
    frames counts five times and one of four three times (the ClinicalSkillQA overview, section 4.2). The longest
    run is the mean of its share of the item's frames; every other one is the mean over items. Options: see
    `Resampling`. Edges: no items: values None. Raises `InputError` where lengths differ.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = [compare_orders("ABCD", "ABDC"), compare_orders("ABCDEF", "ABCDEF")]
    >>> marks = order_marks(found, ["v1", "v2"])
    >>> [(mark.metric.name, mark.estimate.value) for mark in marks[:2]]
    [('task_accuracy', 0.5), ('pairwise_accuracy', 0.875)]
    """
    if len(comparisons) != len(groups):
        found = f"{len(comparisons)} and {len(groups)}"
        raise InputError(None, "orders", found=found, expected="as many comparisons as groups")
    pairs = np.array([one.frames - 1 for one in comparisons], dtype=np.int64)
    right = np.array([one.adjacent_right / max(1, one.frames - 1) for one in comparisons])
    place = np.repeat(np.arange(len(pairs)), pairs)  # every pair of neighbours counts once, as in `results`
    of_pair = [groups[number] for number in place.tolist()]
    columns: tuple[tuple[Metric, list[float]], ...] = (
        (TASK, [float(one.exact) for one in comparisons]),
        (TAU, [one.tau for one in comparisons]),
        (RUN, [one.longest_run / one.frames for one in comparisons]),
        (FIRST, [float(one.first_right) for one in comparisons]),
        (LAST, [float(one.last_right) for one in comparisons]),
        (EITHER_WAY, [float(one.up_to_reversal) for one in comparisons]),
    )
    marks = [
        Mark(metric, mean_interval(values, groups, **(options | Options(bounds=(metric.low, metric.high)))))
        for metric, values in columns
    ]
    share = options | Options(bounds=(0, 1))
    pairwise = replace(mean_interval(right[place], of_pair, **share), n=len(comparisons))
    marks.insert(1, Mark(PAIR, pairwise))
    return marks


def place_confusion(comparisons: Sequence[Comparison]) -> dict[int, NDArray[np.int64]]:
    """Where frames are put instead: per number of frames n a table of counts, n × (n + 1).

    Row: the place where a frame belongs. Column: the place where it was put (of the known labels at their
    first place); the last one: missing. Rows add up to the number of items of n frames.

    >>> from proctor.metrics.ordering import compare_orders
    >>> place_confusion([compare_orders("ABC", "ACB"), compare_orders("ABC", "AB")])[3].tolist()
    [[2, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]]
    """
    tables: dict[int, NDArray[np.int64]] = {}
    for one in sorted(comparisons, key=lambda one: one.frames):
        table = tables.setdefault(one.frames, np.zeros((one.frames, one.frames + 1), dtype=np.int64))
        for belongs, put in enumerate(one.places):
            table[belongs, one.frames if put is None else put] += 1
    return tables

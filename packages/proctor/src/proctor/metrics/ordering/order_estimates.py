"""Orders over many items: estimates with intervals clustered by group, of orders, of rationales, and of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from proctor import stats
from proctor.core import InputError
from proctor.metrics import text
from proctor.metrics.corpus import ItemSums, MetricEstimate
from proctor.metrics.ordering.orders import (
    EITHER_WAY,
    FIRST,
    LAST,
    OVERALL,
    PAIR,
    RUN,
    TASK,
    TAU,
    TRACKING,
    WEIGHTS,
    OrderComparison,
)
from proctor.stats import Floats, Groups, Resampling, mean_interval


def order_estimates(
    comparisons: Sequence[OrderComparison], groups: Groups, plan: Resampling = Resampling()
) -> list[MetricEstimate]:
    """All `ORDERING_METRICS`, in this order, over many items, with intervals clustered by group.

    Pairwise accuracy is aggregated: neighbours in order over all neighbours of all items, so an item of six
    frames counts five times and one of four three times (the ClinicalSkillQA overview, section 4.2). The longest
    run is the mean of its share of the item's frames; every other one is the mean over items. Options: see
    `Resampling`. Edges: no items: values None. Raises `InputError` where lengths differ.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = [compare_orders("ABCD", "ABDC"), compare_orders("ABCDEF", "ABCDEF")]
    >>> scores = order_estimates(found, ["v1", "v2"])
    >>> [(score.metric.name, score.estimate.value) for score in scores[:2]]
    [('task_accuracy', 0.5), ('pairwise_accuracy', 0.875)]
    """
    if len(comparisons) != len(groups):
        found = f"{len(comparisons)} and {len(groups)}"
        raise InputError("orders", found=found, expected="as many comparisons as groups")
    pairs = np.array([comparison.frames - 1 for comparison in comparisons], dtype=np.int64)
    right = np.array([comparison.adjacent_right / max(1, comparison.frames - 1) for comparison in comparisons])
    position = np.repeat(np.arange(len(pairs)), pairs)  # every pair of neighbours counts once, as in `results`
    of_pair = [groups[number] for number in position.tolist()]
    per_item = {
        TASK: [comparison.exact for comparison in comparisons],
        TAU: [comparison.tau for comparison in comparisons],
        RUN: [comparison.longest_run / comparison.frames for comparison in comparisons],
        FIRST: [comparison.first_right for comparison in comparisons],
        LAST: [comparison.last_right for comparison in comparisons],
        EITHER_WAY: [comparison.up_to_reversal for comparison in comparisons],
    }
    columns = {metric: np.array(values, dtype=np.float64) for metric, values in per_item.items()}
    task, *others = (ItemSums(metric, values).estimate(groups, plan) for metric, values in columns.items())
    pairwise = replace(mean_interval(right[position], of_pair, plan.within(0, 1)), n=len(comparisons))
    return [task, MetricEstimate(PAIR, pairwise), *others]


def rationale_estimates(
    compared: Mapping[str, OrderComparison],
    groups: Sequence[str],
    f1: Mapping[str, float],
    *,
    weights: tuple[float, float] = WEIGHTS,
    plan: Resampling = Resampling(),
) -> list[MetricEstimate]:
    """The mean F1 of some items and their overall score (see `overall_score`; `weights` are α and β), with intervals
    clustered by `groups`; none where no item has an F1. Items without one count for their order alone.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = {"q1": compare_orders("ABCD", "ABCD"), "q2": compare_orders("ABCD", "ABDC")}
    >>> [round(one.estimate.value, 2) for one in rationale_estimates(found, ["v1", "v2"], {"q1": 0.8, "q2": 0.6})]
    [0.7, 62.0]
    """
    if not any(name in f1 for name in compared):
        return []
    given = np.array([f1.get(name, np.nan) for name in compared])
    columns = np.array(
        [
            (one.exact, 1, one.adjacent_right, one.frames - 1, f1.get(name, 0.0), name in f1)
            for name, one in compared.items()
        ],
        dtype=np.float64,
    )

    def overall(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore"):  # a sample without any rationale has no score
            task, pair, f1_mean = (sums[:, k] / sums[:, k + 1] for k in (0, 2, 4))
        alpha, beta = weights
        return np.asarray(100 * (beta * (alpha * task + (1 - alpha) * pair) + (1 - beta) * f1_mean))

    found = (ItemSums(text.RATIONALE_F1, given), ItemSums(OVERALL, columns, overall))
    return [item_sums.estimate(groups, plan) for item_sums in found]


def tracking_estimate(
    compared: Mapping[str, OrderComparison],
    groups: Sequence[str],
    f1: Mapping[str, float],
    plan: Resampling = Resampling(),
) -> MetricEstimate:
    """Whether better rationales go with better orders, over the answered items: Spearman's correlation of F1 and the
    share of pairs in order, −1 to 1. The task's paper remarks that they need not. Edges: the value is None with fewer
    than two items, and where all orders or all rationales are alike.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = {name: compare_orders("ABCD", said) for name, said in (("q1", "ABCD"), ("q2", "ABDC"), ("q3", "DCBA"))}
    >>> f1 = {"q1": 0.9, "q2": 0.6, "q3": 0.5}
    >>> round(tracking_estimate(found, ["v1", "v2", "v3"], f1, plan=Resampling(draws=100)).estimate.value, 2)
    1.0
    """
    rows = [
        (f1[name], one.adjacent_right / (one.frames - 1), group)
        for (name, one), group in zip(compared.items(), groups, strict=True)
        if name in f1 and one.answered
    ]
    scores, orders, theirs = zip(*rows, strict=True) if rows else ((), (), ())
    return MetricEstimate(TRACKING, stats.correlation(scores, orders, theirs, "spearman", plan=plan))

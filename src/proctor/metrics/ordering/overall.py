"""Orders and their rationales together: the overall score, and whether better reasons go with better orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from proctor.core import Metric
from proctor.metrics.marks import Mark
from proctor.metrics.ordering.comparison import Comparison
from proctor.metrics.text import RATIONALE_F1
from proctor.stats import correlation, mean_interval, sums_interval
from proctor.stats.clusters import Floats

__all__ = ["OVERALL", "TRACKING", "WEIGHTS", "rationale_marks", "tracking_mark"]

WEIGHTS = (0.7, 0.8)
"""α and β of the overall score, as the ClinicalSkillQA 2026 shared task set them."""

OVERALL = Metric("overall", "Overall score (0–100)", high=100.0, formats=("ordering",))
TRACKING = Metric(
    "rationale_tracks_order",
    "Rationale F1 with share of pairs in order (Spearman)",
    low=-1.0,
    formats=("ordering",),
)


def rationale_marks(
    compared: Mapping[str, Comparison],
    groups: Sequence[str],
    f1: Mapping[str, float],
    *,
    weights: tuple[float, float] = WEIGHTS,
    draws: int = 2000,
    seed: int = 0,
) -> list[Mark]:
    """The mean F1 of some items and their overall score (see `overall_score`; `weights` are α and β), with intervals
    clustered by `groups`; none where no item has an F1. Items without one count for their order alone.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = {"q1": compare_orders("ABCD", "ABCD"), "q2": compare_orders("ABCD", "ABDC")}
    >>> [round(one.estimate.value, 2) for one in rationale_marks(found, ["v1", "v2"], {"q1": 0.8, "q2": 0.6})]
    [0.7, 62.0]
    """
    scored = [(f1[name], group) for name, group in zip(compared, groups, strict=True) if name in f1]
    if not scored:
        return []
    values, theirs = zip(*scored, strict=True)
    mean = mean_interval(values, theirs, draws=draws, seed=seed, bounds=(0, 1))
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

    whole = sums_interval(columns, groups, overall, draws=draws, seed=seed, bounds=(0, 100))
    return [Mark(RATIONALE_F1, mean), Mark(OVERALL, whole)]


def tracking_mark(
    compared: Mapping[str, Comparison],
    groups: Sequence[str],
    f1: Mapping[str, float],
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Mark:
    """Whether better rationales go with better orders, over the answered items: Spearman's correlation of F1 and the
    share of pairs in order, −1 to 1. The task's paper remarks that they need not. Edges: the value is None with fewer
    than two items, and where all orders or all rationales are alike.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = {name: compare_orders("ABCD", said) for name, said in (("q1", "ABCD"), ("q2", "ABDC"), ("q3", "DCBA"))}
    >>> f1 = {"q1": 0.9, "q2": 0.6, "q3": 0.5}
    >>> round(tracking_mark(found, ["v1", "v2", "v3"], f1, draws=100).estimate.value, 2)
    1.0
    """
    rows = [
        (f1[name], one.adjacent_right / (one.frames - 1), group)
        for (name, one), group in zip(compared.items(), groups, strict=True)
        if name in f1 and one.answered
    ]
    scores, orders, theirs = zip(*rows, strict=True) if rows else ((), (), ())
    return Mark(TRACKING, correlation(scores, orders, theirs, "spearman", draws=draws, seed=seed))

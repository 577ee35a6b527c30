"""How far off counts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from proctor.core import InputError, Metric
from proctor.metrics.marks.errors import error_marks
from proctor.metrics.marks.mark import Mark
from proctor.stats import mean_interval, sums_interval
from proctor.stats.clusters import Floats, Groups
from proctor.stats.options import Options
from proctor.stats.resampling import ratio

__all__ = ["COUNT_METRICS", "count_marks"]

COST = Metric(
    "normalised_cost",
    "Expected cost against the best constant",
    high=float("inf"),
    higher_is_better=False,
    formats=("count",),
)
ERROR = Metric(
    "absolute_error", "Mean absolute error", high=float("inf"), higher_is_better=False, formats=("count",)
)
WITHIN_ONE = Metric("within_one", "Within one", percent=True, formats=("count",))
COUNT_METRICS = (COST, ERROR, WITHIN_ONE)


def count_marks(
    references: Sequence[float],
    predictions: Sequence[float | None],
    groups: Groups,
    **options: Unpack[Options],
) -> list[Mark]:
    """Normalised expected cost, mean absolute error (`error_marks`) and the share within one, in this order.

    The cost of an answer is |prediction − reference|. The *normalised expected cost* is the mean cost over
    the mean cost of the best constant answer, the median of the references: 0 is perfect, 1 is what a system
    achieves that never looks (Ferrer 2022, arXiv:2209.05355; recommended for ordinal classes by Metrics
    Reloaded, Maier-Hein et al. 2024, Nature Methods 21:195). An answer that is None (late, missing, unreadable)
    costs what the farthest reference would, in the error as well, which stands beside that of the answered ones
    alone (Willmott and Matsuura 2005, Climate Research 30:79); None is not within one (accuracy within n:
    Gaudette and Japkowicz 2009, Canadian Conference on Artificial Intelligence, 207). The constant stays the same in every sample of the interval.

    Edges: no items: values None; references that are all the same leave the cost None.
    Raises `InputError` where lengths differ.

    >>> marks = count_marks([0, 2, 4, 2], [0, 3, None, 2], ["a", "b", "c", "d"], draws=100)
    >>> [(mark.metric.name, mark.estimate.value, mark.estimate.n) for mark in marks]
    [('normalised_cost', 1.25, 4), ('absolute_error', 1.25, 4), ('absolute_error', 0.3333333333333333, 3), ('unanswered', 0.25, 4), ('within_one', 0.75, 4)]
    """
    if not len(references) == len(predictions) == len(groups):
        found = f"{len(references)}, {len(predictions)} and {len(groups)}"
        raise InputError(None, "counts", found=found, expected="as many references as predictions and groups")
    truth = np.asarray(references, dtype=np.float64)
    said = np.array([np.nan if one is None else one for one in predictions], dtype=np.float64)
    there = np.isfinite(said)
    error = np.where(there, np.abs(said - truth), np.nan)
    columns = np.stack([np.where(there, error, _worst(truth)), np.abs(truth - _median(truth))], axis=1)
    return [
        Mark(COST, sums_interval(columns, groups, _ratio, **(options | Options(bounds=(0, np.inf))))),
        *error_marks(ERROR, error, _worst(truth), groups, **options),
        Mark(WITHIN_ONE, mean_interval(there & (error <= 1), groups, **(options | Options(bounds=(0, 1))))),
    ]


def _worst(truth: Floats) -> Floats:
    """For each reference how far the farthest one is."""
    return np.maximum(truth - truth.min(), truth.max() - truth) if len(truth) else truth


def _median(truth: Floats) -> float:
    """A value that is itself a reference, since answers are whole numbers: the lower median."""
    return float(np.sort(truth)[(len(truth) - 1) // 2]) if len(truth) else 0.0


def _ratio(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 1])

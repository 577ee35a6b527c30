"""How far off percentages are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from proctor.core import InputError, Metric
from proctor.metrics.marks.errors import error_marks
from proctor.metrics.marks.mark import Mark
from proctor.stats import mean_interval
from proctor.stats.clusters import Groups
from proctor.stats.options import Options

__all__ = ["PERCENTAGE_METRICS", "WITHIN_POINTS", "percentage_marks"]

WITHIN_POINTS = 5.0
"""Percentage points within which an answer counts as near: the FOCUS toolkit's tolerance."""

ERROR = Metric(
    "percentage_error",
    "Mean absolute error (percentage points)",
    high=float("inf"),
    higher_is_better=False,
    formats=("percentage",),
)
WITHIN = Metric("within_five_points", "Within five points", percent=True, formats=("percentage",))
PERCENTAGE_METRICS = (ERROR, WITHIN)


def percentage_marks(
    references: Sequence[float],
    predictions: Sequence[float | None],
    groups: Groups,
    **options: Unpack[Options],
) -> list[Mark]:
    """The mean absolute error in points (Willmott and Matsuura 2005, Climate Research 30:79), over all questions and
    over the answered ones (`error_marks`), and the share within five points.

    An answer that is None (late, missing, unreadable) is as wrong as one from 0 to 100 can be: the larger of the
    reference and of 100 less the reference; and it is not within five points.

    Edges: no items: values None. Raises `InputError` where lengths differ.

    >>> marks = percentage_marks([20, 50, 90], [24, None, 70], ["a", "b", "c"], draws=100)
    >>> [(mark.metric.name, mark.part, round(mark.estimate.value, 3), mark.estimate.n) for mark in marks[:2]]
    [('percentage_error', '', 24.667, 3), ('percentage_error', 'answered only', 12.0, 2)]
    """
    if not len(references) == len(predictions) == len(groups):
        found = f"{len(references)}, {len(predictions)} and {len(groups)}"
        expected = "as many references as predictions and groups"
        raise InputError(None, "percentages", found=found, expected=expected)
    truth = np.asarray(references, dtype=np.float64)
    said = np.array([np.nan if one is None else one for one in predictions], dtype=np.float64)
    error = np.abs(said - truth)
    near = np.nan_to_num(error, nan=np.inf) <= WITHIN_POINTS
    worst = np.maximum(truth, 100 - truth)
    share = mean_interval(near, groups, **(options | Options(bounds=(0, 1))))
    return [*error_marks(ERROR, error, worst, groups, **options), Mark(WITHIN, share)]

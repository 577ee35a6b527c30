"""How far off answers are where some are missing: with the worst error for these, and of the answered ones alone."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from proctor.core import Metric
from proctor.metrics.marks.mark import Mark
from proctor.stats import mean_interval
from proctor.stats.clusters import Floats, Groups
from proctor.stats.options import Options

__all__ = ["ANSWERED_ONLY", "UNANSWERED", "error_marks"]

ANSWERED_ONLY = "answered only"
"""The part of an error that leaves missing answers out."""

UNANSWERED = Metric("unanswered", "Without a readable answer", higher_is_better=False, percent=True)


def error_marks(
    metric: Metric, errors: Floats, worst: Floats, groups: Groups, **options: Unpack[Options]
) -> list[Mark]:
    """The mean error over all questions, that over the answered ones alone, and the share that is not answered.

    `errors` are NaN where there is no answer (late, missing, unreadable); such a question takes its `worst` error, so
    that leaving out hard ones is no advantage. Where an unanswered question has no worst (NaN), there is no mean over
    all questions, and the two other marks stand alone.
    """
    there = ~np.isnan(errors)
    whole = np.where(there, errors, worst)
    named = [group for group, kept in zip(groups, there, strict=True) if kept]
    positive, share = Options(bounds=(0, np.inf)), Options(bounds=(0, 1))
    alone = Mark(metric, mean_interval(errors[there], named, **(options | positive)), ANSWERED_ONLY)
    marks = [alone, Mark(UNANSWERED, mean_interval(~there, groups, **(options | share)))]
    if np.isnan(whole).any():
        return marks
    return [Mark(metric, mean_interval(whole, groups, **(options | positive))), *marks]

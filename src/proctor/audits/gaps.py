"""Where a metric and the raters disagree most, answer by answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.audits.frames import ALL, CorrelationSettings, Frame, paired
from proctor.audits.ratings import Key, MetricScores, RatingsTable
from proctor.stats import Floats


def rank_gaps(table: RatingsTable, metric: MetricScores) -> dict[Key, float]:
    """How far an answer's place by score is from its place by mean rating, among all answers of its language
    and dimension, −1 to 1; above 0 the score is the higher one.

    Answers with equal scores share the places that they take together, from first to last, and so do those
    with equal ratings; the gap is what lies between the two ranges, over the number of answers, and 0 where
    they touch. A metric that puts answers in the raters' order thus has no gap anywhere, however many answers
    got the same rating. Answers of a dimension that the metric left out, or gave all the same score, are not in
    it: there is nothing to compare.

    >>> from proctor.audits import Rating
    >>> values = {"e1": 0.0, "e2": 0.5, "e3": 0.5, "e4": 1.0}
    >>> table = RatingsTable(tuple(Rating(e, "…", "s", "overall", "r", v) for e, v in values.items()))
    >>> scores = {(e, "s", "overall"): s for e, s in zip(values, [0.9, 0.3, 0.2, 0.7])}
    >>> list(rank_gaps(table, MetricScores("mine", scores)).values())
    [0.75, 0.0, -0.25, -0.25]
    """
    found: dict[Key, float] = {}
    for cell in Frame(table, CorrelationSettings(draws=0)).cells:
        if cell.dataset != ALL:
            continue
        answers = cell.rater_mean()
        scores, reason = paired(answers, metric)
        if reason or np.ptp(scores) == 0:
            continue
        (low, high), (least, most) = _places(scores), _places(answers.values)
        above, below = np.maximum(low - most, 0), np.maximum(least - high, 0)
        gaps = (above - below) / len(scores)
        found |= dict(zip(answers.keys, gaps.tolist(), strict=True))
    return found


def _places(values: Floats | Sequence[float]) -> tuple[Floats, Floats]:
    """The first and the last place that each value takes among all, from 0."""
    array = np.asarray(values, dtype=np.float64)
    ordered = np.sort(array)
    low = np.searchsorted(ordered, array, side="left").astype(np.float64)
    return low, np.searchsorted(ordered, array, side="right").astype(np.float64) - 1

"""How far off times are, and how many of several are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from proctor.core import InputError, Metric
from proctor.metrics.marks.errors import error_marks
from proctor.metrics.marks.mark import Mark
from proctor.stats import sums_interval
from proctor.stats.clusters import Floats, Groups
from proctor.stats.options import Options
from proctor.stats.resampling import ratio

__all__ = ["TIME_METRICS", "TOLERANCES_S", "match_times", "time_marks"]

TOLERANCES_S = (1.0, 5.0, 10.0, 30.0, 60.0)

ERROR = Metric(
    "time_error",
    "Mean absolute error of matched times (s)",
    high=float("inf"),
    higher_is_better=False,
    formats=("timestamps",),
)
RECALL = Metric("time_recall", "Times found", percent=True, formats=("timestamps",))
PRECISION = Metric("time_precision", "Named times that are right", percent=True, formats=("timestamps",))
F1 = Metric("time_f1", "F1 of times", percent=True, formats=("timestamps",))
TIME_METRICS = (ERROR, RECALL, PRECISION, F1)


def match_times(
    reference: Sequence[float], prediction: Sequence[float], tolerance: float = float("inf")
) -> list[tuple[int, int]]:
    """Pairs (place in reference, place in prediction), one to one, at most `tolerance` seconds apart.

    As many pairs as can be made, and of those the least sum of errors (Hungarian method: Kuhn 1955, Naval
    Research Logistics Quarterly 2:83). In the order of the reference's places.

    >>> match_times([10, 20], [19, 11, 50], tolerance=5)
    [(0, 1), (1, 0)]
    >>> match_times([10, 14], [14, 18], tolerance=5)
    [(0, 0), (1, 1)]
    """
    if not len(reference) or not len(prediction):
        return []
    apart = np.abs(np.subtract.outer(np.asarray(reference, float), np.asarray(prediction, float)))
    # A pair that is not allowed costs more than all allowed ones together.
    allowed = apart <= tolerance
    barred = 1.0 + min(len(reference), len(prediction)) * float(apart[allowed].max(initial=0.0))
    from scipy.optimize import linear_sum_assignment

    rows, places = linear_sum_assignment(np.where(allowed, apart, barred))
    return [(int(row), int(place)) for row, place in zip(rows, places, strict=True) if allowed[row, place]]


def time_marks(
    references: Sequence[Sequence[float]],
    predictions: Sequence[Sequence[float] | None],
    groups: Groups,
    *,
    tolerances: Sequence[float] = TOLERANCES_S,
    spans: Sequence[tuple[float, float] | None] | None = None,
    **options: Unpack[Options],
) -> list[Mark]:
    """The mean absolute error of matched times (`error_marks`), then recall, precision and F1 at every tolerance.

    Each answer's times are matched one to one with its reference's (`match_times`). The error is the mean
    over answers of the mean error of their pairs, matched without a limit (mean absolute error: Willmott
    and Matsuura 2005, Climate Research 30:79). An answer without a time is as far off as can be within what was shown:
    `spans` are its start and end for each question; without them there is only the error of the answered ones, with
    the share that is not answered. Recall is found times over the references' times, precision found over named, F1
    twice found over both, all summed up over answers (micro-averages: van Rijsbergen 1979, Information
    Retrieval, chapter 7); None (late, missing, unreadable) names no time and finds none.

    Edges: no items: values None. Raises `InputError` where lengths differ.

    >>> marks = time_marks([[10], [20, 40]], [[12], [41]], ["a", "b"], tolerances=(1, 5))
    >>> [(mark.metric.name, mark.part, round(mark.estimate.value, 3)) for mark in marks[:4]]
    [('time_error', '', 1.5), ('time_error', 'answered only', 1.5), ('unanswered', '', 0.0), ('time_recall', '1 s', 0.333)]
    """
    if not len(references) == len(predictions) == len(groups):
        found = f"{len(references)}, {len(predictions)} and {len(groups)}"
        raise InputError(None, "times", found=found, expected="as many references as predictions and groups")
    said = [list(one or ()) for one in predictions]
    errors = np.array([_error(*pair) for pair in zip(references, said, strict=True)], dtype=np.float64)
    shown = [None] * len(references) if spans is None else spans
    worst = np.array([_worst(*pair) for pair in zip(references, shown, strict=True)], dtype=np.float64)
    share = Options(bounds=(0, 1))
    marks = error_marks(ERROR, errors, worst, groups, **options)
    for tolerance in tolerances:
        hits = [
            len(match_times(truth, times, tolerance)) for truth, times in zip(references, said, strict=True)
        ]
        counts = [
            (hit, len(truth), len(times)) for hit, truth, times in zip(hits, references, said, strict=True)
        ]
        columns = np.array(counts, dtype=np.float64).reshape(len(counts), 3)
        for metric, statistic in ((RECALL, _recall), (PRECISION, _precision), (F1, _f1)):
            one = sums_interval(columns, groups, statistic, **(options | share))
            marks.append(Mark(metric, one, f"{tolerance:g} s"))
    return marks


def _error(truth: Sequence[float], times: Sequence[float]) -> float:
    pairs = match_times(truth, times)
    return float(np.mean([abs(truth[i] - times[j]) for i, j in pairs])) if pairs else np.nan


def _worst(truth: Sequence[float], span: tuple[float, float] | None) -> float:
    """The mean over the reference's times of how far a time within the span can be from each."""
    if span is None or not len(truth):
        return np.nan
    return float(np.mean([max(time - span[0], span[1] - time) for time in truth]))


def _recall(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 1])


def _precision(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 2])


def _f1(sums: Floats) -> Floats:
    return ratio(2 * sums[:, 0], sums[:, 1] + sums[:, 2])

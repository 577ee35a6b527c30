"""Metrics over many items of answers that name something: sets of classes, and times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from proctor.core import Metric
from proctor.metrics.corpus import ItemSums, MetricEstimate, check_lengths, error_sums, estimates_of, share_of
from proctor.stats import Groups, Resampling

JACCARD = Metric("jaccard", "Jaccard index", percent=True, formats=("classes",))
SET_PRECISION = Metric("class_precision", "Precision of a class", percent=True, formats=("classes",))
SET_RECALL = Metric("class_recall", "Recall of a class", percent=True, formats=("classes",))
SET_F1 = Metric("class_f1", "F1 of a class", percent=True, formats=("classes",))
SET_METRICS = (JACCARD, SET_PRECISION, SET_RECALL, SET_F1)


def set_estimates(
    references: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str] | None],
    groups: Groups,
    plan: Resampling = Resampling(),
) -> list[MetricEstimate]:
    """The mean Jaccard index of the answers, then precision, recall and F1 of every class that occurs.

    Jaccard: what both name over what either names; two empty sets agree wholly (1), None (late, missing,
    unreadable) agrees with nothing (0) and names no class (Jaccard 1901; for sets of labels: Tsoumakas and
    Katakis 2007, International Journal of Data Warehousing and Mining 3(3):1). Per class, with TP, FP and FN
    over all answers: precision TP/(TP+FP), recall TP/(TP+FN), F1 2TP/(2TP+FP+FN) (van Rijsbergen 1979,
    Information Retrieval, chapter 7).

    Edges: no items: Jaccard None and no class; a class never named has no precision, one never there no
    recall. Raises `InputError` where lengths differ.

    >>> marks = set_estimates([["clip"], []], [["clip", "mesh"], []], ["a", "b"])
    >>> [(mark.metric.name, mark.part, mark.estimate.value) for mark in marks][:3]
    [('jaccard', '', 0.75), ('class_precision', 'clip', 1.0), ('class_recall', 'clip', 1.0)]
    """
    check_lengths("sets", references, predictions, groups)
    return estimates_of(set_sums(references, predictions), groups, plan)


def set_sums(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str] | None], wrong: Sequence[bool] = ()
) -> list[ItemSums]:
    """What `set_estimates` sums up. `wrong` answers are read as wrong as can be: as those that name every class but
    those that are there."""
    truths = [frozenset(one) for one in references]
    said = [None if one is None else frozenset(one) for one in predictions]
    classes = frozenset().union(*truths, *(answer or () for answer in said))
    for row in np.flatnonzero(wrong):
        said[int(row)] = classes - truths[int(row)] or None
    pairs = list(zip(truths, said, strict=True))
    found = [ItemSums(JACCARD, np.array([_jaccard(*pair) for pair in pairs], dtype=np.float64))]
    for name in sorted(classes):
        both = [(name in truth, answer is not None and name in answer) for truth, answer in pairs]
        columns = np.array(
            [(true and named, named and not true, true and not named) for true, named in both], np.float64
        )
        found += [ItemSums(metric, columns, statistic, name) for metric, statistic in _PER_CLASS]
    return found


def _jaccard(truth: frozenset[str], answer: frozenset[str] | None) -> float:
    if answer is None:
        return 0.0
    either = truth | answer
    return len(truth & answer) / len(either) if either else 1.0


_PER_CLASS = (
    (SET_PRECISION, share_of((1, 0, 0), (1, 1, 0))),
    (SET_RECALL, share_of((1, 0, 0), (1, 0, 1))),
    (SET_F1, share_of((2, 0, 0), (2, 1, 1))),
)
"""Of right, wrongly named and not named."""


TOLERANCES_S = (1.0, 5.0, 10.0, 30.0, 60.0)

TIME_ERROR = Metric(
    "time_error",
    "Mean absolute error of matched times (s)",
    high=float("inf"),
    higher_is_better=False,
    formats=("timestamps",),
)
TIME_RECALL = Metric("time_recall", "Times found", percent=True, formats=("timestamps",))
TIME_PRECISION = Metric("time_precision", "Named times that are right", percent=True, formats=("timestamps",))
TIME_F1 = Metric("time_f1", "F1 of times", percent=True, formats=("timestamps",))
TIME_METRICS = (TIME_ERROR, TIME_RECALL, TIME_PRECISION, TIME_F1)


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


def time_estimates(
    references: Sequence[Sequence[float]],
    predictions: Sequence[Sequence[float] | None],
    groups: Groups,
    *,
    tolerances: Sequence[float] = TOLERANCES_S,
    spans: Sequence[tuple[float, float] | None] | None = None,
    plan: Resampling = Resampling(),
) -> list[MetricEstimate]:
    """The mean absolute error of matched times (over all, and over the answered ones), then recall, precision and F1 at
    every tolerance.

    Each answer's times are matched one to one with its reference's (`match_times`). The error is the mean
    over answers of the mean error of their pairs, matched without a limit (mean absolute error: Willmott
    and Matsuura 2005, Climate Research 30:79). An answer without a time is as far off as can be within what was shown:
    `spans` are its start and end for each question; without them there is only the error of the answered ones, with
    the share that is not answered. Recall is found times over the references' times, precision found over named, F1
    twice found over both, all summed up over answers (micro-averages: van Rijsbergen 1979, Information
    Retrieval, chapter 7); None (late, missing, unreadable) names no time and finds none.

    Edges: no items: values None. Raises `InputError` where lengths differ.

    >>> marks = time_estimates([[10], [20, 40]], [[12], [41]], ["a", "b"], tolerances=(1, 5))
    >>> [(mark.metric.name, mark.part, round(mark.estimate.value, 3)) for mark in marks[:4]]
    [('time_error', '', 1.5), ('time_error', 'answered only', 1.5), ('unanswered', '', 0.0), ('time_recall', '1 s', 0.333)]
    """
    check_lengths("times", references, predictions, groups)
    return estimates_of(time_sums(references, predictions, tolerances, spans), groups, plan)


def time_sums(
    references: Sequence[Sequence[float]],
    predictions: Sequence[Sequence[float] | None],
    tolerances: Sequence[float] = TOLERANCES_S,
    spans: Sequence[tuple[float, float] | None] | None = None,
    wrong: Sequence[bool] = (),
) -> list[ItemSums]:
    """What `time_estimates` sums up. `wrong` answers are read as wrong as can be: as far off as those without a time,
    and as if they named as many wrong times as the reference has, one at least."""
    predictions = [None if bad else one for one, bad in zip_longest(predictions, wrong)]
    pairs = [(truth, list(one or ())) for truth, one in zip(references, predictions, strict=True)]
    shown = [None] * len(references) if spans is None else spans
    worst = np.array([_worst_time(*pair) for pair in zip(references, shown, strict=True)], dtype=np.float64)
    found = error_sums(TIME_ERROR, np.array([_error(*pair) for pair in pairs], dtype=np.float64), worst)
    for tolerance in tolerances:
        counts = [(len(match_times(truth, times, tolerance)), len(truth), len(times)) for truth, times in pairs]
        columns = np.array(counts, dtype=np.float64).reshape(len(counts), 3)
        for row in np.flatnonzero(wrong):
            columns[row, 2] = max(1, len(references[int(row)]))
        found += [ItemSums(metric, columns, statistic, f"{tolerance:g} s") for metric, statistic in _PER_TOLERANCE]
    return found


def _error(truth: Sequence[float], times: Sequence[float]) -> float:
    pairs = match_times(truth, times)
    return float(np.mean([abs(truth[i] - times[j]) for i, j in pairs])) if pairs else np.nan


def _worst_time(truth: Sequence[float], span: tuple[float, float] | None) -> float:
    """The mean over the reference's times of how far a time within the span can be from each."""
    if span is None or not len(truth):
        return np.nan
    return float(np.mean([max(time - span[0], span[1] - time) for time in truth]))


_PER_TOLERANCE = (
    (TIME_RECALL, share_of((1, 0, 0), (0, 1, 0))),
    (TIME_PRECISION, share_of((1, 0, 0), (0, 0, 1))),
    (TIME_F1, share_of((2, 0, 0), (0, 1, 1))),
)
"""Of times found, of the reference, and named."""

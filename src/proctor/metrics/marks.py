"""Marks beyond right and wrong: how far off counts, times and sets are, and what chance would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import JsonValue

from proctor.core import InputError, Metric
from proctor.stats import Estimate, Floats, Groups, Resampling, mean_interval, ratio, sums_interval


@dataclass(frozen=True, slots=True)
class MetricEstimate:
    """One number: what it is, its estimate, and of what part it is (a class, a tolerance), if of one.

    >>> MetricEstimate(Metric("mae", "Mean absolute error"), Estimate(0.5, 0.2, 0.9, 20, 4)).part
    ''
    """

    metric: Metric
    estimate: Estimate
    part: str = ""


ANSWERED_ONLY = "answered only"
"""The part of an error that leaves missing answers out."""

UNANSWERED = Metric("unanswered", "Without a readable answer", higher_is_better=False, percent=True)


def error_marks(
    metric: Metric, errors: Floats, worst: Floats, groups: Groups, plan: Resampling = Resampling()
) -> list[MetricEstimate]:
    """The mean error over all questions, that over the answered ones alone, and the share that is not answered.

    `errors` are NaN where there is no answer (late, missing, unreadable); such a question takes its `worst` error, so
    that leaving out hard ones is no advantage. Where an unanswered question has no worst (NaN), there is no mean over
    all questions, and the two other marks stand alone.
    """
    there = ~np.isnan(errors)
    whole = np.where(there, errors, worst)
    named = [group for group, kept in zip(groups, there, strict=True) if kept]
    alone = MetricEstimate(metric, mean_interval(errors[there], named, plan.within(0, np.inf)), ANSWERED_ONLY)
    marks = [alone, MetricEstimate(UNANSWERED, mean_interval(~there, groups, plan.within(0, 1)))]
    if np.isnan(whole).any():
        return marks
    return [MetricEstimate(metric, mean_interval(whole, groups, plan.within(0, np.inf))), *marks]


COUNT_COST = Metric(
    "normalised_cost",
    "Expected cost against the best constant",
    high=float("inf"),
    higher_is_better=False,
    formats=("count",),
)
COUNT_ERROR = Metric(
    "absolute_error", "Mean absolute error", high=float("inf"), higher_is_better=False, formats=("count",)
)
WITHIN_ONE = Metric("within_one", "Within one", percent=True, formats=("count",))
COUNT_METRICS = (COUNT_COST, COUNT_ERROR, WITHIN_ONE)


def count_marks(
    references: Sequence[float], predictions: Sequence[float | None], groups: Groups, plan: Resampling = Resampling()
) -> list[MetricEstimate]:
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

    >>> marks = count_marks([0, 2, 4, 2], [0, 3, None, 2], ["a", "b", "c", "d"], Resampling(draws=100))
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
        MetricEstimate(COUNT_COST, sums_interval(columns, groups, _ratio, plan=plan.within(0, np.inf))),
        *error_marks(COUNT_ERROR, error, _worst(truth), groups, plan=plan),
        MetricEstimate(WITHIN_ONE, mean_interval(there & (error <= 1), groups, plan.within(0, 1))),
    ]


def _worst(truth: Floats) -> Floats:
    """For each reference how far the farthest one is."""
    return np.maximum(truth - truth.min(), truth.max() - truth) if len(truth) else truth


def _median(truth: Floats) -> float:
    """A value that is itself a reference, since answers are whole numbers: the lower median."""
    return float(np.sort(truth)[(len(truth) - 1) // 2]) if len(truth) else 0.0


def _ratio(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 1])


BALANCED = Metric("balanced_accuracy", "Balanced accuracy", percent=True, formats=("binary", "choice"))
MCC = Metric("mcc", "Matthews correlation", low=-1.0, formats=("binary", "choice"))
NOMINAL_METRICS = (BALANCED, MCC)


def nominal_marks(
    references: Sequence[JsonValue], predictions: Sequence[JsonValue], groups: Groups, plan: Resampling = Resampling()
) -> list[MetricEstimate]:
    """Balanced accuracy and Matthews' correlation coefficient, in this order.

    Balanced accuracy is the mean over the classes of the references of each one's recall (Brodersen et al. 2010,
    International Conference on Pattern Recognition, 3121). Matthews' correlation in its form for several
    classes is R_K of Gorodkin (2004, Computational Biology and Chemistry 28:367): with the table of
    references and predictions, (c · s − Σ t_k p_k) / √((s² − Σ p_k²)(s² − Σ t_k²)), c right ones of s, t_k
    references and p_k predictions of class k; about 0 for guessing, 1 at best. None as a prediction (late,
    missing, unreadable) is a class of its own, always wrong. In a sample that lacks a class of the references
    the balanced accuracy is the mean over the classes that it has.

    Edges: no items: values None; one class alone in references, or in predictions: no correlation.
    Raises `InputError` where lengths differ.

    >>> marks = nominal_marks([True, True, True, False], [True, True, True, True], list("abcd"), Resampling(draws=100))
    >>> [(mark.metric.name, mark.estimate.value) for mark in marks]
    [('balanced_accuracy', 0.5), ('mcc', None)]
    """
    if not len(references) == len(predictions) == len(groups):
        found = f"{len(references)}, {len(predictions)} and {len(groups)}"
        raise InputError(None, "answers", found=found, expected="as many references as predictions and groups")
    names = sorted({str(one) for one in (*references, *predictions) if one is not None})
    place = {name: number for number, name in enumerate(names)}
    k = len(names) + 1  # the last is: no answer
    columns = np.zeros((len(references), k * k))
    for row, (truth, said) in enumerate(zip(references, predictions, strict=True)):
        answered = place[str(said)] if said is not None else k - 1
        columns[row, place[str(truth)] * k + answered] = 1
    outcomes = [  # of a class: right, and wrong in any way
        [[own * k + own], [own * k + said for said in range(k) if said != own]] for own in range(k)
    ]
    return [
        MetricEstimate(BALANCED, sums_interval(columns, groups, _balanced(k), outcomes, plan=plan.within(0, 1))),
        MetricEstimate(MCC, sums_interval(columns, groups, _matthews(k), plan=plan.within(-1, 1))),
    ]


def _balanced(k: int) -> Callable[[Floats], Floats]:
    def statistic(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), k, k)
        there = tables.sum(axis=2)
        right = np.diagonal(tables, axis1=1, axis2=2)
        recall = np.divide(right, there, out=np.zeros_like(there), where=there > 0)
        classes = (there > 0).sum(axis=1)
        return ratio(recall.sum(axis=1), classes.astype(np.float64))

    return statistic


def _matthews(k: int) -> Callable[[Floats], Floats]:
    def statistic(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), k, k)
        truth, said = tables.sum(axis=2), tables.sum(axis=1)
        right, s = np.trace(tables, axis1=1, axis2=2), truth.sum(axis=1)
        spread = (s**2 - (said**2).sum(axis=1)) * (s**2 - (truth**2).sum(axis=1))
        return ratio(right * s - (truth * said).sum(axis=1), np.sqrt(spread))

    return statistic


WITHIN_POINTS = 5.0
"""Percentage points within which an answer counts as near: the FOCUS toolkit's tolerance."""

PERCENTAGE_ERROR = Metric(
    "percentage_error",
    "Mean absolute error (percentage points)",
    high=float("inf"),
    higher_is_better=False,
    formats=("percentage",),
)
WITHIN = Metric("within_five_points", "Within five points", percent=True, formats=("percentage",))
PERCENTAGE_METRICS = (PERCENTAGE_ERROR, WITHIN)


def percentage_marks(
    references: Sequence[float], predictions: Sequence[float | None], groups: Groups, plan: Resampling = Resampling()
) -> list[MetricEstimate]:
    """The mean absolute error in points (Willmott and Matsuura 2005, Climate Research 30:79), over all questions and
    over the answered ones (`error_marks`), and the share within five points.

    An answer that is None (late, missing, unreadable) is as wrong as one from 0 to 100 can be: the larger of the
    reference and of 100 less the reference; and it is not within five points.

    Edges: no items: values None. Raises `InputError` where lengths differ.

    >>> marks = percentage_marks([20, 50, 90], [24, None, 70], ["a", "b", "c"], Resampling(draws=100))
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
    share = mean_interval(near, groups, plan.within(0, 1))
    return [*error_marks(PERCENTAGE_ERROR, error, worst, groups, plan=plan), MetricEstimate(WITHIN, share)]


JACCARD = Metric("jaccard", "Jaccard index", percent=True, formats=("classes",))
SET_PRECISION = Metric("class_precision", "Precision of a class", percent=True, formats=("classes",))
SET_RECALL = Metric("class_recall", "Recall of a class", percent=True, formats=("classes",))
SET_F1 = Metric("class_f1", "F1 of a class", percent=True, formats=("classes",))
SET_METRICS = (JACCARD, SET_PRECISION, SET_RECALL, SET_F1)


def set_marks(
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

    >>> marks = set_marks([["clip"], []], [["clip", "mesh"], []], ["a", "b"])
    >>> [(mark.metric.name, mark.part, mark.estimate.value) for mark in marks][:3]
    [('jaccard', '', 0.75), ('class_precision', 'clip', 1.0), ('class_recall', 'clip', 1.0)]
    """
    if not len(references) == len(predictions) == len(groups):
        found = f"{len(references)}, {len(predictions)} and {len(groups)}"
        raise InputError(None, "sets", found=found, expected="as many references as predictions and groups")
    truths = [frozenset(one) for one in references]
    said = [None if one is None else frozenset(one) for one in predictions]
    agreement = [_jaccard(truth, answer) for truth, answer in zip(truths, said, strict=True)]
    marks = [MetricEstimate(JACCARD, mean_interval(agreement, groups, plan.within(0, 1)))]
    for name in sorted(frozenset().union(*truths, *(answer or () for answer in said))):
        columns = np.array(
            [
                (name in truth and named, named and name not in truth, name in truth and not named)
                for truth, answer in zip(truths, said, strict=True)
                for named in [answer is not None and name in answer]
            ],
            dtype=np.float64,
        )
        for metric, statistic in _PER_CLASS:
            marks.append(
                MetricEstimate(metric, sums_interval(columns, groups, statistic, plan=plan.within(0, 1)), name)
            )
    return marks


def _jaccard(truth: frozenset[str], answer: frozenset[str] | None) -> float:
    if answer is None:
        return 0.0
    either = truth | answer
    return len(truth & answer) / len(either) if either else 1.0


def _precision(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 0] + sums[:, 1])


def _recall(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 0] + sums[:, 2])


def _f1(sums: Floats) -> Floats:
    return ratio(2 * sums[:, 0], 2 * sums[:, 0] + sums[:, 1] + sums[:, 2])


_PER_CLASS: tuple[tuple[Metric, Callable[[Floats], Floats]], ...] = (
    (SET_PRECISION, _precision),
    (SET_RECALL, _recall),
    (SET_F1, _f1),
)


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


def time_marks(
    references: Sequence[Sequence[float]],
    predictions: Sequence[Sequence[float] | None],
    groups: Groups,
    *,
    tolerances: Sequence[float] = TOLERANCES_S,
    spans: Sequence[tuple[float, float] | None] | None = None,
    plan: Resampling = Resampling(),
) -> list[MetricEstimate]:
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
    worst = np.array([_worst_time(*pair) for pair in zip(references, shown, strict=True)], dtype=np.float64)
    marks = error_marks(TIME_ERROR, errors, worst, groups, plan=plan)
    for tolerance in tolerances:
        hits = [len(match_times(truth, times, tolerance)) for truth, times in zip(references, said, strict=True)]
        counts = [(hit, len(truth), len(times)) for hit, truth, times in zip(hits, references, said, strict=True)]
        columns = np.array(counts, dtype=np.float64).reshape(len(counts), 3)
        for metric, statistic in ((TIME_RECALL, _time_recall), (TIME_PRECISION, _time_precision), (TIME_F1, _time_f1)):
            one = sums_interval(columns, groups, statistic, plan=plan.within(0, 1))
            marks.append(MetricEstimate(metric, one, f"{tolerance:g} s"))
    return marks


def _error(truth: Sequence[float], times: Sequence[float]) -> float:
    pairs = match_times(truth, times)
    return float(np.mean([abs(truth[i] - times[j]) for i, j in pairs])) if pairs else np.nan


def _worst_time(truth: Sequence[float], span: tuple[float, float] | None) -> float:
    """The mean over the reference's times of how far a time within the span can be from each."""
    if span is None or not len(truth):
        return np.nan
    return float(np.mean([max(time - span[0], span[1] - time) for time in truth]))


def _time_recall(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 1])


def _time_precision(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 2])


def _time_f1(sums: Floats) -> Floats:
    return ratio(2 * sums[:, 0], sums[:, 1] + sums[:, 2])

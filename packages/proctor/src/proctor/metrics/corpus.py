"""Metrics over many items: counts, percentages, classes, scales, sets and times.

Each metric consists of columns that are summed over items and a statistic of the sums (`ItemSums`), from which its
value and clustered interval are computed. An answer of None is late, missing or unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import InputError, Metric
from proctor.stats import Estimate, Floats, Groups, Resampling, Share, mean_interval, ratio, sums_interval


@dataclass(frozen=True, slots=True)
class MetricEstimate:
    """The estimate of a metric; `part` is its class, tolerance or scale, "" for the whole.

    >>> MetricEstimate(Metric("mae", "Mean absolute error"), Estimate(0.5, 0.2, 0.9, 20, 4)).part
    ''
    """

    metric: Metric
    estimate: Estimate
    part: str = ""


@dataclass(frozen=True)
class ItemSums:
    """A metric with its sufficient statistics.

    `columns` are summed over items, and `statistic` maps each row of sums to a number. Without a statistic the metric
    is the mean of its only column. Items with NaN are excluded. `outcomes` are the `trials` of `sums_interval`. If the
    statistic is a `Share`, the estimate's `n` is the number of its trials (answers that name the class, for a precision),
    and its `groups` are those with a trial.
    """

    metric: Metric
    columns: Floats
    statistic: Callable[[Floats], Floats] | None = None
    part: str = ""
    outcomes: Sequence[Sequence[Sequence[int]]] = ()

    @property
    def named(self) -> Metric:
        """The metric, with the part in its name and label if it has one.

        >>> ItemSums(UNANSWERED, np.zeros(1), part="class a").named.name
        'unanswered:class a'
        """
        if not self.part:
            return self.metric
        return replace(self.metric, name=f"{self.metric.name}:{self.part}", label=f"{self.metric.label}, {self.part}")

    def estimate(self, groups: Groups, plan: Resampling = Resampling()) -> MetricEstimate:
        """The value with its interval, clustered by group and within the metric's range. Raises `InputError` for
        unequal lengths."""
        _check_lengths("groups", self.columns, groups)
        within, included = plan.within(self.metric.low, self.metric.high), self.there
        columns, kept = (
            self.columns[included],
            [group for group, inside in zip(groups, included, strict=True) if inside],
        )
        if self.statistic is None:
            result = mean_interval(columns, kept, within)
        else:
            result = sums_interval(columns, kept, self.statistic, self.outcomes, plan=within)
        return MetricEstimate(self.metric, result, self.part)

    @property
    def there(self) -> NDArray[np.bool_]:
        """Whether an item is included, that is, has no NaN."""
        return np.asarray(~np.isnan(self.columns).any(axis=tuple(range(1, self.columns.ndim))), dtype=np.bool_)


def estimates_of(sums: Iterable[ItemSums], groups: Groups, plan: Resampling = Resampling()) -> list[MetricEstimate]:
    """The estimate of each metric, with intervals clustered by group.

    >>> [one.estimate.value for one in estimates_of(count_sums([0, 2], [0, 3]), ["a", "b"])][:2]
    [0.5, 0.5]
    """
    return [metric.estimate(groups, plan) for metric in sums]


def _check_lengths(what: str, first: Sequence[object] | Floats, second: Sequence[object] | Groups) -> None:
    if len(first) != len(second):
        raise InputError(what, found=f"{len(second)}", expected=f"{len(first)}, one for each item")


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


UNANSWERED = Metric(
    "unanswered",
    "Without a readable answer",
    higher_is_better=False,
    percent=True,
    formats=("count", "percentage", "timestamps"),
)


def _error_sums(metric: Metric, errors: Floats, worst: Floats) -> list[ItemSums]:
    """The mean error over all questions, the mean error over answered questions, and the share of unanswered questions.

    `errors` are NaN without an answer; the mean over all questions then uses the `worst` error, so that skipping hard
    questions is no advantage. If a worst error is unknown (NaN), there is no mean over all questions.
    """
    there = ~np.isnan(errors)
    every = np.where(there, errors, worst)
    sums = [ItemSums(metric, errors, part="answered only"), ItemSums(UNANSWERED, (~there).astype(np.float64))]
    return sums if np.isnan(every).any() else [ItemSums(metric, every), *sums]


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


def count_sums(references: Sequence[float], predictions: Sequence[float | None]) -> list[ItemSums]:
    """Normalised expected cost, mean absolute error (with and without unanswered questions), and accuracy within one.

    The cost of an answer is |prediction − reference|. The *normalised expected cost* is the mean cost divided by the
    mean cost of the best constant answer, the median of the references: 0 is perfect, 1 is as good as the constant
    (Ferrer 2022, arXiv:2209.05355; recommended for ordinal classes by Metrics Reloaded, Maier-Hein et al. 2024, Nature
    Methods 21:195). The constant is the same in all bootstrap samples. An answer of None has the cost of the farthest
    reference, also in the mean absolute error (Willmott and Matsuura 2005, Climate Research 30:79), and is not within
    one (accuracy within n: Gaudette and Japkowicz 2009, Canadian Conference on Artificial Intelligence, 207).

    Edges: values None without items; cost None if all references are equal. Raises `InputError` for unequal lengths.

    >>> scores = estimates_of(count_sums([0, 2, 4, 2], [0, 3, None, 2]), ["a", "b", "c", "d"], Resampling(draws=100))
    >>> [(score.metric.name, score.estimate.value, score.estimate.n) for score in scores]
    [('normalised_cost', 1.25, 4), ('absolute_error', 1.25, 4), ('absolute_error', 0.3333333333333333, 3), ('unanswered', 0.25, 4), ('within_one', 0.75, 4)]
    """
    _check_lengths("counts", references, predictions)
    truth, given = np.asarray(references, dtype=np.float64), _numbers(predictions)
    there = np.isfinite(given)
    error = np.where(there, np.abs(given - truth), np.nan)
    worst, median = truth, 0.0
    if len(truth):
        worst = np.maximum(truth - truth.min(), truth.max() - truth)
        median = float(
            np.sort(truth)[(len(truth) - 1) // 2]
        )  # the lower median, which is a reference and so an integer
    columns = np.stack([np.where(there, error, worst), np.abs(truth - median)], axis=1)
    cost = ItemSums(COUNT_COST, columns, lambda sums: ratio(sums[:, 0], sums[:, 1]))
    near = ItemSums(WITHIN_ONE, (there & (error <= 1)).astype(np.float64))
    return [cost, *_error_sums(COUNT_ERROR, error, worst), near]


WITHIN_POINTS = 5.0
"""The tolerance in percentage points of the FOCUS toolkit."""

PERCENTAGE_ERROR = Metric(
    "percentage_error",
    "Mean absolute error (percentage points)",
    high=float("inf"),
    higher_is_better=False,
    formats=("percentage",),
)
WITHIN = Metric("within_five_points", "Within five points", percent=True, formats=("percentage",))
PERCENTAGE_METRICS = (PERCENTAGE_ERROR, WITHIN)


def percentage_sums(references: Sequence[float], predictions: Sequence[float | None]) -> list[ItemSums]:
    """The mean absolute error in percentage points (Willmott and Matsuura 2005, Climate Research 30:79), over all
    questions and over answered questions, and the share within five points.

    An answer of None has the largest possible error from 0 to 100, max(reference, 100 − reference), and is not within
    five points.

    Edges: values None without items. Raises `InputError` for unequal lengths.

    >>> scores = estimates_of(percentage_sums([20, 50, 90], [24, None, 70]), ["a", "b", "c"], Resampling(draws=100))
    >>> [(score.metric.name, score.part, round(score.estimate.value, 3), score.estimate.n) for score in scores[:2]]
    [('percentage_error', '', 24.667, 3), ('percentage_error', 'answered only', 12.0, 2)]
    """
    _check_lengths("percentages", references, predictions)
    truth = np.asarray(references, dtype=np.float64)
    error = np.abs(_numbers(predictions) - truth)
    near = (np.nan_to_num(error, nan=np.inf) <= WITHIN_POINTS).astype(np.float64)
    return [*_error_sums(PERCENTAGE_ERROR, error, np.maximum(truth, 100 - truth)), ItemSums(WITHIN, near)]


BALANCED = Metric("balanced_accuracy", "Balanced accuracy", percent=True, formats=("binary", "choice", "preference"))
MCC = Metric("mcc", "Matthews correlation", low=-1.0, formats=("binary", "choice", "preference"))
NOMINAL_METRICS = (BALANCED, MCC)


def nominal_sums(
    references: Sequence[JsonValue], predictions: Sequence[JsonValue], wrong: Sequence[bool] = ()
) -> list[ItemSums]:
    """Balanced accuracy and Matthews' correlation coefficient.

    Balanced accuracy is the mean recall over the classes of the references (Brodersen et al. 2010, International
    Conference on Pattern Recognition, 3121). Matthews' correlation coefficient for several classes is R_K of Gorodkin
    (2004, Computational Biology and Chemistry 28:367), (c · s − Σ t_k p_k) / √((s² − Σ p_k²)(s² − Σ t_k²)) with c right
    predictions of s, and t_k references and p_k predictions of class k; it is about 0 for guessing, and at most 1. The
    prediction None is a separate class, which is always wrong. An answer that is `wrong` counts as the most frequent
    other class. In samples without a class of the references, balanced accuracy is the mean over the present classes.

    Edges: values None without items; correlation None if references or predictions have only one class. Raises
    `InputError` for unequal lengths.

    >>> scores = estimates_of(nominal_sums([True, True, True, False], [True] * 4), list("abcd"), Resampling(draws=100))
    >>> [(score.metric.name, score.estimate.value) for score in scores]
    [('balanced_accuracy', 0.5), ('mcc', None)]
    """
    _check_lengths("answers", references, predictions)
    names = sorted({str(label) for label in (*references, *predictions) if label is not None})
    position = {name: number for number, name in enumerate(names)}
    k = len(names) + 1  # the last class is "no answer"
    truth = np.array([position[str(label)] for label in references], dtype=np.int64)
    answered = np.array([k - 1 if label is None else position[str(label)] for label in predictions], dtype=np.int64)
    counts = np.bincount(truth, minlength=k)
    for row in np.flatnonzero(wrong):
        others = np.where(np.arange(k) == truth[row], -1, counts)
        answered[row] = int(np.argmax(others)) if others.max() > 0 else k - 1
    columns = np.zeros((len(truth), k * k))
    columns[np.arange(len(truth)), truth * k + answered] = 1
    outcomes = [  # outcomes of a class: right, and each way of being wrong
        [[own * k + own], [own * k + other for other in range(k) if other != own]] for own in range(k)
    ]
    balanced = ItemSums(BALANCED, columns, _balanced(k), outcomes=outcomes)
    return [balanced, ItemSums(MCC, columns, _matthews(k), outcomes=outcomes)]


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
        truth, predicted = tables.sum(axis=2), tables.sum(axis=1)
        right, s = np.trace(tables, axis1=1, axis2=2), truth.sum(axis=1)
        spread = (s**2 - (predicted**2).sum(axis=1)) * (s**2 - (truth**2).sum(axis=1))
        return ratio(right * s - (truth * predicted).sum(axis=1), np.sqrt(spread))

    return statistic


WEIGHTED_KAPPA = Metric("weighted_kappa", "Quadratic weighted kappa", low=-1.0, formats=("scale",))
SCALE_METRICS = (WEIGHTED_KAPPA,)


def scale_sums(
    references: Sequence[float],
    predictions: Sequence[float | None],
    scales: Sequence[tuple[float, float]],
    *,
    named: bool = False,
) -> list[ItemSums]:
    """Cohen's kappa with quadratic weights (Cohen 1968, Psychological Bulletin 70:213): 1 − the mean squared error
    divided by the expected one for independent answers with the same marginal distributions. 1 is perfect, 0 is chance.

    `scales` are the lowest and highest level of each question. Each scale has its own kappa, with `part` "1 to 5" (a
    single scale has no part unless `named`). An answer of None counts as the end of the scale that is farther from the
    reference, so that skipping hard questions is no advantage.

    Edges: empty without items; kappa None if all references and answers are on one level. Raises `InputError` for
    unequal lengths.

    >>> scores = estimates_of(scale_sums([1, 3, 5], [1, 4, None], [(1, 5)] * 3), ["a", "b", "c"])
    >>> [(score.metric.name, score.part, round(score.estimate.value, 3)) for score in scores]
    [('weighted_kappa', '', 0.0)]
    """
    _check_lengths("levels", references, predictions)
    truth, given = np.asarray(references, dtype=np.float64), _numbers(predictions)
    low, high = np.asarray(scales, dtype=np.float64).reshape(-1, 2).T
    given = np.where(np.isnan(given), np.where(truth - low > high - truth, low, high), given)
    columns = np.stack([np.ones(len(truth)), truth, given, truth**2 + given**2, truth * given], axis=1)
    sums = []
    for lowest, highest in sorted(set(scales)):
        own = (low == lowest) & (high == highest)
        part = f"{lowest:g} to {highest:g}" if named or len(set(scales)) > 1 else ""
        sums.append(ItemSums(WEIGHTED_KAPPA, np.where(own[:, None], columns, np.nan), _kappa, part))
    return sums


def _kappa(sums: Floats) -> Floats:
    """1 − Σ(x − y)² / (Σ(x² + y²) − 2 Σx Σy / n), from rows of n, Σx, Σy, Σ(x² + y²) and Σxy."""
    n, x, y, squares, products = sums.T
    by_chance = squares - 2 * x * y / np.maximum(n, 1e-300)
    return 1 - ratio(squares - 2 * products, np.where(by_chance > 1e-9 * np.maximum(squares, 1), by_chance, 0.0))


JACCARD = Metric("jaccard", "Jaccard index", percent=True, formats=("classes",))
SET_PRECISION = Metric("class_precision", "Precision of a class", percent=True, formats=("classes",), per="named")
SET_RECALL = Metric("class_recall", "Recall of a class", percent=True, formats=("classes",), per="cases")
SET_F1 = Metric("class_f1", "F1 of a class", percent=True, formats=("classes",), per="named_or_cases")
SET_METRICS = (JACCARD, SET_PRECISION, SET_RECALL, SET_F1)

_PER_CLASS = (
    (SET_PRECISION, Share((1, 0, 0), (1, 1, 0))),
    (SET_RECALL, Share((1, 0, 0), (1, 0, 1))),
    (SET_F1, Share((1, 0, 0), (1, 1, 1), f1=True)),
)
"""The metrics of each class, from true positives, false positives and false negatives."""


def set_sums(
    references: Sequence[Sequence[str]], predictions: Sequence[Sequence[str] | None], wrong: Sequence[bool] = ()
) -> list[ItemSums]:
    """The mean Jaccard index of the answers, and precision, recall and F1 of each class that occurs.

    The Jaccard index is |intersection| / |union| (Jaccard 1901; for sets of labels: Tsoumakas and Katakis 2007,
    International Journal of Data Warehousing and Mining 3(3):1); it is 1 for two empty sets and 0 for None. Per class,
    with TP, FP and FN over all answers: precision TP/(TP+FP), recall TP/(TP+FN), F1 2TP/(2TP+FP+FN) (van Rijsbergen
    1979, Information Retrieval, chapter 7). None predicts no class. An answer that is `wrong` counts as if it predicted
    all classes except those of the reference.

    Edges: without items Jaccard is None and there are no classes; precision is None for a class that is never
    predicted, recall for one that is never in a reference. Raises `InputError` for unequal lengths.

    >>> scores = estimates_of(set_sums([["clip"], []], [["clip", "mesh"], []]), ["a", "b"])
    >>> [(score.metric.name, score.part, score.estimate.value) for score in scores][:3]
    [('jaccard', '', 0.75), ('class_precision', 'clip', 1.0), ('class_recall', 'clip', 1.0)]
    """
    _check_lengths("sets", references, predictions)
    truths = [frozenset(named) for named in references]
    given = [None if named is None else frozenset(named) for named in predictions]
    classes = frozenset().union(*truths, *(answer or () for answer in given))
    for row in np.flatnonzero(wrong):
        given[int(row)] = classes - truths[int(row)] or None
    pairs = list(zip(truths, given, strict=True))
    sums = [ItemSums(JACCARD, np.array([_jaccard(*pair) for pair in pairs], dtype=np.float64))]
    for name in sorted(classes):
        both = [(name in truth, answer is not None and name in answer) for truth, answer in pairs]
        columns = np.array(
            [(true and named, named and not true, true and not named) for true, named in both], np.float64
        )
        sums += [ItemSums(metric, columns, statistic, name) for metric, statistic in _PER_CLASS]
    return sums


def _jaccard(truth: frozenset[str], answer: frozenset[str] | None) -> float:
    if answer is None:
        return 0.0
    either = truth | answer
    return len(truth & answer) / len(either) if either else 1.0


TOLERANCES_S = (1.0, 5.0, 10.0, 30.0, 60.0)

TIME_ERROR = Metric(
    "time_error",
    "Mean absolute error of matched times (s)",
    high=float("inf"),
    higher_is_better=False,
    formats=("timestamps",),
)
TIME_RECALL = Metric("time_recall", "Times found", percent=True, formats=("timestamps",), per="times")
TIME_PRECISION = Metric(
    "time_precision", "Named times that are right", percent=True, formats=("timestamps",), per="times"
)
TIME_F1 = Metric("time_f1", "F1 of times", percent=True, formats=("timestamps",), per="times")
TIME_METRICS = (TIME_ERROR, TIME_RECALL, TIME_PRECISION, TIME_F1)

_PER_TOLERANCE = (
    (TIME_RECALL, Share((1, 0, 0), (0, 1, 0))),
    (TIME_PRECISION, Share((1, 0, 0), (0, 0, 1))),
    (TIME_F1, Share((1, 0, 0), (-1, 1, 1), f1=True)),
)
"""The metrics of each tolerance, from the numbers of times that are found, in the reference, and predicted."""


def match_times(
    reference: Sequence[float], prediction: Sequence[float], tolerance: float = float("inf")
) -> list[tuple[int, int]]:
    """One-to-one pairs (index in reference, index in prediction) of times at most `tolerance` seconds apart.

    The number of pairs is maximal, and among such matchings the sum of errors minimal (Hungarian method: Kuhn 1955,
    Naval Research Logistics Quarterly 2:83). Pairs are ordered by the index in the reference.

    >>> match_times([10, 20], [19, 11, 50], tolerance=5)
    [(0, 1), (1, 0)]
    >>> match_times([10, 14], [14, 18], tolerance=5)
    [(0, 0), (1, 1)]
    """
    if not len(reference) or not len(prediction):
        return []
    apart = np.abs(np.subtract.outer(np.asarray(reference, float), np.asarray(prediction, float)))
    # A pair beyond the tolerance costs more than all allowed pairs together.
    allowed = apart <= tolerance
    barred = 1.0 + min(len(reference), len(prediction)) * float(apart[allowed].max(initial=0.0))
    from scipy.optimize import linear_sum_assignment

    rows, positions = linear_sum_assignment(np.where(allowed, apart, barred))
    return [(int(row), int(position)) for row, position in zip(rows, positions, strict=True) if allowed[row, position]]


def time_sums(
    references: Sequence[Sequence[float]],
    predictions: Sequence[Sequence[float] | None],
    tolerances: Sequence[float] = TOLERANCES_S,
    spans: Sequence[tuple[float, float] | None] | None = None,
    wrong: Sequence[bool] = (),
) -> list[ItemSums]:
    """The mean absolute error of matched times (over all questions, and over answered questions), and recall, precision
    and F1 at each tolerance.

    The times of each answer are matched one to one with those of its reference (`match_times`). The error is the mean
    over answers of the mean error of their pairs, matched without a tolerance (mean absolute error: Willmott and
    Matsuura 2005, Climate Research 30:79). An answer without a time has the largest possible error within what was
    shown: `spans` are the start and end for each question. Without `spans` there is only the error over answered
    questions, with the share of unanswered ones. Recall is the number of matched times divided by that of the
    references, precision by that of the predictions, and F1 is 2 · matched / both, all summed over answers
    (micro-averages: van Rijsbergen 1979, Information Retrieval, chapter 7). None predicts no time. An answer that is
    `wrong` has no error either, and counts as if it predicted as many wrong times as the reference has, at least one.

    Edges: values None without items. Raises `InputError` for unequal lengths.

    >>> scores = estimates_of(time_sums([[10], [20, 40]], [[12], [41]], tolerances=(1, 5)), ["a", "b"])
    >>> [(score.metric.name, score.part, round(score.estimate.value, 3)) for score in scores[:4]]
    [('time_error', '', 1.5), ('time_error', 'answered only', 1.5), ('unanswered', '', 0.0), ('time_recall', '1 s', 0.333)]
    """
    _check_lengths("times", references, predictions)
    predictions = [None if bad else times for times, bad in zip_longest(predictions, wrong)]
    pairs = [(truth, list(times or ())) for truth, times in zip(references, predictions, strict=True)]
    shown = [None] * len(references) if spans is None else spans
    worst = np.array([_worst_time(*pair) for pair in zip(references, shown, strict=True)], dtype=np.float64)
    sums = _error_sums(TIME_ERROR, np.array([_time_error(*pair) for pair in pairs], dtype=np.float64), worst)
    for tolerance in tolerances:
        counts = [(len(match_times(truth, times, tolerance)), len(truth), len(times)) for truth, times in pairs]
        columns = np.array(counts, dtype=np.float64).reshape(len(counts), 3)
        for row in np.flatnonzero(wrong):
            columns[row, 2] = max(1, len(references[int(row)]))
        sums += [ItemSums(metric, columns, statistic, f"{tolerance:g} s") for metric, statistic in _PER_TOLERANCE]
    return sums


def _time_error(truth: Sequence[float], times: Sequence[float]) -> float:
    pairs = match_times(truth, times)
    return float(np.mean([abs(truth[i] - times[j]) for i, j in pairs])) if pairs else np.nan


def _worst_time(truth: Sequence[float], span: tuple[float, float] | None) -> float:
    """The mean over the reference's times of the largest distance within the span."""
    if span is None or not len(truth):
        return np.nan
    return float(np.mean([max(time - span[0], span[1] - time) for time in truth]))

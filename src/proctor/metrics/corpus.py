"""Metrics over many items beyond right and wrong: how far off counts, times and sets are, and what chance would do.

Each of them is a table of what is summed up over items, and a statistic of the sums (`ItemSums`), so that one function
gives its value and its clustered interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
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


@dataclass(frozen=True)
class ItemSums:
    """A metric by its sufficient statistics: `columns` holds for each item what is summed up, `statistic` makes one
    number of each row of sums. Without a statistic it is the mean of the one column. An item with NaN is no part of it.
    `outcomes` as `sums_interval` takes them."""

    metric: Metric
    columns: Floats
    statistic: Callable[[Floats], Floats] | None = None
    part: str = ""
    outcomes: Sequence[Sequence[Sequence[int]]] = ()

    @property
    def named(self) -> Metric:
        """The metric; that of a part has the part in its name and label.

        >>> ItemSums(UNANSWERED, np.zeros(1), part="class a").named.name
        'unanswered:class a'
        """
        if not self.part:
            return self.metric
        return replace(self.metric, name=f"{self.metric.name}:{self.part}", label=f"{self.metric.label}, {self.part}")

    def estimate(self, groups: Groups, plan: Resampling) -> MetricEstimate:
        """The value with its interval, clustered by group, within the metric's range."""
        within, there = plan.within(self.metric.low, self.metric.high), self.there
        columns, named = self.columns[there], [group for group, kept in zip(groups, there, strict=True) if kept]
        if self.statistic is None:
            return MetricEstimate(self.metric, mean_interval(columns, named, within), self.part)
        return MetricEstimate(
            self.metric, sums_interval(columns, named, self.statistic, self.outcomes, plan=within), self.part
        )

    @property
    def there(self) -> NDArray[np.bool_]:
        """The items that are part of it."""
        lacking = np.asarray(np.isnan(self.columns).any(axis=tuple(range(1, self.columns.ndim))), dtype=np.bool_)
        return ~lacking


def check_lengths(what: str, references: Sequence[object], predictions: Sequence[object], groups: Groups) -> None:
    """Raises `InputError` where lengths differ."""
    if not len(references) == len(predictions) == len(groups):
        found = f"{len(references)}, {len(predictions)} and {len(groups)}"
        raise InputError(what, found=found, expected="as many references as predictions and groups")


def estimates_of(sums: Iterable[ItemSums], groups: Groups, plan: Resampling) -> list[MetricEstimate]:
    return [one.estimate(groups, plan) for one in sums]


def share_of(part: Sequence[float], of: Sequence[float]) -> Callable[[Floats], Floats]:
    """One weighted sum of the columns over another."""
    return lambda sums: ratio(sums @ np.array(part, dtype=np.float64), sums @ np.array(of, dtype=np.float64))


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if one is None else one for one in values], dtype=np.float64)


ANSWERED_ONLY = "answered only"
"""The part of an error that leaves missing answers out."""

UNANSWERED = Metric(
    "unanswered",
    "Without a readable answer",
    higher_is_better=False,
    percent=True,
    formats=("count", "percentage", "timestamps"),
)


def error_sums(metric: Metric, errors: Floats, worst: Floats) -> list[ItemSums]:
    """The mean error over all questions, that over the answered ones alone, and the share that is not answered.

    `errors` are NaN where there is no answer (late, missing, unreadable); such a question takes its `worst` error, so
    that leaving out hard ones is no advantage. Where an unanswered question has no worst (NaN), there is no mean over
    all questions, and the two others stand alone.
    """
    there = ~np.isnan(errors)
    every = np.where(there, errors, worst)
    found = [ItemSums(metric, errors, part=ANSWERED_ONLY), ItemSums(UNANSWERED, (~there).astype(np.float64))]
    return found if np.isnan(every).any() else [ItemSums(metric, every), *found]


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


def count_estimates(
    references: Sequence[float], predictions: Sequence[float | None], groups: Groups, plan: Resampling = Resampling()
) -> list[MetricEstimate]:
    """Normalised expected cost, mean absolute error (with and without what is not answered) and the share within one,
    in this order.

    The cost of an answer is |prediction − reference|. The *normalised expected cost* is the mean cost over
    the mean cost of the best constant answer, the median of the references: 0 is perfect, 1 is what a system
    achieves that never looks (Ferrer 2022, arXiv:2209.05355; recommended for ordinal classes by Metrics
    Reloaded, Maier-Hein et al. 2024, Nature Methods 21:195). An answer that is None (late, missing, unreadable)
    costs what the farthest reference would, in the error as well, which stands beside that of the answered ones
    alone (Willmott and Matsuura 2005, Climate Research 30:79); None is not within one (accuracy within n:
    Gaudette and Japkowicz 2009, Canadian Conference on Artificial Intelligence, 207). The constant stays the same in
    every sample of the interval.

    Edges: no items: values None; references that are all the same leave the cost None.
    Raises `InputError` where lengths differ.

    >>> marks = count_estimates([0, 2, 4, 2], [0, 3, None, 2], ["a", "b", "c", "d"], Resampling(draws=100))
    >>> [(mark.metric.name, mark.estimate.value, mark.estimate.n) for mark in marks]
    [('normalised_cost', 1.25, 4), ('absolute_error', 1.25, 4), ('absolute_error', 0.3333333333333333, 3), ('unanswered', 0.25, 4), ('within_one', 0.75, 4)]
    """
    check_lengths("counts", references, predictions, groups)
    return estimates_of(count_sums(references, predictions), groups, plan)


def count_sums(references: Sequence[float], predictions: Sequence[float | None]) -> list[ItemSums]:
    """What `count_estimates` sums up."""
    truth, said = np.asarray(references, dtype=np.float64), _numbers(predictions)
    there = np.isfinite(said)
    error = np.where(there, np.abs(said - truth), np.nan)
    worst, median = truth, 0.0
    if len(truth):
        worst = np.maximum(truth - truth.min(), truth.max() - truth)
        median = float(np.sort(truth)[(len(truth) - 1) // 2])  # the lower one: itself a reference, so a whole number
    columns = np.stack([np.where(there, error, worst), np.abs(truth - median)], axis=1)
    cost = ItemSums(COUNT_COST, columns, share_of((1, 0), (0, 1)))
    near = ItemSums(WITHIN_ONE, (there & (error <= 1)).astype(np.float64))
    return [cost, *error_sums(COUNT_ERROR, error, worst), near]


BALANCED = Metric("balanced_accuracy", "Balanced accuracy", percent=True, formats=("binary", "choice", "preference"))
MCC = Metric("mcc", "Matthews correlation", low=-1.0, formats=("binary", "choice", "preference"))
NOMINAL_METRICS = (BALANCED, MCC)


def nominal_estimates(
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

    >>> marks = nominal_estimates([True, True, True, False], [True, True, True, True], list("abcd"), Resampling(draws=100))
    >>> [(mark.metric.name, mark.estimate.value) for mark in marks]
    [('balanced_accuracy', 0.5), ('mcc', None)]
    """
    check_lengths("answers", references, predictions, groups)
    return estimates_of(nominal_sums(references, predictions), groups, plan)


def nominal_sums(
    references: Sequence[JsonValue], predictions: Sequence[JsonValue], wrong: Sequence[bool] = ()
) -> list[ItemSums]:
    """What `nominal_estimates` sums up. `wrong` answers are read as wrong as can be: as the class that most of the other
    references have."""
    names = sorted({str(one) for one in (*references, *predictions) if one is not None})
    place = {name: number for number, name in enumerate(names)}
    k = len(names) + 1  # the last is: no answer
    truth = np.array([place[str(one)] for one in references], dtype=np.int64)
    answered = np.array([k - 1 if one is None else place[str(one)] for one in predictions], dtype=np.int64)
    counts = np.bincount(truth, minlength=k)
    for row in np.flatnonzero(wrong):
        others = np.where(np.arange(k) == truth[row], -1, counts)
        answered[row] = int(np.argmax(others)) if others.max() > 0 else k - 1
    columns = np.zeros((len(truth), k * k))
    columns[np.arange(len(truth)), truth * k + answered] = 1
    outcomes = [  # of a class: right, and wrong in any way
        [[own * k + own], [own * k + said for said in range(k) if said != own]] for own in range(k)
    ]
    balanced = ItemSums(BALANCED, columns, _balanced(k), outcomes=outcomes)
    return [balanced, ItemSums(MCC, columns, _matthews(k))]


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


WEIGHTED_KAPPA = Metric("weighted_kappa", "Quadratic weighted kappa", low=-1.0, formats=("scale",))
SCALE_METRICS = (WEIGHTED_KAPPA,)


def scale_estimates(
    references: Sequence[float],
    predictions: Sequence[float | None],
    scales: Sequence[tuple[float, float]],
    groups: Groups,
    plan: Resampling = Resampling(),
) -> list[MetricEstimate]:
    """Cohen's kappa with quadratic weights on a scale: 1 less the mean squared error over that of answers drawn from
    the same two distributions in any pairing (Cohen 1968, Psychological Bulletin 70:213); 1 at best, about 0 for
    guessing.

    `scales` are the lowest and the highest level of each question. Questions on different scales are not pooled: each
    scale has a kappa of its own, its `part` "1 to 5"; levels that nobody used keep their distance. An answer that is
    None (late, missing, unreadable) counts as the end of the scale that is farther from the reference, so that leaving
    out hard ones is no advantage.

    Edges: no items: nothing; all references and answers on one level: no kappa. Raises `InputError` where lengths
    differ.

    >>> marks = scale_estimates([1, 3, 5], [1, 4, None], [(1, 5)] * 3, ["a", "b", "c"])
    >>> [(mark.metric.name, mark.part, round(mark.estimate.value, 3)) for mark in marks]
    [('weighted_kappa', '', 0.0)]
    """
    check_lengths("levels", references, predictions, groups)
    return estimates_of(scale_sums(references, predictions, scales), groups, plan)


def scale_sums(
    references: Sequence[float],
    predictions: Sequence[float | None],
    scales: Sequence[tuple[float, float]],
    *,
    named: bool = False,
) -> list[ItemSums]:
    """What `scale_estimates` sums up; questions on other scales are no part of a scale's. A scale that stands alone has
    a name, too, where it is said to be one of several (`named`)."""
    truth, said = np.asarray(references, dtype=np.float64), _numbers(predictions)
    low, high = np.asarray(scales, dtype=np.float64).reshape(-1, 2).T
    said = np.where(np.isnan(said), np.where(truth - low > high - truth, low, high), said)
    columns = np.stack([np.ones(len(truth)), truth, said, truth**2 + said**2, truth * said], axis=1)
    found = []
    for least, most in sorted(set(scales)):
        own = (low == least) & (high == most)
        part = f"{least:g} to {most:g}" if named or len(set(scales)) > 1 else ""
        found.append(ItemSums(WEIGHTED_KAPPA, np.where(own[:, None], columns, np.nan), _kappa, part))
    return found


def _kappa(sums: Floats) -> Floats:
    """Of each row n, Σx, Σy, Σ(x² + y²) and Σxy: 1 − Σ(x − y)² / (Σ(x² + y²) − 2 Σx Σy / n)."""
    n, x, y, squares, products = sums.T
    by_chance = squares - 2 * x * y / np.maximum(n, 1e-300)
    return 1 - ratio(squares - 2 * products, np.where(by_chance > 1e-9 * np.maximum(squares, 1), by_chance, 0.0))


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


def percentage_estimates(
    references: Sequence[float], predictions: Sequence[float | None], groups: Groups, plan: Resampling = Resampling()
) -> list[MetricEstimate]:
    """The mean absolute error in points (Willmott and Matsuura 2005, Climate Research 30:79), over all questions and
    over the answered ones, and the share within five points.

    An answer that is None (late, missing, unreadable) is as wrong as one from 0 to 100 can be: the larger of the
    reference and of 100 less the reference; and it is not within five points.

    Edges: no items: values None. Raises `InputError` where lengths differ.

    >>> marks = percentage_estimates([20, 50, 90], [24, None, 70], ["a", "b", "c"], Resampling(draws=100))
    >>> [(mark.metric.name, mark.part, round(mark.estimate.value, 3), mark.estimate.n) for mark in marks[:2]]
    [('percentage_error', '', 24.667, 3), ('percentage_error', 'answered only', 12.0, 2)]
    """
    check_lengths("percentages", references, predictions, groups)
    return estimates_of(percentage_sums(references, predictions), groups, plan)


def percentage_sums(references: Sequence[float], predictions: Sequence[float | None]) -> list[ItemSums]:
    """What `percentage_estimates` sums up."""
    truth = np.asarray(references, dtype=np.float64)
    error = np.abs(_numbers(predictions) - truth)
    near = (np.nan_to_num(error, nan=np.inf) <= WITHIN_POINTS).astype(np.float64)
    return [*error_sums(PERCENTAGE_ERROR, error, np.maximum(truth, 100 - truth)), ItemSums(WITHIN, near)]

"""Means of a judge's scores, corrected by labels of a random part of the groups: prediction-powered estimates.

The judge scored all items, people labelled all items of the drawn groups. The estimate is the labels' mean, moved by `tuning`
times the difference between the judge's mean over all groups and over the drawn ones. It is unbiased however wrong the
judge is, since the groups were drawn with known probabilities; a judge that agrees with people makes it narrower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes, summed
from proctor.stats.special import stdtr, stdtrit

FEWEST_DRAWN = 6
"""Drawn groups below which no corrected estimate is given: a variance from fewer has too few degrees of freedom, and the
interval no longer covers as it says (see `bench/corrected.py`)."""

_FEWEST_IN_STRATUM = 2
_MOST_LEVERAGE = 0.8
_FEW_OFF_BOUND = 9
_AT_BOUND = 1e-9


@dataclass(frozen=True)
class CorrectedMean:
    """A corrected mean with its interval.

    `tuning` is the weight of the judge (λ of PPI++; 0: the labels alone), `error` the standard error with `df` degrees of
    freedom, `large_sample_error` the one without corrections for few groups, and p the two-sided p of a mean of 0.
    `labels_alone`, `labels_low` and `labels_high` come from the labels alone, `judge_alone` from the judge's scores of all
    items, and `correlation` is that of the group residuals of judge and labels (None without spread).

    >>> scores, labels = [4.0, 1, 8, 6, 3, 9, 2, 7, 5, 8, 1, 6], [3.5, 1, 8.5, 6, 2.5, 9] + [0] * 6
    >>> found = corrected_mean(scores, labels, range(12), [0.5] * 12, [True] * 6 + [False] * 6)
    >>> found.ci_low < found.value < found.ci_high, found.relative_width <= 1
    (True, True)
    """

    value: float
    ci_low: float
    ci_high: float
    p: float
    tuning: float
    error: float
    large_sample_error: float
    df: float
    labels_alone: float
    labels_low: float
    labels_high: float
    judge_alone: float
    correlation: float | None
    n: int
    labelled: int
    groups: int
    drawn: int

    @property
    def relative_width(self) -> float:
        """The width of the interval divided by that of the labels alone: at most 1."""
        own, alone = self.ci_high - self.ci_low, self.labels_high - self.labels_low
        return own / alone if alone else 1.0


@dataclass(frozen=True)
class PlannedWidth:
    """What to expect of `drawn` groups: half the width of the corrected interval and of that of the labels alone, and the
    share of labels that the judge saves: those that people alone would need more for the same standard error.

    >>> PlannedWidth(20, 0.3, 0.32, 0.12).saving
    0.12
    """

    drawn: int
    half_width: float
    labels_half_width: float
    saving: float


@dataclass(frozen=True)
class _Groups:
    """Totals of the groups: judge's scores, labels (0 where not drawn), items, whether drawn, weight 1 / probability,
    and stratum."""

    judge: Floats
    label: Floats
    count: Floats
    drawn: NDArray[np.bool_]
    weight: Floats
    stratum: Ints
    strata: int


def corrected_mean(
    judge: Values,
    labels: Values,
    groups: Groups,
    probabilities: Values,
    drawn: Sequence[bool] | NDArray[Any],
    strata: Groups | None = None,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> CorrectedMean:
    """The mean label of all items, from the judge's scores of all and the labels of the drawn groups.

    Of each item: the judge's score; the label (read only where drawn); the group; the probability with which its group was
    drawn (above 0, at most 1); whether it was drawn; and the stratum in which it was drawn (None: one stratum). Differences
    between two systems are corrected by giving the differences of scores and of labels.

    With weights w = 1 / probability of drawn groups, the estimate is ȳ + λ (F − f): ȳ and f are the weighted means of labels and
    scores over the items of drawn groups, F the mean score of all items. λ is the regression coefficient of the groups' residual
    labels on their residual scores within strata, not below 0 (Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453, with
    groups for observations; there, with n drawn and N other groups, λ stands before a mean of the others only, and is
    λ · N / (n + N)). The variance is that of the estimate's linearisation by group (Särndal, Swensson and Wretman 1992, *Model
    Assisted Survey Sampling*, chapter 9): within strata over drawn and other groups, and between strata. For few groups, residuals
    are divided by 1 − leverage (as the jackknife does; Bell and McCaffrey 2002), one more degree of freedom is taken for λ, and the quantile is that of
    Student's t with the degrees of freedom of Satterthwaite (1946). Where this is wider than the labels alone, λ is 0: the
    interval is never wider than theirs. It is not cut at the ends of a scale.
    With `bounds` of the labels, and if at least half of the drawn groups and all but nine are wholly at the same bound, both
    intervals are extended for groups of a kind that was not drawn, as that of `mean_interval` is: a share of u = 1 −
    ((1 − level) / 2)^(1 / drawn groups) of all groups may be at the other bound.

    Raises `InputError` for numbers that are not finite, unequal lengths, a group that is drawn in part or has several
    probabilities or strata, a stratum with fewer than two drawn groups, and fewer than `FEWEST_DRAWN` drawn groups.

    >>> scores, labels = [4.0, 1, 8, 6, 3, 9, 2, 7, 5, 8, 1, 6], [3.5, 1, 8.5, 6, 2.5, 9] + [0] * 6
    >>> found = corrected_mean(scores, labels, range(12), [0.5] * 12, [True] * 6 + [False] * 6)
    >>> round(found.judge_alone, 2), round(found.labels_alone, 2), round(found.value, 2), found.groups, found.drawn
    (5.0, 5.08, 4.91, 12, 6)
    """
    table = _grouped(judge, labels, groups, probabilities, drawn, strata)
    chosen = int(table.drawn.sum())
    if chosen < FEWEST_DRAWN:
        expected = f"{FEWEST_DRAWN} or more: with fewer, intervals no longer cover as they say"
        raise InputError("drawn groups", found=str(chosen), expected=expected)
    alone = _extended(table, _estimate(table, 0.0, level), level, bounds)
    tuning, correlation = _tuning(table)
    tuned = _extended(table, _estimate(table, tuning, level), level, bounds) if tuning > 0 else alone
    best = tuned if tuned.ends[1] - tuned.ends[0] <= alone.ends[1] - alone.ends[0] else alone
    inside = table.drawn
    return CorrectedMean(
        value=best.value,
        ci_low=best.ends[0],
        ci_high=best.ends[1],
        p=_p(best),
        tuning=best.tuning,
        error=best.error,
        large_sample_error=best.large_sample_error,
        df=best.df,
        labels_alone=alone.value,
        labels_low=alone.ends[0],
        labels_high=alone.ends[1],
        judge_alone=float(table.judge.sum() / table.count.sum()),
        correlation=correlation,
        n=int(table.count.sum()),
        labelled=int(table.count[inside].sum()),
        groups=len(table.count),
        drawn=chosen,
    )


def planned_widths(found: CorrectedMean, drawn: Sequence[int], *, level: float = 0.95) -> list[PlannedWidth]:
    """What to expect with these numbers of drawn groups, with the spread and the correlation found now.

    With S² the variance of a group's contribution and r the correlation, the variance of n of G groups is S²/G +
    (1/n − 1/G) · S² (1 − r²), that of the labels alone S²/n. Raises `InputError` for a number outside `FEWEST_DRAWN` to all
    groups.

    >>> scores, labels = [4.0, 1, 8, 6, 3, 9, 2, 7, 5, 8, 1, 6], [3.5, 1, 8.5, 6, 2.5, 9] + [0] * 6
    >>> found = corrected_mean(scores, labels, range(12), [0.5] * 12, [True] * 6 + [False] * 6)
    >>> [width.drawn for width in planned_widths(found, [6, 12])]
    [6, 12]
    """
    alone = (found.labels_high - found.labels_low) / 2 / float(stdtrit(max(found.drawn - 1, 1), (1 + level) / 2))
    spread = alone**2 * found.drawn
    kept = 1 - ((found.correlation or 0.0) ** 2 if found.tuning > 0 else 0.0)
    rows = []
    for number in drawn:
        if not FEWEST_DRAWN <= number <= found.groups:
            raise InputError("drawn groups", found=str(number), expected=f"{FEWEST_DRAWN} to {found.groups}")
        variance = spread / found.groups + (1 / number - 1 / found.groups) * spread * kept
        quantile = float(stdtrit(number - 2, (1 + level) / 2)), float(stdtrit(number - 1, (1 + level) / 2))
        human = quantile[1] * math.sqrt(spread / number)
        own = min(quantile[0] * math.sqrt(variance), human)
        saving = 1 - number * variance / spread if spread and own < human else 0.0
        rows.append(PlannedWidth(number, own, human, saving))
    return rows


# -- the estimate


@dataclass(frozen=True)
class _Estimate:
    tuning: float
    value: float
    error: float
    large_sample_error: float
    df: float
    ends: tuple[float, float]


def _estimate(table: _Groups, tuning: float, level: float) -> _Estimate:
    inside, weight, count = table.drawn, table.weight, table.count
    size, drawn_size = count.sum(), (weight * count)[inside].sum()
    label = (weight * table.label)[inside].sum() / drawn_size
    score = (weight * table.judge)[inside].sum() / drawn_size
    every = table.judge.sum() / size
    linear = tuning * (table.judge - every * count) / size
    rest = (weight * (table.label - tuning * table.judge - (label - tuning * score) * count))[inside] / drawn_size
    plain, guarded = linear.copy(), linear / (1 - np.minimum(count / size, _MOST_LEVERAGE))
    plain[inside] += rest
    guarded[inside] += rest * _leverage(table, tuned=tuning > 0)
    variance, df = _variance(table, guarded, tuned=tuning > 0)
    large = _variance(table, plain, tuned=False, few=False)[0]
    error = math.sqrt(variance)
    value = float(label + tuning * (every - score))
    reach = float(stdtrit(df, (1 + level) / 2)) * error
    return _Estimate(tuning, value, error, math.sqrt(large), df, (value - reach, value + reach))


def _extended(table: _Groups, found: _Estimate, level: float, bounds: tuple[float, float] | None) -> _Estimate:
    """The estimate with an interval for unseen groups, where few of the drawn groups are off a bound."""
    if bounds is None:
        return found
    means, chosen = table.label[table.drawn] / table.count[table.drawn], int(table.drawn.sum())
    off = min(int((np.abs(means - bound) > _AT_BOUND).sum()) for bound in bounds)
    if off > min(_FEW_OFF_BOUND, chosen / 2):
        return found
    unseen = 1 - ((1 - level) / 2) ** (1 / chosen)
    low = min(found.ends[0], found.value - unseen * max(found.value - bounds[0], 0.0))
    high = max(found.ends[1], found.value + unseen * max(bounds[1] - found.value, 0.0))
    return replace(found, ends=(low, high))


def _variance(table: _Groups, part: Floats, *, tuned: bool, few: bool = True) -> tuple[float, float]:
    """The variance of a sum of contributions, and its degrees of freedom; corrected for `few` groups, or not."""
    free = int(table.drawn.sum()) - table.strata
    sizes = np.bincount(table.stratum, minlength=table.strata)
    means = summed(table.stratum, part, table.strata) / sizes
    parts = [(float((sizes * (means - part.mean()) ** 2).sum()), float(free))]
    for stratum in range(table.strata):
        for drawn in (True, False):
            own = part[(table.stratum == stratum) & (table.drawn == drawn)]
            if len(own) > 1:
                squares = float(((own - own.mean()) ** 2).sum())
                lost = tuned * (len(own) - 1) / free if drawn else 0.0
                parts.append((squares * len(own) / (len(own) - 1) if few else squares, len(own) - 1 - lost))
    total = sum(variance for variance, _ in parts)
    weighed = sum(variance**2 / df for variance, df in parts)
    return total, total**2 / weighed if weighed else float(free)


def _leverage(table: _Groups, *, tuned: bool) -> Floats:
    """The factor on the residual of each drawn group: 1 / (1 − h), as in the jackknife, with h the group's share of the
    weighted items, and with `tuned` also its part of the spread of scores from which λ comes; times the weight that the
    regression gives it for the difference of the mean scores."""
    inside, weight, count = table.drawn, table.weight[table.drawn], table.count[table.drawn]
    size = (weight * count).sum()
    held = weight * count / size
    factor = np.ones(len(count))
    if tuned:
        mean = (weight * table.judge[inside]).sum() / size
        score = table.judge[inside] - mean * count
        layer = table.stratum[inside]
        number = np.bincount(layer, minlength=table.strata)
        score = score - (summed(layer, score, table.strata) / number)[layer]
        spread = float((score**2).sum())
        if spread > 0:
            held = held + score**2 / spread
            gap = float(table.judge.sum() / table.count.sum() - mean)
            factor = 1 + gap * score * size / (weight * spread)
    return np.asarray(factor / (1 - np.minimum(held, _MOST_LEVERAGE)), dtype=np.float64)


def _tuning(table: _Groups) -> tuple[float, float | None]:
    """λ, and the correlation of the residuals."""
    inside, weight, count = table.drawn, table.weight, table.count
    drawn_size = (weight * count)[inside].sum()
    label = table.label - (weight * table.label)[inside].sum() / drawn_size * count
    score = table.judge - (weight * table.judge)[inside].sum() / drawn_size * count
    every = table.judge - table.judge.sum() / count.sum() * count
    both = spread = labels = scores = 0.0
    for stratum in range(table.strata):
        own = table.stratum == stratum
        drawn = own & inside
        groups, chosen = int(own.sum()), int(drawn.sum())
        share = groups**2 / chosen * (1 - chosen / groups) if table.strata > 1 else 1.0
        y, f, all_scores = (part - part.mean() for part in (label[drawn], score[drawn], every[own]))
        both += share * float((y * f).sum()) / chosen
        spread += share * float((all_scores**2).sum()) / (groups - 1)
        labels += share * float((y**2).sum()) / chosen
        scores += share * float((f**2).sum()) / chosen
    correlation = both / math.sqrt(labels * scores) if labels * scores > 0 else None
    return (max(both / spread, 0.0) if spread > 0 else 0.0), correlation


def _p(found: _Estimate) -> float:
    if not found.error:
        return 1.0 if not found.value else 0.0
    return min(1.0, 2 * float(stdtr(found.df, -abs(found.value) / found.error)))


# -- groups


def _grouped(
    judge: Values,
    labels: Values,
    groups: Groups,
    probabilities: Values,
    drawn: Sequence[bool] | NDArray[Any],
    strata: Groups | None,
) -> _Groups:
    scores, chance, inside = finite(judge, "score"), finite(probabilities, "probability"), np.asarray(drawn, dtype=bool)
    n = len(scores)
    given = np.where(inside, np.asarray(labels, dtype=np.float64), 0.0) if len(labels) == len(inside) else np.zeros(0)
    label = finite(given, "label")
    for name, size in (("labels", len(label)), ("probabilities", len(chance)), ("drawn", len(inside))):
        if size != n:
            raise InputError(name, found=str(size), expected=f"{n}, one per item")
    if n and not (chance.min() > 0 and chance.max() <= 1):
        raise InputError("probabilities", found=f"{chance.min():g} to {chance.max():g}", expected="above 0, at most 1")
    code = group_codes(groups, n)
    layer = np.zeros(n, dtype=np.int64) if strata is None else group_codes(strata, n)
    number = int(code.max(initial=-1)) + 1
    first = np.zeros(number, dtype=np.int64)
    first[code[::-1]] = np.arange(n)[::-1]
    for name, values in (("drawn", inside), ("probability", chance), ("stratum", layer)):
        if (values != values[first][code]).any():
            position = int(np.flatnonzero(values != values[first][code])[0])
            raise InputError(f"{name} of item {position}", found="another than its group's", expected="one per group")
    chosen, of_group = inside[first], layer[first]
    n_strata = int(layer.max(initial=-1)) + 1
    few = np.flatnonzero(np.bincount(of_group[chosen], minlength=n_strata) < _FEWEST_IN_STRATUM)
    if len(few) and int(chosen.sum()) >= FEWEST_DRAWN:
        found = str(int((of_group[chosen] == few[0]).sum()))
        raise InputError(f"drawn groups of stratum {few[0]}", found=found, expected=f"{_FEWEST_IN_STRATUM} or more")
    return _Groups(
        judge=summed(code, scores, number),
        label=summed(code, label, number),
        count=summed(code, np.ones(n), number),
        drawn=chosen,
        weight=1 / chance[first],
        stratum=of_group,
        strata=n_strata,
    )

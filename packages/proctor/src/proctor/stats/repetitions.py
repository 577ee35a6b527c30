"""Several answers of a system to each item: how alike they are, how often all or any of them are right, and which part of
the variance of scores lies between groups, items and repetitions.

Everywhere an array has one row per item and one column per repetition, with NaN (or −1) where an item has fewer. Means over
items have intervals that resample groups; a repetition is never taken for an item.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.stats import clusters
from proctor.stats.bootstrap import Estimate, Resampling
from proctor.stats.variance_intervals import FEWEST_GROUPS, jackknife_ends, ratio_ends

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def same_answers(answers: Ints) -> Floats:
    """Of each item the share of pairs of its repetitions with the same answer, from 0 to 1; NaN with fewer than two.

    `answers` are codes of answers (items × repetitions): equal codes are equal answers, −1 is no repetition, and a code
    below that is a repetition without an answer that could equal another (unreadable, refused, too late).

    >>> same_answers(np.array([[1, 1, 2], [3, 3, -1], [4, -1, -1], [-2, -2, 5]])).round(3).tolist()
    [0.333, 1.0, nan, 0.0]
    """
    there = answers != -1
    pairs, same = np.zeros(len(answers)), np.zeros(len(answers))
    for first in range(answers.shape[1]):
        for second in range(first + 1, answers.shape[1]):
            both = there[:, first] & there[:, second]
            pairs += both
            same += both & (answers[:, first] == answers[:, second]) & (answers[:, first] >= 0)
    share: Floats = np.divide(same, pairs, out=np.full(len(answers), np.nan), where=pairs > 0)
    return share


def right_in_any(right: Floats, k: int) -> Floats:
    """Of each item the probability that at least one of `k` of its repetitions, drawn without replacement, is right:
    1 − C(n − c, k) / C(n, k) for c of n right (unbiased; Chen and others 2021, arXiv 2107.03374). NaN where an item has
    fewer than `k` repetitions.

    `right` has 1 for right, 0 for wrong and NaN for no repetition (items × repetitions).

    >>> right_in_any(np.array([[1.0, 0.0, 0.0], [1.0, 1.0, np.nan]]), 2).round(3).tolist()
    [0.667, 1.0]
    """
    n, c = _counts(right)
    return _or_nan(n >= k, 1 - _none_of(n - c, n, k))


def right_in_all(right: Floats, k: int) -> Floats:
    """Of each item the probability that all of `k` of its repetitions, drawn without replacement, are right: C(c, k) /
    C(n, k). Arguments and edges are those of `right_in_any`.

    >>> right_in_all(np.array([[1.0, 0.0, 1.0], [1.0, 1.0, np.nan]]), 2).round(3).tolist()
    [0.333, 1.0]
    """
    n, c = _counts(right)
    return _or_nan(n >= k, _none_of(c, n, k))


def _counts(right: Floats) -> tuple[Floats, Floats]:
    return (~np.isnan(right)).sum(axis=1).astype(np.float64), np.nansum(right, axis=1)


def _none_of(some: Floats, n: Floats, k: int) -> Floats:
    """C(some, k) / C(n, k), as a product, so that no factorial overflows."""
    product = np.ones(len(n))
    for taken in range(k):
        product *= np.clip(some - taken, 0, None) / np.maximum(n - taken, 1)
    return product


def _or_nan(where: NDArray[np.bool_], values: Floats) -> Floats:
    return np.where(where, values, np.nan)


def majority_scores(answers: Ints, scores: Floats, worst: float) -> Floats:
    """Of each item the score of its most frequent answer; where several are equally frequent, the mean of their scores: what
    a fair draw among them would give. Repetitions without an answer (codes below −1) have no say, and an item without
    any answer has the `worst` score; NaN without a repetition.

    >>> majority_scores(np.array([[1, 1, 2], [1, 2, -1], [-2, -2, -1]]), np.array([[0.0, 0, 1], [0, 1, 0], [0, 0, 0]]), 0.0)
    array([0. , 0.5, 0. ])
    """
    counts = np.zeros(answers.shape, dtype=np.int64)
    for column in range(answers.shape[1]):
        counts[:, column] = ((answers == answers[:, [column]]) & (answers >= 0)).sum(axis=1)
    counts[(answers < 0) | np.isnan(scores)] = 0
    most = counts.max(axis=1, initial=0)
    first = np.zeros(answers.shape, dtype=np.bool_)  # of each answer the first repetition that gave it
    for column in range(answers.shape[1]):
        before = (answers[:, :column] == answers[:, [column]]).any(axis=1)
        first[:, column] = ~before & (counts[:, column] == most) & (most > 0)
    chosen = np.where(first, np.nan_to_num(scores), 0.0).sum(axis=1)
    number = first.sum(axis=1)
    found = np.divide(chosen, number, out=np.full(len(answers), worst), where=number > 0)
    return _or_nan((answers != -1).any(axis=1), found)


@dataclass(frozen=True)
class VarianceShares:
    """The variance of scores between groups, between items of a group, and between repetitions of an item, and their shares
    of the sum (0 to 1), each with its interval; no interval with fewer than six groups. `items` have all `repetitions`:
    others are left out.

    >>> VarianceShares(group=0.1, item=0.3, repetition=0.1, items=200, groups=40, repetitions=5, shares={}).total
    0.5
    """

    group: float
    item: float
    repetition: float
    items: int
    groups: int
    repetitions: int
    shares: dict[str, Estimate]

    @property
    def total(self) -> float:
        """The sum of the three parts."""
        return self.group + self.item + self.repetition


def variance_shares(scores: Floats, groups: clusters.Groups, plan: Resampling = Resampling()) -> VarianceShares | None:
    """The parts of the variance of scores (items × repetitions) by restricted maximum likelihood in the nested model score =
    mean + group + item + repetition, all three random and none negative. None with fewer than two repetitions, two
    groups, or three items that have all of them.

    With equal numbers of repetitions the likelihood separates: the part of repetitions is the mean square within items,
    and the rest is a one-way model of the items' means, whose ratio is found in one dimension, also for groups of unequal
    size; where the part of items would be negative it is 0 and the others are fitted again. Equal to statsmodels'
    `MixedLM` to three digits.

    Intervals are those of `jackknife_ends`, over the estimators of the analysis of variance (Searle, Casella and McCulloch
    1992), which need only each group's sums; the groups' share has the wider of these and of the F of its mean squares
    (`ratio_ends`). In simulations they cover 92 to 99 % with 6 to 100 groups. They draw nothing.

    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(np.arange(30), 10)
    >>> truth = rng.normal(0, 1, 30)[group][:, None] + rng.normal(0, 1, 300)[:, None] + rng.normal(0, 1, (300, 3))
    >>> found = variance_shares(truth, group)
    >>> round(found.total, 1), {name: round(one.value, 1) for name, one in found.shares.items()}
    (2.6, {'group': 0.3, 'item': 0.4, 'repetition': 0.3})
    """
    if scores.ndim != 2 or len(scores) == 0 or scores.shape[1] < 2:
        return None
    whole = ~np.isnan(scores).any(axis=1)
    code = clusters.group_codes(groups, len(scores))[whole]
    code = np.unique(code, return_inverse=True)[1]
    values, repetitions = scores[whole], scores.shape[1]
    number = int(code.max(initial=-1)) + 1
    if number < 2 or len(values) <= number or len(values) < 3:
        return None
    means = values.mean(axis=1)
    within: Floats = np.bincount(code, values.var(axis=1) * repetitions, minlength=number).astype(np.float64)
    sums = _GroupSums(
        size=np.bincount(code, minlength=number).astype(np.float64),
        total=np.bincount(code, means, minlength=number).astype(np.float64),
        square=np.bincount(code, means**2, minlength=number).astype(np.float64),
        within=within,
        repetitions=repetitions,
    )
    parts = _reml(sums)
    return VarianceShares(
        *parts,
        items=len(values),
        groups=number,
        repetitions=repetitions,
        shares=_share_estimates(sums, parts, len(values), plan),
    )


@dataclass(frozen=True)
class _GroupSums:
    """What the parts of variance rest on, of each group: its number of items, the sum and the sum of squares of the items'
    means, and the sum of squares within items."""

    size: Floats
    total: Floats
    square: Floats
    within: Floats
    repetitions: int


def _reml(sums: _GroupSums) -> tuple[float, float, float]:
    """The parts of groups, items and repetitions."""
    n, k = float(sums.size.sum()), sums.repetitions
    noise = float(sums.within.sum() / (n * (k - 1)))
    group, between = _one_way(sums.size, sums.total, sums.square)
    item = between - noise / k
    if item >= 0:
        return group, item, noise
    # No variance between items: each score is its group's plus noise.
    squares = k * sums.square + sums.within
    group, noise = _one_way(sums.size * k, sums.total * k, squares)
    return group, 0.0, noise


def _one_way(size: Floats, total: Floats, square: Floats) -> tuple[float, float]:
    """The variances between and within groups by restricted maximum likelihood, from each group's size, sum, and sum of
    squares: the ratio λ of the two is found in one dimension (Searle, Casella and McCulloch 1992, section 3.8)."""
    n, number = float(size.sum()), len(size)
    inside = float((square - total**2 / size).sum())

    def parts(ratio: float) -> tuple[float, float]:
        weight = size / (1 + ratio * size)
        mean = float((weight * total / size).sum() / weight.sum())
        quadratic = inside + float((weight * (total / size - mean) ** 2).sum())
        likelihood = (n - 1) * np.log(max(quadratic, 1e-300)) + np.log1p(ratio * size).sum() + np.log(weight.sum())
        return quadratic / (n - 1), float(likelihood)

    if number < 2 or n <= number:
        return 0.0, inside / max(n - 1, 1)
    low, high = -18.0, 12.0
    while high - low > 1e-8:  # a grid, finer and finer: importing an optimiser takes longer than all the rest
        logs = np.linspace(low, high, 33)
        best = int(np.argmin([parts(np.exp(one))[1] for one in logs]))
        low, high = logs[max(best - 1, 0)], logs[min(best + 1, 32)]
    ratio = float(np.exp((low + high) / 2))
    if parts(0.0)[1] <= parts(ratio)[1]:
        ratio = 0.0
    variance = parts(ratio)[0]
    return ratio * variance, variance


def _share_estimates(
    sums: _GroupSums, parts: tuple[float, float, float], n: int, plan: Resampling
) -> dict[str, Estimate]:
    names, whole, number = ("group", "item", "repetition"), sum(parts), len(sums.size)
    if whole <= 0:
        return {name: Estimate(None, None, None, n, number) for name in names}
    shares = [part / whole for part in parts]
    if number < FEWEST_GROUPS:
        return {name: Estimate(share, None, None, n, number) for name, share in zip(names, shares, strict=True)}
    low, high = jackknife_ends(np.array(shares), _analysis(sums, 1 - np.eye(number)), plan.level)
    group_low, group_high = _group_ends(sums, plan.level)
    low[0], high[0] = min(low[0], group_low), max(high[0], group_high)
    return {
        name: Estimate(share, float(min(share, a)), float(max(share, b)), n, number)
        for name, share, a, b in zip(names, shares, low, high, strict=True)
    }


def _group_ends(sums: _GroupSums, level: float) -> tuple[float, float]:
    """The ends of the groups' share by the F of their mean squares: near 0, where the jackknife sees no variance."""
    size, k, number = sums.size, sums.repetitions, len(sums.size)
    n = float(size.sum())
    inside = float((sums.square - sums.total**2 / size).sum()) / max(n - number, 1)
    if inside <= 0:
        return 1.0, 0.0  # says nothing
    between = float((sums.total**2 / size).sum() - sums.total.sum() ** 2 / n) / (number - 1)
    effective = float(n - (size**2).sum() / n) / (number - 1)
    noise = float(sums.within.sum()) / (n * (k - 1))
    rest = max(1.0, (inside + noise * (1 - 1 / k)) / inside)  # of single answers, in the unit of the items' means
    low, high = ratio_ends(between / inside, number - 1, int(n) - number, effective, level)
    return low / (low + rest), high / (high + rest)


def _analysis(sums: _GroupSums, weights: Floats) -> Floats:
    """The shares by the analysis of variance where each group is there `weights` times (draws × groups)."""
    size, k = sums.size, sums.repetitions
    number, n = weights.sum(axis=1), weights @ size
    noise = (weights @ sums.within) / np.maximum(n * (k - 1), 1)
    inside = weights @ (sums.square - sums.total**2 / size)
    mean_square = inside / np.maximum(n - number, 1)
    between = weights @ (sums.total**2 / size) - (weights @ sums.total) ** 2 / n
    effective = (n - (weights @ size**2) / n) / np.maximum(number - 1, 1)
    group = np.clip((between / np.maximum(number - 1, 1) - mean_square) / np.maximum(effective, 1e-12), 0, None)
    item = np.clip(mean_square - noise / k, 0, None)
    parts = np.stack([group, item, noise], axis=1)
    total = parts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(parts, total, out=np.full(parts.shape, np.nan), where=total > 0)
    return shares


def repetition_variances(scores: Floats) -> tuple[float, float] | None:
    """The variance that repetitions add to the score of a single answer, and to an item's mean over its repetitions: means
    over the items of sᵢ² and of sᵢ² / kᵢ, with the variance sᵢ² between an item's kᵢ repetitions. Items with one repetition have
    the mean variance of the others. None without an item that has two.

    >>> repetition_variances(np.array([[0.0, 1.0], [1.0, 1.0]]))
    (0.25, 0.125)
    """
    known = ~np.isnan(scores)
    count = known.sum(axis=1)
    several = count >= 2
    if not np.any(several):
        return None
    mean = np.divide(np.nansum(scores, axis=1), count, out=np.zeros(len(scores)), where=count > 0)
    squares = np.where(known, (scores - mean[:, None]) ** 2, 0.0).sum(axis=1)
    freedom = np.where(several, count - 1, 0)
    pooled = float(squares[several].sum() / freedom[several].sum())
    own = np.divide(squares, freedom, out=np.full(len(scores), pooled), where=several)
    there = count > 0
    return float(own[there].mean()), float((own[there] / count[there]).mean())


def repetition_error(scores: Floats) -> float | None:
    """The standard error that the mean over items owes to its repetitions alone: the root of the variance that they add to an
    item's mean (`repetition_variances`), by the number of items. None without an item that has two repetitions.

    >>> repetition_error(np.array([[0.0, 1.0], [1.0, 1.0]])).__round__(3)
    0.25
    """
    found = repetition_variances(scores)
    items = int((~np.isnan(scores)).any(axis=1).sum())
    return None if found is None else float(np.sqrt(found[1] / items))

"""Differences between systems on the same items, with clustered intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, generator
from proctor.stats.bootstrap import CHUNK, Estimate, Resampling, Trials, group_totals, group_units, sums_interval
from proctor.stats.clusters import Floats, Groups, Ints, Values, cell_hash, finite, group_codes
from proctor.stats.means import Matrix, SystemTable, check_bounds, dense_sums, divide, estimates, system_table
from proctor.stats.signflip import accepted_shifts, can_decide, fewest_groups, rejects, sign_flip
from proctor.stats.special import ndtri


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of a − b over `n` items in `groups` groups; positive if a is higher.

    `p` is two-sided. `wins`, `losses` and `ties` count the items where a is above, below and equal to b. `value` is
    None without items; `ci_low`, `ci_high` and `p` are None with fewer than two groups.

    >>> Difference(value=0.1, ci_low=-0.1, ci_high=0.3, p=0.2, n=10, groups=3, wins=2, losses=1, ties=7).p
    0.2
    """

    value: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    n: int
    groups: int
    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, slots=True)
class Pair:
    """The comparison of rows `first` and `second` of a matrix; `p_holm` is p adjusted over all pairs of rows.

    >>> pairs = paired_differences([[1, 1], [0, 1], [1, 0]], ["v1", "v2"])
    >>> [(pair.first, pair.second) for pair in pairs]
    [(0, 1), (0, 2), (1, 2)]
    """

    first: int
    second: int
    difference: Difference
    p_holm: float | None


def paired_difference(a: Values, b: Values, groups: Groups, plan: Resampling = Resampling()) -> Difference:
    """The mean of a − b, its clustered interval and its p.

    Values are paired by position; `groups` and `plan` as in `mean_interval`, where `bounds` are those of a and b. p is
    that of the sign-flip test over groups (`sign_flip`), which is exact if a and b are exchangeable within each group. It
    is 1 if a and b are equal on all items, and never 0: the minimum for G groups is 2 / 2^G, such as 0.06 with five.

    The interval has the differences that the same test accepts at 1 − level (`accepted_shifts`): it contains 0 if and only
    if p > 1 − level. It is extended, as far as it does not cross 0 if the test excludes 0: for the skewness of the groups'
    differences; with `bounds` for unseen groups, which may be a share u of all (see `mean_interval`), in full if so few
    groups differ that none of their outcomes has p ≤ 1 − level (up to five at 95 %), and less the more groups do; and with
    `two_level` to the interval over two-level samples. With too few groups to decide (`can_decide`) it is that of the
    unseen groups, and always contains 0.

    Edges: no interval with fewer than two groups; nor, without `bounds`, with too few groups to decide, or if all groups
    have the same mean difference.
    Raises `InputError` for values that are not finite or out of bounds, and for unequal lengths.

    >>> d = paired_difference([1, 1, 1, 0], [0, 1, 0, 0], ["v1", "v1", "v2", "v3"])
    >>> d.value, d.p, (d.wins, d.losses, d.ties)
    (0.5, 0.5, (2, 0, 2))
    """
    first, second = finite(a, "a's value"), finite(b, "b's value")
    if len(first) != len(second):
        raise InputError("values", found=f"{len(first)} and {len(second)}", expected="pairs")
    return paired_differences(np.stack([first, second]), groups, plan)[0].difference


def paired_differences(matrix: Matrix, groups: Groups, plan: Resampling = Resampling()) -> list[Pair]:
    """`paired_difference` of all pairs of rows of `matrix` (systems × items), with Holm's adjusted p.

    Pairs are in the order (0, 1), (0, 2), … (1, 2), …. Intervals and p of a pair do not depend on the other systems
    (except with `two_level`, where samples are shared). Memory grows with items × systems and draws × pairs.

    >>> pairs = paired_differences([[1] * 8, [0] * 8, [0] * 8], list("abcdefgh"))
    >>> [(pair.difference.value, pair.difference.p, pair.p_holm) for pair in pairs]
    [(1.0, 0.0078125, 0.0234375), (1.0, 0.0078125, 0.0234375), (0.0, 1.0, 1.0)]
    """
    table = system_table(matrix, groups)
    for row in table.matrix:
        check_bounds(row, plan.bounds)
    return all_pairs(table, plan)


@dataclass(frozen=True, slots=True)
class PairSums:
    """The sums that determine the comparisons of pairs; fields as in `GroupSums`. `means` (draws × systems) are the
    means in two-level samples; None if whole groups are drawn."""

    totals: Floats
    counts: Floats
    products: Floats
    above: Ints
    below: Ints
    means: Floats | None = None


def all_pairs(table: SystemTable, plan: Resampling) -> list[Pair]:
    """The comparisons of all pairs of systems of a table."""
    means = table.means(plan) if plan.two_level and table.n_groups else None
    products = table.matrix @ table.matrix.T
    return pairs_of_sums(PairSums(table.totals, table.counts, products, *wins(table.matrix), means), plan)


def pairs_of_sums(sums: PairSums, plan: Resampling) -> list[Pair]:
    """The comparisons of all pairs of systems from their sums."""
    first, second = (index.astype(np.int64) for index in np.triu_indices(sums.totals.shape[1], 1))
    if not first.size:
        return []
    if not len(sums.counts):
        nothing = Difference(None, None, None, None, 0, 0, 0, 0, 0)
        return [Pair(int(i), int(j), nothing, None) for i, j in zip(first, second, strict=True)]
    tested = PairTests(sums.totals).among(np.arange(sums.totals.shape[1]))[1]
    intervals = _intervals(sums, plan, first, second, tested)
    p = [None if np.isnan(one) else one for one in tested.tolist()]
    adjusted = holm_known(p)
    result = []
    for k, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        mean = intervals[k]
        above, below = int(sums.above[i, j]), int(sums.below[i, j])
        counts = (mean.n, mean.groups, above, below, mean.n - above - below)
        difference = Difference(mean.value, mean.ci_low, mean.ci_high, p[k], *counts)
        result.append(Pair(i, j, difference, adjusted[k]))
    return result


def _intervals(sums: PairSums, plan: Resampling, first: Ints, second: Ints, p: Floats) -> list[Estimate]:
    """The mean differences and their intervals, in chunks of pairs to limit memory; `p` are those of their tests."""
    if plan.bounds is not None:
        width = plan.bounds[1] - plan.bounds[0]
        plan = replace(plan, bounds=(-width, width))
    squares = np.diag(sums.products)
    step = max(1, CHUNK // max(len(sums.counts), plan.draws))
    result: list[Estimate] = []
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        i, j = first[part], second[part]
        apart, wider = sums.totals[:, i] - sums.totals[:, j], None
        if sums.means is not None:
            squared = np.maximum(squares[i] + squares[j] - 2 * sums.products[i, j], 0)
            drawn = sums.means[:, i] - sums.means[:, j]
            found = estimates(dense_sums(apart, sums.counts, squared), drawn, plan, nothing=0.0)
            wider = np.array([(one.ci_low, one.ci_high) for one in found], dtype=np.float64).T  # None becomes NaN
        result += _alone(apart, sums.counts, p[part], plan, wider)
    return result


def _alone(apart: Floats, counts: Floats, p: Floats, plan: Resampling, wider: Floats | None) -> list[Estimate]:
    """The intervals of differences (groups × pairs). The canonical order of groups depends on the differences of the
    pair only, up to sign. So intervals do not depend on other systems, and that of b − a mirrors that of a − b. They
    include those in `wider` (low and high × pairs) as far as the tests allow."""
    odd = np.stack([apart.sum(axis=0), (apart**3).sum(axis=0), counts @ apart, counts @ apart**3])
    odd[np.abs(odd) <= 1e-9 * np.abs(odd).max(axis=0, initial=0) + 1e-300] = 0.0
    turned = np.sign(odd[np.argmax(odd != 0, axis=0), np.arange(apart.shape[1])])
    facing = apart * np.where(turned < 0, -1.0, 1.0)
    largest = np.maximum(np.abs(apart).max(axis=0, initial=0), 1e-300)
    exact = np.round(facing / largest, 9)  # removes rounding errors
    sizes = np.broadcast_to(counts[:, None], exact.shape)
    order = np.argsort(cell_hash(np.zeros(exact.shape, dtype=np.int64), sizes, exact), axis=0, kind="stable")
    totals, sizes = np.take_along_axis(facing, order, axis=0), counts[order]
    values = totals.sum(axis=0) / sizes.sum(axis=0)
    unseen, skewness = _unseen(totals, sizes, plan), _skewness(totals, sizes, plan.level)
    unit, n_units = group_units(len(counts), plan.seed)
    if n_units < len(counts):
        by_unit = np.argsort(unit, kind="stable")
        starts = np.flatnonzero(np.diff(unit[by_unit], prepend=-1))
        totals, sizes = (np.add.reduceat(sums[by_unit], starts, axis=0) for sums in (totals, sizes))
    low, high = accepted_shifts(totals, sizes, p, plan.level, plan.draws, plan.seed)
    candidates = [unseen, np.stack([low + np.minimum(skewness, 0.0), high + np.maximum(skewness, 0.0)])]
    if wider is not None and can_decide(len(counts), plan.level):
        candidates.append(np.where(turned < 0, -wider[::-1], wider))
    for lower, higher in candidates:
        # If the test excludes 0, this moves the end beside 0 at most halfway from the difference to 0.
        nearest = np.where(rejects(p, plan.level), values / 2, -np.inf)
        low, high = np.fmin(low, np.maximum(lower, nearest)), np.fmax(high, higher)
    low, high = (np.clip(end, *(plan.bounds or (-np.inf, np.inf))) for end in (low, high))
    return [
        _turned_back(_estimate(value, lower, higher, int(counts.sum()), len(counts)), int(sign))
        for value, lower, higher, sign in zip(
            values.tolist(), low.tolist(), high.tolist(), turned.tolist(), strict=True
        )
    ]


def _unseen(totals: Floats, sizes: Floats, plan: Resampling) -> Floats:
    """The ends of differences (groups × pairs) that groups of a kind not in the sample could reach (low and high ×
    pairs): NaN without two finite bounds.

    Such groups may be a share of all (`_share_unseen`), with all differences at a bound. Those that tell are the groups
    that differ, that are off a bound, or off the value that all others have, whichever are fewest.
    """
    values, groups = totals.sum(axis=0) / sizes.sum(axis=0), len(totals)
    lowest, highest = plan.bounds or (-np.inf, np.inf)
    if not np.isfinite((lowest, highest)).all():
        return np.full((2, len(values)), np.nan)
    off = [np.abs(totals - settled * sizes) > 1e-9 * highest * sizes for settled in (0.0, lowest, highest, values)]
    carrying = np.min([away.sum(axis=0) for away in off], axis=0)
    share = _share_unseen(carrying, groups, plan.level)
    return np.stack([values - share * (values - lowest), values + share * (highest - values)])


def _share_unseen(telling: Ints, groups: int, level: float) -> Floats:
    """The share of groups that may be of a kind not in the sample, u (see `mean_interval`). It counts in full if so few
    groups tell anything that no test can decide, and declines linearly to 0 if all groups do."""
    powerless = min(groups, fewest_groups(1 - level) - 1)
    weight = np.clip((groups - telling) / max(1, groups - powerless), 0, 1) if groups > powerless else 1.0
    return np.asarray(weight * (1 - ((1 - level) / 2) ** (1 / groups)))


def _skewness(totals: Floats, sizes: Floats, level: float) -> Floats:
    """How far the quantiles of each difference (groups × pairs) are moved by the skewness of the groups' differences, to
    second order, if the standard error is estimated (Hall 1992, The Bootstrap and Edgeworth Expansion, 3.6). The order is
    too rough for few groups, whose splits reach their extremes: it counts from 13 groups on, by 1 − 12 / groups."""
    off = totals - totals.sum(axis=0) / sizes.sum(axis=0) * sizes
    pulled = divide((off**3).sum(axis=0), (off**2).sum(axis=0)) / sizes.sum(axis=0)
    return np.asarray(max(0.0, 1 - 12 / len(totals)) * pulled * (2 * float(ndtri((1 + level) / 2)) ** 2 + 1) / 6)


def _estimate(value: float, low: float, high: float, n: int, groups: int) -> Estimate:
    known = groups >= 2 and high - low > 1e-12 * max(abs(low), abs(high))  # not if NaN, or of equal groups
    return Estimate(value, low if known else None, high if known else None, n, groups)


def _turned_back(estimate: Estimate, turned: int) -> Estimate:
    """The estimate with the sign undone (−1), unchanged (1), or with a symmetric interval if there is no sign (0)."""
    low, high = estimate.ci_low, estimate.ci_high
    if estimate.value is None or turned > 0:
        return estimate
    if low is None or high is None:
        return replace(estimate, value=turned * estimate.value)
    if turned < 0:
        return replace(estimate, value=-estimate.value, ci_low=-high, ci_high=-low)
    return replace(estimate, ci_low=min(low, -high), ci_high=max(high, -low))


class PairTests:
    """The sign-flip tests of pairs of columns of `totals` (groups × systems); each pair is tested once."""

    def __init__(self, totals: Floats) -> None:
        self._totals = totals
        self._p = np.full((totals.shape[1],) * 2, np.nan)

    def among(self, columns: Ints) -> tuple[Floats, Floats]:
        """The lead and the p of each pair of these columns, in the order of `np.triu_indices`; p is NaN with fewer than
        two groups."""
        first, second = (columns[index] for index in np.triu_indices(len(columns), 1))
        whole = self._totals.sum(axis=0)
        lead = whole[first] - whole[second]
        if len(self._totals) >= 2:
            new = np.flatnonzero(np.isnan(self._p[first, second]))
            step = max(1, CHUNK // len(self._totals))
            for start in range(0, len(new), step):
                i, j = first[new[start : start + step]], second[new[start : start + step]]
                self._p[i, j] = self._p[j, i] = sign_flip(self._totals[:, i] - self._totals[:, j])
        return lead, self._p[first, second]


def wins(matrix: Floats) -> tuple[Ints, Ints]:
    """The number of items on which each system is above, and below, each later one: systems × systems."""
    above = np.zeros((len(matrix), len(matrix)), dtype=np.int64)
    below = np.zeros_like(above)
    for i, row in enumerate(matrix):
        above[i, i + 1 :] = (row > matrix[i + 1 :]).sum(axis=1)
        below[i, i + 1 :] = (row < matrix[i + 1 :]).sum(axis=1)
    return above, below


Statistic = Callable[[Floats], Floats]
"""Maps sums (samples × columns) to one number per sample; NaN where it is undefined."""

_MAX_ENUMERATED = 14  # groups that differ, up to which all exchanges are enumerated
_EXCHANGES = 9_999  # random exchanges with more groups


def sums_difference(
    a: NDArray[Any],
    b: NDArray[Any],
    groups: Groups,
    statistic: Statistic,
    trials: Trials = (),
    plan: Resampling = Resampling(),
) -> Difference:
    """The difference, a − b, of a statistic of sums; a and b are tables (items × columns) of the same items.

    The interval is that of `sums_interval` of the difference (`statistic`, `trials` and `plan` as there; `bounds` are
    those of the statistic). p is that of a permutation test which exchanges the sums of a and b within groups: the
    share of exchanges whose absolute difference is at least the observed one (Fisher 1935, The Design of Experiments,
    section 21, with groups as units). It is exact if a and b are exchangeable within each group. With up to 14 groups
    that differ all exchanges are enumerated. With more, 9,999 are drawn with the plan's seed, and p is
    (1 + number as large) / 10,000 (Phipson and Smyth 2010, Statistical Applications in Genetics and Molecular Biology
    9:39). Exchanges in which the statistic is undefined count as large. The result for b − a mirrors that for a − b.
    There are no values per item, so `wins`, `losses` and `ties` are 0.

    The interval contains 0 if and only if p > 1 − level: if it does not, the end beside 0 is that of the test, the
    difference minus the critical value of the exchanges. It is extended for unseen groups as that of `paired_difference`.

    Edges: value None without items or if the statistic is undefined; no interval with fewer than three groups or if no
    groups differ; no p with fewer than two groups. Raises `InputError` for tables of unequal shape, and as
    `sums_interval` does.

    >>> first, second = np.array([[1.0, 1.0]] * 8), np.array([[0.0, 1.0]] * 8)
    >>> difference = sums_difference(first, second, list("abcdefgh"), lambda sums: sums[:, 0] / sums[:, 1])
    >>> difference.value, difference.p
    (1.0, 0.0078125)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 2 or first.shape != second.shape:
        raise InputError("columns", found=f"{first.shape} and {second.shape}", expected="two tables of one shape")
    width = first.shape[1]

    def apart(sums: Floats) -> Floats:
        return statistic(sums[:, :width]) - statistic(sums[:, width:])

    value = float(apart(np.concatenate([first, second], axis=1).sum(axis=0, keepdims=True))[0]) if len(first) else 0.0
    turned = -1 if value < 0 else 1
    table = np.concatenate([first, second][::turned], axis=1)
    shifted = [[[column + width for column in outcome] for outcome in outcomes] for outcomes in trials]
    reach = None if plan.bounds is None else plan.bounds[1] - plan.bounds[0]
    within = plan if reach is None else plan.within(-reach, reach)
    estimate = sums_interval(table, groups, apart, [*trials, *shifted], within)
    if estimate.value == 0:  # there is no sign to turn by: a symmetric interval
        mirrored = sums_interval(np.concatenate([second, first], axis=1), groups, apart, [*trials, *shifted], within)
        estimate = _symmetric(estimate, mirrored)
    p = None
    if estimate.value is not None and estimate.groups >= 2:
        p, estimate = _tested(estimate, *_exchanged(table, groups, apart, plan.seed), within)
    estimate = _turned_back(estimate, turned)
    return Difference(estimate.value, estimate.ci_low, estimate.ci_high, p, estimate.n, estimate.groups, 0, 0, 0)


def _symmetric(estimate: Estimate, mirrored: Estimate) -> Estimate:
    """The estimate with an interval symmetric about 0 that contains both intervals."""
    ends = (estimate.ci_low, estimate.ci_high, mirrored.ci_low, mirrored.ci_high)
    known = [abs(end) for end in ends if end is not None]
    if len(known) < len(ends):
        return replace(estimate, ci_low=None, ci_high=None)
    return replace(estimate, ci_low=-max(known), ci_high=max(known))


def _exchanged(table: Floats, groups: Groups, apart: Statistic, seed: int) -> tuple[Floats, int]:
    """The absolute difference (≥ 0) in exchanges within groups, the table itself first, and the number of groups that
    differ. It is infinite where the statistic is undefined."""
    totals = group_totals(table, group_codes(groups, len(table)))
    swapped = np.roll(totals, table.shape[1] // 2, axis=1) - totals
    moves = swapped[np.any(swapped != 0, axis=1)]
    whole = totals.sum(axis=0)
    if len(moves) <= _MAX_ENUMERATED:
        bits = np.arange(2 ** len(moves))[:, None] >> np.arange(len(moves)) & 1
        found = apart(whole + bits @ moves)
    else:
        rng, parts = generator(seed, "exchanges"), [apart(whole[None])]
        step = max(1, CHUNK // (len(moves) + table.shape[1]))
        for start in range(0, _EXCHANGES, step):
            drawn = rng.random((min(step, _EXCHANGES - start), len(moves))) < 0.5
            parts.append(apart(whole + drawn.astype(np.float64) @ moves))
        found = np.concatenate(parts)
    return np.nan_to_num(np.abs(found), nan=np.inf), len(moves)


def _tested(estimate: Estimate, exchanged: Floats, differing: int, plan: Resampling) -> tuple[float, Estimate]:
    """p, and the estimate (≥ 0) with an interval that agrees with it about 0.

    If they disagree, the lower end is the difference minus the critical value of the exchanges, which is above 0 if and
    only if p ≤ 1 − level (a test-based interval: Miettinen 1976, American Journal of Epidemiology 103:226)."""
    value, low, high = exchanged[0], estimate.ci_low, estimate.ci_high
    p = float(np.mean(exchanged >= value - 1e-9 * max(1.0, value)))  # a tolerance for rounding errors
    if low is None or high is None:
        return p, estimate
    rejected = bool(rejects(np.array(p), plan.level))
    if rejected != (low > 0):
        critical = np.sort(exchanged)[::-1][int((1 - plan.level + 1e-12) * len(exchanged))]
        low = float(value - critical) if rejected else float(min(0.0, value - min(critical, 2 * value)))
    if plan.bounds is not None and np.isfinite(plan.bounds).all():
        share = _share_unseen(np.array(differing), estimate.groups, plan.level)
        nearest = value / 2 if rejected else -np.inf
        low = min(low, max(float(value - share * (value - plan.bounds[0])), nearest))
        high = max(high, float(value + share * (plan.bounds[1] - value)))
    return p, replace(estimate, ci_low=low, ci_high=high)


def holm(p_values: Sequence[float] | NDArray[Any]) -> Floats:
    """Holm's step-down adjusted p values (Holm 1979, Scandinavian Journal of Statistics 6:65), in the given order.

    With p sorted in ascending order, the adjusted p of rank i of m is the maximum of (m − j + 1) · p over ranks j ≤ i,
    at most 1. Rejecting adjusted p ≤ α controls the family-wise error rate at α under any dependence. Raises
    `InputError` for a p outside 0 to 1. For families with missing p values see `holm_known`.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    >>> holm([]).tolist()
    []
    """
    p = finite(p_values, "p value")
    wrong = np.flatnonzero((p < 0) | (p > 1))
    if wrong.size:
        position = int(wrong[0])
        raise InputError(f"p value {position}", found=f"{p[position]:g}", expected="a number from 0 to 1")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def holm_known(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values (`holm`) of a family with missing p values: None stays None and is not counted as a
    test. Raises `InputError` as `holm` does.

    >>> holm_known([0.01, None, 0.03])
    [0.02, None, 0.03]
    """
    adjusted = iter(holm([p for p in p_values if p is not None]).tolist())
    return [None if p is None else next(adjusted) for p in p_values]

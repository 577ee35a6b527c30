"""Ranks by significant differences, their confidence intervals, and the aggregation of several rankings.

A table of ranks is buckets × systems. Rank 1 is best, and systems that do not differ significantly share a rank. NaN
means that a system has no rank in a bucket; it counts as behind all that have one. The rules of social choice,
`copeland` and `borda`, give a score per system, higher is better (Rofin et al. 2023, Vote'n'Rank, EACL, 670).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.bootstrap import Estimate, Resampling, Trials, group_totals, group_units, sums_interval, weights
from proctor.stats.clusters import Floats, Groups, Ints, contents_orders, finite, group_codes, summed
from proctor.stats.means import Matrix, check_bounds, estimates, system_table
from proctor.stats.paired import PairTests, Statistic, holm, sums_difference


@dataclass(frozen=True, slots=True)
class Rank:
    """The rank of a system.

    `rank` is 1 + the number of significantly better systems, but not better than that of a system with a better mean.
    `rank_low` to `rank_high` is the simultaneous confidence interval of its rank by the true mean (`rank_intervals`);
    it contains `rank`. `resampled_rank_low` to `resampled_rank_high` are quantiles of its rank over bootstrap samples, and `p_best` is
    the share of samples in which its mean is best. These are not confidence statements, since bootstrap samples repeat
    the random error of the data. All but `rank` are None without items or with fewer than two groups.

    >>> Rank("a", Estimate(0.5, 0.4, 0.6, 20, 4), rank=1, rank_low=1, rank_high=2, p_best=0.8).rank
    1
    """

    name: str
    estimate: Estimate
    rank: int
    rank_low: int | None
    rank_high: int | None
    p_best: float | None
    resampled_rank_low: int | None = None
    resampled_rank_high: int | None = None


def rank_systems(
    matrix: Matrix,
    names: Sequence[str],
    groups: Groups,
    *,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    plan: Resampling = Resampling(),
) -> list[Rank]:
    """Rank the rows of `matrix` (systems × items) by their means; best first, then by name.

    A system is significantly better than another if its mean is better and the paired clustered test (`sign_flip`),
    adjusted by Holm over all pairs, gives p ≤ `alpha`. Ranks follow the means (`ordered_ranks`). With fewer than two
    groups all systems share rank 1. The confidence intervals of the ranks come from the same tests. In each bootstrap
    sample the rank is 1 + the number of better means; `resampled_rank_low` and `resampled_rank_high` are its quantiles at the plan's
    `level`. A sample with k equal best means counts 1/k in `p_best` of each.

    Raises `InputError` with the system's name for a value that is not finite (missing values must be resolved before),
    and for a duplicate name and unequal lengths.

    >>> ranks = rank_systems([[0] * 8, [1] * 8, [1] * 7 + [0]], ["low", "high", "next"], list("abcdefgh"))
    >>> [(rank.name, rank.rank) for rank in ranks]
    [('high', 1), ('next', 1), ('low', 3)]
    """
    if not 0 < alpha < 1:
        raise InputError("alpha", found=str(alpha), expected="a share between 0 and 1")
    check_systems(names, len(matrix))
    table = system_table(matrix, groups, names)
    for row in table.matrix:
        check_bounds(row, plan.bounds)
    if not table.n_groups or not names:
        return [Rank(name, Estimate(None, None, None, 0, 0), 1, None, None, None) for name in sorted(names)]
    means = table.means(plan)
    tests = PairTests(table.totals).among(np.arange(len(names)))
    return _ranked(names, estimates(table.sums(), means, plan), tests, means, alpha, plan, higher_is_better)


class RankReadings:
    """The ranks of `rank_systems` (α = 0.05) under alternative values of systems, such as for missing scores. `rows`
    (alternatives × items) has several rows per system; each pair of rows is tested once.

    >>> ranks = RankReadings([[0] * 8, [1] * 8, [1] * 7 + [0]], list("abcdefgh"))
    >>> ranks.of([0, 1]), ranks.of([1, 2]), ranks.of([])
    ([2, 1], [1, 1], [])
    """

    def __init__(self, rows: Matrix, groups: Groups, *, higher_is_better: bool = True) -> None:
        codes = group_codes(groups, len(groups))
        size = int(codes.max(initial=-1)) + 1
        values = [summed(codes, finite(row), size) for row in rows]
        self._totals = np.array(values).reshape(len(values), size).T
        self._items = len(codes)
        self._tests = PairTests(self._totals)
        self._sign = 1.0 if higher_is_better else -1.0

    def of(self, rows: Sequence[int]) -> list[int]:
        """The ranks, in this order, if the systems have the values of these rows."""
        chosen = np.array(rows, dtype=np.int64)
        if not self._items or not len(chosen):
            return [1] * len(chosen)
        lead, p = self._tests.among(chosen)
        scores = self._sign * self._totals[:, chosen].sum(axis=0) / self._items
        return _significant(self._sign * lead, p, scores, 0.05)


def rank_sums(
    tables: Sequence[NDArray[Any]],
    names: Sequence[str],
    groups: Groups,
    statistic: Statistic,
    trials: Trials = (),
    *,
    higher_is_better: bool = True,
    plan: Resampling = Resampling(),
) -> list[Rank]:
    """`rank_systems` by a statistic of sums; `tables` has one table (items × columns) per system, of the same items.

    Estimates are those of `sums_interval`. Tests are those of `sums_difference`, adjusted by Holm over all pairs, at
    α = 0.05. Raises `InputError` as they do, if the statistic is undefined for a system, and for a duplicate name.

    >>> good, bad = np.array([[1.0, 1.0]] * 8), np.array([[0.0, 1.0]] * 8)
    >>> ranks = rank_sums([bad, good], ["bad", "good"], list("abcdefgh"), lambda sums: sums[:, 0] / sums[:, 1])
    >>> [(rank.name, rank.rank, rank.estimate.value) for rank in ranks]
    [('good', 1, 1.0), ('bad', 2, 0.0)]
    """
    check_systems(names, len(tables))
    if not names or not len(tables[0]):
        return [Rank(name, Estimate(None, None, None, 0, 0), 1, None, None, None) for name in sorted(names)]
    order = _by_contents([np.asarray(table, dtype=np.float64) for table in tables], groups)
    names, tables = [names[k] for k in order], [np.asarray(tables[k], dtype=np.float64) for k in order]
    values = [sums_interval(table, groups, statistic, trials, plan) for table in tables]
    for name, estimate in zip(names, values, strict=True):
        if estimate.value is None:
            raise InputError(name, found="a statistic that is not defined", expected="a number to rank by")
    differences = [sums_difference(*pair, groups, statistic, trials, plan) for pair in combinations(tables, 2)]
    lead = np.array([difference.value or 0.0 for difference in differences])
    tests = lead, np.array([difference.p for difference in differences], dtype=np.float64)  # None becomes NaN
    drawn = [statistic(sums) for sums in _sampled(tables, groups, plan)]
    return _ranked(names, values, tests, np.stack(drawn, axis=1), 0.05, plan, higher_is_better)


def _by_contents(tables: Sequence[Floats], groups: Groups) -> list[int]:
    """An order of tables that depends on their contents only, so that samples do not depend on names or positions."""
    totals = group_totals(np.concatenate(tables, axis=1), group_codes(groups, len(tables[0])))
    totals = np.round(totals / max(1e-300, np.abs(totals).max(initial=0.0)), 9)  # removes rounding errors
    cells = totals.reshape(len(totals), len(tables), -1).transpose(2, 0, 1)
    order: list[int] = contents_orders(cells, np.zeros_like(cells))[1].tolist()
    return order


def _sampled(tables: Sequence[Floats], groups: Groups, plan: Resampling) -> list[Floats]:
    """The sums of each table in shared samples of groups."""
    totals = group_totals(np.concatenate(tables, axis=1), group_codes(groups, len(tables[0])))
    unit, n_units = group_units(len(totals), plan.seed)
    units = np.zeros((n_units, totals.shape[1]))
    np.add.at(units, unit, totals)
    return np.split(
        np.concatenate([part @ units for part in weights(n_units, plan.draws, plan.seed)]), len(tables), axis=1
    )


def _ranked(
    names: Sequence[str],
    values: Sequence[Estimate],
    tests: tuple[Floats, Floats],
    drawn: Floats,
    alpha: float,
    plan: Resampling,
    higher_is_better: bool,
) -> list[Rank]:
    """The ranks from the estimates, the tests of all pairs (lead and p) and the values in samples (draws × systems)."""
    sign = 1.0 if higher_is_better else -1.0
    lead, p = sign * tests[0], tests[1]
    ranks = _significant(lead, p, np.array([sign * (estimate.value or 0.0) for estimate in values]), alpha)
    if max(estimate.groups for estimate in values) < 2:  # a ratio counts the groups with a trial
        result = [Rank(names[k], estimate, ranks[k], None, None, None) for k, estimate in enumerate(values)]
    else:
        lows, highs = (side.tolist() for side in rank_intervals(p, lead, len(names), plan.level))
        sample_ranks = _resampled_ranks(np.nan_to_num(sign * drawn, nan=-np.inf), plan)
        result = [
            Rank(names[k], estimate, ranks[k], lows[k], highs[k], p_best, low, high)
            for k, (estimate, (low, high, p_best)) in enumerate(zip(values, sample_ranks, strict=True))
        ]
    return sorted(result, key=lambda rank: (-sign * (rank.estimate.value or 0.0), rank.name))


def _significant(lead: Floats, p: Floats, scores: Floats, alpha: float) -> list[int]:
    """Ranks from the lead and p of each pair (NaN: no p) and the scores, where higher is better."""
    adjusted = np.ones(len(p)) if np.isnan(p).any() else holm(p)
    ranks: list[int] = significant_ranks(np.where(adjusted <= alpha, np.sign(lead), 0.0), scores).astype(int).tolist()
    return ranks


def _resampled_ranks(means: Floats, plan: Resampling) -> list[tuple[int, int, float]]:
    """The low and high quantile of the rank and the probability of the best mean, per system; `means` is draws ×
    systems."""
    rounded = np.round(means, 12)  # ignores rounding errors
    ascending = np.sort(rounded, axis=1)
    sample_ranks = np.empty(rounded.shape, dtype=np.int64)
    for draw, (row, order) in enumerate(zip(rounded, ascending, strict=True)):
        sample_ranks[draw] = 1 + len(row) - np.searchsorted(order, row, side="right")
    best = sample_ranks == 1
    p_best = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    tail = (1 - plan.level) / 2
    low, high = np.quantile(sample_ranks, (tail, 1 - tail), axis=0, method="inverted_cdf").astype(np.int64)
    return list(zip(low.tolist(), high.tolist(), p_best.tolist(), strict=True))


def check_systems(names: Sequence[str], n_systems: int) -> None:
    """Raise `InputError` unless there is one name per system, each once."""
    if len(names) != n_systems:
        raise InputError("names", found=str(len(names)), expected=f"{n_systems}, one per system")
    if len(set(names)) != len(names):
        raise InputError("names", found=", ".join(names), expected="each name once")


def ordered_ranks(counts: Floats, scores: Floats) -> Floats:
    """Ranks that are monotone in the scores: the maximum of `counts` over all systems with at least the same score.

    `counts` are 1 + the number of significantly better systems. Alone they could rank an erratic system, which few
    systems beat significantly, before a better and steadier one. With this correction a lower score never has a better
    rank, and equal scores share a rank. Leading axes (buckets, samples) are kept.

    >>> ordered_ranks(np.array([1.0, 1.0, 2.0]), np.array([0.78, 0.46, 0.58])).tolist()
    [1.0, 2.0, 2.0]
    """
    rounded = np.round(scores, 12)  # ignores rounding errors
    above = rounded[..., None, :] >= rounded[..., :, None]
    ranks: Floats = np.where(above, counts[..., None, :], 0.0).max(axis=-1, initial=0.0)
    return ranks


def significant_ranks(better: Floats, scores: Floats) -> Floats:
    """Ranks from significant differences. `better` (… × pairs, in the order of `np.triu_indices`) is 1 if the first
    system of a pair is significantly better, −1 if the second is. `scores` is … × systems; NaN gives rank NaN."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    names = np.eye(scores.shape[-1])
    counts = 1.0 + np.maximum(better, 0.0) @ names[second] + np.maximum(-better, 0.0) @ names[first]
    missing = np.isnan(scores)
    ranks = ordered_ranks(counts, np.where(missing, -np.inf, scores))
    return np.where(missing & ~missing.all(axis=-1, keepdims=True), np.nan, ranks)


def rank_intervals(p_values: Floats, signs: Floats, count: int, level: float = 0.95) -> tuple[Ints, Ints]:
    """Simultaneous confidence intervals of the ranks of `count` systems, as lowest and highest ranks.

    `p_values` are the unadjusted two-sided p of the pairs in the order of `np.triu_indices(count, 1)`. `signs` is 1 if
    the first system of a pair is ahead, −1 if the second is. Each pair has two one-sided hypotheses (a is not better
    than b, b is not better than a), and Holm's correction over all of them controls the family-wise error rate at
    1 − `level`. A system ranks below the systems shown to be better and above those shown to be worse. So the intervals
    contain all true ranks at once with probability `level`, including every rank shared by equal systems (Mogstad,
    Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91:476; Klein, Wright and Wieczorek 2020, Journal of the
    Royal Statistical Society C 69:589). Bootstrap intervals of ranks do not have this property for close systems.

    >>> low, high = rank_intervals(np.array([0.5, 0.001, 0.001]), np.array([1.0, 1.0, 1.0]), 3)
    >>> low.tolist(), high.tolist()
    ([1, 1, 3], [2, 2, 3])
    """
    first, second = np.triu_indices(count, 1)
    one_sided = np.concatenate([np.asarray(p_values) / 2, np.ones(len(first))])
    shown = np.where(holm(one_sided)[: len(first)] <= 1 - level + 1e-12, np.sign(signs), 0.0)
    better = np.bincount(first[shown < 0], minlength=count) + np.bincount(second[shown > 0], minlength=count)
    worse = np.bincount(first[shown > 0], minlength=count) + np.bincount(second[shown < 0], minlength=count)
    return 1 + better, count - worse


def undecided_p(pairs: int, level: float) -> tuple[float, float]:
    """The range of two-sided p in which it depends on the other pairs whether `rank_intervals` rejects a pair.

    Holm compares the smallest of 2m one-sided p (half the two-sided ones) with α / 2m, the next with α / (2m − 1), and
    so on. Since the p of the m opposite hypotheses are 1, the largest relevant bound is α / (m + 1).

    >>> [round(p, 6) for p in undecided_p(4, 0.95)]
    [0.0125, 0.02]
    """
    return (1 - level) / max(1, pairs), 2 * (1 - level) / (pairs + 1) + 1e-9


def tie_groups(count: int, different: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The maximal subsets of 0 … `count` − 1 without a pair in `different`, sorted (a compact letter display).

    Every number is in at least one set. Sets may overlap, since "not different" is not transitive: of three numbers the
    outer two may differ while neither differs from the middle one. Uses the insert-and-absorb algorithm (Piepho 2004,
    Journal of Computational and Graphical Statistics 13:456). Raises `InputError` for a pair that is not two numbers in
    the range.

    >>> tie_groups(3, [(0, 2)])
    [(0, 1), (1, 2)]
    >>> tie_groups(2, [])
    [(0, 1)]
    """
    sets = [frozenset(range(count))] if count else []
    for first, second in different:
        if first == second or not (0 <= first < count and 0 <= second < count):
            raise InputError("pair", found=f"{first}, {second}", expected=f"two of 0 to {count - 1}")
        split: set[frozenset[int]] = set()
        for members in sets:
            both = {first, second} <= members
            split |= {members - {first}, members - {second}} if both else {members}
        sets = [members for members in split if not any(members < other for other in split)]
    return sorted(tuple(sorted(members)) for members in sets)


def pairwise_wins(ranks: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of buckets in which each system is ahead of, and behind, each other system: systems × systems.

    Leading axes before buckets × systems are kept. Raises `InputError` for ranks below 1.

    >>> ahead, behind = pairwise_wins(np.array([[1.0, 2.0], [1.0, 1.0]]))
    >>> ahead.tolist(), behind.tolist()
    ([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    """
    table = np.where(np.isnan(ranks), np.inf, ranks)
    if table.ndim < 2:
        raise InputError("ranks", found=f"{table.ndim} dimensions", expected="buckets × systems")
    if table.size and table.min() < 1:
        raise InputError("ranks", found=f"{table.min():g}", expected="1 or more")
    ahead = (table[..., :, None] < table[..., None, :]).sum(axis=-3)
    return ahead, np.swapaxes(ahead, -1, -2)


def copeland(ranks: Floats) -> Floats:
    """The Copeland score: the number of systems that a system beats minus the number that beat it, where a system beats
    another if it is ahead in more buckets than behind (Copeland 1951; Saari and Merlin 1996, Economic Theory 8:51).

    In a cycle of three all scores are 0:

    >>> copeland(np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]])).tolist()
    [0.0, 0.0, 0.0]
    >>> copeland(np.array([[1.0, 1.0, 3.0]])).tolist()
    [1.0, 1.0, -2.0]
    """
    ahead, behind = pairwise_wins(ranks)
    score: Floats = np.sign(ahead - behind).sum(axis=-1).astype(np.float64)
    return score


def borda(ranks: Floats) -> Floats:
    """The Borda score with shared ranks: over all buckets, the number of systems behind minus the number ahead (Borda
    1781).

    >>> borda(np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 3.0]])).tolist()
    [3.0, 1.0, -4.0]
    """
    ahead, behind = pairwise_wins(ranks)
    score: Floats = (ahead - behind).sum(axis=-1).astype(np.float64)
    return score


def competition_ranks(scores: Floats) -> NDArray[np.int64]:
    """1 + the number of higher scores; equal scores share a rank. Leading axes are kept.

    >>> competition_ranks(np.array([0.5, 2.0, 0.5])).tolist()
    [2, 1, 2]
    """
    rounded = np.round(scores, 9)  # ignores rounding errors
    result: NDArray[np.int64] = 1 + (rounded[..., None, :] > rounded[..., :, None]).sum(axis=-1)
    return result


RANK_RULES: dict[str, Callable[[Floats], Floats]] = {"copeland": copeland, "borda": borda}
"""The rules that use only the table of ranks, by name."""

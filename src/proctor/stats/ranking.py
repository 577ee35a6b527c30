"""Ranks that hold: differences that are not significant share a rank; and from several rankings to one order.

A table of ranks is buckets × systems, 1 best, systems that do not differ significantly sharing a rank; NaN where a
system has no rank in a bucket, which counts as behind all that have one. Both rules of social choice, `copeland` and
`borda`, give a score per system, higher is better (Rofin et al. 2023, Vote'n'Rank, EACL, 670).
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
from proctor.stats.clusters import Floats, Groups, Ints, finite, group_codes, summed
from proctor.stats.means import Matrix, check_bounds, estimates, system_table
from proctor.stats.paired import PairTests, Statistic, holm, sums_difference


@dataclass(frozen=True, slots=True)
class Rank:
    """One system's place.

    `rank` is 1 + the number of systems that are significantly better, and never better than that of a system with a
    better mean. `rank_low` to `rank_high` is the simultaneous confidence interval of its rank by the true mean
    (`rank_intervals`), which holds `rank`, too. `place_low` to `place_high` is how its place spreads
    over bootstrap samples and `p_best` the share of them in which its mean is the best: no confidence interval, since
    samples repeat the luck of the data. None where these can't be known (no items, or fewer than two groups).

    >>> Rank("a", Estimate(0.5, 0.4, 0.6, 20, 4), rank=1, rank_low=1, rank_high=2, p_best=0.8).rank
    1
    """

    name: str
    estimate: Estimate
    rank: int
    rank_low: int | None
    rank_high: int | None
    p_best: float | None
    place_low: int | None = None
    place_high: int | None = None


def rank_systems(
    matrix: Matrix,
    names: Sequence[str],
    groups: Groups,
    *,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    plan: Resampling = Resampling(),
) -> list[Rank]:
    """Ranks the rows of `matrix` (systems × items) by their means; best first, then by name.

    A system is significantly better than another where its mean is better and the paired clustered
    test (see `sign_flip`), adjusted by Holm over all pairs, gives p ≤ `alpha`. Ranks are shared by what can't be
    told apart, a worse mean never has the better rank (`ordered_ranks`), and with no groups to tell
    by (fewer than two) all share rank 1. The confidence intervals of the ranks come from the same tests. A sample in
    which k systems have the same best mean counts 1/k for each of them; a place in a sample is 1 + the number of
    better means, and `place_low`, `place_high` are its quantiles at the interval's `level`.

    Raises `InputError` that names the system for a value that is not finite (missing values must be
    dealt with before), for a name given twice and for lengths that differ.

    >>> ranks = rank_systems([[0] * 8, [1] * 8, [1] * 7 + [0]], ["low", "high", "next"], list("abcdefgh"))
    >>> [(one.name, one.rank) for one in ranks]
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
    found, tests = estimates(table.sums(), means, plan), PairTests(table.totals).among(np.arange(len(names)))
    return _ranked(names, found, tests, means, alpha, plan, higher_is_better)


class RankReadings:
    """The ranks of `rank_systems` (at α = 0.05) under many readings of values that are in doubt: `rows` (readings ×
    items) hold what systems may be worth, several rows a system. Two rows are tested once, however often they meet.

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
        """The ranks if systems are worth these rows, in their order."""
        chosen = np.array(rows, dtype=np.int64)
        if not self._items or not len(chosen):
            return [1] * len(chosen)
        lead, p = self._tests.among(chosen)
        scores = self._sign * self._totals[:, chosen].sum(axis=0) / self._items
        return _tested(self._sign * lead, p, scores, 0.05)


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
    """`rank_systems` by a statistic of sums: `tables` hold for each system items × columns, of the same items.

    Estimates are those of `sums_interval`, tests those of `sums_difference`, both at the level of 5 % and adjusted by
    Holm over all pairs. Raises `InputError` as they do, for a statistic that is not defined for a system, and for a
    name given twice.

    >>> good, bad = np.array([[1.0, 1.0]] * 8), np.array([[0.0, 1.0]] * 8)
    >>> ranks = rank_sums([bad, good], ["bad", "good"], list("abcdefgh"), lambda sums: sums[:, 0] / sums[:, 1])
    >>> [(one.name, one.rank, one.estimate.value) for one in ranks]
    [('good', 1, 1.0), ('bad', 2, 0.0)]
    """
    check_systems(names, len(tables))
    order = sorted(range(len(names)), key=names.__getitem__)  # samples do not depend on how systems are ordered
    names, tables = [names[k] for k in order], [np.asarray(tables[k], dtype=np.float64) for k in order]
    if not names or not len(tables[0]):
        return [Rank(name, Estimate(None, None, None, 0, 0), 1, None, None, None) for name in names]
    found = [sums_interval(one, groups, statistic, trials, plan) for one in tables]
    for name, one in zip(names, found, strict=True):
        if one.value is None:
            raise InputError(name, found="a statistic that is not defined", expected="a number to rank by")
    both = list(combinations(range(len(names)), 2))
    differences = [sums_difference(tables[i], tables[j], groups, statistic, trials, plan) for i, j in both]
    lead = np.array([one.value or 0.0 for one in differences])
    tests = lead, np.array([np.nan if one.p is None else one.p for one in differences])
    drawn = [statistic(sums) for sums in _sampled(tables, groups, plan)]
    return _ranked(names, found, tests, np.stack(drawn, axis=1), 0.05, plan, higher_is_better)


def _sampled(tables: Sequence[Floats], groups: Groups, plan: Resampling) -> list[Floats]:
    """The sums of each table in the same samples of groups."""
    totals = group_totals(np.concatenate(tables, axis=1), group_codes(groups, len(tables[0])))
    unit, n_units = group_units(len(totals), plan.seed)
    units = np.zeros((n_units, totals.shape[1]))
    np.add.at(units, unit, totals)
    return np.split(
        np.concatenate([part @ units for part in weights(n_units, plan.draws, plan.seed)]), len(tables), axis=1
    )


def _ranked(
    names: Sequence[str],
    found: Sequence[Estimate],
    tests: tuple[Floats, Floats],
    drawn: Floats,
    alpha: float,
    plan: Resampling,
    higher_is_better: bool,
) -> list[Rank]:
    """The ranks from the estimates, the tests of all pairs (who is ahead, and p) and the values in samples (draws ×
    systems)."""
    sign = 1.0 if higher_is_better else -1.0
    lead, p = sign * tests[0], tests[1]
    ranks = _tested(lead, p, np.array([sign * (one.value or 0.0) for one in found]), alpha)
    if found[0].groups < 2:
        result = [Rank(names[k], one, ranks[k], None, None, None) for k, one in enumerate(found)]
    else:
        lows, highs = (side.tolist() for side in rank_intervals(p, lead, len(names), plan.level))
        places = _places(np.nan_to_num(sign * drawn, nan=-np.inf), plan)
        result = [
            Rank(names[k], one, ranks[k], lows[k], highs[k], chance, low, high)
            for k, (one, (low, high, chance)) in enumerate(zip(found, places, strict=True))
        ]
    return sorted(result, key=lambda one: (-sign * (one.estimate.value or 0.0), one.name))


def _tested(lead: Floats, p: Floats, scores: Floats, alpha: float) -> list[int]:
    """Ranks from who is ahead in each pair, its p (NaN: not known) and the scores, all with higher as better."""
    adjusted = np.ones(len(p)) if np.isnan(p).any() else holm(p)
    ranks: list[int] = significant_ranks(np.where(adjusted <= alpha, np.sign(lead), 0.0), scores).astype(int).tolist()
    return ranks


def _places(means: Floats, plan: Resampling) -> list[tuple[int, int, float]]:
    """Low and high place and chance of the best mean of each system; `means` is draws × systems."""
    # Equal means may differ by a crumb of rounding; that must not decide a place.
    rounded = np.round(means, 12)
    ascending = np.sort(rounded, axis=1)
    places = np.empty(rounded.shape, dtype=np.int64)
    for draw, (row, order) in enumerate(zip(rounded, ascending, strict=True)):
        places[draw] = 1 + len(row) - np.searchsorted(order, row, side="right")
    best = places == 1
    chance = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    tail = (1 - plan.level) / 2
    low = np.quantile(places, tail, axis=0, method="inverted_cdf")
    high = np.quantile(places, 1 - tail, axis=0, method="inverted_cdf")
    return [(int(one), int(other), float(share)) for one, other, share in zip(low, high, chance, strict=True)]


def check_systems(names: Sequence[str], n_systems: int) -> None:
    """Raises `InputError` where names are not one per system, each once."""
    if len(names) != n_systems:
        raise InputError("names", found=str(len(names)), expected=f"{n_systems}, one per system")
    if len(set(names)) != len(names):
        raise InputError("names", found=", ".join(names), expected="each name once")


def ordered_ranks(counts: Floats, scores: Floats) -> Floats:
    """Ranks that follow the scores: each system's is the highest of the `counts` of all that score at least as much.

    Counts are 1 + the number of significantly better systems. Counting alone would put an erratic system, which few
    beat because its results vary, before a better and steadier one; so no lower score ever has the better rank, and
    equal scores share theirs. Leading axes (buckets, samples) are kept.

    >>> ordered_ranks(np.array([1.0, 1.0, 2.0]), np.array([0.78, 0.46, 0.58])).tolist()
    [1.0, 2.0, 2.0]
    """
    rounded = np.round(scores, 12)  # a crumb of rounding decides no rank
    above = rounded[..., None, :] >= rounded[..., :, None]
    found: Floats = np.where(above, counts[..., None, :], 0.0).max(axis=-1, initial=0.0)
    return found


def significant_ranks(better: Floats, scores: Floats) -> Floats:
    """Ranks from who is significantly better: 1 the first, −1 the second of each pair in the order of
    `np.triu_indices`. `better` is … × pairs, `scores` … × systems, NaN where a system has none, and so no rank."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    names = np.eye(scores.shape[-1])
    counts = 1.0 + np.maximum(better, 0.0) @ names[second] + np.maximum(-better, 0.0) @ names[first]
    nothing = np.isnan(scores)
    ranks = ordered_ranks(counts, np.where(nothing, -np.inf, scores))
    return np.where(nothing & ~nothing.all(axis=-1, keepdims=True), np.nan, ranks)


def rank_intervals(p_values: Floats, signs: Floats, count: int, level: float = 0.95) -> tuple[Ints, Ints]:
    """The lowest and highest rank of each of `count` systems, with a simultaneous confidence of `level`.

    `p_values` are the two-sided p of the pairs in the order of `np.triu_indices(count, 1)`, unadjusted; `signs` say
    who is ahead (1 the first, −1 the second). Each pair stands for two one-sided hypotheses (a is no better than b,
    b is no better than a); Holm over all of them rejects none that is true with probability `level`. A system is then
    ranked below those shown to be better and above those shown to be worse, and the intervals of all systems hold
    their true ranks at once; where true scores are equal, every rank that they share (Mogstad, Romano, Shaikh and
    Wilhelm 2024, Review of Economic Studies 91:476; Klein, Wright and Wieczorek 2020, Journal of the Royal Statistical
    Society C 69:589). A bootstrap of ranks does not: it repeats the luck of the sample where systems are close.

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
    """Between which p of a pair it depends on the others whether `rank_intervals` tells its systems apart.

    Holm compares the smallest of 2m one-sided p, each half of a pair's, with α / 2m, the next with α / (2m − 1) and so
    on; as the other m are 1, the last that counts with α / (m + 1).

    >>> [round(p, 6) for p in undecided_p(4, 0.95)]
    [0.0125, 0.02]
    """
    return (1 - level) / max(1, pairs), 2 * (1 - level) / (pairs + 1) + 1e-9


def tie_groups(count: int, different: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The largest sets of 0 … `count` − 1 in which no two are `different`, by their first members.

    Everyone is in at least one; who is in two stands between them. "Not different" is no equality: of
    three, the outer two may differ while neither differs from the middle one (insert and absorb: Piepho
    2004, Journal of Computational and Graphical Statistics 13:456). Raises `InputError` for a pair that
    is not of two numbers in the range.

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
        for one in sets:
            both = {first, second} <= one
            split |= {one - {first}, one - {second}} if both else {one}
        sets = [one for one in split if not any(one < other for other in split)]
    return sorted(tuple(sorted(one)) for one in sets)


def pairwise_wins(ranks: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """In how many buckets each system is ahead of each other, and behind it: systems × systems each.

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
    """How many systems each one beats, less how many it loses to; one beats another that it is ahead of in
    more buckets than behind (Copeland 1951; Saari and Merlin 1996, Economic Theory 8:51).

    A cycle of three scores 0 for all of them:

    >>> copeland(np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]])).tolist()
    [0.0, 0.0, 0.0]
    >>> copeland(np.array([[1.0, 1.0, 3.0]])).tolist()
    [1.0, 1.0, -2.0]
    """
    ahead, behind = pairwise_wins(ranks)
    score: Floats = np.sign(ahead - behind).sum(axis=-1).astype(np.float64)
    return score


def borda(ranks: Floats) -> Floats:
    """Over all buckets: systems it is ahead of, less systems it is behind (Borda 1781, for shared ranks).

    >>> borda(np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 3.0]])).tolist()
    [3.0, 1.0, -4.0]
    """
    ahead, behind = pairwise_wins(ranks)
    score: Floats = (ahead - behind).sum(axis=-1).astype(np.float64)
    return score


def places(scores: Floats) -> NDArray[np.int64]:
    """1 + the number of higher scores; equal ones share a place. Scores may carry leading axes.

    >>> places(np.array([0.5, 2.0, 0.5])).tolist()
    [2, 1, 2]
    """
    rounded = np.round(scores, 9)  # a crumb of rounding decides no place
    found: NDArray[np.int64] = 1 + (rounded[..., None, :] > rounded[..., :, None]).sum(axis=-1)
    return found


RANK_RULES: dict[str, Callable[[Floats], Floats]] = {"copeland": copeland, "borda": borda}
"""The rules that need nothing but the table of ranks, by name."""

"""Ranks that hold: differences that are not real share a rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups
from proctor.stats.estimate import Estimate
from proctor.stats.intervals import check_bounds, estimates
from proctor.stats.matrix import Matrix, system_table
from proctor.stats.options import Options, Resampling
from proctor.stats.paired import Pair, all_pairs
from proctor.stats.ties import ordered_ranks, rank_intervals


@dataclass(frozen=True, slots=True)
class Rank:
    """One system's place.

    `rank` is 1 + the number of systems that are significantly better, and never better than that of a system with a
    better mean. `rank_low` to `rank_high` is the simultaneous confidence interval of its rank by the true mean
    (`proctor.stats.ties.rank_intervals`), which holds `rank`, too. `place_low` to `place_high` is how its place spreads
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
    **options: Unpack[Options],
) -> list[Rank]:
    """Ranks the rows of `matrix` (systems × items) by their means; best first, then by name.

    A system is significantly better than another where its mean is better and the paired clustered
    test (see `sign_flip`), adjusted by Holm over all pairs, gives p ≤ `alpha`. Ranks are shared by what can't be
    told apart, a worse mean never has the better rank (`proctor.stats.ties.ordered_ranks`), and with no groups to tell
    by (fewer than two) all share rank 1. The confidence intervals of the ranks come from the same tests. A sample in
    which k systems have the same best mean counts 1/k for each of them; a place in a sample is 1 + the number of
    better means, and `place_low`, `place_high` are its quantiles at the interval's `level`.

    Raises `InputError` that names the system for a value that is not finite (missing values must be
    dealt with before), for a name given twice and for lengths that differ.

    >>> ranks = rank_systems([[0] * 8, [1] * 8, [1] * 7 + [0]], ["low", "high", "next"], list("abcdefgh"))
    >>> [(one.name, one.rank) for one in ranks]
    [('high', 1), ('next', 1), ('low', 3)]
    """
    plan = Resampling(**options)
    if not 0 < alpha < 1:
        raise InputError(None, "alpha", found=str(alpha), expected="a share between 0 and 1")
    if len(names) != len(matrix):
        raise InputError(None, "names", found=str(len(names)), expected=f"{len(matrix)}, one per system")
    if len(set(names)) != len(names):
        raise InputError(None, "names", found=", ".join(names), expected="each name once")
    table = system_table(matrix, groups, names)
    for row in table.matrix:
        check_bounds(row, plan.bounds)
    if not table.n_groups or not names:
        return [Rank(name, Estimate(None, None, None, 0, 0), 1, None, None, None) for name in sorted(names)]
    means = table.means(plan)
    sign = 1.0 if higher_is_better else -1.0
    found = estimates(table.sums(), means, plan)
    scores = np.array([sign * (one.value or 0.0) for one in found])
    pairs = all_pairs(table, plan)
    ranks = _significant_ranks(pairs, scores, sign, alpha)
    if table.n_groups < 2:
        result = [Rank(names[k], one, ranks[k], None, None, None) for k, one in enumerate(found)]
    else:
        p = np.array([1.0 if pair.difference.p is None else pair.difference.p for pair in pairs])
        lead = np.array([sign * (pair.difference.value or 0.0) for pair in pairs])
        lows, highs = (side.tolist() for side in rank_intervals(p, lead, len(names), plan.level))
        places = _places(sign * means, plan)
        result = [
            Rank(names[k], one, ranks[k], lows[k], highs[k], places[k][2], places[k][0], places[k][1])
            for k, one in enumerate(found)
        ]
    return sorted(result, key=lambda one: (-sign * (one.estimate.value or 0.0), one.name))


def _significant_ranks(pairs: list[Pair], scores: Floats, sign: float, alpha: float) -> list[int]:
    counts = np.ones(len(scores))
    for pair in pairs:
        value = pair.difference.value
        if pair.p_holm is not None and pair.p_holm <= alpha and value:
            counts[pair.second if sign * value > 0 else pair.first] += 1
    return [int(rank) for rank in ordered_ranks(counts, scores)]


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

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

__all__ = ["Rank", "rank_systems"]


@dataclass(frozen=True, slots=True)
class Rank:
    """One system's place.

    `rank` is 1 + the number of systems that are significantly better. `rank_low` to `rank_high` is the
    interval of its place by the mean alone, and `p_best` the chance that its mean is the best, both over
    bootstrap samples; None where these can't be drawn (no items, or fewer than two groups).

    >>> Rank("a", Estimate(0.5, 0.4, 0.6, 20, 4), rank=1, rank_low=1, rank_high=2, p_best=0.8).rank
    1
    """

    name: str
    estimate: Estimate
    rank: int
    rank_low: int | None
    rank_high: int | None
    p_best: float | None


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
    test (see `sign_flip`), adjusted by Holm over all pairs, gives p ≤ `alpha`. So the rank of a system
    is the best place that the data do not rule out, ranks are shared by what can't be told apart, and
    with no groups to tell by (fewer than two) all share rank 1. A sample in which k systems have the same
    best mean counts 1/k for each of them; a place in a sample is 1 + the number of better means, and
    `rank_low`, `rank_high` are its quantiles at the interval's `level`.

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
    ranks = _significant_ranks(all_pairs(table, means, plan), len(names), higher_is_better, alpha)
    places = _places(means if higher_is_better else -means, plan) if table.n_groups > 1 else None
    result = []
    for k, estimate in enumerate(estimates(table.sums(), means, plan)):
        low, high, best = places[k] if places else (None, None, None)
        result.append(Rank(names[k], estimate, ranks[k], low, high, best))
    sign = -1.0 if higher_is_better else 1.0
    return sorted(result, key=lambda one: (sign * (one.estimate.value or 0.0), one.name))


def _significant_ranks(pairs: list[Pair], n_systems: int, higher_is_better: bool, alpha: float) -> list[int]:
    ranks = [1] * n_systems
    for pair in pairs:
        value = pair.difference.value
        if pair.p_holm is None or pair.p_holm > alpha or not value:
            continue
        first_better = (value > 0) == higher_is_better
        ranks[pair.second if first_better else pair.first] += 1
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

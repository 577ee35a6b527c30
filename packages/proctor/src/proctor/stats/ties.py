"""Ties in the ranking over buckets: broken by win rates over bootstrap samples, and how the ranking would be without each
system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from proctor.stats.clusters import Floats, Ints
from proctor.stats.ranking import competition_ranks

TieRule = Literal["all", "tied"]
"""Whose accuracies a system has to exceed in a sample to win it: those of all systems, or of the tied ones."""

TIE_RULES: tuple[TieRule, ...] = get_args(TieRule)
"""The rules that break ties."""

BROKEN_UP_TO = 3
"""Ties are broken in the first three ranks."""

Named = tuple[tuple[str, ...], ...]
"""Names of systems, best first; those in one tuple share a rank."""


@dataclass(frozen=True, slots=True)
class TieOrder:
    """Systems that share `rank` by the rule, ordered by their win rate over `all` systems, by that over the `tied` ones
    alone, and by the mean of their pairwise comparisons (`head_to_head`).

    >>> TieOrder(1, all=(("a",), ("b",)), tied=(("b",), ("a",)), head_to_head=(("b",), ("a",))).differs
    True
    """

    rank: int
    all: Named
    tied: Named
    head_to_head: Named

    @property
    def differs(self) -> bool:
        """Whether the two win rates give different orders."""
        return self.all != self.tied

    def by(self, rule: TieRule) -> Named:
        """The order by one of the rules."""
        return self.all if rule == "all" else self.tied


@dataclass(frozen=True, slots=True)
class Removal:
    """The ranking of all systems but `name`: those at the `first` rank, and those on the first three (`top`), best first.
    `moves_first` and `moves_top` say whether they differ from what the ranks of all systems say of the others.

    >>> Removal("a", first=("b",), top=("b", "c"), moves_first=False, moves_top=False).first
    ('b',)
    """

    name: str
    first: tuple[str, ...]
    top: tuple[str, ...]
    moves_first: bool
    moves_top: bool


@dataclass(frozen=True, slots=True)
class BrokenTies:
    """Ranks with ties broken; which systems this affects; and the win rate of each system among those it was tied with
    (NaN: not tied within the first three ranks)."""

    rank: Ints
    broken: NDArray[np.bool_]
    tied_rate: Floats


def mean_of_buckets(table: Floats) -> Floats:
    """The mean over buckets (the second-last axis), except those without items; 0 without any."""
    there = ~np.isnan(table)
    count = there.sum(axis=-2)
    mean: Floats = np.divide(
        np.where(there, table, 0.0).sum(axis=-2), count, out=np.zeros(count.shape), where=count > 0
    )
    return mean


@dataclass(frozen=True, slots=True)
class SampledScores:
    """The scores of systems in bootstrap samples and buckets, rounded for comparison (systems × samples × buckets); a
    missing score is −∞.

    >>> scores = SampledScores.drawn(np.array([[[0.9, 0.9, 0.1]]]))
    >>> scores.win_rates().tolist(), scores.head_to_head().tolist()
    ([0.5, 0.5, 0.0], [0.75, 0.75, 0.0])
    """

    scores: Floats

    @classmethod
    def drawn(cls, sampled: Floats) -> SampledScores:
        """From scores by samples × buckets × systems, NaN for a missing one."""
        rounded = np.where(np.isnan(sampled), -np.inf, np.round(sampled, 12))
        return cls(np.ascontiguousarray(rounded.transpose(2, 0, 1)))

    def __len__(self) -> int:
        return int(self.scores.shape[1])

    def of(self, systems: Ints) -> SampledScores:
        """The scores of these systems alone."""
        return SampledScores(self.scores[systems])

    def win_rates(self) -> Floats:
        """The share of samples in which each system is best, averaged over the buckets that have items. k equal systems
        count 1/k each."""
        highest = self.scores.max(axis=0, initial=-np.inf)
        there = highest > -np.inf
        equal = np.zeros(highest.shape)
        for row in self.scores:
            equal += row == highest
        share = np.where(there, 1 / np.maximum(equal, 1), 0.0)
        won = np.zeros((len(self.scores), self.scores.shape[2]))
        for number, row in enumerate(self.scores):
            won[number] = np.where(row == highest, share, 0.0).sum(axis=0)
        return self._over_buckets(won, there)

    def head_to_head(self) -> Floats:
        """For each of two or more systems the share of samples in which it is better than another one (an equal score
        counts one half), averaged over the others and over the buckets that have items."""
        behind = np.zeros((len(self.scores), self.scores.shape[2]))
        for number, row in enumerate(self.scores):
            for other, against in enumerate(self.scores):
                if other != number:
                    behind[number] += (row > against).sum(axis=0) + (row == against).sum(axis=0) / 2
        return self._over_buckets(behind / (len(self.scores) - 1), self.scores.max(axis=0, initial=-np.inf) > -np.inf)

    @staticmethod
    def _over_buckets(won: Floats, there: NDArray[np.bool_]) -> Floats:
        """The mean over buckets of what systems won there (systems × buckets), of the samples that have items there."""
        count = there.sum(axis=0)
        rates = np.divide(won, count, out=np.full(won.shape, np.nan), where=count > 0)
        return mean_of_buckets(rates.T)


def break_ties(
    score: Floats, sampled: Callable[[Ints], SampledScores], rule: TieRule, needed: NDArray[np.bool_] | None = None
) -> BrokenTies:
    """Breaks ties for the first three ranks. `sampled` returns the scores of some systems in samples. Ties among systems
    of which none is `needed` remain."""
    rank = competition_ranks(score)
    broken, tied_rate = np.zeros(len(score), dtype=np.bool_), np.full(len(score), np.nan)
    result = rank.copy()
    of_all: Floats | None = None
    for first in range(1, BROKEN_UP_TO + 1):
        tied = np.flatnonzero(rank == first)
        if len(tied) < 2 or (needed is not None and not needed[tied].any()):
            continue
        scores = sampled(tied)
        if not len(scores):
            continue
        tied_rate[tied] = scores.win_rates()
        if rule == "all" and of_all is None:
            of_all = tied_rate.copy() if len(tied) == len(score) else sampled(np.arange(len(score))).win_rates()
        rate = tied_rate[tied] if of_all is None else of_all[tied]
        result[tied] = first - 1 + competition_ranks(rate)
        broken[tied] = len(np.unique(result[tied])) > 1
    return BrokenTies(result, broken, tied_rate)


def tie_orders(names: Sequence[str], score: Floats, rates: Sequence[Floats]) -> tuple[TieOrder, ...]:
    """The orders of the tied within the first three ranks; `rates` are the win rates over all systems and over the tied,
    and the mean pairwise comparisons (NaN: not tied there)."""
    rank = competition_ranks(score)
    tied = ~np.isnan(rates[1])
    return tuple(
        TieOrder(first, *(_named(names, rate, np.flatnonzero(tied & (rank == first))) for rate in rates))
        for first in np.unique(rank[tied]).tolist()
    )


def _named(names: Sequence[str], rate: Floats, tied: Ints) -> Named:
    rank = competition_ranks(rate[tied])
    return tuple(
        tuple(sorted(names[system] for system in tied[rank == one].tolist())) for one in np.unique(rank).tolist()
    )


def removal_of(names: Sequence[str], removed: int, rank: Ints, others: Ints) -> Removal:
    """What changes without one system: `rank` are the ranks of all systems, `others` those of the rest, in the same
    order."""
    kept = np.delete(np.arange(len(names)), removed)
    before = competition_ranks(-rank[kept].astype(np.float64))
    own = [names[system] for system in kept.tolist()]
    first, top = (_up_to(own, others, last) for last in (1, BROKEN_UP_TO))
    firsts, tops = (_up_to(own, before, last) for last in (1, BROKEN_UP_TO))
    return Removal(names[removed], first, top, set(first) != set(firsts), set(top) != set(tops))


def _up_to(names: Sequence[str], rank: Ints, last: int) -> tuple[str, ...]:
    return tuple(name for at, name in sorted(zip(rank.tolist(), names, strict=True)) if at <= last)

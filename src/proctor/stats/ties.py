"""Ties in the ranking over buckets: broken by win rates over bootstrap samples, and how the ranking would be without each
system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from proctor.stats.clusters import Floats, Ints
from proctor.stats.ranking import places

TieRule = Literal["all", "tied"]
"""Whose accuracies a system has to exceed in a sample to win it: those of all systems, or of the tied ones."""

TIE_RULES: tuple[TieRule, ...] = get_args(TieRule)
"""The rules that break ties."""

BROKEN_UP_TO = 3
"""Ties are broken in the first three places."""

Named = tuple[tuple[str, ...], ...]
"""Names of systems, best first; those in one tuple share a place."""


@dataclass(frozen=True, slots=True)
class TieOrder:
    """Systems that share `place` by the rule, ordered by their win rate over `all` systems, by that over the `tied` ones
    alone, and by the mean of their pairwise comparisons (`head_to_head`).

    >>> TieOrder(1, all=(("a",), ("b",)), tied=(("b",), ("a",)), head_to_head=(("b",), ("a",))).differs
    True
    """

    place: int
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
    """The ranking of all systems but `name`: those on the `first` place, and those on the first three (`top`), best first.
    `moves_first` and `moves_top` say whether they differ from what the places of all systems say of the others.

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
    """Places with ties broken; which systems this affects; and the win rate of each system among those it was tied with
    (NaN: not tied within the first three places)."""

    place: Ints
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


def win_rates(sampled: Floats) -> Floats:
    """The share of samples in which each system is best in each bucket: buckets × systems, from samples × buckets ×
    systems. k equal systems count 1/k each."""
    rounded = np.where(np.isnan(sampled), -np.inf, np.round(sampled, 12))
    highest = rounded.max(axis=2, keepdims=True, initial=-np.inf)
    there = highest > -np.inf
    best = (rounded == highest) & there
    total = (best / np.maximum(best.sum(axis=2, keepdims=True), 1)).sum(axis=0)
    count = there.sum(axis=0)
    rate: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return rate


def head_to_head(sampled: Floats) -> Floats:
    """For each of two or more systems the share of samples in which it is better than another one, averaged over the other
    systems and over buckets. An equal score counts one half, a missing one is below all others.

    >>> head_to_head(np.array([[[0.9, 0.9, 0.1]]])).tolist()  # one half and one, one half and one, none
    [0.75, 0.75, 0.0]
    """
    rounded = np.where(np.isnan(sampled), -1.0, np.round(sampled, 12))
    n_systems = sampled.shape[2]
    behind = np.full(sampled.shape[1:], -0.5)  # itself is equal
    for other in range(n_systems):
        against = rounded[:, :, other, None]
        behind += (rounded > against).mean(axis=0) + (rounded == against).mean(axis=0) / 2
    empty = np.isnan(sampled).all(axis=(0, 2))
    rates = behind / (n_systems - 1)
    rates[empty] = np.nan
    return mean_of_buckets(rates)


def break_ties(
    score: Floats, sampled: Callable[[Ints], Floats], rule: TieRule, needed: NDArray[np.bool_] | None = None
) -> BrokenTies:
    """Breaks ties for the first three places. `sampled` returns the scores of some systems in samples (samples × buckets ×
    systems). Ties among systems of which none is `needed` remain."""
    place = places(score)
    broken, tied_rate = np.zeros(len(score), dtype=np.bool_), np.full(len(score), np.nan)
    result = place.copy()
    of_all: Floats | None = None
    for first in range(1, BROKEN_UP_TO + 1):
        tied = np.flatnonzero(place == first)
        if len(tied) < 2 or (needed is not None and not needed[tied].any()):
            continue
        scores = sampled(tied)
        if not len(scores):
            continue
        tied_rate[tied] = mean_of_buckets(win_rates(scores))
        if rule == "all" and of_all is None:
            of_all = mean_of_buckets(win_rates(sampled(np.arange(len(score)))))
        rate = tied_rate[tied] if of_all is None else of_all[tied]
        result[tied] = first - 1 + places(rate)
        broken[tied] = len(np.unique(result[tied])) > 1
    return BrokenTies(result, broken, tied_rate)


def tie_orders(names: Sequence[str], score: Floats, rates: Sequence[Floats]) -> tuple[TieOrder, ...]:
    """The orders of the tied within the first three places; `rates` are the win rates over all systems and over the tied,
    and the mean pairwise comparisons (NaN: not tied there)."""
    place = places(score)
    tied = ~np.isnan(rates[1])
    return tuple(
        TieOrder(first, *(_named(names, rate, np.flatnonzero(tied & (place == first))) for rate in rates))
        for first in np.unique(place[tied]).tolist()
    )


def _named(names: Sequence[str], rate: Floats, tied: Ints) -> Named:
    place = places(rate[tied])
    return tuple(
        tuple(sorted(names[system] for system in tied[place == one].tolist())) for one in np.unique(place).tolist()
    )


def removal_of(names: Sequence[str], removed: int, place: Ints, others: Ints) -> Removal:
    """What changes without one system: `place` are the places of all systems, `others` those of the rest, in the same
    order."""
    kept = np.delete(np.arange(len(names)), removed)
    before = places(-place[kept].astype(np.float64))
    own = [names[system] for system in kept.tolist()]
    first, top = (_up_to(own, others, last) for last in (1, BROKEN_UP_TO))
    firsts, tops = (_up_to(own, before, last) for last in (1, BROKEN_UP_TO))
    return Removal(names[removed], first, top, set(first) != set(firsts), set(top) != set(tops))


def _up_to(names: Sequence[str], place: Ints, last: int) -> tuple[str, ...]:
    return tuple(name for at, name in sorted(zip(place.tolist(), names, strict=True)) if at <= last)

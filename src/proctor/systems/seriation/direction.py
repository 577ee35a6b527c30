"""Which end comes first: stated, or learned from solved instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from proctor.systems.seriation.appearance import busyness, look

__all__ = ["Learned", "Start", "learned"]

Start = Literal["given", "plainer", "busier"]
"""The end that comes first: the one given earlier (no knowledge), the one with less in it, the one with more."""

_LEVEL = 0.05


@dataclass(frozen=True)
class Learned:
    """What solved instances say, each by its id: whether it begins with the plainer of its two ends."""

    votes: Mapping[str, bool]

    def start(self, item: str) -> Start:
        """By all instances but the item itself: what most of them do, where that is more than a coin would show
        (exact binomial test, two-sided, at 0.05); else no knowledge.

        >>> Learned(dict.fromkeys("abcdef", True)).start("z"), Learned({"a": True}).start("z")
        ('plainer', 'given')
        """
        from scipy.stats import binomtest

        votes = [plainer for name, plainer in self.votes.items() if name != item]
        if not votes or binomtest(sum(votes), len(votes)).pvalue > _LEVEL:
            return "given"
        return "plainer" if 2 * sum(votes) > len(votes) else "busier"


def learned(solved: Iterable[tuple[str, bytes, bytes]]) -> Learned:
    """From ids with the true first and last picture; ends that are equally busy say nothing."""
    votes = {}
    for name, first, last in solved:
        begins, ends = busyness(look(first)), busyness(look(last))
        if begins != ends:
            votes[name] = begins < ends
    return Learned(votes)

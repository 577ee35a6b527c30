"""Which team of a board gets which share of its money, and which teams are announced.

The rule is that of the FOCUS challenge, for each board: the first three teams that beat every baseline, are eligible for
awards and have described their method get 50, 30 and 20 percent. Its adjustment for ties: teams that share a rank share
the sum of the percentages of the ranks that they take up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby


@dataclass(frozen=True)
class Contender:
    """A team on a board: its rank (None: none), and why it gets no prize (empty: it may get one). `above` says whether
    it beats every baseline."""

    name: str
    rank: int | None
    above: bool = True
    reasons: tuple[str, ...] = ()


def prize_shares(contenders: Sequence[Contender], split: Sequence[float]) -> dict[str, Fraction]:
    """The share of a board's money of each team that gets some, by name.

    Teams without a reason against them move up in the order of their ranks. Teams that share a rank take up as many
    ranks as they are, and each gets an equal part of the sum of these ranks' percentages.

    >>> one, two, three = Contender("A", 1, reasons=("not eligible",)), Contender("B", 2), Contender("C", 2)
    >>> {name: str(share) for name, share in prize_shares([one, two, three], (50, 30, 20)).items()}
    {'B': '2/5', 'C': '2/5'}
    """
    entitled = [one for one in contenders if not one.reasons and one.rank is not None]
    parts = [Fraction(str(part)) / 100 for part in split]
    shares: dict[str, Fraction] = {}
    taken = 0
    for _, group in groupby(sorted(entitled, key=lambda one: one.rank or 0), key=lambda one: one.rank):
        tied = list(group)
        pool = sum(parts[taken : taken + len(tied)], Fraction(0))
        taken += len(tied)
        if pool:
            shares |= {one.name: pool / len(tied) for one in tied}
    return shares


def announced_teams(contenders: Sequence[Contender], most: int) -> set[str]:
    """The names of the first teams that beat every baseline, eligible or not; with a tie at the last rank, of all that
    share it.

    >>> teams = [Contender("A", 1), Contender("B", 2, above=False), Contender("C", 3), Contender("D", 3)]
    >>> sorted(announced_teams(teams, 2))
    ['A', 'C', 'D']
    """
    above = [one for one in contenders if one.above and one.rank is not None]
    return {one.name for one in above if sum((other.rank or 0) < (one.rank or 0) for other in above) < most}

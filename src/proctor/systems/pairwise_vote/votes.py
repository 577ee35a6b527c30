"""Votes on which of two frames comes first, counted: for whom, and for the place in which it was shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.metrics.ordering import Consensus, kemeny_of_votes

__all__ = ["Ballot", "Tally", "read_choice"]

_ANSWER = re.compile(r"(?:picture|image|frame|number|no\.?)?[\s#:]*([12])(?:st|nd)?", re.IGNORECASE)
_WORDS = {"first": 1, "the first": 1, "second": 2, "the second": 2, "one": 1, "two": 2}


def read_choice(said: str) -> int | None:
    """1 or 2, as a model wrote it; None where it is undecided or says something else.

    >>> [read_choice(said) for said in ("1", "Picture 2", "the first", "unclear", "1 or 2", "A")]
    [1, 2, 1, None, None, None]
    """
    plain = said.strip().strip("\"'.()[]").casefold()
    found = _ANSWER.fullmatch(plain)
    return int(found[1]) if found else _WORDS.get(plain)


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote: the two frames as they were shown, which place was said to be earlier (None: undecided), and why."""

    shown: tuple[str, str]
    choice: int | None
    reason: str

    @property
    def earlier(self) -> str | None:
        """The label that it is for."""
        return None if self.choice is None else self.shown[self.choice - 1]


class Tally:
    """All ballots on some labels."""

    def __init__(self, labels: Sequence[str], ballots: Sequence[Ballot]) -> None:
        self.labels = tuple(labels)
        self.ballots = tuple(ballots)

    @property
    def decided(self) -> list[Ballot]:
        """Those that name one of the two."""
        return [ballot for ballot in self.ballots if ballot.choice is not None]

    def votes(self, labels: Sequence[str]) -> NDArray[np.float64]:
        """Labels × labels: how many votes put the first one before the second one."""
        place = {label: number for number, label in enumerate(labels)}
        table = np.zeros((len(labels), len(labels)))
        for ballot in self.decided:
            a, b = ballot.shown if ballot.choice == 1 else ballot.shown[::-1]
            if a in place and b in place:
                table[place[a], place[b]] += 1
        return table

    def consensus(self) -> Consensus | None:
        """The exact Kemeny order of the labels that at least one decided vote is about; None where none is."""
        voted = {label for ballot in self.decided for label in ballot.shown}
        known = [label for label in self.labels if label in voted]
        return kemeny_of_votes(known, self.votes(known)) if known else None

    def even(self, order: Sequence[str]) -> list[tuple[str, str]]:
        """Neighbours in an order of which as many votes say the one as the other: what is between them is open."""
        table = self.votes(order)
        steps = enumerate(pairwise(order))
        return [pair for place, pair in steps if table[place, place + 1] == table[place + 1, place]]

    def first_shown_share(self) -> float | None:
        """The share of decided votes for the frame that was shown first: 0.5 without position bias, if every pair is
        shown as often each way round; None without a decided vote."""
        decided = self.decided
        return sum(ballot.choice == 1 for ballot in decided) / len(decided) if decided else None

    def both_ways(self) -> tuple[int, int]:
        """Pairs that most votes decide in both ways round, and how many of them the same way."""
        lean: dict[tuple[str, str], int] = {}
        for ballot in self.decided:
            lean[ballot.shown] = lean.get(ballot.shown, 0) + (1 if ballot.choice == 1 else -1)
        pairs = [
            (a, b)
            for a, b in lean
            if self.labels.index(a) < self.labels.index(b) and lean.get((b, a)) and lean[a, b]
        ]
        return len(pairs), sum((lean[a, b] > 0) != (lean[b, a] > 0) for a, b in pairs)

    def told(self) -> dict[str, JsonValue]:
        """For an answer's `extra`."""
        decided, (pairs, alike) = len(self.decided), self.both_ways()
        return {
            "labels": [*self.labels],
            "votes": [[int(count) for count in row] for row in self.votes(self.labels)],
            "decided": decided,
            "undecided": len(self.ballots) - decided,
            "first_shown_share": self.first_shown_share(),
            "pairs_decided_both_ways": pairs,
            "pairs_decided_alike": alike,
        }

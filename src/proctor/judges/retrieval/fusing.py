"""Several rankings as one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

RANK_CONSTANT = 60
"""How little the first places count for more than the next ones, as its authors chose it."""


def fused(rankings: Sequence[Sequence[T]]) -> list[tuple[T, float]]:
    """What is in any of the rankings, best first, with its score: the sum over the rankings that list it of
    1 / (60 + rank), ranks from 1 (reciprocal rank fusion; Cormack, Clarke and Büttcher 2009, SIGIR).

    Equal scores stay in the order in which they were first met.

    >>> [(name, round(score, 5)) for name, score in fused([["a", "b"], ["b", "c"]])]
    [('b', 0.03252), ('a', 0.01639), ('c', 0.01613)]
    """
    scores: dict[T, float] = {}
    for ranking in rankings:
        for rank, one in enumerate(ranking, start=1):
            scores[one] = scores.get(one, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])

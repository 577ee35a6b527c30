"""The best order by exact search over subsets: a consensus of many, or the nearest that keeps rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError

MOST_LABELS = 14
"""More are refused: the search is exact, and its work doubles with every label (10: well under a second)."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """An order, the weight of the votes against it, and `agreement`: the share of the votes' weight that it
    keeps, from 0.5 (or more) to 1; None where nobody voted.

    >>> kemeny([["A", "B"], ["B", "A"]]).agreement
    0.5
    """

    order: tuple[str, ...]
    against: float
    agreement: float | None


@dataclass(frozen=True, slots=True)
class Repair:
    """An order, the rules that it breaks, and the pairs in which it differs from what was given.

    >>> nearest_order(["A", "B"], []).moved
    ()
    """

    order: tuple[str, ...]
    broken: tuple[tuple[str, str], ...]
    moved: tuple[tuple[str, str], ...]


def kemeny(orders: Sequence[Sequence[str]], weights: Sequence[float] | None = None) -> Consensus:
    """The order with the least weighted number of pairs that the orders have the other way round.

    Exact (Kemeny 1959, Daedalus 88:577; by dynamic programming over subsets, Betzler et al. 2009, Theoretical
    Computer Science 410:4554). An order may lack labels: it has no vote on their pairs. Of several best ones it
    is the first in the order in which labels are first met. Raises `InputError` for no label, more than
    `MOST_LABELS`, a label twice in one order, weights that are not as many as orders or are negative.

    >>> kemeny([["A", "B", "C"], ["B", "C", "A"], ["A", "C", "B"]])
    Consensus(order=('A', 'B', 'C'), against=3.0, agreement=0.6666666666666667)
    """
    shares = [1.0] * len(orders) if weights is None else [float(weight) for weight in weights]
    if len(shares) != len(orders):
        raise InputError("weights", found=str(len(shares)), expected=f"{len(orders)}, one per order")
    labels = list(dict.fromkeys(label for order in orders for label in order))
    position = {label: number for number, label in enumerate(labels)}
    votes = np.zeros((len(labels), len(labels)))
    for order, share in zip(orders, shares, strict=True):
        if len(set(order)) != len(order):
            raise InputError("orders", found=" > ".join(order), expected="each label at most once")
        for later, label in enumerate(order):
            for earlier in order[:later]:
                votes[position[earlier], position[label]] += share
    return kemeny_of_votes(labels, votes)


def kemeny_of_votes(labels: Sequence[str], votes: NDArray[np.float64]) -> Consensus:
    """The same from a table of votes: `votes[i, j]` is the weight that `labels[i]` comes before `labels[j]`.

    Its diagonal does not count. Raises `InputError` for a table of another shape, weights that are negative or
    not finite, no label, more than `MOST_LABELS`, or a label twice.

    >>> kemeny_of_votes(["A", "B"], np.array([[0.0, 1.0], [2.0, 0.0]])).order
    ('B', 'A')
    """
    _check(labels)
    n = len(labels)
    table = np.array(votes, dtype=np.float64)
    if table.shape != (n, n) or not np.isfinite(table).all() or (table < 0).any():
        raise InputError("votes", found=f"shape {table.shape}", expected=f"{n} × {n} weights from 0")
    np.fill_diagonal(table, 0.0)
    order = _cheapest(table.T)
    against = float(sum(table[b, a] for position, a in enumerate(order) for b in order[position + 1 :]))
    cast = float(table.sum())
    agreement = 1 - against / cast if cast else None
    return Consensus(tuple(labels[index] for index in order), against, agreement)


def nearest_order(given: Sequence[str], rules: Sequence[tuple[str, str]]) -> Repair:
    """The order that breaks the fewest rules, and among those the nearest to `given`.

    A rule (a, b) says that a comes before b; one named twice counts twice, and one about a label that is not
    there is left aside. Near is the least number of pairs the other way round (Kendall's tau distance). Rules may
    contradict each other: then some stay broken. Exact. Of several nearest ones it is the first that
    keeps `given`'s earlier labels first. Raises `InputError` for no label, more than `MOST_LABELS`, a label
    twice, and a rule from a label to itself.

    >>> nearest_order(["C", "A", "B"], [("A", "C")])
    Repair(order=('A', 'C', 'B'), broken=(), moved=(('A', 'C'),))
    >>> nearest_order(["A", "B"], [("A", "B"), ("B", "A")]).broken
    (('B', 'A'),)
    """
    _check(given)
    position = {label: number for number, label in enumerate(given)}
    here = [(a, b) for a, b in rules if a in position and b in position]
    itself = next((a for a, b in here if a == b), None)
    if itself is not None:
        raise InputError("rules", found=f"{itself} before itself", expected="two labels")
    n = len(given)
    cost = np.tril(np.ones((n, n)), -1)  # cost[i, j]: of putting i before j
    for a, b in here:
        cost[position[b], position[a]] += n * n  # one broken rule outweighs all moves together
    order = tuple(given[index] for index in _cheapest(cost))
    put = {label: number for number, label in enumerate(order)}
    return Repair(
        order=order,
        broken=tuple((a, b) for a, b in here if put[a] > put[b]),
        moved=tuple((b, a) for i, a in enumerate(given) for b in given[i + 1 :] if put[b] < put[a]),
    )


def _check(labels: Sequence[str]) -> None:
    if not 1 <= len(labels) <= MOST_LABELS:
        raise InputError("labels", found=str(len(labels)), expected=f"1 to {MOST_LABELS}")
    if len(set(labels)) != len(labels):
        raise InputError("labels", found=", ".join(labels), expected="each label once")


def _cheapest(cost: NDArray[np.float64]) -> list[int]:
    """The order with the least sum of `cost[i, j]` over all i before j; of several the first one.

    `best[S]` is the least cost of ordering the labels in the bit set S alone; whichever comes first pays for
    standing before all the others.
    """
    n = len(cost)
    size = 1 << n
    pays = np.zeros((n, size))
    for bit in range(n):  # pays[i, S]: i before all in S
        pays[:, 1 << bit : 2 << bit] = pays[:, : 1 << bit] + cost[:, bit, None]
    table = pays.tolist()
    best, first = [0.0] * size, [0] * size
    for some in range(1, size):
        least = float("inf")
        for index in range(n):
            if some >> index & 1:
                rest = some ^ (1 << index)
                total = table[index][rest] + best[rest]
                if total < least:
                    least, first[some] = total, index
        best[some] = least
    order, left = [], size - 1
    while left:
        order.append(first[left])
        left ^= 1 << first[left]
    return order

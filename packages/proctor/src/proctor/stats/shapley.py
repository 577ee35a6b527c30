"""Shapley values: what each of several differences contributes to a total, whatever the order in which they are taken."""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np

from proctor.core import InputError
from proctor.stats.clusters import Floats

MOST_PLAYERS = 10
"""With more players the enumeration of all subsets is refused."""


@cache
def _weights(players: int) -> Floats:
    """The matrix (subsets × players) that maps the values of all subsets to Shapley values."""
    subsets = np.arange(2**players)
    size = np.array([int(subset).bit_count() for subset in subsets])
    found = np.zeros((len(subsets), players))
    for player in range(players):
        inside = (subsets >> player) & 1 == 1
        with_it = np.array([1 / (players * comb(players - 1, count - 1)) if count else 0.0 for count in size])
        without = np.array([1 / (players * comb(players - 1, count)) if count < players else 0.0 for count in size])
        found[:, player] = np.where(inside, with_it, -without)
    found.flags.writeable = False
    return found


def shapley_values(values: Floats) -> Floats:
    """The Shapley value of each player, from the value of every subset of players.

    `values` is … × 2^k: the entry at index s is the value of the subset whose player j is in it if bit j of s is set, so
    that the first is the value of the empty set and the last that of all. Returns … × k; the values of the players add up
    to the last minus the first entry (efficiency), and do not depend on the order of players:

        φ(j) = Σ over S without j of |S|! (k − |S| − 1)! / k! · (v(S ∪ j) − v(S))

    Source: Shapley 1953, A value for n-person games, Contributions to the Theory of Games II, 307.

    Edges: no player (one value) gives an empty last axis; NaN in any subset makes the players' values NaN. Raises
    `InputError` if the last axis is no power of 2, or above 2^10.

    >>> shapley_values(np.array([0.0, 1.0, 2.0, 5.0])).tolist()
    [2.0, 3.0]
    """
    count = values.shape[-1] if values.ndim else 0
    players = max(count, 1).bit_length() - 1
    if count != 2**players or players > MOST_PLAYERS:
        raise InputError("values", found=f"{count} subsets", expected=f"2^k values, k at most {MOST_PLAYERS}")
    found: Floats = values @ _weights(players)
    return found

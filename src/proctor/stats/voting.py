"""From each bucket's ranks to one order: the rules of social choice.

A table of ranks is buckets × systems, 1 best, systems that can't be told apart sharing a rank; NaN where a
system has no rank in a bucket, which counts as behind all that have one. Every rule gives a score per system,
higher is better. Properties of the rules: Rofin et al. 2023, Vote'n'Rank, EACL, 670.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats


def duels(ranks: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """In how many buckets each system is ahead of each other, and behind it: systems × systems each.

    Leading axes before buckets × systems are kept. Raises `InputError` for ranks below 1.

    >>> ahead, behind = duels(np.array([[1.0, 2.0], [1.0, 1.0]]))
    >>> ahead.tolist(), behind.tolist()
    ([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    """
    table = np.where(np.isnan(ranks), np.inf, ranks)
    if table.ndim < 2:
        raise InputError(None, "ranks", found=f"{table.ndim} dimensions", expected="buckets × systems")
    if table.size and table.min() < 1:
        raise InputError(None, "ranks", found=f"{table.min():g}", expected="1 or more")
    ahead = (table[..., :, None] < table[..., None, :]).sum(axis=-3)
    return ahead, np.swapaxes(ahead, -1, -2)


def copeland(ranks: Floats) -> Floats:
    """How many systems each one beats, less how many it loses to; one beats another that it is ahead of in
    more buckets than behind (Copeland 1951; Saari and Merlin 1996, Economic Theory 8:51).

    A cycle of three scores 0 for all of them:

    >>> copeland(np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]])).tolist()
    [0.0, 0.0, 0.0]
    >>> copeland(np.array([[1.0, 1.0, 3.0]])).tolist()
    [1.0, 1.0, -2.0]
    """
    ahead, behind = duels(ranks)
    score: Floats = np.sign(ahead - behind).sum(axis=-1).astype(np.float64)
    return score


def borda(ranks: Floats) -> Floats:
    """Over all buckets: systems it is ahead of, less systems it is behind (Borda 1781, for shared ranks).

    >>> borda(np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 3.0]])).tolist()
    [3.0, 1.0, -4.0]
    """
    ahead, behind = duels(ranks)
    score: Floats = (ahead - behind).sum(axis=-1).astype(np.float64)
    return score


def minimax(ranks: Floats) -> Floats:
    """Less the most buckets by which any other system beats it (Simpson 1969, Quarterly Journal of
    Economics 83:478; Kramer 1977): 0 for one that nobody beats; one system alone scores 0.

    >>> minimax(np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 3.0]])).tolist()
    [0.0, -1.0, -2.0]
    """
    ahead, behind = duels(ranks)
    score: Floats = -np.maximum((behind - ahead).max(axis=-1, initial=0), 0).astype(np.float64)
    return score + 0.0


def dowdall(ranks: Floats) -> Floats:
    """The sum of 1 / rank over buckets, 0 for a bucket without a rank (Nauru's rule: Fraenkel and Grofman
    2014, Australian Journal of Political Science 49:186).

    >>> dowdall(np.array([[1.0, 2.0], [2.0, np.nan]])).tolist()
    [1.5, 0.5]
    """
    duels(ranks)
    score: Floats = np.where(np.isnan(ranks), 0.0, 1 / np.where(np.isnan(ranks), 1.0, ranks)).sum(axis=-2)
    return score


def places(scores: Floats) -> NDArray[np.int64]:
    """1 + the number of higher scores; equal ones share a place. Scores may carry leading axes.

    >>> places(np.array([0.5, 2.0, 0.5])).tolist()
    [2, 1, 2]
    """
    rounded = np.round(scores, 9)  # a crumb of rounding decides no place
    found: NDArray[np.int64] = 1 + (rounded[..., None, :] > rounded[..., :, None]).sum(axis=-1)
    return found


RANK_RULES: dict[str, Callable[[Floats], Floats]] = {
    "copeland": copeland,
    "borda": borda,
    "minimax": minimax,
    "dowdall": dowdall,
}
"""The rules that need nothing but the table of ranks."""

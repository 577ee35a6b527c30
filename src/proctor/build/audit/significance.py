"""Whether guessers hit more often than by lot, in groups that may be alike within."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr
from scipy.stats import binom

__all__ = ["difference_p", "surplus_p"]

_Floats = NDArray[np.float64]


def surplus_p(hits: NDArray[np.bool_], chance: _Floats, groups: NDArray[np.int64]) -> _Floats:
    """One-sided p of each guesser (a row of `hits`, guessers × items) against guessing by lot, where item
    i is right with probability `chance[i]`.

    It is the larger of two, since either may be too hopeful: the exact tail of the number of hits if
    all items were independent (with few groups the t-test knows too little of the spread), and a t-test of
    the groups' surplus (hits − chance, summed over the group) against 0 (items of a group may be
    alike). With a single group only the first can be had. NaN nowhere; no item at all gives 1.
    """
    exact = _tail(chance)[hits.sum(axis=1)]
    _, codes = np.unique(groups, return_inverse=True)
    if len(codes) == 0 or codes.max() < 1:
        return np.asarray(exact)
    surplus = _group_sums(hits - chance, codes)
    return np.asarray(np.maximum(exact, stdtr(surplus.shape[1] - 1, -_t(surplus))))


def difference_p(differences: _Floats, groups: NDArray[np.int64]) -> float | None:
    """Two-sided p of a t-test of the groups' summed differences against 0; None with one group."""
    _, codes = np.unique(groups, return_inverse=True)
    if len(codes) == 0 or codes.max() < 1:
        return None
    sums = _group_sums(differences[None, :], codes)
    return float(2 * stdtr(sums.shape[1] - 1, -abs(_t(sums)[0])))


def _tail(chance: _Floats) -> _Floats:
    """P(at least h hits), h = 0 to n, of independent tries with these probabilities."""
    mass = np.ones(1)
    for probability, tries in zip(*np.unique(chance, return_counts=True), strict=True):
        mass = np.convolve(mass, binom.pmf(np.arange(tries + 1), tries, probability))
    return np.minimum(1.0, np.cumsum(mass[::-1])[::-1])


def _group_sums(values: _Floats, codes: NDArray[np.int64]) -> _Floats:
    return np.stack([np.bincount(codes, row) for row in values])


def _t(sums: _Floats) -> _Floats:
    """The t statistic of each row against 0; 0 for rows of zeros, infinite where all agree otherwise."""
    mean = sums.mean(axis=1)
    error = sums.std(axis=1, ddof=1) / np.sqrt(sums.shape[1])
    error[error < 1e-12] = 0.0
    unlimited = np.where(np.abs(mean) < 1e-12, 0.0, np.copysign(np.inf, mean))
    return np.asarray(np.divide(mean, error, out=unlimited, where=error > 0))

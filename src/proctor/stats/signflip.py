"""The paired test: the signs of the groups' differences are flipped."""

from __future__ import annotations

import numpy as np

from proctor.core import generator
from proctor.stats.clusters import Floats
from proctor.stats.special import ndtr

__all__ = ["sign_flip"]

_ALL_UP_TO = 14  # groups up to which all sign patterns are gone through: 2^13 of them
_FLIPS = 10_000
_FEW = 20  # flips as extreme as the data below which their number is too uncertain
_CHUNK = 4_000_000


def sign_flip(differences: Floats, seed: int) -> Floats:
    """Two-sided p per column of `differences` (groups × pairs: a group's sum of a − b over its items).

    If two systems are as good as each other, their names could be exchanged within any group: the sign
    of each group's difference is a fair coin. p is the share of sign patterns whose |sum| is at least
    the observed one (Fisher 1935, The Design of Experiments, section 21, with the group as the unit); so the
    test keeps its level exactly, however the items within a group depend. Up to 14 groups all patterns
    are gone through; with more, 10,000 drawn ones, and p = (1 + as extreme) / (1 + drawn) (Phipson and
    Smyth 2010, Statistical Applications in Genetics and Molecular Biology 9:39), the same patterns for
    all pairs. Where fewer than 20 of those are as extreme, p is the saddlepoint approximation of the
    same share (Robinson 1982, Journal of the Royal Statistical Society B 44:91), so that p is known well
    enough to be adjusted for thousands of pairs. Never 0: at least 2 / 2^(groups that differ).

    >>> sign_flip(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), seed=0).tolist()
    [0.25, 1.0]
    """
    n_groups, n_pairs = differences.shape
    size = np.abs(differences).sum(axis=0)
    observed = np.abs(differences.sum(axis=0)) - 1e-9 * size
    everything = n_groups <= _ALL_UP_TO
    total = 2 ** max(0, n_groups - 1) if everything else _FLIPS
    rng = generator(seed, "sign flips")
    extreme = np.zeros(n_pairs, dtype=np.int64)
    step = max(1, _CHUNK // max(1, n_groups, n_pairs))
    for start in range(0, total, step):
        rows = min(step, total - start)
        signs = _patterns(start, rows, n_groups) if everything else _drawn(rng, rows, n_groups)
        extreme += (np.abs(signs @ differences) >= observed).sum(axis=0)
    if everything:
        return np.asarray(extreme / total, dtype=np.float64)
    p = (1 + extreme) / (1 + total)
    rare = np.flatnonzero(extreme < _FEW)
    if rare.size:
        p[rare] = _saddlepoint(differences[:, rare])
    return p


def _patterns(start: int, rows: int, n_groups: int) -> Floats:
    """Sign patterns by number, as bits; the first group keeps its sign, since −x is as extreme as x."""
    bits = (np.arange(start, start + rows)[:, None] >> np.arange(n_groups - 1)) & 1
    return np.concatenate([np.ones((rows, 1)), 1.0 - 2.0 * bits], axis=1)


def _drawn(rng: np.random.Generator, rows: int, n_groups: int) -> Floats:
    coins = rng.integers(0, 2, size=(rows, n_groups), dtype=np.int8)
    signs: Floats = 2.0 * coins.astype(np.float64) - 1.0
    return signs


def _saddlepoint(differences: Floats) -> Floats:
    """The two-sided tail by the cumulants of Σ ±d, K(s) = Σ log cosh(s d), in the form of Barndorff-Nielsen.

    Sums ±d of multiples of some number lie two of it apart, so their tail begins one of it below the
    observed sum; that is done for whole numbers.
    """
    size = np.abs(differences)
    reach, differing = size.sum(axis=0), (size > 0).sum(axis=0)
    floor = np.maximum(np.exp2(1.0 - differing), np.finfo(np.float64).tiny)
    observed = np.abs(differences.sum(axis=0))
    whole = (differences == np.rint(differences)).all(axis=0)
    gap = np.gcd.reduce(np.where(whole, size, 0.0).astype(np.int64), axis=0)
    target = observed - gap
    inside = observed < reach * (1 - 1e-12)
    result: Floats = floor.copy()
    if inside.any():
        tail = _tail(size[:, inside], target[inside])
        result[inside] = np.clip(2 * tail, floor[inside], 1.0)
    return result


def _tail(size: Floats, target: Floats) -> Floats:
    """P(Σ ±d ≥ target) for 0 < target < Σ d; Newton's steps rise to the root, since K′ is concave there."""
    scale = np.sqrt((size**2).sum(axis=0))
    d, goal = size / scale, target / scale
    s = goal.copy()
    for _ in range(200):
        slope = np.tanh(s * d)
        bend = (d**2 * (1 - slope**2)).sum(axis=0)
        change = (goal - (d * slope).sum(axis=0)) / bend
        s += change
        if np.all(np.abs(change) <= 1e-10 * s):
            break
    sd = s * d
    cumulant = (sd + np.log1p(np.exp(-2 * sd)) - np.log(2)).sum(axis=0)
    bend = (d**2 * (1 - np.tanh(sd) ** 2)).sum(axis=0)
    w = np.sqrt(2 * (s * goal - cumulant))
    return np.asarray(ndtr(-(w + np.log(s * np.sqrt(bend) / w) / w)), dtype=np.float64)

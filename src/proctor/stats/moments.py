"""What the sums over groups say of a clustered mean: its error, skewness and degrees of freedom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from proctor.stats.clusters import Floats, Sums, summed


@dataclass(frozen=True, slots=True)
class Moments:
    """One entry per slice each. With eg = total − mean · size and hg = size / n of group g:

    `spread` = √(Σ eg²) / n, the error that a bootstrap of whole groups sees; `error` = √(Σ eg² / (1 − hg)) / n
    (CR2: Bell and McCaffrey 2002, Survey Methodology 28:169, for a mean); `skew` = Σ eg³ / (Σ eg²)^1.5;
    `df` the degrees of freedom of `error`², at least 1 (see `moments`).
    """

    n: Floats
    groups: Floats
    mean: Floats
    spread: Floats
    error: Floats
    skew: Floats
    df: Floats


def moments(sums: Sums) -> Moments:
    """The moments of every slice; 0 where there is nothing to divide by.

    Degrees of freedom are Satterthwaite's, (tr Q)² / tr Q², for Q the covariance of eg / √(1 − hg) if
    values in a group correlate by ρ, estimated from the data and kept in 0 to 1 (Imbens and Kolesár
    2016, Review of Economics and Statistics 98:701). They are groups − 1 for groups of equal size and
    fewer for unequal ones.
    """

    def add(per_cell: Floats) -> Floats:
        return summed(sums.slice_, per_cell, sums.n_slices)

    size = sums.count
    n = add(size)
    mean = divide(add(sums.total), n)
    off = sums.total - mean[sums.slice_] * size
    share = size / n[sums.slice_]
    leverage = divide(np.ones_like(share), 1 - share)
    squared = add(off**2)
    # Where all group means are the same, rounding leaves crumbs; they are no spread.
    squared[squared <= 1e-24 * sums.squares * n] = 0.0
    deviation = divide(sums.squares, n) - mean**2
    correlation = np.clip(divide(divide(squared, deviation) - n, add(size * (size - 1))), 0, 1)
    variance = size * (1 + correlation[sums.slice_] * (size - 1))
    return Moments(
        n=n,
        groups=np.bincount(sums.slice_, minlength=sums.n_slices).astype(np.float64),
        mean=mean,
        spread=divide(np.sqrt(squared), n),
        error=np.where(squared > 0, divide(np.sqrt(add(off**2 * leverage)), n), 0.0),
        skew=divide(add(off**3), squared**1.5),
        df=np.maximum(_satterthwaite(add, share, leverage, variance), 1.0),
    )


def _satterthwaite(add: Callable[[Floats], Floats], share: Floats, leverage: Floats, variance: Floats) -> Floats:
    """(tr Q)² / tr Q² of Q = A V Aᵀ with A = diag(1 − h)^(−½) (I − h 1ᵀ) and V = diag(variance).

    Written out into sums over groups, so that Q (groups × groups) is never made.
    """
    whole = add(variance)
    a, b, c = add(leverage * share**2), add(leverage * share * variance), add(leverage * variance**2)
    trace = add(leverage * variance) - 2 * b + a * whole
    outside = 2 * a * c + (a * whole) ** 2 + 2 * b**2 - 4 * whole * a * b
    twice = leverage**2 * variance
    diagonal = add(twice * variance) - 4 * add(twice * share * variance) + 2 * whole * add(twice * share**2)
    return divide(trace**2, outside + diagonal)


def divide(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, and 0 where bottom is not above 0."""
    return np.divide(top, bottom, out=np.zeros(np.shape(top)), where=bottom > 0)

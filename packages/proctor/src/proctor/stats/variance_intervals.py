"""Intervals of shares of variance, from the shares without each group in turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.stats.special import betaincinv, stdtrit

Floats = NDArray[np.float64]

FEWEST_GROUPS = 6
"""Groups for an interval of a share of variance."""


def jackknife_ends(shares: Floats, without: Floats, level: float) -> tuple[Floats, Floats]:
    """The ends of intervals of shares (0 to 1), given the shares `without` each group (groups × shares): the jackknife on
    the scale of arcsin √share, with Student's t (groups − 1 degrees of freedom; Efron and Tibshirani 1993, chapter 11).
    Percentiles of resampled groups cover 69 to 90 % with 6 to 10 groups; these cover 92 to 97 % except for a share near 0
    (docs/reference/statistics.md).

    >>> low, high = jackknife_ends(np.array([0.3]), np.array([[0.28], [0.33], [0.29], [0.31]]), 0.95)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.2], [0.41])
    """
    groups = len(without)
    turned, estimate = np.arcsin(np.sqrt(np.clip(without, 0, 1))), np.arcsin(np.sqrt(np.clip(shares, 0, 1)))
    error = np.sqrt((groups - 1) / groups * ((turned - turned.mean(axis=0)) ** 2).sum(axis=0))
    reach = float(stdtrit(groups - 1, (1 + level) / 2)) * error
    low: Floats = np.sin(np.maximum(0.0, estimate - reach)) ** 2
    high: Floats = np.sin(np.minimum(np.pi / 2, estimate + reach)) ** 2
    return low, high


def ratio_ends(f: float, between: int, within: int, size: float, level: float) -> tuple[float, float]:
    """The ends of the interval of the ratio of two variances, between and within groups of `size`, from the F of their mean
    squares and its two degrees of freedom (Searle, Casella and McCulloch 1992, section 3.6; exact for normal values in
    groups of equal size). Neither is below 0.

    >>> [round(end, 2) for end in ratio_ends(4.0, 19, 180, 10, 0.95)]
    [0.12, 0.77]
    """
    ends = []
    for p in ((1 + level) / 2, (1 - level) / 2):
        x = float(betaincinv(between / 2, within / 2, p))
        quantile = within * x / (between * (1 - x))
        ends.append(max(0.0, (f / quantile - 1) / size))
    return ends[0], ends[1]

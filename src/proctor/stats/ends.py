"""From bootstrap samples of a statistic to the ends of its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.stats.clusters import Floats
from proctor.stats.special import ndtr, ndtri

_REACH = 5  # samples that must lie beyond an end for the bootstrap to know where it is


def percentile_ends(ordered: Floats, level: float) -> tuple[Floats, Floats]:
    """The plain percentile interval per column of `ordered` (samples × statistics, ascending, NaN last)."""
    drawn = np.isfinite(ordered).sum(axis=0)
    tail = np.full(ordered.shape[1], (1 - level) / 2)
    return _quantile(ordered, drawn, tail), _quantile(ordered, drawn, 1 - tail)


def bca_ends(
    ordered: Floats, value: Floats, z: Floats, acceleration: Floats, far: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """The BCa interval per column of `ordered` (samples × statistics, ascending, NaN last).

    `z` is the normal quantile of the level, or what stands in its place. An end beyond which fewer than
    five samples lie is moved to that of `far` (another interval's ends) if that is farther out. The
    interval always holds `value`.
    """
    drawn = np.isfinite(ordered).sum(axis=0)
    slack = 1e-12 * np.abs(value)  # what rounding may put between equal statistics
    below = (ordered < value - slack).sum(axis=0)
    above = (ordered > value + slack).sum(axis=0)
    least = 1 / np.maximum(drawn + 1.0, 2.0)
    bias = ndtri(np.clip(0.5 + (below - above) / np.maximum(2.0 * drawn, 1.0), least, 1 - least))
    tail_low = _adjusted(bias - z, bias, acceleration)
    tail_high = _adjusted(bias + z, bias, acceleration)
    low, high = _quantile(ordered, drawn, tail_low), _quantile(ordered, drawn, tail_high)
    low = np.where(tail_low * drawn < _REACH, np.fmin(low, far[0]), low)
    high = np.where((1 - tail_high) * drawn < _REACH, np.fmax(high, far[1]), high)
    low = np.where(low > value - slack, value, low)
    return low, np.where(high < value + slack, value, high)


def _adjusted(shifted: Floats, bias: Floats, acceleration: Floats) -> Floats:
    """The share of samples below an end: Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))), `shifted` being z₀ + z."""
    room = 1 - acceleration * shifted
    beyond = np.where(shifted > 0, np.inf, -np.inf)
    return np.asarray(ndtr(bias + np.divide(shifted, room, out=beyond, where=room > 0)), dtype=np.float64)


def _quantile(ordered: Floats, drawn: NDArray[np.int64], share: Floats) -> Floats:
    """The quantile of each column's first `drawn` values, interpolated linearly; NaN where none."""
    place = share * np.maximum(drawn - 1, 0)
    left = np.floor(place).astype(np.int64)
    right = np.minimum(left + 1, np.maximum(drawn - 1, 0))
    column = np.arange(ordered.shape[1])
    low, high = ordered[left, column], ordered[right, column]
    quantile: Floats = low + (high - low) * (place - left)
    return quantile

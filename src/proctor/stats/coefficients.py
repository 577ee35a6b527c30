"""Correlation coefficients of items that stand in a sample so and so often: the kernels of every resample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from proctor.stats.clusters import Floats, Ints, summed

__all__ = ["STATISTICS", "Kind", "Statistic"]

Kind = Literal["pearson", "spearman", "kendall"]

Statistic = Callable[[Floats], Floats]
"""From weights (samples × units) to the correlation in each sample, NaN where it isn't defined."""

_CHUNK = 4_000_000


def _pearson(a: Floats, b: Floats, unit: Ints) -> Statistic:
    x, y = _standardised(a), _standardised(b)
    n_units = int(unit.max()) + 1
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    sums = np.stack([summed(unit, column, n_units) for column in columns], axis=1)

    def statistic(drawn: Floats) -> Floats:
        n, x_sum, y_sum, xx, yy, xy = (drawn @ sums).T
        return _quotient(xy / n - x_sum * y_sum / n**2, xx / n - (x_sum / n) ** 2, yy / n - (y_sum / n) ** 2)

    return statistic


def _spearman(a: Floats, b: Floats, unit: Ints) -> Statistic:
    step = max(1, _CHUNK // len(unit))

    def some(drawn: Floats) -> Floats:
        times = drawn[:, unit]
        n = times.sum(axis=1, keepdims=True)
        x, y = (_mid_ranks(values, times) - (n + 1) / 2 for values in (a, b))
        x_part = times * x
        parts = ((x_part * y).sum(axis=1), (x_part * x).sum(axis=1), (times * y * y).sum(axis=1))
        return _quotient(*(part / n[:, 0] ** 3 for part in parts))

    def statistic(drawn: Floats) -> Floats:
        return np.concatenate([some(drawn[k : k + step]) for k in range(0, len(drawn), step)])

    return statistic


def _mid_ranks(values: Floats, times: Floats) -> Floats:
    """The rank of every item in each sample, in which it stands `times` times (samples × items)."""
    _, level = np.unique(values, return_inverse=True)
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    counts = np.add.reduceat(times[:, order], starts, axis=1)
    ranks: Floats = (np.cumsum(counts, axis=1) - counts / 2 + 0.5)[:, level]
    return ranks


def _kendall(a: Floats, b: Floats, unit: Ints) -> Statistic:
    order = np.argsort(unit, kind="stable")
    x, y = np.unique(a[order], return_inverse=True)[1], np.unique(b[order], return_inverse=True)[1]
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    n_units, step = len(starts), max(1, _CHUNK // len(unit))
    # Pairs of items, summed up for every two units: agreement, and pairs that a, and b, tell apart.
    tables = np.zeros((3, n_units, n_units))
    for start in range(0, len(unit), step):
        x_sign = np.sign(x[start : start + step, None] - x).astype(np.float64)
        y_sign = np.sign(y[start : start + step, None] - y).astype(np.float64)
        row = unit[order][start : start + step]
        for table, pairs in zip(tables, (x_sign * y_sign, np.abs(x_sign), np.abs(y_sign)), strict=True):
            np.add.at(table, row, np.add.reduceat(pairs, starts, axis=1))

    def statistic(drawn: Floats) -> Floats:
        agreement, apart_x, apart_y = (((drawn @ table) * drawn).sum(axis=1) for table in tables)
        n = drawn.sum(axis=1) ** 2
        return _quotient(agreement / n, apart_x / n, apart_y / n)

    return statistic


STATISTICS: dict[Kind, Callable[[Floats, Floats, Ints], Statistic]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}
"""From a, b and the unit of each item (numbered from 0) to the statistic of weights of units."""


def _standardised(values: Floats) -> Floats:
    spread = np.ptp(values)
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def _quotient(together: Floats, x: Floats, y: Floats) -> Floats:
    """together / √(x y), and NaN where x or y is nothing but rounding."""
    known = np.minimum(x, y) > 1e-12
    product = np.where(known, np.sqrt(np.maximum(x, 0) * np.maximum(y, 0)), 1.0)
    return np.where(known, np.clip(together / product, -1, 1), np.nan)

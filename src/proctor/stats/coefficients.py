"""Correlation coefficients of items that stand in a sample so and so often: the kernels of every resample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from proctor.stats.clusters import Floats, Ints, summed

Kind = Literal["pearson", "spearman", "kendall"]

Statistic = Callable[[Floats], Floats]
"""From weights (samples × units) to the correlation in each sample, NaN where it isn't defined."""

_CHUNK = 4_000_000
_IN_CACHE = 100_000  # numbers that a processor keeps at hand


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
    first, second = _Levels.of(a, unit), _Levels.of(b, unit)
    step = max(1, _IN_CACHE // len(unit))

    def some(drawn: Floats) -> Floats:
        # Samples stand in columns here, so that every step runs along whole rows.
        units = np.ascontiguousarray(drawn.T)
        times = units[unit]
        n = times.sum(axis=0)
        (x, x_count), (y, y_count) = first.ranks(units, n), second.ranks(units, n)
        parts = (
            np.einsum("ij,ij,ij->j", times, x[first.level], y[second.level]),
            np.einsum("ij,ij,ij->j", x_count, x, x),
            np.einsum("ij,ij,ij->j", y_count, y, y),
        )
        return _quotient(*(part / n**3 for part in parts))

    def statistic(drawn: Floats) -> Floats:
        return np.concatenate([some(drawn[k : k + step]) for k in range(0, len(drawn), step)])

    return statistic


@dataclass(frozen=True, slots=True)
class _Levels:
    """The distinct values of items, numbered upwards: each item's level, the units of the items in the order of
    their levels, and where each level starts there."""

    level: Ints
    units: Ints
    starts: Ints

    @classmethod
    def of(cls, values: Floats, unit: Ints) -> _Levels:
        level = np.unique(values, return_inverse=True)[1]
        order = np.argsort(level, kind="stable")
        return cls(level, unit[order], np.flatnonzero(np.diff(level[order], prepend=-1)))

    def ranks(self, times: Floats, n: Floats) -> tuple[Floats, Floats]:
        """The mid-rank of every level less the mean rank, and how many items are at it, in each sample in which
        units stand `times` times (units × samples) and `n` items in all; both are levels × samples."""
        counts = np.add.reduceat(times[self.units], self.starts, axis=0)
        ranks: Floats = np.cumsum(counts, axis=0)
        ranks -= counts / 2 + n / 2
        return ranks, counts


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

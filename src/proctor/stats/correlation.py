"""How two numbers per item go together, with clustered intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Unpack

import numpy as np
from scipy.special import stdtrit

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes, summed
from proctor.stats.ends import bca_ends, percentile_ends
from proctor.stats.estimate import Estimate
from proctor.stats.matrix import system_table
from proctor.stats.options import Options, Resampling
from proctor.stats.resampling import group_units, weights

__all__ = ["Kind", "correlation"]

Kind = Literal["pearson", "spearman", "kendall"]

_CHUNK = 4_000_000

_Statistic = Callable[[Floats], Floats]
"""From weights (samples × units) to the correlation in each sample, NaN where it isn't defined."""


def correlation(
    a: Values, b: Values, groups: Groups, kind: Kind = "pearson", **options: Unpack[Options]
) -> Estimate:
    """The correlation of a and b over items, −1 to 1, with a clustered interval.

    kind: "pearson" (linear), "spearman" (Pearson's of mid-ranks) or "kendall" (τ-b: concordant less
    discordant pairs over √(pairs not tied in a · pairs not tied in b); Kendall 1945, Biometrika 33:239).
    Values are paired by position; `groups` and options as in `mean_interval`, but whole groups only.

    The interval is the BCa interval over samples of groups, the acceleration from leaving out each group,
    with z widened to √(G / (G − 1)) · t at G − 1 degrees of freedom for G groups (Hesterberg 2015, The
    American Statistician 69:371), and by the ratio of the jackknife error to the bootstrap's where that is
    above 1; an end that the bootstrap can't reach (see `mean_interval`) is taken from the jackknife error
    on the scale of Fisher's artanh. Samples in which it isn't defined are left out. By simulation (normal
    values, sizes 1 to 9) 95 % covers 93 to 95 % with 10, 30 and 200 groups.

    Edges: value None with fewer than two items, or where a or b is the same everywhere; no interval with
    fewer than three groups. Time of "spearman" grows with draws × items, of "kendall" with items².

    Raises `InputError` for values that are not finite, for lengths that differ, and for `two_level`.

    >>> correlation([1, 2, 3, 4], [1, 3, 2, 4], list("abcd"), "kendall", draws=100).value
    0.6666666666666666
    >>> correlation([1, 1], [1, 2], ["a", "b"]).value is None
    True
    """
    plan = Resampling(**options)
    if plan.two_level:
        raise InputError(None, "two_level", found="True", expected="False for a correlation")
    first, second = finite(a, "a's value"), finite(b, "b's value")
    if len(first) != len(second):
        raise InputError(None, "values", found=f"{len(first)} and {len(second)}", expected="pairs")
    code = group_codes(groups, len(first))
    if not len(first):
        return Estimate(None, None, None, 0, 0)
    table = system_table(np.stack([first, second]), code)
    unit, n_units = group_units(table.n_groups, plan.seed)
    unit = unit[table.codes()]
    statistic = _KINDS[kind](table.matrix[0], table.matrix[1], unit)
    value = float(statistic(np.ones((1, n_units)))[0])
    n, n_groups = len(first), table.n_groups
    if not np.isfinite(value):
        return Estimate(None, None, None, n, n_groups)
    if n_groups < 3:
        return Estimate(value, None, None, n, n_groups)
    low, high = _ends(statistic, value, n_units, plan)
    return Estimate(value, low, high, n, n_groups)


def _ends(
    statistic: _Statistic, value: float, n_units: int, plan: Resampling
) -> tuple[float | None, float | None]:
    drawn = np.concatenate([statistic(part) for part in weights(n_units, plan.draws, plan.seed)])
    ordered = np.sort(drawn)[:, None]
    if plan.method == "percentile":
        low, high = percentile_ends(ordered, plan.level)
    else:
        without = statistic(1.0 - np.eye(n_units))
        without = without[np.isfinite(without)]
        pull = without.mean() - without if without.size else np.zeros(1)
        squared = float((pull**2).sum())
        t = float(stdtrit(n_units - 1, (1 + plan.level) / 2))
        error = np.sqrt(squared * (n_units - 1) / n_units)
        inside = np.clip(value, -1 + 1e-12, 1 - 1e-12)
        reach = t * error / (1 - inside**2)
        far = (
            np.array([np.tanh(np.arctanh(inside) - reach)]),
            np.array([np.tanh(np.arctanh(inside) + reach)]),
        )
        skew = (pull**3).sum() / squared**1.5 if squared > 0 else 0.0
        seen = float(np.nanstd(drawn)) if np.isfinite(drawn).any() else 0.0
        wider = max(1.0, error / seen) if seen > 0 else 1.0
        z = np.array([t * wider * np.sqrt(n_units / (n_units - 1))])
        low, high = bca_ends(ordered, np.array([value]), z, np.array([skew / 6]), far)
    if not (np.isfinite(low[0]) and np.isfinite(high[0])):
        return None, None
    return float(np.clip(low[0], -1, 1)), float(np.clip(high[0], -1, 1))


def _pearson(a: Floats, b: Floats, unit: Ints) -> _Statistic:
    x, y = _standardised(a), _standardised(b)
    n_units = int(unit.max()) + 1
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    sums = np.stack([summed(unit, column, n_units) for column in columns], axis=1)

    def statistic(drawn: Floats) -> Floats:
        n, x_sum, y_sum, xx, yy, xy = (drawn @ sums).T
        return _quotient(xy / n - x_sum * y_sum / n**2, xx / n - (x_sum / n) ** 2, yy / n - (y_sum / n) ** 2)

    return statistic


def _spearman(a: Floats, b: Floats, unit: Ints) -> _Statistic:
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


def _kendall(a: Floats, b: Floats, unit: Ints) -> _Statistic:
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


_KINDS: dict[str, Callable[[Floats, Floats, Ints], _Statistic]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}


def _standardised(values: Floats) -> Floats:
    spread = np.ptp(values)
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def _quotient(together: Floats, x: Floats, y: Floats) -> Floats:
    """together / √(x y), and NaN where x or y is nothing but rounding."""
    known = np.minimum(x, y) > 1e-12
    product = np.where(known, np.sqrt(np.maximum(x, 0) * np.maximum(y, 0)), 1.0)
    return np.where(known, np.clip(together / product, -1, 1), np.nan)

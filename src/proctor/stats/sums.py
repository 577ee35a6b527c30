"""Whatever can be computed from sums over items, with a clustered interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups, Ints, group_codes, scrambled
from proctor.stats.ends import bca_ends, percentile_ends
from proctor.stats.estimate import Estimate
from proctor.stats.options import Options, Resampling
from proctor.stats.resampling import group_units, item_picks, weights
from proctor.stats.special import stdtrit

__all__ = ["sums_interval"]


def sums_interval(
    columns: NDArray[Any],
    groups: Groups,
    statistic: Callable[[Floats], Floats],
    **options: Unpack[Options],
) -> Estimate:
    """A statistic of the sums of some columns over all items, with a clustered bootstrap interval.

    `columns` is items × columns (sufficient statistics: counts, products, costs); `statistic` turns sums
    (samples × columns) into one number a sample, NaN where it is not defined. `groups` and options as in
    `mean_interval`. The interval is the BCa interval over samples of groups with the
    acceleration from leaving out each group (Efron 1987, Journal of the American Statistical Association
    82:171), z widened to √(G / (G − 1)) · t at G − 1 degrees of freedom (Hesterberg 2015, The American
    Statistician 69:371). A value at one of two finite bounds ends where so many groups would all be there with
    probability (1 − level) / 2. Samples in which the statistic is not defined are left out. With `two_level` the
    items within a drawn group are drawn too, as in `mean_interval`: time grows with draws × items.

    Edges: no items, or a statistic that is not defined: value None; fewer than three groups: no interval.
    Raises `InputError` for values that are not finite, and for lengths that differ.

    >>> hits = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> sums_interval(hits, ["a", "b", "c"], lambda sums: sums[:, 0] / sums[:, 1], draws=100).value
    0.6666666666666666
    """
    plan = Resampling(**options)
    table = np.asarray(columns, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise InputError(None, "columns", found=f"shape {table.shape}", expected="items × columns of numbers")
    code = group_codes(groups, len(table))
    if not len(table):
        return Estimate(None, None, None, 0, 0)
    n_groups = int(code.max()) + 1
    totals = np.zeros((n_groups, table.shape[1]))
    order = np.lexsort((*table.T, code))  # sums are the same to the last bit in any order of items
    np.add.at(totals, code[order], table[order])
    totals = totals[np.lexsort(totals.T)]  # and samples, whatever the groups are called
    value = float(statistic(totals.sum(axis=0, keepdims=True))[0])
    if not np.isfinite(value):
        return Estimate(None, None, None, len(table), n_groups)
    if n_groups < 3:
        return Estimate(value, None, None, len(table), n_groups)
    unit, n_units = group_units(n_groups, plan.seed)
    units = np.zeros((n_units, table.shape[1]))
    np.add.at(units, unit, totals)
    if plan.two_level:
        drawn = _two_level(table, code, plan)
    else:
        drawn = np.concatenate([part @ units for part in weights(n_units, plan.draws, plan.seed)])
    low, high = _ends(units, statistic(drawn), statistic, value, plan)
    return Estimate(value, low, high, len(table), n_groups)


def _two_level(table: Floats, code: Ints, plan: Resampling) -> Floats:
    """The sums of every two-level sample. Rows that are alike are one kind; groups, and the items within each, stand
    in an order that is made from kinds alone."""
    distinct, which = np.unique(table, axis=0, return_inverse=True)
    kind, n = which.reshape(-1), len(distinct)
    contents = np.zeros(int(code.max()) + 1, dtype=np.uint64)
    np.add.at(contents, code, scrambled(kind.astype(np.uint64)))
    group = np.argsort(np.argsort(contents, kind="stable"))[code]
    ordered = kind[np.lexsort((kind, group))]
    parts = []
    for rows, row, place in item_picks(np.bincount(group), plan):
        times = np.bincount(row * n + ordered[place], minlength=rows * n).reshape(rows, n)
        parts.append(times.astype(np.float64) @ distinct)
    return np.concatenate(parts)


def _ends(
    units: Floats, drawn: Floats, statistic: Callable[[Floats], Floats], value: float, plan: Resampling
) -> tuple[float | None, float | None]:
    n = len(units)
    ordered = np.sort(drawn)[:, None]
    if plan.method == "percentile":
        low, high = percentile_ends(ordered, plan.level)
    else:
        without = statistic(units.sum(axis=0) - units)
        pull = without.mean() - without if np.isfinite(without).all() else np.zeros(1)
        squared = float((pull**2).sum())
        skew = float((pull**3).sum()) / squared**1.5 if squared > 0 else 0.0
        t = float(stdtrit(n - 1, (1 + plan.level) / 2))
        reach = t * np.sqrt(squared * (n - 1) / n)
        z = np.array([t * np.sqrt(n / (n - 1))])
        far = (np.array([value - reach]), np.array([value + reach]))
        low, high = bca_ends(ordered, np.array([value]), z, np.array([skew / 6]), far)
    if not (np.isfinite(low[0]) and np.isfinite(high[0])):
        return None, None
    least, most = plan.bounds or (-np.inf, np.inf)
    first, last = float(np.clip(low[0], least, most)), float(np.clip(high[0], least, most))
    if plan.bounds is None or not np.isfinite(plan.bounds).all() or not least < most:
        return first, last
    unseen = (most - least) * (1 - ((1 - plan.level) / 2) ** (1 / n))
    return (min(first, most - unseen) if value == most else first), (
        max(last, least + unseen) if value == least else last
    )

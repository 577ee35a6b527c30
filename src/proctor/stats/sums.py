"""Whatever can be computed from sums over items, with a clustered interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups, Ints, group_codes, scrambled
from proctor.stats.correlation import too_few_carry
from proctor.stats.ends import bca_ends, percentile_ends
from proctor.stats.estimate import Estimate
from proctor.stats.options import Options, Resampling
from proctor.stats.resampling import group_units, item_picks, weights
from proctor.stats.special import stdtrit

Trials = Sequence[Sequence[Sequence[int]]]
"""For each kind of trial its possible outcomes, and for each of these the columns that count it."""

_MOST_KINDS = 6  # of items, up to which each is asked what more of it would do


def sums_interval(
    columns: NDArray[Any],
    groups: Groups,
    statistic: Callable[[Floats], Floats],
    trials: Trials = (),
    **options: Unpack[Options],
) -> Estimate:
    """A statistic of the sums of some columns over all items, with a clustered bootstrap interval.

    `columns` is items × columns (sufficient statistics: counts, products, costs); `statistic` turns sums
    (samples × columns) into one number a sample, NaN where it is not defined. `groups` and options as in
    `mean_interval`. The interval is the BCa interval over samples of groups with the acceleration from leaving out
    each group (Efron 1987, Journal of the American Statistical Association 82:171), z widened to √(G / (G − 1)) · t
    (Hesterberg 2015, The American Statistician 69:371), and by the ratio of the jackknife error to the bootstrap's
    where that is above 1. t has Satterthwaite's degrees of freedom from the pulls' kurtosis, at most G − 1: a rare
    class lies in few groups, so few of them say how far the statistic varies. Where a column isn't 0 in fewer than
    five groups (and at most half), or the value is at a bound, the interval reaches what the groups may not have
    shown (see `mean_interval`). `trials` says which columns count the outcomes of the same trials, such as a class's
    right answers and its wrong ones: an outcome that no group has shown may be a share of these trials, by the number of
    groups that have any, and the interval reaches what the statistic would be then. Samples in which the statistic is not defined are left out. With `two_level` the
    items within a drawn group are drawn too, as in `mean_interval`: time grows with draws × items.

    Edges: no items, or a statistic that is not defined: value None; fewer than three groups, or none
    that says anything else than the others: no interval.
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
    if low is not None and high is not None and plan.method == "bca":
        unseen = _unseen(totals, np.unique(table, axis=0), len(table), statistic, value, plan)
        unseen += _outcomes_unseen(totals, trials, statistic, plan)
        low, high = min(low, *unseen, value), max(high, *unseen, value)
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
    ordered = np.sort(drawn)[:, None]
    if plan.method == "percentile":
        low, high = percentile_ends(ordered, plan.level)
        return _inside(float(low[0]), float(high[0]), plan)
    n = len(units)
    without = statistic(units.sum(axis=0) - units)
    pull = without[np.isfinite(without)]
    pull = pull.mean() - pull if pull.size else np.zeros(1)
    squared = float((pull**2).sum())
    known = drawn[np.isfinite(drawn)]
    if squared <= 1e-24 * max(1.0, value**2) and (known == known[:1]).all():
        if value not in (plan.bounds or ()):
            return None, None  # no group says anything else than the others: that is no certainty
        return value, value
    skew = float((pull**3).sum()) / squared**1.5 if squared > 0 else 0.0
    t = float(stdtrit(_degrees(pull), (1 + plan.level) / 2))
    error = float(np.sqrt(squared * (n - 1) / n))
    seen = float(known.std()) if known.size else 0.0
    wider = max(1.0, error / seen) if seen > 0 else 1.0
    z = np.array([t * wider * np.sqrt(n / (n - 1))])
    far = (np.array([value - t * error]), np.array([value + t * error]))
    low, high = bca_ends(ordered, np.array([value]), z, np.array([skew / 6]), far)
    return _inside(float(low[0]), float(high[0]), plan)


def _degrees(pull: Floats) -> float:
    """Satterthwaite's degrees of freedom of Σ pull², from the pulls' own kurtosis: G − 1 where they are normal, fewer
    where a few groups say most; at least 1."""
    n, squared = len(pull), float((pull**2).sum())
    if n < 4 or squared <= 0:
        return max(1.0, n - 1.0)
    kurtosis = n * float((pull**4).sum()) / squared**2
    return float(np.clip(2 * n / max(kurtosis - (n - 3) / (n - 1), 1e-9), 1.0, n - 1))


def _unseen(
    totals: Floats, kinds: Floats, n: int, statistic: Callable[[Floats], Floats], value: float, plan: Resampling
) -> list[float]:
    """Where the interval has to reach for what the groups may not have shown (a share of them, see `mean_interval`).

    At a bound: the same share of the way to the other one. Where a column is carried by fewer than five groups: the
    statistic if that share of the groups had all their items of one kind, for each kind of item.
    """
    share = 1 - ((1 - plan.level) / 2) ** (1 / len(totals))
    least, most = plan.bounds or (-np.inf, np.inf)
    if value in (least, most) and np.isfinite((least, most)).all():
        return [value + share * ((most if value == least else least) - value)]
    carrying = (totals != 0).sum(axis=0)
    thin = [too_few_carry(int(one), len(totals)) for one in carrying if one]
    if not any(thin) or len(kinds) > _MOST_KINDS:
        return []
    found = statistic((1 - share) * totals.sum(axis=0) + share * n * kinds)
    return [float(one) for one in found[np.isfinite(found)]]


def _outcomes_unseen(
    totals: Floats, trials: Trials, statistic: Callable[[Floats], Floats], plan: Resampling
) -> list[float]:
    """The statistic if a share of some trials had an outcome that none of their groups has shown, for each of these."""
    sums, found = totals.sum(axis=0), []
    for outcomes in trials:
        columns = [column for outcome in outcomes for column in outcome]
        groups = int((totals[:, columns].sum(axis=1) != 0).sum())
        if not groups:
            continue
        share = 1 - ((1 - plan.level) / 2) ** (1 / groups)
        for outcome in outcomes:
            if not sums[list(outcome)].any():
                moved = sums.copy()
                moved[columns] *= 1 - share
                moved[outcome[0]] = share * sums[columns].sum()
                found.append(float(statistic(moved[None])[0]))
    return [one for one in found if np.isfinite(one)]


def _inside(low: float, high: float, plan: Resampling) -> tuple[float | None, float | None]:
    if not (np.isfinite(low) and np.isfinite(high)):
        return None, None
    least, most = plan.bounds or (-np.inf, np.inf)
    return float(np.clip(low, least, most)), float(np.clip(high, least, most))

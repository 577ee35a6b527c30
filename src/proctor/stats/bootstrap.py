"""The clustered bootstrap: how samples of groups are drawn, and from samples of a statistic to its interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, generator
from proctor.stats.clusters import Floats, Groups, Ints, group_codes, splitmix64, summed
from proctor.stats.special import ndtr, ndtri, stdtrit

MOST_UNITS = 2048
"""More groups than this are bundled before they are resampled."""

CHUNK = 4_000_000  # numbers held at once in one working array: 32 MB of floats
_BLOCK = 32  # samples drawn at once, which a processor's cache holds
_MOST_KEPT = 2 * CHUNK  # weights that are kept for the next call
_REACH = 5  # samples that must lie beyond an end for the bootstrap to know where it is
_FEWEST = 5  # groups that carry a variation, below which no sample tells what others would show
_EXACT = 2.0**53  # whole numbers up to this add up without rounding, in any order
_MOST_KINDS = 6  # of items, up to which each is asked what more of it would do


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of `n` items in `groups` groups, with its confidence interval.

    `value` is None where it is not defined (no item); `ci_low` and `ci_high` are None together, where there are too few
    groups. Never NaN.

    >>> Estimate(value=0.5, ci_low=0.4, ci_high=0.6, n=20, groups=4).ci_low
    0.4
    """

    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    groups: int


@dataclass(frozen=True, slots=True)
class Resampling:
    """How an interval is drawn.

    draws: bootstrap samples, at least 1. level: the coverage asked for, from 0.5 to below 1.
    seed: the same seed gives the same numbers. two_level: resample groups and then the items within
    each; else whole groups (see `mean_interval`). bounds: the lowest and highest value an item can
    have, where the caller knows them (one may be infinite); intervals then stay inside, and with two
    finite ones they are better for few groups.
    method: "bca" (the default, made for few groups of unequal size) or "percentile" (the plain one,
    too narrow for few groups, for comparison with other programs).

    Raises `InputError` where one of them makes no sense.

    >>> Resampling(draws=500).level
    0.95
    >>> Resampling(level=95)
    Traceback (most recent call last):
    proctor.core.errors.InputError: level: found 95, expected a share from 0.5 to below 1
    """

    draws: int = 2000
    level: float = 0.95
    seed: int = 0
    two_level: bool = False
    bounds: tuple[float, float] | None = None
    method: Literal["bca", "percentile"] = "bca"

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InputError("draws", found=str(self.draws), expected="at least 1")
        if not 0.5 <= self.level < 1:
            raise InputError("level", found=str(self.level), expected="a share from 0.5 to below 1")
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise InputError("bounds", found=str(self.bounds), expected="a low and a higher number")
        if self.method not in ("bca", "percentile"):
            raise InputError("method", found=repr(self.method), expected="'bca' or 'percentile'")

    def within(self, low: float, high: float) -> Resampling:
        """The same for values between these bounds."""
        return replace(self, bounds=(low, high))


def group_units(n_groups: int, seed: int) -> tuple[Ints, int]:
    """The resampling unit of each group, and how many units there are.

    A group is its own unit. More than `MOST_UNITS` groups are put at random into that many bundles of
    equal number (the method of random groups: Wolter, Introduction to Variance Estimation, 2007,
    chapter 2): a bundle's sums vary like its groups' sums added up, so the spread of the mean stays
    what it is, known to 1/√(2 · 2048) = 1.6 % of itself.
    """
    if n_groups <= MOST_UNITS:
        return np.arange(n_groups), n_groups
    shuffled = generator(seed, "bundles of groups").permutation(n_groups)
    return shuffled % MOST_UNITS, MOST_UNITS


def weights(n_units: int, draws: int, seed: int) -> Iterator[Floats]:
    """How often each unit is drawn in each bootstrap sample: draws × units, in chunks of draws.

    Each sample draws `n_units` of the units with replacement; the same seed gives the same weights. The last ones are
    kept: every metric, run and policy of a table has the same. They can't be written to.
    """
    return iter(_kept(n_units, draws, seed)) if draws * n_units <= _MOST_KEPT else _drawn(n_units, draws, seed)


@lru_cache(maxsize=2)
def _kept(n_units: int, draws: int, seed: int) -> tuple[Floats, ...]:
    return tuple(_drawn(n_units, draws, seed))


def _drawn(n_units: int, draws: int, seed: int) -> Iterator[Floats]:
    rng = generator(seed, "clustered bootstrap")
    step = max(1, CHUNK // max(1, n_units))
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        times = np.empty((rows, n_units))
        for block in np.split(times, range(_BLOCK, rows, _BLOCK)):
            drawn = rng.integers(0, n_units, size=block.shape)
            drawn += np.arange(len(block))[:, None] * n_units
            block[:] = np.bincount(drawn.ravel(), minlength=block.size).reshape(block.shape)
        times.flags.writeable = False
        yield times


def item_picks(sizes: Ints, plan: Resampling) -> Iterator[tuple[int, Ints, Ints]]:
    """Two-level samples in chunks: how many samples, and per drawn item its sample and its position.

    Groups of the given sizes lie one after the other. Each sample draws as many groups as there are, and
    in each as many items as it has, both with replacement (Davison and Hinkley 1997, section 3.8).
    """
    starts = np.cumsum(sizes) - sizes
    rng = generator(plan.seed, "two-level bootstrap")
    step = max(1, CHUNK // 4 // max(1, int(sizes.sum())))
    for start in range(0, plan.draws, step):
        rows = min(step, plan.draws - start)
        drawn = rng.integers(0, len(sizes), size=(rows, len(sizes)))
        drawn_sizes = sizes[drawn]
        each = drawn_sizes.ravel()
        within = rng.random(int(each.sum())) * np.repeat(each, each)
        position = within.astype(np.int64) + np.repeat(starts[drawn].ravel(), each)
        yield rows, np.repeat(np.arange(rows), drawn_sizes.sum(axis=1)), position


def ratio(totals: Floats, counts: Floats) -> Floats:
    """totals / counts, and NaN where there is no count.

    >>> ratio(np.array([1.0, 3.0, 0.0]), np.array([2, 4, 0])).tolist()
    [0.5, 0.75, nan]
    """
    means: Floats = np.divide(totals, counts, out=np.full(totals.shape, np.nan), where=counts > 0)
    return means


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
    largest = np.fmax(np.abs(ordered[0]), np.abs(ordered[np.maximum(drawn - 1, 0), np.arange(ordered.shape[1])]))
    slack = 1e-12 * np.fmax(np.abs(value), largest)  # what rounding may put between equal statistics
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
    position = share * np.maximum(drawn - 1, 0)
    left = np.floor(position).astype(np.int64)
    right = np.minimum(left + 1, np.maximum(drawn - 1, 0))
    column = np.arange(ordered.shape[1])
    low, high = ordered[left, column], ordered[right, column]
    quantile: Floats = low + (high - low) * (position - left)
    return quantile


def jackknife_ends(
    drawn: Floats,
    without: Floats,
    value: float,
    df: float,
    plan: Resampling,
    far: Callable[[float], tuple[float, float]],
) -> tuple[float, float]:
    """The interval of a statistic from its samples and its values with each unit left out (`without`).

    BCa with the acceleration of the pulls; z is √(G / (G − 1)) · t at `df` degrees of freedom (Hesterberg 2015, The
    American Statistician 69:371), widened by the ratio of the jackknife error to the bootstrap's where that is above 1.
    `far` gives the ends where the bootstrap can't reach, from t times the jackknife error. NaN: there is no interval.
    """
    ordered = np.sort(drawn)[:, None]
    if plan.method == "percentile":
        low, high = percentile_ends(ordered, plan.level)
        return float(low[0]), float(high[0])
    n_units, pull = len(without), pulls(without)
    squared = float((pull**2).sum())
    error = float(np.sqrt(squared * (n_units - 1) / n_units))
    skew = float((pull**3).sum()) / squared**1.5 if squared > 0 else 0.0
    t = float(stdtrit(df, (1 + plan.level) / 2))
    known = drawn[np.isfinite(drawn)]
    seen = float(known.std()) if known.size else 0.0
    wider = max(1.0, error / seen) if seen > 0 else 1.0
    z = np.array([t * wider * np.sqrt(n_units / (n_units - 1))])
    end, other = (np.array([one]) for one in far(t * error))
    low, high = bca_ends(ordered, np.array([value]), z, np.array([skew / 6]), (end, other))
    return float(low[0]), float(high[0])


def pulls(without: Floats) -> Floats:
    """How far each unit pulls a statistic, from its values with each left out: their mean less each of them. One that
    is not defined without a unit is left out."""
    known = without[np.isfinite(without)]
    return known.mean() - known if known.size else np.zeros(1)


def carrying_groups(values: Floats, group: Ints) -> int:
    """In how many groups some value differs from the most frequent one.

    >>> carrying_groups(np.array([0.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 2]))
    1
    """
    distinct, times = np.unique(values, return_counts=True)
    return len(np.unique(group[values != distinct[np.argmax(times)]]))


def too_few_carry(carrying: int, groups: int) -> bool:
    """Whether fewer than five groups, and at most half of them, carry a variation.

    >>> [too_few_carry(4, 100), too_few_carry(5, 100), too_few_carry(3, 4)]
    [True, False, False]
    """
    return carrying < _FEWEST and 2 * carrying <= groups


Trials = Sequence[Sequence[Sequence[int]]]
"""For each kind of trial its possible outcomes, and for each of these the columns that count it."""


def sums_interval(
    columns: NDArray[Any],
    groups: Groups,
    statistic: Callable[[Floats], Floats],
    trials: Trials = (),
    plan: Resampling = Resampling(),
) -> Estimate:
    """A statistic of the sums of some columns over all items, with a clustered bootstrap interval.

    `columns` is items × columns (sufficient statistics: counts, products, costs); `statistic` turns sums
    (samples × columns) into one number a sample, NaN where it is not defined. `groups` and `plan` as in
    `mean_interval`. The interval is the BCa interval over samples of groups with the acceleration from leaving out
    each group (Efron 1987, Journal of the American Statistical Association 82:171), z widened to √(G / (G − 1)) · t
    (Hesterberg 2015, The American Statistician 69:371), and by the ratio of the jackknife error to the bootstrap's
    where that is above 1. t has Satterthwaite's degrees of freedom from the pulls' kurtosis, at most G − 1: a rare
    class lies in few groups, so few of them say how far the statistic varies. Where a column isn't 0 in fewer than
    five groups (and at most half), or the value is at a bound, the interval reaches what the groups may not have
    shown (see `mean_interval`). `trials` says which columns count the outcomes of the same trials, such as a class's
    right answers and its wrong ones: an outcome that no group has shown may be a share of these trials, by the number
    of groups that have any, and the interval reaches what the statistic would be then. Samples in which the statistic
    is not defined are left out. With `two_level` the items within a drawn group are drawn too, as in `mean_interval`:
    time grows with draws × items.

    Edges: no items, or a statistic that is not defined: value None; fewer than three groups, or none
    that says anything else than the others: no interval.
    Raises `InputError` for values that are not finite, and for lengths that differ.

    >>> hits = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> sums_interval(hits, ["a", "b", "c"], lambda sums: sums[:, 0] / sums[:, 1], plan=Resampling(draws=100)).value
    0.6666666666666666
    """
    found = sums_intervals(columns, groups, lambda sums: statistic(sums)[:, None], trials, plan)
    return found[0] if found else Estimate(None, None, None, 0, 0)


def sums_intervals(
    columns: NDArray[Any],
    groups: Groups,
    statistics: Callable[[Floats], Floats],
    trials: Trials = (),
    plan: Resampling = Resampling(),
) -> list[Estimate]:
    """Several statistics of the same sums, each with the interval that `sums_interval` gives it alone: `statistics`
    turns sums (samples × columns) into samples × statistics at once. No items: an empty list.

    >>> hits = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> found = sums_intervals(hits, ["a", "b", "c"], lambda sums: sums / sums[:, 1:], plan=Resampling(draws=100))
    >>> [one.value for one in found]
    [0.6666666666666666, 1.0]
    """
    table = np.asarray(columns, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise InputError("columns", found=f"shape {table.shape}", expected="items × columns of numbers")
    code = group_codes(groups, len(table))
    if not len(table):
        return []
    totals = group_totals(table, code)
    n_groups = len(totals)
    values = [float(one) if np.isfinite(one) else None for one in statistics(totals.sum(axis=0, keepdims=True))[0]]
    if n_groups < 3 or values == [None]:
        return [Estimate(value, None, None, len(table), n_groups) for value in values]
    unit, n_units = group_units(n_groups, plan.seed)
    units = np.zeros((n_units, table.shape[1]))
    np.add.at(units, unit, totals)
    if plan.two_level:
        sums = _two_level(table, code, plan)
    else:
        sums = np.concatenate([part @ units for part in weights(n_units, plan.draws, plan.seed)])
    drawn, without = statistics(sums), statistics(units.sum(axis=0) - units)
    thin = _thin_columns(totals, table, plan)
    moved = np.concatenate([thin, _outcomes_unseen(totals, trials, plan)])
    unseen = statistics(moved) if len(moved) else np.zeros((0, len(values)))
    found = []
    for place, value in enumerate(values):
        if value is None:
            found.append(Estimate(None, None, None, len(table), n_groups))
            continue
        low, high = _ends(drawn[:, place], without[:, place], value, plan)
        if low is not None and high is not None and plan.method == "bca":
            reached = _reached(unseen[:, place], len(thin), value, n_groups, plan)
            low, high = min(low, *reached, value), max(high, *reached, value)
        found.append(Estimate(value, low, high, len(table), n_groups))
    return found


def group_totals(table: Floats, code: Ints) -> Floats:
    """The sums of the groups (`group_codes`), in an order of their contents: the same to the last bit in any order of
    items, and whatever the groups are called."""
    if (table == np.rint(table)).all() and np.abs(table).sum(axis=0).max(initial=0) < _EXACT:
        totals = np.stack([summed(code, column, int(code.max()) + 1) for column in table.T], axis=1)
    else:
        totals = np.zeros((int(code.max()) + 1, table.shape[1]))
        order = np.lexsort((*table.T, code))
        np.add.at(totals, code[order], table[order])
    return np.asarray(totals[np.lexsort(totals.T)], dtype=np.float64)


def _two_level(table: Floats, code: Ints, plan: Resampling) -> Floats:
    """The sums of every two-level sample. Rows that are alike are one kind; groups, and the items within each, stand
    in an order that is made from kinds alone."""
    distinct, which = np.unique(table, axis=0, return_inverse=True)
    kind, n = which.reshape(-1), len(distinct)
    contents = np.zeros(int(code.max()) + 1, dtype=np.uint64)
    np.add.at(contents, code, splitmix64(kind.astype(np.uint64)))
    group = np.argsort(np.argsort(contents, kind="stable"))[code]
    ordered = kind[np.lexsort((kind, group))]
    parts = []
    for rows, row, position in item_picks(np.bincount(group), plan):
        times = np.bincount(row * n + ordered[position], minlength=rows * n).reshape(rows, n)
        parts.append(times.astype(np.float64) @ distinct)
    return np.concatenate(parts)


def _ends(drawn: Floats, without: Floats, value: float, plan: Resampling) -> tuple[float | None, float | None]:
    pull, known = pulls(without), drawn[np.isfinite(drawn)]
    alike = float((pull**2).sum()) <= 1e-24 * max(1.0, value**2) and (known == known[:1]).all()
    if alike and plan.method == "bca":  # no group says anything else than the others: that is no certainty
        return (value, value) if value in (plan.bounds or ()) else (None, None)
    low, high = jackknife_ends(
        drawn, without, value, _degrees(pull), plan, lambda reach: (value - reach, value + reach)
    )
    if not (np.isfinite(low) and np.isfinite(high)):
        return None, None
    least, most = plan.bounds or (-np.inf, np.inf)
    return float(np.clip(low, least, most)), float(np.clip(high, least, most))


def _degrees(pull: Floats) -> float:
    """Satterthwaite's degrees of freedom of Σ pull², from the pulls' own kurtosis: G − 1 where they are normal, fewer
    where a few groups say most; at least 1."""
    n, squared = len(pull), float((pull**2).sum())
    if n < 4 or squared <= 0:
        return max(1.0, n - 1.0)
    kurtosis = n * float((pull**4).sum()) / squared**2
    return float(np.clip(2 * n / max(kurtosis - (n - 3) / (n - 1), 1e-9), 1.0, n - 1))


def _reached(unseen: Floats, thin: int, value: float, groups: int, plan: Resampling) -> list[float]:
    """Where the interval has to reach for what the groups may not have shown (a share of them, see `mean_interval`).

    At a bound: the same share of the way to the other one, in place of the `thin` values that come first in `unseen`.
    """
    least, most = plan.bounds or (-np.inf, np.inf)
    at_bound = value in (least, most) and bool(np.isfinite((least, most)).all())
    way = [value + _share(groups, plan) * ((most if value == least else least) - value)] if at_bound else []
    known = unseen[thin:] if at_bound else unseen
    return way + [float(one) for one in known[np.isfinite(known)]]


def _share(groups: int, plan: Resampling) -> float:
    """The share of all groups that a kind of group may be which none of these is (Clopper and Pearson 1934)."""
    return float(1 - ((1 - plan.level) / 2) ** (1 / groups))


def _thin_columns(totals: Floats, table: Floats, plan: Resampling) -> Floats:
    """Where a column is carried by fewer than five groups: the sums if a share of the groups had all their items of one
    kind, for each kind of item."""
    carrying = (totals != 0).sum(axis=0)
    thin = any(too_few_carry(int(one), len(totals)) for one in carrying if one)
    kinds = np.unique(table, axis=0) if thin else table[:0]
    if len(kinds) > _MOST_KINDS:
        kinds = kinds[:0]
    share = _share(len(totals), plan)
    return np.asarray((1 - share) * totals.sum(axis=0) + share * len(table) * kinds, dtype=np.float64)


def _outcomes_unseen(totals: Floats, trials: Trials, plan: Resampling) -> Floats:
    """The sums if a share of some trials had an outcome that none of their groups has shown, for each of these."""
    sums, found = totals.sum(axis=0), []
    for outcomes in trials:
        columns = [column for outcome in outcomes for column in outcome]
        groups = int((totals[:, columns].sum(axis=1) != 0).sum())
        if not groups:
            continue
        share = _share(groups, plan)
        for outcome in outcomes:
            if not sums[list(outcome)].any():
                moved = sums.copy()
                moved[columns] *= 1 - share
                moved[outcome[0]] = share * sums[columns].sum()
                found.append(moved)
    return np.array(found, dtype=np.float64).reshape(len(found), len(sums))

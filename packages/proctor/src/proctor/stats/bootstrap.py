"""The clustered bootstrap: resampling of groups, and confidence intervals from the resampled statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, generator
from proctor.stats.clusters import Floats, Groups, Ints, group_codes, splitmix64, summed
from proctor.stats.shares import Share, share_ends
from proctor.stats.special import ndtr, ndtri, stdtrit

MOST_UNITS = 2048
"""With more groups than this, random bundles of groups are resampled instead of groups."""

CHUNK = 4_000_000  # elements of one working array: 32 MB of floats
_BLOCK = 32  # samples drawn at once, so that they fit the processor's cache
_MAX_CACHED = 2 * CHUNK  # weights kept for the next call
_MIN_BEYOND = 5  # samples beyond an end that are needed to trust the bootstrap there
_MIN_CARRYING = 5  # groups that must vary for the bootstrap to represent the variation
_EXACT = 2.0**53  # integers up to this add up without rounding errors
_MAX_KINDS = 6  # distinct rows of items up to which each is tried as an unseen group


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of `n` items in `groups` groups, with its confidence interval.

    `value` is None if the statistic is undefined (no items); `ci_low` and `ci_high` are both None if there are too few
    groups. No field is NaN.

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
    """The settings of a bootstrap interval.

    draws: number of bootstrap samples, at least 1. level: nominal coverage, from 0.5 to below 1. seed: seed of the
    resampling. two_level: resample groups, then items within each group; otherwise whole groups (see `mean_interval`).
    bounds: the lowest and highest possible value of an item, if known (one may be infinite); intervals are clipped to
    them, and two finite bounds improve intervals for few groups. shares: values between two finite bounds are shares, too
    (an item's right answers of several), and have their interval. method: "bca" (suited to few groups of unequal size)
    or "percentile" (too narrow for few groups; for comparison with other programs).

    Raises `InputError` for invalid settings.

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
    shares: bool = False
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
        """The same settings with these bounds."""
        return replace(self, bounds=(low, high))


def group_units(n_groups: int, seed: int) -> tuple[Ints, int]:
    """The resampling unit of each group, and the number of units.

    Each group is a unit. More than `MOST_UNITS` groups are assigned at random to that many bundles with equal numbers
    of groups (the random group method: Wolter, Introduction to Variance Estimation, 2007, chapter 2). Bundling keeps
    the variance of the mean and estimates it with a relative error of 1/√(2 · 2048) = 1.6 %.
    """
    if n_groups <= MOST_UNITS:
        return np.arange(n_groups), n_groups
    shuffled = generator(seed, "bundles of groups").permutation(n_groups)
    return shuffled % MOST_UNITS, MOST_UNITS


def weights(n_units: int, draws: int, seed: int) -> Iterator[Floats]:
    """How often each unit is drawn in each bootstrap sample: draws × units, in chunks of draws.

    Each sample draws `n_units` units with replacement. The last weights are cached, since all metrics, runs and
    policies of a table share them, and are read-only.
    """
    return (
        iter(_cached_weights(n_units, draws, seed))
        if draws * n_units <= _MAX_CACHED
        else _draw_weights(n_units, draws, seed)
    )


@lru_cache(maxsize=2)
def _cached_weights(n_units: int, draws: int, seed: int) -> tuple[Floats, ...]:
    return tuple(_draw_weights(n_units, draws, seed))


def _draw_weights(n_units: int, draws: int, seed: int) -> Iterator[Floats]:
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
    """Two-level samples in chunks: the number of samples, and for each drawn item its sample and its position.

    Items are ordered by group; `sizes` are the group sizes. Each sample draws groups and, within each drawn group,
    items, with replacement and in the original numbers (Davison and Hinkley 1997, section 3.8).
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
    """totals / counts; NaN where the count is 0.

    >>> ratio(np.array([1.0, 3.0, 0.0]), np.array([2, 4, 0])).tolist()
    [0.5, 0.75, nan]
    """
    means: Floats = np.divide(totals, counts, out=np.full(totals.shape, np.nan), where=counts > 0)
    return means


def percentile_ends(ordered: Floats, level: float) -> tuple[Floats, Floats]:
    """The percentile interval of each column of `ordered` (samples × statistics, ascending, NaN last)."""
    drawn = np.isfinite(ordered).sum(axis=0)
    tail = np.full(ordered.shape[1], (1 - level) / 2)
    return _quantile(ordered, drawn, tail), _quantile(ordered, drawn, 1 - tail)


def bca_ends(
    ordered: Floats, value: Floats, z: Floats, acceleration: Floats, far: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """The BCa interval of each column of `ordered` (samples × statistics, ascending, NaN last).

    `z` is the normal quantile of the level or its replacement. An end with fewer than five samples beyond it is
    replaced by the end of the interval `far` if that is wider. The interval always contains `value`.
    """
    drawn = np.isfinite(ordered).sum(axis=0)
    largest = np.fmax(np.abs(ordered[0]), np.abs(ordered[np.maximum(drawn - 1, 0), np.arange(ordered.shape[1])]))
    slack = 1e-12 * np.fmax(np.abs(value), largest)  # tolerance for rounding errors
    below = (ordered < value - slack).sum(axis=0)
    above = (ordered > value + slack).sum(axis=0)
    least = 1 / np.maximum(drawn + 1.0, 2.0)
    bias = ndtri(np.clip(0.5 + (below - above) / np.maximum(2.0 * drawn, 1.0), least, 1 - least))
    tail_low = _adjusted(bias - z, bias, acceleration)
    tail_high = _adjusted(bias + z, bias, acceleration)
    low, high = _quantile(ordered, drawn, tail_low), _quantile(ordered, drawn, tail_high)
    low = np.where(tail_low * drawn < _MIN_BEYOND, np.fmin(low, far[0]), low)
    high = np.where((1 - tail_high) * drawn < _MIN_BEYOND, np.fmax(high, far[1]), high)
    low = np.where(low > value - slack, value, low)
    return low, np.where(high < value + slack, value, high)


def _adjusted(shifted: Floats, bias: Floats, acceleration: Floats) -> Floats:
    """The BCa quantile level Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))), where `shifted` is z₀ + z."""
    room = 1 - acceleration * shifted
    beyond = np.where(shifted > 0, np.inf, -np.inf)
    return np.asarray(ndtr(bias + np.divide(shifted, room, out=beyond, where=room > 0)), dtype=np.float64)


def _quantile(ordered: Floats, drawn: NDArray[np.int64], share: Floats) -> Floats:
    """The quantile of each column's first `drawn` values by linear interpolation; NaN without values."""
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
    """The interval of a statistic from its bootstrap values and its leave-one-unit-out values (`without`).

    BCa with the jackknife acceleration. z is √(G / (G − 1)) · t with `df` degrees of freedom (Hesterberg 2015, The
    American Statistician 69:371), multiplied by the ratio of the jackknife to the bootstrap standard error if above 1.
    `far` maps t times the jackknife error to the ends used where the bootstrap has too few samples. NaN: no interval.
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
    defined = drawn[np.isfinite(drawn)]
    bootstrap_error = float(defined.std()) if defined.size else 0.0
    wider = max(1.0, error / bootstrap_error) if bootstrap_error > 0 else 1.0
    z = np.array([t * wider * np.sqrt(n_units / (n_units - 1))])
    far_low, far_high = (np.array([end]) for end in far(t * error))
    low, high = bca_ends(ordered, np.array([value]), z, np.array([skew / 6]), (far_low, far_high))
    return float(low[0]), float(high[0])


def pulls(without: Floats) -> Floats:
    """The jackknife influence of each unit: the mean of the leave-one-out values minus each value. Units without which
    the statistic is undefined are excluded."""
    defined = without[np.isfinite(without)]
    return defined.mean() - defined if defined.size else np.zeros(1)


def carrying_groups(values: Floats, group: Ints) -> int:
    """The number of groups that contain a value other than the most frequent one.

    >>> carrying_groups(np.array([0.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 2]))
    1
    """
    distinct, times = np.unique(values, return_counts=True)
    return len(np.unique(group[values != distinct[np.argmax(times)]]))


def too_few_carry(carrying: int, groups: int) -> bool:
    """Whether fewer than five groups, and at most half of all groups, carry the variation.

    >>> [too_few_carry(4, 100), too_few_carry(5, 100), too_few_carry(3, 4)]
    [True, False, False]
    """
    return carrying < _MIN_CARRYING and 2 * carrying <= groups


Trials = Sequence[Sequence[Sequence[int]]]
"""For each kind of trial its possible outcomes, and for each outcome the columns that count it."""


def sums_interval(
    columns: NDArray[Any],
    groups: Groups,
    statistic: Callable[[Floats], Floats],
    trials: Trials = (),
    plan: Resampling = Resampling(),
) -> Estimate:
    """A statistic of the column sums over all items, with a clustered bootstrap interval.

    `columns` is items × columns (sufficient statistics: counts, products, costs). `statistic` maps sums (samples ×
    columns) to one number per sample, NaN where it is undefined. `groups` and `plan` as in `mean_interval`.

    A `Share` (precision, recall, F1) has the interval of `share_ends`; its `n` is the number of its trials, and its
    `groups` are those with a trial. For any other statistic `n` and `groups` count all items.

    The interval of another statistic is the BCa interval over samples of groups with the jackknife acceleration over groups (Efron 1987,
    Journal of the American Statistical Association 82:171). z is replaced by √(G / (G − 1)) · t (Hesterberg 2015, The
    American Statistician 69:371), multiplied by the ratio of the jackknife to the bootstrap standard error if above 1.
    t has Satterthwaite's degrees of freedom from the kurtosis of the jackknife influences, at most G − 1: a rare class
    occurs in few groups, and only these inform the variance.

    The interval is extended for unseen groups (see `mean_interval`) if a column is nonzero in fewer than five groups
    (and at most half), or if the value is at a bound. `trials` lists the columns that count outcomes of the same
    trials, such as the right and wrong answers of a class. For an outcome that no group shows, the interval is extended
    to the statistic at the upper limit of its share of these trials, with the groups that have such trials as the
    sample size. Samples in which the statistic is undefined are excluded. With `two_level`, items are resampled within
    groups as well, as in `mean_interval`; time grows with draws × items.

    Edges: value None without items or if the statistic is undefined; no interval with fewer than three groups, or if
    no group differs from the others. Raises `InputError` for values that are not finite and for unequal lengths.

    >>> hits = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> sums_interval(hits, ["a", "b", "c"], lambda sums: sums[:, 0] / sums[:, 1], plan=Resampling(draws=100)).value
    0.6666666666666666
    """
    if isinstance(statistic, Share):
        return _share_interval(columns, groups, statistic, plan)
    estimates = sums_intervals(columns, groups, lambda sums: statistic(sums)[:, None], trials, plan)
    return estimates[0] if estimates else Estimate(None, None, None, 0, 0)


def _share_interval(columns: NDArray[Any], groups: Groups, share: Share, plan: Resampling) -> Estimate:
    table, code = _table(columns), group_codes(groups, len(columns))
    hits, trials = share.counted(table)
    kept = np.flatnonzero(trials > 0)
    hits, trials, code = hits[kept], trials[kept], group_codes(code[kept], len(kept))
    if not len(kept):
        return Estimate(None, None, None, 0, 0)
    totals = group_totals(np.stack([hits, trials], axis=1), code)
    value = float(share(table.sum(axis=0, keepdims=True))[0])
    n, n_groups = round(float(trials.sum())), len(totals)
    if plan.method != "bca" or plan.two_level:
        pair = np.stack([hits, trials], axis=1)
        one = replace(share, hits=(1.0, 0.0), trials=(0.0, 1.0))
        found = sums_intervals(pair, code, lambda sums: one(sums)[:, None], plan=plan)[0]
        return replace(found, value=value, n=n)
    if n_groups < 2:
        return Estimate(value, None, None, n, n_groups)
    low, high = share_ends(totals[:, 0], totals[:, 1], np.zeros(n_groups, dtype=np.int64), 1, plan.level)
    return Estimate(value, share.of_share(float(low[0])), share.of_share(float(high[0])), n, n_groups)


def _table(columns: NDArray[Any]) -> Floats:
    table = np.asarray(columns, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise InputError("columns", found=f"shape {table.shape}", expected="items × columns of numbers")
    return table


def sums_intervals(
    columns: NDArray[Any],
    groups: Groups,
    statistics: Callable[[Floats], Floats],
    trials: Trials = (),
    plan: Resampling = Resampling(),
) -> list[Estimate]:
    """Several statistics of the same sums, each with the interval of `sums_interval`.

    `statistics` maps sums (samples × columns) to samples × statistics. Returns an empty list without items.

    >>> hits = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> estimates = sums_intervals(hits, ["a", "b", "c"], lambda sums: sums / sums[:, 1:], plan=Resampling(draws=100))
    >>> [estimate.value for estimate in estimates]
    [0.6666666666666666, 1.0]
    """
    table, code = _table(columns), group_codes(groups, len(columns))
    if not len(table):
        return []
    totals = group_totals(table, code)
    n_groups = len(totals)
    observed = statistics(totals.sum(axis=0, keepdims=True))[0]
    values = [float(value) if np.isfinite(value) else None for value in observed]
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
    result = []
    for position, value in enumerate(values):
        if value is None:
            result.append(Estimate(None, None, None, len(table), n_groups))
            continue
        low, high = _ends(drawn[:, position], without[:, position], value, plan)
        if low is not None and high is not None and plan.method == "bca":
            reached = _reached(unseen[:, position], len(thin), value, n_groups, plan)
            low, high = min(low, *reached, value), max(high, *reached, value)
        result.append(Estimate(value, low, high, len(table), n_groups))
    return result


def group_totals(table: Floats, code: Ints) -> Floats:
    """The sums of each group (`group_codes`), ordered by their contents: bitwise equal for any order of items and any
    group names."""
    if (table == np.rint(table)).all() and np.abs(table).sum(axis=0).max(initial=0) < _EXACT:
        totals = np.stack([summed(code, column, int(code.max()) + 1) for column in table.T], axis=1)
    else:
        totals = np.zeros((int(code.max()) + 1, table.shape[1]))
        order = np.lexsort((*table.T, code))
        np.add.at(totals, code[order], table[order])
    return np.asarray(totals[np.lexsort(totals.T)], dtype=np.float64)


def _two_level(table: Floats, code: Ints, plan: Resampling) -> Floats:
    """The sums of every two-level sample. Equal rows are one kind; groups and their items are ordered by kind alone, so
    that the draws do not depend on names or on the order of items."""
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
    pull, defined = pulls(without), drawn[np.isfinite(drawn)]
    alike = float((pull**2).sum()) <= 1e-24 * max(1.0, value**2) and (defined == defined[:1]).all()
    if alike and plan.method == "bca":  # equal groups do not mean that the value is known exactly
        return (value, value) if value in (plan.bounds or ()) else (None, None)
    low, high = jackknife_ends(
        drawn, without, value, _degrees(pull), plan, lambda reach: (value - reach, value + reach)
    )
    if not (np.isfinite(low) and np.isfinite(high)):
        return None, None
    lowest, highest = plan.bounds or (-np.inf, np.inf)
    return float(np.clip(low, lowest, highest)), float(np.clip(high, lowest, highest))


def _degrees(pull: Floats) -> float:
    """Satterthwaite's degrees of freedom of Σ pull², from the kurtosis of the pulls: G − 1 for normal pulls, fewer if a
    few groups dominate; at least 1."""
    n, squared = len(pull), float((pull**2).sum())
    if n < 4 or squared <= 0:
        return max(1.0, n - 1.0)
    kurtosis = n * float((pull**4).sum()) / squared**2
    return float(np.clip(2 * n / max(kurtosis - (n - 3) / (n - 1), 1e-9), 1.0, n - 1))


def _reached(unseen: Floats, thin: int, value: float, groups: int, plan: Resampling) -> list[float]:
    """The values that the interval has to include because of unseen groups (see `mean_interval`).

    For a value at a bound this is a step towards the other bound, which replaces the first `thin` values of `unseen`.
    """
    lowest, highest = plan.bounds or (-np.inf, np.inf)
    at_bound = value in (lowest, highest) and bool(np.isfinite((lowest, highest)).all())
    step = [value + _share(groups, plan) * ((highest if value == lowest else lowest) - value)] if at_bound else []
    candidates = unseen[thin:] if at_bound else unseen
    return [*step, *map(float, candidates[np.isfinite(candidates)])]


def _share(groups: int, plan: Resampling) -> float:
    """The upper limit of the share of a kind of group that none of `groups` groups shows (Clopper and Pearson 1934)."""
    return float(1 - ((1 - plan.level) / 2) ** (1 / groups))


def _thin_columns(totals: Floats, table: Floats, plan: Resampling) -> Floats:
    """If fewer than five groups carry a column: for each kind of item, the sums if a share of the groups had only items
    of this kind."""
    carrying = (totals != 0).sum(axis=0)
    thin = any(too_few_carry(int(count), len(totals)) for count in carrying if count)
    kinds = np.unique(table, axis=0) if thin else table[:0]
    if len(kinds) > _MAX_KINDS:
        kinds = kinds[:0]
    share = _share(len(totals), plan)
    return np.asarray((1 - share) * totals.sum(axis=0) + share * len(table) * kinds, dtype=np.float64)


def _outcomes_unseen(totals: Floats, trials: Trials, plan: Resampling) -> Floats:
    """For each outcome that no group shows: the sums if a share of its trials had this outcome."""
    sums, result = totals.sum(axis=0), []
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
                result.append(moved)
    return np.array(result, dtype=np.float64).reshape(len(result), len(sums))

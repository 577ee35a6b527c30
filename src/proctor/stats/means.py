"""Means with clustered intervals: of all items, of slices of them, of groups that all count alike, and of several
systems on the same items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, count_of
from proctor.stats.bootstrap import (
    CHUNK,
    Estimate,
    Resampling,
    bca_ends,
    group_units,
    item_picks,
    percentile_ends,
    ratio,
    weights,
)
from proctor.stats.clusters import (
    Floats,
    Groups,
    Ints,
    Items,
    Sums,
    Values,
    cell_hash,
    finite,
    group_codes,
    slice_sums,
    splitmix64,
    summed,
    tabulate,
)
from proctor.stats.special import expit, logit, stdtrit

Matrix = Sequence[Sequence[float]] | NDArray[Any]

_FEW_OFF_BOUND = 9  # groups away from the bound where most are: so few may not show all there is
_FEW_DIFFERING = 5  # the same for differences; with no more groups that differ no p is below 0.05


def mean_interval(values: Values, groups: Groups, plan: Resampling = Resampling()) -> Estimate:
    """The mean of all values, with a clustered bootstrap interval.

    `values` are one number per item, `groups` the item's group (any hashable label or whole number):
    what shares a group is resampled together. `plan`: see `Resampling`.

    The mean is the sum of all values over their number (a ratio of sums over groups, so a big group
    counts by its size). Its interval is the BCa interval (Efron 1987, Journal of the American
    Statistical Association 82:171) over samples of whole groups, *expanded* for few groups of unequal
    size after Hesterberg (2015, The American Statistician 69:371): in place of the normal quantile
    stands t · `error` / `spread`, with t the quantile of Student's t at `df` degrees of freedom (all
    three in `Moments`). Beyond fewer than five samples the bootstrap knows nothing: such an end is taken
    from mean ± t · `error` if that is farther, on the logit scale where `bounds` are given.

    What no group has shown may still be a share u = 1 − ((1 − level) / 2)^(1 / G) of all groups, at a bound
    (Clopper and Pearson 1934, with the group as the trial). Where `bounds` are given and groups don't differ, or at
    least half of them and all but nine are at the same bound, the interval reaches from mean − u · (mean − lowest)
    to mean + u · (highest − mean). So it never has no width, but for the method "percentile".

    What 95 % covers by simulation stands in docs/reference/statistics.md.

    With `two_level` the items within a drawn group are drawn too. That adds the spread within groups
    once more: the interval is wider than it has to be, by up to √2 where items in a group are unlike.

    Same seed, same result, whatever the order of items and the groups' names (see `clusters`). Edges: no
    item: value None; fewer than two groups: no interval; all groups with the same mean and no
    `bounds`: no interval.

    Raises `InputError` for a value that is not finite or out of bounds, and where lengths differ.

    >>> mean_interval([1, 1, 0, 1, 0, 0], ["v1", "v1", "v1", "v2", "v2", "v3"], Resampling(bounds=(0, 1))).value
    0.5
    >>> mean_interval([1, 0], ["v1", "v1"])
    Estimate(value=0.5, ci_low=None, ci_high=None, n=2, groups=1)
    >>> mean_interval([], [])
    Estimate(value=None, ci_low=None, ci_high=None, n=0, groups=0)
    """
    return slice_means(values, groups, np.zeros(len(values), dtype=np.int64), 1, plan)[0]


def slice_means(
    values: Values, groups: Groups, slices: Sequence[int] | NDArray[Any], n_slices: int, plan: Resampling = Resampling()
) -> list[Estimate]:
    """The mean and interval of every slice: what `mean_interval` gives for its items alone, whatever other slices
    there are.

    `slices` says per item which slice (0 to `n_slices` − 1) it is in, −1 for none; or, where an item can be
    in several, it is an array of booleans, items × `n_slices`. `groups` of an estimate counts those with items in
    its slice; groups are drawn from these.

    Memory and time grow with items + draws × min(groups, 2048) + draws × slices: of more groups, random
    bundles are drawn (see `group_units`), and slices with as many groups share their draws. `two_level` draws items:
    time grows with draws × items.

    >>> both = slice_means([1, 0, 1, 1], ["a", "a", "b", "c"], [0, 1, 0, -1], 2)
    >>> [(one.value, one.n, one.groups) for one in both]
    [(1.0, 2, 2), (0.0, 1, 1)]
    >>> inside = np.array([[True, True], [True, False], [True, True]])
    >>> [one.n for one in slice_means([1, 0, 1], ["a", "a", "b"], inside, 2)]
    [3, 2]
    """
    numbers = finite(values)
    check_bounds(numbers, plan.bounds)
    code, where = group_codes(groups, len(numbers)), np.asarray(slices)
    if where.ndim == 2:
        if where.dtype != np.bool_ or where.shape != (len(numbers), n_slices):
            found = f"{' × '.join(str(length) for length in where.shape)} of {where.dtype}"
            raise InputError("slices", found=found, expected=f"{len(numbers)} × {n_slices} of bool")
        item, where = np.nonzero(where)
        numbers, code = numbers[item], code[item]
    where = where.astype(np.int64, copy=False)
    if plan.two_level:
        items = tabulate(numbers, code, where, n_slices)
        return estimates(items.sums, _two_level(items, plan), plan)
    return estimates_of_sums(slice_sums(numbers, code, where, n_slices), plan)


def check_bounds(values: Floats, bounds: tuple[float, float] | None) -> None:
    """Raises `InputError` that names the first value out of bounds."""
    if bounds is None:
        return
    outside = np.flatnonzero((values < bounds[0]) | (values > bounds[1]))
    if outside.size:
        position = int(outside[0])
        expected = f"a number from {bounds[0]:g} to {bounds[1]:g}"
        raise InputError(f"value {position}", found=f"{values[position]:g}", expected=expected)


def estimates(sums: Sums, means: Floats, plan: Resampling, nothing: float | None = None) -> list[Estimate]:
    """The estimate of every slice from its sums and its resampled means (draws × slices). `nothing` is the mean at
    which a group says nothing: 0 for differences."""
    known = moments(sums)
    ordered = np.sort(means, axis=0)  # NaN, a sample without the slice, comes last
    if plan.method == "percentile":
        low, high = percentile_ends(ordered, plan.level)
    else:
        low, high = _bca(known, ordered, plan)
        low, high = _unseen(sums, known, low, high, plan, nothing)
    result = []
    for k in range(sums.n_slices):
        n, groups = int(known.n[k]), int(known.groups[k])
        value = float(known.mean[k]) if n else None
        known_ends = groups >= 2 and np.isfinite(low[k]) and np.isfinite(high[k])
        ends = (float(low[k]), float(high[k])) if known_ends else (None, None)
        result.append(Estimate(value, ends[0], ends[1], n, groups))
    return result


def estimates_of_sums(sums: Sums, plan: Resampling) -> list[Estimate]:
    """The estimate of every slice from its sums alone, over samples of whole groups."""
    return estimates(sums, _one_level(sums, plan), plan)


def _bca(known: Moments, ordered: Floats, plan: Resampling) -> tuple[Floats, Floats]:
    t = np.asarray(stdtrit(known.df, (1 + plan.level) / 2), dtype=np.float64)
    widened = t * np.where(known.spread > 0, divide(known.error, known.spread), 1.0)
    far = _student(known, t, plan.bounds)
    low, high = bca_ends(ordered, known.mean, widened, known.skew / 6, far)
    least, most = plan.bounds or (-np.inf, np.inf)
    return np.clip(low, least, most), np.clip(high, least, most)


def _student(known: Moments, t: Floats, bounds: tuple[float, float] | None) -> tuple[Floats, Floats]:
    """mean ± t · error, with bounds on the logit scale (Korn and Graubard 1999, 2.7)."""
    reach = t * known.error
    if bounds is None or not np.isfinite(bounds).all():
        return known.mean - reach, known.mean + reach
    low, width = bounds[0], bounds[1] - bounds[0]
    share = np.clip((known.mean - low) / width, 1e-12, 1 - 1e-12)
    reach = reach / width / (share * (1 - share))
    return low + width * expit(logit(share) - reach), low + width * expit(logit(share) + reach)


def _unseen(
    sums: Sums, known: Moments, low: Floats, high: Floats, plan: Resampling, nothing: float | None
) -> tuple[Floats, Floats]:
    """Where hardly a group carries the spread, the ends reach what the groups may not have shown.

    A kind of group that none of G has shown may be a share 1 − ((1 − level) / 2)^(1 / G) of all groups (Clopper and
    Pearson 1934, with the group as the trial), and may be at a bound. Where no two groups differ, and the bounds
    aren't known, there are no ends.
    """
    alike = (known.spread == 0) & ~(high > low)  # two levels see a spread within groups
    least, most = plan.bounds or (-np.inf, np.inf)
    if not np.isfinite((least, most)).all():
        return np.where(alike, np.nan, low), np.where(alike, np.nan, high)
    few = alike.copy()
    for settled, limit in ((least, _FEW_OFF_BOUND), (most, _FEW_OFF_BOUND), (nothing, _FEW_DIFFERING)):
        if settled is None:
            continue
        away = np.abs(sums.total - settled * sums.count) > 1e-9 * (most - least) * sums.count
        carrying = np.bincount(sums.slice_[away], minlength=sums.n_slices)
        few |= (carrying <= limit) & (2 * carrying <= known.groups)
    share = 1 - ((1 - plan.level) / 2) ** divide(np.ones_like(low), known.groups)
    return (
        np.where(few, np.fmin(low, known.mean - share * (known.mean - least)), low),
        np.where(few, np.fmax(high, known.mean + share * (most - known.mean)), high),
    )


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


def _one_level(sums: Sums, plan: Resampling) -> Floats:
    """The mean of every slice in every bootstrap sample of its own groups (draws × slices, NaN for a slice without
    items): whole groups are drawn."""
    n_groups = np.bincount(sums.slice_, minlength=sums.n_slices)
    means = np.full((plan.draws, sums.n_slices), np.nan)
    for size in np.unique(n_groups[n_groups > 0]).tolist():  # slices with as many groups have the same draws
        some = np.flatnonzero(n_groups == size)
        column = np.full(sums.n_slices, -1)
        column[some] = np.arange(len(some))
        here = np.flatnonzero(column[sums.slice_] >= 0)
        unit, n_units = group_units(size, plan.seed)
        cell = unit[sums.group[here]] * len(some) + column[sums.slice_[here]]
        shape = (n_units, len(some))
        counts = summed(cell, sums.count[here], n_units * len(some)).reshape(shape)
        totals = summed(cell, sums.total[here], n_units * len(some)).reshape(shape)
        drawn = weights(n_units, plan.draws, plan.seed)
        means[:, some] = np.concatenate([ratio(part @ totals, part @ counts) for part in drawn])
    return means


def _two_level(items: Items, plan: Resampling) -> Floats:
    """The same with two levels: groups are drawn, and within each as many of its items as it has."""
    n_slices = items.sums.n_slices
    order = np.lexsort((items.group, items.slice_))
    ends = np.cumsum(np.bincount(items.slice_, minlength=n_slices))
    means = np.full((plan.draws, n_slices), np.nan)
    for number, own in enumerate(np.split(order, ends[:-1])):
        if len(own):
            values, parts = items.values[own], []
            for rows, row, position in item_picks(np.bincount(items.group[own]), plan):
                parts.append(ratio(summed(row, values[position], rows), np.bincount(row, minlength=rows).astype(float)))
            means[:, number] = np.concatenate(parts)
    return means


def group_mean_slices(
    values: Values, groups: Groups, inside: NDArray[np.bool_], plan: Resampling = Resampling()
) -> list[Estimate]:
    """For every slice the mean over its groups of each group's mean there, with an interval.

    `inside` (items × slices) says which slices an item is in. The interval is that of
    `mean_interval` for the groups' means, one value a group. Edges: no item: value None; one group: no interval. Raises
    `InputError` for shapes that differ, and for two levels.

    >>> right, videos = [1, 1, 1, 0], ["a", "a", "a", "b"]
    >>> group_mean_slices(right, videos, np.ones((4, 1), dtype=bool))[0].value
    0.5
    """
    if plan.two_level:
        raise InputError("two_level", found="True", expected="False for means of groups")
    numbers = finite(values)
    code = group_codes(groups, len(numbers))
    if inside.ndim != 2 or len(inside) != len(numbers):
        raise InputError("inside", found=str(inside.shape), expected=f"{len(numbers)} items × slices")
    n_slices = inside.shape[1]
    item, slice_ = np.nonzero(inside)
    n_groups = int(code.max()) + 1 if len(code) else 0
    cell = slice_ * n_groups + code[item]
    count = summed(cell, np.ones(len(cell)), n_slices * n_groups)
    total = summed(cell, numbers[item], n_slices * n_groups)
    used = np.flatnonzero(count)
    slices, of_group = np.divmod(used, max(1, n_groups))
    found = slice_means(total[used] / count[used], of_group, slices, n_slices, plan)
    return [replace(one, n=int(size)) for one, size in zip(found, inside.sum(axis=0), strict=True)]


@dataclass(frozen=True, slots=True)
class SystemTable:
    """`matrix` is systems × items; items are sorted by group, groups in canonical order (see `clusters`).

    `totals` is groups × systems, `counts` the number of items per group.
    """

    matrix: Floats
    totals: Floats
    counts: Floats

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.counts)

    def codes(self) -> Ints:
        """The group of each item."""
        return np.repeat(np.arange(self.n_groups), self.counts.astype(np.int64))

    def sums(self) -> Sums:
        """Each system as a slice."""
        return dense_sums(self.totals, self.counts, (self.matrix**2).sum(axis=1))

    def units(self, seed: int) -> tuple[Floats, Floats]:
        """Totals (units × systems) and counts of what is resampled: groups, or bundles of very many."""
        unit, n_units = group_units(self.n_groups, seed)
        if n_units == self.n_groups:
            return self.totals, self.counts
        totals = np.stack([summed(unit, column, n_units) for column in self.totals.T], axis=1)
        return totals, summed(unit, self.counts, n_units)

    def means(self, plan: Resampling) -> Floats:
        """The mean of every system in every bootstrap sample: draws × systems, the same samples for all."""
        if plan.two_level:
            return self._two_level(plan)
        totals, counts = self.units(plan.seed)
        drawn = weights(len(counts), plan.draws, plan.seed)
        return np.concatenate([(part @ totals) / (part @ counts)[:, None] for part in drawn])

    def _two_level(self, plan: Resampling) -> Floats:
        ordered, n = np.ascontiguousarray(self.matrix.T), self.matrix.shape[1]
        parts = []
        for rows, row, position in item_picks(self.counts.astype(np.int64), plan):
            for some in np.array_split(np.arange(rows), -(-rows * n // CHUNK)):
                inside = (row >= some[0]) & (row <= some[-1])
                cell = (row[inside] - some[0]) * n + position[inside]
                times = np.bincount(cell, minlength=len(some) * n).reshape(len(some), n).astype(np.float64)
                parts.append(ratio(times @ ordered, np.repeat(times.sum(axis=1)[:, None], ordered.shape[1], 1)))
        return np.concatenate(parts)


def dense_sums(totals: Floats, counts: Floats, squares: Floats) -> Sums:
    """Sums of a table in which every group has items in every slice (totals: groups × slices)."""
    n_groups, n_slices = totals.shape
    return Sums(
        group=np.repeat(np.arange(n_groups), n_slices),
        slice_=np.tile(np.arange(n_slices), n_groups),
        count=np.repeat(counts, n_slices),
        total=totals.ravel(),
        squares=squares,
        n_slices=n_slices,
    )


def system_table(matrix: Matrix, groups: Groups, names: Sequence[str] | None = None) -> SystemTable:
    """Checks the values (an `InputError` names the system) and sums them up."""
    rows = [finite(row, f"system {names[number] if names else number}, value") for number, row in enumerate(matrix)]
    for number, row in enumerate(rows):
        if len(row) != len(groups):
            name = names[number] if names else number
            expected = f"{len(groups)}, one per item"
            raise InputError(f"system {name}", found=count_of(len(row), "value"), expected=expected)
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(groups))
    return _arranged(values, group_codes(groups, len(groups)))


def _arranged(values: Floats, code: Ints) -> SystemTable:
    """Groups, and items within groups, in an order that is made from their values alone."""
    n = len(code)
    hashes = np.zeros(n, dtype=np.uint64)
    for number, row in enumerate(values):
        hashes += cell_hash(np.full(n, number), np.ones(n), row)
    order = np.lexsort((hashes, code))
    sizes = np.bincount(code)
    starts = np.cumsum(sizes) - sizes
    contents = np.add.reduceat(splitmix64(hashes[order]), starts) if n else np.zeros(0)
    ranked = np.argsort(contents, kind="stable")
    position = np.empty(len(ranked), dtype=np.int64)
    position[ranked] = np.arange(len(ranked))
    order = order[np.argsort(position[code[order]], kind="stable")]
    matrix, codes = values[:, order], position[code[order]]
    totals = np.zeros((len(sizes), len(values)))
    for number, row in enumerate(matrix):
        totals[:, number] = summed(codes, row, len(sizes))
    return SystemTable(matrix, totals, sizes[ranked].astype(np.float64))

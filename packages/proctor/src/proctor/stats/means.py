"""Means with clustered intervals: of all items, of slices, of equally weighted groups, and of several systems on the
same items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, count_of
from proctor.stats import clusters
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
from proctor.stats.shares import share_ends
from proctor.stats.special import expit, logit, stdtrit

Matrix = Sequence[Sequence[float]] | NDArray[Any]

_FEW_OFF_BOUND = 9  # with at most this many groups off a bound the interval is extended for unseen groups
_FEW_DIFFERING = 5  # the same for groups with a difference; with so few no p is below 0.05


def mean_interval(values: clusters.Values, groups: clusters.Groups, plan: Resampling = Resampling()) -> Estimate:
    """The mean of all values, with a clustered bootstrap interval.

    `values` has one number per item, `groups` the group of each item (any hashable label or integer). Items of a group
    are resampled together. `plan`: see `Resampling`.

    The mean weights items equally, so groups count by their size. If all values are at one of two finite `bounds` (0
    or 1), or are themselves shares (`plan.shares`: of an item's answers the right ones), the mean is a share, and its
    interval is that of `share_ends`: it generalises that of Clopper and Pearson to groups of several trials, needs no
    draws, and is monotone in every value.

    Other means have the BCa interval (Efron 1987, Journal of the American Statistical Association 82:171) over samples of
    whole groups, *expanded* for few groups of unequal size as in Hesterberg (2015, The American Statistician 69:371): the
    normal quantile is replaced by t · `error` / `spread`, where t is the quantile of Student's t with `df` degrees of
    freedom (all three in `Moments`). If fewer than five samples lie beyond an end, the end is taken from mean ± t ·
    `error` if that is wider, on the logit scale if `bounds` are given. Groups of a kind that is not in the sample may be
    a share of up to u = 1 − ((1 − level) / 2)^(1 / G) of all groups, with values at a bound. If `bounds` are given, and
    if groups do not differ, or all but nine and at least half of them are at the same bound, the interval is extended to
    mean − u · (mean − lowest) and mean + u · (highest − mean). So its width is never 0, except with the method
    "percentile". For the simulated coverage see docs/reference/statistics.md.

    With `two_level`, items are resampled within groups as well; a share has the wider of both intervals. This counts the variance within groups
    twice: the interval is wider than necessary, by a factor of up to √2 if items of a group are uncorrelated.

    The result of samples depends on the seed; no result depends on the order of items or the names of groups (see `clusters`).

    Edges: value None without items; no interval with fewer than two groups, or if all groups have the same mean and no
    `bounds` are given. Raises `InputError` for a value that is not finite or out of bounds, and for unequal lengths.

    >>> mean_interval([1, 1, 0, 1, 0, 0], ["v1", "v1", "v1", "v2", "v2", "v3"], Resampling(bounds=(0, 1))).value
    0.5
    >>> mean_interval([1, 0], ["v1", "v1"])
    Estimate(value=0.5, ci_low=None, ci_high=None, n=2, groups=1)
    >>> mean_interval([], [])
    Estimate(value=None, ci_low=None, ci_high=None, n=0, groups=0)
    """
    return slice_means(values, groups, np.zeros(len(values), dtype=np.int64), 1, plan)[0]


def slice_means(
    values: clusters.Values,
    groups: clusters.Groups,
    slices: Sequence[int] | NDArray[Any],
    n_slices: int,
    plan: Resampling = Resampling(),
) -> list[Estimate]:
    """The mean and interval of each slice, equal to `mean_interval` of the items of the slice.

    `slices` is the slice of each item (0 to `n_slices` − 1, or −1 for none). If items can be in several slices, it is a
    boolean array, items × `n_slices`. Only groups with items in a slice are resampled and counted in `groups`.

    Memory and time grow with items + draws × min(groups, 2048) + draws × slices: more groups are bundled (see
    `group_units`), and slices with equal numbers of groups share their draws. With `two_level` time grows with draws ×
    items.

    >>> estimates = slice_means([1, 0, 1, 1], ["a", "a", "b", "c"], [0, 1, 0, -1], 2)
    >>> [(estimate.value, estimate.n, estimate.groups) for estimate in estimates]
    [(1.0, 2, 2), (0.0, 1, 1)]
    >>> inside = np.array([[True, True], [True, False], [True, True]])
    >>> [estimate.n for estimate in slice_means([1, 0, 1], ["a", "a", "b"], inside, 2)]
    [3, 2]
    """
    numbers = clusters.finite(values)
    check_bounds(numbers, plan.bounds)
    code, where = clusters.group_codes(groups, len(numbers)), np.asarray(slices)
    if where.ndim == 2:
        if where.dtype != np.bool_ or where.shape != (len(numbers), n_slices):
            found = f"{' × '.join(str(length) for length in where.shape)} of {where.dtype}"
            raise InputError("slices", found=found, expected=f"{len(numbers)} × {n_slices} of bool")
        item, where = np.nonzero(where)
        numbers, code = numbers[item], code[item]
    where = where.astype(np.int64, copy=False)
    if plan.two_level:
        items = clusters.tabulate(numbers, code, where, n_slices)
        return estimates(items.sums, _two_level(items, plan), plan)
    return estimates_of_sums(clusters.slice_sums(numbers, code, where, n_slices), plan)


def check_bounds(values: clusters.Floats, bounds: tuple[float, float] | None) -> None:
    """Raise `InputError` with the first value out of bounds."""
    if bounds is None:
        return
    outside = np.flatnonzero((values < bounds[0]) | (values > bounds[1]))
    if outside.size:
        position = int(outside[0])
        expected = f"a number from {bounds[0]:g} to {bounds[1]:g}"
        raise InputError(f"value {position}", found=f"{values[position]:g}", expected=expected)


def estimates(
    sums: clusters.Sums, means: clusters.Floats, plan: Resampling, nothing: float | None = None
) -> list[Estimate]:
    """The estimate of each slice from its sums and, but for shares, its resampled means (draws × slices). `nothing` is the
    mean of uninformative groups: 0 for differences."""
    known = moments(sums)
    ordered = np.sort(means, axis=0)  # NaN, a sample without the slice, comes last
    if plan.method == "percentile":
        low, high = percentile_ends(ordered, plan.level)
    else:
        low, high = _bca(known, ordered, plan)
        low, high = _unseen(sums, known, low, high, plan, nothing)
    if nothing is None:
        low, high = _with_shares(sums, low, high, plan)
    result = []
    for k in range(sums.n_slices):
        n, groups = int(known.n[k]), int(known.groups[k])
        value = float(known.mean[k]) if n else None
        known_ends = groups >= 2 and np.isfinite(low[k]) and np.isfinite(high[k])
        ends = (float(low[k]), float(high[k])) if known_ends else (None, None)
        result.append(Estimate(value, ends[0], ends[1], n, groups))
    return result


def estimates_of_sums(sums: clusters.Sums, plan: Resampling) -> list[Estimate]:
    """The estimate of each slice from its sums, over samples of whole groups; none are drawn for shares."""
    return estimates(sums, _one_level(sums, plan, skipped=_are_shares(sums, plan)), plan)


def _are_shares(sums: clusters.Sums, plan: Resampling) -> NDArray[np.bool_]:
    """Whether all values of each slice are shares, or at one of two finite bounds: Σ (v − lowest) (highest − v) = 0."""
    lowest, highest = plan.bounds or (-np.inf, np.inf)
    if not np.isfinite((lowest, highest)).all() or plan.method != "bca":
        return np.zeros(sums.n_slices, dtype=np.bool_)
    if plan.shares:
        return np.ones(sums.n_slices, dtype=np.bool_)
    n, total = (clusters.summed(sums.slice_, values, sums.n_slices) for values in (sums.count, sums.total))
    between = (lowest + highest) * total - sums.squares - lowest * highest * n
    return np.asarray(np.abs(between) <= 1e-9 * (highest - lowest) ** 2 * n, dtype=np.bool_)


def _with_shares(
    sums: clusters.Sums, low: clusters.Floats, high: clusters.Floats, plan: Resampling
) -> tuple[clusters.Floats, clusters.Floats]:
    """The ends, those of shares by `share_ends`."""
    shares = _are_shares(sums, plan)
    if plan.bounds is None or not shares.any():
        return low, high
    lowest, width = plan.bounds[0], plan.bounds[1] - plan.bounds[0]
    cells = shares[sums.slice_]
    hits = (sums.total[cells] - lowest * sums.count[cells]) / width
    ends = share_ends(hits, sums.count[cells], sums.slice_[cells], sums.n_slices, plan.level)
    least, most = (np.where(shares, lowest + width * end, np.nan) for end in ends)
    if plan.two_level:  # the wider of both
        return np.fmin(low, least), np.fmax(high, most)
    return np.where(shares, least, low), np.where(shares, most, high)


def _bca(known: Moments, ordered: clusters.Floats, plan: Resampling) -> tuple[clusters.Floats, clusters.Floats]:
    t = np.asarray(stdtrit(known.df, (1 + plan.level) / 2), dtype=np.float64)
    widened = t * np.where(known.spread > 0, divide(known.error, known.spread), 1.0)
    far = _student(known, t, plan.bounds)
    low, high = bca_ends(ordered, known.mean, widened, known.skew / 6, far)
    lowest, highest = plan.bounds or (-np.inf, np.inf)
    return np.clip(low, lowest, highest), np.clip(high, lowest, highest)


def _student(
    known: Moments, t: clusters.Floats, bounds: tuple[float, float] | None
) -> tuple[clusters.Floats, clusters.Floats]:
    """mean ± t · error, on the logit scale if there are finite bounds (Korn and Graubard 1999, 2.7)."""
    reach = t * known.error
    if bounds is None or not np.isfinite(bounds).all():
        return known.mean - reach, known.mean + reach
    low, width = bounds[0], bounds[1] - bounds[0]
    share = np.clip((known.mean - low) / width, 1e-12, 1 - 1e-12)
    reach = reach / width / (share * (1 - share))
    return low + width * expit(logit(share) - reach), low + width * expit(logit(share) + reach)


def _unseen(
    sums: clusters.Sums,
    known: Moments,
    low: clusters.Floats,
    high: clusters.Floats,
    plan: Resampling,
    nothing: float | None,
) -> tuple[clusters.Floats, clusters.Floats]:
    """The ends, extended for unseen groups at a bound if few groups carry the variation (see `mean_interval`).

    If no two groups differ and the bounds are unknown, the ends are NaN.
    """
    alike = (known.spread == 0) & ~(high > low)  # two-level samples vary within groups too
    lowest, highest = plan.bounds or (-np.inf, np.inf)
    if not np.isfinite((lowest, highest)).all():
        return np.where(alike, np.nan, low), np.where(alike, np.nan, high)
    few = alike.copy()
    for settled, limit in ((lowest, _FEW_OFF_BOUND), (highest, _FEW_OFF_BOUND), (nothing, _FEW_DIFFERING)):
        if settled is None:
            continue
        away = np.abs(sums.total - settled * sums.count) > 1e-9 * (highest - lowest) * sums.count
        carrying = np.bincount(sums.slice_[away], minlength=sums.n_slices)
        few |= (carrying <= limit) & (2 * carrying <= known.groups)
    share = 1 - ((1 - plan.level) / 2) ** divide(np.ones_like(low), known.groups)
    return (
        np.where(few, np.fmin(low, known.mean - share * (known.mean - lowest)), low),
        np.where(few, np.fmax(high, known.mean + share * (highest - known.mean)), high),
    )


@dataclass(frozen=True, slots=True)
class Moments:
    """Moments of each slice. For group g let e = total − mean · size and h = size / n:

    `spread` = √(Σ e²) / n is the standard error of a bootstrap of whole groups; `error` = √(Σ e² / (1 − h)) / n is the
    CR2 standard error of a mean (Bell and McCaffrey 2002, Survey Methodology 28:169); `skew` = Σ e³ / (Σ e²)^1.5; `df`
    are the degrees of freedom of `error`², at least 1 (see `moments`).
    """

    n: clusters.Floats
    groups: clusters.Floats
    mean: clusters.Floats
    spread: clusters.Floats
    error: clusters.Floats
    skew: clusters.Floats
    df: clusters.Floats


def moments(sums: clusters.Sums) -> Moments:
    """The moments of each slice; 0 where a denominator is 0.

    Degrees of freedom are Satterthwaite's, (tr Q)² / tr Q², where Q is the covariance of e / √(1 − h) if values in a
    group have correlation ρ, estimated from the data and clipped to 0 to 1 (Imbens and Kolesár 2016, Review of
    Economics and Statistics 98:701). They are groups − 1 for groups of equal size, and fewer otherwise.
    """

    def add(per_cell: clusters.Floats) -> clusters.Floats:
        return clusters.summed(sums.slice_, per_cell, sums.n_slices)

    size = sums.count
    n = add(size)
    mean = divide(add(sums.total), n)
    off = sums.total - mean[sums.slice_] * size
    share = size / n[sums.slice_]
    leverage = divide(np.ones_like(share), 1 - share)
    squared = add(off**2)
    # Equal group means may differ by rounding errors, which are not variance.
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


def _satterthwaite(
    add: Callable[[clusters.Floats], clusters.Floats],
    share: clusters.Floats,
    leverage: clusters.Floats,
    variance: clusters.Floats,
) -> clusters.Floats:
    """(tr Q)² / tr Q² of Q = A V Aᵀ with A = diag(1 − h)^(−½) (I − h 1ᵀ) and V = diag(variance), as sums over groups
    without the groups × groups matrix Q."""
    whole = add(variance)
    a, b, c = add(leverage * share**2), add(leverage * share * variance), add(leverage * variance**2)
    trace = add(leverage * variance) - 2 * b + a * whole
    outside = 2 * a * c + (a * whole) ** 2 + 2 * b**2 - 4 * whole * a * b
    twice = leverage**2 * variance
    diagonal = add(twice * variance) - 4 * add(twice * share * variance) + 2 * whole * add(twice * share**2)
    return divide(trace**2, outside + diagonal)


def divide(top: clusters.Floats, bottom: clusters.Floats) -> clusters.Floats:
    """top / bottom; 0 where bottom is not positive."""
    return np.divide(top, bottom, out=np.zeros(np.shape(top)), where=bottom > 0)


def _one_level(sums: clusters.Sums, plan: Resampling, skipped: NDArray[np.bool_]) -> clusters.Floats:
    """The mean of each slice in bootstrap samples of its groups: draws × slices, NaN for slices without items and those
    that are `skipped`."""
    n_groups = np.where(skipped, 0, np.bincount(sums.slice_, minlength=sums.n_slices))
    means = np.full((plan.draws, sums.n_slices), np.nan)
    for size in np.unique(n_groups[n_groups > 0]).tolist():  # slices with equal numbers of groups share draws
        alike = np.flatnonzero(n_groups == size)
        column = np.full(sums.n_slices, -1)
        column[alike] = np.arange(len(alike))
        here = np.flatnonzero(column[sums.slice_] >= 0)
        unit, n_units = group_units(size, plan.seed)
        cell = unit[sums.group[here]] * len(alike) + column[sums.slice_[here]]
        shape = (n_units, len(alike))
        counts = clusters.summed(cell, sums.count[here], n_units * len(alike)).reshape(shape)
        totals = clusters.summed(cell, sums.total[here], n_units * len(alike)).reshape(shape)
        drawn = weights(n_units, plan.draws, plan.seed)
        means[:, alike] = np.concatenate([ratio(part @ totals, part @ counts) for part in drawn])
    return means


def _two_level(items: clusters.Items, plan: Resampling) -> clusters.Floats:
    """The same for two-level samples (`item_picks`)."""
    n_slices = items.sums.n_slices
    order = np.lexsort((items.group, items.slice_))
    ends = np.cumsum(np.bincount(items.slice_, minlength=n_slices))
    means = np.full((plan.draws, n_slices), np.nan)
    for number, own in enumerate(np.split(order, ends[:-1])):
        if len(own):
            values, parts = items.values[own], []
            for rows, row, position in item_picks(np.bincount(items.group[own]), plan):
                parts.append(
                    ratio(clusters.summed(row, values[position], rows), np.bincount(row, minlength=rows).astype(float))
                )
            means[:, number] = np.concatenate(parts)
    return means


def group_mean_slices(
    values: clusters.Values, groups: clusters.Groups, inside: NDArray[np.bool_], plan: Resampling = Resampling()
) -> list[Estimate]:
    """The mean of the group means in each slice, so that groups have equal weight, with an interval.

    `inside` (items × slices) marks the slices of each item. The interval is that of `mean_interval` of the group means.
    Edges: value None without items; no interval with one group. Raises `InputError` for unequal shapes and for
    `two_level`.

    >>> right, videos = [1, 1, 1, 0], ["a", "a", "a", "b"]
    >>> group_mean_slices(right, videos, np.ones((4, 1), dtype=bool))[0].value
    0.5
    """
    if plan.two_level:
        raise InputError("two_level", found="True", expected="False for means of groups")
    numbers = clusters.finite(values)
    code = clusters.group_codes(groups, len(numbers))
    if inside.ndim != 2 or len(inside) != len(numbers):
        raise InputError("inside", found=str(inside.shape), expected=f"{len(numbers)} items × slices")
    n_slices = inside.shape[1]
    item, slice_ = np.nonzero(inside)
    n_groups = int(code.max()) + 1 if len(code) else 0
    cell = slice_ * n_groups + code[item]
    count = clusters.summed(cell, np.ones(len(cell)), n_slices * n_groups)
    total = clusters.summed(cell, numbers[item], n_slices * n_groups)
    used = np.flatnonzero(count)
    slices, of_group = np.divmod(used, max(1, n_groups))
    means = slice_means(total[used] / count[used], of_group, slices, n_slices, plan)
    return [replace(mean, n=int(size)) for mean, size in zip(means, inside.sum(axis=0), strict=True)]


@dataclass(frozen=True, slots=True)
class SystemTable:
    """Values of several systems on the same items. `matrix` is systems × items, with items sorted by group and groups
    in canonical order (see `clusters`); `totals` is groups × systems; `counts` is the number of items per group."""

    matrix: clusters.Floats
    totals: clusters.Floats
    counts: clusters.Floats

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.counts)

    def codes(self) -> clusters.Ints:
        """The group of each item."""
        return np.repeat(np.arange(self.n_groups), self.counts.astype(np.int64))

    def sums(self) -> clusters.Sums:
        """The sums with each system as a slice."""
        return dense_sums(self.totals, self.counts, (self.matrix**2).sum(axis=1))

    def units(self, seed: int) -> tuple[clusters.Floats, clusters.Floats]:
        """Totals (units × systems) and counts of the resampling units (`group_units`)."""
        unit, n_units = group_units(self.n_groups, seed)
        if n_units == self.n_groups:
            return self.totals, self.counts
        totals = np.stack([clusters.summed(unit, column, n_units) for column in self.totals.T], axis=1)
        return totals, clusters.summed(unit, self.counts, n_units)

    def means(self, plan: Resampling) -> clusters.Floats:
        """The mean of each system in each bootstrap sample: draws × systems; systems share samples."""
        if plan.two_level:
            return self._two_level(plan)
        totals, counts = self.units(plan.seed)
        drawn = weights(len(counts), plan.draws, plan.seed)
        return np.concatenate([(part @ totals) / (part @ counts)[:, None] for part in drawn])

    def _two_level(self, plan: Resampling) -> clusters.Floats:
        ordered, n = np.ascontiguousarray(self.matrix.T), self.matrix.shape[1]
        parts = []
        for rows, row, position in item_picks(self.counts.astype(np.int64), plan):
            for chunk in np.array_split(np.arange(rows), -(-rows * n // CHUNK)):
                inside = (row >= chunk[0]) & (row <= chunk[-1])
                cell = (row[inside] - chunk[0]) * n + position[inside]
                times = np.bincount(cell, minlength=len(chunk) * n).reshape(len(chunk), n).astype(np.float64)
                parts.append(ratio(times @ ordered, np.repeat(times.sum(axis=1)[:, None], ordered.shape[1], 1)))
        return np.concatenate(parts)


def dense_sums(totals: clusters.Floats, counts: clusters.Floats, squares: clusters.Floats) -> clusters.Sums:
    """The sums of a table in which every group has items in every slice; `totals` is groups × slices."""
    n_groups, n_slices = totals.shape
    return clusters.Sums(
        group=np.repeat(np.arange(n_groups), n_slices),
        slice_=np.tile(np.arange(n_slices), n_groups),
        count=np.repeat(counts, n_slices),
        total=totals.ravel(),
        squares=squares,
        n_slices=n_slices,
    )


def system_table(matrix: Matrix, groups: clusters.Groups, names: Sequence[str] | None = None) -> SystemTable:
    """Check the values and sum them up. Raises `InputError` with the system's name."""
    rows = [
        clusters.finite(row, f"system {names[number] if names else number}, value") for number, row in enumerate(matrix)
    ]
    for number, row in enumerate(rows):
        if len(row) != len(groups):
            name = names[number] if names else number
            expected = f"{len(groups)}, one per item"
            raise InputError(f"system {name}", found=count_of(len(row), "value"), expected=expected)
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(groups))
    return _arranged(values, clusters.group_codes(groups, len(groups)))


def _arranged(values: clusters.Floats, code: clusters.Ints) -> SystemTable:
    """The table with groups, and items within groups, in an order that depends on their values only."""
    n = len(code)
    hashes = np.zeros(n, dtype=np.uint64)
    for number, row in enumerate(values):
        hashes += clusters.cell_hash(np.full(n, number), np.ones(n), row)
    order = np.lexsort((hashes, code))
    sizes = np.bincount(code)
    starts = np.cumsum(sizes) - sizes
    contents = np.add.reduceat(clusters.splitmix64(hashes[order]), starts) if n else np.zeros(0)
    ranked = np.argsort(contents, kind="stable")
    position = np.empty(len(ranked), dtype=np.int64)
    position[ranked] = np.arange(len(ranked))
    order = order[np.argsort(position[code[order]], kind="stable")]
    matrix, codes = values[:, order], position[code[order]]
    totals = np.zeros((len(sizes), len(values)))
    for number, row in enumerate(matrix):
        totals[:, number] = clusters.summed(codes, row, len(sizes))
    return SystemTable(matrix, totals, sizes[ranked].astype(np.float64))

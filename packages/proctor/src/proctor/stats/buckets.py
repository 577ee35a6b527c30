"""Systems in buckets of questions: scores, paired clustered tests, and ranks within each bucket."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.bootstrap import Estimate, Resampling, group_units, ratio, sums_interval
from proctor.stats.clusters import Floats, Groups, Ints, contents_orders, finite, group_codes, ordered_sums
from proctor.stats.paired import holm
from proctor.stats.ranking import significant_ranks
from proctor.stats.shares import Share
from proctor.stats.signflip import common_measures, sign_flip
from proctor.stats.special import ndtr

Correction = Literal["holm", "holm-board", "none"]
"""Multiplicity correction: Holm over the pairs of each bucket, Holm over the pairs of all buckets, or none."""


def bucket_columns(values: Floats, buckets: Ints, n_buckets: int) -> Floats:
    """The table (items × columns) whose sums determine a mean over buckets: for each bucket the item's value, then for
    each bucket whether the item counts there. A NaN counts nowhere, nor does an item whose bucket is below 0.

    >>> bucket_columns(np.array([1.0, np.nan]), np.array([1, 0]), 2).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
    """
    counts = (buckets[:, None] == np.arange(n_buckets)) & ~np.isnan(values)[:, None]
    return np.hstack([np.where(counts, values[:, None], 0.0), counts.astype(np.float64)])


def mean_over_buckets(sums: Floats) -> Floats:
    """For each row of sums (of `bucket_columns`) the mean, over the buckets that have items, of the mean in each; NaN
    without items.

    >>> mean_over_buckets(np.array([[3.0, 1.0, 0.0, 4.0, 4.0, 0.0]])).tolist()  # 3 of 4, 1 of 4, none
    [0.5]
    """
    n_buckets = sums.shape[1] // 2
    means = ratio(sums[:, :n_buckets], sums[:, n_buckets:])
    return ratio(np.nan_to_num(means).sum(axis=1), np.isfinite(means).sum(axis=1))


def bucket_mean_interval(
    values: Floats, buckets: Ints, groups: Groups, n_buckets: int, plan: Resampling = Resampling()
) -> Estimate:
    """The mean, over the buckets that have items, of the mean in each, with a clustered interval.

    Items are those of `bucket_columns`; `groups` and `plan` as in `mean_interval`. If all values are at one of the two
    `bounds`, the mean is a share of weighted trials: an item weighs 1 / (buckets · items in its bucket). It has the
    interval of `share_ends`, so that buckets of equal size give the interval of the plain mean. Other values have that of
    `sums_interval`. `n` and `groups` count the items with a value.

    >>> values, buckets = np.array([1.0, 1, 0, 1, 0, 1]), np.array([0, 0, 0, 1, 1, 1])
    >>> found = bucket_mean_interval(values, buckets, list("abcabc"), 2, Resampling(bounds=(0, 1)))
    >>> round(found.value, 3), round(found.ci_low, 3), round(found.ci_high, 3), found.n
    (0.667, 0.184, 0.953, 6)
    """
    columns = bucket_columns(values, buckets, n_buckets)
    counted = columns[:, n_buckets:].any(axis=1)
    columns, kept = columns[counted], group_codes(groups, len(values))[counted]
    lowest, highest = plan.bounds or (-np.inf, np.inf)
    if not np.isin(values[counted], (lowest, highest)).all():
        return sums_interval(columns, kept, mean_over_buckets, plan=plan)
    sizes = columns[:, n_buckets:].sum(axis=0)
    weights = columns[:, n_buckets:] @ np.divide(1.0, sizes, out=np.zeros(n_buckets), where=sizes > 0)
    hits = np.where(values[counted] == highest, weights, 0.0)
    share = sums_interval(np.stack([hits, weights], axis=1), kept, Share((1, 0), (0, 1)), plan=plan.within(0, 1))
    ends = (share.value, share.ci_low, share.ci_high)
    value, low, high = (None if end is None else lowest + (highest - lowest) * end for end in ends)
    return replace(share, value=value, ci_low=low, ci_high=high, n=int(counted.sum()))


@dataclass(frozen=True, slots=True)
class BucketSums:
    """Sums per bucket, unit and system; units are groups or bundles of groups (`group_units`).

    `totals` is buckets × units × systems. `counts` has the same shape, or × 1 if every system has a value for every
    item. If values are missing, `paired` (buckets × units × systems × systems) is the sum of a − b over the items that
    both systems have, and `shared` (buckets × systems × systems) the number of these items; otherwise both are None.
    Units and systems are ordered by their contents; `order` has the original index of each system.
    """

    totals: Floats
    counts: Floats
    order: Ints
    paired: Floats | None = None
    shared: Floats | None = None

    def __post_init__(self) -> None:
        # Matrix products of non-contiguous arrays are a hundred times slower.
        for name in ("totals", "counts"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    def scores(self, drawn: Floats | None = None) -> Floats:
        """The mean of each system in each bucket (buckets × systems), or with weights (samples × units) in each sample
        (samples × buckets × systems). NaN without items."""
        if drawn is None:
            totals = self.totals.sum(axis=1)
            return ratio(totals, np.broadcast_to(self.counts.sum(axis=1), totals.shape))
        sums, counts = _sampled(drawn, self.totals), _sampled(drawn, self.counts)
        return ratio(sums, np.broadcast_to(counts, sums.shape))

    def apart(self, bucket: int, first: Ints, second: Ints) -> Floats:
        """The sum of a − b in each unit: units × pairs."""
        if self.paired is not None:
            return np.asarray(self.paired[bucket][:, first, second])
        return np.asarray(self.totals[bucket][:, first] - self.totals[bucket][:, second])

    def mean_apart(self, first: Ints, second: Ints) -> Floats:
        """The contribution of each unit to the difference of the means over buckets: units × pairs."""
        contributions = np.zeros((self.totals.shape[1], len(first)))
        for bucket in range(len(self.totals)):
            if self.shared is None:
                items = np.full(len(first), self.counts[bucket].sum())
            else:
                items = self.shared[bucket][first, second]
            contributions += ratio(self.apart(bucket, first, second), np.maximum(items, 1.0)[None])
        return contributions

    def filled(self) -> NDArray[np.bool_]:
        """Whether a unit has items in a bucket: buckets × units."""
        return np.asarray(self.counts.max(axis=2, initial=0) > 0)

    def exchanged(self, rng: np.random.Generator) -> BucketSums:
        """The sums with system names permuted at random within each unit, as if systems were equal."""
        n_units, n_systems = self.totals.shape[1:]
        rows = np.arange(n_units)[:, None]
        new = np.argsort(rng.random((n_units, n_systems)), axis=1)
        counts = self.counts if self.counts.shape[2] == 1 else self.counts[:, rows, new]
        paired = None
        if self.paired is not None:
            paired = self.paired[:, rows[..., None], new[:, :, None], new[:, None, :]]
        return BucketSums(self.totals[:, rows, new], counts, self.order, paired)

    def of(self, systems: Ints) -> BucketSums:
        """The sums of these systems alone, for scoring and for tests that are known."""
        counts = self.counts if self.counts.shape[2] == 1 else self.counts[:, :, systems]
        return BucketSums(self.totals[:, :, systems], counts, self.order[systems])


def _sampled(drawn: Floats, sums: Floats) -> Floats:
    """The sums (buckets × units × systems) in each sample: samples × buckets × systems."""
    n_buckets, n_units, n_systems = sums.shape
    by_unit = sums.transpose(1, 0, 2).reshape(n_units, n_buckets * n_systems)
    return np.asarray((drawn @ by_unit).reshape(len(drawn), n_buckets, n_systems))


@dataclass(frozen=True, slots=True)
class BucketTable:
    """Rows of values (rows × items, 0 if missing) with their sums per group, from which `of` selects rows.

    `totals` and `counts` are buckets × groups × rows, `sizes` is buckets × groups × 1. `there` marks the items for
    which a row has a value; `bucket` and `code` are the bucket and group of each item.
    """

    values: Floats
    there: NDArray[np.bool_]
    bucket: Ints
    code: Ints
    totals: Floats
    counts: Floats
    sizes: Floats
    seed: int

    @property
    def bundled(self) -> bool:
        """Whether bundles of groups are resampled; these depend on all selected rows."""
        n_groups = self.totals.shape[1]
        return bool(group_units(n_groups, self.seed)[1] < n_groups)

    def of(self, rows: Ints) -> BucketSums:
        """The sums of these rows."""
        n_buckets, n_groups = self.totals.shape[:2]
        complete = bool(self.there[rows].all())
        totals, counts = self.totals[:, :, rows], self.sizes if complete else self.counts[:, :, rows]
        by_group, by_system = contents_orders(totals, counts)
        unit, n_units = group_units(n_groups, self.seed)
        unit_of = np.empty(n_groups, dtype=np.int64)
        unit_of[by_group] = unit
        cell = self.bucket * n_units + unit_of[self.code]
        if n_units < n_groups:
            totals, counts, sizes = _summed(self.values[rows], self.there[rows], cell, (n_buckets, n_units))
            counts = sizes if complete else counts
        else:
            totals, counts = totals[:, by_group], counts[:, by_group]
        totals, counts = totals[:, :, by_system], counts if complete else counts[:, :, by_system]
        order = rows[by_system]
        if complete:
            return BucketSums(totals, counts, order)
        values, there = self.values[order], self.there[order]
        parts = [there[:, self.bucket == number].astype(np.float64) for number in range(n_buckets)]
        shared = np.stack([part @ part.T for part in parts])
        return BucketSums(totals, counts, order, _paired(values, there, cell, (n_buckets, n_units)), shared)


@dataclass(frozen=True, slots=True)
class KnownTests:
    """A cache of the tests of pairs of rows of a `BucketTable`: `p` and `lead` (the sum of differences) are buckets ×
    rows × rows, NaN for pairs that are not yet tested."""

    p: Floats
    lead: Floats

    @classmethod
    def none(cls, n_buckets: int, n_rows: int) -> KnownTests:
        """An empty cache."""
        return cls(*np.full((2, n_buckets, n_rows, n_rows), np.nan))

    def among(self, sums: BucketSums, bucket: int) -> tuple[Floats, Floats]:
        """The unadjusted p and the lead of each pair of systems in a bucket; computed once per pair."""
        first, second = np.triu_indices(len(sums.order), 1)
        pairs = bucket, sums.order[first], sums.order[second]
        unknown = np.flatnonzero(np.isnan(self.p[pairs]))
        if len(unknown):
            apart = sums.apart(bucket, first[unknown], second[unknown])[sums.filled()[bucket]]
            for known, values, mirror in ((self.p, sign_flip(apart), 1), (self.lead, apart.sum(axis=0), -1)):
                known[bucket, pairs[1][unknown], pairs[2][unknown]] = values
                known[bucket, pairs[2][unknown], pairs[1][unknown]] = mirror * values
        return self.p[pairs], self.lead[pairs]


@dataclass(frozen=True, slots=True)
class BucketTests:
    """`ranks` is buckets × systems; `p_values` is buckets × systems × systems, adjusted, 1 on the diagonal. `reach` is
    the smallest adjusted p possible with the number of groups of each bucket; None if there is nothing to test."""

    ranks: Floats
    p_values: Floats
    reach: tuple[float | None, ...]


def bucket_table(
    matrix: NDArray[Any], groups: Groups, buckets: NDArray[np.int64], n_buckets: int, seed: int = 0
) -> BucketTable:
    """Sum up a matrix (systems × items) by bucket and group.

    `buckets` is the bucket of each item, −1 for none. NaN marks a missing value, which is excluded from the sums of
    that system and of its pairs. Raises `InputError` for infinite values, unequal lengths, and an invalid bucket.
    """
    n = len(groups)
    if matrix.ndim != 2 or matrix.shape[1] != n or len(buckets) != n:
        found = f"{' × '.join(str(size) for size in matrix.shape)} and {len(buckets)}"
        raise InputError("values and buckets", found=found, expected=f"systems × {n}, and {n}")
    if len(buckets) and not -1 <= buckets.min() <= buckets.max() < n_buckets:
        found = f"{buckets.min()} to {buckets.max()}"
        raise InputError("buckets", found=found, expected=f"-1 to {n_buckets - 1}")
    inside = buckets >= 0
    _, code = np.unique(group_codes(groups, n)[inside], return_inverse=True)
    n_groups = int(code.max()) + 1 if len(code) else 0
    there = ~np.isnan(np.asarray(matrix, dtype=np.float64))
    values = np.stack(
        [
            finite(np.where(known, row, 0.0), f"system {number}, value")[inside]
            for number, (row, known) in enumerate(zip(matrix, there, strict=True))
        ]
        or [np.zeros(int(inside.sum()))]
    )[: len(matrix)]
    there = there[:, inside]
    bucket = buckets[inside]
    summed = _summed(values, there, bucket * n_groups + code, (n_buckets, n_groups))
    return BucketTable(values, there, bucket, code, *summed, seed)


def bucket_sums(
    matrix: NDArray[Any], groups: Groups, buckets: NDArray[np.int64], n_buckets: int, seed: int = 0
) -> BucketSums:
    """The sums of all systems of a matrix, as in `bucket_table`."""
    return bucket_table(matrix, groups, buckets, n_buckets, seed).of(np.arange(len(matrix)))


def _summed(
    values: Floats, there: NDArray[np.bool_], cell: Ints, shape: tuple[int, int]
) -> tuple[Floats, Floats, Floats]:
    """Totals and counts per cell and system, and the number of items per cell (× 1)."""
    totals, counts = np.zeros((2, *shape, len(values)))
    sizes = np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.float64).reshape(*shape, 1)
    for number, (row, known) in enumerate(zip(values, there, strict=True)):
        totals[:, :, number] = ordered_sums(cell, row, sizes.size).reshape(shape)
        counts[:, :, number] = np.bincount(cell[known], minlength=sizes.size).reshape(shape)
    return totals, counts, sizes


def _paired(values: Floats, there: NDArray[np.bool_], cell: Ints, shape: tuple[int, int]) -> Floats:
    known = there.astype(np.float64)
    positioned = np.argsort(cell, kind="stable")
    starts = np.flatnonzero(np.diff(cell[positioned], prepend=-1))
    paired = np.zeros((shape[0] * shape[1], len(values), len(values)))
    for items in np.split(positioned, starts[1:]):
        if len(items):
            sums = values[:, items] @ known[:, items].T  # a's values on the items that b has too
            paired[cell[items[0]]] = np.round(sums - sums.T, 9)
    return paired.reshape(*shape, len(values), len(values))


def bucket_ranks(
    sums: BucketSums, *, alpha: float = 0.05, correction: Correction = "holm", known: KnownTests | None = None
) -> BucketTests:
    """Ranks and adjusted p values in each bucket; `known` caches the tests of the table that the sums come from.

    A system is significantly better if the sum of differences is above 0 and p ≤ `alpha` in the sign-flip test
    (`sign_flip`), adjusted over the pairs of the bucket ("holm"), of all buckets ("holm-board"), or not ("none"). The
    rank is 1 + the number of significantly better systems, but not better than that of a system with a higher score
    (`ordered_ranks`). It is NaN if a system has no item in the bucket.
    """
    n_buckets, _, n_systems = sums.totals.shape
    first, second = np.triu_indices(n_systems, 1)
    groups = sums.filled().sum(axis=1)
    tests = known or KnownTests.none(n_buckets, n_systems and int(sums.order.max()) + 1)
    tested = np.flatnonzero(groups > 1) if len(first) else np.zeros(0, dtype=np.int64)
    plain = np.ones((n_buckets, len(first)))
    lead = np.zeros((n_buckets, len(first)))
    for bucket in tested.tolist():
        plain[bucket], lead[bucket] = tests.among(sums, bucket)
    adjusted = plain.copy()
    if correction == "holm-board":
        adjusted[tested] = holm(plain[tested].ravel()).reshape(len(tested), len(first))
    elif correction == "holm":
        adjusted[tested] = np.array([holm(row) for row in plain[tested]]).reshape(len(tested), len(first))
    family = {"none": 1, "holm": len(first), "holm-board": len(first) * len(tested)}[correction]
    better = np.where(adjusted <= alpha, np.sign(lead), 0.0)
    ranks = significant_ranks(better, sums.scores())
    ranks[groups == 0] = np.nan
    p_values = np.ones((n_buckets, n_systems, n_systems))
    p_values[:, first, second] = p_values[:, second, first] = adjusted
    return BucketTests(
        ranks,
        p_values,
        tuple(min(1.0, family * 2.0 ** (1 - int(size))) if len(first) and size else None for size in groups),
    )


def resampled_ranks(
    sums: BucketSums, drawn: Floats, *, alpha: float = 0.05, correction: Correction = "holm"
) -> tuple[Floats, Floats]:
    """The ranks and the scores in each sample, given weights (samples × units): samples × buckets × systems.

    Repeating the sign-flip test in each sample would be slow, so its p is approximated from moments: Σ ±d has variance
    Σ w d² and fourth cumulant −2 Σ w d⁴. The tail is that of the Edgeworth expansion up to these (Hall 1992, The
    Bootstrap and Edgeworth Expansion, 2.3) with a continuity correction, and at least 2 / 2^(drawn units that differ).
    All sums are matrix products.
    """
    n_buckets, _, n_systems = sums.totals.shape
    first, second = np.triu_indices(n_systems, 1)
    filled = np.flatnonzero(sums.filled().any(axis=1))
    lead, p = np.zeros((2, len(drawn), n_buckets, len(first)))
    for bucket in filled.tolist():
        apart = sums.apart(bucket, first, second)
        lead[:, bucket], p[:, bucket] = np.sign(drawn @ apart), tails(drawn, apart)
    better = np.zeros_like(lead)
    if correction == "holm-board":
        flat = p[:, filled].reshape(len(drawn), -1)
        better[:, filled] = _holm_rejected(flat, alpha).reshape(len(drawn), len(filled), len(first))
    else:
        for bucket in filled.tolist():
            better[:, bucket] = _holm_rejected(p[:, bucket], alpha) if correction == "holm" else p[:, bucket] <= alpha
    scores = sums.scores(drawn)
    ranks = significant_ranks(better * lead, scores)
    ranks[:, ~sums.filled().any(axis=1)] = np.nan
    return ranks, scores


def tails(drawn: Floats, apart: Floats) -> Floats:
    """The approximate p of each pair in each sample (see `resampled_ranks`): samples × pairs."""
    squares = apart**2
    # Σ ±d of multiples of m takes values 2 m apart, so the continuity correction is m.
    total, variance = np.maximum(np.abs(drawn @ apart) - common_measures(apart), 0.0), drawn @ squares
    z = np.divide(total, np.sqrt(variance), out=np.zeros_like(total), where=variance > 0)
    fourth = drawn @ squares**2
    kurtosis = np.divide(-2 * fourth, variance**2, out=np.zeros_like(total), where=variance > 0)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    p = 2 * (ndtr(-z) + density * kurtosis / 24 * (z**3 - 3 * z))
    least = np.exp2(1 - drawn @ (apart != 0))
    return np.clip(np.where(z > 0, np.maximum(p, least), 1.0), 0.0, 1.0)


def _holm_rejected(p: Floats, alpha: float) -> NDArray[np.bool_]:
    """Which p of each row Holm's test rejects: the smallest of m is compared with alpha / m, the next with
    alpha / (m − 1), and so on until one is larger."""
    if not p.shape[1]:
        return np.zeros(p.shape, dtype=np.bool_)
    ordered = np.sort(p, axis=1)
    rejected = np.logical_and.accumulate(ordered <= alpha / np.arange(p.shape[1], 0, -1), axis=1)
    last = np.where(rejected[:, 0], rejected.sum(axis=1) - 1, 0)
    limit = np.where(rejected[:, 0], ordered[np.arange(len(p)), last], -1.0)
    return np.asarray(p <= limit[:, None])

"""Systems in buckets of questions: scores, the paired clustered test, and ranks that differences share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups, Ints, finite, group_codes, scrambled
from proctor.stats.multiplicity import holm
from proctor.stats.resampling import group_units, ratio
from proctor.stats.signflip import sign_flip
from proctor.stats.special import ndtr

__all__ = ["BucketSums", "Correction", "bucket_ranks", "bucket_sums", "resampled_ranks"]

Correction = Literal["holm", "none"]


@dataclass(frozen=True, slots=True)
class BucketSums:
    """`totals` is buckets × units × systems, `counts` buckets × units; units are groups (or bundles of very
    many). Units and systems stand in an order made from their contents; `order` says which system is where."""

    totals: Floats
    counts: Floats
    order: Ints

    def scores(self, drawn: Floats | None = None) -> Floats:
        """Each system's mean in each bucket: buckets × systems; with weights (samples × units) of every
        sample: samples × buckets × systems. NaN where a bucket has no item."""
        if drawn is None:
            counts = self.counts.sum(axis=1)[:, None]
            totals = self.totals.sum(axis=1)
            return ratio(totals, np.broadcast_to(counts, totals.shape))
        sums = np.stack([drawn @ one for one in self.totals], axis=1)
        counts = (drawn @ self.counts.T)[:, :, None]
        return ratio(sums, np.broadcast_to(counts, sums.shape))


def bucket_sums(
    matrix: NDArray[Any], groups: Groups, buckets: NDArray[np.int64], n_buckets: int, seed: int = 0
) -> BucketSums:
    """Sums up a matrix of systems × items; `buckets` says per item which bucket it is in, −1 for none.

    Raises `InputError` for values that are not finite, lengths that differ, and a bucket that is none.
    """
    n = len(groups)
    if matrix.ndim != 2 or matrix.shape[1] != n or len(buckets) != n:
        found = f"{' × '.join(str(size) for size in matrix.shape)} and {len(buckets)}"
        raise InputError(None, "values and buckets", found=found, expected=f"systems × {n}, and {n}")
    if len(buckets) and not -1 <= buckets.min() <= buckets.max() < n_buckets:
        found = f"{buckets.min()} to {buckets.max()}"
        raise InputError(None, "buckets", found=found, expected=f"-1 to {n_buckets - 1}")
    code = group_codes(groups, n)
    inside = buckets >= 0
    _, code = np.unique(code[inside], return_inverse=True)
    n_groups = int(code.max()) + 1 if len(code) else 0
    cell = buckets[inside] * n_groups + code
    shape = (n_buckets, n_groups)
    counts = np.bincount(cell, minlength=n_buckets * n_groups).astype(np.float64).reshape(shape)
    totals = np.zeros((*shape, len(matrix)))
    for number, row in enumerate(matrix):
        values = finite(row, f"system {number}, value")[inside]
        placed = np.lexsort((values, cell))
        totals[:, :, number] = np.bincount(
            cell[placed], values[placed], minlength=len(counts.ravel())
        ).reshape(shape)
    by_group, by_system = _contents(totals, counts)
    totals, counts = totals[:, by_group][:, :, by_system], counts[:, by_group]
    unit, n_units = group_units(n_groups, seed)
    if n_units < n_groups:
        folded, sizes = np.zeros((n_buckets, n_units, len(matrix))), np.zeros((n_buckets, n_units))
        for bucket in range(n_buckets):
            np.add.at(folded[bucket], unit, totals[bucket])
            np.add.at(sizes[bucket], unit, counts[bucket])
        totals, counts = folded, sizes
    return BucketSums(totals, counts, by_system)


def _contents(totals: Floats, counts: Floats) -> tuple[Ints, Ints]:
    """Orders of groups and of systems that depend on what they hold, not on names or places.

    Each is known by a hash of its cells, cells by a hash of theirs: two rounds of refining, as when graphs
    are compared (Weisfeiler and Leman 1968).
    """
    cells = np.zeros(totals.shape[1:], dtype=np.uint64)
    for bucket, (sums, sizes) in enumerate(zip(totals, counts, strict=True)):
        cells = scrambled(cells ^ (sums + 0.0).view(np.uint64) ^ np.uint64(bucket))
        cells = scrambled(cells ^ (sizes + 0.0).view(np.uint64)[:, None])
    by_system = np.zeros(totals.shape[2], dtype=np.uint64)
    by_group = np.zeros(totals.shape[1], dtype=np.uint64)
    for _ in range(2):
        by_group = scrambled(cells ^ by_system).sum(axis=1, dtype=np.uint64)
        by_system = scrambled(cells ^ by_group[:, None]).sum(axis=0, dtype=np.uint64)
    return np.argsort(by_group, kind="stable"), np.argsort(by_system, kind="stable")


def bucket_ranks(
    sums: BucketSums, *, alpha: float = 0.05, correction: Correction = "holm", seed: int = 0
) -> tuple[Floats, Floats]:
    """Ranks (buckets × systems) and p values (buckets × systems × systems, 1 on the diagonal).

    A rank is 1 + the number of systems that are significantly better: a better mean, and p ≤ `alpha` in the
    paired test that flips the groups' signs (`sign_flip`), adjusted by Holm over the pairs of the bucket
    unless `correction` is "none". A bucket without items has NaN ranks.
    """
    n_buckets, _, n_systems = sums.totals.shape
    first, second = np.triu_indices(n_systems, 1)
    ranks = np.full((n_buckets, n_systems), np.nan)
    p_values = np.ones((n_buckets, n_systems, n_systems))
    for bucket in range(n_buckets):
        here = sums.counts[bucket] > 0
        if not here.any():
            continue
        ranks[bucket] = 1.0
        if not len(first) or here.sum() < 2:
            continue
        totals = sums.totals[bucket][here]
        apart = totals[:, first] - totals[:, second]
        p = sign_flip(apart, seed)
        p = holm(p) if correction == "holm" else p
        p_values[bucket, first, second] = p_values[bucket, second, first] = p
        sign = np.where(p <= alpha, np.sign(apart.sum(axis=0)), 0)
        ranks[bucket] += np.bincount(second[sign > 0], minlength=n_systems)
        ranks[bucket] += np.bincount(first[sign < 0], minlength=n_systems)
    return ranks, p_values


def resampled_ranks(
    sums: BucketSums, drawn: Floats, *, alpha: float = 0.05, correction: Correction = "holm"
) -> Floats:
    """The ranks in every sample: samples × buckets × systems, from weights (samples × units).

    The same test on every sample would have to flip signs anew each time. Its distribution is known well
    enough from its moments: Σ ±d has variance Σ w d² and fourth cumulant −2 Σ w d⁴, and the tail is that of
    Edgeworth's series up to these (Hall 1992, The Bootstrap and Edgeworth Expansion, 2.3), with a correction
    for continuity and never below 2 / 2^(drawn units that differ). All three sums are matrix products.
    """
    n_buckets, _, n_systems = sums.totals.shape
    first, second = np.triu_indices(n_systems, 1)
    to_second, to_first = np.eye(n_systems)[second], np.eye(n_systems)[first]
    ranks = np.ones((len(drawn), n_buckets, n_systems))
    for bucket in range(n_buckets):
        if not sums.counts[bucket].any():
            ranks[:, bucket] = np.nan
            continue
        totals = sums.totals[bucket]
        apart = totals[:, first] - totals[:, second]
        sign = np.sign(drawn @ apart) * _significant(drawn, apart, alpha, correction)
        ranks[:, bucket] += (sign > 0).astype(np.float64) @ to_second
        ranks[:, bucket] += (sign < 0).astype(np.float64) @ to_first
    return ranks


def _significant(drawn: Floats, apart: Floats, alpha: float, correction: Correction) -> NDArray[np.bool_]:
    squares = apart**2
    # Sums ±d of multiples of some number lie two of it apart, so their tail begins one of it below.
    whole = (apart == np.rint(apart)).all(axis=0)
    gap = np.gcd.reduce(np.where(whole, np.abs(apart), 0.0).astype(np.int64), axis=0)
    total, variance = np.maximum(np.abs(drawn @ apart) - gap, 0.0), drawn @ squares
    z = np.divide(total, np.sqrt(variance), out=np.zeros_like(total), where=variance > 0)
    fourth = drawn @ squares**2
    kurtosis = np.divide(-2 * fourth, variance**2, out=np.zeros_like(total), where=variance > 0)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    p = 2 * (ndtr(-z) + density * kurtosis / 24 * (z**3 - 3 * z))
    least = np.exp2(1 - drawn @ (apart != 0))
    p = np.clip(np.where(z > 0, np.maximum(p, least), 1.0), 0.0, 1.0)
    if correction == "none" or not p.shape[1]:
        return np.asarray(p <= alpha)
    # Holm: the smallest p of m against alpha / m, the next against alpha / (m − 1) …, until one fails.
    ordered = np.sort(p, axis=1)
    passed = ordered <= alpha / np.arange(p.shape[1], 0, -1)
    held = np.logical_and.accumulate(passed, axis=1)
    last = np.where(held[:, 0], held.sum(axis=1) - 1, 0)
    limit = np.where(held[:, 0], ordered[np.arange(len(p)), last], -1.0)
    return np.asarray(p <= limit[:, None])


def check_systems(names: Sequence[str], n_systems: int) -> None:
    """Raises `InputError` where names are not one per system, each once."""
    if len(names) != n_systems:
        raise InputError(None, "names", found=str(len(names)), expected=f"{n_systems}, one per system")
    if len(set(names)) != len(names):
        raise InputError(None, "names", found=", ".join(names), expected="each name once")

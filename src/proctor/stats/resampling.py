"""Bootstrap samples of clustered means: weights once, everything else is a matrix product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proctor.core import generator
from proctor.stats.clusters import Floats, Ints, Items, Sums, summed
from proctor.stats.options import Resampling

MOST_UNITS = 2048
"""More groups than this are bundled before they are resampled."""

_CHUNK = 4_000_000  # numbers held at once in one working array: 32 MB of floats


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

    Each sample draws `n_units` of the units with replacement; the same seed gives the same weights.
    """
    rng = generator(seed, "clustered bootstrap")
    step = max(1, _CHUNK // max(1, n_units))
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        drawn = rng.integers(0, n_units, size=(rows, n_units))
        drawn += np.arange(rows)[:, None] * n_units
        yield np.bincount(drawn.ravel(), minlength=rows * n_units).reshape(rows, n_units).astype(np.float64)


def resampled_means(items: Items, plan: Resampling, sets: Floats | None = None) -> Floats:
    """The mean of every slice in every bootstrap sample: draws × slices, NaN where a sample has none.

    With two levels, and with `sets` (0 or 1: slices of `items` × wider slices), those of the wider slices.
    """
    return _two_level(items, plan, sets) if plan.two_level else _one_level(items.sums, plan)


def _one_level(sums: Sums, plan: Resampling) -> Floats:
    """Whole groups are drawn."""
    unit, n_units = group_units(sums.n_groups, plan.seed)
    cell = unit[sums.group] * sums.n_slices + sums.slice_
    shape = (n_units, sums.n_slices)
    counts = summed(cell, sums.count, n_units * sums.n_slices).reshape(shape)
    totals = summed(cell, sums.total, n_units * sums.n_slices).reshape(shape)
    parts = [ratio(part @ totals, part @ counts) for part in weights(n_units, plan.draws, plan.seed)]
    return np.concatenate(parts)


def _two_level(items: Items, plan: Resampling, sets: Floats | None) -> Floats:
    """Groups are drawn, and within each as many of its items as it has, whichever slice they are in."""
    order = np.argsort(items.group, kind="stable")
    values, slices = items.values[order], items.slice_[order]
    n_slices = items.sums.n_slices
    parts = []
    for rows, row, place in item_picks(np.bincount(items.group), plan):
        cell = row * n_slices + slices[place]
        counts = np.bincount(cell, minlength=rows * n_slices).astype(np.float64).reshape(rows, n_slices)
        totals = summed(cell, values[place], rows * n_slices).reshape(rows, n_slices)
        parts.append(ratio(totals, counts) if sets is None else ratio(totals @ sets, counts @ sets))
    return np.concatenate(parts)


def item_picks(sizes: Ints, plan: Resampling) -> Iterator[tuple[int, Ints, Ints]]:
    """Two-level samples in chunks: how many samples, and per drawn item its sample and its place.

    Groups of the given sizes lie one after the other. Each sample draws as many groups as there are, and
    in each as many items as it has, both with replacement (Davison and Hinkley 1997, section 3.8).
    """
    starts = np.cumsum(sizes) - sizes
    rng = generator(plan.seed, "two-level bootstrap")
    step = max(1, _CHUNK // 4 // max(1, int(sizes.sum())))
    for start in range(0, plan.draws, step):
        rows = min(step, plan.draws - start)
        drawn = rng.integers(0, len(sizes), size=(rows, len(sizes)))
        drawn_sizes = sizes[drawn]
        each = drawn_sizes.ravel()
        within = rng.random(int(each.sum())) * np.repeat(each, each)
        place = within.astype(np.int64) + np.repeat(starts[drawn].ravel(), each)
        yield rows, np.repeat(np.arange(rows), drawn_sizes.sum(axis=1)), place


def ratio(totals: Floats, counts: Floats) -> Floats:
    """totals / counts, and NaN where there is no count.

    >>> ratio(np.array([1.0, 3.0, 0.0]), np.array([2, 4, 0])).tolist()
    [0.5, 0.75, nan]
    """
    means: Floats = np.divide(totals, counts, out=np.full(totals.shape, np.nan), where=counts > 0)
    return means

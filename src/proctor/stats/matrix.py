"""Several systems' values on the same items: sums per group and system, and their resampled means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.bootstrap import CHUNK, Resampling, group_units, item_picks, ratio, weights
from proctor.stats.clusters import Floats, Groups, Ints, Sums, cell_hash, finite, group_codes, splitmix64, summed

Matrix = Sequence[Sequence[float]] | NDArray[Any]


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
        n_groups=n_groups,
        n_slices=n_slices,
    )


def system_table(matrix: Matrix, groups: Groups, names: Sequence[str] | None = None) -> SystemTable:
    """Checks the values (an `InputError` names the system) and sums them up."""
    rows = [finite(row, f"system {names[number] if names else number}, value") for number, row in enumerate(matrix)]
    for number, row in enumerate(rows):
        if len(row) != len(groups):
            name = names[number] if names else number
            expected = f"{len(groups)}, one per item"
            raise InputError(None, f"system {name}", found=f"{len(row)} values", expected=expected)
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

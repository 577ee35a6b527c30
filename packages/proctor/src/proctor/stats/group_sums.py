"""Sums per group of several systems' values on the same items: sufficient statistics for clustered means, differences
and tests, so that institutions can share sums without sharing cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proctor.core import InputError
from proctor.stats.bootstrap import Estimate, Resampling
from proctor.stats.clusters import Floats, Groups, Ints, Sums, cell_hash
from proctor.stats.means import Matrix, check_bounds, estimates_of_sums, system_table
from proctor.stats.paired import Pair, PairSums, pairs_of_sums, wins


@dataclass(frozen=True, slots=True)
class GroupSums:
    """`counts` is the number of items of each group; `totals` (groups × systems) are the sums of values there.

    `products`, `above` and `below` are systems × systems, over all items: the sum of products of values, and the number
    of items on which the row's value is above, and below, the column's. Groups have no names.
    """

    counts: Floats
    totals: Floats
    products: Floats
    above: Ints
    below: Ints

    @classmethod
    def of(cls, matrix: Matrix, groups: Groups, bounds: tuple[float, float] | None = None) -> GroupSums:
        """The sums of `matrix` (systems × items); `groups` is the group of each item. Raises `InputError` for values
        that are not finite or out of bounds, and for unequal lengths.

        >>> sums = GroupSums.of([[1, 0, 1], [0, 0, 1]], ["a", "a", "b"])
        >>> sorted(zip(sums.counts.tolist(), sums.totals.tolist()))
        [(1.0, [1.0, 1.0]), (2.0, [1.0, 0.0])]
        """
        table = system_table(matrix, groups)
        for row in table.matrix:
            check_bounds(row, bounds)
        above, below = wins(table.matrix)
        totals = np.stack([_totals(row, table.codes()) for row in table.matrix], axis=1)
        return cls(table.counts, totals, table.matrix @ table.matrix.T, above, below)

    @classmethod
    def joined(cls, parts: Sequence[GroupSums]) -> GroupSums:
        """The pooled sums of several parts, which must have the same systems in the same order and no common group.
        Raises `InputError` without parts, and if numbers of systems differ."""
        systems = {part.totals.shape[1] for part in parts}
        if len(systems) != 1:
            found = " and ".join(map(str, sorted(systems))) or "no"
            raise InputError("parts", found=f"{found} systems", expected="the same in each")
        return cls(
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.totals for part in parts]),
            np.sum([part.products for part in parts], axis=0),
            np.sum([part.above for part in parts], axis=0),
            np.sum([part.below for part in parts], axis=0),
        )

    def means(self, plan: Resampling = Resampling()) -> list[Estimate]:
        """The mean of each system with the interval of `mean_interval`. Raises `InputError` for `two_level`, which
        needs the items."""
        if plan.two_level:
            raise InputError("two_level", found="True", expected="False: sums of groups have no items")
        estimates = []
        for number, total in enumerate(self.totals.T):
            order = np.argsort(cell_hash(np.zeros(len(total), dtype=np.int64), self.counts, total), kind="stable")
            positions = np.arange(len(total))
            squares = self.products[[number], number]
            sums = Sums(positions, np.zeros_like(positions), self.counts[order], total[order], squares, 1)
            estimates += estimates_of_sums(sums, plan)
        return estimates

    def pairs(self, plan: Resampling = Resampling()) -> list[Pair]:
        """The comparisons of all pairs of systems, as in `paired_differences`. Raises `InputError` for `two_level`."""
        if plan.two_level:
            raise InputError("two_level", found="True", expected="False: sums of groups have no items")
        return pairs_of_sums(PairSums(self.totals, self.counts, self.products, self.above, self.below), plan)


def _totals(values: Floats, codes: Ints) -> Floats:
    """The sum of each group, added in ascending order as for means of items, so that both are bitwise equal."""
    ordered = values[np.lexsort((values, codes))]
    return np.add.reduceat(ordered, np.flatnonzero(np.diff(codes, prepend=-1))) if len(codes) else np.zeros(0)

"""What several systems reached on the same items, summed up by group: enough for clustered means, differences and
tests, so that institutions can send sums and keep their cases."""

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
    """`counts` is the number of items of each group, `totals` (groups × systems) the sum of a system's values there.

    Over all items, for each two systems (systems × systems): `products` sums the products of their values, `above` and
    `below` count the items on which the first is above, and below, the second. Groups have no names.
    """

    counts: Floats
    totals: Floats
    products: Floats
    above: Ints
    below: Ints

    @classmethod
    def of(cls, matrix: Matrix, groups: Groups, bounds: tuple[float, float] | None = None) -> GroupSums:
        """The sums of `matrix` (systems × items), whose items have these `groups`. Raises `InputError` for values that
        are not finite or out of bounds, and for lengths that differ.

        >>> one = GroupSums.of([[1, 0, 1], [0, 0, 1]], ["a", "a", "b"])
        >>> sorted(zip(one.counts.tolist(), one.totals.tolist()))
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
        """The sums of all parts' items together. The parts have the same systems in the same order, and no group in
        common: what shares a group lies in one part. Raises `InputError` for none, and for other numbers of systems."""
        systems = {one.totals.shape[1] for one in parts}
        if len(systems) != 1:
            found = " and ".join(str(one) for one in sorted(systems)) or "no"
            raise InputError("parts", found=f"{found} systems", expected="the same in each")
        return cls(
            np.concatenate([one.counts for one in parts]),
            np.concatenate([one.totals for one in parts]),
            np.sum([one.products for one in parts], axis=0),
            np.sum([one.above for one in parts], axis=0),
            np.sum([one.below for one in parts], axis=0),
        )

    def means(self, plan: Resampling = Resampling()) -> list[Estimate]:
        """The mean of each system with its interval, as `mean_interval` gives it for the items. Raises `InputError` for
        two levels, which need the items."""
        if plan.two_level:
            raise InputError("two_level", found="True", expected="False: sums of groups have no items")
        found = []
        for number, total in enumerate(self.totals.T):
            order = np.argsort(cell_hash(np.zeros(len(total), dtype=np.int64), self.counts, total), kind="stable")
            places = np.arange(len(total))
            squares = self.products[[number], number]
            sums = Sums(places, np.zeros_like(places), self.counts[order], total[order], squares, 1)
            found += estimates_of_sums(sums, plan)
        return found

    def pairs(self, plan: Resampling = Resampling()) -> list[Pair]:
        """Every two systems compared, as `paired_differences` compares them on the items."""
        if plan.two_level:
            raise InputError("two_level", found="True", expected="False: sums of groups have no items")
        return pairs_of_sums(PairSums(self.totals, self.counts, self.products, self.above, self.below), plan)


def _totals(values: Floats, codes: Ints) -> Floats:
    """Each group's sum, added up in the order of the values, as the means of items do: the same to the last bit."""
    ordered = values[np.lexsort((values, codes))]
    return np.add.reduceat(ordered, np.flatnonzero(np.diff(codes, prepend=-1))) if len(codes) else np.zeros(0)

"""Items to sums per group and slice: all that a clustered mean, and any resample of it, needs.

Within each slice groups are put into a canonical order that is made from their contents there alone, so that the
weights a seed draws fall on the same groups whatever the groups are called, however the items are ordered, and
whatever other slices there are.
Groups with the same contents are exchangeable, so their order among themselves is of no consequence.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, count_of

_EXACT = 2.0**53  # whole numbers up to this add up without rounding

Floats = NDArray[np.float64]
"""An array of floats."""

Ints = NDArray[np.int64]
"""An array of whole numbers."""

Values = Sequence[float] | NDArray[Any]
"""One number per item."""

Groups = Sequence[Hashable] | NDArray[Any]
"""The group of each item: any hashable labels (but None and NaN), or whole numbers."""


_MOST_CELLS = 4  # an item, up to which it is faster to count them all than to sort the items


@dataclass(frozen=True, slots=True)
class Sums:
    """Count and total of each group in each slice where it has items (one entry per such cell).

    `slice_` and `group` number the cell, groups from 0 in each slice, in its canonical order; `squares` holds the
    sum of squared values per slice.
    """

    group: Ints
    slice_: Ints
    count: Floats
    total: Floats
    squares: Floats
    n_slices: int


@dataclass(frozen=True, slots=True)
class Items:
    """The items that belong to a slice, those of a cell together and sorted by value; `group` as in `Sums`."""

    values: Floats
    group: Ints
    slice_: Ints
    sums: Sums


def finite(values: Values, what: str = "value") -> Floats:
    """The values as a float array of one dimension; `InputError` names the first that is no number.

    >>> finite([1, 0])
    array([1., 0.])
    >>> finite([1.0, float("nan")], "score")
    Traceback (most recent call last):
    proctor.core.errors.InputError: score 1: found nan, expected a finite number
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{what}s", found=f"{array.ndim} dimensions", expected="one dimension")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        position = int(bad[0])
        raise InputError(f"{what} {position}", found=str(array[position]), expected="a finite number")
    return array


def group_codes(groups: Groups, n: int) -> Ints:
    """A number from 0 per item that says its group; the groups may carry any hashable labels.

    >>> group_codes(["v2", "v1", "v2"], 3)
    array([0, 1, 0])
    """
    if len(groups) != n:
        raise InputError("groups", found=count_of(len(groups), "label"), expected=f"{n}, one per item")
    if isinstance(groups, np.ndarray) and groups.dtype.kind in "iu":
        if n and groups.min() >= 0 and groups.max() < _MOST_CELLS * n:  # numbered already, perhaps with gaps
            return (np.cumsum(np.bincount(groups.astype(np.int64, copy=False)) > 0) - 1)[groups]
        return np.unique(groups, return_inverse=True)[1].astype(np.int64, copy=False).reshape(-1)
    labels = groups.tolist() if isinstance(groups, np.ndarray) else groups
    numbers: dict[Hashable, int] = {}
    codes = np.fromiter((numbers.setdefault(label, len(numbers)) for label in labels), np.int64, count=n)
    for label, number in numbers.items():
        if label is None or (isinstance(label, float) and math.isnan(label)):
            position = int(np.flatnonzero(codes == number)[0])
            raise InputError(f"group of item {position}", found=str(label), expected="a label")
    return codes


def linked(labels: Sequence[Iterable[Hashable]]) -> Ints:
    """A number from 0 per item that says its cluster: items that share a label belong together, and so do all that are
    linked through others. Clusters are numbered in the order of their first items.

    >>> linked([["video 1"], ["video 2", "patient 7"], ["video 3", "patient 7"], ["video 1"], []]).tolist()
    [0, 1, 1, 0, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    known: dict[Hashable, int] = {}
    pairs = [(item, known.setdefault(label, len(known))) for item, some in enumerate(labels) for label in some]
    size = len(labels) + len(known)
    rows, columns = [item for item, _ in pairs], [len(labels) + label for _, label in pairs]
    graph = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(size, size))
    found = connected_components(graph, directed=False)[1][: len(labels)]
    first = {int(code): place for place, code in reversed(list(enumerate(found)))}
    order = {code: number for number, code in enumerate(sorted(first, key=first.__getitem__))}
    return np.array([order[int(code)] for code in found], dtype=np.int64)


def tabulate(values: Floats, groups: Ints, slices: Ints, n_slices: int) -> Items:
    """Sorts the items of all slices and sums them up; items with slice −1 are left out."""
    values, key = _keyed(values, groups, slices, n_slices)
    order = np.lexsort((values, key))
    values, key = values[order], key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    count = np.diff(starts, append=len(key)).astype(np.float64)
    # Values within a cell and then cells are summed in sorted order, so that every sum is the same to
    # the last bit in any order of items.
    total = np.add.reduceat(values, starts) if len(starts) else np.zeros(0)
    squares = np.add.reduceat(values**2, starts) if len(starts) else np.zeros(0)
    contents = np.add.reduceat(_hashed(values), starts) if len(starts) else starts.astype(np.uint64)
    sums, own = _placed(key[starts], count, total, squares, contents, n_slices)
    of_item = np.repeat(np.arange(len(starts)), count.astype(np.int64))
    return Items(values, own[of_item], (key[starts] % n_slices)[of_item], sums)


def slice_sums(values: Floats, groups: Ints, slices: Ints, n_slices: int) -> Sums:
    """The sums of `tabulate`. Marks of 0 and 1 are counted, which gives the same to the last bit: whole numbers add up
    exactly in any order."""
    marks, key = _keyed(values, groups, slices, n_slices)
    ones, n_cells = marks == 1, int(key.max(initial=-1)) + 1
    if n_cells > _MOST_CELLS * len(key) or not np.all(ones | (marks == 0)):
        return tabulate(values, groups, slices, n_slices).sums
    count = np.bincount(key, minlength=n_cells)
    cell = np.flatnonzero(count)
    count, right = count[cell], np.bincount(key[ones], minlength=n_cells)[cell]
    wrong_hash, right_hash = _hashed(np.array([0.0, 1.0]))
    contents = (count - right).astype(np.uint64) * wrong_hash + right.astype(np.uint64) * right_hash
    total = right.astype(np.float64)
    return _placed(cell, count.astype(np.float64), total, total, contents, n_slices)[0]


def _keyed(values: Floats, groups: Ints, slices: Ints, n_slices: int) -> tuple[Floats, Ints]:
    """The values of the items that are in a slice, and the number of each one's cell."""
    if len(slices) != len(values):
        raise InputError("slices", found=count_of(len(slices), "code"), expected=f"{len(values)}")
    if slices.size and not -1 <= slices.min() <= slices.max() < n_slices:
        raise InputError(
            "slices", found=f"codes {slices.min()} to {slices.max()}", expected=f"0 to {n_slices - 1}, or -1 for none"
        )
    if slices.size and slices.min() < 0:
        inside = slices >= 0
        values, groups, slices = values[inside], groups[inside], slices[inside]
    return values, groups * n_slices + slices


def _placed(
    cell: Ints, count: Floats, total: Floats, squares: Floats, contents: NDArray[np.uint64], n_slices: int
) -> tuple[Sums, Ints]:
    """The sums of cells (ascending numbers) in the canonical order, and the place that each one's group has in its
    slice. Of each cell are known the number of its values, their sum, that of their squares and that of their hashes."""
    slice_ = cell % n_slices
    placed = np.lexsort((contents, cell_hash(np.zeros_like(slice_), count, total), slice_))
    in_order = slice_[placed]
    own = np.empty(len(cell), dtype=np.int64)
    own[placed] = np.arange(len(cell)) - np.searchsorted(in_order, in_order)
    sums = Sums(
        group=own[placed],
        slice_=in_order,
        count=count[placed],
        total=total[placed],
        squares=summed(in_order, squares[placed], n_slices),
        n_slices=n_slices,
    )
    return sums, own


def _hashed(values: Floats) -> NDArray[np.uint64]:
    return splitmix64((values + 0.0).view(np.uint64))  # + 0.0 makes −0 the same as 0


def summed(cell: Ints, values: Floats, n_cells: int) -> Floats:
    """The sum of the values of every cell.

    >>> summed(np.array([0, 2, 0]), np.array([1.0, 2.0, 3.0]), 3)
    array([4., 0., 2.])
    """
    return np.asarray(np.bincount(cell, values, minlength=n_cells), dtype=np.float64)


def ordered_sums(cell: Ints, values: Floats, n_cells: int) -> Floats:
    """The sum of the values of every cell, the same to the last bit in any order of items: they are added in ascending
    order, but for whole numbers, which have no rounding.

    >>> ordered_sums(np.array([0, 2, 0]), np.array([1.0, 2.5, 3.0]), 3)
    array([4. , 0. , 2.5])
    """
    if (values == np.rint(values)).all() and np.abs(values).sum() < _EXACT:
        return summed(cell, values, n_cells)
    placed = np.lexsort((values, cell))
    return summed(cell[placed], values[placed], n_cells)


def cell_hash(slice_: Ints, count: Floats, total: Floats) -> NDArray[np.uint64]:
    """64 bits per cell; a group's hash is their sum, whatever their order."""
    bits = splitmix64(slice_.astype(np.uint64))
    for part in (count, total):
        bits = splitmix64(bits ^ (part + 0.0).view(np.uint64))  # + 0.0 makes −0 the same as 0
    return bits


def splitmix64(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit touches every other."""
    bits = (bits + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))

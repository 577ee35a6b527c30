"""Sums per group and slice: the sufficient statistics of a clustered mean and of its resamples.

Within each slice groups have a canonical order, which depends only on their contents. So the weights drawn from a seed
apply to the same groups whatever their names, the order of items and the other slices. Groups with equal contents are
exchangeable.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, count_of

_EXACT = 2.0**53  # integers up to this add up without rounding errors

Floats = NDArray[np.float64]
"""An array of floats."""

Ints = NDArray[np.int64]
"""An array of whole numbers."""

Values = Sequence[float] | NDArray[Any]
"""One number per item."""

Groups = Sequence[Hashable] | NDArray[Any]
"""The group of each item: hashable labels (not None or NaN), or integers."""


_MAX_CELLS = 4  # cells per item up to which counting all cells is faster than sorting the items


@dataclass(frozen=True, slots=True)
class Sums:
    """Count and total of each cell, that is, of each group in each slice where it has items.

    `slice_` and `group` identify the cell; groups are numbered from 0 in each slice, in canonical order. `squares` is
    the sum of squared values per slice.
    """

    group: Ints
    slice_: Ints
    count: Floats
    total: Floats
    squares: Floats
    n_slices: int


@dataclass(frozen=True, slots=True)
class Items:
    """The items that are in a slice, ordered by cell and value; `group` as in `Sums`."""

    values: Floats
    group: Ints
    slice_: Ints
    sums: Sums


def finite(values: Values, what: str = "value") -> Floats:
    """The values as a one-dimensional float array. Raises `InputError` with the first value that is not finite.

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
    """The groups of the items as integers from 0. Raises `InputError` for a missing label and unequal lengths.

    >>> group_codes(["v2", "v1", "v2"], 3)
    array([0, 1, 0])
    """
    if len(groups) != n:
        raise InputError("groups", found=count_of(len(groups), "label"), expected=f"{n}, one per item")
    if isinstance(groups, np.ndarray) and groups.dtype.kind in "iu":
        if n and groups.min() >= 0 and groups.max() < _MAX_CELLS * n:  # already numbered, perhaps with gaps
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
    """The cluster of each item as an integer from 0: items are in one cluster if they share a label, directly or
    through other items. Clusters are numbered in the order of their first items.

    >>> linked([["video 1"], ["video 2", "patient 7"], ["video 3", "patient 7"], ["video 1"], []]).tolist()
    [0, 1, 1, 0, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    known: dict[Hashable, int] = {}
    pairs = [(item, known.setdefault(label, len(known))) for item, own in enumerate(labels) for label in own]
    size = len(labels) + len(known)
    rows, columns = [item for item, _ in pairs], [len(labels) + label for _, label in pairs]
    graph = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(size, size))
    components = connected_components(graph, directed=False)[1][: len(labels)].tolist()
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(code, len(numbers)) for code in components], dtype=np.int64)


def tabulate(values: Floats, groups: Ints, slices: Ints, n_slices: int) -> Items:
    """Sort the items of all slices and sum them up; items with slice −1 are excluded."""
    values, key = _keyed(values, groups, slices, n_slices)
    order = np.lexsort((values, key))
    values, key = values[order], key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    count = np.diff(starts, append=len(key)).astype(np.float64)
    # Values are summed in sorted order, so that every sum is bitwise equal for any order of items.
    total = np.add.reduceat(values, starts) if len(starts) else np.zeros(0)
    squares = np.add.reduceat(values**2, starts) if len(starts) else np.zeros(0)
    contents = np.add.reduceat(_hashed(values), starts) if len(starts) else starts.astype(np.uint64)
    sums, own = _positioned(key[starts], count, total, squares, contents, n_slices)
    of_item = np.repeat(np.arange(len(starts)), count.astype(np.int64))
    return Items(values, own[of_item], (key[starts] % n_slices)[of_item], sums)


def slice_sums(values: Floats, groups: Ints, slices: Ints, n_slices: int) -> Sums:
    """The sums of `tabulate`. Values of 0 and 1 are counted, which is faster and gives bitwise equal sums, since
    integers add up exactly in any order."""
    scores, key = _keyed(values, groups, slices, n_slices)
    ones, n_cells = scores == 1, int(key.max(initial=-1)) + 1
    if n_cells > _MAX_CELLS * len(key) or not np.all(ones | (scores == 0)):
        return tabulate(values, groups, slices, n_slices).sums
    count = np.bincount(key, minlength=n_cells)
    cell = np.flatnonzero(count)
    count, right = count[cell], np.bincount(key[ones], minlength=n_cells)[cell]
    wrong_hash, right_hash = _hashed(np.array([0.0, 1.0]))
    contents = (count - right).astype(np.uint64) * wrong_hash + right.astype(np.uint64) * right_hash
    total = right.astype(np.float64)
    return _positioned(cell, count.astype(np.float64), total, total, contents, n_slices)[0]


def _keyed(values: Floats, groups: Ints, slices: Ints, n_slices: int) -> tuple[Floats, Ints]:
    """The values of the items that are in a slice, and their cells."""
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


def _positioned(
    cell: Ints, count: Floats, total: Floats, squares: Floats, contents: NDArray[np.uint64], n_slices: int
) -> tuple[Sums, Ints]:
    """The sums of cells (ascending) in canonical order, and the position of each cell's group in its slice. The
    arguments are, per cell, the number of values, and the sums of values, of squares and of hashes."""
    slice_ = cell % n_slices
    positioned = np.lexsort((contents, cell_hash(np.zeros_like(slice_), count, total), slice_))
    in_order = slice_[positioned]
    own = np.empty(len(cell), dtype=np.int64)
    own[positioned] = np.arange(len(cell)) - np.searchsorted(in_order, in_order)
    sums = Sums(
        group=own[positioned],
        slice_=in_order,
        count=count[positioned],
        total=total[positioned],
        squares=summed(in_order, squares[positioned], n_slices),
        n_slices=n_slices,
    )
    return sums, own


def _hashed(values: Floats) -> NDArray[np.uint64]:
    return splitmix64((values + 0.0).view(np.uint64))  # + 0.0 makes −0 the same as 0


def summed(cell: Ints, values: Floats, n_cells: int) -> Floats:
    """The sum of the values of each cell.

    >>> summed(np.array([0, 2, 0]), np.array([1.0, 2.0, 3.0]), 3)
    array([4., 0., 2.])
    """
    return np.asarray(np.bincount(cell, values, minlength=n_cells), dtype=np.float64)


def ordered_sums(cell: Ints, values: Floats, n_cells: int) -> Floats:
    """The sum of the values of each cell, bitwise equal for any order of items: values are added in ascending order,
    except integers, whose sums are exact.

    >>> ordered_sums(np.array([0, 2, 0]), np.array([1.0, 2.5, 3.0]), 3)
    array([4. , 0. , 2.5])
    """
    if (values == np.rint(values)).all() and np.abs(values).sum() < _EXACT:
        return summed(cell, values, n_cells)
    positioned = np.lexsort((values, cell))
    return summed(cell[positioned], values[positioned], n_cells)


def cell_hash(slice_: Ints, count: Floats, total: Floats) -> NDArray[np.uint64]:
    """A 64-bit hash of each cell; the hash of a group is the sum of its cells' hashes."""
    bits = splitmix64(slice_.astype(np.uint64))
    for part in (count, total):
        bits = splitmix64(bits ^ (part + 0.0).view(np.uint64))  # + 0.0 makes −0 the same as 0
    return bits


def splitmix64(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014), which mixes the bits of each number."""
    bits = (bits + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def contents_orders(totals: Floats, counts: Floats) -> tuple[Ints, Ints]:
    """Orders of groups and of systems that depend on their contents only, not on names or positions.

    Groups and systems are hashed by their cells, and cells by their groups: two rounds of the colour refinement of
    Weisfeiler and Leman (1968).
    """
    cells = np.zeros(totals.shape[1:], dtype=np.uint64)
    for bucket, (sums, sizes) in enumerate(zip(totals, counts, strict=True)):
        cells = splitmix64(cells ^ (sums + 0.0).view(np.uint64) ^ np.uint64(bucket))
        cells = splitmix64(cells ^ (sizes + 0.0).view(np.uint64))
    by_system = np.zeros(totals.shape[2], dtype=np.uint64)
    by_group = np.zeros(totals.shape[1], dtype=np.uint64)
    for _ in range(2):
        by_group = splitmix64(cells ^ by_system).sum(axis=1, dtype=np.uint64)
        by_system = splitmix64(cells ^ by_group[:, None]).sum(axis=0, dtype=np.uint64)
    return np.argsort(by_group, kind="stable"), np.argsort(by_system, kind="stable")

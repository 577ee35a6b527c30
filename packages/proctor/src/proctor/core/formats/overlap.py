"""Overlap (intersection over union) and one-to-one matching of intervals and boxes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

Extent = Sequence[float]
"""The lower ends on all axes, then the upper ends: (start, end) in time, (left, top, right, bottom) in a picture."""

MOST_NAMED = 30
"""The maximum number of intervals or boxes in an answer."""


def iou(a: Extent, b: Extent) -> float:
    """The intersection over union, 0 to 1, on any number of axes; 0 if both are empty.

    >>> iou((0, 10), (5, 15)), iou((0, 0, 2, 2), (1, 1, 3, 3))
    (0.3333333333333333, 0.14285714285714285)
    """
    axes = len(a) // 2
    common, first, second = 1.0, 1.0, 1.0
    for axis in range(axes):
        low, high = max(a[axis], b[axis]), min(a[axes + axis], b[axes + axis])
        common *= max(0.0, high - low)
        first *= a[axes + axis] - a[axis]
        second *= b[axes + axis] - b[axis]
    union = first + second - common
    return common / union if union > 0 else 0.0


def matching(reference: Sequence[Extent], prediction: Sequence[Extent], least: float) -> int:
    """The size of a maximum one-to-one matching of pairs with an overlap of at least `least` (Kuhn 1955, Naval Research
    Logistics Quarterly 2:83).

    >>> matching([(0, 10), (20, 30)], [(21, 30), (0, 4)], 0.5)
    1
    """
    near = [[position for position, box in enumerate(prediction) if iou(key, box) >= least] for key in reference]
    taken: dict[int, int] = {}

    def located(row: int, seen: set[int]) -> bool:
        for position in near[row]:
            if position not in seen:
                seen.add(position)
                if position not in taken or located(taken[position], seen):
                    taken[position] = row
                    return True
        return False

    return sum(located(row, set()) for row in range(len(reference)))


def covered(reference: Sequence[Extent], prediction: Sequence[Extent]) -> float:
    """The intersection over union of the lengths (or areas) covered by two lists of intervals (or boxes), 0 to 1.
    Regions that a list covers twice count once.

    >>> covered([(0, 10)], [(0, 4), (2, 5)]), covered([(0, 0, 2, 2)], [(1, 0, 2, 2)])
    (0.5, 0.5)
    """
    both = either = 0.0
    for cell in _cells([*reference, *prediction]):
        size, hit, named = _size(cell), _inside(cell, reference), _inside(cell, prediction)
        both += size * (hit and named)
        either += size * (hit or named)
    return both / either if either > 0 else 0.0


def best(keys: Sequence[Sequence[Extent]], measure: Callable[[Sequence[Extent]], float]) -> float:
    """The maximum of a measure over the accepted lists.

    >>> best([[(0, 1)], [(0, 2)]], lambda key: key[0][1])
    2
    """
    return max(measure(key) for key in keys)


def _cells(extents: Sequence[Extent]) -> list[Extent]:
    """The grid spanned by all ends."""
    axes = len(extents[0]) // 2 if extents else 0
    cells: list[tuple[tuple[float, ...], tuple[float, ...]]] = [((), ())] if axes else []
    for axis in range(axes):
        ends = sorted({extent[position] for extent in extents for position in (axis, axes + axis)})
        cells = [((*low, a), (*high, b)) for low, high in cells for a, b in itertools.pairwise(ends)]
    return [(*low, *high) for low, high in cells]


def _size(cell: Extent) -> float:
    axes = len(cell) // 2
    size = 1.0
    for axis in range(axes):
        size *= cell[axes + axis] - cell[axis]
    return size


def _inside(cell: Extent, extents: Sequence[Extent]) -> bool:
    axes = len(cell) // 2
    return any(
        all(extent[axis] <= cell[axis] and cell[axes + axis] <= extent[axes + axis] for axis in range(axes))
        for extent in extents
    )

"""How two markings of the same items go together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError


def cross_table(
    a_labels: Sequence[Hashable], b_labels: Sequence[Hashable], levels: Sequence[Hashable]
) -> NDArray[np.int64]:
    """Counts of every pair of labels: rows are a's levels, columns b's, in the order of `levels`.

    Labels are paired by position. Raises `InputError` for lengths that differ, a level given twice, and
    a label that is no level.

    >>> cross_table([1, 1, 0], [1, 0, 0], levels=[1, 0]).tolist()
    [[1, 1], [0, 1]]
    """
    if len(a_labels) != len(b_labels):
        raise InputError(None, "labels", found=f"{len(a_labels)} and {len(b_labels)}", expected="pairs")
    place = {level: number for number, level in enumerate(levels)}
    if len(place) != len(levels):
        raise InputError(None, "levels", found=str(list(levels)), expected="each level once")
    table = np.zeros((len(levels), len(levels)), dtype=np.int64)
    for number, pair in enumerate(zip(a_labels, b_labels, strict=True)):
        for label in pair:
            if label not in place:
                expected = "one of " + ", ".join(str(level) for level in levels)
                raise InputError(None, f"label of item {number}", found=repr(label), expected=expected)
        table[place[pair[0]], place[pair[1]]] += 1
    return table

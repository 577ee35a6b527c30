"""p values that hold for many comparisons at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats, finite


def holm(p_values: Sequence[float] | NDArray[Any]) -> Floats:
    """Holm's step-down adjusted p values (Holm 1979, Scandinavian Journal of Statistics 6:65), in order.

    In ascending order, adjusted p of rank i of m is the greatest (m − j + 1) · p of the ranks j ≤ i, at
    most 1. Rejecting those up to α keeps the chance of any false rejection at α, however they depend.
    Raises `InputError` for a p outside 0 to 1.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    >>> holm([]).tolist()
    []
    """
    p = finite(p_values, "p value")
    wrong = np.flatnonzero((p < 0) | (p > 1))
    if wrong.size:
        place = int(wrong[0])
        raise InputError(None, f"p value {place}", found=f"{p[place]:g}", expected="a number from 0 to 1")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted

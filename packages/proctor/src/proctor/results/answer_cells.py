"""Two runs crossed: the items that both have right, only one, or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, one_of

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Cells:
    """Two columns crossed, as masks of items: both right, only the first, only the second, neither; and the items that
    one of them lacks."""

    both: Mask
    only_a: Mask
    only_b: Mask
    neither: Mask
    lacking: Mask

    def named(self, name: str) -> Mask:
        """A cell by its name (`CELLS`). Raises `InputError` for another one."""
        if name not in CELLS:
            raise InputError("cell", found=repr(name), expected=one_of(CELLS, name))
        mask: Mask = getattr(self, name.replace("-", "_"))
        return mask


CELLS = ("only-a", "only-b", "both", "neither", "lacking")
"""The cells of two systems crossed, those that tell them apart first."""

"""Facets of items: the slices that their values make, and which facet a typed name means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, natural, one_of
from proctor.results.arrays import ItemTable, Mask, load_items
from proctor.runs import BenchmarkCard, Store


@dataclass(frozen=True)
class FacetSlices:
    """Combinations of facet values (slices), and the (item, slice) pairs; an item may be in several slices."""

    facets: list[dict[str, str]]
    items: NDArray[np.int64]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, items: ItemTable, by: Sequence[str], shown: str) -> FacetSlices:
        by = tuple(dict.fromkeys(by))
        known = items.facet_names()
        for name in by:
            if name not in known:
                raise InputError(shown, found=f"no facet {name!r}", expected=one_of(known, name))
        columns = [items.coded_facet(name) for name in by]
        alike = np.zeros(len(items), dtype=np.int64)
        for codes, values in columns:  # recoded at each step, so that the numbers stay small
            alike = np.unique(alike * len(values) + codes, return_inverse=True)[1]
        _, first, alike = np.unique(alike, return_index=True, return_inverse=True)
        cells = [list(product(*(values[codes[item]] for codes, values in columns))) for item in first]
        names = sorted({cell for some in cells for cell in some}, key=_cell_order)
        position = {cell: code for code, cell in enumerate(names)}
        members = np.split(np.argsort(alike, kind="stable"), np.cumsum(np.bincount(alike))[:-1])
        pairs = [(members[number], position[cell]) for number, some in enumerate(cells) for cell in some]
        return cls(
            facets=[dict(zip(by, cell, strict=True)) for cell in names],
            items=np.concatenate([np.zeros(0, dtype=np.int64), *(where for where, _ in pairs)]),
            codes=np.repeat(np.array([code for _, code in pairs], dtype=np.int64), [len(where) for where, _ in pairs]),
        )

    def outside(self, items: int) -> int:
        """How many of all items are in no slice: they have no value of a facet."""
        return items - len(np.unique(self.items))

    def count(self, mask: Mask) -> NDArray[np.int64]:
        """The number of items of each slice in a mask over items."""
        return np.bincount(self.codes[mask[self.items]], minlength=len(self.facets))


def named_facets(
    store: Store, card: BenchmarkCard, names: Sequence[str], *, all_items: bool = False
) -> tuple[str, ...]:
    """The facets that are meant: each by its own name, or by one that differs from it in case, blanks and underscores
    only. Unknown names stay as they are."""
    return facets_meant(load_items(store, card, all_items=all_items).facet_names(), names) if names else ()


def facets_meant(known: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """`named_facets` of known names.

    >>> facets_meant(["Topic", "question_type"], ["topic", "Question type", "other"])
    ('Topic', 'question_type', 'other')
    """
    alike: dict[str, list[str]] = {}
    for name in known:
        alike.setdefault(_plain(name), []).append(name)
    meant = (name if name in known else alike.get(_plain(name), []) for name in names)
    return tuple(
        one if isinstance(one, str) else one[0] if len(one) == 1 else name
        for one, name in zip(meant, names, strict=True)
    )


def _plain(name: str) -> str:
    return name.casefold().replace("_", " ")


def facet_cells(items: ItemTable, by: Sequence[str], shown: str) -> list[tuple[dict[str, str], Mask]]:
    """Each combination of the facets' values, in natural order, with a mask of its items."""
    slices = FacetSlices.of(items, by, shown)
    cells = []
    for code, facets in enumerate(slices.facets):
        mask = np.zeros(len(items), dtype=np.bool_)
        mask[slices.items[slices.codes == code]] = True
        cells.append((facets, mask))
    return cells


def _cell_order(cell: tuple[str, ...]) -> tuple[list[list[tuple[int, float, str]]], tuple[str, ...]]:
    """The natural order of each value, then the text."""
    return [natural(value) for value in cell], cell

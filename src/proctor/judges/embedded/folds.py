"""Folds that part no encounter, each dataset spread evenly over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, generator

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """What decides the folds of answers: the encounter and the dataset of each row."""

    groups: tuple[str, ...]
    datasets: tuple[str, ...]

    def part(self, rows: Sequence[int] | Rows) -> Split:
        """That of some rows."""
        return Split(tuple(self.groups[k] for k in rows), tuple(self.datasets[k] for k in rows))


def fold_numbers(split: Split, count: int, seed: int, name: str, *, grouped: bool = True) -> Rows:
    """The fold of each row, 0 to `count` − 1. All rows of an encounter are in one fold, whatever the order
    of the rows; not `grouped`, every row is dealt out by itself.

    Raises `InputError` for fewer encounters than folds.

    >>> fold_numbers(Split(("a", "a", "b", "c"), ("d",) * 4), 3, 0, "example")[:2].tolist()
    [1, 1]
    """
    units = split.groups if grouped else tuple(f"{one}#{k}" for k, one in enumerate(split.groups))
    dataset = dict(zip(units, split.datasets, strict=True))
    if len(dataset) < count:
        raise InputError(
            None,
            "ratings",
            found=f"answers to {len(dataset)} encounters",
            expected=f"{count} or more, one for each fold",
        )
    fold: dict[str, int] = {}
    for one in sorted(set(dataset.values())):
        inside = sorted(unit for unit in dataset if dataset[unit] == one)
        for k in generator(seed, "embedded-judge", "folds", name, one).permutation(len(inside)):
            fold[inside[k]] = len(fold) % count
    return np.array([fold[unit] for unit in units], dtype=np.int64)


def folds(split: Split, count: int, seed: int, name: str, *, grouped: bool = True) -> Iterator[tuple[Rows, Rows]]:
    """For each fold the rows outside it, to learn from, and those in it (see `fold_numbers`)."""
    number = fold_numbers(split, count, seed, name, grouped=grouped)
    for k in range(count):
        yield np.flatnonzero(number != k), np.flatnonzero(number == k)


def parted(split: Split, number: Rows) -> int:
    """How many encounters have answers in several folds.

    >>> parted(Split(("a", "a", "b"), ("d",) * 3), np.array([0, 1, 1]))
    1
    """
    seen: dict[str, set[int]] = {}
    for group, one in zip(split.groups, number.tolist(), strict=True):
        seen.setdefault(group, set()).add(one)
    return sum(len(one) > 1 for one in seen.values())

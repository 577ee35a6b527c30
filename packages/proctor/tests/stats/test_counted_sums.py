"""The quick ways to sums and draws give the same as the plain ones, to the last bit."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.core import generator
from proctor.stats.bootstrap import CHUNK, weights
from proctor.stats.clusters import Floats, Sums, group_codes, slice_sums, tabulate


def alike(one: Sums, other: Sums) -> bool:
    return all(
        np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype
        for a, b in zip(astuple(one), astuple(other), strict=True)
    )


@pytest.mark.parametrize("seed", range(60))
def test_marks_are_counted_as_they_are_summed(seed: int) -> None:
    rng = generator(seed, "counted sums")
    n, n_slices = int(rng.integers(0, 400)), int(rng.integers(1, 5))
    values = rng.choice([[0.0, 1.0], [-0.0, 1.0], [0.0, -0.0], [1.0], [0.0, 0.5, 1.0]][seed % 5], n)
    groups = rng.integers(0, rng.integers(1, 60), n) * int(rng.integers(1, 40))
    slices = rng.integers(-1, n_slices, n)
    assert alike(slice_sums(values, groups, slices, n_slices), tabulate(values, groups, slices, n_slices).sums)


def test_the_order_of_items_and_the_names_of_groups_are_of_no_consequence() -> None:
    rng = generator(0, "counted sums")
    values, groups, slices = rng.integers(0, 2, 300).astype(float), rng.integers(0, 40, 300), rng.integers(0, 3, 300)
    order, names = rng.permutation(300), rng.permutation(40)
    other = slice_sums(values[order], names[groups][order], slices[order], 3)
    assert alike(slice_sums(values, groups, slices, 3), other)


@pytest.mark.parametrize(
    "groups",
    [
        np.zeros(0, dtype=np.int64),
        np.array([5, 3, 5, 9]),
        np.array([5, 3, 5, 3], dtype=np.uint8),
        np.array([-1, 3, -1]),
        np.array([10**12, 0, 10**12]),
        np.array([2**64 - 1, 7, 7], dtype=np.uint64),
    ],
)
def test_groups_are_numbered_by_their_size(groups: NDArray[np.int64]) -> None:
    found = group_codes(groups, len(groups))
    assert found.tolist() == np.unique(groups, return_inverse=True)[1].tolist()
    assert found.dtype == np.int64


@pytest.mark.parametrize(("n_units", "draws"), [(1, 5), (3, 100), (101, 333), (2047, 40), (2048, 2000)])
def test_samples_are_those_of_one_draw(n_units: int, draws: int) -> None:
    rng, parts = generator(7, "clustered bootstrap"), list[Floats]()
    for start in range(0, draws, CHUNK // n_units):
        drawn = rng.integers(0, n_units, size=(min(CHUNK // n_units, draws - start), n_units))
        parts.append(np.stack([np.bincount(row, minlength=n_units) for row in drawn]).astype(np.float64))
    found = list(weights(n_units, draws, 7))
    assert [one.shape for one in found] == [one.shape for one in parts]
    assert all(np.array_equal(one, other) for one, other in zip(found, parts, strict=True))

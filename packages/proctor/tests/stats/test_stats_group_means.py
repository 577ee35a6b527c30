"""Means of groups' means: by hand, and their two-level bootstrap against drawing item by item."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import Resampling, group_mean_slices

RNG = np.random.default_rng(1)
VIDEOS = RNG.integers(0, 8, 200)
RIGHT = (RNG.random(200) < 0.3 + 0.05 * VIDEOS).astype(float)
ALL = np.ones((200, 1), dtype=bool)


def test_every_group_counts_alike() -> None:
    inside = np.array([[True, True], [True, False], [True, True], [False, True]])
    found = group_mean_slices([1, 0, 0, 1], ["a", "a", "b", "c"], inside)
    assert [(one.value, one.n, one.groups) for one in found] == [(0.25, 3, 2), (2 / 3, 3, 3)]


def test_edges() -> None:
    empty = group_mean_slices([1.0], ["a"], np.zeros((1, 2), dtype=bool))
    assert [(one.value, one.ci_low, one.n) for one in empty] == [(None, None, 0)] * 2
    single = group_mean_slices([1.0, 0.0], ["a", "a"], np.ones((2, 1), dtype=bool))
    assert (single[0].value, single[0].ci_low, single[0].groups) == (0.5, None, 1)
    with pytest.raises(InputError, match="two_level: found True, expected False for means of groups"):
        group_mean_slices([0, 1], ["a", "b"], np.ones((2, 1), dtype=bool), Resampling(two_level=True))
    with pytest.raises(InputError, match=r"inside: found \(1, 1\), expected 2 items × slices"):
        group_mean_slices([0, 1], ["a", "b"], np.ones((1, 1), dtype=bool))

"""Means of groups' means: by hand, and their two-level bootstrap against drawing item by item."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import group_mean_slices

RNG = np.random.default_rng(1)
VIDEOS = RNG.integers(0, 8, 200)
RIGHT = (RNG.random(200) < 0.3 + 0.05 * VIDEOS).astype(float)
ALL = np.ones((200, 1), dtype=bool)


def test_every_group_counts_alike() -> None:
    inside = np.array([[True, True], [True, False], [True, True], [False, True]])
    found = group_mean_slices([1, 0, 0, 1], ["a", "a", "b", "c"], inside)
    assert [(one.value, one.n, one.groups) for one in found] == [(0.25, 3, 2), (2 / 3, 3, 3)]


def test_two_levels_are_what_drawing_item_by_item_gives() -> None:
    rng, means = np.random.default_rng(5), []
    videos = [RIGHT[number == VIDEOS] for number in range(8)]
    for _ in range(4000):
        drawn = [videos[number] for number in rng.integers(0, 8, 8)]
        means.append(np.mean([video[rng.integers(0, len(video), len(video))].mean() for video in drawn]))
    one = group_mean_slices(RIGHT, VIDEOS, ALL, two_level=True, method="percentile", draws=4000)[0]
    low, high = np.quantile(means, (0.025, 0.975))
    assert one.ci_low == pytest.approx(low, abs=0.008)
    assert one.ci_high == pytest.approx(high, abs=0.008)


def test_one_level_is_narrower_than_two() -> None:
    one = group_mean_slices(RIGHT, VIDEOS, ALL, method="percentile")[0]
    two = group_mean_slices(RIGHT, VIDEOS, ALL, two_level=True, method="percentile")[0]
    assert one.value == pytest.approx(two.value)
    assert one.ci_low is not None
    assert two.ci_low is not None
    assert two.ci_low < one.ci_low


def test_edges() -> None:
    empty = group_mean_slices([1.0], ["a"], np.zeros((1, 2), dtype=bool))
    assert [(one.value, one.ci_low, one.n) for one in empty] == [(None, None, 0)] * 2
    single = group_mean_slices([1.0, 0.0], ["a", "a"], np.ones((2, 1), dtype=bool), two_level=True, method="percentile")
    assert (single[0].value, single[0].ci_low, single[0].groups) == (0.5, None, 1)
    with pytest.raises(InputError, match="values: found others, expected 0 or 1 with two levels"):
        group_mean_slices([0.5, 1], ["a", "b"], np.ones((2, 1), dtype=bool), two_level=True, method="percentile")
    with pytest.raises(InputError, match="method: found 'bca', expected 'percentile' with two levels"):
        group_mean_slices([0, 1], ["a", "b"], np.ones((2, 1), dtype=bool), two_level=True)
    with pytest.raises(InputError, match=r"inside: found \(1, 1\), expected 2 items × slices"):
        group_mean_slices([0, 1], ["a", "b"], np.ones((1, 1), dtype=bool))

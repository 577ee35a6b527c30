"""Sums of groups from several sites give what their items together would give."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import Estimate, GroupSums, Resampling, mean_interval, paired_differences


def near(one: Estimate, other: Estimate) -> None:
    assert (one.n, one.groups) == (other.n, other.groups)
    for name in ("value", "ci_low", "ci_high"):
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None), name
        if first is not None:
            assert first == pytest.approx(second, abs=1e-12)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), None])
@pytest.mark.parametrize("seed", range(12))
def test_sites_that_send_sums_get_the_pooled_figures(seed: int, bounds: tuple[float, float] | None) -> None:
    rng = np.random.default_rng(seed)
    systems, groups = int(rng.integers(2, 5)), int(rng.integers(1, 40))
    sizes = rng.integers(1, 9, groups)
    group = np.repeat(np.arange(groups), sizes)
    marks = [0.0, 1.0] if seed % 3 == 0 else [0.0, 0.3, 0.7, 1.0]
    matrix = rng.choice(
        marks, (systems, len(group)), p=None if seed % 2 else [0.9, *([0.1 / (len(marks) - 1)] * (len(marks) - 1))]
    )
    if seed == 5:
        matrix[1] = matrix[0]
    site = rng.integers(0, 3, groups)[group]
    parts = [GroupSums.of(matrix[:, site == k], group[site == k], bounds) for k in range(3)]
    joined = GroupSums.joined(parts)
    plan = Resampling(draws=300, seed=seed, bounds=bounds)
    for row, found in zip(matrix, joined.means(plan), strict=True):
        near(found, mean_interval(row, group, plan))
    for pair, pooled in zip(joined.pairs(plan), paired_differences(matrix, group, plan), strict=True):
        one, other = pair.difference, pooled.difference
        near(
            Estimate(one.value, one.ci_low, one.ci_high, one.n, one.groups),
            Estimate(other.value, other.ci_low, other.ci_high, other.n, other.groups),
        )
        assert (one.wins, one.losses, one.ties) == (other.wins, other.losses, other.ties)
        assert one.p == pytest.approx(other.p, abs=1e-12)
        assert pair.p_holm == pytest.approx(pooled.p_holm, abs=1e-12)


def test_very_many_groups_are_bundled_alike() -> None:
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(3000), 2)
    matrix = rng.integers(0, 2, (2, len(group))).astype(np.float64)
    half = group < 1300
    joined = GroupSums.joined([GroupSums.of(matrix[:, one], group[one]) for one in (half, ~half)])
    plan = Resampling(draws=100)
    near(joined.means(plan)[0], mean_interval(matrix[0], group, plan))


def test_other_systems_two_levels_and_values_out_of_bounds_are_refused() -> None:
    one, two = GroupSums.of([[1.0, 0.0]], ["a", "b"]), GroupSums.of([[1.0], [0.0]], ["a"])
    with pytest.raises(InputError, match="1 and 2 systems"):
        GroupSums.joined([one, two])
    with pytest.raises(InputError, match="sums of groups have no items"):
        one.means(Resampling(two_level=True))
    with pytest.raises(InputError, match="a number from 0 to 1"):
        GroupSums.of([[2.0]], ["a"], (0.0, 1.0))

"""Ranks under many readings of values in doubt are those that `rank_systems` gives for each of them."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import RankReadings, Resampling, rank_systems


@pytest.mark.parametrize("seed", range(12))
def test_every_reading_is_ranked_as_if_it_were_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_items, n_groups = int(rng.integers(2, 9)), int(rng.integers(1, 90)), int(rng.integers(1, 16))
    skill = rng.uniform(0.1, 0.9, n_rows)[:, None]
    rows = rng.random((n_rows, n_items)) < skill if seed % 2 else rng.random((n_rows, n_items)) ** (1 / skill)
    groups = rng.integers(0, n_groups, n_items)
    better = bool(seed % 3)
    readings = RankReadings(rows.astype(float), groups, higher_is_better=better)
    for _ in range(6):
        chosen = rng.permutation(n_rows)[: rng.integers(1, n_rows + 1)].tolist()
        names = [f"s{number}" for number in range(len(chosen))]
        whole = rank_systems(
            rows[chosen].astype(float), names, groups, higher_is_better=better, plan=Resampling(draws=50)
        )
        assert readings.of(chosen) == [rank for _, rank in sorted((one.name, one.rank) for one in whole)]


def test_no_items_and_no_systems() -> None:
    assert RankReadings([[], []], []).of([0, 1]) == [1, 1]
    assert RankReadings([[1.0]], ["a"]).of([]) == []


def test_a_value_that_is_no_number() -> None:
    with pytest.raises(InputError, match="value 1: found inf, expected a finite number"):
        RankReadings([[0.0, float("inf")]], ["a", "b"])

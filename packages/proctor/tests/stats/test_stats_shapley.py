"""Shapley values: by hand, against all orders, and their axioms on random games."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import shapley_values


def over_all_orders(values: np.ndarray, players: int) -> list[float]:
    sums = [0.0] * players
    orders = list(permutations(range(players)))
    for order in orders:
        subset = 0
        for player in order:
            sums[player] += float(values[subset | 1 << player] - values[subset])
            subset |= 1 << player
    return [total / len(orders) for total in sums]


def test_gloves_by_hand() -> None:
    """One left glove and two right ones, of which a pair is worth 1: 2/3, 1/6 and 1/6 (players: left, right, right)."""
    worth = np.array([0, 0, 0, 1, 0, 1, 0, 1], dtype=float)
    assert shapley_values(worth) == pytest.approx([2 / 3, 1 / 6, 1 / 6], abs=1e-15)


@pytest.mark.parametrize("players", range(7))
def test_values_are_means_over_all_orders(players: int) -> None:
    values = np.random.default_rng(players).normal(size=2**players)
    assert shapley_values(values) == pytest.approx(over_all_orders(values, players), abs=1e-12)


@pytest.mark.parametrize("players", [1, 3, 6, 8])
def test_the_values_add_up_and_follow_their_players(players: int) -> None:
    rng = np.random.default_rng(players)
    values = rng.normal(size=(5, 2**players))
    found = shapley_values(values)
    assert found.shape == (5, players)
    assert np.abs(found.sum(axis=1) - (values[:, -1] - values[:, 0])).max() < 1e-12
    order = rng.permutation(players)  # player j of the renamed game is order[j] of the first
    subsets = np.arange(2**players)
    renamed = sum((((subsets >> j) & 1) << int(order[j]) for j in range(players)), np.zeros_like(subsets))
    assert np.abs(shapley_values(values[:, renamed]) - found[:, order]).max() < 1e-12
    assert np.abs(shapley_values(values[:, ::-1]) + found).max() < 1e-12  # the other way round


def test_a_player_that_changes_nothing_gets_nothing() -> None:
    values = np.random.default_rng(1).normal(size=4)
    assert shapley_values(np.concatenate([values, values]))[2] == pytest.approx(0.0, abs=1e-15)


def test_undefined_subsets_and_other_numbers_of_them() -> None:
    assert np.isnan(shapley_values(np.array([0.0, np.nan, 1.0, 2.0]))).all()
    for count in (3, 2**11):
        with pytest.raises(InputError, match=rf"values: found {count} subsets, expected 2\^k values, k at most 10"):
            shapley_values(np.zeros(count))

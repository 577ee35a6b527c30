"""Ranks: a ledger of crafted tables, and the ranks and chances against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import Estimate, Rank, Resampling, rank_systems
from proctor.stats.means import system_table


def ranks(matrix: object, names: list[str], groups: object, **options: object) -> dict[str, int]:
    found = rank_systems(matrix, names, groups, **options)  # type: ignore[arg-type]
    return {one.name: one.rank for one in found}


def steps(*right: int, of: int = 24) -> list[list[int]]:
    """Systems that are right on their first this many items."""
    return [[1] * count + [0] * (of - count) for count in right]


def test_clear_differences_are_told_apart() -> None:
    assert ranks(steps(0, 12, 24), ["c", "b", "a"], range(24)) == {"a": 1, "b": 2, "c": 3}


def test_what_is_not_real_shares_a_rank() -> None:
    # one item of 24 tells a from b: not real; both are far ahead of c
    assert ranks(steps(24, 23, 0), ["a", "b", "c"], range(24)) == {"a": 1, "b": 1, "c": 3}


def test_not_real_is_not_transitive() -> None:
    # differences of 5 one-sided items of 24: p = 2/2^5 = 0.06, not real; of 10: p = 0.002, real
    assert ranks(steps(22, 17, 12), ["a", "b", "c"], range(24)) == {"a": 1, "b": 1, "c": 2}


def test_holm_makes_it_harder_with_more_systems() -> None:
    # 6 one-sided items: p = 2/2^6 = 0.031, real for one pair, not for three pairs
    assert ranks(steps(18, 12), ["a", "b"], range(24)) == {"a": 1, "b": 2}
    assert ranks(steps(18, 12, 12), ["a", "b", "c"], range(24)) == {"a": 1, "b": 1, "c": 1}


def test_clusters_make_it_harder() -> None:
    # the same 12 items better, but within one video: one sign, p = 1
    matrix = steps(12, 0)
    assert ranks(matrix, ["a", "b"], range(24)) == {"a": 1, "b": 2}
    assert ranks(matrix, ["a", "b"], [0] * 12 + list(range(1, 13))) == {"a": 1, "b": 1}


def test_lower_is_better() -> None:
    assert ranks(steps(0, 24), ["a", "b"], range(24), higher_is_better=False) == {"a": 1, "b": 2}


def test_all_equal_and_one_system() -> None:
    found = rank_systems(steps(12, 12, 12, 12), list("dcba"), range(24))
    # Equal systems share every rank: the confidence interval holds them all; the samples, all alike, never part them.
    assert [(one.name, one.rank, one.rank_low, one.rank_high, one.p_best) for one in found] == [
        (name, 1, 1, 4, 0.25) for name in "abcd"
    ]
    assert {(one.resampled_rank_low, one.resampled_rank_high) for one in found} == {(1, 1)}
    alone = rank_systems(steps(12), ["only"], range(24))[0]
    assert (alone.rank, alone.rank_low, alone.rank_high, alone.p_best) == (1, 1, 1, 1.0)
    assert rank_systems([], [], range(24)) == []


def test_too_few_groups() -> None:
    nothing = Estimate(None, None, None, 0, 0)
    assert rank_systems([[], []], ["b", "a"], []) == [
        Rank("a", nothing, 1, None, None, None),
        Rank("b", nothing, 1, None, None, None),
    ]
    found = rank_systems([[0, 0], [1, 1]], ["a", "b"], ["v", "v"])
    assert found == [
        Rank("b", Estimate(1, None, None, 2, 1), 1, None, None, None),
        Rank("a", Estimate(0, None, None, 2, 1), 1, None, None, None),
    ]


def test_places_and_chances_by_plain_loops() -> None:
    rng = np.random.default_rng(3)
    matrix, groups = (rng.random((4, 120)) < 0.5).astype(float), rng.integers(0, 15, 120)
    names = list("wxyz")
    drawn = system_table(matrix, groups).means(Resampling(draws=300))
    best = dict.fromkeys(names, 0.0)
    board_ranks: dict[str, list[int]] = {name: [] for name in names}
    for means in drawn:
        leaders = [name for name, mean in zip(names, means, strict=True) if mean >= means.max() - 1e-12]
        for name, mean in zip(names, means, strict=True):
            best[name] += (name in leaders) / len(leaders)
            board_ranks[name].append(1 + sum(other > mean + 1e-12 for other in means))
    for one in rank_systems(matrix, names, groups, plan=Resampling(draws=300)):
        assert one.p_best == pytest.approx(best[one.name] / 300)
        ordered = sorted(board_ranks[one.name])
        assert one.resampled_rank_low == ordered[int(np.ceil(0.025 * 300)) - 1]
        assert one.resampled_rank_high == ordered[int(np.ceil(0.975 * 300)) - 1]


def test_chances_add_up_and_the_order_is_by_mean() -> None:
    rng = np.random.default_rng(4)
    found = rank_systems(rng.random((6, 200)), list("abcdef"), rng.integers(0, 30, 200), plan=Resampling(draws=500))
    assert sum(one.p_best for one in found if one.p_best is not None) == pytest.approx(1)
    values = [one.estimate.value or 0 for one in found]
    assert values == sorted(values, reverse=True)


def test_order_and_names_of_items_and_groups_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    matrix, groups = rng.random((3, 80)), rng.integers(0, 10, 80)
    shuffled = rng.permutation(80)
    first = rank_systems(matrix, list("abc"), groups, plan=Resampling(draws=200))
    second = rank_systems(
        matrix[:, shuffled], list("abc"), [f"v{9 - g}" for g in groups[shuffled]], plan=Resampling(draws=200)
    )
    assert first == second


def test_errors() -> None:
    matrix = [[1.0, 0.0], [float("nan"), 0.0]]
    with pytest.raises(InputError, match=r"^system gemini, value 0: found nan, expected a finite number$"):
        rank_systems(matrix, ["llava", "gemini"], ["a", "b"])
    with pytest.raises(InputError, match=r"^names: found 1, expected 2, one per system$"):
        rank_systems(matrix, ["a"], ["a", "b"])
    with pytest.raises(InputError, match=r"^names: found a, a, expected each name once$"):
        rank_systems(matrix, ["a", "a"], ["a", "b"])
    with pytest.raises(InputError, match=r"^alpha: found 5, expected a share between 0 and 1$"):
        rank_systems(matrix, ["a", "b"], ["a", "b"], alpha=5)

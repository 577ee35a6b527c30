"""Quotients of sums where a class is rare: what the intervals cover, and where they have to reach."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.stats import Floats, Ints, Resampling, sums_interval
from proctor.stats.bootstrap import group_totals


def precision(sums: Floats) -> Floats:
    found = sums[:, 0] + sums[:, 1]
    return np.where(found > 0, sums[:, 0] / np.maximum(found, 1e-12), np.nan)


def f1(sums: Floats) -> Floats:
    all_ = 2 * sums[:, 0] + sums[:, 1] + sums[:, 2]
    return np.where(all_ > 0, 2 * sums[:, 0] / np.maximum(all_, 1e-12), np.nan)


def drawn(rng: np.random.Generator, n_groups: int, prevalence: float) -> tuple[Floats, Ints]:
    """Hits, false alarms and misses per item; prevalence, sensitivity and specificity vary by video."""
    groups = np.repeat(np.arange(n_groups), rng.geometric(0.1, n_groups))
    share, seen, kept = (rng.beta(4 * mean, 4 * (1 - mean), n_groups)[groups] for mean in (prevalence, 0.7, 0.85))
    there = rng.random(len(groups)) < share
    said = np.where(there, rng.random(len(groups)) < seen, rng.random(len(groups)) >= kept)
    return np.stack([there & said, ~there & said, there & ~said], axis=1).astype(np.float64), groups


@pytest.mark.parametrize("n_groups", [5, 10, 30])
def test_a_rare_class_is_covered(n_groups: int) -> None:
    """A class in 10 %: t at G - 1 alone covered 88 to 92 %."""
    big = drawn(np.random.default_rng(0), 200_000, 0.1)[0].sum(axis=0, keepdims=True)
    rng = np.random.default_rng(n_groups)
    repetitions = 150
    for statistic in (precision, f1):
        truth, held, given = float(statistic(big)[0]), 0, 0
        for _ in range(repetitions):
            columns, groups = drawn(rng, n_groups, 0.1)
            found = sums_interval(columns, groups, statistic, plan=Resampling(draws=300, bounds=(0, 1)))
            if found.ci_low is not None and found.ci_high is not None:
                given += 1
                held += found.ci_low <= truth <= found.ci_high
        assert given >= 0.9 * repetitions  # with five groups a class may be missing altogether
        assert held / given >= 0.92


def balanced(sums: Floats) -> Floats:
    """The mean of the sensitivity and the specificity, where both are defined."""
    hits, false, misses, right = sums.T
    found = (hits + misses > 0) & (false + right > 0)
    one = hits / np.maximum(hits + misses, 1e-12) + right / np.maximum(false + right, 1e-12)
    return np.where(found, one / 2, np.nan)


SEEN = (((0,), (2,)), ((1,), (3,)))  # of the class hits and misses, of the rest false alarms and right rejections


@pytest.mark.parametrize("n_groups", [5, 10, 30])
def test_balanced_accuracy_of_a_rare_class_is_covered(n_groups: int) -> None:
    """Where the few cases of the class were all found, or all missed, other cases may end otherwise: with 10 groups
    88.9 % were covered, and none of those."""

    def table(rng: np.random.Generator, size: int) -> tuple[Floats, Ints]:
        columns, groups = drawn(rng, size, 0.1)
        return np.column_stack([columns, columns.sum(axis=1) == 0]), groups

    truth = float(balanced(table(np.random.default_rng(0), 200_000)[0].sum(axis=0, keepdims=True))[0])
    rng = np.random.default_rng(n_groups)
    held = given = extreme = 0
    for _ in range(150):
        columns, groups = table(rng, n_groups)
        found = sums_interval(columns, groups, balanced, SEEN, plan=Resampling(draws=300, bounds=(0, 1)))
        if found.ci_low is not None and found.ci_high is not None:
            given += 1
            held += found.ci_low <= truth <= found.ci_high
            extreme += bool((columns.sum(axis=0)[[0, 2]] == 0).any())
    assert given >= 0.8 * 150
    assert held / given >= 0.94
    assert extreme > 5 or n_groups == 30


def test_a_class_that_was_always_found_may_be_missed_elsewhere() -> None:
    """Six groups, all right: with 95 % up to 1 - 0.025^(1/3) of the class's cases, which lie in three of them, may be
    missed; what no group has shown is no matter where a class has wrong answers of some kind."""
    columns = np.zeros((24, 4))
    groups = np.repeat(np.arange(6), 4)
    columns[:, 3] = 1
    columns[::5] = [0, 1, 0, 0]
    columns[[0, 4, 8]] = [1, 0, 0, 0]
    found = sums_interval(columns, groups, balanced, SEEN, plan=Resampling(bounds=(0, 1)))
    share = 1 - 0.025 ** (1 / 3)
    assert found.value is not None
    assert found.ci_low is not None
    assert found.ci_low <= found.value - share / 2
    plain = sums_interval(columns, groups, balanced, plan=Resampling(bounds=(0, 1)))
    columns[8] = [0, 0, 1, 0]
    shown = [sums_interval(columns, groups, balanced, trials, plan=Resampling(bounds=(0, 1))) for trials in ((), SEEN)]
    assert shown[0] == shown[1]
    assert plain.ci_low is not None
    assert plain.ci_low > found.ci_low


def test_groups_that_all_say_the_same_are_no_certainty() -> None:
    same = np.tile([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]], (6, 1))
    found = sums_interval(same, np.repeat(np.arange(6), 3), precision, plan=Resampling(bounds=(0, 1)))
    assert found.value == pytest.approx(2 / 3)
    assert (found.ci_low, found.ci_high) == (None, None)


def test_one_false_alarm_among_many_groups() -> None:
    """Others may have more: a share 1 - 0.025^(1/G) of the groups may be false alarms alone."""
    columns = np.zeros((40, 3))
    columns[:, 0] = 1
    columns[0] = [0, 1, 0]
    found = sums_interval(columns, np.arange(40), precision, plan=Resampling(bounds=(0, 1)))
    unseen = 1 - 0.025 ** (1 / 40)
    assert found.ci_low is not None
    assert found.ci_low <= 39 / 40 * (1 - unseen) + 1e-9


def test_whole_numbers_and_others_sum_up_the_same_by_group() -> None:
    """Whole numbers take the short way, others are added in a fixed order."""
    rng = np.random.default_rng(0)
    table, code = rng.integers(-3, 9, size=(500, 4)).astype(np.float64), rng.integers(0, 30, size=500)
    shuffled = rng.permutation(500)
    for scale in (1.0, 1 / 3):
        found = group_totals(table * scale, code)
        assert np.array_equal(found, group_totals((table * scale)[shuffled], code[shuffled]))
        by_hand = np.array([(table * scale)[code == group].sum(axis=0) for group in range(30)])
        assert sorted(np.round(found, 9).tolist()) == sorted(np.round(by_hand, 9).tolist())

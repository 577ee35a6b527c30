"""Differences and ranks by statistics of sums: against the paired test of means, and by simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import Floats, Ints, Resampling, paired_difference, rank_sums, rank_systems, sums_difference
from tests.support.simulation import assert_share, repetitions


def mean(sums: Floats) -> Floats:
    return np.asarray(sums[:, 0] / sums[:, 1])


def f1(sums: Floats) -> Floats:
    """Of right, wrongly named and missed."""
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * sums[:, 0] / (2 * sums[:, 0] + sums[:, 1] + sums[:, 2]))


def test_of_a_mean_it_is_the_sign_flip() -> None:
    """The exact test of means counts every flip; that of sums counts every exchange: the same patterns."""
    rng = np.random.default_rng(3)
    for groups in (5, 9, 12):
        a, b = rng.integers(0, 2, (2, groups * 4)).astype(float)
        names = np.repeat(np.arange(groups), 4)
        ones = np.ones_like(a)
        found = sums_difference(np.stack([a, ones], 1), np.stack([b, ones], 1), names, mean)
        known = paired_difference(a, b, names)
        assert (found.n, found.groups) == (known.n, known.groups)
        assert found.value == pytest.approx(known.value)
        assert found.p == pytest.approx(known.p)


def test_many_groups_are_drawn_and_come_near() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.random((2, 200)) < [[0.7], [0.55]]).astype(float)
    names, ones = np.repeat(np.arange(50), 4), np.ones(200)
    found = sums_difference(np.stack([a, ones], 1), np.stack([b, ones], 1), names, mean)
    known = paired_difference(a, b, names)
    assert found.p == pytest.approx(known.p, abs=3 * np.sqrt(0.25 / 9_999) + 1e-4)
    assert found.ci_low == pytest.approx(known.ci_low, abs=0.02)
    assert found.ci_high == pytest.approx(known.ci_high, abs=0.02)


def test_edges() -> None:
    table = np.array([[1.0, 1.0]] * 6)
    same = sums_difference(table, table, list("abcdef"), mean)
    assert (same.value, same.ci_low, same.ci_high, same.p) == (0, None, None, 1)
    none = sums_difference(table[:0], table[:0], [], mean)
    assert (none.value, none.ci_low, none.p, none.n) == (None, None, None, 0)
    one = sums_difference(table, 0 * table + [0, 1], ["a"] * 6, mean)
    assert (one.value, one.ci_low, one.p) == (1, None, None)
    with pytest.raises(InputError, match="two tables of one shape"):
        sums_difference(table, table[:3], list("abcdef"), mean)
    undefined = np.array([[0.0, 0.0, 0.0]] * 6)
    assert sums_difference(undefined, undefined, list("abcdef"), f1).value is None
    with pytest.raises(InputError, match="first: found a statistic that is not defined"):
        rank_sums([undefined], ["first"], list("abcdef"), f1)


def test_ranks_of_a_mean_are_those_of_systems() -> None:
    rng = np.random.default_rng(8)
    matrix = (rng.random((4, 48)) < [[0.9], [0.85], [0.4], [0.3]]).astype(float)
    names, groups = ["d", "b", "c", "a"], np.repeat(np.arange(12), 4)
    tables = [np.stack([row, np.ones(48)], 1) for row in matrix]
    found = rank_sums(tables, names, groups, mean, plan=Resampling(draws=500))
    known = rank_systems(matrix, names, groups, plan=Resampling(draws=500))
    assert [(one.name, one.rank, one.rank_low, one.rank_high) for one in found] == [
        (one.name, one.rank, one.rank_low, one.rank_high) for one in known
    ]
    assert [one.p_best for one in found] == pytest.approx([one.p_best for one in known], abs=0.06)
    again = rank_sums(tables[::-1], names[::-1], groups, mean, plan=Resampling(draws=500))
    assert found == again


def test_ranks_do_not_depend_on_names() -> None:
    """A renamed system led in 0.791, then in 0.774 of the samples: its name decided in which order it was drawn."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(20), 5)
    for values in ((rng.random((4, 100)) < [[0.6], [0.62], [0.61], [0.5]]).astype(float), rng.random((4, 100))):
        tables = [np.stack([row, np.ones(100)], 1) for row in values]
        plain = {one.name: replace(one, name="") for one in rank_sums(tables, list("abcd"), groups, mean)}
        order, names = [2, 0, 3, 1], dict(zip("abcd", "qzbx", strict=True))
        renamed = [names["abcd"[number]] for number in order]
        labels = [f"video {(7 * group) % 23}" for group in groups]
        other = rank_sums([tables[number] for number in order], renamed, labels, mean)
        assert {one.name: replace(one, name="") for one in other} == {names[name]: one for name, one in plain.items()}


def _systems(rng: np.random.Generator, groups: int, skill: tuple[float, float]) -> tuple[Floats, Floats, Ints]:
    """Items of groups that differ in how hard they are; a rare class; the sums of two systems."""
    sizes = rng.integers(4, 10, groups)
    names = np.repeat(np.arange(groups, dtype=np.int64), sizes)
    hard = rng.normal(0, 0.5, groups)[names]
    true = rng.random(len(names)) < 0.35
    tables = []
    for one in skill:
        right = rng.random(len(names)) < 1 / (1 + np.exp(-(one + hard)))
        said = np.where(right, true, ~true)
        tables.append(np.stack([true & said, ~true & said, true & ~said], 1).astype(float))
    return tables[0], tables[1], names


@pytest.mark.simulation
@pytest.mark.parametrize(("groups", "low", "high"), [(12, 0.93, 0.995), (30, 0.925, 0.99)])
def test_the_interval_of_a_difference_of_f1_covers(groups: int, low: float, high: float) -> None:
    rng = np.random.default_rng(groups)
    big = _systems(rng, 60_000, (1.2, 0.6))
    truth = float(f1(big[0].sum(axis=0)[None])[0] - f1(big[1].sum(axis=0)[None])[0])
    count, covered = repetitions(400), 0
    for _ in range(count):
        a, b, names = _systems(rng, groups, (1.2, 0.6))
        found = sums_difference(a, b, names, f1, plan=Resampling(draws=300, bounds=(0, 1)))
        covered += found.ci_low is not None and found.ci_high is not None and found.ci_low <= truth <= found.ci_high
    assert_share(covered, count, low, high)


@pytest.mark.simulation
@pytest.mark.parametrize("groups", [10, 30])
def test_equal_systems_are_seldom_told_apart(groups: int) -> None:
    rng = np.random.default_rng(100 + groups)
    count, alarms = repetitions(300), 0
    for _ in range(count):
        a, b, names = _systems(rng, groups, (0.9, 0.9))
        alarms += (sums_difference(a, b, names, f1, plan=Resampling(draws=1, bounds=(0, 1))).p or 0) <= 0.05
    assert_share(alarms, count, 0.015, 0.07)

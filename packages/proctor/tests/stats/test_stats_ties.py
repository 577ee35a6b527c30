"""Ties of the ranking over buckets: both readings of the tie-break by a computation of our own, near-copies, and the
ranking without each system."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats import TIE_RULES, RankingPlan, Standings, TieOrder, rank_buckets
from tests.support.simulation import assert_share, repetitions

VIDEOS, BUCKETS, QUESTIONS = 24, 10, 4
GROUP = np.repeat(np.arange(VIDEOS), BUCKETS * QUESTIONS)
BUCKET = np.tile(np.repeat(np.arange(BUCKETS), QUESTIONS), VIDEOS)
NAMES = [f"bucket {number}" for number in range(BUCKETS)]


def skilled(rng: np.random.Generator, rate: float, difficulty: NDArray[Any]) -> NDArray[Any]:
    """Right answers of a system that is this good on the whole, in videos of some difficulty."""
    return (rng.random(len(GROUP)) < np.clip(rate + difficulty[GROUP], 0, 1)).astype(float)


def board(seed: int, rates: tuple[float, ...]) -> NDArray[Any]:
    rng = np.random.default_rng([seed, 33])
    difficulty = rng.normal(0, 0.12, VIDEOS)
    return np.array([skilled(rng, rate, difficulty) for rate in rates])


def own_rates(right: NDArray[Any], among: list[int], draws: int = 4000) -> NDArray[Any]:
    """How often each of `among` is best of them in samples of videos, averaged over the buckets, with draws of our own."""
    rng = np.random.default_rng(len(among))
    sums = np.array(
        [[right[k][b == BUCKET].reshape(VIDEOS, QUESTIONS).sum(axis=1) for k in among] for b in range(BUCKETS)]
    )
    times = rng.multinomial(VIDEOS, np.full(VIDEOS, 1 / VIDEOS), size=draws).T
    totals = sums @ times  # buckets × systems × samples
    best = totals == totals.max(axis=1, keepdims=True)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=(0, 2)))


def named(found: Standings) -> dict[str, Any]:
    return {one.name: one for one in found.systems}


@pytest.mark.parametrize("seed", range(8))
def test_both_readings_are_those_of_an_own_computation(seed: int) -> None:
    right = board(seed, (0.62, 0.6, 0.61, 0.55, 0.4))
    names = list("abcde")
    readings = {
        rule: rank_buckets(right, names, GROUP, BUCKET, NAMES, RankingPlan(draws=4000, ties=rule)) for rule in TIE_RULES
    }
    of_all = own_rates(right, list(range(5)))
    noise = 4 * np.sqrt(0.25 / 4000) * np.sqrt(2)  # of a difference of two computations; buckets share their samples
    for found in readings.values():
        for name, rate in zip(names, of_all, strict=True):
            assert abs(named(found)[name].win_rate - rate) < noise
    tied = [names.index(one.name) for one in readings["all"].systems if one.win_rate_tied is not None]
    score = {one.name: one.score for one in readings["all"].systems}
    for first in {score[names[k]] for k in tied}:
        same = [k for k in tied if score[names[k]] == first]
        for k, rate in zip(same, own_rates(right, same), strict=True):
            one = named(readings["all"])[names[k]]
            assert abs(one.win_rate_tied - rate) < noise
            assert one.win_rate_tied == named(readings["tied"])[names[k]].win_rate_tied
        for rule, field in (("all", "win_rate"), ("tied", "win_rate_tied")):
            rates = {names[k]: getattr(named(readings["all"])[names[k]], field) for k in same}
            ranks = {name: named(readings[rule])[name].rank for name in rates}  # type: ignore[index]
            for one, other in ((x, y) for x in rates for y in rates if rates[x] > rates[y]):
                assert ranks[one] < ranks[other]


def worst_of_all() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Three buckets of sixteen videos. `star` beats everybody in p and q alone, so that it leads; `steady` and `peaky` tie
    behind it. `peaky` is best of the two in p and q, where `star` takes each sample, and `steady` in r, where both are
    ahead of `star`."""
    video = np.tile(np.arange(16), 3)
    bucket = np.repeat([0, 1, 2], 16)
    n = np.arange(16)
    star = [(n < 16), (n < 16), (n < 7)]
    steady = [(n < 6), (n < 6), (n < 9)]
    peaky = [(n < 7), (n < 7), (n < 8)]
    right = np.array([np.concatenate(one).astype(float) for one in (star, steady, peaky)])
    return right, video, bucket


def test_a_leader_that_is_not_tied_turns_the_order_of_those_behind_it() -> None:
    right, video, bucket = worst_of_all()
    plan = RankingPlan(draws=3000, correction="none", ties="all", leave_out=True)
    found = rank_buckets(right, ["star", "steady", "peaky"], video, bucket, list("pqr"), plan)
    (order,) = found.tie_orders
    assert order.rank == 2
    assert order.all == (("steady",), ("peaky",))
    assert order.tied == (("peaky",), ("steady",))
    assert order.head_to_head == order.tied
    assert order.differs
    assert [(one.name, one.rank) for one in found.systems] == [("star", 1), ("steady", 2), ("peaky", 3)]
    tied = rank_buckets(
        right,
        ["star", "steady", "peaky"],
        video,
        bucket,
        list("pqr"),
        RankingPlan(draws=3000, correction="none", ties="tied"),
    )
    assert [(one.name, one.rank) for one in tied.systems] == [("star", 1), ("peaky", 2), ("steady", 3)]
    assert named(found)["star"].win_rate_tied is named(found)["star"].head_to_head is None
    # without the leader, all others are the tied: peaky is first, where the board says steady
    (without,) = [one for one in found.removals if one.name == "star"]
    assert (without.first, without.moves_first) == (("peaky",), True)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InputError, match="ties: found 'some', expected one of all, tied"):
        RankingPlan(ties="some")  # type: ignore[arg-type]


def test_the_ranking_without_a_system_is_that_of_the_others() -> None:
    for seed in range(6):
        right, names = board(seed, (0.75, 0.6, 0.5, 0.4)), list("abcd")
        for rule in ("copeland", "mean"):
            plan = RankingPlan(rule=rule, draws=500, leave_out=True)
            found = rank_buckets(right, names, GROUP, BUCKET, NAMES, plan)
            assert [one.name for one in found.removals] == [one.name for one in found.systems]
            for removal in found.removals:
                kept = [k for k, name in enumerate(names) if name != removal.name]
                others = rank_buckets(
                    right[kept], [names[k] for k in kept], GROUP, BUCKET, NAMES, RankingPlan(rule=rule, draws=500)
                )
                if any(one.tie_broken for one in others.systems):
                    continue  # other samples may break a tie otherwise
                assert removal.first == tuple(one.name for one in others.systems if one.rank == 1)
                assert set(removal.top) == {one.name for one in others.systems if one.rank <= 3}


def test_neither_names_nor_the_order_of_systems_matter() -> None:
    right = board(3, (0.62, 0.6, 0.61, 0.55))
    plan = RankingPlan(draws=300, leave_out=True)
    found = rank_buckets(right, list("abcd"), GROUP, BUCKET, NAMES, plan)
    other = rank_buckets(right[::-1], list("wxyz"), GROUP, BUCKET, NAMES, plan)
    renamed = dict(zip("abcd", "zyxw", strict=True))
    for one in found.systems:
        same = named(other)[renamed[one.name]]
        assert (one.rank, one.win_rate, one.win_rate_tied, one.head_to_head) == (
            same.rank,
            same.win_rate,
            same.win_rate_tied,
            same.head_to_head,
        )


def near_copies(seed: int) -> tuple[Standings, Standings]:
    """A first, B second; then also two copies of A with 15 of 960 answers changed."""
    rng = np.random.default_rng([seed, 9])
    difficulty = rng.normal(0, 0.12, VIDEOS)
    while True:
        a, b = skilled(rng, 0.62, difficulty), skilled(rng, 0.61, difficulty)
        plan = RankingPlan(draws=400, leave_out=True)
        alone = rank_buckets(np.array([a, b]), ["A", "B"], GROUP, BUCKET, NAMES, plan)
        if [one.name for one in alone.systems] == ["A", "B"] and alone.systems[0].tie_broken:
            break
    copies = [a.copy(), a.copy()]
    for copy in copies:
        changed = rng.choice(len(a), 15, replace=False)
        copy[changed] = 1 - copy[changed]
    names = ["A", "B", "A-2", "A-3"]
    return alone, rank_buckets(np.array([a, b, *copies]), names, GROUP, BUCKET, NAMES, plan)


@pytest.mark.simulation
def test_near_copies_cost_rank_one_and_head_to_head_does_not() -> None:
    boards = repetitions(60)
    lost = kept = told = 0
    for seed in range(boards):
        _, found = near_copies(seed)
        first = [one.name for one in found.systems if one.rank == 1]
        lost += first == ["B"]
        pairwise = {one.name: one.head_to_head for one in found.systems}
        if pairwise["A"] is not None and pairwise["B"] is not None:
            kept += pairwise["A"] > pairwise["B"]
            told += any("B" in order.all[0] and "B" not in order.head_to_head[0] for order in found.tie_orders)
    assert_share(lost, boards, 0.4, 1.0)  # B is first on most boards, for nothing but the copies
    assert_share(kept, boards, 0.6, 1.0)
    assert told


def test_an_order_tells_the_rule_that_is_asked() -> None:
    order = TieOrder(2, (("a",), ("b",)), (("b",), ("a",)), (("a", "b"),))
    assert (order.by("all"), order.by("tied"), order.differs) == (order.all, order.tied, True)

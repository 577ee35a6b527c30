"""The ranking over buckets: a ledger of crafted tables by hand, and what must not change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats import (
    RULES,
    BucketRankReadings,
    Correction,
    RankingPlan,
    Standings,
    borda,
    copeland,
    holm,
    rank_buckets,
)
from proctor.stats.bootstrap import weights
from proctor.stats.buckets import bucket_ranks, bucket_sums, resampled_ranks, tails
from proctor.stats.signflip import sign_flip

NAN = float("nan")

# Each row: what it shows, a table of ranks (buckets × systems), and Copeland and Borda by hand.
LEDGER: list[tuple[str, list[list[float]], list[float], list[float]]] = [
    ("a clear order", [[1, 2, 3], [1, 2, 3]], [2, 0, -2], [4, 0, -4]),
    ("a tie for rank 1 in one bucket, broken by the other", [[1, 1, 3], [1, 2, 2]], [2, 0, -2], [3, 0, -3]),
    ("a cycle: a before b before c before a", [[1, 2, 3], [3, 1, 2], [2, 3, 1]], [0, 0, 0], [0, 0, 0]),
    ("all equal", [[1, 1, 1], [1, 1, 1]], [0, 0, 0], [0, 0, 0]),
    ("one system", [[1], [1]], [0], [0]),
    ("a system without a rank in the second bucket is behind there", [[1, 2], [NAN, 1]], [0, 0], [0, 0]),
    ("two without a rank in a bucket tie there", [[1, 2], [NAN, NAN]], [1, -1], [1, -1]),
    (
        "many small wins against one great one: Copeland and the mean rank part",
        [[1, 2, 3], [1, 2, 3], [3, 1, 2]],
        [2, 0, -2],
        [2, 2, -4],
    ),
]


@pytest.mark.parametrize("row", LEDGER, ids=[row[0] for row in LEDGER])
def test_ledger_of_rules(row: tuple[str, list[list[float]], Any, Any, Any, Any]) -> None:
    ranks = np.array(row[1])
    for rule, expected in zip((copeland, borda), row[2:], strict=True):
        assert rule(ranks) == pytest.approx(expected), rule.__name__


def shaped(*systems: list[list[int]]) -> tuple[NDArray[np.float64], list[str], NDArray[np.int64]]:
    """Systems as buckets of one answer a video: 12 videos."""
    matrix = np.array([np.concatenate(system) for system in systems], dtype=np.float64)
    n_buckets = len(systems[0])
    return (matrix, [f"v{video}" for _ in range(n_buckets) for video in range(12)], np.repeat(np.arange(n_buckets), 12))


GOOD, MIDDLE, BAD = [1] * 12, [1] * 6 + [0] * 6, [0] * 12


def order(found: Standings) -> list[tuple[str, int, float]]:
    return [(one.name, one.rank, one.score) for one in found.systems]


def test_ranks_in_buckets_by_hand() -> None:
    # 12 videos all one way: p = 2/2^12; 6 of 12: p = 2/2^6 = 0.031, with Holm over three pairs 0.0625 not below 0.05.
    matrix, videos, buckets = shaped([GOOD, GOOD], [MIDDLE, GOOD], [BAD, BAD])
    found = rank_buckets(matrix, ["a", "b", "c"], videos, buckets, ["x", "y"], RankingPlan(draws=200))
    ranks = {one.name: one.ranks for one in found.systems}
    assert ranks == {"a": (1, 1), "b": (1, 1), "c": (2, 3)}
    bare = rank_buckets(matrix, ["a", "b", "c"], videos, buckets, ["x", "y"], RankingPlan(draws=200, correction="none"))
    assert {one.name: one.ranks for one in bare.systems} == {"a": (1, 1), "b": (2, 1), "c": (3, 3)}
    first = bare.systems[0]
    assert (first.ahead, first.behind, first.tied) == ({"b": 1, "c": 2}, {"b": 0, "c": 0}, {"b": 1, "c": 0})
    assert [(one.name, one.mean) for one in bare.systems] == [("a", 1.0), ("b", 0.75), ("c", 0.0)]


def test_a_tie_in_the_first_places_is_broken_by_the_win_rate() -> None:
    # b is above a by one video of 12: no rank may come of that, but it wins more samples.
    matrix, videos, buckets = shaped([[0, *GOOD[1:]]], [GOOD], [BAD])
    found = rank_buckets(matrix, ["a", "b", "c"], videos, buckets, ["x"], RankingPlan(draws=2000))
    assert order(found) == [("b", 1, 1.0), ("a", 2, 1.0), ("c", 3, -2.0)]
    best = found.systems[0]
    assert best.tie_broken
    # a equals b where the one video is not drawn, (11/12)^12 = 0.352 of samples, and shares the win then.
    assert best.win_rate_tied == pytest.approx(1 - 0.352 / 2, abs=0.02)
    assert best.win_rate == best.win_rate_tied


def test_a_cycle_of_real_differences_is_a_tie_that_no_win_rate_breaks() -> None:
    # a before b before c in x, b before c before a in y, c before a before b in z; without Holm all are significant.
    matrix, videos, buckets = shaped([GOOD, BAD, MIDDLE], [MIDDLE, GOOD, BAD], [BAD, MIDDLE, GOOD])
    found = rank_buckets(
        matrix, ["a", "b", "c"], videos, buckets, ["x", "y", "z"], RankingPlan(draws=200, correction="none")
    )
    assert {one.name: one.ranks for one in found.systems} == {"a": (1, 3, 2), "b": (2, 1, 3), "c": (3, 2, 1)}
    assert order(found) == [("a", 1, 0.0), ("b", 1, 0.0), ("c", 1, 0.0)]
    assert [one.win_rate_tied for one in found.systems] == pytest.approx([1 / 3] * 3)
    assert not any(one.tie_broken for one in found.systems)
    assert found.systems[0].ahead == {"b": 2, "c": 1}  # a beats b, c beats a


def test_a_system_that_was_not_there_in_a_bucket_is_last_there_and_keeps_its_others() -> None:
    # What was not answered is wrong: b leaves out y and is behind c there, ahead of it in x.
    matrix, videos, buckets = shaped([GOOD, GOOD], [GOOD, BAD], [BAD, GOOD])
    found = rank_buckets(matrix, ["a", "b", "c"], videos, buckets, ["x", "y"], RankingPlan(draws=200))
    assert {one.name: one.ranks for one in found.systems} == {"a": (1, 1), "b": (1, 3), "c": (3, 1)}
    assert order(found) == [("a", 1, 2.0), ("b", 2, -1.0), ("c", 2, -1.0)]


def test_ties_behind_the_third_place_stay() -> None:
    matrix, videos, buckets = shaped([GOOD], [GOOD], [GOOD], [BAD], [[1, *BAD[1:]]])
    found = rank_buckets(matrix, list("abcde"), videos, buckets, ["x"], RankingPlan(draws=200))
    assert [(one.name, one.rank, one.tie_broken) for one in found.systems] == [
        ("a", 1, False),
        ("b", 1, False),
        ("c", 1, False),
        ("e", 4, False),
        ("d", 4, False),
    ]


def test_all_equal_and_one_system() -> None:
    matrix, videos, buckets = shaped([MIDDLE, GOOD], [MIDDLE, GOOD])
    found = rank_buckets(matrix, ["a", "b"], videos, buckets, ["x", "y"], RankingPlan(draws=100, stability=20))
    assert order(found) == [("a", 1, 0.0), ("b", 1, 0.0)]
    assert found.tau is None
    assert found.systems[0].stability is not None
    assert found.systems[0].stability.chances == (1.0, 0.0)
    alone = rank_buckets(matrix[:1], ["a"], videos, buckets, ["x", "y"], RankingPlan(draws=100, stability=20))
    assert order(alone) == [("a", 1, 0.0)]
    assert alone.systems[0].win_rate == 1.0


def test_an_empty_bucket_counts_for_nothing() -> None:
    matrix, videos, buckets = shaped([GOOD], [BAD])
    found = rank_buckets(matrix, ["a", "b"], videos, buckets + 1, ["none", "x"], RankingPlan(draws=100))
    assert found.empty == ("none",)
    assert [(one.ranks, one.scores, one.mean) for one in found.systems] == [
        ((None, 1), (None, 1.0), 1.0),
        ((None, 2), (None, 0.0), 0.0),
    ]
    for rule in RULES:
        other = rank_buckets(matrix, ["a", "b"], videos, buckets + 1, ["none", "x"], RankingPlan(draws=100, rule=rule))
        assert [one.name for one in other.systems] == ["a", "b"]


def test_nothing_to_rank_by() -> None:
    found = rank_buckets(np.zeros((2, 0)), ["b", "a"], [], [], ["x"], RankingPlan(draws=10, stability=5))
    assert [(one.name, one.rank, one.mean, one.stability) for one in found.systems] == [
        ("a", 1, None, None),
        ("b", 1, None, None),
    ]
    one_video = rank_buckets([[1, 1], [0, 0]], ["a", "b"], ["v", "v"], [0, 0], ["x"], RankingPlan(draws=10))
    assert [one.ranks for one in one_video.systems] == [(1,), (1,)]


def drawn_case(seed: int) -> tuple[NDArray[np.float64], list[str], NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    videos, buckets = rng.integers(0, 25, 400), rng.integers(-1, 4, 400)
    skill = np.linspace(0.3, 0.8, 6)[:, None]
    return (rng.random((6, 400)) < skill).astype(float), [f"s{k}" for k in range(6)], videos, buckets


def test_renaming_and_order_change_nothing() -> None:
    matrix, names, videos, buckets = drawn_case(3)
    plain: dict[str, Any] = {"draws": 400, "stability": 50}
    first = rank_buckets(matrix, names, videos, buckets, list("wxyz"), RankingPlan(**plain))
    rng = np.random.default_rng(0)
    systems, items = rng.permutation(6), rng.permutation(400)
    second = rank_buckets(
        matrix[systems][:, items],
        [f"z{names[k]}" for k in systems],
        [f"video {videos[k] * 7 % 25}" for k in items],
        buckets[items],
        list("wxyz"),
        RankingPlan(**plain),
    )
    assert (first.tau, first.tau_low) == (second.tau, second.tau_low)
    for one, other in zip(first.systems, second.systems, strict=True):
        assert other.name == f"z{one.name}"
        assert (one.rank, one.score, one.ranks, one.win_rate) == (other.rank, other.score, other.ranks, other.win_rate)
        assert one.stability == other.stability
        assert one.scores == pytest.approx(other.scores)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_finds_the_better_system_and_its_places_add_up(rule: Any) -> None:
    matrix, names, videos, buckets = drawn_case(5)
    found = rank_buckets(matrix, names, videos, buckets, list("wxyz"), RankingPlan(rule=rule, draws=300, stability=60))
    assert found.systems[0].name in {"s4", "s5"}
    assert found.systems[-1].name in {"s0", "s1"}
    assert found.tau is not None
    assert found.tau > 0.5
    for one in found.systems:
        assert one.stability is not None
        assert sum(one.stability.chances) == pytest.approx(1)
        assert one.stability.resampled_rank_low <= one.stability.resampled_rank_high


def test_ranks_of_samples_agree_with_the_test_itself() -> None:
    matrix, _, videos, buckets = drawn_case(7)
    sums = bucket_sums(matrix, videos, buckets, 4)
    drawn = np.concatenate([*weights(sums.counts.shape[1], 40, 0)])
    corrections: tuple[Correction, ...] = ("holm", "none")
    for correction in corrections:
        fast, _ = resampled_ranks(sums, drawn, correction=correction)
        agree = 0
        for row, times in enumerate(drawn.astype(int)):
            for bucket in range(4):
                copies = np.repeat(sums.totals[bucket], times, axis=0)
                i, j = np.triu_indices(6, 1)
                apart = copies[:, i] - copies[:, j]
                p = sign_flip(apart)
                p = holm(p) if correction == "holm" else p
                better = np.where(p <= 0.05, np.sign(apart.sum(axis=0)), 0)
                slow = 1 + np.bincount(j[better > 0], minlength=6) + np.bincount(i[better < 0], minlength=6)
                score = copies.sum(axis=0)
                slow = np.array([max(slow[score >= own]) for own in score])
                agree += int(np.sum(slow == fast[row, bucket]))
        assert agree / (40 * 4 * 6) > 0.95  # the rest lie at the very level


def test_ranks_of_samples_do_not_depend_on_the_unit_of_the_marks() -> None:
    """Halves and thirds lie on a lattice as whole marks do: their tails begin a step below the sum, too."""
    matrix, _, videos, buckets = drawn_case(9)
    for share in (2.0, 3.0):
        found = []
        for values in (matrix, matrix / share):
            sums = bucket_sums(values, videos, buckets, 4)
            order = np.argsort(sums.order)
            drawn = np.ones((1, sums.counts.shape[1]))
            found.append(resampled_ranks(sums, drawn)[0][0][:, order])
        np.testing.assert_array_equal(*found)
    # 14 groups +1, one −1, four 0: exact p 0.00098; without the lattice it comes out smaller by half.
    apart = np.array([1.0] * 14 + [-1.0] + [0.0] * 4)[:, None]
    p = [float(tails(np.ones((1, 19)), apart / unit)[0, 0]) for unit in (1.0, 2.0, 3.0)]
    assert p == pytest.approx([p[0]] * 3)
    assert p[0] == pytest.approx(0.00098, rel=0.3)


def test_the_test_holds_its_level_where_answers_of_a_video_go_together() -> None:
    rng = np.random.default_rng(11)
    videos = np.repeat(np.arange(30), 12)
    found = {"clustered": 0, "blind": 0}
    repeats = {"clustered": 800, "blind": 40}
    for repeat in range(repeats["clustered"]):
        lean = rng.beta(0.3, 0.3, (2, 30))[:, videos]  # equal on average, each with videos of its own
        matrix = (rng.random((2, 360)) < lean).astype(float)
        for name, groups in (("clustered", videos), ("blind", np.arange(360))):
            if repeat < repeats[name]:
                sums = bucket_sums(matrix, groups, np.zeros(360, dtype=np.int64), 1)
                found[name] += int(bucket_ranks(sums).ranks.max() > 1)
    assert found["clustered"] / repeats["clustered"] <= 0.06
    assert found["blind"] / repeats["blind"] > 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "best"}, "rule: found 'best', expected one of copeland, borda, mean"),
        ({"correction": "bonferroni"}, "correction: found 'bonferroni', expected 'holm', 'holm-board' or 'none'"),
        ({"alpha": 5}, "alpha: found 5, expected a share between 0 and 1"),
        ({"stability": -1}, "draws and stability: found 10000 and -1"),
        ({"level": 2}, "level: found 2, expected a share from 0.5"),
    ],
)
def test_settings_that_make_no_sense_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rank_buckets([[1.0]], ["a"], ["v"], [0], ["x"], RankingPlan(**change))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], ["a", "a"], ["v"], [0], ["x"]), "names: found 2, expected 1, one per system"),
        (([[1.0], [1.0]], ["a", "a"], ["v"], [0], ["x"]), "names: found a, a, expected each name once"),
        (([[1.0]], ["a"], ["v", "w"], [0], ["x"]), "values and buckets: found 1 × 1 and 1, expected systems × 2"),
        (([[1.0]], ["a"], ["v"], [3], ["x"]), "buckets: found 3 to 3, expected -1 to 0"),
        (([[float("inf")]], ["a"], ["v"], [0], ["x"]), "system 0, value 0: found inf, expected a finite number"),
    ],
)
def test_tables_that_make_no_sense_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rank_buckets(*arguments)


def test_ranks_below_one_are_refused() -> None:
    with pytest.raises(InputError, match="ranks: found 0, expected 1 or more"):
        copeland(np.array([[0.0, 1.0]]))


@pytest.mark.parametrize("seed", range(6))
def test_places_under_readings_are_those_of_each_alone(seed: int) -> None:
    """With ties in the first three ranks (every system twice), which win rates break, and without; with items that a
    system has no value for, and without; the first reading twice, since tests are kept."""
    matrix, names, videos, buckets = drawn_case(seed)
    rng = np.random.default_rng(seed)
    if seed % 2:
        matrix, names = np.concatenate([matrix, matrix]), [*names, *(f"{name} again" for name in names)]
    if seed % 3 == 0:
        matrix[rng.random(matrix.shape) < 0.03] = np.nan
    rows, n, plan = np.concatenate([matrix, np.roll(matrix, 1, axis=0)]), len(matrix), RankingPlan(draws=60)
    n_buckets = int(buckets.max()) + 1
    ranks = BucketRankReadings(rows, videos, buckets, n_buckets, plan)
    drawn = [np.arange(n) + n * rng.integers(0, 2, n) for _ in range(4)]
    for reading in (*drawn, drawn[0]):
        whole = rank_buckets(rows[reading], names, videos, buckets, [str(one) for one in range(n_buckets)], plan)
        expected = {one.name: one.rank for one in whole.systems}
        assert ranks.of(reading.tolist(), reading.tolist()) == [expected[name] for name in names]
        few = rng.choice(n, 2, replace=False)
        found = ranks.of(reading.tolist(), reading[few].tolist())
        assert [found[k] for k in few] == [expected[names[k]] for k in few]


def test_a_system_without_any_value_stands_last_without_a_mean() -> None:
    right = np.array([[1.0, 0.0] * 12, [np.nan] * 24])
    first, last = rank_buckets(
        right, ["a", "b"], np.repeat(np.arange(12), 2), [0] * 24, ["all"], RankingPlan(draws=100)
    ).systems
    assert (first.name, first.mean, first.win_rate, first.rank_low) == ("a", 0.5, 1.0, 1)
    assert (last.rank, last.scores, last.ranks) == (2, (None,), (None,))
    assert (last.mean, last.win_rate, last.mean_rank, last.rank_low, last.rank_high) == (None,) * 5

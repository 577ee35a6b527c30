"""The steps of the FOCUS ranking against plain code written from the challenge's document: enumeration, loops,
fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.stats import RankingPlan, Standings, rank_buckets

ALPHA = Fraction(1, 20)
Marks = dict[str, list[float | None]]


def flips(differences: list[int]) -> Fraction:
    """The share of all sign patterns whose sum is at least as far from 0: each group's names could be exchanged."""
    observed = abs(sum(differences))
    patterns = list(product((1, -1), repeat=len(differences)))
    extreme = sum(abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed for signs in patterns)
    return Fraction(extreme, len(patterns))


def holm_of(p: dict[Any, Fraction]) -> dict[Any, Fraction]:
    adjusted, highest = {}, Fraction(0)
    for position, key in enumerate(sorted(p, key=lambda one: p[one])):
        highest = max(highest, min(Fraction(1), (len(p) - position) * p[key]))
        adjusted[key] = highest
    return adjusted


def bucket_rank(marks: Marks, video: list[int], inside: list[int], correction: str) -> dict[str, int] | None:
    """Step 1 in one bucket: ranks by accuracy, adjusted so that what is not significantly better shares a rank."""
    if not inside:
        return None
    p, ahead, share = {}, {}, {}
    for name, own in marks.items():
        known = [int(mark) for k in inside if (mark := own[k]) is not None]
        share[name] = Fraction(sum(known), len(known))
    for one, other in combinations(marks, 2):
        both = [k for k in inside if marks[one][k] is not None and marks[other][k] is not None]
        by_video: dict[int, int] = {}
        for k in both:
            apart = int(marks[one][k] or 0) - int(marks[other][k] or 0)
            by_video[video[k]] = by_video.get(video[k], 0) + apart
        p[one, other] = flips(list(by_video.values()))
        ahead[one, other] = sum(by_video.values())
    p = holm_of(p) if correction == "holm" else p
    count = dict.fromkeys(marks, 1)
    for (one, other), value in p.items():
        if value <= ALPHA and ahead[one, other]:
            count[other if ahead[one, other] > 0 else one] += 1
    return {name: max(count[other] for other in marks if share[other] >= share[name]) for name in marks}


def board(marks: Marks, video: list[int], bucket: list[int], n_buckets: int, correction: str) -> dict[str, Any]:
    """Steps 1 and 2: the ranks in every bucket and Copeland's score."""
    ranks = [
        bucket_rank(marks, video, [k for k, own in enumerate(bucket) if own == b], correction) for b in range(n_buckets)
    ]
    there = [one for one in ranks if one is not None]
    score = dict.fromkeys(marks, 0)
    for one, other in product(marks, repeat=2):
        wins = sum(rank[one] < rank[other] for rank in there)
        losses = sum(rank[one] > rank[other] for rank in there)
        score[one] += (wins > losses) - (wins < losses)
    return {"ranks": ranks, "score": score}


def random_board(seed: int, gaps: bool) -> tuple[Marks, list[int], list[int]]:
    """Up to five systems, two of them twins at times; up to nine videos; now and then a bucket without a question."""
    rng = np.random.default_rng(seed)
    n, items = int(rng.integers(2, 6)), int(rng.integers(30, 120))
    right = (rng.random((n, items)) < rng.uniform(0.05, 0.95, (n, 1))).astype(float)
    if seed % 3 == 0:
        right[1] = right[0]
    marks: Marks = {f"s{k}": [float(value) for value in row] for k, row in enumerate(right)}
    video, bucket = rng.integers(0, 9, items).tolist(), rng.integers(-1, 3, items).tolist()
    if seed % 4 == 0:
        bucket = [-1 if own == 1 else own for own in bucket]
    if gaps:
        for k in np.flatnonzero(rng.random(items) < 0.15):
            marks[f"s{k % n}"][int(k)] = None
    return marks, video, bucket


def matrix_of(marks: Marks) -> NDArray[np.float64]:
    return np.array([[np.nan if value is None else value for value in row] for row in marks.values()])


@pytest.mark.parametrize("correction", ["holm", "none"])
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "with gaps"])
def test_ranks_and_copeland_equal_plain_code(gaps: bool, correction: Any) -> None:
    for seed in range(25):
        marks, video, bucket = random_board(seed, gaps)
        expected = board(marks, video, bucket, 3, correction)
        found = rank_buckets(
            matrix_of(marks), list(marks), video, bucket, list("xyz"), RankingPlan(draws=20, correction=correction)
        )
        for one in found.systems:
            ranks = tuple(None if rank is None else rank[one.name] for rank in expected["ranks"])
            assert (one.ranks, one.score) == (ranks, expected["score"][one.name]), (seed, one.name)


def test_a_gap_of_one_system_leaves_the_scores_of_all_others_as_they_are() -> None:
    """A saboteur without 90 % of its answers: nobody else's accuracies, p or pairwise wins move."""
    rng = np.random.default_rng(4)
    right = (rng.random((3, 200)) < np.array([[0.9], [0.6], [0.5]])).astype(float)
    video, bucket = rng.integers(0, 12, 200), rng.integers(0, 2, 200)
    torn = right.copy()
    torn[2, rng.random(200) < 0.9] = np.nan

    def of(matrix: NDArray[np.float64]) -> dict[str, Any]:
        found = rank_buckets(matrix, list("abc"), video, bucket, ["x", "y"], RankingPlan(draws=50, correction="none"))
        names = [one.name for one in found.systems]
        i, j = names.index("a"), names.index("b")
        return {one.name: one.scores for one in found.systems if one.name != "c"} | {
            "p": [float(table[i, j]) for table in found.p_values]
        }

    assert of(torn) == of(right)


def found_positions(found: Standings) -> dict[str, tuple[int, bool]]:
    return {one.name: (one.rank, one.tie_broken) for one in found.systems}


@pytest.mark.parametrize(("before", "first"), [(0, 1), (1, 2), (2, 3), (3, 4)])
def test_ties_are_broken_in_the_first_three_ranks_and_no_further(before: int, first: int) -> None:
    """Some that are clearly ahead, and two that can't be told apart behind them: broken where they begin at 1, 2 or
    3."""
    steps = [[1] * (80 - 20 * k) + [0] * (20 * k) for k in range(before)]
    tied = [[1] * 6 + [0] * 74, [1] * 5 + [0] * 75]
    found = rank_buckets(
        np.array([*steps, *tied], dtype=float),
        [*"abc"[:before], "y", "z"],
        range(80),
        [0] * 80,
        ["x"],
        RankingPlan(draws=400),
    )
    broken = first <= 3
    assert found_positions(found)["y"] == (first, broken)
    assert found_positions(found)["z"] == (first + broken, broken)


def test_a_bucket_with_too_few_videos_says_how_small_p_could_become() -> None:
    """Six videos: 2 / 2⁶ = 0.031, with three pairs 0.094. A perfect and an always wrong system share rank 1 there."""
    video, bucket = np.tile(np.arange(6), 4), np.repeat([0, 1], 12)
    video[12:] = np.arange(12)
    right = np.stack([np.ones(24), np.zeros(24), np.tile([1.0, 0.0], 12)])
    found = rank_buckets(right, ["all", "none", "half"], video, bucket, ["few", "more"], RankingPlan(draws=20))
    assert found.bucket_groups == (6, 12)
    assert list(found.reach) == pytest.approx([3 * 2 / 2**6, 3 * 2 / 2**12])
    assert found.powerless(0.05) == {"few": pytest.approx(0.09375)}
    assert {one.name: one.ranks[0] for one in found.systems} == {"all": 1, "none": 1, "half": 1}
    two = rank_buckets(right[:2], ["all", "none"], video, bucket, ["few", "more"], RankingPlan(draws=20))
    assert two.powerless(0.05) == {}
    assert {one.name: one.ranks for one in two.systems} == {"all": (1, 1), "none": (2, 2)}
    assert two.systems[0].score == 1.0
    alone = rank_buckets(right[:1], ["all"], video, bucket, ["few", "more"], RankingPlan(draws=20))
    assert alone.powerless(0.05) == {}


def test_holm_over_the_board_adjusts_over_all_buckets() -> None:
    """7 videos, all one way, in each of four buckets: p = 2/2⁷ = 0.0156 in each, 0.0625 over four."""
    video, bucket = np.tile(np.arange(7), 4), np.repeat(np.arange(4), 7)
    right = np.stack([np.ones(28), np.zeros(28)])
    made: dict[str, Any] = {"draws": 20, "stability": 5}
    each = rank_buckets(right, ["a", "b"], video, bucket, list("wxyz"), RankingPlan(**made))
    board_wide = rank_buckets(
        right, ["a", "b"], video, bucket, list("wxyz"), RankingPlan(correction="holm-board", **made)
    )
    assert {one.name: one.ranks for one in each.systems} == {"a": (1,) * 4, "b": (2,) * 4}
    assert {one.ranks for one in board_wide.systems} == {(1,) * 4}
    assert [float(table[0, 1]) for table in board_wide.p_values] == pytest.approx([4 * 2 / 2**7] * 4)
    assert set(board_wide.powerless(0.05)) == set("wxyz")


def test_equal_systems_and_holm_over_the_board_part_seldom() -> None:
    """Two equal systems in ten buckets: adjusted within each bucket some bucket parts them on about a third of the
    boards; adjusted over the board on one in twenty at most."""
    rng = np.random.default_rng(8)
    video, bucket = np.repeat(np.arange(16), 30), np.tile(np.repeat(np.arange(10), 3), 16)
    parted = {"holm": 0, "holm-board": 0}
    for _ in range(60):
        lean = rng.beta(1.0, 1.0, (2, 16))[:, video]
        right = (rng.random((2, 480)) < lean).astype(float)
        corrections: tuple[Any, ...] = ("holm", "holm-board")
        for correction in corrections:
            found = rank_buckets(
                right,
                ["a", "b"],
                video,
                bucket,
                [str(k) for k in range(10)],
                RankingPlan(draws=1, correction=correction),
            )
            parted[correction] += found.systems[0].score != found.systems[1].score
    assert parted["holm"] / 60 > 0.15
    assert parted["holm-board"] / 60 <= 0.1

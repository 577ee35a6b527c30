"""Two annotators' boxes and moments: pairs, F1 and intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from proctor.core import InputError
from proctor.stats import Estimate, Resampling, box_agreement, time_agreement, times_paired
from tests.support.simulation import assert_share
from tests.support.simulation import repetitions as simulated

PLAN = Resampling(draws=100)
Box = tuple[float, float, float, float]
UNIT: Box = (0.0, 0.0, 1.0, 1.0)


def most_pairs(near: list[list[bool]]) -> int:
    """The largest number of pairs one to one, by scipy's assignment."""
    table = np.array(near, dtype=float)
    rows, columns = linear_sum_assignment(-table)
    return int(table[rows, columns].sum())


def overlap(one: Box, other: Box) -> float:
    """Intersection over union, counted in cells of a grid of whole numbers."""
    cells = [
        {(x, y) for x in range(int(box[0]), int(box[2])) for y in range(int(box[1]), int(box[3]))}
        for box in (one, other)
    ]
    return len(cells[0] & cells[1]) / len(cells[0] | cells[1])


def test_boxes_by_hand() -> None:
    # Frame 1: of two and one boxes one pair (overlap 12 / 16). Frame 2: half of the box is exactly 0.5, a pair.
    # Frame 3: 0.25, none. 2 · 2 pairs of (2 + 1) + (1 + 1) + (1 + 1) boxes.
    first: list[list[Box]] = [[(0, 0, 4, 4), (5, 5, 9, 9)], [UNIT], [UNIT]]
    second: list[list[Box]] = [[(0, 0, 4, 3)], [(0, 0, 1, 0.5)], [(0, 0, 0.5, 0.5)]]
    found = box_agreement(first, second, ["a", "b", "c"], plan=PLAN)
    assert found.value == pytest.approx(4 / 7)
    assert (found.n, found.groups) == (5, 3)  # two pairs, and three boxes without a partner
    assert box_agreement(second, first, ["a", "b", "c"], plan=PLAN) == found
    assert box_agreement(first, second, ["a", "b", "c"], least=0.25, plan=PLAN).value == pytest.approx(6 / 7)
    assert box_agreement(first, second, ["a", "b", "c"], least=0.8, plan=PLAN).value == 0.0


def test_one_box_is_paired_once() -> None:
    # Both of the first annotator's boxes lie on the second's: one pair, 2 · 1 of 3.
    assert box_agreement([[UNIT, UNIT]], [[UNIT]], ["a"]).value == pytest.approx(2 / 3)
    # The greedy choice (the largest overlap first) finds one pair here, and there are two.
    first, second = [(0, 10), (4, 14)], [(3, 13), (6.5, 16.5)]
    assert box_agreement([first], [second], ["a"], least=0.5).value == 1.0


def test_the_longest_chain_of_exchanges_is_followed() -> None:
    # Each interval overlaps its like and the neighbours on both sides; the last pair needs all others to move by one.
    chain = [(float(k), float(k + 2)) for k in range(500)]
    assert box_agreement([chain[::-1]], [chain], ["a"], least=0.3).value == 1.0


@pytest.mark.parametrize("seed", range(30))
def test_as_many_boxes_are_paired_as_can_be(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def boxes() -> list[Box]:
        corners = rng.integers(0, 6, (int(rng.integers(1, 8)), 2))
        sizes = rng.integers(2, 5, corners.shape)
        return [(float(x), float(y), float(x + w), float(y + h)) for (x, y), (w, h) in zip(corners, sizes, strict=True)]

    first, second = boxes(), boxes()
    pairs = most_pairs([[overlap(one, other) >= 0.3 for other in second] for one in first])
    found = box_agreement([first], [second], ["a"], least=0.3)
    assert found.value == pytest.approx(2 * pairs / (len(first) + len(second)))


def test_times_by_hand() -> None:
    # 10 with 11, 62.5 with 61 (1.5 apart); 70 alone: 4 of 5. With a second: 10 with 11 only, 2 of 5.
    first, second = [[62.5, 10.0]], [[11.0, 70.0, 61.0]]
    assert time_agreement(first, second, ["a"], tolerance=2).value == 0.8
    assert time_agreement(first, second, ["a"], tolerance=1).value == 0.4
    assert time_agreement(first, second, ["a"], tolerance=0).value == 0.0
    # 1.3 − 1.0 is a little more than 0.3 in binary, and is 0.3.
    assert time_agreement([[1.3]], [[1.0]], ["a"], tolerance=0.3).value == 1.0
    assert times_paired([1.0, 2.0, 3.0], [4.0, 3.0, 2.0], 1.0) == 3
    assert times_paired([], [1.0], 1.0) == 0
    # One mark of the second stands for one of the first alone.
    assert time_agreement([[1.0, 1.1, 1.2]], [[1.1]], ["a"], tolerance=1).value == 0.5


@pytest.mark.parametrize("seed", range(30))
def test_as_many_times_are_paired_as_can_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (rng.integers(0, 40, rng.integers(1, 12)).astype(float).tolist() for _ in range(2))
    pairs = most_pairs([[abs(one - other) <= 3 for other in second] for one in first])
    found = time_agreement([first], [second], ["a"], tolerance=3)
    assert found.value == pytest.approx(2 * pairs / (len(first) + len(second)))


def test_entries_without_anything_say_nothing() -> None:
    nothing = Estimate(None, None, None, 0, 0)
    assert box_agreement([], [], []) == nothing
    assert box_agreement([[], []], [[], []], ["a", "b"]) == nothing
    assert time_agreement([[]], [[]], ["a"], tolerance=1) == nothing
    groups = [str(k) for k in range(30)]
    some = [[UNIT]] * 10 + [[]] * 20
    found = box_agreement(some, [*some[:9], [], *some[10:]], groups, plan=PLAN)
    assert found.value == pytest.approx(18 / 19)
    assert (found.n, found.groups) == (10, 10)
    alone = box_agreement(some[:10], [*some[:9], []], groups[:10], plan=PLAN)
    assert found == alone


def test_full_agreement_in_few_videos_is_no_certainty() -> None:
    found = time_agreement([[1.0]] * 5, [[1.0]] * 5, list("abcde"), tolerance=0, plan=PLAN)
    assert (found.value, found.ci_high) == (1.0, 1.0)
    least = 0.025 ** (1 / 5)  # of five pairs all were found: Clopper and Pearson's limit of the share, as F1
    assert found.ci_low == pytest.approx(2 * least / (1 + least), abs=1e-6)
    assert time_agreement([[1.0]] * 2, [[1.0]] * 2, list("aa"), tolerance=0, plan=PLAN).ci_low is None


def test_errors() -> None:
    with pytest.raises(InputError, match=r"^entries: found 1 and 2, expected pairs$"):
        box_agreement([[]], [[], []], ["a"])
    with pytest.raises(InputError, match=r"^groups: found 1 label, expected 2, one per item$"):
        box_agreement([[], []], [[], []], ["a"])
    with pytest.raises(InputError, match=r"^least: found 0, expected an overlap above 0, up to 1$"):
        box_agreement([], [], [], least=0)
    for box in ((1, 0, 0, 1), (0, 0, 1), ()):
        with pytest.raises(InputError, match=r"^entry 0: found \[.*\], expected lower ends, then upper ends that are"):
            box_agreement([[]], [[box]], ["a"])
    with pytest.raises(InputError, match=r"^entry 0, end 1: found nan, expected a finite number$"):
        box_agreement([[(0, float("nan"), 1, 1)]], [[]], ["a"])
    with pytest.raises(InputError, match=r"^entry 1: found 501 boxes, expected at most 500$"):
        box_agreement([[], [UNIT] * 501], [[], []], ["a", "b"])
    with pytest.raises(InputError, match=r"^tolerance: found -1, expected seconds, 0 or more$"):
        time_agreement([], [], [], tolerance=-1)
    with pytest.raises(InputError, match=r"^time 1: found inf, expected a finite number$"):
        time_agreement([[0, float("inf")]], [[]], ["a"], tolerance=1)


@pytest.mark.simulation
@pytest.mark.parametrize("n_groups", [12, 40])
def test_intervals_hold_the_truth(n_groups: int) -> None:
    """Videos differ in how many events they have and in how often an annotator misses one."""
    rng = np.random.default_rng(n_groups)
    seen = np.array([0.95, 0.6])
    truth = float((seen**2).mean() / seen.mean())
    held, full = 0, simulated(400)
    for _ in range(full):
        events, chance = rng.geometric(1 / 6, n_groups), rng.choice(seen, n_groups)
        marked = [
            [(10.0 * np.flatnonzero(rng.random(n) < share)).tolist() for n, share in zip(events, chance, strict=True)]
            for _ in range(2)
        ]
        groups = [str(group) for group in range(n_groups)]
        found = time_agreement(marked[0], marked[1], groups, tolerance=1, plan=Resampling(draws=300))
        assert found.ci_low is not None
        assert found.ci_high is not None
        held += found.ci_low <= truth <= found.ci_high
    assert_share(held, full, 0.92, 0.99)

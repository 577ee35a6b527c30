"""The paired test and the differences: worked by hand, against enumeration, scipy and an exact programme."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from proctor.core import InputError
from proctor.stats import (
    Difference,
    Floats,
    Ints,
    Resampling,
    can_decide,
    holm,
    mean_interval,
    paired_difference,
    paired_differences,
    sums_difference,
)
from proctor.stats.signflip import _at_most, _tilted, accepted_shifts, sign_flip
from tests.support.simulation import assert_share, repetitions


def slow_p(differences: Floats) -> float:
    """All sign patterns, one by one."""
    observed = abs(sum(differences))
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    extreme: int = sum(
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed - 1e-9 for signs in patterns
    )
    return extreme / len(patterns)


def exact_p(differences: Floats) -> float:
    """For whole numbers: the distribution of Σ ±d by adding one group after the other."""
    reach = int(np.abs(differences).sum())
    chance = np.zeros(2 * reach + 1)
    chance[reach] = 1.0
    for one in np.abs(differences).astype(int):
        chance = (np.roll(chance, one) + np.roll(chance, -one)) / 2
    sums = np.arange(-reach, reach + 1)
    return float(chance[np.abs(sums) >= abs(int(differences.sum()))].sum())


def test_by_hand() -> None:
    # groups' differences 1, 1, 0: of the patterns ±1 ±1 two of four reach 2
    found = paired_difference([1, 1, 1, 0], [0, 1, 0, 0], ["v1", "v1", "v2", "v3"])
    assert found.value == 0.5
    assert found.p == 0.5
    assert (found.n, found.groups, found.wins, found.losses, found.ties) == (4, 3, 2, 0, 2)


def test_positive_means_a_is_better_and_the_mirror_image() -> None:
    rng = np.random.default_rng(0)
    a, b, groups = rng.random(60), rng.random(60) - 0.3, np.arange(60) % 12
    one, other = paired_difference(a, b, groups), paired_difference(b, a, groups)
    assert one.value is not None
    assert other.value is not None
    assert one.value > 0
    assert other.value == pytest.approx(-one.value)
    assert one.p == other.p
    assert (one.wins, one.losses) == (other.losses, other.wins)


def test_interval_is_about_that_of_the_mean_of_the_differences() -> None:
    """With many groups the test's interval and the bootstrap's of the same mean are nearly the same."""
    rng = np.random.default_rng(1)
    a, b, groups = rng.integers(0, 2, 300), rng.integers(0, 2, 300), rng.integers(0, 40, 300)
    found = paired_difference(a, b, groups, Resampling(draws=20_000, bounds=(0, 1)))
    alone = mean_interval(a - b, groups, Resampling(draws=20_000, bounds=(-1, 1)))
    assert found.value == pytest.approx(alone.value)
    assert (found.ci_low, found.ci_high) == pytest.approx((alone.ci_low, alone.ci_high), abs=0.004)


@pytest.mark.parametrize("two_level", [False, True])
def test_edges(two_level: bool) -> None:
    assert paired_difference([], [], [], Resampling(two_level=two_level)) == Difference(
        None, None, None, None, 0, 0, 0, 0, 0
    )
    one = paired_difference([1, 1], [0, 1], ["v", "v"], Resampling(two_level=two_level))
    assert one == Difference(0.5, None, None, None, 2, 1, 1, 0, 1)
    same = paired_difference([1, 0, 1], [1, 0, 1], list("abc"), Resampling(two_level=two_level))
    assert same == Difference(0, None, None, 1, 3, 3, 0, 0, 3)
    constant = paired_difference([2, 3, 4], [1, 2, 3], list("abc"), Resampling(two_level=two_level))
    assert constant == Difference(1, None, None, 0.25, 3, 3, 3, 0, 0)
    assert paired_differences([[1, 2]], ["a", "b"], Resampling(two_level=two_level)) == []


def test_a_constant_difference_with_crumbs() -> None:
    a = np.arange(40) / 7
    found = paired_difference(a + 0.1, a, np.arange(40) % 20)
    assert found.value == pytest.approx(0.1)
    assert (found.ci_low, found.ci_high) == (None, None)
    assert paired_difference(a + 0.1, a, np.arange(40) % 20, Resampling(bounds=(0, 6))).ci_low is not None
    assert found.p == pytest.approx(2.0**-19)


def test_no_difference_is_no_certainty() -> None:
    marks, groups = np.arange(50) % 2, np.repeat(np.arange(5), 10)
    same = paired_difference(marks, marks, groups, Resampling(bounds=(0, 1)))
    unseen = 1 - 0.025 ** (1 / 5)
    assert (same.value, same.p) == (0, 1)
    assert (same.ci_low, same.ci_high) == pytest.approx((-unseen, unseen))
    half = paired_difference([1, 1] * 5, [1, 0] * 5, np.repeat(range(5), 2), Resampling(bounds=(0, 1)))
    assert (half.value, half.p) == (0.5, 0.0625)
    assert (half.ci_low, half.ci_high) == pytest.approx((0.5 - 1.5 * unseen, 0.5 + 0.5 * unseen))


def accepted(apart: Floats, sizes: Floats, level: float = 0.95, draws: int = 2000) -> tuple[float, float]:
    p = sign_flip(apart[:, None])
    low, high = accepted_shifts(apart[:, None], sizes[:, None], p, level, draws, 0)
    return float(low[0]), float(high[0])


def test_the_accepted_shifts_by_hand() -> None:
    """Six groups: of 32 splits two may be rejected at 5 %, that in all and none, and at most half of another. So the ends
    are the lowest and the highest value that any split has δ up to: of one group alone."""
    sizes = np.array([1.0, 2.0, 1.0, 1.0, 4.0, 1.0])
    assert accepted(np.array([1.0, 1.0, 0.0, 1.0, 2.0, 1.0]), sizes) == (0.0, 1.0)
    assert accepted(np.array([1.0, 1.0, 0.25, 1.0, 2.0, 1.0]), sizes) == (0.25, 1.0)  # p = 2 / 64 excludes 0
    assert np.isnan(accepted(np.ones(5), np.ones(5))).all()


@pytest.mark.parametrize("n_groups", [6, 8, 10])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_the_accepted_shifts_are_those_that_the_test_accepts(n_groups: int, level: float) -> None:
    """All patterns of apart − δ · size, just inside and just outside of both ends."""
    for seed in range(8):
        rng = np.random.default_rng([n_groups, seed])
        sizes = rng.integers(1, 6, n_groups).astype(float)
        apart = np.round(rng.normal(0.3, 1, n_groups) * sizes, 1)
        apart *= np.sign(apart.sum()) or 1
        low, high = accepted(apart, sizes, level)
        for end, inwards in ((low, 1e-6), (high, -1e-6)):
            inside, outside = (all_patterns_p(apart - (end + step) * sizes) for step in (inwards, -inwards))
            assert outside <= 1 - level + 1e-9 < inside, (seed, low, high)


def test_the_accepted_shifts_of_many_groups_are_close() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 9, 40).astype(float)
        apart = np.abs(rng.normal(0.4, 1, 40)) * sizes * rng.choice([1, 1, -1], 40)
        apart *= np.sign(apart.sum())
        for end in accepted(apart, sizes, draws=20_000):
            assert sign_flip((apart - end * sizes)[:, None])[0] == pytest.approx(0.05, abs=0.006)


def _table(rng: np.random.Generator) -> tuple[Floats, Floats, Ints]:
    """Two systems: independent, or one that answers some again; 0 or 1, halves or numbers; groups of unequal size."""
    n_groups = int(rng.integers(2, 40))
    groups = np.repeat(np.arange(n_groups), rng.integers(1, int(rng.integers(2, 12)), n_groups))
    n, kind = len(groups), rng.integers(4)
    a = (rng.random(n) < rng.random()).astype(float)
    b = (rng.random(n) < rng.random()).astype(float)
    if kind == 1:
        b = np.where(rng.random(n) < rng.choice([0.02, 0.1, 0.4]), b, a)
    if kind == 2:
        a = rng.random(n)
        b = np.clip(a + rng.normal(rng.normal(0, 0.1), 0.2, n), 0, 1)
    if kind == 3:
        a, b = rng.integers(0, 3, (2, n)) / 2
    return a, b, groups


def test_interval_and_test_never_contradict_each_other() -> None:
    rng = np.random.default_rng(11)
    for number in range(600):
        a, b, groups = _table(rng)
        level = float(rng.choice([0.95, 0.9, 0.99]))
        bounds = (0, 1) if number % 4 else None
        found = paired_difference(
            a, b, groups, Resampling(draws=200, level=level, bounds=bounds, two_level=number % 9 == 0)
        )
        if found.ci_low is None or found.ci_high is None or found.p is None or found.value is None:
            assert bounds is None
            continue
        assert (found.ci_low <= 0 <= found.ci_high) == (found.p > 1 - level + 1e-12), found
        assert found.ci_low <= found.value <= found.ci_high, found
        assert found.ci_low < found.ci_high, found
        if bounds:
            assert found.ci_low >= -1
            assert found.ci_high <= 1


def _f1(sums: Floats) -> Floats:
    bottom = 2 * sums[:, 0] + sums[:, 1]
    found: Floats = np.divide(2 * sums[:, 0], bottom, out=np.full(len(sums), np.nan), where=bottom > 0)
    return found


def test_interval_and_test_of_sums_never_contradict_each_other() -> None:
    rng, seen = np.random.default_rng(12), 0
    for _ in range(120):
        a, b, groups = _table(rng)
        there = rng.random(len(a)) < 0.4
        first, second = (np.stack([there * (one > 0.5), there != (one > 0.5)], axis=1).astype(float) for one in (a, b))
        found = sums_difference(first, second, groups, _f1, plan=Resampling(draws=100, bounds=(0, 1)))
        if found.ci_low is None or found.ci_high is None or found.p is None:
            continue
        seen += 1
        assert (found.ci_low <= 0 <= found.ci_high) == (found.p > 0.05 + 1e-12), found
    assert seen > 90


def test_few_groups_decide_nothing_and_the_interval_says_so() -> None:
    """With five groups no p is below 0.0625, and the interval contains 0 even if the one is always right, the other never.
    With six it does not."""
    assert [can_decide(number) for number in (0, 1, 5, 6)] == [False, False, False, True]
    for number in range(2, 9):
        groups = np.repeat(np.arange(number), 4)
        found = paired_difference(np.ones(4 * number), np.zeros(4 * number), groups, Resampling(bounds=(0, 1)))
        unseen = 1 - 0.025 ** (1 / number)
        assert found.ci_low == pytest.approx(1 - 2 * unseen if number < 6 else max(1 - 2 * unseen, 0.5))
        assert found.ci_high == 1
        assert ((found.ci_low or 0) > 0) == can_decide(number)


def test_thoracic_of_the_published_answers_is_no_certainty() -> None:
    """20 items in 5 videos, +25 points, p 0.063: the interval was 16.9 to 33.3."""
    a, b = np.ones(20), np.tile([1.0, 1.0, 1.0, 0.0], 5)
    found = paired_difference(a, b, np.repeat(np.arange(5), 4), Resampling(bounds=(0, 1)))
    assert (found.value, found.p) == (0.25, 0.0625)
    assert found.ci_low == pytest.approx(0.25 - 1.25 * (1 - 0.025**0.2))


def test_the_sixth_video_that_differs_is_no_cliff() -> None:
    """Errors of the second system, one per video of six questions: the upper end was 9.2 points with five, 4.3 with six."""
    ends = []
    for errors in range(16):
        b = np.ones(47 * 6)
        b[np.arange(errors) * 6] = 0
        ends.append(paired_difference(np.ones(47 * 6), b, np.repeat(np.arange(47), 6), Resampling(bounds=(0, 1))))
    assert all((one.ci_high or 0) < (other.ci_high or 0) for one, other in itertools.pairwise(ends))
    assert all((one.ci_low or 0) < (other.ci_low or 0) + 1e-9 for one, other in itertools.pairwise(ends))


@pytest.mark.simulation
@pytest.mark.parametrize("n_groups", [6, 10, 24, 50, 100])
@pytest.mark.parametrize("case", ["rare", "alike", "apart"])
def test_intervals_of_differences_cover(n_groups: int, case: str) -> None:
    """5 against 2 % errors (the interval of the bootstrap held the truth in 90 to 92 of 100), and larger differences."""
    first, second, alike = {"rare": (0.95, 0.98, 0.2), "alike": (0.6, 0.6, 0.7), "apart": (0.7, 0.5, 0.3)}[case]
    rng, held, count = np.random.default_rng(n_groups), 0, repetitions(400)
    for _ in range(count):
        groups = np.repeat(np.arange(n_groups), rng.geometric(1 / 8, n_groups))
        strength = 1 / alike - 1
        a, b = (
            rng.random(len(groups)) < rng.beta(mean * strength, (1 - mean) * strength, n_groups)[groups]
            for mean in (first, second)
        )
        found = paired_difference(a, b, groups, Resampling(draws=400, bounds=(0, 1)))
        assert found.ci_low is not None
        assert found.ci_high is not None
        held += found.ci_low <= first - second <= found.ci_high
    assert_share(held, count, 0.93, 1.0)


def test_the_interval_is_the_pairs_own_and_the_mirror_image() -> None:
    rng = np.random.default_rng(7)
    groups = rng.integers(0, 40, 300)
    for marks in (rng.integers(0, 2, (6, 300)).astype(float), rng.random((6, 300))):
        one = paired_difference(marks[0], marks[1], groups, Resampling(bounds=(0, 1)))
        other = paired_difference(marks[1], marks[0], groups, Resampling(bounds=(0, 1)))
        among = paired_differences(marks, groups, Resampling(bounds=(0, 1)))[0].difference
        assert one.ci_low is not None
        assert one.ci_high is not None
        assert (other.ci_low, other.ci_high) == pytest.approx((-one.ci_high, -one.ci_low), abs=1e-12)
        assert (among.ci_low, among.ci_high) == pytest.approx((one.ci_low, one.ci_high), abs=1e-12)


def test_many_equal_systems_many_groups() -> None:
    same = np.tile(np.arange(60) % 2, (3, 1))
    assert [pair.difference.p for pair in paired_differences(same, np.arange(60))] == [1.0] * 3


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]), min_size=2, max_size=9))
def test_few_groups_go_through_all_patterns(differences: list[float]) -> None:
    column = np.array(differences)
    assert sign_flip(column[:, None])[0] == pytest.approx(slow_p(column))


def test_agrees_with_scipy() -> None:
    column = np.random.default_rng(0).normal(0.5, 1, 12)
    other = reference.permutation_test((column,), np.sum, permutation_type="samples", n_resamples=10**6)
    assert sign_flip(column[:, None])[0] == pytest.approx(other.pvalue)


@pytest.mark.parametrize(("n_groups", "shift"), [(20, 0.7), (30, 0.3), (30, 1.5), (200, 0.1), (200, 1.0)])
@pytest.mark.parametrize("scale", [1.0, 0.25, 1 / 3, 1e-5])
def test_more_groups_are_exact_too(n_groups: int, shift: float, scale: float) -> None:
    column = np.round(np.random.default_rng(n_groups).normal(shift * 3, 3, n_groups))
    assert sign_flip(scale * column[:, None])[0] == pytest.approx(exact_p(column), rel=1e-9)


def all_patterns_p(differences: Floats) -> float:
    """Every sign pattern at once."""
    signs = ((np.arange(2 ** len(differences))[:, None] >> np.arange(len(differences))) & 1) * 2.0 - 1
    observed = abs(differences.sum()) - 1e-9 * np.abs(differences).sum()
    return float((np.abs(signs @ differences) >= observed).mean())


@pytest.mark.parametrize("parts", [[2], [3], [4], [2, 3, 4], [7, 11, 13]])
@pytest.mark.parametrize("n_groups", [8, 15, 18])
def test_fractions_are_exact(parts: list[int], n_groups: int) -> None:
    """Halves, thirds, quarters, and such as hardly have a common measure."""
    rng = np.random.default_rng([n_groups, len(parts)])
    for shift in (0, 2, 6):
        column = rng.integers(shift - 5, shift + 6, n_groups) / rng.choice(parts, n_groups)
        assert sign_flip(column[:, None])[0] == pytest.approx(all_patterns_p(column), rel=1e-9)


def test_halves_are_what_whole_marks_are() -> None:
    """19 groups, 14 in favour, one against: half marks had a p smaller by two thirds."""
    column = np.array([1.0] * 14 + [-1.0] + [0.0] * 4)
    assert sign_flip(column[:, None])[0] == pytest.approx(0.0009765625)
    assert sign_flip(column[:, None] / 2)[0] == sign_flip(column[:, None])[0]


def test_differences_without_a_common_measure() -> None:
    """Of up to 28 groups the share is exact; of more it is that of rounded ones, and errs upwards a little."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        column = rng.normal(0.4, 1, 18)
        assert sign_flip(column[:, None])[0] == pytest.approx(all_patterns_p(column), rel=1e-9)
        many = np.concatenate([column / 7 + 0.001 * np.pi, rng.normal(0.2, 1, 22)])
        found, drawn = sign_flip(many[:, None])[0], 200_000
        signs = 2.0 * rng.integers(0, 2, (drawn, len(many))) - 1
        share = (np.abs(signs @ many) >= abs(many.sum())).mean()
        assert share - 4 * np.sqrt(share / drawn) <= found <= 1.01 * share + 4 * np.sqrt(share / drawn)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=120), st.floats(0.01, 0.99))
def test_the_tilted_transform_is_the_convolution(multiples: list[int], share: float) -> None:
    sizes = np.array(multiples)
    most = max(1, int(share * (sizes.sum() - 1) / 2))
    value, times = np.unique(sizes, return_counts=True)
    tilted = _tilted(value.astype(float), times.astype(float), most)
    assert tilted == pytest.approx(_at_most(sizes, most), rel=1e-10, abs=1e-300)


def test_thousands_of_groups() -> None:
    """A sign test where all differ by one: the exact binomial tail."""
    column = np.repeat([1.0, -1.0, 0.0], [5200, 4900, 300])
    exact = reference.binomtest(4900, 10_100).pvalue
    assert sign_flip(column[:, None])[0] == pytest.approx(exact, rel=1e-9)
    mixed = np.concatenate([column, np.repeat([2.0, -2.0, 3.0], [900, 880, 40])])
    ones, twos, threes = (reference.binom(n, 0.5) for n in (10_100, 1780, 40))
    drawn = np.random.default_rng(0)
    sums = [2 * k * one.rvs(400_000, random_state=drawn) for k, one in ((1, ones), (2, twos), (3, threes))]
    share = (np.abs(sum(sums) - np.abs(mixed).sum()) >= mixed.sum()).mean()
    assert sign_flip(mixed[:, None])[0] == pytest.approx(share, abs=4 * np.sqrt(share / 400_000))


def test_p_depends_on_nothing_but_the_pair() -> None:
    """Not on the seed, on which other systems are in the table, on the direction, or on names and order."""
    rng = np.random.default_rng(3)
    for marks in (rng.integers(0, 2, (6, 300)).astype(float), rng.random((6, 300))):
        groups = rng.integers(0, 40, 300)
        both = paired_difference(marks[0], marks[1], groups, Resampling(draws=10)).p
        assert paired_difference(marks[1], marks[0], groups, Resampling(draws=10, seed=9)).p == both
        assert paired_differences(marks, groups, Resampling(draws=10))[0].difference.p == both
        order = rng.permutation(300)
        renamed = [f"v{-one}" for one in groups[order]]
        assert paired_difference(marks[0][order], marks[1][order], renamed, Resampling(draws=10)).p == both


def test_p_is_never_0() -> None:
    assert sign_flip(np.ones((5, 1)))[0] == 2 / 2**5
    assert sign_flip(np.ones((30, 1)))[0] == pytest.approx(2.0**-29)
    assert 0 < sign_flip(np.ones((3000, 1)))[0] < 1e-300


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), st.floats(-2, 2))
def test_p_is_a_share(seed: int, n_groups: int, shift: float) -> None:
    columns = np.random.default_rng(seed).normal(shift, 1, (n_groups, 3)) * [1, 0, 1e-9]
    p = sign_flip(columns)
    assert ((p > 0) & (p <= 1)).all()
    assert p[1] == 1


def test_all_pairs_are_what_each_would_be_alone() -> None:
    rng = np.random.default_rng(5)
    matrix, groups = rng.integers(0, 3, (4, 90)).astype(float), rng.integers(0, 9, 90)
    pairs = paired_differences(matrix, groups, Resampling(draws=4000))
    assert [(pair.first, pair.second) for pair in pairs] == list(itertools.combinations(range(4), 2))
    for pair in pairs:
        a, b = matrix[pair.first], matrix[pair.second]
        alone = paired_difference(a, b, groups, Resampling(draws=4000))
        found = pair.difference
        assert found.value == pytest.approx((a - b).mean())
        assert (found.wins, found.losses, found.ties) == ((a > b).sum(), (a < b).sum(), (a == b).sum())
        assert found.p == alone.p
        assert (found.ci_low, found.ci_high) == pytest.approx((alone.ci_low, alone.ci_high), abs=0.03)
    p = [pair.difference.p for pair in pairs if pair.difference.p is not None]
    assert [pair.p_holm for pair in pairs] == pytest.approx(holm(p))


@pytest.mark.parametrize("two_level", [False, True])
@pytest.mark.parametrize("n_groups", [9, 25, 5000])
def test_order_and_names_do_not_matter(n_groups: int, two_level: bool) -> None:
    rng = np.random.default_rng(8)
    n = max(100, 2 * n_groups)
    matrix, groups = rng.random((3, n)), rng.integers(0, n_groups, n)
    first = paired_differences(matrix, groups, Resampling(draws=100, two_level=two_level))
    assert first == paired_differences(matrix, groups, Resampling(draws=100, two_level=two_level))
    shuffled = rng.permutation(n)
    renamed = [f"video {(7 * group) % 9973}" for group in groups[shuffled]]
    second = paired_differences(matrix[:, shuffled], renamed, Resampling(draws=100, two_level=two_level))
    assert first == second
    other = paired_differences(matrix, groups, Resampling(draws=100, two_level=two_level, seed=1))
    assert (first != other) == (n_groups > 12 or two_level)  # all splits of up to 12 groups are enumerated


def test_two_levels_are_wider() -> None:
    rng = np.random.default_rng(2)
    a, b, groups = rng.random(2000), rng.random(2000), np.arange(2000) % 100
    one = paired_difference(a, b, groups, Resampling(method="percentile"))
    two = paired_difference(a, b, groups, Resampling(method="percentile", two_level=True))
    widths = [d.ci_high - d.ci_low for d in (one, two) if d.ci_high is not None and d.ci_low is not None]
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(2), rel=0.12)


def test_errors() -> None:
    with pytest.raises(InputError, match=r"^values: found 1 and 2, expected pairs$"):
        paired_difference([1], [1, 2], ["a"])
    with pytest.raises(InputError, match=r"^b's value 0: found nan, expected a finite number$"):
        paired_difference([1], [float("nan")], ["a"])
    with pytest.raises(InputError, match=r"^system 1, value 1: found nan, expected a finite number$"):
        paired_differences([[1, 1], [1, float("nan")]], ["a", "b"])
    with pytest.raises(InputError, match=r"^system 0: found 2 values, expected 1, one per item$"):
        paired_differences([[1, 1]], ["a"])
    with pytest.raises(InputError, match=r"^value 0: found 2, expected a number from 0 to 1$"):
        paired_differences([[2, 1], [1, 1]], ["a", "b"], Resampling(bounds=(0, 1)))


def test_a_test_that_is_known_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups in another order and systems the other way round are the same test; another difference is another."""
    column = np.array([3.0, -1.0, 0.5, 2.0, 7.0, 1.0])
    first = sign_flip(column[:, None])
    monkeypatch.setattr("proctor.stats.signflip._p", lambda ordered: 2.0)
    same = np.stack([column, column[::-1], -column], axis=1)
    assert sign_flip(same).tolist() == [first[0]] * 3
    assert first.tolist() == [pytest.approx(slow_p(column))]
    assert sign_flip(column[:, None] + 1e-3).tolist() == [2.0]

"""Means with clustered intervals: numbers worked by hand, edges, invariance, slow references, scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from proctor.core import InputError
from proctor.stats import Estimate, Floats, Ints, Resampling, group_codes, mean_interval, slice_means
from proctor.stats.bootstrap import MOST_UNITS, group_units, item_picks, weights
from proctor.stats.clusters import finite, tabulate
from proctor.stats.means import Moments, moments


def moments_of(values: list[float], groups: list[str]) -> Moments:
    codes = group_codes(groups, len(values))
    return moments(tabulate(finite(values), codes, np.zeros(len(values), dtype=np.int64), 1).sums)


def clustered(seed: int, n_groups: int = 30) -> tuple[Floats, Ints]:
    """Binary values in groups of unequal size whose means differ."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.geometric(0.1, n_groups))
    values = (rng.random(len(groups)) < rng.beta(1, 1, n_groups)[groups]).astype(np.float64)
    return values, groups


def ends(estimate: Estimate) -> tuple[float, float]:
    assert estimate.ci_low is not None
    assert estimate.ci_high is not None
    return estimate.ci_low, estimate.ci_high


def test_moments_by_hand() -> None:
    # sizes 3, 2, 1 and totals 2, 1, 0: mean 3/6; total − mean · size = 0.5, 0, −0.5
    known = moments_of([1, 1, 0, 1, 0, 0], ["a", "a", "a", "b", "b", "c"])
    assert known.mean[0] == 0.5
    assert known.n[0] == 6
    assert known.groups[0] == 3
    assert known.spread[0] == pytest.approx(np.sqrt(0.5) / 6)
    assert known.error[0] ** 2 == pytest.approx((0.25 / (1 - 3 / 6) + 0.25 / (1 - 1 / 6)) / 36)
    assert known.skew[0] == 0.0


def test_equal_groups_have_the_textbook_error_and_degrees_of_freedom() -> None:
    known = moments_of([1, 0, 1, 1, 0, 0, 1, 0], list("aabbccdd"))
    means = np.array([0.5, 1, 0, 0.5])
    assert known.error[0] == pytest.approx(means.std(ddof=1) / np.sqrt(4))
    assert known.df[0] == pytest.approx(3)


def test_degrees_of_freedom_as_written_with_matrices() -> None:
    values, groups = clustered(1)
    known = moments_of(values.tolist(), [str(group) for group in groups])
    size = np.bincount(groups).astype(np.float64)
    total = np.bincount(groups, values)
    n, mean = len(values), values.mean()
    rho = ((total - mean * size) ** 2).sum() / (mean * (1 - mean)) - n
    rho = min(1.0, max(0.0, rho / (size * (size - 1)).sum()))
    share = size / n
    a = np.diag((1 - share) ** -0.5) @ (np.eye(len(size)) - np.outer(share, np.ones(len(size))))
    q = a @ np.diag(size + rho * size * (size - 1)) @ a.T
    assert known.df[0] == pytest.approx(np.trace(q) ** 2 / np.trace(q @ q))


def slow_interval(values: Floats, groups: Ints, draws: int, seed: int) -> tuple[float, float]:
    """The expanded BCa interval in plain loops, from the weights that a seed gives."""
    codes = group_codes(groups, len(values))
    items = tabulate(values, codes, np.zeros(len(values), dtype=np.int64), 1)
    per_group = [items.values[items.group == group] for group in range(int(items.group.max()) + 1)]
    means = []
    for row in np.concatenate(list(weights(len(per_group), draws, seed))):
        picked = [value for group, times in enumerate(row) for value in list(per_group[group]) * int(times)]
        means.append(sum(picked) / len(picked))
    mean = values.mean()
    off = [sum(group) - mean * len(group) for group in per_group]
    squared = sum(one**2 for one in off)
    known = moments(items.sums)
    error = np.sqrt(sum(one**2 / (1 - len(g) / len(values)) for one, g in zip(off, per_group, strict=True)))
    z = reference.t.ppf(0.975, known.df[0]) * error / np.sqrt(squared)
    below = sum(one < mean for one in means) + 0.5 * sum(one == mean for one in means)
    bias = reference.norm.ppf(below / draws)
    skew = sum(one**3 for one in off) / squared**1.5 / 6
    tails = [reference.norm.cdf(bias + (bias + s * z) / (1 - skew * (bias + s * z))) for s in (-1, 1)]
    assert min(tails[0], 1 - tails[1]) * draws >= 5
    low, high = np.quantile(means, tails)
    return float(low), float(high)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_interval_agrees_with_plain_loops(seed: int) -> None:
    values, groups = clustered(seed, n_groups=100)
    found = ends(mean_interval(values, groups, Resampling(draws=800, seed=seed)))
    assert found == pytest.approx(slow_interval(values, groups, 800, seed), abs=1e-12)


def test_agrees_with_scipy_for_many_equal_groups() -> None:
    rng = np.random.default_rng(3)
    per_group = rng.gamma(1.0, 1.0, size=(400, 5)) + rng.gamma(1.0, 1.0, size=(400, 1))
    found = ends(mean_interval(per_group.ravel(), np.repeat(np.arange(400), 5), Resampling(draws=20_000)))
    other = reference.bootstrap(
        (per_group.mean(axis=1),), np.mean, method="BCa", n_resamples=20_000, rng=np.random.default_rng(0)
    ).confidence_interval
    width = other.high - other.low
    assert found == pytest.approx((other.low, other.high), abs=0.03 * width)


def test_plain_percentile_agrees_with_numpy() -> None:
    values = np.array([0.0, 1, 1, 3, 5, 2])
    found = mean_interval(values, list("abcdef"), Resampling(draws=999, method="percentile"))
    items = tabulate(values, np.arange(6), np.zeros(6, dtype=np.int64), 1)
    drawn = np.concatenate(list(weights(6, 999, 0)))
    means = drawn @ items.values[np.argsort(items.group)] / 6
    assert ends(found) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=1e-12)


def test_student_takes_over_where_the_bootstrap_cannot_reach() -> None:
    # two groups of one item: no sample of them lies outside 0 to 1, the t interval does
    low, high = ends(mean_interval([0, 1], ["a", "b"]))
    reach = reference.t.ppf(0.975, 1) * 0.5
    assert (low, high) == pytest.approx((0.5 - reach, 0.5 + reach))


def test_bounds_keep_the_interval_inside() -> None:
    values, groups = [0, 0, 1], list("abc")
    assert ends(mean_interval(values, groups))[0] < 0
    low, high = ends(mean_interval(values, groups, Resampling(bounds=(0, 1))))
    clopper_pearson = reference.beta.ppf([0.025, 0.975], [1, 2], [3, 2])
    assert [low, high] == pytest.approx(np.asarray(clopper_pearson).tolist(), abs=1e-6)
    fractions = [0, 0.01, 1]  # not all of them are at a bound
    assert ends(mean_interval(fractions, groups))[0] < 0
    low, high = ends(mean_interval(fractions, groups, Resampling(bounds=(0, 1))))
    assert 0 <= low < 0.05
    assert 0.95 < high <= 1


def test_one_bound_only_cuts() -> None:
    values, groups = [0, 0, 1], list("abc")
    free = ends(mean_interval(values, groups))
    assert ends(mean_interval(values, groups, Resampling(bounds=(0, float("inf"))))) == (0, free[1])
    nothing = mean_interval([0, 0], ["a", "b"], Resampling(bounds=(0, float("inf"))))
    assert nothing == Estimate(0, None, None, 2, 2)


@pytest.mark.parametrize("scale", [1.0, 0.9])
def test_bounds_scale(scale: float) -> None:
    """A share, and a score with values between its bounds."""
    values, groups = clustered(5, n_groups=6)
    values *= scale
    one = ends(mean_interval(values, groups, Resampling(bounds=(0, 1))))
    other = ends(mean_interval(2 * values - 1, groups, Resampling(bounds=(-1, 1))))
    assert other == pytest.approx((2 * one[0] - 1, 2 * one[1] - 1), abs=0.02 if scale < 1 else 1e-6)


def test_all_at_a_bound_by_hand() -> None:
    # four groups are all right with probability 0.025 where a group is right with 0.025^(1/4)
    right = mean_interval([1] * 8, list("aabbccdd"), Resampling(bounds=(0, 1)))
    assert ends(right) == pytest.approx((0.025**0.25, 1))
    nothing = mean_interval([0] * 8, list("aabbccdd"), Resampling(bounds=(0, 2)))
    assert ends(nothing) == pytest.approx((0, 2 * (1 - 0.025**0.25)))


def test_edges() -> None:
    assert mean_interval([], []) == Estimate(None, None, None, 0, 0)
    assert mean_interval([0.5], ["a"]) == Estimate(0.5, None, None, 1, 1)
    assert mean_interval([1, 0], ["a", "a"]) == Estimate(0.5, None, None, 2, 1)
    assert mean_interval([3, 3, 3], ["a", "b", "b"]) == Estimate(3, None, None, 3, 2)
    assert mean_interval([1, 0, 1, 0], list("aabb")) == Estimate(0.5, None, None, 4, 2)
    assert slice_means([], [], [], 2) == [Estimate(None, None, None, 0, 0)] * 2
    assert slice_means([1.0], ["a"], [-1], 1) == [Estimate(None, None, None, 0, 0)]


def test_groups_that_agree_are_no_certainty() -> None:
    # what none of G groups shows may be a share 1 - 0.025^(1/G) of all, at a bound
    two = mean_interval([1, 0, 1, 1, 1, 0], list("aaabbb"), Resampling(bounds=(0, 1)))
    unseen = 1 - 0.025 ** (1 / 2)
    assert two.value == pytest.approx(2 / 3)
    assert ends(two) == pytest.approx((2 / 3 * (1 - unseen), 2 / 3 + unseen / 3))
    five = ends(mean_interval([1, 1, 1, 0] * 5, np.repeat(range(5), 4), Resampling(bounds=(0, 1))))
    unseen = 1 - 0.025 ** (1 / 5)
    assert five == pytest.approx((0.75 * (1 - unseen), 0.75 + 0.25 * unseen))


def test_few_groups_away_from_a_bound_may_not_show_all_there_is() -> None:
    """One video of 100 with a low score: others may fail altogether. With ten of twenty the bootstrap knows. (A share has
    no such limits: see test_stats_shares.py.)"""
    values, groups = np.ones(400), np.repeat(np.arange(100), 4)
    values[0] = 0.1
    low, high = ends(mean_interval(values, groups, Resampling(bounds=(0, 1))))
    assert low == pytest.approx(values.mean() * 0.025 ** (1 / 100))
    assert high == pytest.approx(1, abs=0.001)
    flipped = ends(mean_interval(1 - values, groups, Resampling(bounds=(0, 1))))
    assert flipped == pytest.approx((1 - high, 1 - low))
    half, groups = np.tile([0.9, 0.0], 10), np.arange(20)
    assert ends(mean_interval(half, groups, Resampling(bounds=(0, 1)))) == pytest.approx(
        ends(mean_interval(half, groups)), abs=0.05
    )


def test_groups_that_agree_have_an_interval_with_two_levels() -> None:
    low, high = ends(mean_interval([1, 0, 1, 0] * 5, list("aabb") * 5, Resampling(two_level=True)))
    assert low < 0.5 < high


def test_a_slice_that_is_in_few_groups_has_samples_of_its_own() -> None:
    """Of samples of all 40 groups one in seven would hold none of the two."""
    values = np.r_[np.ones(40), 0.2, 0.4]
    groups = np.r_[np.arange(40), 0, 1]
    slices = [0] * 40 + [1] * 2
    for draws in (1, 300):
        both = slice_means(values, groups, slices, 2, Resampling(draws=draws, method="percentile"))
        assert both[1].value == pytest.approx(0.3)
        assert (both[1].n, both[1].groups) == (2, 2)
        assert np.isfinite(ends(both[1])).all()


@pytest.mark.parametrize("two_level", [False, True])
@pytest.mark.parametrize("n_groups", [60, 3000])
def test_slices_are_what_each_would_be_alone(n_groups: int, two_level: bool) -> None:
    """To the last bit: a figure has one interval, whichever table it stands in and whatever stands beside it."""
    values, groups = clustered(7, n_groups=n_groups)
    slices = np.arange(len(values)) % 3
    slices[groups == 5] = 1  # so that slices have different numbers of groups
    plan = Resampling(draws=200, two_level=two_level, bounds=(0, 1))
    together = slice_means(values, groups, slices, 3, plan)
    overlapping = slice_means(values, groups, np.stack([slices == 0, slices < 2, slices > 0], axis=1), 3, plan)
    for found, inside in (
        *zip(together, (slices == k for k in range(3)), strict=True),
        *zip(overlapping, (slices == 0, slices < 2, slices > 0), strict=True),
    ):
        alone = mean_interval(values[inside], groups[inside], plan)
        assert (found.value, found.n, found.groups) == (alone.value, alone.n, alone.groups)
        assert ends(found) == pytest.approx(ends(alone), abs=1e-14)


@pytest.mark.parametrize("two_level", [False, True])
def test_an_item_in_several_slices(two_level: bool) -> None:
    values, groups = clustered(9, n_groups=40)
    part = np.arange(len(values)) % 3
    # two of three parts, all items, nothing, and the third part
    inside = np.stack([part < 2, part >= 0, part > 5, part == 2], axis=1)
    found = slice_means(values, groups, inside, 4, Resampling(draws=4000, two_level=two_level))
    assert found[2] == Estimate(None, None, None, 0, 0)
    for k in (0, 1, 3):
        mine = inside[:, k]
        alone = slice_means(values, groups, np.where(mine, 0, 1), 2, Resampling(draws=4000, two_level=two_level))[0]
        assert (found[k].value, found[k].n, found[k].groups) == (alone.value, alone.n, alone.groups)
        assert ends(found[k]) == pytest.approx(ends(alone), abs=1e-14)
    nothing = slice_means(values, groups, inside[:, 2:3], 1, Resampling(two_level=two_level))
    assert nothing == [Estimate(None, None, None, 0, 0)]


@pytest.mark.parametrize("two_level", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_order_and_names_do_not_matter(two_level: bool, scale: float) -> None:
    values, groups = clustered(11)
    values = values * scale + scale * np.random.default_rng(0).integers(0, 3, len(values))
    slices = np.arange(len(values)) % 4 - 1
    first = slice_means(values, groups, slices, 3, Resampling(draws=200, two_level=two_level))
    assert first == slice_means(values, groups, slices, 3, Resampling(draws=200, two_level=two_level))
    shuffled = np.random.default_rng(1).permutation(len(values))
    renamed = [f"video {(7 * group) % 31}" for group in groups[shuffled]]
    second = slice_means(values[shuffled], renamed, slices[shuffled], 3, Resampling(draws=200, two_level=two_level))
    for one, other in zip(first, second, strict=True):
        assert (one.value, one.n, one.groups) == (other.value, other.n, other.groups)
        assert ends(one) == pytest.approx(ends(other), rel=1e-12)
    assert first != slice_means(values, groups, slices, 3, Resampling(draws=200, seed=1, two_level=two_level))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 4), st.integers(-1, 2)), max_size=30),
    st.booleans(),
)
def test_never_nan_and_the_value_inside(rows: list[tuple[float, int, int]], two_level: bool) -> None:
    values, groups, slices = ([row[k] for row in rows] for k in range(3))
    for k, one in enumerate(
        slice_means(values, groups, slices, 3, Resampling(draws=30, two_level=two_level, bounds=(0, 1)))  # type: ignore[arg-type]
    ):
        inside = [row for row in rows if row[2] == k]
        assert one.n == len(inside)
        assert one.groups == len({row[1] for row in inside})
        assert (one.value is None) == (not inside)
        assert (one.ci_low is None) == (one.groups < 2)
        if one.value is not None and one.ci_low is not None and one.ci_high is not None:
            assert 0 <= one.ci_low <= one.value <= one.ci_high <= 1
            assert one.value == pytest.approx(sum(row[0] for row in inside) / len(inside))


def test_two_levels_add_the_spread_within() -> None:
    rng = np.random.default_rng(2)
    values, groups = rng.normal(size=4000), np.repeat(np.arange(200), 20)
    one = np.diff(ends(mean_interval(values, groups, Resampling(method="percentile", draws=4000))))[0]
    two = np.diff(ends(mean_interval(values, groups, Resampling(method="percentile", draws=4000, two_level=True))))[0]
    # equal sizes: the variance is that of the group means / 200, plus that within groups / 4000
    between = values.reshape(200, 20).mean(axis=1).var() / 200
    within = values.reshape(200, 20).var(axis=1).mean() / 4000
    assert one == pytest.approx(2 * 1.96 * np.sqrt(between), rel=0.05)
    assert two == pytest.approx(2 * 1.96 * np.sqrt(between + within), rel=0.05)


def test_two_level_samples_take_each_drawn_group_in_its_size() -> None:
    sizes = np.array([3, 1, 4])
    owner = np.repeat(np.arange(3), sizes)
    for rows, row, position in item_picks(sizes, Resampling(draws=50)):
        for sample in range(rows):
            picked = np.bincount(owner[position[row == sample]], minlength=3)
            copies = picked / sizes
            assert (copies == np.rint(copies)).all()
            assert copies.sum() == 3


def test_very_many_groups_are_bundled_without_changing_the_spread() -> None:
    rng = np.random.default_rng(4)
    n_groups = 4 * MOST_UNITS
    groups = np.repeat(np.arange(n_groups), 2)
    values = rng.exponential(size=n_groups)[groups] + rng.exponential(size=2 * n_groups)
    unit, n_units = group_units(n_groups, seed=0)
    assert n_units == MOST_UNITS
    assert (np.bincount(unit) == 4).all()
    low, high = ends(mean_interval(values, groups))
    error = values.reshape(-1, 2).mean(axis=1).std(ddof=1) / np.sqrt(n_groups)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.06)


def test_weights_are_samples_of_all_groups() -> None:
    drawn = np.concatenate(list(weights(7, 500, seed=3)))
    assert drawn.shape == (500, 7)
    assert (drawn.sum(axis=1) == 7).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(7), abs=0.15)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([1.0, float("inf")], ["a", "b"]), {}, "value 1: found inf, expected a finite number"),
        (([1.0], ["a", "b"]), {}, "groups: found 2 labels, expected 1, one per item"),
        (([1.0, 2.0], ["a", None]), {}, "group of item 1: found None, expected a label"),
        (([1.0, 2.0], [float("nan"), "a"]), {}, "group of item 0: found nan, expected a label"),
        (([1.0, 2.0], ["a", "b"]), {"bounds": (0, 1)}, "value 1: found 2, expected a number from 0 to 1"),
        (([1.0], ["a"]), {"bounds": (1, 1)}, "bounds: found (1, 1), expected a low and a higher number"),
        (([1.0], ["a"]), {"draws": 0}, "draws: found 0, expected at least 1"),
        (([1.0], ["a"]), {"level": 0.05}, "level: found 0.05, expected a share from 0.5 to below 1"),
        (([1.0], ["a"]), {"method": "t"}, "method: found 't', expected 'bca' or 'percentile'"),
        (([[1.0]], ["a"]), {}, "values: found 2 dimensions, expected one dimension"),
    ],
)
def test_errors(arguments: tuple[list[float], list[str]], options: dict[str, object], text: str) -> None:
    with pytest.raises(InputError) as caught:
        mean_interval(*arguments, plan=Resampling(**options))  # type: ignore[arg-type]
    assert str(caught.value) == text


def test_slice_errors() -> None:
    with pytest.raises(InputError, match=r"^slices: found codes 0 to 2, expected 0 to 1, or -1 for none$"):
        slice_means([1.0, 2.0], ["a", "b"], [0, 2], 2)
    with pytest.raises(InputError, match=r"^slices: found 1 code, expected 2$"):
        slice_means([1.0, 2.0], ["a", "b"], [0], 2)
    with pytest.raises(InputError, match=r"^slices: found 1 × 2 of bool, expected 2 × 2 of bool$"):
        slice_means([1.0, 2.0], ["a", "b"], np.ones((1, 2), dtype=bool), 2)
    with pytest.raises(InputError, match=r"^slices: found 2 × 1 of int64, expected 2 × 1 of bool$"):
        slice_means([1.0, 2.0], ["a", "b"], np.ones((2, 1), dtype=np.int64), 1)


def test_labels_of_every_kind() -> None:
    values = [1.0, 0.0, 1.0, 1.0]
    expected = mean_interval(values, [0, 1, 1, 2], Resampling(draws=100))
    kinds = [
        np.array([5, -3, -3, 9]),
        ["x", "y", "y", "z"],
        [(1, 2), ("p",), ("p",), None or 0],
        np.array(list("abbc")),
    ]
    for labels in itertools.chain(kinds):
        assert mean_interval(values, labels, Resampling(draws=100)) == expected  # type: ignore[arg-type]

"""Correlations from shared samples: their averages, their differences, and how well these hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from proctor.core import InputError
from proctor.stats import (
    Floats,
    Kind,
    Resamples,
    Resampling,
    Sampled,
    average,
    contrast,
    correlation,
    fleiss_kappa,
    krippendorff_alpha,
    tie_groups,
)
from proctor.stats.agreement import Scale, _alpha_of_sums
from tests.support.simulation import assert_share
from tests.support.simulation import repetitions as simulated

KINDS: tuple[Kind, ...] = ("kendall", "pearson", "spearman")


def clinic(seed: int, n_groups: int) -> tuple[Floats, Floats, Floats, list[str]]:
    """Ratings on three levels and two equally good metrics of them, for three answers to each encounter.

    What makes an encounter hard is shared by its answers, and by both metrics.
    """
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), 3)
    quality = rng.normal(size=n_groups)[groups] + rng.normal(size=3 * n_groups)
    ratings = np.digitize(quality + 0.5 * rng.normal(size=3 * n_groups), [-1, 0.8]) / 2
    shared = 0.7 * rng.normal(size=n_groups)[groups]
    metrics = [
        quality + shared + 0.7 * rng.normal(size=n_groups)[groups] + rng.normal(size=3 * n_groups) for _ in range(2)
    ]
    return ratings, metrics[0], metrics[1], [f"e{group}" for group in groups]


def mean_of_three(samples: Resamples, scores: Floats, ratings: Floats, groups: list[str]) -> Sampled:
    return average([samples.correlation(kind, scores, ratings, groups) for kind in KINDS])


@pytest.mark.parametrize("kind", KINDS)
def test_values_agree_with_scipy_and_intervals_with_those_of_one_correlation(kind: Kind) -> None:
    ratings, scores, _, groups = clinic(0, 40)
    found = Resamples(groups, plan=Resampling(draws=3000)).correlation(kind, scores, ratings, groups).estimate()
    truth = {
        "kendall": reference.kendalltau(scores, ratings).statistic,
        "pearson": reference.pearsonr(scores, ratings).statistic,
        "spearman": reference.spearmanr(scores, ratings).statistic,
    }[kind]
    assert found.value == pytest.approx(truth, abs=1e-12)
    alone = correlation(scores, ratings, groups, kind, plan=Resampling(draws=3000))
    # Other samples of the same groups: the ends differ by what 3,000 draws leave open.
    assert (found.ci_low, found.ci_high) == pytest.approx((alone.ci_low, alone.ci_high), abs=0.015)


def test_order_of_items_does_not_matter() -> None:
    ratings, scores, _, groups = clinic(1, 20)
    order = np.random.default_rng(0).permutation(len(groups))
    first = mean_of_three(Resamples(groups, plan=Resampling(draws=200)), scores, ratings, groups).estimate()
    moved = [groups[position] for position in order.tolist()]
    again = mean_of_three(Resamples(moved, plan=Resampling(draws=200)), scores[order], ratings[order], moved).estimate()
    assert first.value == pytest.approx(again.value, abs=1e-12)
    assert (first.ci_low, first.ci_high) == pytest.approx((again.ci_low, again.ci_high), abs=1e-9)


def test_groups_without_an_item_are_no_part_of_it() -> None:
    ratings, scores, _, groups = clinic(2, 30)
    half = [position for position, group in enumerate(groups) if int(group[1:]) < 15]
    some = [groups[position] for position in half]
    found = Resamples(groups, plan=Resampling(draws=400)).correlation("pearson", scores[half], ratings[half], some)
    assert (found.n, found.groups, int(found.present.sum())) == (45, 15, 15)
    alone = (
        Resamples(some, plan=Resampling(draws=400)).correlation("pearson", scores[half], ratings[half], some).estimate()
    )
    estimate = found.estimate()
    assert estimate.value == alone.value
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx((alone.ci_low, alone.ci_high), abs=0.1)


def test_an_average_is_defined_only_where_all_parts_are() -> None:
    samples = Resamples(list("abcd"), plan=Resampling(draws=100))
    good = samples.correlation("pearson", [1, 2, 3, 5], [1, 2, 4, 3], list("abcd"))
    flat = samples.correlation("pearson", [1, 1, 1, 1], [1, 2, 4, 3], list("abcd"))
    assert not flat.defined
    assert flat.estimate().value is None
    assert average([good, flat]).estimate().value is None
    assert contrast(good, flat).value is None
    assert contrast(good, good).p == 1.0
    with pytest.raises(InputError, match=r"^parts: found none, expected one or more statistics$"):
        average([])


def test_without_drawing_there_are_values_and_no_intervals() -> None:
    ratings, scores, other, groups = clinic(3, 10)
    samples = Resamples(groups, drawing=False)
    found = mean_of_three(samples, scores, ratings, groups)
    estimate = found.estimate()
    assert estimate.value is not None
    assert (estimate.ci_low, estimate.ci_high) == (None, None)
    apart = contrast(found, mean_of_three(samples, other, ratings, groups))
    assert apart.value is not None
    assert apart.p is None


def test_a_contrast_reads_both_ways() -> None:
    ratings, scores, other, groups = clinic(4, 30)
    samples = Resamples(groups, plan=Resampling(draws=300))
    first, second = (mean_of_three(samples, one, ratings, groups) for one in (scores, other))
    there, back = contrast(first, second), contrast(second, first)
    assert there.value is not None
    assert there == back.reversed()
    assert (there.ci_low is not None and there.ci_low > 0) == (
        there.p is not None and there.p < 0.05 and there.value > 0
    )


@pytest.mark.simulation
@pytest.mark.parametrize(("n_groups", "repetitions"), [(12, 400), (40, 400), (80, 100)])
def test_the_paired_test_keeps_its_level(n_groups: int, repetitions: int) -> None:
    repetitions, found = simulated(repetitions), 0
    for seed in range(repetitions):
        ratings, one, other, groups = clinic(10_000 + seed, n_groups)
        samples = Resamples(groups, plan=Resampling(draws=300))
        result = contrast(*(mean_of_three(samples, scores, ratings, groups) for scores in (one, other)))
        # Of twelve encounters it may be that hardly one has other ratings: no test then.
        found += result.p is not None and result.p < 0.05
    # Four standard errors of a share of 5 % over that many repetitions.
    assert found / repetitions <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / repetitions)
    assert_share(found, repetitions, 0.005, 1.0)


def test_what_hardly_varies_has_a_value_and_nothing_more() -> None:
    """One, two, four flagged answers among 60: in every sample they are all that there is."""
    ratings, full, _, groups = clinic(5, 60)
    for flagged in (1, 2, 4):
        flags = np.zeros(len(ratings))
        flags[: 3 * flagged : 3] = 1.0
        samples = Resamples(groups, plan=Resampling(draws=100))
        found = mean_of_three(samples, flags, ratings, groups)
        estimate = found.estimate()
        assert estimate.value is not None
        assert (estimate.ci_low, estimate.ci_high) == (None, None)
        assert found.carrying == flagged
        apart = contrast(found, mean_of_three(samples, full, ratings, groups))
        assert apart.value is not None
        assert (apart.ci_low, apart.ci_high, apart.p) == (None, None, None)
        assert correlation(flags, ratings, groups, "pearson", plan=Resampling(draws=100)).ci_low is None
        assert correlation(ratings, flags, groups, "pearson", plan=Resampling(draws=100)).ci_low is None
    flags[: 3 * 8 : 3] = 1.0
    assert mean_of_three(samples, flags, ratings, groups).estimate().ci_low is not None


@pytest.mark.parametrize(("flagged", "df"), [(5, 4), (12, 11), (30, 29), (31, 59)])
def test_few_groups_that_carry_the_variation_give_the_degrees_of_freedom(flagged: int, df: int) -> None:
    """At most half of sixty encounters; t at 59 would say far too much of five."""
    ratings, full, _, groups = clinic(5, 60)
    flags = np.zeros(len(ratings))
    flags[: 3 * flagged : 3] = 1.0
    samples = Resamples(groups, plan=Resampling(draws=400))
    pair = [samples.correlation("pearson", one, ratings, groups) for one in (flags, full)]
    assert (pair[0].df, pair[1].df) == (df, 59)
    found = contrast(*pair)
    assert found.value is not None
    assert found.ci_high is not None
    drawn = pair[0].drawn - pair[1].drawn  # not defined where none of the five was drawn
    without = pair[0].without - pair[1].without
    error = max(np.nanstd(drawn, ddof=1), np.sqrt(59 / 60 * ((without - without.mean()) ** 2).sum()))
    assert found.p == pytest.approx(2 * reference.t.sf(abs(found.value) / error, df))
    assert found.ci_high - found.value == pytest.approx(reference.t.ppf(0.975, df) * error)
    own, alone = pair[0].estimate(), correlation(flags, ratings, groups, "pearson", plan=Resampling(draws=400))
    assert own.ci_low is not None
    assert alone.ci_low is not None
    assert own.ci_low == pytest.approx(alone.ci_low, abs=0.05)


@pytest.mark.parametrize("flagged", [2, 5, 10])
def test_metrics_that_flag_a_few_answers_are_not_told_apart(flagged: int) -> None:
    """Flags at random on 363 answers: with t at G - 1 the test had 53 % false alarms with one, 6 to 7 % with 5 to 8."""
    rng = np.random.default_rng(flagged)
    ratings, _, _, groups = clinic(6, 121)
    alarms = missed = 0
    for _ in range(100):
        samples = Resamples(groups, plan=Resampling(draws=200, seed=int(rng.integers(1 << 30))))
        pair = []
        for _ in range(2):
            flags = np.zeros(len(ratings))
            flags[rng.choice(len(ratings), flagged, replace=False)] = 1.0
            pair.append(samples.correlation("pearson", flags, ratings, groups))
        estimate, p = pair[0].estimate(), contrast(*pair).p
        alarms += p is not None and p < 0.05
        missed += estimate.ci_low is not None and not estimate.ci_low <= 0 <= (estimate.ci_high or 0)
    assert alarms <= 10  # 2 % were found by a longer simulation; 5 % and two standard errors
    assert missed <= 13


def test_the_paired_test_finds_a_better_metric() -> None:
    found = 0
    for seed in range(60):
        ratings, one, other, groups = clinic(seed, 60)
        blurred = other + 3 * np.random.default_rng(seed).normal(size=len(other))
        samples = Resamples(groups, plan=Resampling(draws=300))
        result = contrast(*(mean_of_three(samples, scores, ratings, groups) for scores in (one, blurred)))
        found += result.p is not None and result.p < 0.05
    assert found / 60 > 0.8


@pytest.mark.simulation
def test_the_mean_of_three_is_covered_with_clusters_of_three() -> None:
    truths = []
    for seed in range(20):
        ratings, scores, _, groups = clinic(50_000 + seed, 300)
        truths.append(mean_of_three(Resamples(groups, drawing=False), scores, ratings, groups).observed)
    truth, held = float(np.mean(truths)), 0
    repetitions = simulated(300)
    for seed in range(repetitions):
        ratings, scores, _, groups = clinic(20_000 + seed, 40)
        found = mean_of_three(Resamples(groups, plan=Resampling(draws=400)), scores, ratings, groups).estimate()
        assert found.ci_low is not None
        assert found.ci_high is not None
        held += found.ci_low <= truth <= found.ci_high
    assert_share(held, repetitions, 0.92, 0.985)


# Krippendorff, Computing Krippendorff's alpha-reliability (2011), section E: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
LONG = [(float(value), f"u{unit}") for row in OBSERVERS for unit, value in enumerate(row) if value is not None]


@pytest.mark.parametrize(("scale", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_agrees_with_the_published_example(scale: str, published: float) -> None:
    values, units = zip(*LONG, strict=True)
    found = krippendorff_alpha(values, units, units, scale, plan=Resampling(draws=100))  # type: ignore[arg-type]
    assert found.value == pytest.approx(published, abs=5e-4)
    assert (found.n, found.groups) == (11, 11)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_alpha_of_summed_columns_is_that_of_the_samples_written_out(scale: Scale) -> None:
    rng = np.random.default_rng(0)
    values, item = rng.integers(0, 3, 40) / 2, np.arange(40) // 2
    columns, alpha = _alpha_of_sums(values, item, scale)
    for drawn in rng.integers(0, 20, (15, 20)):  # items of a sample
        rows = [(copy, k) for copy, one in enumerate(drawn) for k in (2 * one, 2 * one + 1)]
        names = [str(copy) for copy, _ in rows]
        written = krippendorff_alpha([float(values[k]) for _, k in rows], names, names, scale, Resampling(draws=1))
        assert alpha(columns[drawn].sum(axis=0, keepdims=True))[0] == pytest.approx(written.value)


def test_alpha_has_the_interval_of_kappa() -> None:
    """Two ratings of each item: nominal α is Scott's π but for a factor (n − 1) / n, and its interval follows."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 60)
    labels = np.stack([first, np.where(rng.random(60) < 0.1, 1 - first, first)], axis=1).ravel().tolist()
    items, groups = [str(k // 2) for k in range(120)], [f"v{k // 12}" for k in range(120)]
    alpha = krippendorff_alpha(labels, items, groups, "nominal")
    kappa = fleiss_kappa(labels, [0, 1], items, groups)
    for one, other in ((alpha.value, kappa.value), (alpha.ci_low, kappa.ci_low), (alpha.ci_high, kappa.ci_high)):
        assert one is not None
        assert one == pytest.approx(other, abs=0.05)


def test_alpha_edges() -> None:
    assert krippendorff_alpha([], [], []).value is None
    assert krippendorff_alpha([1, 2], ["a", "b"], ["a", "b"]).n == 0
    assert krippendorff_alpha([1, 1], ["a", "a"], ["a", "a"]).value is None
    with pytest.raises(
        InputError, match=r"^groups: found ratings of one item in two groups, expected one group for each"
    ):
        krippendorff_alpha([1, 2, 1, 1], list("aabb"), ["v1", "v2", "v2", "v2"])
    with pytest.raises(InputError, match=r"^scale: found 'ratio', expected 'nominal', 'ordinal' or 'interval'$"):
        krippendorff_alpha([1, 1], ["a", "a"], ["a", "a"], "ratio")  # type: ignore[arg-type]


@given(st.integers(0, 6), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9))
def test_tie_groups_are_the_largest_sets_without_a_difference(count: int, drawn: list[tuple[int, int]]) -> None:
    pairs = [(a, b) for a, b in drawn if a != b and max(a, b) < count]
    told = {frozenset(pair) for pair in pairs}
    free = [
        set(some)
        for size in range(1, count + 1)
        for some in itertools.combinations(range(count), size)
        if not any(frozenset(pair) in told for pair in itertools.combinations(some, 2))
    ]
    largest = sorted(tuple(sorted(one)) for one in free if not any(one < other for other in free))
    assert tie_groups(count, pairs) == largest


def test_errors() -> None:
    with pytest.raises(InputError, match=r"^pair: found 0, 2, expected two of 0 to 1$"):
        tie_groups(2, [(0, 2)])
    with pytest.raises(InputError, match=r"^values: found 2, 1 and 2, expected pairs with a group each$"):
        Resamples(["a", "b"]).correlation("pearson", [1, 2], [1], ["a", "b"])
    with pytest.raises(InputError, match=r"^two_level: found True, expected False for a correlation$"):
        Resamples(["a"], plan=Resampling(two_level=True))

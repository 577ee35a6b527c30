"""Risk–coverage, calibration and errors of those who are sure: closed forms, hand-worked numbers, and oracles."""

from __future__ import annotations

import re
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core import InputError, generator
from proctor.stats import Resampling, calibration, mean_interval, risk_coverage, sure_errors
from tests.support.simulation import assert_share, repetitions

QUICK = Resampling(draws=100)
NAN = float("nan")


def _harmonic(k: int) -> float:
    return sum(1 / one for one in range(1, k + 1))


def own_groups(count: int) -> list[int]:
    return list(range(count))


def area_of_order(losses: list[float]) -> float:
    return float(np.mean(np.cumsum(losses) / np.arange(1, len(losses) + 1)))


@pytest.mark.parametrize(("n", "wrong"), [(10, 0), (10, 3), (10, 10), (100, 37)])
def test_the_area_of_perfect_and_worst_orders_is_the_closed_form(n: int, wrong: int) -> None:
    confidences = np.linspace(0.99, 0.01, n)
    last = np.array([0.0] * (n - wrong) + [1.0] * wrong)
    perfect = risk_coverage(last, confidences, own_groups(n), QUICK, coverages=(1,))
    # Σ over k = n − e + 1 … n of (k − (n − e)) / k, over n
    expected = (wrong - (n - wrong) * (_harmonic(n) - _harmonic(n - wrong))) / n
    assert perfect.area.value == pytest.approx(expected, abs=1e-12)
    assert perfect.best == pytest.approx(expected, abs=1e-12)
    worst = risk_coverage(last[::-1], confidences, own_groups(n), QUICK, coverages=(1,))
    # e of risk 1, and then e / k
    assert worst.area.value == pytest.approx((wrong + wrong * (_harmonic(n) - _harmonic(wrong))) / n, abs=1e-12)


def test_of_equal_confidences_the_area_is_the_error_rate() -> None:
    found = risk_coverage([1, 0, 0, 1, 0], [0.7] * 5, own_groups(5), QUICK)
    assert found.area.value == pytest.approx(0.4, abs=1e-12)
    assert [point.risk.value for point in found.points] == pytest.approx([0.4] * 20)
    assert found.error == pytest.approx(0.4)


def test_ties_are_the_expectation_over_all_orders() -> None:
    losses, confidences = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0], [0.9, 0.9, 0.9, 0.5, 0.5, 0.2]
    areas, halves = [], []
    for order in permutations(range(6)):
        if all(confidences[a] >= confidences[b] for a, b in pairwise(order)):
            ordered = [losses[one] for one in order]
            areas.append(area_of_order(ordered))
            halves.append(sum(ordered[:3]) / 3)
    found = risk_coverage(losses, confidences, own_groups(6), QUICK, coverages=(0.5, 1))
    assert found.area.value == pytest.approx(np.mean(areas), abs=1e-12)
    assert found.points[0].risk.value == pytest.approx(np.mean(halves), abs=1e-12)


def test_by_hand() -> None:
    # In the order of confidence: right, wrong, right, right. Risks 0, 1/2, 1/3, 1/4.
    found = risk_coverage([0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6], own_groups(4), QUICK, coverages=(0.25, 0.5, 0.75, 1))
    assert [point.risk.value for point in found.points] == pytest.approx([0, 1 / 2, 1 / 3, 1 / 4])
    assert found.area.value == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert found.best == pytest.approx(1 / 16)


def test_an_answer_without_a_confidence_comes_last_and_stays_in_the_denominator() -> None:
    found = risk_coverage([0, 0, 1, 1], [0.9, 0.8, NAN, NAN], own_groups(4), QUICK, coverages=(0.5, 1))
    assert [point.risk.value for point in found.points] == pytest.approx([0, 0.5])
    assert (found.covered, found.area.n) == (0.5, 4)
    zero = risk_coverage([0, 0, 1, 1], [0.9, 0.8, 0, 0], own_groups(4), QUICK, coverages=(0.5, 1))
    assert found.area.value == zero.area.value  # no better than to state 0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=30
    ),
    st.randoms(),
)
def test_nothing_depends_on_the_order_of_rows_or_the_names_of_groups(
    rows: list[tuple[float, int, int]], draw: object
) -> None:
    shuffled = list(rows)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]

    def both(given: list[tuple[float, int, int]], name: str) -> object:
        losses, sure, groups = ([one[place] for one in given] for place in range(3))
        levels = [one / 6 for one in sure]
        names = [f"{name}{9 - one}" for one in groups]
        return risk_coverage(losses, levels, names, QUICK), calibration(losses, levels, names, QUICK)

    numbers = [
        list(map(float, re.findall(r"-?\d+\.\d+(?:e-?\d+)?", repr(one))))
        for one in (both(rows, "a"), both(shuffled, "b"))
    ]
    assert len(numbers[0]) == len(numbers[1])
    assert np.allclose(numbers[0], numbers[1], atol=1e-9)


def test_calibrated_is_zero_and_a_constant_gap_is_the_gap() -> None:
    # 10 answers at 0.8 of which 8 are right, and 10 at 0.3 of which 3 are
    losses = [0] * 8 + [1] * 2 + [0] * 3 + [1] * 7
    confidences = [0.8] * 10 + [0.3] * 10
    found = calibration(losses, confidences, own_groups(20), QUICK)
    assert found.error.value == pytest.approx(0, abs=1e-12)
    assert found.bias.value == pytest.approx(0, abs=1e-12)
    assert found.brier.value == pytest.approx((8 * 0.04 + 2 * 0.64 + 3 * 0.49 + 7 * 0.09) / 20)
    gap = calibration([1] * 10, [0.9] * 10, own_groups(10), QUICK)
    assert gap.error.value == pytest.approx(0.9)
    assert gap.debiased == pytest.approx(0.9)
    assert gap.brier.value == pytest.approx(0.81)


def test_the_error_is_the_weighted_gap_of_bins_of_equal_mass() -> None:
    # two bins: (0.6, 0.7) with 1 of 2 right, (0.9, 1.0) with 2 of 2 right: (2·|0.5 − 0.65| + 2·|1 − 0.95|) / 4
    found = calibration([0, 1, 0, 0], [0.6, 0.7, 0.9, 1.0], own_groups(4), QUICK, bins=2)
    assert found.error.value == pytest.approx((2 * 0.15 + 2 * 0.05) / 4)
    assert [(one.low, one.high) for one in found.bins] == [(0.6, 0.7), (0.9, 1.0)]


def test_the_debiased_error_is_that_of_kumar_and_others_for_single_groups() -> None:
    # (gap² − p(1 − p)/(n − 1)) with n = 20, 12 right at a confidence of 0.9
    found = calibration([0] * 12 + [1] * 8, [0.9] * 20, own_groups(20), QUICK)
    assert found.debiased == pytest.approx(np.sqrt(0.3**2 - 0.6 * 0.4 / 19))
    doubled = calibration([0] * 24 + [1] * 16, [0.9] * 40, [one // 2 for one in range(40)], QUICK)
    assert doubled.debiased == pytest.approx(found.debiased)  # every answer twice in its group: nothing more is known


def test_items_without_a_confidence_are_in_no_calibration() -> None:
    found = calibration([0, 1, 1], [0.5, 0.5, NAN], own_groups(3), QUICK)
    assert (found.error.n, found.brier.n) == (2, 2)
    nothing = calibration([1, 0], [NAN, NAN], own_groups(2), QUICK)
    assert (nothing.error.value, nothing.debiased, nothing.bins) == (None, None, ())


def test_the_brier_score_is_the_mean_of_squares_with_its_interval() -> None:
    draw = generator(1, "brier")
    sure, losses, groups = draw.random(60), (draw.random(60) < 0.4) * 1.0, draw.integers(0, 12, 60)
    found = calibration(losses, sure, groups, QUICK).brier
    assert found == mean_interval((sure - (1 - losses)) ** 2, groups, QUICK.within(0, 1))


def test_errors_of_the_sure_have_the_limit_of_clopper_and_pearson() -> None:
    found = sure_errors([0] * 40 + [1], [0.95] * 40 + [0.5], own_groups(41))
    assert (found.errors, found.n, found.groups, found.share) == (0, 40, 40, 0)
    assert found.limit == pytest.approx(1 - 0.05 ** (1 / 40), abs=1e-6)
    one = sure_errors([1, 0], [0.95, 0.9], ["a", "a"])
    assert (one.share, one.limit) == (0.5, None)
    assert sure_errors([1], [0.1], ["a"]).share is None
    assert sure_errors([1], [NAN], ["a"]).n == 0


@pytest.mark.parametrize(
    ("losses", "confidences", "groups", "told"),
    [
        ([0, 2], [0.5, 0.5], [1, 2], "losses: found a number outside of 0 to 1"),
        ([0, 1], [0.5, 85], [1, 2], "confidences: found a number outside of 0 to 1"),
        ([0, 1], [0.5], [1, 2], "confidences: found 1, expected one for each of 2 losses"),
        ([0, NAN], [0.5, 0.5], [1, 2], "losses: found a number outside"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    losses: list[float], confidences: list[float], groups: list[int], told: str
) -> None:
    for function in (risk_coverage, calibration, sure_errors):
        with pytest.raises(InputError, match=told):
            function(losses, confidences, groups)


def test_edges() -> None:
    nothing = risk_coverage([], [], [])
    assert (nothing.area.value, nothing.best, nothing.error) == (None, None, None)
    two = risk_coverage([0, 1], [0.9, 0.1], ["a", "b"])
    assert two.area.value == pytest.approx(0.25)
    assert two.area.ci_low is None
    with pytest.raises(InputError, match="coverage: found 0, expected above 0"):
        risk_coverage([0], [0.5], ["a"], coverages=(0,))
    with pytest.raises(InputError, match="distinct, expected at most"):
        risk_coverage([0] * 2500, np.linspace(0, 1, 2500), own_groups(2500))


@pytest.mark.simulation
def test_intervals_cover_clustered_answers() -> None:
    """Forty videos of five questions, difficulty shared within a video, confidences that know a part of it."""
    runs = repetitions(400)
    draw = generator(7, "selective")
    big = _drawn(draw, 40_000)
    truth = risk_coverage(*big, plan=Resampling(draws=100), coverages=(0.5,))
    brier = calibration(*big, plan=Resampling(draws=100)).brier.value
    inside = np.zeros(3)
    for _ in range(runs):
        one = _drawn(draw, 40)
        found, own = (
            risk_coverage(*one, plan=Resampling(draws=400), coverages=(0.5,)),
            calibration(*one, plan=Resampling(draws=400)),
        )
        for place, (estimate, value) in enumerate(
            ((found.area, truth.area.value), (found.points[0].risk, truth.points[0].risk.value), (own.brier, brier))
        ):
            assert estimate.ci_low is not None
            assert estimate.ci_high is not None
            assert value is not None
            inside[place] += estimate.ci_low <= value <= estimate.ci_high
    for found_inside in inside:
        assert_share(float(found_inside), runs, 0.925, 0.985)


def _drawn(draw: np.random.Generator, videos: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    groups = np.repeat(np.arange(videos), 5)
    skill = draw.normal(0.6, 1.0, videos)[groups] + draw.normal(0, 0.5, len(groups))
    right = draw.random(len(groups)) < 1 / (1 + np.exp(-skill))
    sure = np.round(1 / (1 + np.exp(-(skill + draw.normal(0, 1, len(groups))))), 2)
    return 1.0 - right, sure, groups

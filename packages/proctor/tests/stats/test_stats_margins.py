"""Margins, interactions and planned studies: worked by hand, against SciPy and statsmodels, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from proctor.core import InputError
from proctor.stats import (
    Difference,
    Estimate,
    Margin,
    Resampling,
    StudyPlan,
    VarianceParts,
    interaction,
    margin_test,
    needed_groups,
    paired_difference,
    plan_power,
    repetition_variances,
    variance_parts,
)
from tests.support.simulation import assert_share, repetitions

LEVEL = 0.055  # of 2,000 interactions: 4.8 % of 12,000 at 60 groups, and half a percent is the standard error


def normal(value: float, error: float) -> Callable[[float], Estimate]:
    def interval(level: float) -> Estimate:
        z = float(scipy_stats.norm.ppf((1 + level) / 2))
        return Estimate(value, value - z * error, value + z * error, 10, 10)

    return interval


@pytest.mark.parametrize(
    ("value", "equivalence", "finding"),
    [(0.0, False, "not worse"), (-1.5, False, "undecided"), (-5.5, False, "worse"), (0.0, True, "equivalent"),
     (1.5, True, "undecided"), (5.5, True, "different"), (-5.5, True, "different"), (5.5, False, "not worse")],
)  # fmt: skip
def test_what_is_found_is_read_from_the_interval(value: float, equivalence: bool, finding: str) -> None:
    assert margin_test(Margin(3.0, equivalence), normal(value, 1.0)).finding == finding


def test_p_is_that_of_the_normal_test() -> None:
    found = margin_test(Margin(3.0), normal(-0.5, 1.0))
    assert found.p == pytest.approx(scipy_stats.norm.sf(2.5), rel=3e-3)
    both = margin_test(Margin(3.0, equivalence=True), normal(0.5, 1.2))
    assert both.p == pytest.approx(scipy_stats.norm.sf(2.5 / 1.2), rel=3e-3)
    assert margin_test(Margin(3.0), normal(-2.9, 1.0)).p is None  # above 0.25


def test_lower_is_better_turns_the_margin() -> None:
    assert margin_test(Margin(3.0), normal(5.5, 1.0), higher_is_better=False).finding == "worse"
    assert margin_test(Margin(3.0), normal(-5.5, 1.0), higher_is_better=False).finding == "not worse"


def test_without_an_interval_nothing_is_found() -> None:
    found = margin_test(Margin(3.0), lambda level: Estimate(9.0, None, None, 1, 1))
    assert (found.finding, found.p) == ("undecided", None)


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf])
def test_a_margin_is_a_number_above_0(width: float) -> None:
    with pytest.raises(InputError, match=r"margin: found .*, expected a number above 0"):
        Margin(width)


@pytest.mark.parametrize("groups", [4, 5, 6, 9, 20, 60])
def test_a_margins_p_and_interval_never_contradict_each_other(groups: int) -> None:
    rng = np.random.default_rng(groups)
    for _ in range(25):
        codes = rng.integers(0, groups, 5 * groups)
        a, b = (rng.random(len(codes)) < chance for chance in (0.7, 0.7))

        def difference(level: float, a: Any = a, b: Any = b, codes: Any = codes) -> Difference:
            return paired_difference(a, b, codes, Resampling(draws=300, level=level, bounds=(0, 1)))

        for equivalence in (False, True):
            found = margin_test(Margin(0.15, equivalence), difference)
            one = difference(0.95)
            assert one.ci_low is not None
            assert one.ci_high is not None
            inside = one.ci_low > -0.15 and (not equivalence or one.ci_high < 0.15)
            assert (found.finding in {"not worse", "equivalent"}) == inside
            assert (found.p is not None and found.p <= found.alpha) == inside


def test_an_interaction_is_welchs_test_of_single_items() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 30), rng.normal(0.7, 1, 30)
    found = interaction([*a, *b], ["a"] * 30 + ["b"] * 30, range(60))
    welch = scipy_stats.ttest_ind(b, a, equal_var=False)
    t = found.parts[1].estimate.value / math.sqrt(a.var(ddof=1) / 29 + b.var(ddof=1) / 29)  # type: ignore[operator]
    assert welch.statistic * math.sqrt(29 / 30) == pytest.approx(t)
    assert found.parts[1].p == pytest.approx(2 * scipy_stats.t.sf(abs(t), 58))
    assert found.p == pytest.approx(found.parts[1].p) == found.parts[0].p
    assert found.f == pytest.approx(t**2)


def test_an_interaction_within_groups_is_the_paired_test_of_their_differences() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 1, 12), rng.normal(0.5, 1, 12)
    found = interaction([*a, *b], ["a"] * 12 + ["b"] * 12, [*range(12)] * 2)
    t = scipy_stats.ttest_rel(b, a).statistic * math.sqrt(11 / 12)
    assert found.parts[1].p == pytest.approx(2 * scipy_stats.t.sf(abs(t), 10))  # one degree fewer than 11


def test_an_interaction_of_three_parts_is_hotellings() -> None:
    rng = np.random.default_rng(5)
    matrix = rng.normal([0, 0.3, 0.6], 1, (15, 3))
    found = interaction(matrix.T.ravel(), ["a"] * 15 + ["b"] * 15 + ["c"] * 15, [*range(15)] * 3)
    apart = matrix[:, 1:] - matrix[:, :1]
    t2 = 14 * apart.mean(axis=0) @ np.linalg.solve(np.cov(apart.T), apart.mean(axis=0))
    degrees = min(part.degrees for part in found.parts)
    assert found.f == pytest.approx(t2 * (degrees - 1) / (degrees * 2))
    assert found.f is not None
    assert found.p == pytest.approx(scipy_stats.f.sf(found.f, 2, degrees - 1))


def test_an_interval_of_parts_agrees_with_its_p_and_does_not_depend_on_names_or_order() -> None:
    rng = np.random.default_rng(6)
    for _ in range(40):
        values, codes = rng.integers(-1, 2, 60), rng.integers(0, 10, 60)
        parts = rng.choice(["x", "y", "z"], 60)
        found = interaction(values, parts.tolist(), codes)
        for part in found.parts:
            if part.p is not None:
                low, high = part.estimate.ci_low, part.estimate.ci_high
                assert low is not None
                assert high is not None
                assert (low <= 0 <= high) == (part.p > 0.05)
        order = rng.permutation(60)
        again = interaction(values[order], parts[order].tolist(), [f"g{one}" for one in codes[order]])
        assert again.p == pytest.approx(found.p)


def test_few_groups_have_no_test_and_say_so() -> None:
    found = interaction([1, 0, 1, 0, 1, 0, 0, 1], ["a", "b"] * 4, [1, 1, 1, 1, 2, 2, 2, 2])
    assert found.p is None
    assert found.why == "too few groups in a, b"
    assert found.parts[0].estimate.ci_low is None
    with pytest.raises(InputError, match="parts: found a, expected two or more"):
        interaction([1.0], ["a"], [1])


def test_the_power_of_many_groups_is_that_of_statsmodels() -> None:
    from statsmodels.stats.power import TTestPower

    for groups, effect in ((30, 0.4), (60, 0.3), (200, 0.2)):
        wanted = TTestPower().power(effect, groups, 0.05)
        found = plan_power(VarianceParts(0.0, 1.0), StudyPlan(difference=effect), groups)
        assert found == pytest.approx(wanted, abs=1e-4)
    wanted = TTestPower().power(0.3, 60, 0.025, alternative="larger")
    assert plan_power(VarianceParts(0.0, 1.0), StudyPlan(difference=0.1, margin=0.2), 60) == pytest.approx(wanted)


def test_variance_of_a_mean_by_hand() -> None:
    plan = StudyPlan(difference=0.1, items=4, repetitions=5)
    assert VarianceParts(0.02, 0.1, 0.3).of_mean(plan, 10) == pytest.approx((0.02 + (0.1 + 0.06) / 4) / 10)


def test_what_repetitions_add_is_taken_off_the_items() -> None:
    """Means over five answers, from a model whose parts are known."""
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(4000), 5)
    answers = (rng.normal(0, 0.3, 4000)[codes] + rng.normal(0, 0.5, 20_000))[:, None] + rng.normal(0, 0.8, (20_000, 5))
    between, added = repetition_variances(answers) or (0.0, 0.0)
    found = variance_parts(answers.mean(axis=1), codes, between, added)
    assert (found.group, found.item, found.repetition) == pytest.approx((0.09, 0.25, 0.64), abs=0.02)


def test_variance_parts_are_those_of_a_mixed_model() -> None:
    import pandas as pd
    from statsmodels.regression.mixed_linear_model import MixedLM

    rng = np.random.default_rng(8)
    codes = np.repeat(np.arange(40), 6)
    values = rng.normal(0, 0.5, 40)[codes] + rng.normal(0, 1, 240)
    found = variance_parts(values, codes)
    fit = MixedLM(values, np.ones(240), pd.Series(codes)).fit(reml=True)
    assert found.group == pytest.approx(float(fit.cov_re[0, 0]), abs=1e-3)
    assert found.item == pytest.approx(float(fit.scale), abs=1e-3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"difference": 0.0}, "difference: found 0, expected a number other than 0"),
        ({"difference": -0.05, "margin": 0.03}, "difference: found -0.05 with a margin of 0.03"),
        ({"difference": 0.1, "equivalence": True}, "margin: found none"),
        ({"difference": 0.1, "items": 0}, "items: found 0, expected 1 or more"),
        ({"difference": 0.1, "power": 1.0}, "power: found 1, expected a number between 0 and 1"),
    ],
)
def test_bad_plans_are_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        StudyPlan(**given)  # type: ignore[arg-type]


def test_more_groups_have_more_power_and_the_needed_number_is_the_first() -> None:
    parts, plan = VarianceParts(0.01, 0.2), StudyPlan(difference=0.08, items=5)
    needed = needed_groups(parts, plan).groups
    assert needed is not None
    assert plan_power(parts, plan, needed) >= 0.8 > plan_power(parts, plan, needed - 1)
    assert plan_power(parts, plan, 5) == 0.0


def _study(rng: np.random.Generator, parts: VarianceParts, plan: StudyPlan, groups: int) -> tuple[Any, Any]:
    codes = np.repeat(np.arange(groups), plan.items)
    apart = rng.normal(0, math.sqrt(parts.group), groups)[codes] + rng.normal(0, math.sqrt(parts.item), len(codes))
    return apart + plan.difference, codes


@pytest.mark.simulation
@pytest.mark.parametrize("groups", [6, 20, 60])
@pytest.mark.parametrize("margin", [None, 0.1])
def test_power_is_as_planned(groups: int, margin: float | None) -> None:
    parts, runs = VarianceParts(0.05, 0.2), repetitions(3000)
    error = math.sqrt(parts.of_mean(StudyPlan(difference=1.0, items=4), groups))
    plan = StudyPlan(difference=3 * error - (margin or 0.0), items=4, margin=margin)
    planned, rng, shown = plan_power(parts, plan, groups), np.random.default_rng(groups), 0
    for _ in range(runs):
        apart, codes = _study(rng, parts, plan, groups)

        def difference(level: float, apart: Any = apart, codes: Any = codes) -> Difference:
            return paired_difference(apart, np.zeros(len(apart)), codes, Resampling(draws=400, level=level))

        one = difference(0.95)
        shown += one.ci_low is not None and one.ci_low > -(margin or 0.0)
    assert_share(shown, runs, planned - 0.03, min(1.0, planned + 0.03))


@pytest.mark.simulation
@pytest.mark.parametrize("groups", [6, 20, 60])
def test_level_of_non_inferiority_at_the_margin(groups: int) -> None:
    rng, runs, shown = np.random.default_rng(groups), repetitions(2000), 0
    for _ in range(runs):
        codes = np.repeat(np.arange(groups), 5)
        skill = rng.beta(4, 2, groups)[codes]
        a, b = rng.random(len(codes)) < skill - 0.1 * skill, rng.random(len(codes)) < skill  # 10 % of 2/3 worse
        one = paired_difference(a, b, codes, Resampling(draws=400, bounds=(0, 1)))
        shown += one.ci_low is not None and one.ci_low > -0.1 * 2 / 3
    assert_share(shown, runs, 0.0, 0.05)


@pytest.mark.simulation
@pytest.mark.parametrize("groups", [6, 20, 60])
@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("parts", [2, 3])
def test_level_of_an_interaction(groups: int, within: bool, parts: int) -> None:
    rng, runs, found = np.random.default_rng(groups), repetitions(2000), 0
    for _ in range(runs):
        codes = np.repeat(np.arange(groups), 6)
        part = (np.arange(len(codes)) if within else codes) % parts
        skill = rng.beta(1, 1.5, groups)[codes]
        apart = (rng.random(len(codes)) < skill) * 1.0 - (rng.random(len(codes)) < skill)
        p = interaction(apart, part.astype(str).tolist(), codes).p
        found += p is not None and p <= 0.05
    assert_share(found, runs, 0.0, LEVEL)

"""Corrected means: by hand, beside ppi-python, by their own promises, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import FEWEST_DRAWN, corrected_mean, planned_widths
from proctor.stats.special import ndtri
from tests.support.simulation import repetitions as simulated

PPI_PYTHON = [  # seed, labelled, others, estimate, both ends: ppi_mean_pointestimate and ppi_mean_ci of ppi-python 0.2.3
    (0, 20, 80, 2.80918636286087, 2.457398941056877, 3.1609737846648636),
    (2, 20, 80, 2.8663590455679553, 2.534107738979383, 3.1986103521565274),
    (3, 45, 60, 2.947428799538718, 2.653745812684961, 3.2411117863924748),
    (4, 45, 60, 2.8503121228525115, 2.5945380030910266, 3.1060862426139964),
    (5, 45, 60, 2.67007135274065, 2.4299551944227034, 2.910187511058597),
]


@pytest.mark.parametrize(("seed", "labelled", "others", "value", "low", "high"), PPI_PYTHON)
def test_single_groups_give_what_ppi_python_gives(
    seed: int, labelled: int, others: int, value: float, low: float, high: float
) -> None:
    rng, n = np.random.default_rng(seed), labelled + others
    label = rng.normal(3, 1, n)
    judge = label * (0.4 + 0.1 * seed) + rng.normal(0, 1, n)
    drawn = np.arange(n) < labelled
    found = corrected_mean(judge, label, np.arange(n), np.full(n, labelled / n), drawn)
    assert 0 < found.tuning * others / n < 1, "ppi-python cuts its weight to 0 to 1"
    reach = float(ndtri(0.975)) * found.large_sample_error
    assert [found.value, found.value - reach, found.value + reach] == pytest.approx([value, low, high], abs=1e-9)


def test_clusters_count_once() -> None:
    """Each group three times as many equal items: nothing is known better."""
    rng = np.random.default_rng(3)
    label, noise = rng.normal(size=(2, 60))
    judge, drawn = label + noise, np.arange(60) < 20
    once = corrected_mean(judge, label, np.arange(60), np.full(60, 1 / 3), drawn)
    thrice = corrected_mean(*(np.repeat(one, 3) for one in (judge, label, np.arange(60), np.full(60, 1 / 3), drawn)))
    assert (thrice.value, thrice.error, thrice.df) == pytest.approx((once.value, once.error, once.df))
    assert (thrice.n, thrice.groups, thrice.labelled) == (180, 60, 60)


def test_unequal_probabilities_are_undone_by_hand() -> None:
    """Six of 6 groups of the stratum with label 1 are drawn, six of 18 with label 0: the mean is 6 / 24, not 6 / 12."""
    label = np.repeat([1.0, 0.0], [6, 18])
    drawn = np.arange(24) < 12
    chance, stratum = np.repeat([1.0, 1 / 3], [6, 18]), np.repeat([0, 1], [6, 18])
    found = corrected_mean(np.full(24, 7.0), label, np.arange(24), chance, drawn, stratum)
    assert (found.value, found.labels_alone, found.tuning) == (0.25, 0.25, 0.0)


def test_a_judge_that_is_off_by_a_constant_is_corrected() -> None:
    rng = np.random.default_rng(5)
    label = rng.normal(size=80)
    drawn = np.arange(80) < 24
    one = corrected_mean(label + rng.normal(0, 0.2, 80), label, np.arange(80), np.full(80, 0.3), drawn)
    rng = np.random.default_rng(5)
    label = rng.normal(size=80)
    other = corrected_mean(9 + label + rng.normal(0, 0.2, 80), label, np.arange(80), np.full(80, 0.3), drawn)
    assert other.value == pytest.approx(one.value)
    assert other.judge_alone == pytest.approx(one.judge_alone + 9)
    assert one.relative_width < 0.75


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.9])
def test_never_wider_than_people_alone(correlation: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        label, noise = rng.normal(size=(2, 40))
        judge = correlation * label + np.sqrt(1 - correlation**2) * noise
        found = corrected_mean(judge, label, np.arange(40), np.full(40, 0.25), np.arange(40) < 10)
        assert found.relative_width <= 1
        if correlation < -0.8:
            assert (found.tuning, found.value) == (0.0, found.labels_alone)


def test_the_plan_gives_the_width_of_now_and_an_honest_saving() -> None:
    rng = np.random.default_rng(2)
    label, noise = rng.normal(size=(2, 200))
    found = corrected_mean(label + noise, label, np.arange(200), np.full(200, 0.2), np.arange(200) < 40)
    now, twice, everything = planned_widths(found, [40, 80, 200])
    assert now.half_width == pytest.approx((found.ci_high - found.ci_low) / 2, rel=0.08)
    assert now.labels_half_width == pytest.approx((found.labels_high - found.labels_low) / 2)
    assert twice.half_width < now.half_width
    assert found.correlation is not None
    expected = (1 - 40 / 200) * found.correlation**2  # 1 − V / V of the labels alone
    assert now.saving == pytest.approx(expected)
    assert everything.saving == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"drawn": np.arange(20) < FEWEST_DRAWN - 1}, "drawn groups: found 5, expected 6 or more"),
        ({"probabilities": np.zeros(20)}, "probabilities: found 0 to 0, expected above 0, at most 1"),
        ({"groups": np.repeat(np.arange(10), 2)[np.r_[0, 0:19]]}, "drawn of item"),
        ({"labels": np.full(20, np.nan)}, "label 0: found nan"),
        ({"strata": np.repeat([0, 1], [9, 11])}, "drawn groups of stratum 1: found 1, expected 2 or more"),
    ],
)
def test_what_is_refused(change: dict[str, object], says: str) -> None:
    plain: dict[str, object] = {
        "judge": np.arange(20.0),
        "labels": np.arange(20.0),
        "groups": np.arange(20),
        "probabilities": np.full(20, 0.5),
        "drawn": np.arange(20) < 10,
    }
    if says.startswith("drawn of"):
        plain["drawn"] = np.arange(20) < 10
    with pytest.raises(InputError, match=says):
        corrected_mean(**(plain | change))  # type: ignore[arg-type]


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("groups", "drawn", "correlation"),
    [(20, 0.3, 0.0), (20, 0.5, 0.9), (40, 0.5, 0.9), (60, 0.1, 0.6), (120, 0.3, 0.3)],
)
def test_95_percent_of_corrected_intervals_cover(groups: int, drawn: float, correlation: float) -> None:
    from bench.corrected import cell

    repetitions = simulated(2000)
    found = cell(groups, drawn, correlation, repetitions)
    assert found is not None
    noise = 3 * np.sqrt(0.05 * 0.95 / repetitions)
    assert 0.93 - noise / 2 <= found.corrected <= 0.98 + noise / 2
    assert found.widest <= 1

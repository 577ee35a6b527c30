"""Corrected means: by hand, beside ppi-python, by their own promises, and by simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import FEWEST_DRAWN, corrected_mean, planned_widths
from proctor.stats.special import ndtri
from tests.support.foreign import foreign
from tests.support.simulation import repetitions as simulated

PPI_PYTHON = """
import json, sys
import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

found = []
for labels, judged, others in json.load(open(sys.argv[1])):
    given = np.array(labels), np.array(judged), np.array(others)
    low, high = ppi_mean_ci(*given, alpha=0.05)
    found.append([ppi_mean_pointestimate(*given).item(), low.item(), high.item()])
print(json.dumps(found))
"""


def test_single_groups_give_what_ppi_python_gives_on_fuzzed_samples(tmp_path: Path) -> None:
    """Sixty samples of many sizes, scales and correlations, with its weight within 0 to 1, where it cuts it."""
    rng = np.random.default_rng(4)
    given: list[list[list[float]]] = []
    ours: list[list[float]] = []
    while len(ours) < 60:
        labelled, others = int(rng.integers(8, 60)), int(rng.integers(10, 200))
        n = labelled + others
        label = rng.normal(rng.normal(), rng.uniform(0.1, 4), n)
        judge = label * rng.uniform(-0.2, 1.5) + rng.normal(rng.normal(), rng.uniform(0.1, 3), n)
        drawn = rng.permutation(n) < labelled
        found = corrected_mean(judge, label, np.arange(n), np.full(n, labelled / n), drawn)
        if 0 < found.tuning * others / n < 1:
            reach = float(ndtri(0.975)) * found.large_sample_error
            ours.append([found.value, found.value - reach, found.value + reach])
            given.append([label[drawn].tolist(), judge[drawn].tolist(), judge[~drawn].tolist()])
    (tmp_path / "samples.json").write_text(json.dumps(given))
    assert np.array(ours) == pytest.approx(np.array(foreign(PPI_PYTHON, tmp_path / "samples.json")), abs=1e-9)


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

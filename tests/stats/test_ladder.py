"""Optimism by simulation: compared with exact expectations, with enumeration of every case, and with theory."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm

from proctor.core import InputError
from proctor.stats import HiddenSet, boosting, luck


def exact_luck(size: int, accuracy: float, submissions: int) -> float:
    """E[max of k binomial counts] / n − p, since E[max] is the sum of 1 − F(x)^k."""
    below = binom.cdf(np.arange(size), size, accuracy)
    return float(np.sum(1 - below**submissions) / size - accuracy)


@pytest.mark.parametrize(("submissions", "accuracy"), [(1, 0.5), (5, 0.5), (30, 0.8), (200, 0.3)])
def test_luck_is_what_order_statistics_say(submissions: int, accuracy: float) -> None:
    hidden = HiddenSet(groups=10, questions=12, accuracy=accuracy)
    found = luck(hidden, submissions, draws=2000, seed=1)
    assert abs(found.value - exact_luck(hidden.size, accuracy, submissions)) < 4 * found.error
    assert found.error < 0.002


def test_answers_that_are_alike_within_a_group_leave_more_to_luck() -> None:
    # Of beta-binomial groups the variance of the mean is 1 + (m − 1) · icc times the binomial one; for many groups the
    # mean is normal, so that the expected maximum grows by its root.
    apart, alike = (HiddenSet(groups=100, questions=10, icc=icc) for icc in (0.0, 0.3))
    first, second = luck(apart, 20, draws=1500), luck(alike, 20, draws=1500)
    ratio = second.value / first.value
    assert ratio == pytest.approx(
        np.sqrt(1 + 9 * 0.3), rel=5 * (first.error / first.value + second.error / second.value)
    )


def test_the_error_is_the_spread_over_seeds() -> None:
    hidden = HiddenSet(groups=5, questions=10)
    found = [luck(hidden, 10, draws=100, seed=seed) for seed in range(60)]
    spread = float(np.std([one.value for one in found], ddof=1))
    assert spread == pytest.approx(float(np.mean([one.error for one in found])), rel=0.35)


def enumerated(size: int, probes: int) -> float:
    """The expected score of the attack over all answers that two-option probes can give; ties are settled by a coin."""
    total = 0.0
    for answers in product((0, 1), repeat=size * probes):
        right = np.array(answers).reshape(probes, size)
        kept = right[right.mean(axis=1) > 0.5]
        lead = 2 * kept.sum(axis=0) - len(kept)
        total += float(np.mean(np.where(lead > 0, 1.0, np.where(lead < 0, 0.0, 0.5))))
    return float(total / 2 ** (size * probes) - 0.5)


@pytest.mark.parametrize(("size", "probes"), [(2, 1), (2, 4), (4, 3)])
def test_boosting_is_the_mean_over_all_cases(size: int, probes: int) -> None:
    found = boosting(HiddenSet(groups=2, questions=size // 2), probes + 1, draws=6_000, seed=2)
    assert abs(found.value - enumerated(size, probes)) < 4 * found.error


def test_boosting_approaches_theory() -> None:
    hidden, probes = HiddenSet(groups=20, questions=100), 200
    found = boosting(hidden, probes + 1, draws=100)
    theory = norm.cdf(np.sqrt(probes / (np.pi * hidden.size))) - 0.5
    assert abs(found.value - theory) < 4 * found.error + 0.004  # what half of the probes leaves of the normal limit


def test_more_options_give_less_away() -> None:
    hidden = HiddenSet(groups=20, questions=20)
    two, four = (boosting(hidden, 51, options, draws=60) for options in (2, 4))
    assert two.value > four.value + 3 * np.hypot(two.error, four.error)
    assert four.value > 5 * four.error


@pytest.mark.parametrize("submissions", [10, 60])
def test_the_ladder_gives_less_away(submissions: int) -> None:
    hidden = HiddenSet(groups=20, questions=20)
    for attack in (luck(hidden, submissions), boosting(hidden, submissions, draws=100)):
        assert attack.value > 5 * attack.error
    shown = luck(hidden, submissions, "ladder")
    assert shown.value < 0.6 * luck(hidden, submissions).value
    held = boosting(hidden, submissions, rule="ladder", draws=100)
    assert held.value < 0.6 * boosting(hidden, submissions, draws=100).value


def test_the_same_seed_the_same_numbers() -> None:
    hidden = HiddenSet(groups=5, questions=10, icc=0.1)
    assert luck(hidden, 5, draws=50, seed=3) == luck(hidden, 5, draws=50, seed=3) != luck(hidden, 5, draws=50, seed=4)
    assert boosting(hidden, 5, draws=50, seed=3) == boosting(hidden, 5, draws=50, seed=3)


def test_what_makes_no_sense_is_refused() -> None:
    hidden = HiddenSet(groups=5, questions=10)
    for call, told in (
        (lambda: luck(hidden, 0), "submissions: found 0, expected at least 1"),
        (lambda: luck(hidden, 1, draws=1), "draws: found 1, expected at least 2"),
        (lambda: boosting(hidden, 2, options=1), "options: found 1, expected at least 2"),
        (lambda: HiddenSet(groups=1, questions=4), "groups and questions: found 1 and 4"),
        (lambda: HiddenSet(groups=2, questions=4, icc=1.0), "icc: found 1.0"),
        (lambda: luck(hidden, 1, "some"), "rule: found 'some', expected one of all, ladder"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=told):
            call()

"""Optimism: luck compared with exact expectations and theory, and what least squares get with an attack of our own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm, t

from proctor.core import InputError
from proctor.stats import HiddenSet, LeastSquaresGain, ShownMeans, least_squares, luck


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


def attacked(shown: ShownMeans, probes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """What an attack by least squares scores above chance on each mean: random answers, their rounded means, and then the
    answer with the highest value in the solution of least norm (whitened by the options), by numpy's `lstsq`."""
    n, most = len(shown.options), int(shown.options.max())
    truth = rng.integers(0, shown.options)
    given = rng.integers(0, shown.options, (probes, n))
    told = np.round((given == truth) @ shown.weights.T, shown.digits)  # probes × means
    rows = []
    for weights in shown.weights:
        row = np.zeros((probes, n, most))
        np.put_along_axis(row, given[:, :, None], 1.0, axis=2)
        there = np.arange(most) < shown.options[:, None]
        row = np.where(there, row - 1 / shown.options[:, None], 0.0)
        rows.append((row * (weights / np.sqrt(shown.options))[:, None]).reshape(probes, -1))
    chance = shown.weights @ (1 / shown.options)
    found = np.linalg.lstsq(np.concatenate(rows), (told - chance).T.ravel(), rcond=1e-9)[0].reshape(n, most)
    found[np.arange(most) >= shown.options[:, None]] = -np.inf
    level = found + rng.uniform(0, 1e-9, found.shape)  # ties at random
    return np.asarray(shown.weights @ (level.argmax(axis=1) == truth) - chance)


def boards_of(*shares: float, n: int = 120) -> NDArray[np.float64]:
    """The weights of means over the first questions, in buckets of sizes 2 : 1."""
    weights = np.zeros((len(shares), n))
    for row, share in zip(weights, shares, strict=True):
        last = round(share * n)
        cut = 2 * last // 3
        row[:cut], row[cut:last] = 0.5 / cut, 0.5 / (last - cut)
    return weights


MIXED = np.array([2, 3, 4, 2, 2, 6] * 20)


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        (np.full(133, 2), None),
        (np.full(133, 4), None),
        (MIXED, None),
        (np.full(120, 2), boards_of(1.0, 0.4)),
        (MIXED, boards_of(1.0, 0.5)),
    ],
    ids=["two options", "four", "mixed", "two boards of buckets", "two boards, mixed"],
)
@pytest.mark.parametrize("submissions", [10, 30, 100])
def test_an_attack_by_least_squares_gets_what_is_said_and_stays_below_the_bound(
    options: NDArray[np.int64], weights: NDArray[np.float64] | None, submissions: int
) -> None:
    n = len(options)
    shown = ShownMeans(options, np.full((1, n), 1 / n) if weights is None else weights)
    rng = np.random.default_rng([7, submissions, n, int(options.sum())])
    found = np.array([attacked(shown, submissions - 1, rng) for _ in range(40)])
    told = least_squares(shown, submissions)
    best = found.mean(axis=0).argmax()
    error = float(found[:, best].std(ddof=1) / np.sqrt(len(found)))
    assert abs(float(found[:, best].mean()) - told.value) < 4 * error + 0.012  # theory is for many questions
    assert np.mean(found.max(axis=1) > told.high + 1e-9) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    assert found.mean(axis=0).max() < told.high + 1e-9


def test_least_squares_is_the_formula_for_two_options() -> None:
    for n, submissions in ((133, 10), (133, 30), (1000, 200)):
        found = least_squares(ShownMeans.of_all([2] * n, digits=6), submissions)
        assert found.value == pytest.approx(
            norm.cdf(np.sqrt((submissions - 1) / (n - submissions + 1))) - 0.5, abs=1e-4
        )
        # the first term of the series, which Blum and Hardt's attack does not reach
        assert found.value > norm.cdf(np.sqrt((submissions - 1) / (np.pi * n))) - 0.5


def test_all_is_known_after_as_many_results_as_unknowns() -> None:
    assert least_squares(ShownMeans.of_all([2] * 50, digits=6), 60).value == pytest.approx(0.5, abs=0.01)
    assert least_squares(ShownMeans.of_all([4] * 50, digits=6), 200).value == pytest.approx(0.75, abs=0.01)
    coarse = least_squares(ShownMeans.of_all([2] * 5000, digits=1), 60).value  # most of a tenth is rounding
    assert coarse < 0.5 * least_squares(ShownMeans.of_all([2] * 5000, digits=3), 60).value


def test_one_result_gives_nothing_away() -> None:
    for rule in ("all", "ladder"):
        assert least_squares(ShownMeans.of_all([2] * 100), 1, rule, draws=20) == LeastSquaresGain(0.0, 0.0)


def test_more_options_give_less_away() -> None:
    two, four = (least_squares(ShownMeans.of_all([options] * 400), 51) for options in (2, 4))
    assert two.value > four.value + 0.01
    assert four.value > 0.05


def test_an_interval_is_taken_for_two_more_means() -> None:
    plain, more = (ShownMeans.of_all([2] * 200, numbers=numbers) for numbers in (1, 3))
    first, second = least_squares(plain, 21), least_squares(more, 21)
    assert first.value == second.value
    assert second.high > first.high


@pytest.mark.parametrize(("groups", "size", "icc"), [(3, 44, 0.0), (3, 44, 0.1), (24, 20, 0.1), (9, 15, 0.3)])
def test_how_alike_answers_are_within_groups_is_found_from_the_means_of_groups(
    groups: int, size: int, icc: float
) -> None:
    rng = np.random.default_rng([groups, size])
    found = []
    for _ in range(400):
        rate = rng.beta(0.7 * (1 / icc - 1), 0.3 * (1 / icc - 1), groups) if icc else np.full(groups, 0.7)
        right = (rng.random((groups, size)) < rate[:, None]).astype(float)
        found.append(HiddenSet.of(right.ravel(), np.repeat(np.arange(groups), size)).icc)
    # below 0 it is 0, so that it is a little too large where there is none
    assert abs(np.mean(found) - icc) < (0.02 if groups == 3 else 0.015)


@pytest.mark.parametrize("submissions", [10, 60])
def test_the_ladder_gives_less_away(submissions: int) -> None:
    hidden = HiddenSet(groups=20, questions=20)
    lucky, shown = luck(hidden, submissions), luck(hidden, submissions, "ladder")
    assert lucky.value > 5 * lucky.error
    assert shown.value < 0.6 * lucky.value
    means = ShownMeans.of_all([2] * 400)
    free, held = (least_squares(means, submissions, rule, groups=20) for rule in ("all", "ladder"))
    assert 0 < held.value < 0.6 * free.value
    assert held.value < held.high < free.high


def test_under_the_ladder_an_attack_uses_what_is_shown() -> None:
    """Random answers on 20 videos; the ladder shows the first, and those that are better by the interval of the
    difference. Least squares on these alone gets what is said."""
    groups, size, probes = 20, 20, 40
    rng = np.random.default_rng(5)
    gained = []
    half = float(t.ppf(0.975, groups - 1)) / np.sqrt(groups)
    for _ in range(400):
        truth = rng.integers(0, 2, groups * size)
        given = rng.integers(0, 2, (probes, groups * size))
        right = (given == truth).reshape(probes, groups, size).mean(axis=2)
        kept = [0]
        for number in range(1, probes):
            apart = right[number] - right[kept[-1]]
            if apart.mean() > half * apart.std(ddof=1):
                kept.append(number)
        signs = 2.0 * given[kept] - 1
        found = np.linalg.lstsq(signs, 2 * right[kept].mean(axis=1) - 1, rcond=None)[0]
        guess = np.where(found == 0, rng.integers(0, 2, len(found)), found > 0)
        gained.append((guess == truth).mean() - 0.5)
    told = least_squares(ShownMeans.of_all([2] * 400), probes + 1, "ladder", groups=groups, draws=2000)
    error = np.std(gained, ddof=1) / np.sqrt(len(gained))
    assert abs(np.mean(gained) - told.value) < 4 * error + 0.004
    assert np.mean(np.array(gained) > told.high) < 0.05


def test_the_same_seed_the_same_numbers() -> None:
    hidden = HiddenSet(groups=5, questions=10, icc=0.1)
    assert luck(hidden, 5, draws=50, seed=3) == luck(hidden, 5, draws=50, seed=3) != luck(hidden, 5, draws=50, seed=4)
    means = ShownMeans.of_all([2] * 50)
    first, again = (least_squares(means, 30, "ladder", groups=5, draws=50, seed=3) for _ in range(2))
    assert first == again != least_squares(means, 30, "ladder", groups=5, draws=50, seed=4)


def test_what_makes_no_sense_is_refused() -> None:
    hidden = HiddenSet(groups=5, questions=10)
    for call, told in (
        (lambda: luck(hidden, 0), "submissions: found 0, expected at least 1"),
        (lambda: luck(hidden, 1, draws=1), "draws: found 1, expected at least 2"),
        (lambda: ShownMeans.of_all([2, 1]), "options: found 1, expected at least 2"),
        (
            lambda: ShownMeans(np.array([2, 2]), np.ones((1, 3))),
            "weights and options: found 1 × 3 and 2, expected means",
        ),
        (lambda: least_squares(ShownMeans.of_all([2]), 0), "submissions: found 0, expected at least 1"),
        (lambda: HiddenSet(groups=1, questions=4), "groups and questions: found 1 and 4"),
        (lambda: HiddenSet(groups=2, questions=4, icc=1.0), "icc: found 1.0"),
        (lambda: luck(hidden, 1, "some"), "rule: found 'some', expected one of all, ladder"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=told):
            call()

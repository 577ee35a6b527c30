"""Several answers to each item: against enumeration, a dense likelihood, statsmodels and simulation."""

from __future__ import annotations

import itertools
import math
import warnings
from statistics import fmean

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from bench.statistics import repetition_coverage
from proctor.stats import (
    Resampling,
    majority_scores,
    repetition_error,
    right_in_all,
    right_in_any,
    same_answers,
    variance_shares,
)
from tests.support.simulation import assert_share, repetitions

SEEDS = range(25)


def drawn(seed: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Codes of answers and their scores; some repetitions are missing, some answers unreadable."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(-2, 4, (int(rng.integers(1, 8)), int(rng.integers(2, 6))))
    worth = rng.random(4).round(2)
    scores = np.where(answers >= 0, worth[answers], 0.0)
    return answers, np.where(answers == -1, np.nan, scores)


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_alike_are_counted_pair_by_pair(seed: int) -> None:
    answers, _ = drawn(seed)
    for row, found in zip(answers.tolist(), same_answers(answers).tolist(), strict=True):
        pairs = list(itertools.combinations([one for one in row if one != -1], 2))
        if not pairs:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(fmean(a == b and a >= 0 for a, b in pairs))


@pytest.mark.parametrize("seed", SEEDS)
def test_right_in_all_and_in_any_are_means_over_all_draws(seed: int) -> None:
    answers, _ = drawn(seed)
    right = np.where(answers == -1, np.nan, (answers == 2).astype(np.float64))
    for k in range(1, answers.shape[1] + 1):
        found = zip(right.tolist(), right_in_all(right, k).tolist(), right_in_any(right, k).tolist(), strict=True)
        for row, in_all, in_any in found:
            draws = list(itertools.combinations([one for one in row if not math.isnan(one)], k))
            if not draws:
                assert math.isnan(in_all)
                assert math.isnan(in_any)
            else:
                assert in_all == pytest.approx(fmean(min(draw) for draw in draws))
                assert in_any == pytest.approx(fmean(max(draw) for draw in draws))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_majority_is_a_fair_draw_among_the_most_frequent(seed: int) -> None:
    answers, scores = drawn(seed)
    rows = zip(answers.tolist(), scores.tolist(), majority_scores(answers, scores, 0.0).tolist(), strict=True)
    for codes, worth, found in rows:
        if all(one == -1 for one in codes):
            assert math.isnan(found)
            continue
        said = {code: score for code, score in zip(codes, worth, strict=True) if code >= 0}
        often = max((codes.count(code) for code in said), default=0)
        assert found == pytest.approx(fmean([said[one] for one in said if codes.count(one) == often] or [0.0]))


def restricted_likelihood(parts: NDArray[np.float64], y: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """The restricted log-likelihood of all scores at once, with their whole covariance."""
    items, k = y.shape
    item = np.repeat(np.arange(items), k)
    covariance = (
        parts[0] * (groups[item][:, None] == groups[item])
        + parts[1] * (item[:, None] == item)
        + parts[2] * np.eye(items * k)
    )
    inverse, ones, flat = np.linalg.inv(covariance), np.ones(items * k), y.ravel()
    weight = float(ones @ inverse @ ones)
    rest = flat - float(ones @ inverse @ flat) / weight
    return -0.5 * float(np.linalg.slogdet(covariance)[1] + math.log(weight) + rest @ inverse @ rest)


def nested(seed: int, *, size: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    number, k = int(rng.integers(4, 9)), int(rng.integers(2, 5))
    groups = np.repeat(np.arange(number), rng.integers(2, size, number))
    spread = rng.uniform(0, 2, 3) * (1 if seed % 3 else np.array([1, 0, 1]))
    shape = len(groups), k
    noise = rng.normal(0, spread[2] + 0.1, shape)
    y = rng.normal(0, spread[0], number)[groups][:, None] + rng.normal(0, spread[1], len(groups))[:, None] + noise
    return y, groups


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_variance_have_the_greatest_likelihood(seed: int) -> None:
    """Groups of unequal size, also where a part is 0."""
    y, groups = nested(seed, size=6)
    found = variance_shares(y, groups, Resampling(draws=20))
    assert found is not None
    ours = np.array([found.group, found.item, found.repetition])

    def cost(parts: NDArray[np.float64]) -> float:
        return -restricted_likelihood(parts, y, groups)

    total = found.total
    starts = [np.array(one) * total for one in ((0.4, 0.3, 0.3), (0.05, 0.05, 0.9), (0.8, 0.1, 0.1))] + [ours + 1e-6]
    limits = [(0, None), (0, None), (total * 1e-6, None)]
    best = min(float(minimize(cost, one, bounds=limits, method="L-BFGS-B").fun) for one in starts)
    assert cost(ours) <= best + 1e-5


@pytest.mark.parametrize("seed", [4, 10, 16])
def test_parts_of_variance_are_those_of_statsmodels(seed: int) -> None:
    """Where no part is near 0: there its optimiser ends before the optimum."""
    statsmodels, pandas = pytest.importorskip("statsmodels.api"), pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(20), rng.integers(3, 8, 20))
    y = rng.normal(0, 1, 20)[groups][:, None] + rng.normal(0, 1, (len(groups), 1)) + rng.normal(0, 1, (len(groups), 4))
    found = variance_shares(y, groups)
    items, k = y.shape
    frame = pandas.DataFrame({"y": y.ravel(), "g": np.repeat(groups, k), "i": np.repeat(np.arange(items), k)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = statsmodels.MixedLM.from_formula(
            "y ~ 1", frame, groups="g", re_formula="1", vc_formula={"i": "0 + C(i)"}
        ).fit(reml=True, method=["lbfgs", "powell"])
    theirs = np.array([float(model.cov_re.iloc[0, 0]), float(model.vcomp[0]), float(model.scale)])
    assert found is not None
    ours = np.array([found.group, found.item, found.repetition])
    assert ours / found.total == pytest.approx(theirs / theirs.sum(), abs=1e-3)


def test_of_items_with_fewer_repetitions_none_count() -> None:
    y, groups = nested(2, size=6)
    more, wider = np.vstack([y, np.full((1, y.shape[1]), np.nan)]), np.append(groups, 0)
    more[-1, 0] = 100.0
    assert variance_shares(more, wider, Resampling(draws=20)) == variance_shares(y, groups, Resampling(draws=20))


@pytest.mark.parametrize("shape", [(0, 3), (5, 1), (2, 3)], ids=["no items", "one repetition", "two items"])
def test_too_little_has_no_parts(shape: tuple[int, int]) -> None:
    assert variance_shares(np.ones(shape), np.arange(shape[0])) is None


def test_the_error_of_repetitions_is_that_of_asking_again() -> None:
    """Many runs of the same items: the spread of their means is the error that one run states."""
    rng = np.random.default_rng(0)
    chance = rng.beta(2, 1, 200)[:, None]
    runs = [(rng.random((200, 3)) < chance).astype(np.float64) for _ in range(400)]
    stated = fmean(repetition_error(one) or 0.0 for one in runs)
    assert stated == pytest.approx(float(np.std([one.mean() for one in runs])), rel=0.1)


@pytest.mark.slow
def test_intervals_of_repeated_answers_cover() -> None:
    """The bench has it with more draws."""
    found = repetition_coverage(400, groups=(6, 24))
    shares = [share for row in found.values() for share in row.values()]
    assert len(shares) == 2 * 3 * 4
    assert min(shares) > 0.93 - 3 * 0.013


@pytest.mark.simulation
@pytest.mark.parametrize("groups", [6, 20, 60])
@pytest.mark.parametrize("parts", [(0.3, 0.4, 0.3), (0.05, 0.45, 0.5)], ids=["large groups' share", "small one"])
def test_intervals_of_shares_of_variance_cover(groups: int, parts: tuple[float, float, float]) -> None:
    rng, rounds, hits = np.random.default_rng(groups), repetitions(2000), np.zeros(3)
    of = np.repeat(np.arange(groups), 8)
    for _ in range(rounds):
        scale = np.sqrt(parts)
        group, item = rng.normal(0, scale[0], groups), rng.normal(0, scale[1], (len(of), 1))
        each = rng.normal(0, scale[2], (len(of), 3))
        found = variance_shares(group[of][:, None] + item + each, of)
        assert found is not None
        ends = [(one.ci_low, one.ci_high) for one in found.shares.values()]
        hits += [
            low is not None and high is not None and low <= part <= high
            for part, (low, high) in zip(parts, ends, strict=True)
        ]
    for hit in hits:
        assert_share(hit, rounds, 0.92, 0.995)

"""The variance of judges' scores: beside statsmodels' analysis of variance on fuzzed designs, by simulation, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.stats import Resampling, judge_variance


def by_statsmodels(scores: np.ndarray) -> list[float]:
    """The parts from the mean squares of a two-way table with repetitions."""
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    n, judges, k = scores.shape
    answer, judge, _ = np.indices(scores.shape)
    table = pd.DataFrame({"score": scores.ravel(), "answer": answer.ravel(), "judge": judge.ravel()})
    found = anova_lm(ols("score ~ C(answer) * C(judge)", table).fit())
    square = found["sum_sq"] / found["df"]
    both, rest = square["C(answer):C(judge)"], square["Residual"]
    parts = [
        (square["C(answer)"] - both) / (judges * k),
        (square["C(judge)"] - both) / (n * k),
        (both - rest) / k,
        rest,
    ]
    return [max(0.0, part) for part in parts]


@pytest.mark.parametrize("seed", range(6))
def test_parts_are_those_of_the_analysis_of_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, judges, k = int(rng.integers(4, 25)), int(rng.integers(2, 4)), int(rng.integers(2, 5))
    scores = (
        rng.normal(0, rng.uniform(0, 2), (n, 1, 1))
        + rng.normal(0, 1, (1, judges, 1))
        + rng.normal(0, rng.uniform(0, 1), (n, judges, 1))
        + rng.normal(0, 1, (n, judges, k))
    )
    found = judge_variance(scores, np.arange(n) // 2)
    assert found is not None
    ours = [found.answer, found.judge, found.judge_by_answer, found.judgement]
    assert ours == pytest.approx(by_statsmodels(scores), abs=1e-9)
    assert sum(one.value or 0.0 for one in found.shares.values()) == pytest.approx(1.0)


def test_one_judge_has_two_parts_by_hand() -> None:
    """Means 0.5 and 1 and 3 of two judgements each, 1 apart in the first alone: within ½ / 3, between (from 1.75) / 2."""
    scores = np.array([[[0.0, 1.0]], [[1.0, 1.0]], [[3.0, 3.0]]])
    found = judge_variance(scores, np.arange(3))
    assert found is not None
    assert found.judgement == pytest.approx(0.5 / 3)
    means = np.array([0.5, 1.0, 3.0])
    assert found.answer == pytest.approx(means.var(ddof=1) - 0.5 / 3 / 2)
    assert set(found.shares) == {"answer", "judgement"}
    assert [one.ci_low for one in found.shares.values()] == [None, None], "three groups give no interval"


def test_an_answer_that_lacks_a_judgement_is_left_out_and_the_groups_order_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(40, 2, 3)) + rng.normal(size=(40, 1, 1))
    scores[7, 1, 2] = np.nan
    groups = np.repeat(np.arange(10), 4)
    found, kept = judge_variance(scores, groups), np.arange(40) != 7
    alone = judge_variance(scores[kept], groups[kept])
    assert found == alone
    assert found is not None
    assert (found.answers, found.judges, found.judgements, found.groups) == (39, 2, 3, 10)


@pytest.mark.parametrize("shape", [(5, 2, 1), (2, 2, 3)])
def test_too_little_gives_nothing(shape: tuple[int, int, int]) -> None:
    assert judge_variance(np.random.default_rng(0).normal(size=shape), np.arange(shape[0])) is None


def test_equal_scores_have_no_shares() -> None:
    found = judge_variance(np.ones((6, 2, 2)), np.arange(6))
    assert found is not None
    assert (found.total, {one.value for one in found.shares.values()}) == (0.0, {None})


def test_the_interval_of_the_judgements_share_covers_it() -> None:
    """Forty videos of five answers, answer 1, judge 0, judge × answer ½, judgement 1: the judgements' share is 0.4."""
    rng, hit, rounds = np.random.default_rng(11), 0, 200
    groups = np.repeat(np.arange(40), 5)
    for _ in range(rounds):
        scores = (
            rng.normal(0, 1, (200, 1, 1)) + rng.normal(0, np.sqrt(0.5), (200, 2, 1)) + rng.normal(0, 1, (200, 2, 3))
        )
        found = judge_variance(scores, groups, Resampling(draws=300))
        assert found is not None
        share = found.shares["judgement"]
        assert share.ci_low is not None
        assert share.ci_high is not None
        hit += share.ci_low <= 0.4 <= share.ci_high
    assert hit / rounds >= 0.9

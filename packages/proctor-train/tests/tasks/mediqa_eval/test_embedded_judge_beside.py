"""The embedded judge beside metrics: figures of several draws of the folds are averaged, scores are not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from proctor.audits import CorrelationSettings, Key, MetricScores, Rating, RatingsTable, audit, compare
from proctor_train.mediqa_eval.embedded import beside_best

SETTINGS = CorrelationSettings(draws=200)
RNG = np.random.default_rng(4)
VALUES = RNG.integers(0, 3, (30, 2)) / 2
TABLE = RatingsTable(
    tuple(
        Rating(f"e{row}", "text", "s", dimension, "r", float(VALUES[row, k]), language="en")
        for row in range(len(VALUES))
        for k, dimension in enumerate(("accuracy", "overall"))
    )
)


def noisy(name: str, noise: float, seed: int) -> MetricScores:
    added = np.random.default_rng(seed).normal(0, noise, VALUES.shape)
    scores: Mapping[Key, float] = {
        one.key: float((VALUES + added)[int(one.item[1:]), ("accuracy", "overall").index(one.dimension)])
        for one in TABLE.ratings
    }
    return MetricScores(name, dict(scores))


FIRST, SECOND = noisy("judge", 0.4, 0), noisy("judge", 0.8, 1)
BETTER, WORSE = noisy("better", 0.6, 2), noisy("worse", 3.0, 3)


def figure(metric: MetricScores) -> float:
    found = audit(TABLE, metric, CorrelationSettings(draws=0)).aggregates[0].mean.value
    assert found is not None
    return found


def test_one_draw_is_what_a_comparison_of_two_metrics_gives() -> None:
    whole, *_ = beside_best(TABLE, [FIRST], [WORSE, BETTER], SETTINGS)
    board = compare(TABLE, [FIRST, BETTER], SETTINGS)[0]
    assert (whole.language, whole.dimension, whole.other) == ("en", "", "better")
    means = {row.metric: row.mean for row in board.metrics}
    assert whole.judge.value == pytest.approx(means["judge"].value)
    assert whole.beside.value == pytest.approx(means["better"].value)
    pair = board.comparisons[0].difference
    assert whole.difference.p == pytest.approx(pair.p)
    assert abs(whole.difference.value or 0) == pytest.approx(abs(pair.value or 1))


def test_the_figure_of_several_draws_is_their_mean() -> None:
    rows = beside_best(TABLE, [FIRST, SECOND], [BETTER], SETTINGS)
    assert [row.dimension for row in rows] == ["", "accuracy", "overall"]
    whole = rows[0]
    assert whole.judge.value == pytest.approx((figure(FIRST) + figure(SECOND)) / 2)
    assert whole.difference.value == pytest.approx((figure(FIRST) + figure(SECOND)) / 2 - figure(BETTER))
    assert whole.judge.ci_low is not None
    assert whole.judge.ci_high is not None
    assert whole.judge.ci_low < (whole.judge.value or 0) < whole.judge.ci_high


def test_a_draw_that_comes_twice_changes_nothing() -> None:
    once = beside_best(TABLE, [FIRST], [BETTER], SETTINGS)
    twice = beside_best(TABLE, [FIRST, FIRST], [BETTER], SETTINGS)
    for one, other in zip(once, twice, strict=True):
        assert one.difference.p == pytest.approx(other.difference.p)
        assert one.judge.ci_low == pytest.approx(other.judge.ci_low)

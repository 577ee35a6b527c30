"""Logistic regression with clustered errors, against the formulas written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import logistic

RNG = np.random.default_rng(2)
VIDEOS = RNG.integers(0, 25, 600)
HARD, LATE = RNG.integers(0, 2, 600), RNG.normal(size=600)
LEAN = RNG.normal(size=25)[VIDEOS]
RIGHT = (RNG.random(600) < 1 / (1 + np.exp(-(0.4 - 1.1 * HARD + 0.3 * LATE + LEAN)))).astype(float)


def by_hand() -> tuple[Any, Any]:
    table, beta = np.stack([np.ones(600), HARD, LATE], axis=1), np.zeros(3)
    for _ in range(30):
        chance = 1 / (1 + np.exp(-table @ beta))
        information = (table * (chance * (1 - chance))[:, None]).T @ table
        beta = beta + np.linalg.solve(information, table.T @ (RIGHT - chance))
    chance = 1 / (1 + np.exp(-table @ beta))
    bread = np.linalg.inv((table * (chance * (1 - chance))[:, None]).T @ table)
    scores = np.stack(
        [(table * (RIGHT - chance)[:, None])[number == VIDEOS].sum(axis=0) for number in range(25)]
    )
    covariance = bread @ scores.T @ scores @ bread * 25 / 24 * 599 / 597
    return beta, np.sqrt(np.diag(covariance))


def test_terms_agree_with_the_formulas() -> None:
    found = logistic(RIGHT, {"hard": HARD, "late": LATE}, VIDEOS)
    beta, errors = by_hand()
    assert [term.name for term in found.terms] == ["intercept", "hard", "late"]
    assert [term.log_odds for term in found.terms] == pytest.approx(beta, abs=1e-6)
    assert [term.error for term in found.terms] == pytest.approx(errors, rel=1e-5)
    assert (found.n, found.groups, found.dropped) == (600, 25, ())
    hard = found.terms[1]
    assert hard.ci_low < hard.odds_ratio < hard.ci_high < 1
    assert hard.p < 0.001


def test_columns_that_add_nothing_are_named() -> None:
    found = logistic(RIGHT, {"hard": HARD, "easy": 1 - HARD, "always": np.ones(600)}, VIDEOS)
    assert found.dropped == ("easy", "always")


@pytest.mark.parametrize(
    ("right", "columns", "groups", "problem"),
    [
        ([1, 1, 1], {}, list("abc"), "the answers are all right, or all wrong"),
        ([], {}, [], "the answers are all right, or all wrong"),
        ([1, 0], {}, ["a", "b"], "fewer than three groups"),
        ([1, 1, 0, 0], {"x": [1, 1, 0, 0]}, list("abcd"), "some columns tell right from wrong without fail"),
    ],
)
def test_what_can_t_be_fitted_says_why(right: Any, columns: Any, groups: Any, problem: str) -> None:
    found = logistic(right, columns, groups)
    assert (found.terms, found.problem) == ((), problem)


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match="answers: found other values, expected 0 or 1"):
        logistic([0.5], {}, ["a"])
    with pytest.raises(InputError, match="column 'x': found 1, expected 2 values"):
        logistic([0, 1], {"x": [1]}, ["a", "b"])

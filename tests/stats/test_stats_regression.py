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


def test_answers_with_the_same_columns_count_together_and_errors_stay_those_of_statsmodels() -> None:
    """4,000 answers of three systems, 24 distinct rows: against the fit of all rows one by one."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    rng = np.random.default_rng(5)
    videos = rng.integers(0, 30, 4000)
    system = rng.integers(0, 3, 4000)
    columns = {name: rng.integers(0, 2, 4000) == 1 for name in ("recognition", "time", "out")}
    columns |= {f"system = {k}": system == k for k in (1, 2)}
    lean = rng.normal(size=30)[videos] + 0.6 * columns["out"] - 0.4 * system
    right = (rng.random(4000) < 1 / (1 + np.exp(-lean))).astype(float)
    table = np.stack([np.ones(4000), *columns.values()], axis=1).astype(float)
    assert len(np.unique(table, axis=0)) == 24
    expected = GLM(right, table, family=Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": videos, "use_correction": True}, tol=1e-12
    )
    found = logistic(right, columns, videos)
    assert [term.log_odds for term in found.terms] == pytest.approx(expected.params, abs=1e-8)
    assert [term.error for term in found.terms] == pytest.approx(expected.bse, rel=1e-8)
    shuffled = rng.permutation(4000)
    again = logistic(
        right[shuffled], {name: one[shuffled] for name, one in columns.items()}, videos[shuffled]
    )
    assert [term.error for term in again.terms] == pytest.approx(
        [term.error for term in found.terms], rel=1e-9
    )


def test_fifty_systems_on_twenty_thousand_questions_fit_into_memory() -> None:
    """A table of a million answers × 62 columns would be 500 MB in floats, and its copies gigabytes."""
    import tracemalloc

    rng = np.random.default_rng(6)
    videos = rng.integers(0, 200, 20_000)
    kinds = {f"label {k}": rng.random(20_000) < 0.3 for k in range(5)}
    kinds |= {name: rng.random(20_000) < 0.5 for name in ("out", "clinical", "medium", "long")}
    skill = rng.normal(size=50)
    chance = 1 / (1 + np.exp(-(skill[:, None] + rng.normal(size=200)[videos] - kinds["out"])))
    right = (rng.random((50, 20_000)) < chance).ravel()
    columns = {name: np.tile(one, 50) for name, one in kinds.items()}
    columns |= {f"system {k}": np.repeat(np.arange(50) == k, 20_000) for k in range(1, 50)}
    groups = np.tile(videos, 50)
    tracemalloc.start()
    found = logistic(right, columns, groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(found.terms), found.n, found.groups) == (59, 1_000_000, 200)
    assert peak < 400e6
    terms = {term.name: term for term in found.terms}
    assert terms["out"].ci_high < 1
    order = np.corrcoef(skill[1:], [terms[f"system {k}"].log_odds for k in range(1, 50)])
    assert order[0, 1] > 0.99


def test_columns_that_add_nothing_are_named() -> None:
    found = logistic(RIGHT, {"hard": HARD, "easy": 1 - HARD, "always": np.ones(600)}, VIDEOS)
    assert found.dropped == ("easy", "always")


@pytest.mark.parametrize(
    ("right", "columns", "groups", "problem"),
    [
        ([1, 1, 1], {}, list("abc"), "the answers are all right, or all wrong"),
        ([], {}, [], "the answers are all right, or all wrong"),
        ([1, 0], {}, ["a", "b"], "fewer than three groups"),
        (
            [1, 0, 1],
            {"x": [1, 0, 0], "y": [0, 1, 0]},
            list("abc"),
            "some columns tell right from wrong without fail",
        ),
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

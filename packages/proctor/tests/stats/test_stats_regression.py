"""Logistic regression with clustered errors, against the formulas written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats as reference

from proctor.core import InputError
from proctor.stats import Floats, logistic
from tests.support.simulation import assert_share, repetitions

RNG = np.random.default_rng(2)
VIDEOS = RNG.integers(0, 25, 600)
HARD, LATE = RNG.integers(0, 2, 600), RNG.normal(size=600)
LEAN = RNG.normal(size=25)[VIDEOS]
RIGHT = (RNG.random(600) < 1 / (1 + np.exp(-(0.4 - 1.1 * HARD + 0.3 * LATE + LEAN)))).astype(float)


def by_hand(right: Floats, columns: list[Any], groups: Any) -> tuple[Floats, Floats, Floats]:
    """Bell and McCaffrey's estimate and its degrees of freedom as they are written, with answers × answers matrices."""
    table = np.stack([np.ones(len(right)), *columns], axis=1)
    beta = np.zeros(table.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-table @ beta))
        information = (table * (chance * (1 - chance))[:, None]).T @ table
        beta = beta + np.linalg.solve(information, table.T @ (right - chance))
    chance = 1 / (1 + np.exp(-table @ beta))
    weight = chance * (1 - chance)
    scaled, rest = table * np.sqrt(weight)[:, None], (right - chance) / np.sqrt(weight)
    bread = np.linalg.inv(scaled.T @ scaled)
    residual = np.eye(len(right)) - scaled @ bread @ scaled.T
    pulls, parts = [], []
    for group in np.unique(groups):
        here = np.flatnonzero(groups == group)
        values, vectors = np.linalg.eigh(residual[np.ix_(here, here)])
        adjusted = (vectors / np.sqrt(values)) @ vectors.T
        pulls.append(bread @ scaled[here].T @ adjusted @ rest[here])
        parts.append(residual[:, here] @ adjusted @ scaled[here] @ bread)
    degrees = []
    for column in range(len(beta)):
        part = np.stack([one[:, column] for one in parts])
        products = part @ part.T
        degrees.append(np.trace(products) ** 2 / (products**2).sum())
    return beta, np.sqrt((np.stack(pulls) ** 2).sum(axis=0)), np.array(degrees)


def test_terms_agree_with_the_formulas() -> None:
    found = logistic(RIGHT, {"hard": HARD, "late": LATE}, VIDEOS)
    beta, errors, degrees = by_hand(RIGHT, [HARD, LATE], VIDEOS)
    assert [term.name for term in found.terms] == ["intercept", "hard", "late"]
    assert [term.log_odds for term in found.terms] == pytest.approx(beta, abs=1e-9)
    assert [term.error for term in found.terms] == pytest.approx(errors, rel=1e-9)
    assert [term.df for term in found.terms] == pytest.approx(degrees, rel=1e-9)
    assert (found.n, found.groups, found.dropped, found.single) == (600, 25, (), ())
    hard = found.terms[1]
    assert hard.ci_low < hard.odds_ratio < hard.ci_high < 1
    assert hard.p == pytest.approx(2 * reference.t.sf(abs(hard.log_odds / hard.error), hard.df))
    assert hard.p < 0.001


def test_shares_of_repetitions_agree_with_the_formulas_and_with_the_repetitions_one_by_one() -> None:
    """Five answers to each question: the log odds are those of all answers, the errors those of the shares."""
    rng = np.random.default_rng(7)
    each = rng.random((600, 5)) < 1 / (1 + np.exp(-(0.4 - 1.1 * HARD + LEAN)))[:, None]
    found = logistic(each.mean(axis=1), {"hard": HARD, "late": LATE}, VIDEOS)
    beta, errors, degrees = by_hand(each.mean(axis=1), [HARD, LATE], VIDEOS)
    assert [term.log_odds for term in found.terms] == pytest.approx(beta, abs=1e-9)
    assert [term.error for term in found.terms] == pytest.approx(errors, rel=1e-9)
    assert [term.df for term in found.terms] == pytest.approx(degrees, rel=1e-9)
    single = logistic(each.ravel(), {"hard": HARD.repeat(5), "late": LATE.repeat(5)}, VIDEOS.repeat(5))
    assert [term.log_odds for term in single.terms] == pytest.approx([term.log_odds for term in found.terms], abs=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_few_groups_of_unequal_size_agree_with_the_formulas(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(8), rng.integers(3, 14, 8))
    wide, late = rng.permutation([1.0, 1, 1, 0, 0, 0, 0, 0])[groups], rng.normal(size=len(groups))
    right = (rng.random(len(groups)) < 0.6).astype(float)
    found = logistic(right, {"wide": wide, "late": late}, groups)
    beta, errors, degrees = by_hand(right, [wide, late], groups)
    assert [term.log_odds for term in found.terms] == pytest.approx(beta, abs=1e-7)
    assert [term.error for term in found.terms] == pytest.approx(errors, rel=1e-7)
    assert [term.df for term in found.terms] == pytest.approx(degrees, rel=1e-7)
    assert all(term.df <= 8 for term in found.terms)


def test_what_one_group_alone_decides_has_no_error() -> None:
    """Whether that video is another one can't be known from it: an error of nearly 0, as without a correction, is
    none."""
    for column in (VIDEOS == 5, (VIDEOS == 5) & (HARD == 1), VIDEOS != 5):
        found = logistic(RIGHT, {"hard": HARD, "alone": column}, VIDEOS)
        assert "hard" in [term.name for term in found.terms]
        assert "alone" in found.single
        assert "alone" not in [term.name for term in found.terms]
    both = logistic(RIGHT, {"hard": HARD, "two": VIDEOS <= 1}, VIDEOS)
    assert both.single == ()
    assert both.terms[2].df < 3
    every = logistic(RIGHT, {f"video {number}": np.equal(VIDEOS, number) for number in range(1, 25)}, VIDEOS)
    assert (every.terms, every.problem) == ((), "single groups decide all columns")
    assert len(every.single) == 25


def test_answers_with_the_same_columns_count_together_and_many_groups_have_the_errors_of_statsmodels() -> None:
    """12,000 answers of three systems, 24 distinct rows, in 300 groups: against the fit of all rows one by one."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    rng = np.random.default_rng(5)
    videos = rng.integers(0, 300, 12_000)
    system = rng.integers(0, 3, 12_000)
    columns = {name: rng.integers(0, 2, 12_000) == 1 for name in ("recognition", "time", "out")}
    columns |= {f"system = {k}": system == k for k in (1, 2)}
    lean = rng.normal(size=300)[videos] + 0.6 * columns["out"] - 0.4 * system
    right = (rng.random(12_000) < 1 / (1 + np.exp(-lean))).astype(float)
    table = np.stack([np.ones(12_000), *columns.values()], axis=1).astype(float)
    assert len(np.unique(table, axis=0)) == 24
    expected = GLM(right, table, family=Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": videos, "use_correction": True}, tol=1e-12
    )
    found = logistic(right, columns, videos)
    assert [term.log_odds for term in found.terms] == pytest.approx(expected.params, abs=1e-8)
    # statsmodels corrects by G / (G - 1) alone: with so many groups that is nearly the same.
    assert [term.error for term in found.terms] == pytest.approx(expected.bse, rel=0.01)
    shuffled = rng.permutation(12_000)
    again = logistic(right[shuffled], {name: one[shuffled] for name, one in columns.items()}, videos[shuffled])
    assert [term.error for term in again.terms] == pytest.approx([term.error for term in found.terms], rel=1e-9)


def test_many_systems_on_many_questions_fit_into_memory() -> None:
    """A table of 200,000 answers × 29 columns would be 46 MB in floats, and its copies several times that."""
    import tracemalloc

    rng = np.random.default_rng(6)
    videos = rng.integers(0, 200, 10_000)
    kinds = {f"label {k}": rng.random(10_000) < 0.3 for k in range(5)}
    kinds |= {name: rng.random(10_000) < 0.5 for name in ("out", "clinical", "medium", "long")}
    skill = rng.normal(size=20)
    chance = 1 / (1 + np.exp(-(skill[:, None] + rng.normal(size=200)[videos] - kinds["out"])))
    right = (rng.random((20, 10_000)) < chance).ravel()
    columns = {name: np.tile(one, 20) for name, one in kinds.items()}
    columns |= {f"system {k}": np.repeat(np.arange(20) == k, 10_000) for k in range(1, 20)}
    groups = np.tile(videos, 20)
    tracemalloc.start()
    found = logistic(right, columns, groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(found.terms), found.n, found.groups) == (29, 200_000, 200)
    assert peak < 80e6
    terms = {term.name: term for term in found.terms}
    assert terms["out"].ci_high < 1
    order = np.corrcoef(skill[1:], [terms[f"system {k}"].log_odds for k in range(1, 20)])
    assert order[0, 1] > 0.99


@pytest.mark.simulation
@pytest.mark.parametrize("n_groups", [10, 24, 100])
def test_columns_that_say_nothing_have_p_below_5_percent_in_5_of_100(n_groups: int) -> None:
    """One column changes between videos, one within them. With 10 and 24 groups the plain correction, G / (G - 1), had
    7 to 11 % false alarms; a column that a fifth of the videos carries is the hardest."""
    rng = np.random.default_rng(n_groups)
    tables, alarms = repetitions(800), np.zeros(3)
    for _ in range(tables):
        videos = np.repeat(np.arange(n_groups), rng.geometric(0.1, n_groups))
        half, fifth = (np.isin(videos, rng.choice(n_groups, n_groups // share, replace=False)) for share in (2, 5))
        within = rng.integers(0, 2, len(videos))
        lean = rng.normal(size=n_groups)[videos]
        right = (rng.random(len(videos)) < 1 / (1 + np.exp(-lean))).astype(float)
        found = logistic(right, {"half": half, "fifth": fifth, "within": within}, videos)
        p = {term.name: term.p for term in found.terms}
        alarms += [p.get(name, 1.0) < 0.05 for name in ("half", "fifth", "within")]
    for count in alarms:
        assert_share(count, tables, 0.0, 0.065)


def test_columns_that_add_nothing_are_named() -> None:
    found = logistic(RIGHT, {"hard": HARD, "easy": 1 - HARD, "always": np.ones(600)}, VIDEOS)
    assert found.dropped == ("easy", "always")


@pytest.mark.parametrize(
    ("right", "columns", "groups", "problem"),
    [
        ([1, 1, 1], {}, list("abc"), "the answers are all right, or all wrong"),
        ([], {}, [], "the answers are all right, or all wrong"),
        ([0.4, 0.4, 0.4], {}, list("abc"), "all answers have the same share right"),
        ([1, 0], {}, ["a", "b"], "fewer than three groups"),
        ([1, 0, 1], {"x": [1, 0, 0], "y": [0, 1, 0]}, list("abc"), "some columns tell right from wrong without fail"),
        ([1, 1, 0, 0], {"x": [1, 1, 0, 0]}, list("abcd"), "some columns tell right from wrong without fail"),
    ],
)
def test_what_can_t_be_fitted_says_why(right: Any, columns: Any, groups: Any, problem: str) -> None:
    found = logistic(right, columns, groups)
    assert (found.terms, found.problem) == ((), problem)


def test_wrong_input_is_named() -> None:
    for wrong in (-0.1, 1.1):
        with pytest.raises(InputError, match="answers: found other values, expected 0 to 1"):
            logistic([wrong], {}, ["a"])
    with pytest.raises(InputError, match="column 'x': found 1, expected 2 values"):
        logistic([0, 1], {"x": [1]}, ["a", "b"])

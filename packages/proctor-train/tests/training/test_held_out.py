"""Agreement on held-out answers is the audit's, and a missing score is never filled in."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from proctor.audits import CorrelationSettings, MetricScores, Rating, RatingsTable, audit
from proctor.core import InputError
from proctor.judges.dimensions import Case, Dimension, RatedCase
from proctor_train import held_out_agreement

LEVELS = (0.0, 0.5, 1.0)


def rated(seed: int = 0, encounters: int = 12) -> tuple[list[RatedCase], list[dict[str, float]]]:
    rng = np.random.default_rng(seed)
    dimensions = (Dimension("overall", LEVELS), Dimension("relevance", LEVELS))
    cases, scores = [], []
    for number in range(encounters):
        for answer in range(3):
            one = Case(f"e{number}/en", f"e{number}", "d", "en", "?", (), f"Answer {answer}.", dimensions)
            values = {name: float(rng.choice(LEVELS)) for name in ("overall", "relevance")}
            cases.append(RatedCase(one, values))
            scores.append({name: value + float(rng.normal(0, 0.5)) for name, value in values.items()})
    return cases, scores


def test_it_is_the_mean_of_the_three_correlations() -> None:
    cases, scores = rated()
    whole, *each = held_out_agreement(cases, scores, draws=200, seed=3)
    for one in each:
        given = [row[one.dimension] for row in scores]
        people = [row.values[one.dimension] for row in cases]
        three = (stats.kendalltau(given, people), stats.pearsonr(given, people), stats.spearmanr(given, people))
        assert one.value == pytest.approx(sum(float(kind.statistic) for kind in three) / 3, abs=1e-12)
        assert None not in (one.ci_low, one.value, one.ci_high)
        assert (one.ci_low or 0) < (one.value or 0) < (one.ci_high or 0)
        assert (one.answers, one.encounters) == (36, 12)
    assert whole.dimension == ""
    assert whole.value == pytest.approx(sum(one.value or 0 for one in each) / 2)


def test_a_missing_score_leaves_no_agreement() -> None:
    cases, scores = rated()
    del scores[4]["overall"]
    whole, overall, relevance = held_out_agreement(cases, scores, draws=0)
    assert (overall.value, overall.missing, overall.reason) == (None, 1, "no score for 1 of 36 answers")
    assert whole.value is None
    assert "overall" in whole.reason
    assert relevance.value is not None


def test_constant_scores_have_none_and_other_numbers_are_refused() -> None:
    cases, scores = rated()
    whole, *_ = held_out_agreement(cases, [{"overall": 0.5, "relevance": 0.5}] * len(cases), draws=0)
    assert (whole.value, whole.reason) == (None, "overall: all scores are 0.5")
    with pytest.raises(InputError, match="35"):
        held_out_agreement(cases, scores[:-1])


def test_each_rater_counts_by_itself_as_in_an_audit() -> None:
    """Over ratings that raters disagree on: the audit's own figures, interval included, and SciPy's over all ratings,
    not those with the raters' mean."""
    cases, scores = rated(seed=4)
    rng = np.random.default_rng(5)
    each = [
        {name: tuple(float(rng.choice(LEVELS)) for _ in range(rng.integers(1, 4))) for name in one.values}
        for one in cases
    ]
    people = [
        RatedCase(one.case, {name: sum(own) / len(own) for name, own in given.items()}, given)
        for one, given in zip(cases, each, strict=True)
    ]
    table = RatingsTable(
        tuple(
            Rating(
                one.case.id,
                one.case.candidate,
                str(row),
                name,
                f"r{rater}",
                value,
                group=one.case.encounter,
                language="en",
            )
            for row, one in enumerate(people)
            for name in ("overall", "relevance")
            for rater, value in enumerate(one.each[name])
        )
    )
    given = {
        (one.case.id, str(row), name): value
        for row, (one, own) in enumerate(zip(people, scores, strict=True))
        for name, value in own.items()
    }
    audited = audit(table, MetricScores("m", given), CorrelationSettings(draws=200, seed=3)).agreements
    whole, *rows = held_out_agreement(people, scores, draws=200, seed=3)
    for one in rows:
        pairs = [
            (own[one.dimension], value)
            for own, given in zip(scores, each, strict=True)
            for value in given[one.dimension]
        ]
        xs, ys = zip(*pairs, strict=True)
        three = (stats.kendalltau(xs, ys), stats.pearsonr(xs, ys), stats.spearmanr(xs, ys))
        assert one.value == pytest.approx(sum(float(kind.statistic) for kind in three) / 3, abs=1e-12)
        assert (one.answers, one.encounters, one.missing) == (36, 12, 0)
        cell = next(cell for cell in audited if cell.dimension == one.dimension)
        assert (one.value, one.ci_low, one.ci_high) == (cell.mean.value, cell.mean.ci_low, cell.mean.ci_high)
    assert whole.value == pytest.approx(sum(one.value or 0 for one in rows) / 2)

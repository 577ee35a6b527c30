"""Leads over metrics named beforehand, and bounds: worked by hand, and on ratings whose structure is known."""

from __future__ import annotations

import json

import numpy as np
import pytest

from proctor.audits import (
    AS_GIVEN,
    AuditReport,
    CorrelationSettings,
    LeadRow,
    MetricScores,
    Rating,
    RatingsTable,
    bounds,
    compare,
    leading,
    leads,
    to_json,
)
from proctor.audits.comparison import ORDER, OTHERS, SIBLINGS, TRUE_BETWEEN, TRUE_WITHIN, as_tied, parted
from proctor.core import InputError
from tests.support.planted_metrics import planted

FEW = CorrelationSettings(draws=200)


def _nested(encounters: int = 60, seed: int = 0) -> tuple[RatingsTable, dict[str, list[MetricScores]]]:
    """One dimension, four answers a group; a rating is the group's level and the answer's own. "between" knows the first
    alone, "within" the second, "noise" nothing."""
    rng = np.random.default_rng(seed)
    ratings: list[Rating] = []
    scores: dict[str, dict[tuple[str, str, str], float | None]] = {name: {} for name in ("between", "within", "noise")}
    for number in range(encounters):
        shared = rng.normal()
        apart = rng.normal(size=4)
        for system, own in enumerate(apart - apart.mean()):
            one = Rating(
                f"e{number}", "…", f"s{system}", "overall", "r", float(np.digitize(shared + own, (-0.7, 0.7))) / 2
            )
            ratings.append(one)
            values = {"between": shared, "within": own, "noise": rng.normal()}
            for name, value in values.items():
                scores[name][one.key] = float(value)
    return RatingsTable(tuple(ratings)), {name: [MetricScores(name, one)] for name, one in scores.items()}


def _of(rows: tuple[LeadRow, ...], metric: str, part: str, dimension: str = "") -> LeadRow:
    (found,) = [row for row in rows if (row.metric, row.part, row.dimension) == (metric, part, dimension)]
    return found


def test_parts_of_a_metric_that_knows_only_groups_or_only_what_differs_within_them() -> None:
    table, metrics = _nested()
    rows = leads(table, metrics, ["noise"], FEW)
    between, within = _of(rows, "between", "between"), _of(rows, "between", "within")
    assert (between.figure.value or 0) > 0.9
    assert within.figure.value is None
    assert within.reason == "nothing varies"
    assert within.lead("noise").difference.value is None
    assert (_of(rows, "within", "within").figure.value or 0) > 0.8
    assert _of(rows, "within", "within").lead("noise").significant
    assert leading(rows, "noise") == [": between", ": within"]


def test_parts_by_hand() -> None:
    scores, ratings = np.array([1.0, 3.0, 5.0, 7.0, 9.0]), np.array([0.0, 1.0, 0.5, 0.5, 1.0])
    means = parted(scores, ratings, ["b", "b", "a", "a", "c"], "between")
    assert [one.tolist() for one in means[:2]] == [[6.0, 2.0, 9.0], [0.5, 0.5, 1.0]]
    assert means[2] == ("a", "b", "c")
    apart = parted(scores, ratings, ["b", "b", "a", "a", "c"], "within")
    assert [one.tolist() for one in apart[:2]] == [[-1.0, 1.0, -1.0, 1.0], [-0.5, 0.5, 0.0, 0.0]]
    assert apart[2] == ("b", "b", "a", "a")


def test_tied_scores_have_the_shares_of_the_ratings_and_keep_their_order() -> None:
    rng = np.random.default_rng(1)
    scores, ratings = rng.normal(size=200), rng.choice([0.0, 0.5, 1.0], 200, p=[0.1, 0.2, 0.7])
    tied = as_tied(scores, ratings)
    assert np.sort(tied).tolist() == np.sort(ratings).tolist()
    assert (np.diff(tied[np.argsort(scores)]) >= 0).all()
    assert as_tied(np.array([2.0, 2.0, 2.0, 5.0]), np.array([0.0, 0.0, 1.0, 1.0])).tolist() == [0.0, 0.0, 0.0, 1.0]


def test_ties_are_worth_something_where_most_answers_have_one_rating() -> None:
    rng = np.random.default_rng(2)
    ratings, scores = [], {}
    for number in range(80):
        quality = rng.normal()
        one = Rating(f"e{number}", "…", "s", "overall", "r", 1.0 if quality > -1 else 0.0)
        ratings.append(one)
        scores[one.key] = float(quality + 0.3 * rng.normal())
    given = {"fine": [MetricScores("fine", scores)]}
    worth = _of(leads(RatingsTable(tuple(ratings)), given, [], FEW), "fine", "tied").lead(AS_GIVEN).difference
    assert worth.value is not None
    assert worth.value > 0.1
    assert worth.ci_low is not None
    assert worth.ci_low > 0


def test_a_lead_is_the_difference_on_the_board_and_its_interval_too() -> None:
    table, metrics = planted(encounters=30)
    given = {name: [metrics[name]] for name in ("fair", "long", "friend")}
    rows = leads(table, given, ["fair"], FEW)
    for board in compare(table, [one for (one,) in given.values()], FEW):
        for pair in board.comparisons:
            if "fair" not in {pair.first, pair.second}:
                continue
            other = pair.second if pair.first == "fair" else pair.first
            (row,) = [
                row
                for row in rows
                if (row.language, row.dimension, row.metric, row.part)
                == (board.language, board.dimension, other, "all")
            ]
            expected = pair.difference if pair.second == "fair" else pair.difference.reversed()
            assert row.lead("fair").difference == expected


def test_several_draws_count_with_the_mean_of_their_figures() -> None:
    table, metrics = planted(encounters=20)
    rows = leads(
        table, {"both": [metrics["fair"], metrics["long"]], "fair": [metrics["fair"]], "long": [metrics["long"]]}, []
    )
    values = [
        _of(tuple(row for row in rows if row.language == "en"), name, "all").figure.value
        for name in ("both", "fair", "long")
    ]
    assert values[0] == pytest.approx(((values[1] or 0) + (values[2] or 0)) / 2)


def test_a_metric_that_opted_out_has_a_reason_and_no_lead() -> None:
    table, metrics = planted(encounters=20)
    silent = MetricScores(
        "silent", {key: None if key[0].endswith("/zh") else 0.1 * k for k, key in enumerate(table.keys)}
    )
    rows = leads(table, {"silent": [silent], "fair": [metrics["fair"]]}, ["fair"], FEW)
    out = [row for row in rows if (row.metric, row.language) == ("silent", "zh")]
    assert {row.figure.value for row in out} == {None}
    assert all(row.reason == "opted out" and row.lead("fair").difference.value is None for row in out)


def test_an_unknown_baseline_is_refused() -> None:
    table, metrics = planted(encounters=4)
    with pytest.raises(InputError, match="lead over: found 'bleu', expected one of fair"):
        leads(table, {"fair": [metrics["fair"]]}, ["bleu"])


def test_the_reports_json_has_leads_only_where_asked_and_no_nan() -> None:
    table, metrics = planted(encounters=12)
    both = [metrics["fair"], metrics["flat"]]
    assert "leads" not in to_json(AuditReport(table, both, FEW))
    told = to_json(AuditReport(table, both, FEW, over=["fair"]))["leads"]
    assert isinstance(told, list)
    text = json.dumps(told, allow_nan=False)
    assert '"over": "fair"' in text
    assert {(row["part"]) for row in told if isinstance(row, dict)} == {"all", "between", "within", "tied"}


def test_bounds_by_hand() -> None:
    rows = [("a", "x", 1.0), ("a", "y", 0.0), ("a", "z", 0.5), ("b", "x", 1.0)]
    table = RatingsTable(tuple(Rating(item, "…", system, "overall", "r", value) for item, system, value in rows))
    found = bounds(table)
    assert list(found[SIBLINGS][0].scores.values()) == [0.25, 0.75, 0.5, 0.625]  # b has one answer: the mean of all
    assert set(found[OTHERS][0].scores.values()) == {None}
    assert {name: len(draws) for name, draws in found.items()} == {ORDER: 10, OTHERS: 1, SIBLINGS: 1}


def test_bounds_stand_above_the_judge_and_the_perfect_order_above_all() -> None:
    table, metrics = _nested()
    (judge,) = metrics["within"]
    found = bounds(table, [judge])
    rows = leads(table, {"judge": [judge], **found}, ["judge"], FEW)
    values = {row.metric: row.figure.value or 0.0 for row in rows if (row.part, row.dimension) == ("all", "")}
    assert values[ORDER] == max(values.values())
    assert values[ORDER] < 1  # ratings tie, and scores do not
    # This judge orders within groups almost perfectly: what it lacks are the groups' means.
    assert values[TRUE_BETWEEN] > values[TRUE_WITHIN]
    assert values[TRUE_BETWEEN] > values["judge"] + 0.2


def test_ratings_on_other_dimensions_that_say_nothing_predict_nothing() -> None:
    rng = np.random.default_rng(3)
    ratings = [
        Rating(f"e{k // 3}", "…", f"s{k % 3}", name, "r", float(rng.integers(0, 3)) / 2)
        for k in range(150)
        for name in "pq"
    ]
    table = RatingsTable(tuple(ratings))
    (row,) = [
        one
        for one in leads(table, {OTHERS: bounds(table)[OTHERS]}, [], FEW)
        if (one.part, one.dimension) == ("all", "")
    ]
    assert abs(row.figure.value or 0) < 0.12  # fitted without the group, and no lower for that

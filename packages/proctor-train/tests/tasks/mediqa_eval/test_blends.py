"""Mixtures of metrics, and the embedded judge without one fold or two: what is learned never sees what it scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from proctor.audits import CorrelationSettings, Key, MetricScores, Rating, RatingsTable, leads
from proctor.judges.dimensions import BlendMember, best_alone, blended, equal_weights, stacked_weights
from proctor_train.mediqa_eval.embedded import (
    Recipe,
    encounter_fold,
    leaving_each_fold,
    out_of_fold,
    out_of_fold_from_part,
    read_rated,
    splits_of,
)
from tests.support.rated_answers import hashed, made_up

FOLDS = 4
SMALL = Recipe(folds=3, designs=4, kept=2)


def _table(groups: int = 40, seed: int = 0) -> tuple[RatingsTable, dict[str, MetricScores], dict[tuple[str, str], int]]:
    """Ratings that are the sum of two things; "first" and "second" know one each, "noise" none."""
    rng = np.random.default_rng(seed)
    ratings: list[Rating] = []
    scores: dict[str, dict[Key, float | None]] = {"first": {}, "second": {}, "noise": {}}
    for number in range(groups):
        for system in "xy":
            one, two = rng.normal(size=2)
            rating = Rating(f"e{number}", "…", system, "overall", "r", float(np.digitize(one + two, (-0.8, 0.8))) / 2)
            ratings.append(rating)
            scores["first"][rating.key] = float(100 * one + 7)
            scores["second"][rating.key] = float(0.01 * two)
            scores["noise"][rating.key] = float(rng.normal())
    folds = {("", f"e{number}"): number % FOLDS for number in range(groups)}
    return RatingsTable(tuple(ratings)), {name: MetricScores(name, one) for name, one in scores.items()}, folds


def _figure(table: RatingsTable, metric: MetricScores) -> float:
    rows = leads(table, {metric.name: [metric]}, (), CorrelationSettings(draws=0))
    return next(row.figure.value or 0.0 for row in rows if (row.part, row.dimension) == ("all", ""))


def test_a_mixture_is_better_than_each_of_its_members_whatever_their_scales() -> None:
    table, metrics, folds = _table()
    members = [BlendMember.fixed(one, FOLDS) for one in metrics.values()]
    alone = max(_figure(table, one) for one in metrics.values())
    stacked = blended("stacked", table, members, folds, stacked_weights)
    assert _figure(table, stacked) > alone + 0.1
    assert _figure(table, blended("mean", table, members, folds, equal_weights)) > alone
    assert _figure(table, stacked) > _figure(table, blended("mean", table, members, folds, equal_weights))


def test_the_best_alone_is_chosen_without_the_fold_it_scores() -> None:
    table, metrics, folds = _table(8)
    # "first" is told the ratings of fold 0 and is noise elsewhere: chosen by fold 0's own ratings, it would stand there.
    told = {one.key: one.value if folds["", one.item] == 0 else float(k % 3) for k, one in enumerate(table.ratings)}
    members = [BlendMember.fixed(MetricScores("first", told), FOLDS), BlendMember.fixed(metrics["second"], FOLDS)]
    chosen = blended("best", table, members, folds, best_alone)
    for one in table.ratings:
        if folds["", one.item] == 0:
            same = [other for other in table.ratings if folds["", other.item] == 0]
            order = np.argsort([chosen.scores[each.key] or 0.0 for each in same])
            assert order.tolist() == np.argsort([metrics["second"].scores[each.key] or 0.0 for each in same]).tolist()


def test_weights_are_learned_without_the_fold_that_they_are_used_on() -> None:
    table, metrics, folds = _table()
    members = [BlendMember.fixed(one, FOLDS) for one in metrics.values()]
    before = blended("stacked", table, members, folds, stacked_weights)
    turned = RatingsTable(
        tuple(replace(one, value=1 - one.value) if folds["", one.item] == 2 else one for one in table.ratings)
    )
    after = blended("stacked", turned, members, folds, stacked_weights)
    inside = [key for key in table.keys if folds["", key[0]] == 2]
    assert [before.scores[key] for key in inside] == [after.scores[key] for key in inside]
    assert any(before.scores[key] != after.scores[key] for key in table.keys if key not in inside)


def test_a_mixture_of_judges_that_saw_the_ratings_is_at_nothing_where_they_only_remember() -> None:
    rng = np.random.default_rng(4)
    table, _, folds = _table(60, seed=5)
    noise: dict[Key, float | None] = {key: float(rng.normal()) for key in table.keys}
    rating = {one.key: one.value for one in table.ratings}
    leaving = tuple(
        MetricScores("memory", {key: noise[key] if folds["", key[0]] == fold else rating[key] for key in table.keys})
        for fold in range(FOLDS)
    )
    mixed = blended("stacked", table, [BlendMember("memory", leaving)], folds, stacked_weights)
    rows = leads(table, {"stacked": [mixed]}, (), CorrelationSettings(draws=300))
    (figure,) = [row.figure for row in rows if (row.part, row.dimension) == ("all", "")]
    assert (figure.ci_low or 0) < 0 < (figure.ci_high or 0)


def test_where_all_opted_out_the_mixture_does() -> None:
    table, _, folds = _table(8)
    silent = MetricScores("silent", dict.fromkeys(table.keys))
    mixed = blended("mean", table, [BlendMember.fixed(silent, FOLDS)], folds, equal_weights)
    assert set(mixed.scores.values()) == {None}


def test_scores_without_a_fold_are_out_of_fold_and_never_hang_on_its_ratings() -> None:
    rated = made_up(12, languages=["en"], signal=0.9)
    (known,) = read_rated(rated, hashed)
    numbers = encounter_fold(known.split, SMALL, 0)
    assert splits_of(rated) == {"en": known.split}
    fold = np.array([numbers[group] for group in known.split.groups])
    leaving = leaving_each_fold(known, SMALL, 0)
    expected = out_of_fold(known, SMALL)
    for number, scores in enumerate(leaving):
        assert scores[fold == number] == pytest.approx(expected[fold == number], abs=1e-9)
    ratings = known.ratings.copy()
    ratings[fold == 0] = 1 - ratings[fold == 0]
    again = leaving_each_fold(replace(known, ratings=ratings), SMALL, 0)
    assert np.array_equal(again[0], leaving[0])  # nothing of it was learned from fold 0
    assert not np.array_equal(again[1], leaving[1])


def test_a_part_of_the_encounters_teaches_less_and_all_of_them_as_much_as_ever() -> None:
    rated = made_up(12, languages=["en"], signal=0.9)
    (known,) = read_rated(rated, hashed)
    whole = out_of_fold_from_part(known, SMALL, 1.0, 0)
    assert whole == pytest.approx(out_of_fold(known, SMALL), abs=1e-9)
    assert not np.allclose(out_of_fold_from_part(known, SMALL, 0.5, 0), whole)


def test_a_dimension_that_never_varies_in_a_part_teaches_nothing() -> None:
    (known,) = read_rated(made_up(12, languages=["en"], signal=0.9), hashed)
    ratings = known.ratings.copy()
    fold = np.array([encounter_fold(known.split, SMALL, 0)[group] for group in known.split.groups])
    ratings[fold != 0, 0] = 1.0  # outside fold 0 all the same
    scores = out_of_fold_from_part(replace(known, ratings=ratings), SMALL, 1.0, 0)
    assert set(scores[fold == 0, 0].tolist()) == {0.5}
    assert np.ptp(scores[fold == 0, 1]) > 0

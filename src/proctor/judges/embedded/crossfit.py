"""Scores by what was learned without one fold, or two, or from a part of the encounters: for mixtures that are validated
with the judge in them, and for learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from proctor.core import generator
from proctor.judges.dimensions import Case, RatedCase
from proctor.judges.embedded.learning import Recipe, Split, fold_numbers, learn, relative
from proctor.judges.embedded.validation import Floats, RatedAnswers
from proctor.judges.embedded.views import Rows


def splits_of(rated: Sequence[RatedCase]) -> dict[str, Split]:
    """What decides the folds of each language's answers, without reading them."""
    found: dict[str, list[Case]] = {}
    for one in rated:
        found.setdefault(one.case.language, []).append(one.case)
    return {
        language: Split(tuple(case.encounter for case in cases), tuple(case.dataset for case in cases))
        for language, cases in found.items()
    }


def encounter_fold(split: Split, recipe: Recipe, folds_seed: int) -> Mapping[str, int]:
    """The outer fold of each encounter, as `out_of_fold` deals them."""
    numbers = fold_numbers(split, recipe.folds, folds_seed, "outer")
    return dict(zip(split.groups, numbers.tolist(), strict=True))


def leaving_each_fold(known: RatedAnswers, recipe: Recipe, folds_seed: int) -> list[Floats]:
    """For each outer fold a score of every answer (rows × dimensions) by what was learned without that fold: answers of
    the fold as `out_of_fold` scores them, those of another fold by what was learned without both."""
    numbers = fold_numbers(known.split, recipe.folds, folds_seed, "outer")
    found = [np.full(known.ratings.shape, np.nan) for _ in range(recipe.folds)]
    for fold in range(recipe.folds):
        outside = np.flatnonzero(numbers == fold)
        found[fold][outside] = _scored(known, recipe, np.flatnonzero(numbers != fold), outside)
    for one, other in combinations(range(recipe.folds), 2):
        inside = np.flatnonzero((numbers != one) & (numbers != other))
        for fold, left in ((one, other), (other, one)):
            outside = np.flatnonzero(numbers == left)
            found[fold][outside] = _scored(known, recipe, inside, outside)
    return found


def out_of_fold_from_part(known: RatedAnswers, recipe: Recipe, share: float, folds_seed: int) -> Floats:
    """As `out_of_fold`, learned from this share of each training part's encounters, drawn from the seed; a smaller share
    is part of a larger one."""
    numbers = fold_numbers(known.split, recipe.folds, folds_seed, "outer")
    groups = np.array(known.split.groups)
    scores = np.full(known.ratings.shape, np.nan)
    for fold in range(recipe.folds):
        names = np.unique(groups[numbers != fold])
        order = generator(folds_seed, "embedded-judge", "part", str(fold)).permutation(len(names))
        kept = names[order[: max(recipe.folds, round(share * len(names)))]]
        outside = np.flatnonzero(numbers == fold)
        scores[outside] = _scored(known, recipe, np.flatnonzero(np.isin(groups, kept)), outside)
    return scores


def _scored(known: RatedAnswers, recipe: Recipe, inside: Rows, outside: Rows) -> Floats:
    """Scores on the task's scale. A dimension on which all these ratings are the same teaches nothing: all its scores
    are in the middle."""
    ratings = known.ratings[inside]
    taught = np.ptp(ratings, axis=0) > 0
    scores = np.full((len(outside), len(known.dimensions)), 0.5)
    if taught.any():
        names = [name for name, there in zip(known.dimensions, taught, strict=True) if there]
        learned = learn(known.training.part(inside).on(taught), names, known.split.part(inside), recipe)
        scores[:, taught] = relative(learned.rate(known.answers.part(outside)))
    return np.asarray(known.lowest + known.span * scores, dtype=np.float64)

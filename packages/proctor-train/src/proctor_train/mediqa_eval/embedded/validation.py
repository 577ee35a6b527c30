"""Rated answers to learn from, and nested cross-validation: the agreement of the judge on encounters that it has not learned
from, compared with the best of other metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from proctor.audits import ALL, CorrelationSettings, Key, MetricScores, RatingCell, RatingCells, RatingsTable, paired
from proctor.core import InputError, generator
from proctor.judges.dimensions import Case, RatedCase
from proctor.stats import Contrast, Estimate, Floats, Ints, average, contrast
from proctor_train.mediqa_eval.embedded.answers import (
    STACKED,
    Contrasts,
    Encoders,
    changed_cases,
    encoders_in,
    read_answers,
)
from proctor_train.mediqa_eval.embedded.learning import (
    RatedAnswers,
    Recipe,
    Split,
    fold_numbers,
    folds,
    learn,
    learn_each,
    parted,
    relative,
)

Stacked = Mapping[str, Mapping[Case, Mapping[str, float]]]
"""Scores that other judges gave: by judge, case and dimension."""


@dataclass(frozen=True)
class TrainingMaterial:
    """Training material besides ratings. `encoder` is the folder of another encoder than the embedded one, `stacked` are
    other judges' scores as further measures, `weak` are answers with a judge's scores instead of ratings."""

    encoder: Path | None = None
    stacked: Stacked = field(default_factory=dict)
    weak: tuple[RatedCase, ...] = ()

    def opened(self) -> Encoders | None:
        """The encoders in that folder, or None for the embedded ones."""
        return None if self.encoder is None else encoders_in(self.encoder)


NOTHING_ELSE = TrainingMaterial()
"""Ratings only, with the embedded encoder."""


def read_rated(
    rated: Sequence[RatedCase], encoders: Encoders | None = None, material: TrainingMaterial = NOTHING_ELSE
) -> tuple[RatedAnswers, ...]:
    """Rated answers by language, read with `encoders` or else the material's. Raises `InputError` for no ratings, an answer
    that was not rated on all its dimensions, constant ratings on a dimension of a language, an answer that a stacked
    judge did not score, and as `read_answers`."""
    if not rated:
        raise InputError("ratings", found="none", expected="answers with ratings")
    _refuse_constant(rated)  # before the texts are read, which takes minutes
    encoders = encoders or material.opened()
    return tuple(
        _read(rated, language, material, encoders)
        for language in dict.fromkeys(rated_case.case.language for rated_case in rated)
    )


def _refuse_constant(rated: Sequence[RatedCase]) -> None:
    values: dict[tuple[str, str], set[float]] = {}
    for rated_case in rated:
        for name, value in rated_case.values.items():
            values.setdefault((rated_case.case.language, name), set()).add(value)
    for (language, name), found in values.items():
        if len(found) == 1 and len(rated) > 1:
            raise InputError(
                f"ratings of {name!r} in {language!r}",
                found=f"all {next(iter(found)):g}",
                expected="some that differ: leave out this dimension",
            )


def out_of_fold(known: RatedAnswers, recipe: Recipe, *, folds_seed: int | None = None) -> Floats:
    """A score of every answer by a judge that learned from other folds: rows × dimensions, on the task's scale.

    Everything, such as the choice of designs and the calibration, is fitted again in the training folds of each outer
    fold. `folds_seed` draws other outer folds than the recipe's seed. With `Recipe.grouped` False inner and outer folds
    leak: answers to one encounter are on both sides.
    """
    return out_of_fold_each(known, recipe, (recipe.kept,), folds_seed=folds_seed)[0]


def out_of_fold_each(
    known: RatedAnswers, recipe: Recipe, numbers: Sequence[int], *, folds_seed: int | None = None
) -> list[Floats]:
    """As `out_of_fold`, once for each number of averaged designs."""
    scores = [np.full(known.ratings.shape, np.nan) for _ in numbers]
    seed = recipe.seed if folds_seed is None else folds_seed
    for inside, outside in folds(known.split, recipe.folds, seed, "outer", grouped=recipe.grouped):
        learned = learn_each(known.part(inside), recipe, numbers)
        new = known.answers.part(outside)
        for table, one in zip(scores, learned, strict=True):
            table[outside] = known.lowest + known.span * relative(one.rate(new))
    return scores


def split_encounters(known: RatedAnswers, recipe: Recipe) -> tuple[int, int]:
    """The number of encounters that the outer folds divide, and the number of all encounters."""
    number = fold_numbers(known.split, recipe.folds, recipe.seed, "outer", grouped=recipe.grouped)
    return parted(known.split, number), len(set(known.split.groups))


def _read(
    rated: Sequence[RatedCase], language: str, material: TrainingMaterial, encoders: Encoders | None
) -> RatedAnswers:
    rows = [k for k, one in enumerate(rated) if one.case.language == language]
    dimensions = rated[rows[0]].case.dimensions
    names = tuple(dimension.name for dimension in dimensions)
    weak = [one for one in material.weak if one.case.language == language and set(one.values) == set(names)]
    inside = [*(rated[k] for k in rows), *weak]
    for one in inside:
        if one.case.dimensions != dimensions or set(one.values) != set(names):
            found, expected = f"ratings of {', '.join(sorted(one.values))}", f"one of each of {', '.join(names)}"
            raise InputError(f"case {one.case.id}", found=found, expected=expected)
    lowest = np.array([dimension.levels[0] for dimension in dimensions])
    span = np.array([dimension.levels[-1] for dimension in dimensions]) - lowest
    values = np.array([[one.values[name] for name in names] for one in inside])
    cases = [one.case for one in inside]
    made, changed, origin, wording = changed_cases(cases[: len(rows)], 0)
    read = read_answers([*cases, *made], encoders)
    own, new = read.part(np.arange(len(cases))), read.part(np.arange(len(cases), len(read)))
    columns, given = _scores_beside(material.stacked, cases)
    beside = np.full((len(made), len(columns)), np.nan)
    beside[changed] = given[origin]  # the judges never scored a changed answer: its scores are taken as unchanged
    return RatedAnswers(
        own.stacked(columns, given),
        names,
        (values - lowest) / span,
        lowest,
        span,
        better=np.array([-1.0 if dimension.lower_is_better else 1.0 for dimension in dimensions]),
        split=_split(cases, len(rows)),
        positions=tuple(rows),
        contrasts=Contrasts(new.stacked(columns, beside), np.array(changed), np.array(origin), tuple(wording)),
    )


def _scores_beside(stacked: Stacked, cases: Sequence[Case]) -> tuple[tuple[str, ...], Floats]:
    """As `stacked_columns`; refuses a judge that has not scored all of the answers."""
    columns, given = stacked_columns(stacked, cases)
    if not np.isfinite(given).all():
        judge = columns[int(np.flatnonzero(~np.isfinite(given).all(axis=0))[0])]
        raise InputError(judge, found="no score of some answers", expected="one of each: proctor score first")
    return columns, given


def _split(cases: Sequence[Case], rated: int) -> Split:
    """What folds may part; the cases behind the first `rated` ones only teach."""
    weak = tuple(k >= rated for k in range(len(cases))) if len(cases) > rated else ()
    return Split(tuple(case.encounter for case in cases), tuple(case.dataset for case in cases), weak)


def stacked_columns(stacked: Stacked, cases: Sequence[Case]) -> tuple[tuple[str, ...], Floats]:
    """The names of the measures that are other judges' scores, and their values (rows × names), NaN for a missing score."""
    columns = tuple(f"{STACKED}{judge}:{dimension.name}" for judge in stacked for dimension in cases[0].dimensions)
    rows = [
        [
            given.get(case, {}).get(dimension.name, float("nan"))
            for given in stacked.values()
            for dimension in case.dimensions
        ]
        for case in cases
    ]
    return columns, np.array(rows, dtype=np.float64).reshape(len(cases), len(columns))


@dataclass(frozen=True, slots=True)
class Held:
    """The agreement (mean of Kendall, Pearson and Spearman on all datasets) of the judge and of another metric on one
    dimension, or ('') the mean over a language's dimensions, and their difference. The judge's agreement is the mean over
    several draws of the folds, with the interval of that mean."""

    language: str
    dimension: str
    judge: Estimate
    other: str
    beside: Estimate
    difference: Contrast


def scores_of(name: str, keys: Sequence[tuple[str, str]], found: Sequence[tuple[RatedAnswers, Floats]]) -> MetricScores:
    """Scores in the form of an audit; `keys` are item and system of each case that was read."""
    scores: dict[Key, float | None] = {}
    for known, table in found:
        for index, row in zip(known.positions, table[known.split.rated].tolist(), strict=True):
            scores |= {(*keys[index], name): value for name, value in zip(known.dimensions, row, strict=True)}
    return MetricScores(name, scores)


def best_metric(table: RatingsTable, metrics: Sequence[MetricScores], language: str) -> MetricScores:
    """The metric with the highest mean agreement over a language's dimensions. It is chosen on the ratings that it is
    compared on, which favours it over the judge. Raises `InputError` if no agreement is defined."""
    frame = RatingCells(table, CorrelationSettings(draws=0))
    cells = _cells(frame, language)
    found: dict[float, MetricScores] = {}
    for metric in metrics:
        mean = average([frame.measure(cell, *paired(cell, metric)).mean for cell in cells])
        if mean.defined:
            found.setdefault(mean.observed, metric)
    if not found:
        raise InputError(f"metrics on {language!r}", found="none with a figure", expected="one or more")
    return found[max(found)]


def _cells(frame: RatingCells, language: str) -> list[RatingCell]:
    """The cells of a language's dimensions on all datasets."""
    return [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]


def beside_best(
    table: RatingsTable, judge: Sequence[MetricScores], metrics: Sequence[MetricScores], settings: CorrelationSettings
) -> tuple[Held, ...]:
    """The judge compared with the best of the metrics in each language: first the mean over its dimensions.

    `judge` has the scores from each draw of the folds. In every bootstrap sample of encounters the agreement is averaged
    over the draws; averaged scores would be those of an ensemble.
    """
    frame = RatingCells(table, settings)
    rows = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        best = best_metric(table, metrics, language)
        cells = _cells(frame, language)
        own = [
            average([frame.measure(cell, *paired(cell, metric_scores)).mean for metric_scores in judge])
            for cell in cells
        ]
        other = [frame.measure(cell, *paired(cell, best)).mean for cell in cells]
        names = ("", *(cell.dimension for cell in cells))
        rows += [
            Held(language, name, mine.estimate(), best.name, its.estimate(), contrast(mine, its))
            for name, mine, its in zip(names, [average(own), *own], [average(other), *other], strict=True)
        ]
    return tuple(rows)


def splits_of(rated: Sequence[RatedCase]) -> dict[str, Split]:
    """The split of each language's answers, without reading their texts."""
    found: dict[str, list[Case]] = {}
    for rated_case in rated:
        found.setdefault(rated_case.case.language, []).append(rated_case.case)
    return {
        language: Split(tuple(case.encounter for case in cases), tuple(case.dataset for case in cases))
        for language, cases in found.items()
    }


def encounter_fold(split: Split, recipe: Recipe, folds_seed: int) -> Mapping[str, int]:
    """The outer fold of each encounter, as in `out_of_fold`."""
    numbers = fold_numbers(split, recipe.folds, folds_seed, "outer")
    return dict(zip(split.groups, numbers.tolist(), strict=True))


def leaving_each_fold(known: RatedAnswers, recipe: Recipe, folds_seed: int) -> list[Floats]:
    """For each outer fold the scores of all answers (rows × dimensions) by judges that did not learn from it: the answers of
    the fold as in `out_of_fold`, those of another fold by a judge that learned from neither."""
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
    """As `out_of_fold`, but learned from a random share of the encounters in each training part. A smaller share is a subset
    of a larger one."""
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


def _scored(known: RatedAnswers, recipe: Recipe, inside: Ints, outside: Ints) -> Floats:
    """Scores on the task's scale; those of a dimension with constant training ratings are in the middle."""
    ratings = known.ratings[inside]
    taught = np.ptp(ratings, axis=0) > 0
    scores = np.full((len(outside), len(known.dimensions)), 0.5)
    if taught.any():
        learned = learn(known.part(inside).on(taught), recipe)
        scores[:, taught] = relative(learned.rate(known.answers.part(outside)))
    return np.asarray(known.lowest + known.span * scores, dtype=np.float64)

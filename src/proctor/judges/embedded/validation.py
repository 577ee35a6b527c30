"""How well the judge does on encounters that it has not learned from: nested cross-validation, beside the best of other
metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.audits import ALL, CorrelationSettings, Key, MetricScores, RatingCell, RatingCells, RatingsTable, paired
from proctor.core import InputError
from proctor.judges.dimensions import RatedCase
from proctor.judges.embedded.answers import Answers, Encoders, read_answers
from proctor.judges.embedded.learning import (
    Learned,
    Recipe,
    Split,
    fold_numbers,
    folds,
    learn,
    learn_each,
    parted,
    relative,
)
from proctor.stats import Contrast, Estimate, average, contrast

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RatedAnswers:
    """Rated answers of one language, read once. `ratings` (rows × dimensions) are on the scale 0 to 1 from
    the lowest to the highest level; `places` are the rows' places among the cases given."""

    answers: Answers
    dimensions: tuple[str, ...]
    ratings: Floats
    lowest: Floats
    span: Floats
    split: Split
    places: tuple[int, ...]


def read_rated(rated: Sequence[RatedCase], encoders: Encoders | None = None) -> tuple[RatedAnswers, ...]:
    """Rated answers by language. Raises `InputError` for none, for an answer that was not rated on all its
    dimensions, for a dimension on which all ratings of a language are the same, and for what `read_answers`
    refuses."""
    if not rated:
        raise InputError(None, "ratings", found="none", expected="answers with ratings")
    _refuse_constant(rated)  # before the texts are read, which takes minutes
    return tuple(
        _read(rated, [k for k, one in enumerate(rated) if one.case.language == language], encoders)
        for language in dict.fromkeys(one.case.language for one in rated)
    )


def _refuse_constant(rated: Sequence[RatedCase]) -> None:
    values: dict[tuple[str, str], set[float]] = {}
    for one in rated:
        for name, value in one.values.items():
            values.setdefault((one.case.language, name), set()).add(value)
    for (language, name), found in values.items():
        if len(found) == 1 and len(rated) > 1:
            raise InputError(
                None,
                f"ratings of {name!r} in {language!r}",
                found=f"all {next(iter(found)):g}",
                expected="some that differ: leave out this dimension",
            )


def train(known: RatedAnswers, recipe: Recipe) -> Learned:
    """Learns from all rated answers of a language."""
    return learn(known.answers, known.ratings, known.dimensions, known.split, recipe)


def out_of_fold(known: RatedAnswers, recipe: Recipe, *, folds_seed: int | None = None) -> Floats:
    """A score of every answer by a judge that learned from other folds: rows × dimensions, on the task's scale.

    Choices of designs, calibration and everything else are made again inside the training folds of each
    outer fold. `folds_seed` draws other outer folds than the recipe's seed. With `Recipe.grouped` False
    the folds leak, inner and outer: answers to one encounter lie on both sides.
    """
    return out_of_fold_each(known, recipe, (recipe.kept,), folds_seed=folds_seed)[0]


def out_of_fold_each(
    known: RatedAnswers, recipe: Recipe, numbers: Sequence[int], *, folds_seed: int | None = None
) -> list[Floats]:
    """As `out_of_fold`, once for each number of designs that are averaged."""
    scores = [np.full(known.ratings.shape, np.nan) for _ in numbers]
    seed = recipe.seed if folds_seed is None else folds_seed
    for inside, outside in folds(known.split, recipe.folds, seed, "outer", grouped=recipe.grouped):
        answers, split = known.answers.part(inside), known.split.part(inside)
        learned = learn_each(answers, known.ratings[inside], known.dimensions, split, recipe, numbers)
        new = known.answers.part(outside)
        for table, one in zip(scores, learned, strict=True):
            table[outside] = known.lowest + known.span * relative(one.rate(new))
    return scores


def split_encounters(known: RatedAnswers, recipe: Recipe) -> tuple[int, int]:
    """How many encounters the outer folds part, and how many there are."""
    number = fold_numbers(known.split, recipe.folds, recipe.seed, "outer", grouped=recipe.grouped)
    return parted(known.split, number), len(set(known.split.groups))


def _read(rated: Sequence[RatedCase], places: Sequence[int], encoders: Encoders | None) -> RatedAnswers:
    inside = [rated[k] for k in places]
    dimensions = inside[0].case.dimensions
    names = tuple(one.name for one in dimensions)
    for one in inside:
        if one.case.dimensions != dimensions or set(one.values) != set(names):
            raise InputError(
                None,
                f"case {one.case.id}",
                found=f"ratings of {', '.join(sorted(one.values))}",
                expected=f"one of each of {', '.join(names)}",
            )
    lowest = np.array([one.levels[0] for one in dimensions])
    span = np.array([one.levels[-1] for one in dimensions]) - lowest
    values = np.array([[one.values[name] for name in names] for one in inside])
    return RatedAnswers(
        read_answers([one.case for one in inside], encoders),
        names,
        (values - lowest) / span,
        lowest,
        span,
        Split(tuple(one.case.encounter for one in inside), tuple(one.case.dataset for one in inside)),
        tuple(places),
    )


@dataclass(frozen=True, slots=True)
class Held:
    """The task's figure (mean of Kendall, Pearson and Spearman on all datasets) of the judge and of another
    metric on one dimension, or ('') on the mean over a language's dimensions, and the difference. The judge's
    figure is the mean of its figures in several draws of the folds, `judge` with the interval of that mean."""

    language: str
    dimension: str
    judge: Estimate
    other: str
    beside: Estimate
    difference: Contrast


def scores_of(name: str, keys: Sequence[tuple[str, str]], found: Sequence[tuple[RatedAnswers, Floats]]) -> MetricScores:
    """Scores as an audit takes them; `keys` are item and system of each case that was read."""
    scores: dict[Key, float | None] = {}
    for known, table in found:
        for place, row in zip(known.places, table.tolist(), strict=True):
            scores |= {(*keys[place], name): value for name, value in zip(known.dimensions, row, strict=True)}
    return MetricScores(name, scores)


def best_metric(table: RatingsTable, metrics: Sequence[MetricScores], language: str) -> MetricScores:
    """The metric with the highest mean over a language's dimensions. It is chosen on the very ratings that it
    is compared with, which flatters it, not the judge. Raises `InputError` where none has a figure."""
    frame = RatingCells(table, CorrelationSettings(draws=0))
    cells = _cells(frame, language)
    found: dict[float, MetricScores] = {}
    for metric in metrics:
        mean = average([frame.measure(cell, *paired(cell, metric)).mean for cell in cells])
        if mean.defined:
            found.setdefault(mean.observed, metric)
    if not found:
        raise InputError(None, f"metrics on {language!r}", found="none with a figure", expected="one or more")
    return found[max(found)]


def _cells(frame: RatingCells, language: str) -> list[RatingCell]:
    """Those of a language's dimensions on all datasets."""
    return [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]


def beside_best(
    table: RatingsTable, judge: Sequence[MetricScores], metrics: Sequence[MetricScores], settings: CorrelationSettings
) -> tuple[Held, ...]:
    """The judge beside the best of the metrics in each language: the mean over its dimensions first.

    `judge` holds its scores from each draw of the folds. Figures are averaged, not scores (which would be an
    ensemble of judges): in every bootstrap sample of encounters the mean figure is taken over the draws.
    """
    frame = RatingCells(table, settings)
    rows = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        best = best_metric(table, metrics, language)
        cells = _cells(frame, language)
        own = [average([frame.measure(cell, *paired(cell, one)).mean for one in judge]) for cell in cells]
        other = [frame.measure(cell, *paired(cell, best)).mean for cell in cells]
        names = ("", *(cell.dimension for cell in cells))
        rows += [
            Held(language, name, mine.estimate(), best.name, its.estimate(), contrast(mine, its))
            for name, mine, its in zip(names, [average(own), *own], [average(other), *other], strict=True)
        ]
    return tuple(rows)

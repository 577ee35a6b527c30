"""What is fitted on rated answers, for each dimension, and never applied to an encounter that it was fitted on:
calibration curves from a judge's scores to clinicians' ratings (`judge fit --method calibration`), the choice of the best
judge (`--method choice`), and blends of metrics and judges.

The best of many judges on some answers looks better on these answers than it is, because the luckiest of equally good
judges wins. So the choice is evaluated in folds of whole encounters: chosen on the other folds, compared with the ratings
of the fold that was left out. The judges themselves learn nothing here, so the choice needs no inner folds. Among twelve
equally good judges of simulated ratings (0.344 each) this reports 0.336; on the same answers it would be 0.466.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

import numpy as np
from pydantic import Field, model_validator

from proctor.audits import (
    ALL,
    KINDS,
    CorrelationSettings,
    Key,
    MetricScores,
    RatingCell,
    RatingCells,
    RatingsTable,
    paired,
)
from proctor.core import FrozenModel, InputError, content_hash, count_of, generator, read_model
from proctor.stats import Floats, Ints, Resamples, Sampled, average

T = TypeVar("T")


class PerFold(FrozenModel, Generic[T]):
    """What was fitted for a dimension of a language: on everything, and without each fold."""

    everything: T
    without: list[T]


def _learned_for(
    what: tuple[str, str], learned: Mapping[str, PerFold[T]], folds: Mapping[str, int], location: str, encounter: str
) -> T:
    """What was fitted for "en/overall" without the fold of an encounter; on everything if the encounter is in no fold.
    Raises `InputError` for an unknown location."""
    found = learned.get(location)
    if found is None:
        raise InputError(what[0], found=f"{what[1]} {location}", expected=f"one of {', '.join(learned)}")
    fold = folds.get(encounter)
    return found.everything if fold is None else found.without[fold]


def _covers(folds: Mapping[str, int], learned: Iterable[PerFold[T]]) -> bool:
    last = max(folds.values(), default=-1)
    return min(folds.values(), default=0) >= 0 and all(len(per_fold.without) > last for per_fold in learned)


def _dealt(encounters: set[str], folds: int, seed: int, name: str, location: str) -> dict[str, int]:
    """A random fold for each encounter. Raises `InputError` for fewer encounters than folds."""
    known = sorted(encounters)
    if len(known) < folds:
        raise InputError(location, found=count_of(len(known), "encounter"), expected=f"{folds} or more")
    order = generator(seed, name).permutation(len(known))
    return {known[int(at)]: number % folds for number, at in enumerate(order)}


@dataclass(frozen=True, slots=True)
class RatedScore:
    """A judge's score of an answer on a dimension, and a clinician's rating."""

    encounter: str
    language: str
    dimension: str
    score: float
    rating: float


class Curve(FrozenModel):
    """A rising piecewise linear function, constant before the first point and after the last.

    >>> Curve(scores=[0.2, 0.6], ratings=[0.0, 1.0]).at(0.4), Curve(scores=[0.2], ratings=[0.5]).at(0.9)
    (0.5, 0.5)
    """

    scores: list[float] = Field(min_length=1)
    ratings: list[float] = Field(min_length=1)

    @model_validator(mode="after")
    def _rises(self) -> Curve:
        if len(self.scores) != len(self.ratings):
            raise ValueError("as many ratings as scores are expected")
        if self.scores != sorted(set(self.scores)) or self.ratings != sorted(self.ratings):
            raise ValueError("scores and ratings that rise are expected")
        return self

    def at(self, score: float) -> float:
        """The rating for a score."""
        return round(float(np.interp(score, self.scores, self.ratings)), 12)


class Calibration(FrozenModel):
    """Curves by language and dimension ("en/overall"), and the fold of each encounter that they were fitted on.

    Such an encounter is judged by the curve without its fold, any other by the curve on everything. So no encounter's
    own ratings are used to judge it, in any language.
    """

    kind: Literal["proctor calibration 1"] = "proctor calibration 1"
    judge: str
    seed: int
    folds: dict[str, int]
    curves: dict[str, PerFold[Curve]]

    @model_validator(mode="after")
    def _every_fold_has_a_curve(self) -> Calibration:
        if not _covers(self.folds, self.curves.values()):
            raise ValueError("a curve for every fold is expected")
        return self

    @property
    def sha256(self) -> str:
        """The hash of its content."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def mapped(self, encounter: str, language: str, dimension: str, score: float) -> float:
        """The rating for a score. Raises `InputError` for a dimension that it was not fitted on."""
        location = f"{language}/{dimension}"
        return _learned_for(("calibration", "no curve for"), self.curves, self.folds, location, encounter).at(score)


def fit_calibration(rated: Sequence[RatedScore], *, judge: str, folds: int = 5, seed: int = 0) -> Calibration:
    """Isotonic regression (Ayer et al. 1955) from scores to ratings for each language and dimension, on everything and
    without each of `folds` random folds of encounters.

    Raises `InputError` for fewer encounters than folds, and for a dimension that was rated in one fold only.
    """
    fold_of = _dealt({rated_score.encounter for rated_score in rated}, folds, seed, "calibration", "calibration")
    by_dimension: dict[str, list[RatedScore]] = {}
    for rated_score in rated:
        by_dimension.setdefault(f"{rated_score.language}/{rated_score.dimension}", []).append(rated_score)
    curves = {}
    for name, inside in by_dimension.items():
        if len({fold_of[rated_score.encounter] for rated_score in inside}) < 2:
            raise InputError(f"calibration of {name}", found="ratings in one fold", expected="in two or more")
        without = [
            _curve([rated_score for rated_score in inside if fold_of[rated_score.encounter] != fold])
            for fold in range(folds)
        ]
        curves[name] = PerFold(everything=_curve(inside), without=without)
    return Calibration(judge=judge, seed=seed, folds=dict(sorted(fold_of.items())), curves=curves)


def rated_scores(scores: MetricScores, table: RatingsTable) -> list[RatedScore]:
    """Each rating with the score of the same answer, for a calibration. Answers that the scores opt out of are left out.
    Raises `InputError` if none is left."""
    found = [
        RatedScore(rating.cluster, rating.language, rating.dimension, value, rating.value)
        for rating in table.ratings
        if (value := scores.scores[rating.key]) is not None
    ]
    if not found:
        raise InputError(scores.name, found="no scores", expected="one or more")
    return found


def read_calibration(file: Path) -> Calibration:
    """A calibration from its JSON file. Raises `InputError`, with the field, for other content."""
    return read_model(file, Calibration, "a calibration")


def _curve(points: Sequence[RatedScore]) -> Curve:
    from sklearn.isotonic import IsotonicRegression

    scores = np.array([point.score for point in points])
    ratings = np.array([point.rating for point in points])
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, ratings)
    # All ratings are rounded alike, so that the curve still rises.
    rises = [round(float(threshold), 12) for threshold in fitted.y_thresholds_]
    return Curve(scores=[float(threshold) for threshold in fitted.X_thresholds_], ratings=rises)


def agreement(scores: Sequence[float], ratings: Sequence[float]) -> float | None:
    """The task's measure: the mean of Kendall's, Pearson's and Spearman's correlation, −1 to 1; None if it is undefined
    (fewer than two pairs, or constant scores or ratings).

    >>> agreement([0.1, 0.2, 0.3], [0.0, 0.5, 1.0]), agreement([0.5, 0.5], [0, 1])
    (1.0, None)
    """
    each = [str(position) for position in range(len(scores))]
    samples = Resamples(each, drawing=False)
    found = [samples.correlation(kind, list(scores), list(ratings), each) for kind in KINDS]
    return (
        sum(sampled.observed for sampled in found) / len(found) if all(sampled.defined for sampled in found) else None
    )


class HonestRow(FrozenModel):
    """The cross-validated agreement of the choice on a dimension ('': the mean over a language's dimensions).

    `value` (with its interval) is the mean over folds of the agreement in a fold of the judge that was chosen without
    it, over the `folds` with varying ratings; None, with the `reason`, if it is undefined. `apparent` is the same for
    the judge chosen on everything, on the ratings that it was chosen by: it is biased upwards.
    """

    language: str
    dimension: str
    chosen: str
    same_in_folds: int
    folds: int
    value: float | None
    ci_low: float | None
    ci_high: float | None
    apparent: float | None
    reason: str = ""


class DimensionChoice(FrozenModel):
    """The judge for each language and dimension ("en/overall"), and the fold of each encounter in the choice.

    Such an encounter is scored by the judge that was chosen without its fold, any other by the judge chosen on
    everything. So no encounter's ratings decide which judge scores it, in any language.
    """

    kind: Literal["proctor choice 1"] = "proctor choice 1"
    judges: list[str] = Field(min_length=1)
    seed: int
    folds: dict[str, int]
    chosen: dict[str, PerFold[str]]
    honest: list[HonestRow]

    @model_validator(mode="after")
    def _complete(self) -> DimensionChoice:
        if not _covers(self.folds, self.chosen.values()):
            raise ValueError("a choice for every fold is expected")
        if any({per_fold.everything, *per_fold.without} - set(self.judges) for per_fold in self.chosen.values()):
            raise ValueError("choices among the judges are expected")
        return self

    @property
    def sha256(self) -> str:
        """The hash of its content."""
        return content_hash(self)

    @property
    def needed(self) -> tuple[str, ...]:
        """The judges that are chosen for anything, in their order."""
        used = {name for per_fold in self.chosen.values() for name in (per_fold.everything, *per_fold.without)}
        return tuple(name for name in self.judges if name in used)

    def judge_for(self, encounter: str, language: str, dimension: str) -> str:
        """The name of the judge. Raises `InputError` for a dimension that nothing was chosen for."""
        return _learned_for(("choice", "none for"), self.chosen, self.folds, f"{language}/{dimension}", encounter)


@dataclass(frozen=True)
class _Rated:
    """A cell with the scores of each judge that did not opt out, and the fold of each rating."""

    cell: RatingCell
    scores: Mapping[str, Floats]
    fold: Ints

    def inside(self, fold: int) -> Ints:
        """The rows of a fold; none if its ratings are all the same, so that no agreement is defined."""
        inside = np.flatnonzero(self.fold == fold)
        return inside if len(inside) and np.ptp(self.cell.values[inside]) > 0 else inside[:0]

    def best(self, *, leaving: int | None = None) -> str:
        """The judge with the highest agreement outside the fold `leaving`, the first of ties. Raises `InputError` if no
        agreement is defined."""
        kept = np.flatnonzero(self.fold != leaving) if leaving is not None else np.arange(len(self.fold))
        found = {
            name: value
            for name, scores in self.scores.items()
            if (value := agreement(scores[kept].tolist(), self.cell.values[kept].tolist())) is not None
        }
        if not found:
            location = f"{self.cell.language}/{self.cell.dimension}"
            raise InputError(
                location, found="no judge that agreement can be stated for", expected="one that tells apart"
            )
        return max(found, key=lambda name: found[name])


def choose_judges(
    table: RatingsTable,
    judges: Sequence[MetricScores],
    *,
    folds: int = 5,
    seed: int = 0,
    settings: CorrelationSettings | None = None,
) -> DimensionChoice:
    """The judge with the highest agreement (see `agreement`) for each language and dimension, and the agreement of the
    choice on left-out encounters.

    Intervals are over bootstrap samples of encounters (see `RatingCells`). A judge that opted out of a dimension in any
    dataset can't be chosen for it. Raises `InputError` for fewer than two judges, a duplicate name, fewer encounters
    than folds, and a dimension for which no judge can be chosen.
    """
    names = [judge.name for judge in judges]
    if len(names) < 2 or len(set(names)) != len(names):
        raise InputError("judges", found=", ".join(names) or "none", expected="two or more, each once")
    fold_of = _dealt({rating.cluster for rating in table.ratings}, folds, seed, "per-dimension", "ratings")
    frame = RatingCells(table, settings or CorrelationSettings(seed=seed))
    chosen: dict[str, PerFold[str]] = {}
    honest: list[HonestRow] = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        rows, sampled = [], []
        for cell in frame.cells:
            if (cell.dataset, cell.language) != (ALL, language):
                continue
            rated = _rated(cell, judges, fold_of)
            one = PerFold(everything=rated.best(), without=[rated.best(leaving=fold) for fold in range(folds)])
            chosen[f"{language}/{cell.dimension}"] = one
            sampled.append(_within_folds(frame, rated, one.without))
            flattering = _within_folds(frame, rated, [one.everything] * folds)
            rows.append(_row(rated, one, sampled[-1], flattering))
        honest += [_mean_row(language, rows, sampled), *rows]
    return DimensionChoice(judges=names, seed=seed, folds=dict(sorted(fold_of.items())), chosen=chosen, honest=honest)


def read_choice(file: Path) -> DimensionChoice:
    """A choice from its JSON file. Raises `InputError`, with the field, for other content."""
    return read_model(file, DimensionChoice, "a choice")


def _rated(cell: RatingCell, judges: Sequence[MetricScores], fold_of: Mapping[str, int]) -> _Rated:
    pairs = {judge.name: paired(cell, judge) for judge in judges}
    scores = {name: found for name, (found, opted_out) in pairs.items() if not opted_out}
    return _Rated(cell, scores, np.array([fold_of[group] for group in cell.groups], dtype=np.int64))


def _within_folds(frame: RatingCells, rated: _Rated, names: Sequence[str]) -> Sampled:
    """The mean over folds and the three correlations of each fold's judge (`names`), within the fold. Correlations pooled
    over folds would mix judges on different scales."""
    cell, samples = rated.cell, frame.samples(rated.cell)
    parts = []
    for fold, name in enumerate(names):
        inside = rated.inside(fold)
        groups = [cell.groups[position] for position in inside]
        scores, values = rated.scores[name][inside], cell.values[inside]
        if len(inside):
            parts += [samples.correlation(kind, scores, values, groups) for kind in KINDS]
    if not parts:
        parts = [samples.correlation("pearson", [], [], [])]
    whole = average(parts)
    return Sampled(
        whole.observed, whole.drawn, whole.without, whole.present, len(cell.values), len(set(cell.groups)), whole.plan
    )


def _row(rated: _Rated, chosen: PerFold[str], sampled: Sampled, flattering: Sampled) -> HonestRow:
    name = chosen.everything
    estimate = sampled.estimate()
    return HonestRow(
        language=rated.cell.language,
        dimension=rated.cell.dimension,
        chosen=name,
        same_in_folds=chosen.without.count(name),
        folds=sum(len(rated.inside(fold)) > 0 for fold in range(len(chosen.without))),
        value=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        apparent=flattering.estimate().value,
        reason="" if sampled.defined else "in one of the folds all scores are the same",
    )


def _mean_row(language: str, rows: Sequence[HonestRow], sampled: Sequence[Sampled]) -> HonestRow:
    estimate = average(sampled).estimate()
    apparent = [row.apparent for row in rows if row.apparent is not None]
    return HonestRow(
        language=language,
        dimension="",
        chosen="",
        same_in_folds=0,
        folds=min(row.folds for row in rows),
        value=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        apparent=sum(apparent) / len(apparent) if len(apparent) == len(rows) else None,
        reason=next((row.reason for row in rows if row.reason), ""),
    )


Folds = Mapping[tuple[str, str], int]
"""The fold of each encounter, by language and encounter."""


@dataclass(frozen=True)
class BlendMember:
    """A member of a blend: for each fold, scores of all answers by models that were fitted without that fold's ratings.

    The scores of the fold itself are out of fold. So are the scores that the blend is fitted on, by models without two
    folds; otherwise the blend would learn from scores that depend on the ratings it is evaluated on."""

    name: str
    leaving: tuple[MetricScores, ...]

    @classmethod
    def fixed(cls, metric: MetricScores, folds: int) -> BlendMember:
        """A metric that was not fitted on these ratings."""
        return cls(metric.name, (metric,) * folds)


Weights = Callable[[Floats, Floats], Floats]
"""From standardised scores (answers × members) and ratings to the members' weights."""


def equal_weights(scores: Floats, ratings: Floats) -> Floats:
    """Equal weights; only the means and standard deviations of scores are fitted."""
    del ratings
    return np.ones(scores.shape[1])


def stacked_weights(scores: Floats, ratings: Floats) -> Floats:
    """Non-negative least squares on the ratings (stacking; Breiman 1996, Machine Learning 24:49).

    >>> stacked_weights(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, 0.0])).round(6).tolist()
    [0.5, 0.0]
    """
    from scipy.optimize import nnls

    return np.asarray(nnls(scores, ratings - ratings.mean())[0], dtype=np.float64)


def best_alone(scores: Floats, ratings: Floats) -> Floats:
    """Weight on the one member with the highest agreement, the first of ties."""
    found = [agreement(column.tolist(), ratings.tolist()) for column in scores.T]
    chosen = max(
        range(len(found)), key=lambda position: -2.0 if found[position] is None else float(found[position] or 0.0)
    )
    return np.asarray(np.eye(len(found))[chosen], dtype=np.float64)


def blended(
    name: str, table: RatingsTable, members: Sequence[BlendMember], folds: Folds, weights: Weights
) -> MetricScores:
    """The scores of a blend: for each dimension of a language, an answer's score by weights fitted without its fold.

    Members and blend are standardised on the training answers, so that folds are on one scale. A member that opted out
    of a dimension is left out of it; if all did, the blend opts out.
    """
    frame = RatingCells(table, CorrelationSettings(draws=0))
    found: dict[Key, float | None] = {}
    for cell in frame.cells:
        if cell.dataset != ALL:
            continue
        fold = np.array([folds[cell.language, group] for group in cell.groups], dtype=np.int64)
        mixed = np.zeros(len(fold))
        known = False
        for number in np.unique(fold):
            columns = _columns(cell, members, int(number))
            known = known or bool(columns)
            if columns:
                mixed[fold == number] = _one_fold(np.stack(columns, axis=1), cell.values, fold == number, weights)
        found |= dict(zip(cell.keys, mixed.tolist(), strict=True)) if known else dict.fromkeys(cell.keys)
    return MetricScores(name, found)


def _columns(cell: RatingCell, members: Sequence[BlendMember], fold: int) -> list[Floats]:
    pairs = [paired(cell, member.leaving[fold]) for member in members]
    return [scores for scores, opted_out in pairs if not opted_out]


def _one_fold(scores: Floats, ratings: Floats, outside: Ints | np.ndarray, weights: Weights) -> Floats:
    """The blend's scores of the answers in the mask `outside`, fitted on the others."""
    inside = ~outside
    centre, spread = scores[inside].mean(axis=0), scores[inside].std(axis=0)
    alike = (scores - centre) / np.where(spread > 1e-12, spread, np.inf)
    mixed = alike @ weights(alike[inside], ratings[inside])
    own = float(mixed[inside].std())
    return np.asarray(mixed[outside] / own if own > 1e-12 else np.zeros(int(outside.sum())), dtype=np.float64)

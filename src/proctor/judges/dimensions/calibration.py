"""From a judge's scores to what clinicians give: rising curves, learned on other encounters than the judged."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.audits import MetricScores, RatingsTable
from proctor.core import InputError, generator, read_model

_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class RatedScore:
    """What a judge gave an answer on a dimension, and what a clinician gave."""

    encounter: str
    language: str
    dimension: str
    score: float
    rating: float


class Curve(BaseModel):
    """A rising line through points; level before the first and after the last.

    >>> Curve(scores=[0.2, 0.6], ratings=[0.0, 1.0]).at(0.4), Curve(scores=[0.2], ratings=[0.5]).at(0.9)
    (0.5, 0.5)
    """

    model_config = _FROZEN

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
        """The rating that goes with a score."""
        return round(float(np.interp(score, self.scores, self.ratings)), 12)


class DimensionCurves(BaseModel):
    """The curve learned from everything, and those learned without one fold each."""

    model_config = _FROZEN

    everything: Curve
    without: list[Curve]


class Calibration(BaseModel):
    """Curves by language and dimension ("en/overall"), and the fold of each encounter that they were
    learned from: it is judged by the curve that was learned without its fold, any other encounter by the
    one learned from everything. So no encounter is ever judged by its own ratings, in either language.
    """

    model_config = _FROZEN

    kind: Literal["proctor calibration 1"] = "proctor calibration 1"
    judge: str
    seed: int
    folds: dict[str, int]
    curves: dict[str, DimensionCurves]

    @model_validator(mode="after")
    def _every_fold_has_a_curve(self) -> Calibration:
        last = max(self.folds.values(), default=-1)
        if min(self.folds.values(), default=0) < 0 or any(len(one.without) <= last for one in self.curves.values()):
            raise ValueError("a curve for every fold is expected")
        return self

    @property
    def sha256(self) -> str:
        """Of its content, for the record."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def mapped(self, encounter: str, language: str, dimension: str, score: float) -> float:
        """The rating that goes with a score. Raises `InputError` for a dimension it was not fitted on."""
        curves = self.curves.get(f"{language}/{dimension}")
        if curves is None:
            known = ", ".join(self.curves)
            raise InputError("calibration", found=f"no curve for {language}/{dimension}", expected=f"one of {known}")
        fold = self.folds.get(encounter)
        return (curves.everything if fold is None else curves.without[fold]).at(score)


def fit_calibration(rated: Sequence[RatedScore], *, judge: str, folds: int = 5, seed: int = 0) -> Calibration:
    """The least-squares rising curve (isotonic regression, Ayer et al. 1955) from scores to ratings, for
    each language and dimension, from everything and without each of `folds` drawn parts of the encounters.

    Raises `InputError` for fewer encounters than folds, and for a dimension that was rated in one fold only.
    """
    encounters = sorted({one.encounter for one in rated})
    if len(encounters) < folds:
        raise InputError(None, "calibration", found=f"{len(encounters)} encounters", expected=f"{folds} or more")
    order = generator(seed, "calibration").permutation(len(encounters))
    fold_of = {encounters[int(place)]: number % folds for number, place in enumerate(order)}
    by_dimension: dict[str, list[RatedScore]] = {}
    for one in rated:
        by_dimension.setdefault(f"{one.language}/{one.dimension}", []).append(one)
    curves = {}
    for name, inside in by_dimension.items():
        if len({fold_of[one.encounter] for one in inside}) < 2:
            raise InputError(None, f"calibration of {name}", found="ratings in one fold", expected="in two or more")
        without = [_curve([one for one in inside if fold_of[one.encounter] != fold]) for fold in range(folds)]
        curves[name] = DimensionCurves(everything=_curve(inside), without=without)
    return Calibration(judge=judge, seed=seed, folds=dict(sorted(fold_of.items())), curves=curves)


def rated_scores(scores: MetricScores, table: RatingsTable) -> list[RatedScore]:
    """Each rating with the score of the same answer, to learn a calibration from. What the scores opt out of
    is left out. Raises `InputError` where that leaves nothing."""
    found = [
        RatedScore(one.cluster, one.language, one.dimension, value, one.value)
        for one in table.ratings
        if (value := scores.scores[one.key]) is not None
    ]
    if not found:
        raise InputError(scores.name, found="no scores", expected="one or more")
    return found


def read_calibration(file: Path) -> Calibration:
    """A calibration from its JSON. Raises `InputError`, with the field, for anything else."""
    return read_model(file, Calibration, "a calibration")


def _curve(points: Sequence[RatedScore]) -> Curve:
    from sklearn.isotonic import IsotonicRegression

    scores = np.array([one.score for one in points])
    ratings = np.array([one.rating for one in points])
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, ratings)
    # Rounding may not let what rises fall: the same decimals for all.
    rises = [round(float(one), 12) for one in fitted.y_thresholds_]
    return Curve(scores=[float(one) for one in fitted.X_thresholds_], ratings=rises)

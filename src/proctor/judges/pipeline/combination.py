"""What the pipeline learned without a reasoning model: for each language and dimension a linear function of the signals,
and of each part of the encounters one that has not seen it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import InputError, content_hash, read_model
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.fitted import PerFold
from proctor.judges.dimensions.marks import encounter_marks

_DIGITS = 6
_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LinearRating(BaseModel):
    """`start` + Σ `weights` · (signal − `centres`): the expected rating. A signal that is missing counts as its mean.
    `mean` and `spread` are those of the expected ratings of the answers that it was learned from.

    >>> one = LinearRating(start=0.5, weights={"length": 0.2}, centres={"length": 1.0}, mean=0.5, spread=0.1)
    >>> one.expected({"length": 2.0}), one.expected({"length": None}), round(one.relative({"length": 2.0}), 9)
    (0.7, 0.5, 0.7)
    """

    model_config = _FROZEN

    start: float
    weights: dict[str, float]
    centres: dict[str, float]
    mean: float
    spread: float = Field(gt=0)

    @model_validator(mode="after")
    def _of_the_same(self) -> LinearRating:
        if self.weights.keys() != self.centres.keys():
            raise ValueError("a centre for each weight is expected")
        return self

    def expected(self, signals: Mapping[str, float | None]) -> float:
        """The rating that is expected of an answer with these signals."""
        known = ((name, value) for name in self.weights if (value := signals.get(name)) is not None)
        return self.start + sum(self.weights[name] * (value - self.centres[name]) for name, value in known)

    def relative(self, signals: Mapping[str, float | None]) -> float:
        """0 to 1: an answer as good as the mean of those learned from gets 0.5, each standard deviation is 0.1.
        Expected ratings of several folds, each with a mean of its own, would not be on one scale."""
        return min(max(0.5 + 0.1 * (self.expected(signals) - self.mean) / self.spread, 0.0), 1.0)


class PipelineFit(BaseModel):
    """Linear functions by language and dimension ("en/overall"), and the fold of each encounter that they were learned
    from, by its name and by its marks: it is judged by what was learned without its fold, any other encounter by what
    was learned from everything. So no encounter is ever judged by its own ratings, in either language. `signals` are
    the settings of what reads them, `levels` those of each dimension, `penalties` the ridge's in each language."""

    model_config = _FROZEN

    kind: Literal["proctor pipeline 1"] = "proctor pipeline 1"
    signals: dict[str, JsonValue]
    seed: int
    folds: dict[str, int] = Field(min_length=1)
    marks: dict[str, int]
    levels: dict[str, tuple[float, ...]]
    penalties: dict[str, float]
    ratings: dict[str, PerFold[LinearRating]]

    @model_validator(mode="after")
    def _complete(self) -> PipelineFit:
        used = {*self.folds.values(), *self.marks.values()}
        if min(used) < 0 or any(len(one.without) <= max(used) for one in self.ratings.values()):
            raise ValueError("a function for every fold is expected")
        if self.ratings.keys() != self.levels.keys():
            raise ValueError("levels of every dimension are expected")
        return self

    @property
    def sha256(self) -> str:
        """Of its content, for the record."""
        return content_hash(self)

    def fold_of(self, case: Case) -> int | None:
        """The fold of a case's encounter, by its name or its content; None for one that was not learned from. Raises
        `InputError` for a case that shares its name, text or pictures with encounters of several folds."""
        found = {self.marks[mark] for mark in encounter_marks(case) if mark in self.marks}
        found |= {self.folds[case.encounter]} if case.encounter in self.folds else set()
        if len(found) > 1:
            expected = "one that nothing was learned from, or those of one fold"
            raise InputError(f"case {case.id}", found="the texts or pictures of several encounters", expected=expected)
        return found.pop() if found else None

    def rated(self, case: Case, signals: Mapping[str, float | None]) -> tuple[dict[str, float], dict[str, float]]:
        """On each dimension of a case its score, from the lowest to the highest level (see `LinearRating.relative`),
        and the rating that is expected. Raises `InputError` for a dimension or a scale that it has not learned, and as
        `fold_of`."""
        fold = self.fold_of(case)
        scores, expected = {}, {}
        for one in case.dimensions:
            place, (low, high) = f"{case.language}/{one.name}", (one.levels[0], one.levels[-1])
            if self.levels.get(place) != one.levels:
                found, learned = f"{place} ({', '.join(f'{level:g}' for level in one.levels)})", ", ".join(self.levels)
                raise InputError(f"case {case.id}", found=found, expected=f"one that was learned: {learned}")
            functions = self.ratings[place]
            own = functions.everything if fold is None else functions.without[fold]
            scores[one.name] = round(low + (high - low) * own.relative(signals), _DIGITS)
            expected[one.name] = round(min(max(own.expected(signals), low), high), _DIGITS)
        return scores, expected


def read_pipeline(file: Path) -> PipelineFit:
    """What was learned, from its JSON. Raises `InputError`, with the field, for anything else."""
    return read_model(file, PipelineFit, "a pipeline (proctor judge fit --method pipeline)")

"""The judge `local-pipeline`: signals of local encoders, weighed by a fit on rated answers or given to a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import ConfigurationError, InputError, content_hash, read_model
from proctor.judges.dimensions.case import IMAGES_UNSEEN, Case, DimensionScores, encounter_marks, injection_flags
from proctor.judges.dimensions.factories import NoOptions
from proctor.judges.dimensions.fitted import PerFold
from proctor.judges.dimensions.model_judge import RATING, Context, ModelJudge, look
from proctor.judges.dimensions.scorer import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.judges.pipeline.signals import SIGNALS, SignalReader
from proctor.judges.prompt_injection import sanitize
from proctor.metrics.text import tokens

_DIGITS = 6
_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LinearRating(BaseModel):
    """The expected rating, `start` + Σ `weights` · (signal − `centres`); a missing signal counts as its mean. `mean` and
    `spread` (standard deviation) are those of the expected ratings of the training answers.

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
    def _matching(self) -> LinearRating:
        if self.weights.keys() != self.centres.keys():
            raise ValueError("a centre for each weight is expected")
        return self

    def expected(self, signals: Mapping[str, float | None]) -> float:
        """The expected rating of an answer with these signals."""
        known = ((name, value) for name in self.weights if (value := signals.get(name)) is not None)
        return self.start + sum(self.weights[name] * (value - self.centres[name]) for name, value in known)

    def relative(self, signals: Mapping[str, float | None]) -> float:
        """A score from 0 to 1: the mean training answer gets 0.5, and each standard deviation is 0.1. Unlike expected
        ratings, these scores are on one scale in all folds."""
        return min(max(0.5 + 0.1 * (self.expected(signals) - self.mean) / self.spread, 0.0), 1.0)


class PipelineFit(BaseModel):
    """Linear functions by language and dimension ("en/overall"), and the fold of each training encounter, by its name and
    by its marks.

    Such an encounter is judged by the functions without its fold, any other by those on everything. So no encounter's own
    ratings are used to judge it, in any language. `signals` are the settings of the `SignalReader`, `levels` those of
    each dimension, `penalties` the ridge penalties by language."""

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
        """The hash of its content."""
        return content_hash(self)

    def fold_of(self, case: Case) -> int | None:
        """The fold of a case's encounter, by name or content; None if it was not trained on. Raises `InputError` for a case
        that shares its name, text or pictures with encounters of several folds."""
        found = {self.marks[mark] for mark in encounter_marks(case) if mark in self.marks}
        found |= {self.folds[case.encounter]} if case.encounter in self.folds else set()
        if len(found) > 1:
            expected = "one that nothing was learned from, or those of one fold"
            raise InputError(f"case {case.id}", found="the texts or pictures of several encounters", expected=expected)
        return found.pop() if found else None

    def rated(self, case: Case, signals: Mapping[str, float | None]) -> tuple[dict[str, float], dict[str, float]]:
        """The scores (see `LinearRating.relative`, scaled to the levels) and the expected ratings of a case, by dimension.
        Raises `InputError` for a dimension or scale that it has not learned, and as `fold_of`."""
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
    """A fit from its JSON file. Raises `InputError`, with the field, for other content."""
    return read_model(file, PipelineFit, "a pipeline (proctor judge fit --method pipeline)")


class CombinedJudge:
    """Scores answers by their signals, without a model: a `DimensionJudge`. The fit did not use the encounter that is
    judged (see `PipelineFit`). A score ranks answers; the expected rating is in the evidence."""

    def __init__(self, reader: SignalReader, fit: PipelineFit) -> None:
        _refuse_others(reader, fit)
        self._reader, self._fit = reader, fit
        self.name = f"local-pipeline[{fit.sha256[:8]}]"  # another fit is another judge
        self.settings: dict[str, JsonValue] = {"fit_sha256": fit.sha256, **reader.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        pictures = await look(case)
        (signals,) = await asyncio.to_thread(self._reader.read, [case], [pictures])
        flags = pictures.flags if self._reader.sees else ()
        scores, expected = self._fit.rated(case, signals.values)
        evidence: dict[str, JsonValue] = {"judge": self.name, "expected ratings": dict(expected)}
        return DimensionScores(
            scores,
            flags=(*injection_flags(case), *_unseen(case, self._reader), *flags),
            evidence=(evidence | signals.record | pictures.evidence,),
        )


class SignalContext:
    """Gives a model the signals and, with `fit`, the expected ratings: a `ContextProvider`. The fit did not use the
    encounter that is judged (see `PipelineFit`)."""

    cites = False

    def __init__(self, reader: SignalReader, fit: PipelineFit | None) -> None:
        if fit is not None:
            _refuse_others(reader, fit)
        self._reader, self._fit = reader, fit

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The encoders and the fit."""
        return {**self._reader.settings, "fit_sha256": None if self._fit is None else self._fit.sha256}

    async def context(self, case: Case) -> Context:
        """See `ContextProvider`."""
        (signals,) = await asyncio.to_thread(self._reader.read, [case], [await look(case)])
        expected = {} if self._fit is None else self._fit.rated(case, signals.values)[1]
        words = set(tokens(case.candidate))
        met = {phrase: words.issuperset(tokens(phrase)) for phrase in signals.expected}
        # The prompt is part of a judgement's key. Two decimals are the same on every CPU.
        values: list[JsonValue] = [
            {"name": name, "about": SIGNALS[name], "value": None if value is None else round(value, 2)}
            for name, value in signals.values.items()
        ]
        fill: dict[str, JsonValue] = {
            "signals": values,
            "shared": [sanitize(phrase) for phrase, found in met.items() if found],
            "missing": [sanitize(phrase) for phrase, found in met.items() if not found],
            "phrases": [sanitize(phrase) for phrase in signals.own],
            "learned": [{"name": name, "value": round(value, 2)} for name, value in expected.items()],
        }
        ratings: dict[str, JsonValue] = {"expected ratings": dict(expected)} if expected else {}
        return Context(fill, signals.record | ratings, _unseen(case, self._reader))


class PipelineOptions(NoOptions):
    """`fit` is a file that `proctor judge fit --method pipeline` wrote, `encoder` and `pictures` are encoders (see
    `SignalReader`)."""

    fit: Path | None = None
    encoder: str = ""
    pictures: str = ""


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Likeness of pictures, sentences and key phrases, weighed by what was learned or by a model.

    Options: fit=FILE (`proctor judge fit --method pipeline`), encoder=FOLDER (sentence-transformers), pictures=FOLDER
    (CLIP and the like). With a model (any, or local weights) it is told the signals and rates at temperature 0, one call
    for an answer; `fit` then adds the ratings that are expected. Raises `ConfigurationError` without a model and a file,
    `InputError` for a file that was learned with other encoders.
    """
    name = "local-pipeline"
    options = read_options(name, PipelineOptions, setup.options)
    fit = None if options.fit is None else read_pipeline(options.fit)
    if setup.clients.specs:
        client = setup.clients.client(setup.clients.only(name), {"temperature": 0.0})
        context = SignalContext(SignalReader(options.encoder, options.pictures), fit)
        scale = replace(RATING, template="pipeline")
        variant = "" if fit is None else "learned"
        return ModelJudge(
            name, client, setup.votes, scale=scale, contexts=[context], variant=variant, prompts=setup.prompts
        )
    if fit is None:
        expected = "a model (--model), or fit=FILE (proctor judge fit --method pipeline)"
        raise ConfigurationError(f"{name}: expected {expected}")
    return CombinedJudge(SignalReader(options.encoder, options.pictures), fit)


def _unseen(case: Case, reader: SignalReader) -> tuple[str, ...]:
    return (IMAGES_UNSEEN,) if case.images and not reader.sees else ()


def _refuse_others(reader: SignalReader, fit: PipelineFit) -> None:
    if fit.signals != reader.settings:
        found, expected = _encoders(reader.settings), _encoders(fit.signals)
        raise InputError("local-pipeline", found=found, expected=f"those that were learned with, {expected}")


def _encoders(settings: dict[str, JsonValue]) -> str:
    named: Sequence[JsonValue] = (settings.get("encoder"), settings.get("pictures") or "no pictures")
    return " and ".join(str(one)[:24] for one in named)

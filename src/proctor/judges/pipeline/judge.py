"""The judge `local-pipeline`: signals of encoders that run here, weighed by what was learned from rated answers, or
given to a model that reasons."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from proctor.core import ConfigurationError, InputError
from proctor.judges.dimensions.case import Case, DimensionScores, injection_flags
from proctor.judges.dimensions.model_judge import RATING, Context, ModelJudge, look
from proctor.judges.dimensions.named import NoOptions
from proctor.judges.dimensions.scorer import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.judges.pipeline.combination import PipelineFit, read_pipeline
from proctor.judges.pipeline.signals import SIGNALS, SignalReader
from proctor.judges.prompt_injection import sanitize
from proctor.metrics.text import tokens

IMAGES_UNSEEN = "images-unseen"
"""Flag: the question has images, and no encoder of pictures was given."""


class CombinedJudge:
    """Scores answers by their signals alone, no model is asked: `DimensionJudge`. What weighs them was
    learned without the encounter that is judged (see `PipelineFit`). A score tells better from worse; the rating that is
    expected is in the evidence."""

    def __init__(self, reader: SignalReader, fit: PipelineFit) -> None:
        _refuse_others(reader, fit)
        self._reader, self._fit = reader, fit
        self.name = f"local-pipeline[{fit.sha256[:8]}]"  # other weights are another judge
        self.settings: dict[str, JsonValue] = {"fit_sha256": fit.sha256, **reader.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        pictures = await look(case)
        (signals,) = await asyncio.to_thread(self._reader.read, [case], [pictures])
        shown = pictures.flags if self._reader.sees else ()
        scores, expected = self._fit.rated(case, signals.values)
        told: dict[str, JsonValue] = {"judge": self.name, "expected ratings": dict(expected)}
        return DimensionScores(
            scores,
            flags=(*injection_flags(case), *_unseen(case, self._reader), *shown),
            evidence=(told | signals.told | pictures.evidence,),
        )


class SignalContext:
    """Tells a model that reasons what encoders measured and, with `fit`, which ratings go with that. It never reads
    ratings of the encounter that is judged (see `PipelineFit`)."""

    cites = False

    def __init__(self, reader: SignalReader, fit: PipelineFit | None) -> None:
        if fit is not None:
            _refuse_others(reader, fit)
        self._reader, self._fit = reader, fit

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The encoders, and what was learned."""
        return {**self._reader.settings, "fit_sha256": None if self._fit is None else self._fit.sha256}

    async def context(self, case: Case, judge: str) -> Context:
        """See `ContextProvider`."""
        del judge
        (signals,) = await asyncio.to_thread(self._reader.read, [case], [await look(case)])
        expected = {} if self._fit is None else self._fit.rated(case, signals.values)[1]
        words = set(tokens(case.candidate))
        met = {one: words.issuperset(tokens(one)) for one in signals.expected}
        # Two decimals: what a prompt holds is what a judgement is found by, on any processor.
        values: list[JsonValue] = [
            {"name": name, "about": SIGNALS[name], "value": None if value is None else round(value, 2)}
            for name, value in signals.values.items()
        ]
        fill: dict[str, JsonValue] = {
            "signals": values,
            "shared": [sanitize(one) for one, found in met.items() if found],
            "missing": [sanitize(one) for one, found in met.items() if not found],
            "phrases": [sanitize(one) for one in signals.own],
            "learned": [{"name": name, "value": round(value, 2)} for name, value in expected.items()],
        }
        told: dict[str, JsonValue] = {"expected ratings": dict(expected)} if expected else {}
        return Context(fill, signals.told | told, _unseen(case, self._reader))


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

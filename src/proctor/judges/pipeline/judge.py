"""The judge `local-pipeline`: signals of encoders that run here, weighed by what was learned from rated answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from proctor.core import ConfigurationError, InputError
from proctor.judges.dimensions.case import Case, DimensionScores, injection_flags
from proctor.judges.dimensions.model_judge import look
from proctor.judges.dimensions.named import NoOptions
from proctor.judges.dimensions.scorer import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.judges.pipeline.combination import PipelineFit, read_pipeline
from proctor.judges.pipeline.signals import SignalReader

IMAGES_UNSEEN = "images-unseen"
"""Flag: the question has images, and this judge was given no encoder of pictures."""


class CombinedJudge:
    """Scores answers by their signals alone, no model is asked: `DimensionJudge`. What weighs them was
    learned without the encounter that is judged (see `PipelineFit`). A score tells better from worse; the rating that is
    expected is in the evidence."""

    def __init__(self, reader: SignalReader, fit: PipelineFit) -> None:
        if fit.signals != reader.settings:
            found, expected = _encoders(reader.settings), _encoders(fit.signals)
            raise InputError(None, "local-pipeline", found=found, expected=f"those that were learned with, {expected}")
        self._reader, self._fit = reader, fit
        self.name = f"local-pipeline[{fit.sha256[:8]}]"  # other weights are another judge
        self.settings: dict[str, JsonValue] = {"fit_sha256": fit.sha256, **reader.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        pictures = await look(case)
        (signals,) = await asyncio.to_thread(self._reader.read, [case], [pictures])
        unseen = (IMAGES_UNSEEN,) if case.images and not self._reader.sees else ()
        shown = pictures.flags if self._reader.sees else ()
        scores, expected = self._fit.rated(case, signals.values)
        told: dict[str, JsonValue] = {"judge": self.name, "expected ratings": dict(expected)}
        return DimensionScores(
            scores, flags=(*injection_flags(case), *unseen, *shown), evidence=(told | signals.told | pictures.evidence,)
        )


class PipelineOptions(NoOptions):
    """`fit` is a file that `proctor judge fit --method pipeline` wrote, `encoder` and `pictures` are encoders (see
    `SignalReader`)."""

    fit: Path | None = None
    encoder: str = ""
    pictures: str = ""


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Likeness of pictures, sentences and key phrases; weighed by what was learned.

    Options: fit=FILE (`proctor judge fit --method pipeline`), encoder=FOLDER (sentence-transformers), pictures=FOLDER
    (CLIP and the like). Raises `ConfigurationError` without a file, `InputError` for one that was learned with other
    encoders.
    """
    name = "local-pipeline"
    options = read_options(name, PipelineOptions, setup.options)
    if options.fit is None:
        raise ConfigurationError(f"{name}: expected fit=FILE (proctor judge fit --method pipeline)")
    return CombinedJudge(SignalReader(options.encoder, options.pictures), read_pipeline(options.fit))


def _encoders(settings: dict[str, JsonValue]) -> str:
    named: Sequence[JsonValue] = (settings.get("encoder"), settings.get("pictures") or "no pictures")
    return " and ".join(str(one)[:24] for one in named)

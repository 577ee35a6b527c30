"""Captions: what a question's pictures show, in a model's words, kept like every judgement so that it is paid once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from proctor.core import JudgementCache
from proctor.judges.cached_model import CachedModel, as_said, load_prompts, prompt_for, together
from proctor.judges.dimensions import Case
from proctor.judges.dimensions.model_judge import look
from proctor.models import ModelClient


class Caption(BaseModel):
    """What the pictures show."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    caption: str = Field(max_length=4000)


@dataclass(frozen=True)
class CaptionedCase:
    """The caption of a case's pictures ('' where none is at hand), what a person should know, and its judgement."""

    text: str = ""
    flags: tuple[str, ...] = ()
    votes: tuple[str, ...] = ()


class CaptionWriter:
    """Asks a model for captions. It is shown the pictures alone, so that the answers to one question share one call."""

    def __init__(self, client: ModelClient, votes: JudgementCache, prompts: Path | None = None) -> None:
        self.name = client.name
        self._model = CachedModel(f"caption[{client.name}]", client, votes)
        self._prompts = load_prompts("caption", prompts)

    async def caption(self, case: Case) -> CaptionedCase:
        """The caption. Raises `InfrastructureError` where the model gives none."""
        pictures = await look(case)
        if not pictures.frames:
            return CaptionedCase(flags=pictures.flags)
        prompt = prompt_for(self._prompts, case.id, case.language)
        system, user = prompt.render(images_shown=len(pictures.frames))
        said, vote = await self._model.ask(
            as_said(Caption),
            [*pictures.frames, user],
            system=system,
            item_id=case.id,
            content={"judge": "caption", "prompt_sha256": prompt.sha256, "images": pictures.hashes},
        )
        return CaptionedCase(" ".join(said.caption.split()), pictures.flags, (vote.key,))


async def write_captions(
    cases: Sequence[Case], client: ModelClient, votes: JudgementCache, prompts: Path | None, at_once: int
) -> list[str]:
    """The caption of each case, `at_once` of them at a time. Raises `InfrastructureError` where the model gives none."""
    writer, gate = CaptionWriter(client, votes, prompts), asyncio.Semaphore(at_once)

    async def one(case: Case) -> str:
        async with gate:
            return (await writer.caption(case)).text

    return await together(one(case) for case in cases)

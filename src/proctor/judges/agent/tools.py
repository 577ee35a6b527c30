"""What the agent judge may use: similar answers that people rated, learned scores, answers to questions about the
pictures, and a closer look at them. None of them knows how the judged answer was rated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import InputError, NoVerdictError
from proctor.judges.agent.closer import CloserLook, Magnifier
from proctor.judges.cached_model import CachedModel, Prompts, as_said, prompt_for
from proctor.judges.dimensions.case import TRAINED_ON, Case, RatedCase
from proctor.judges.dimensions.few_shot import RatedPool, SimilarExamples, shown, without_own
from proctor.judges.dimensions.model_judge import Pictures, look
from proctor.judges.dimensions.scorer import DimensionJudge
from proctor.judges.prompt_injection import sanitize
from proctor.metrics.text import Encoder
from proctor.models import AgentTool, MultimodalEncoder, ToolResult

_FROZEN = ConfigDict(frozen=True, extra="forbid", strict=True)
_MOST_CASES = 5


class SimilarTo(BaseModel):
    """Which rated answers to other questions are wanted."""

    model_config = _FROZEN

    by: Literal["text", "pictures"] = Field(default="text", description="What is to be alike.")
    count: int = Field(default=3, ge=1, le=_MOST_CASES)


class SimilarCases:
    """Rated answers of other encounters, by the likeness of texts or, with an encoder, of pictures."""

    def __init__(self, pool: RatedPool, encoder: Encoder | None, sight: MultimodalEncoder | None) -> None:
        self._pool, self._sight = pool, sight
        self._by_text = SimilarExamples(pool, 1, encoder)
        self._seen: dict[str, NDArray[np.float64] | None] = {}
        self.settings: dict[str, JsonValue] = {
            "rated_sha256": pool.sha256,
            "similar": self._by_text.settings["exemplars"],
            "pictures": sight.where if sight else None,
        }

    async def find(self, case: Case, asked: SimilarTo, pictures: Pictures) -> ToolResult:
        """At most as many as asked for, most similar first, none of the case's own encounter."""
        if asked.by == "text":
            found = self._by_text.ranked(case)[: asked.count]
        elif self._sight is None or not pictures.frames:
            return ToolResult("pictures can't be compared here: ask by text", failed=True)
        else:
            found = await self._by_pictures(case, pictures, self._sight, asked.count)
        found = list(without_own(tuple(found), case, "agent-judge"))
        if not found:
            return ToolResult("there are none", failed=True)
        return ToolResult([shown(one) for one in found])

    async def _by_pictures(
        self, case: Case, pictures: Pictures, sight: MultimodalEncoder, count: int
    ) -> list[RatedCase]:
        own = await self._vector(pictures, sight)
        likeness: list[tuple[float, int, RatedCase]] = []
        for place, one in enumerate(self._by_text.ranked(case)):  # among equals the more similar in words
            if one.case.encounter not in self._seen:
                there = await look(one.case)
                self._seen[one.case.encounter] = await self._vector(there, sight) if there.frames else None
            vector = self._seen[one.case.encounter]
            if vector is not None:
                likeness.append((-round(float(vector @ own), 6), place, one))
        return [one for _, _, one in sorted(likeness, key=lambda row: row[:2])[:count]]

    async def _vector(self, pictures: Pictures, sight: MultimodalEncoder) -> NDArray[np.float64]:
        seen = await asyncio.to_thread(sight.see, [one.jpeg for one in pictures.frames])
        mean: NDArray[np.float64] = seen.mean(axis=0)
        return mean / (float(np.linalg.norm(mean)) or 1.0)


class Nothing(BaseModel):
    """Nothing is asked."""

    model_config = _FROZEN


async def learned_scores(case: Case, judges: Sequence[DimensionJudge]) -> ToolResult:
    """The scores of judges that learned from rated answers, by judge; never by one that learned from this encounter."""
    told: dict[str, JsonValue] = {}
    for one in judges:
        said = await one.judge(case)
        if TRAINED_ON in said.flags:
            told[one.name] = "not told: it has learned from ratings of this very question"
            continue
        expected = next((known["expected ratings"] for known in said.evidence if "expected ratings" in known), None)
        told[one.name] = {"expected ratings": expected, "score, 0.5 is an average answer": dict(said.values)}
    return ToolResult(told, failed=all(isinstance(one, str) for one in told.values()))


class VisualQuestion(BaseModel):
    """A question about what the pictures show."""

    model_config = _FROZEN

    question: str = Field(min_length=3, max_length=400)


class VisualAnswer(BaseModel):
    """What the pictures show."""

    model_config = _FROZEN

    answer: str = Field(max_length=2000)


@dataclass(frozen=True)
class VisualReferences:
    """Answers a question about a case's pictures by a model that sees them and the patient's question, and neither the
    candidate nor the references. Each answer is a judgement of its own."""

    model: CachedModel
    prompts: Prompts

    async def ask(self, case: Case, asked: VisualQuestion, pictures: Pictures) -> ToolResult:
        """The answer. Raises `InfrastructureError` where no reply comes."""
        prompt = prompt_for(self.prompts, case.id, case.language)
        question = sanitize(asked.question)
        filled: dict[str, JsonValue] = {"query": sanitize(case.query), "question": question}
        system, user = prompt.render(**filled)
        try:
            said, vote = await self.model.ask(
                as_said(VisualAnswer),
                [*pictures.frames, user],
                system=system,
                item_id=case.id,
                content={"judge": "visual", "prompt_sha256": prompt.sha256, **filled, "images": pictures.hashes},
            )
        except NoVerdictError as error:
            return ToolResult(f"no answer: {error}", failed=True)
        told: dict[str, JsonValue] = {"a model's answer, not a physician's": sanitize(said.answer)}
        return ToolResult(told, votes=(vote.key,), usage=vote.usage)


async def look_closer(case: Case, asked: CloserLook, pictures: Pictures) -> ToolResult:
    """A part of a picture, enlarged."""
    if not 1 <= asked.picture <= len(pictures.places):
        return ToolResult(f"there is no picture {asked.picture}: there are {len(pictures.places)}", failed=True)
    try:
        frame = await asyncio.to_thread(Magnifier(case, pictures.places).look, asked)
    except InputError:
        return ToolResult("the picture can't be read", failed=True)
    return ToolResult("the picture follows", (frame,))


@dataclass(frozen=True)
class Toolbox:
    """The tools that there are; which of them a case is offered depends on its pictures."""

    similar: SimilarCases | None = None
    learned: tuple[DimensionJudge, ...] = ()
    visual: VisualReferences | None = None

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What decides what they give."""
        return {
            "similar": None if self.similar is None else self.similar.settings,
            "learned": {one.name: one.settings for one in self.learned},
            "visual": None if self.visual is None else {name: one.sha256 for name, one in self.visual.prompts.items()},
        }

    def of(self, case: Case, pictures: Pictures) -> list[AgentTool[Any]]:
        """The tools for a case."""
        tools: list[AgentTool[Any]] = []
        similar, visual = self.similar, self.visual
        if similar is not None:
            about = (
                "Answers to other patients' questions that are like this one, with the ratings that people gave them."
            )
            tools.append(
                AgentTool("similar_cases", about, SimilarTo, lambda asked: similar.find(case, asked, pictures))
            )
        if self.learned:
            about = "The scores of judges that learned from rated answers and can't reason. They reward likeness to the references."
            tools.append(AgentTool("learned_scores", about, Nothing, lambda _: learned_scores(case, self.learned)))
        if pictures.frames and visual is not None:
            about = "Another model's answer to a question about the pictures, by which a claim of the candidate can be checked."
            tools.append(
                AgentTool("ask_about_pictures", about, VisualQuestion, lambda asked: visual.ask(case, asked, pictures))
            )
        if pictures.frames:
            about = "A part of a picture, enlarged, with more contrast or sharper if that helps."
            tools.append(AgentTool("look_closer", about, CloserLook, lambda asked: look_closer(case, asked, pictures)))
        return tools

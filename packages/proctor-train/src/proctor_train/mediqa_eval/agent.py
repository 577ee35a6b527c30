"""`agent-judge`: a model that uses tools (similar rated answers, learned scores, visual questions, a closer look) before it
rates.

After BDI (Xu et al. 2026, in section 6.4 of the overview): a ReAct agent that retrieves similar rated encounters, learned
signals and generated answers to visual questions, and looks closer at the pictures. No tool knows how the judged answer
was rated. The transcript is the judgement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, JsonValue, model_validator

from proctor.core import Frame, FrozenModel, InfrastructureError, InputError, JudgementCache, NoVerdictError, Usage
from proctor.judges import (
    FENCE_CLOSE,
    FENCE_OPEN,
    CachedModel,
    PromptedModel,
    StoredReply,
    as_said,
    load_prompts,
    load_sentence_encoder,
    prompt_for,
    prompt_hashes,
    sanitize,
)
from proctor.judges.dimensions import (
    RATING,
    TRAINED_ON,
    Case,
    DimensionJudge,
    DimensionScores,
    JudgePrompt,
    JudgeSetup,
    Pictures,
    Rated,
    RatedCase,
    RatedPool,
    RatesDimensions,
    SimilarExamples,
    injection_flags,
    look,
    rating_form,
    read_options,
    refuse_own,
    shown,
    wording_of,
)
from proctor.media import MediaSettings, encode, locate, read_image
from proctor.metrics.text import Encoder
from proctor.models import Agent, AgentLimits, AgentReply, AgentTool, ModelClient, MultimodalEncoder, ToolResult
from proctor_train.mediqa_eval import PROMPTS
from proctor_train.mediqa_eval.embedded import EmbeddedJudge
from proctor_train.mediqa_eval.pipeline import CombinedJudge, PipelineOptions, SignalReader, read_pipeline

_MIN_SHARE, _SIDE = 0.05, 768
_QUALITY = MediaSettings(max_side=_SIDE, quality=90)


class CloserLook(FrozenModel):
    """A part of a picture, its edges as fractions of width and height from the upper left corner."""

    model_config = ConfigDict(strict=True)

    picture: int = Field(ge=1, description="The picture's number.")
    left: float = Field(default=0.0, ge=0, le=1)
    top: float = Field(default=0.0, ge=0, le=1)
    right: float = Field(default=1.0, ge=0, le=1)
    bottom: float = Field(default=1.0, ge=0, le=1)
    enhance: Literal["none", "contrast", "sharpness"] = "none"

    @model_validator(mode="after")
    def _has_a_size(self) -> Self:
        if min(self.right - self.left, self.bottom - self.top) < _MIN_SHARE:
            raise ValueError(f"right and bottom are expected to lie {_MIN_SHARE:g} or more behind left and top")
        return self


def enlarge(case: Case, row: int, request: CloserLook) -> Frame:
    """The part of a case's image (`row` among its images), scaled to 768 pixels at its longest side. Raises
    `InputError` for a file that can't be read any more."""
    from PIL import ImageFilter, ImageOps
    from PIL.Image import Resampling

    if case.image_root is None:
        raise IndexError(row)
    scan = case.scans[row] if case.scans else None
    picture = read_image(locate(case.image_root, case.images[row]), scan)
    wide, high = picture.size
    left, top = int(request.left * wide), int(request.top * high)
    right, bottom = max(left + 1, round(request.right * wide)), max(top + 1, round(request.bottom * high))
    part = picture.crop((left, top, right, bottom))
    scale = _SIDE / max(part.size)
    if scale > 1:
        size = (max(1, round(part.width * scale)), max(1, round(part.height * scale)))
        part = part.resize(size, Resampling.BICUBIC)
    if request.enhance == "contrast":
        part = ImageOps.autocontrast(part, cutoff=1)
    if request.enhance == "sharpness":
        part = part.filter(ImageFilter.UnsharpMask(radius=3, percent=150))
    return Frame(encode(part, None, _QUALITY), None, f"A closer look at picture {request.picture}")


async def look_closer(case: Case, request: CloserLook, pictures: Pictures) -> ToolResult:
    """A part of a picture, enlarged."""
    if not 1 <= request.picture <= len(pictures.positions):
        return ToolResult(f"there is no picture {request.picture}: there are {len(pictures.positions)}", failed=True)
    try:
        frame = await asyncio.to_thread(enlarge, case, pictures.positions[request.picture - 1], request)
    except InputError:
        return ToolResult("the picture can't be read", failed=True)
    return ToolResult("the picture follows", (frame,))


_MOST_CASES = 5


class SimilarTo(FrozenModel):
    """Which rated answers to other questions are wanted."""

    model_config = ConfigDict(strict=True)

    by: Literal["text", "pictures"] = Field(default="text", description="What is to be alike.")
    count: int = Field(default=3, ge=1, le=_MOST_CASES)


class SimilarCases:
    """Rated answers of other encounters, by the similarity of texts or, with an encoder, of pictures."""

    def __init__(self, pool: RatedPool, encoder: Encoder | None, sight: MultimodalEncoder | None) -> None:
        self._pool, self._sight = pool, sight
        self._by_text = SimilarExamples(pool, 1, encoder)
        self._seen: dict[str, NDArray[np.float64] | None] = {}
        self.settings: dict[str, JsonValue] = {
            "rated_sha256": pool.sha256,
            "similar": self._by_text.settings["exemplars"],
            "pictures": sight.where if sight else None,
        }

    async def find(self, case: Case, request: SimilarTo, pictures: Pictures) -> ToolResult:
        """The requested number of answers at most, the most similar first, none of the case's own encounter."""
        if request.by == "text":
            found = self._by_text.ranked(case)[: request.count]
        elif self._sight is None or not pictures.frames:
            return ToolResult("pictures can't be compared here: ask by text", failed=True)
        else:
            found = await self._by_pictures(case, pictures, self._sight, request.count)
        refuse_own(found, case)
        if not found:
            return ToolResult("there are none", failed=True)
        return ToolResult([shown(rated_case) for rated_case in found])

    async def _by_pictures(
        self, case: Case, pictures: Pictures, sight: MultimodalEncoder, count: int
    ) -> list[RatedCase]:
        own = await self._vector(pictures, sight)
        similarity: list[tuple[float, int, RatedCase]] = []
        for index, one in enumerate(self._by_text.ranked(case)):  # the similarity of texts breaks ties
            if one.case.encounter not in self._seen:
                other = await look(one.case)
                self._seen[one.case.encounter] = await self._vector(other, sight) if other.frames else None
            vector = self._seen[one.case.encounter]
            if vector is not None:
                similarity.append((-round(float(vector @ own), 6), index, one))
        return [one for _, _, one in sorted(similarity, key=lambda row: row[:2])[:count]]

    async def _vector(self, pictures: Pictures, sight: MultimodalEncoder) -> NDArray[np.float64]:
        seen = await asyncio.to_thread(sight.see, [frame.jpeg for frame in pictures.frames])
        mean: NDArray[np.float64] = seen.mean(axis=0)
        return mean / (float(np.linalg.norm(mean)) or 1.0)


class Nothing(FrozenModel):
    """Nothing is asked."""

    model_config = ConfigDict(strict=True)


async def learned_scores(case: Case, judges: Sequence[DimensionJudge]) -> ToolResult:
    """The scores of judges that learned from rated answers, by judge, without judges that learned from this encounter."""
    told: dict[str, JsonValue] = {}
    for judge in judges:
        said = await judge.judge(case)
        if TRAINED_ON in said.flags:
            told[judge.name] = "withheld: it was trained on ratings of this question"
            continue
        expected = next((known["expected ratings"] for known in said.evidence if "expected ratings" in known), None)
        told[judge.name] = {"expected ratings": expected, "score, 0.5 is an average answer": dict(said.values)}
    return ToolResult(told, failed=all(isinstance(one, str) for one in told.values()))


class VisualQuestion(FrozenModel):
    """A question about what the pictures show."""

    model_config = ConfigDict(strict=True)

    question: str = Field(min_length=3, max_length=400)


class VisualAnswer(FrozenModel):
    """What the pictures show."""

    model_config = ConfigDict(strict=True)

    answer: str = Field(max_length=2000)


async def ask_about_pictures(
    case: Case, request: VisualQuestion, pictures: Pictures, model: PromptedModel
) -> ToolResult:
    """Another model's answer to a question about a case's pictures. It sees the pictures and the patient's question, but
    neither candidate nor references. Each answer is a judgement. Raises `InfrastructureError` if no reply comes."""
    try:
        reply, judgement = await model.ask(
            as_said(VisualAnswer),
            case.id,
            {"query": sanitize(case.query), "question": sanitize(request.question), "images": pictures.hashes},
            language=case.language,
            frames=pictures.frames,
        )
    except NoVerdictError as error:
        return ToolResult(f"no answer: {error}", failed=True, usage=error.usage or Usage())
    told: dict[str, JsonValue] = {"a model's answer, not a physician's": sanitize(reply.answer)}
    return ToolResult(told, judgements=(judgement.key,), usage=judgement.usage)


@dataclass(frozen=True)
class Toolbox:
    """The tools of a judge; a case without pictures is not offered those for pictures. `visual` answers questions about
    pictures."""

    similar: SimilarCases | None = None
    learned: tuple[DimensionJudge, ...] = ()
    visual: PromptedModel | None = None

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes the results of the tools."""
        return {
            "similar": None if self.similar is None else self.similar.settings,
            "learned": {judge.name: judge.settings for judge in self.learned},
            "visual": None if self.visual is None else self.visual.prompt_hashes,
        }

    def of(self, case: Case, pictures: Pictures) -> list[AgentTool[Any]]:
        """The tools for a case."""
        tools: list[AgentTool[Any]] = []
        similar, visual = self.similar, self.visual
        if similar is not None:
            about = (
                "Answers to other patients' questions that are like this one, with the ratings that people gave them."
            )
            tools.append(AgentTool("similar_cases", about, SimilarTo, lambda one: similar.find(case, one, pictures)))
        if self.learned:
            about = "The scores of judges that learned from rated answers and can't reason. They reward likeness to the references."
            tools.append(AgentTool("learned_scores", about, Nothing, lambda _: learned_scores(case, self.learned)))
        if pictures.frames and visual is not None:
            about = "Another model's answer to a question about the pictures, by which a claim of the candidate can be checked."
            tools.append(
                AgentTool(
                    "ask_about_pictures",
                    about,
                    VisualQuestion,
                    lambda one: ask_about_pictures(case, one, pictures, visual),
                )
            )
        if pictures.frames:
            about = "A part of a picture, enlarged, with more contrast or sharper if that helps."
            tools.append(AgentTool("look_closer", about, CloserLook, lambda one: look_closer(case, one, pictures)))
        return tools


TOOL_FAILED = "tool-failed"
"""Flag: a tool call of the judge failed."""

_RATE = "rate"


class AgentJudge:
    """Lets a model use tools until it rates every dimension: a `DimensionJudge`. The whole transcript is cached under the
    case, the prompt, the model, the limits and the settings of the tools."""

    def __init__(
        self,
        client: ModelClient,
        judgements: JudgementCache,
        tools: Toolbox,
        limits: AgentLimits,
        prompts: Path | None = None,
        variant: str = "",
    ) -> None:
        self.name = f"agent-judge{f'/{variant}' if variant else ''}[{client.name}]"
        self._client, self._tools, self._limits = client, tools, limits
        self._model = CachedModel(self.name, client, judgements)
        self._prompts = load_prompts("agent", prompts, PROMPTS)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The settings of the model, the prompts, the limits and the tools."""
        return {**self._client.settings, "prompt_sha256": prompt_hashes(self._prompts), **self._own}

    @property
    def _own(self) -> dict[str, JsonValue]:
        return {"limits": self._limits.model_dump(mode="json"), "tools": self._tools.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        pictures = await look(case)
        flags = (*injection_flags(case), *pictures.flags)
        try:
            rated, steps, key = await self._ask(case, pictures, flags)
        except InfrastructureError as error:
            return DimensionScores.none(case, str(error), flags=flags)
        calls = _calls(steps)
        failed = any(call.get("failed") for call in calls)
        return replace(
            RATING.read(case, rated),
            flags=(*flags, *((TOOL_FAILED,) if failed else ())),
            evidence=({"judge": self.name, "reason": rated.reason, "steps": [*steps], **pictures.evidence},),
            judgements=(*(str(judgement) for call in calls for judgement in _listed(call.get("judgements"))), key),
        )

    async def _ask(self, case: Case, pictures: Pictures, flags: tuple[str, ...]) -> tuple[Rated, list[JsonValue], str]:
        form = rating_form(case.dimensions)
        prompt = prompt_for(self._prompts, case.id, case.language)
        tools = self._tools.of(case, pictures)
        filled: dict[str, JsonValue] = {
            "query": sanitize(case.query),
            "references": [sanitize(reference.text) for reference in case.sorted_references],
            "candidate": sanitize(case.candidate),
            "images_named": pictures.named,
            "images_shown": len(pictures.frames),
            "tools": [tool.name for tool in tools],
            "steps": self._limits.steps,
            **wording_of(case, case.dimensions),
        }
        system, user = prompt.render(**filled, fence_open=FENCE_OPEN, fence_close=FENCE_CLOSE)
        agent = Agent(self._client, tools, _RATE, form, self._limits)
        kept, judgement = await self._model.keep(
            _transcript(form),
            lambda: agent.run([*pictures.frames, user], system),
            content={
                "judge": "agent-judge",
                "prompt_sha256": prompt.sha256,
                "language": case.language,
                "encounter": case.encounter,  # it decides which rated answers the tools may return
                **filled,
                "candidate": case.candidate,
                "images": pictures.hashes,
                **self._own,
            },
            item_id=case.id,
            flags=lambda kept: (*RATING.breaks(case, kept[0]), *flags),
        )
        return kept[0], kept[1], judgement.key


def _transcript(form: type[Rated]) -> StoredReply[tuple[Rated, list[JsonValue]]]:
    """The rating with the steps that led to it."""

    def load(kept: Mapping[str, JsonValue]) -> tuple[Rated, list[JsonValue]]:
        reply = AgentReply.model_validate(kept)
        return form.model_validate(reply.value), [*reply.transcript]

    return StoredReply(AgentReply, lambda reply: reply.value.model_dump(mode="json"), load)


def _calls(steps: Sequence[JsonValue]) -> list[dict[str, JsonValue]]:
    """The calls of all steps."""
    found = (call for step in steps if isinstance(step, dict) for call in _listed(step.get("calls")))
    return [call for call in found if isinstance(call, dict)]


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


class AgentOptions(AgentLimits, PipelineOptions, JudgePrompt):
    """The limits for each answer, the prompt, and the sources of the tools: `encoder` compares meanings instead of words,
    `pictures` (a folder with a model like CLIP) compares pictures; `signals` is the folder of an embedded judge, `fit`
    the file of a local pipeline with the same encoders."""

    signals: Path | None = None


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """An agent that uses tools (similar rated answers, learned scores, a closer look) and then rates.

    Options: signals=DIR (embedded judge), fit=FILE (local pipeline), encoder, pictures, steps=8, calls=12, tokens=100000,
    cost (dollars an answer), prompt=paper, general, or a folder with agent.txt.j2. Similar answers need --rated. Raises `ConfigurationError` unless there is exactly one model,
    and it calls tools; `InputError` for what can't be read.
    """
    name = "agent-judge"
    options = read_options(name, AgentOptions, setup.options)
    client = setup.clients.client(setup.clients.only(name), {"temperature": 0.0})
    similar = None
    if setup.rated:
        encoder = load_sentence_encoder(options.encoder) if options.encoder else None
        sight = MultimodalEncoder(options.pictures) if options.pictures else None
        similar = SimilarCases(RatedPool(setup.rated), encoder, sight)
    learned: list[DimensionJudge] = [] if options.signals is None else [EmbeddedJudge.load(options.signals)]
    if options.fit is not None:
        learned.append(CombinedJudge(SignalReader(options.encoder, options.pictures), read_pipeline(options.fit)))
    visual = PromptedModel(
        f"{name}/visual[{client.name}]",
        client,
        setup.judgements,
        "visual",
        load_prompts("visual", setup.prompts, PROMPTS),
    )
    limits = AgentLimits(**{name: getattr(options, name) for name in AgentLimits.model_fields})
    Agent.refuse(client)
    tools = Toolbox(similar, tuple(learned), visual)
    return AgentJudge(client, setup.judgements, tools, limits, options.prompts(setup, "agent"), options.prompt_name)

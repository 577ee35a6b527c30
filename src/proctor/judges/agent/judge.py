"""The judge `agent-judge`, after BDI (Xu et al. 2026, in section 6.4 of the overview): a ReAct agent that retrieves
similar rated encounters, learned signals and generated answers to visual questions, and looks closer at the pictures.
The transcript is the judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field, JsonValue

from proctor.core import InfrastructureError, JudgementCache
from proctor.judges.agent.tools import SimilarCases, Toolbox, VisualReferences
from proctor.judges.cached_model import CachedModel, StoredReply, load_prompts, prompt_for, prompt_hashes
from proctor.judges.dimensions.case import Case, DimensionScores, injection_flags
from proctor.judges.dimensions.few_shot import RatedPool
from proctor.judges.dimensions.model_judge import RATING, Pictures, Rated, look, rating_form, wording_of
from proctor.judges.dimensions.named import NoOptions
from proctor.judges.dimensions.scorer import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.judges.embedded import EmbeddedJudge
from proctor.judges.passage_index import load_sentence_encoder
from proctor.judges.pipeline import CombinedJudge, SignalReader, read_pipeline
from proctor.judges.prompt_injection import FENCE_CLOSE, FENCE_OPEN, sanitize
from proctor.models import Agent, AgentLimits, AgentReply, ModelClient, MultimodalEncoder

TOOL_FAILED = "tool-failed"
"""Flag: a tool that the judge called could not do what it was asked."""

_RATE = "rate"


class AgentJudge:
    """Lets a model use tools until it rates every dimension: `DimensionJudge`. The whole transcript is kept under a key
    of the case, the prompt, the model, the limits and all that decides what tools give."""

    def __init__(
        self,
        client: ModelClient,
        votes: JudgementCache,
        tools: Toolbox,
        limits: AgentLimits,
        prompts: Path | None = None,
    ) -> None:
        self.name = f"agent-judge[{client.name}]"
        self._client, self._tools, self._limits = client, tools, limits
        self._model = CachedModel(self.name, client, votes)
        self._prompts = load_prompts("agent", prompts)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, the prompt's, the limits, and what decides what tools give."""
        return {**self._client.settings, "prompt_sha256": prompt_hashes(self._prompts), **self._own}

    @property
    def _own(self) -> dict[str, JsonValue]:
        return {"limits": self._limits.model_dump(mode="json"), "tools": self._tools.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        pictures = await look(case)
        flags = (*injection_flags(case), *pictures.flags)
        try:
            said, steps, key = await self._ask(case, pictures, flags)
        except InfrastructureError as error:
            return DimensionScores.none(case, str(error), flags=flags)
        scores, calls = RATING.read(case, said), _calls(steps)
        failed = any(one.get("failed") for one in calls)
        behind = [str(key) for one in calls for key in _listed(one.get("votes"))]
        return replace(
            scores,
            flags=(*flags, *((TOOL_FAILED,) if failed else ())),
            evidence=({"judge": self.name, "reason": said.reason, "steps": [*steps], **pictures.evidence},),
            votes=(*behind, key),
        )

    async def _ask(self, case: Case, pictures: Pictures, flags: tuple[str, ...]) -> tuple[Rated, list[JsonValue], str]:
        form = rating_form(case.dimensions)
        prompt = prompt_for(self._prompts, case.id, case.language)
        tools = self._tools.of(case, pictures)
        filled: dict[str, JsonValue] = {
            "query": sanitize(case.query),
            "references": [sanitize(one.text) for one in case.sorted_references],
            "candidate": sanitize(case.candidate),
            "images_named": pictures.named,
            "images_shown": len(pictures.frames),
            "tools": [one.name for one in tools],
            "steps": self._limits.steps,
            **wording_of(case, case.dimensions),
        }
        system, user = prompt.render(**filled, fence_open=FENCE_OPEN, fence_close=FENCE_CLOSE)
        agent = Agent(self._client, tools, _RATE, form, self._limits)
        kept, vote = await self._model.keep(
            _transcript(form),
            lambda: agent.run([*pictures.frames, user], system),
            content={
                "judge": "agent-judge",
                "prompt_sha256": prompt.sha256,
                "language": case.language,
                "encounter": case.encounter,  # what is looked up is never of it
                **filled,
                "candidate": case.candidate,
                "images": pictures.hashes,
                **self._own,
            },
            item_id=case.id,
            flags=lambda kept: (*RATING.breaks(case, kept[0]), *flags),
        )
        return kept[0], kept[1], vote.key


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


class AgentOptions(NoOptions):
    """`encoder` compares meanings instead of words, `pictures` (a folder with CLIP or the like) pictures; `signals` is the
    folder of an embedded judge, `fit` the file of a local pipeline with the same encoders; the others are limits for each
    answer (see `AgentLimits`)."""

    encoder: str = ""
    pictures: str = ""
    signals: Path | None = None
    fit: Path | None = None
    steps: int = Field(default=8, ge=2, le=40)
    calls: int = Field(default=12, ge=1, le=100)
    tokens: int = Field(default=100_000, ge=1000)
    cost: float | None = Field(default=None, gt=0)


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """An agent that uses tools (similar rated answers, learned scores, a closer look) and then rates.

    Options: signals=DIR (embedded judge), fit=FILE (local pipeline), encoder, pictures, steps=8, calls=12, tokens=100000,
    cost (dollars an answer). Similar answers need --rated. Raises `ConfigurationError` unless there is exactly one model,
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
    visual = VisualReferences(
        CachedModel(f"{name}/visual[{client.name}]", client, setup.votes), load_prompts("visual", setup.prompts)
    )
    limits = AgentLimits(steps=options.steps, calls=options.calls, tokens=options.tokens, cost=options.cost)
    Agent.refuse(client)
    return AgentJudge(client, setup.votes, Toolbox(similar, tuple(learned), visual), limits, setup.prompts)

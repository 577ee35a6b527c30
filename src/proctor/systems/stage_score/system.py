"""`stage-score`: facts from the model, a stage by rules, and the frames sorted by stage.

After the system of VerbaNexAI Lab in the overview of ClinicalSkillQA 2026. Facts, rules and prompts are this project's
own: those of the paper are not public.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import Answer, Item, System, View
from proctor.models import ModelClient, load_prompt
from proctor.systems.keyframes import (
    Asking,
    KeyFrames,
    Reply,
    clipped,
    in_turn,
    key_frames,
    order_answer,
    orders_frames,
    spelled,
)
from proctor.systems.methods import method_options, only_client
from proctor.systems.stage_score.features import APPEARANCE, MultimodalEncoder, appearance
from proctor.systems.stage_score.sorting import Sorted, sort_frames
from proctor.systems.stage_score.stages import State, state_of
from proctor.systems.workflow import Offer, Workflow

__all__ = ["Options", "StageScore", "build"]

VERSION = "2"
"""Changes whenever the same replies may give another answer; prompts have hashes of their own."""

METHOD = "stage-score"

NO_FACTS = "no frame shows a fact: all are tied, and ordered by the first component alone"
"""In an answer's `extra["fallback"]`: its order rests on looks, and its direction on nothing."""


class Options(BaseModel):
    """`scenario` (cpr, aed, bmv) or `workflow` (a file) say what the procedure is; `encoder` is a model of pictures and
    texts (a folder or an id) whose vectors break ties, instead of the pictures' colours; `unseen` says what becomes of
    an instance of which no frame shows a fact: all are tied ("component", as the paper's system always orders), or
    there is no order ("none")."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenario: str | None = None
    workflow: str | None = None
    encoder: str | None = None
    unseen: Literal["component", "none"] = "component"


class ProcedureReply(Reply):
    """Which procedure the pictures show."""

    procedure: str = Field(default="", description="Its name, or other.")


class StageReply(Reply):
    """What one picture shows."""

    seen: str = Field(default="", description="What the picture shows.")
    true_facts: list[str] = Field(default=[], description="Names of the facts that it shows.")


@dataclass(frozen=True, slots=True)
class _Seen:
    """Of one frame: the words, the facts that the workflow knows, and the state that follows."""

    words: str
    facts: tuple[str, ...]
    state: State


class StageScore:
    """Sorts key frames by the stage of the procedure that each shows.

    For n frames shown it makes n calls with one image each; where neither the options nor the question name the
    procedure, one call more, with all n images, in which the model chooses among all that are known (where it chooses
    none, no facts are asked for). No frames, no calls.

    The model says which facts a frame shows; rules make a state and an ordinal stage of them (see `state_of`). Frames
    of one stage are told apart by the first principal component of their vectors: of `encoder` (picture and words, as in
    the paper), else of the pictures' colours alone (`seriation`'s). See `sort_frames` for frames
    without a stage, and for the direction. Where no frame has a stage all frames are tied, so that there is always a
    complete order of what is shown, as in the paper; `extra["fallback"]` then says so. With `unseen="none"` the answer
    states no order there.

    `Answer.extra`: `rationale` (put together from what was seen), `evidence` (procedure, and of each frame `seen`, `facts`,
    `step`, `done`, `stage`), `ties` (`features`, `groups`, `direction`), `borrowed`, `calls`, `images`.
    """

    def __init__(self, client: ModelClient, options: Options) -> None:
        self._client = client
        self._unseen = options.unseen
        self._offer = Offer(METHOD, scenario=options.scenario, workflow=options.workflow)
        self._encoder = MultimodalEncoder(options.encoder) if options.encoder is not None else None
        self._procedure = load_prompt(Path(__file__).with_name("procedure.txt.j2"))
        self._frame = load_prompt(Path(__file__).with_name("frame.txt.j2"))

    @property
    def name(self) -> str:
        """With the model, since another model is another system."""
        return f"{METHOD}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model, the prompts by hash, the workflows by hash, the features."""
        return {
            **self._client.settings,
            **self._offer.settings,
            "version": VERSION,
            "features": self._features,
            "unseen": self._unseen,
            "prompts_sha256": {"procedure": self._procedure.sha256, "frame": self._frame.sha256},
        }

    @property
    def _features(self) -> str:
        return self._encoder.where if self._encoder is not None else APPEARANCE

    def supports(self, item: Item) -> bool:
        """Orderings alone."""
        return orders_frames(item)

    async def answer(self, item: Item, view: View) -> Answer:
        """Raises `MachineryError` and `RefusalError` where a call ends so, `ValueError` for another format."""
        frames = await key_frames(item, view)
        asking = Asking(self._client)
        workflow = await self._chosen(asking, frames, self._offer.of(item.question))
        seen: dict[str, _Seen] = {}
        if workflow is not None:
            for label in frames.shown:
                seen[label] = await self._look(asking, frames, label, workflow)
        found = await asyncio.to_thread(self._sorted, frames, seen)
        extra: dict[str, JsonValue] = {
            "evidence": _told(workflow, seen),
            "ties": {
                "features": self._features,
                "groups": [[*group] for group in found.tied],
                "direction": found.direction,
            },
            "borrowed": {**found.borrowed},
            **asking.counts(),
            **({"fallback": NO_FACTS} if frames.frames and _stageless(seen) else {}),
        }
        rationale = _rationale(found, seen, workflow)
        return order_answer(item, found.order, rationale=rationale, usage=asking.usage, extra=extra)

    async def _chosen(
        self, asking: Asking, frames: KeyFrames, workflows: Sequence[Workflow]
    ) -> Workflow | None:
        if not frames.frames or len(workflows) == 1:
            return workflows[0] if len(workflows) == 1 else None
        said = await asking.ask(
            self._procedure, ProcedureReply, frames.captioned(), labels=frames.shown, workflows=workflows
        )
        names = spelled([said.procedure])
        return next((one for one in workflows if one.name in names), None)

    async def _look(self, asking: Asking, frames: KeyFrames, label: str, workflow: Workflow) -> _Seen:
        said = await asking.ask(
            self._frame, StageReply, frames.captioned([label]), label=label, workflow=workflow
        )
        facts = tuple(name for name in spelled(said.true_facts) if name in workflow.facts)
        return _Seen(clipped(said.seen), facts, state_of(facts, workflow))

    def _sorted(self, frames: KeyFrames, seen: Mapping[str, _Seen]) -> Sorted:
        if not frames.frames or (self._unseen == "none" and _stageless(seen)):
            return Sorted((), {}, (), "")
        jpegs = [frame.jpeg for frame in frames.frames]
        words = [seen[label].words if label in seen else "" for label in frames.shown]
        vectors = appearance(jpegs) if self._encoder is None else self._encoder(jpegs, words)
        return sort_frames(frames.shown, {label: one.state.stage for label, one in seen.items()}, vectors)


def _told(workflow: Workflow | None, seen: Mapping[str, _Seen]) -> dict[str, JsonValue]:
    frames: dict[str, JsonValue] = {
        label: {
            "seen": one.words,
            "facts": [*one.facts],
            "step": one.state.step,
            "done": [*one.state.done],
            "stage": one.state.stage,
        }
        for label, one in seen.items()
    }
    return {"procedure": workflow.name if workflow is not None else None, "frames": frames}


def _stageless(seen: Mapping[str, _Seen]) -> bool:
    return all(one.state.stage is None for one in seen.values())


def _rationale(found: Sorted, seen: Mapping[str, _Seen], workflow: Workflow | None) -> str:
    if not found.order:
        return ""
    titles = {} if workflow is None else {label: _title(one.state, workflow) for label, one in seen.items()}
    return in_turn(found.order, {label: one.words for label, one in seen.items()}, titles)


def _title(state: State, workflow: Workflow) -> str:
    step = workflow.step(state.step)
    past = [workflow.step(name) for name in state.done]
    after = ", ".join(passed.title for passed in past if passed is not None)
    return step.title if step is not None else f"after: {after}" if after else ""


def build(clients: Sequence[ModelClient], *, seed: int = 0, options: Mapping[str, JsonValue]) -> System:
    """Facts per frame from the model, a stage by rules, frames sorted by stage (VerbaNexAI).

    It draws nothing, so the seed changes nothing.
    """
    del seed
    return StageScore(only_client(METHOD, clients), method_options(METHOD, Options, options))

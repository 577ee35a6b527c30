"""`stage-score`: key frames sorted by the stage of the procedure that each shows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue
from pydantic_core import to_jsonable_python

from proctor.models import MultimodalEncoder
from proctor.systems import look
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    FoundOrder,
    KeyFrameMethod,
    KeyFrames,
    MethodOptions,
    OrderingTask,
    ReplyForm,
    clipped,
    in_turn,
    spelled,
    workflow_named,
)
from proctor.tasks.clinicalskillqa.methods.workflow import Workflow

Vectors = NDArray[np.float64]

APPEARANCE = "appearance"
"""The name of the features without an encoder: 32 × 32 points of colour of each picture, no text."""


def appearance(jpegs: Sequence[bytes]) -> Vectors:
    """Pictures × 3,072: the points of colour that `seriation` compares."""
    return np.stack([look(jpeg).ravel() for jpeg in jpegs])


def _both(encoder: MultimodalEncoder, jpegs: Sequence[bytes], texts: Sequence[str]) -> Vectors:
    """For each picture its vector followed by its text's vector."""
    return np.concatenate([encoder.see(jpegs), encoder.read(texts)], axis=1)


def first_component(vectors: Vectors) -> NDArray[np.float64]:
    """The score of each vector (row) on the first principal component: centred, in the vectors' own unit.

    The sign is arbitrary. All 0 where the vectors do not differ.

    >>> first_component(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])).round(6).tolist() in ([-5, 0, 5], [5, 0, -5])
    True
    """
    centred = vectors - vectors.mean(axis=0)
    if not centred.any():
        return np.zeros(len(vectors))
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    positions: NDArray[np.float64] = u[:, 0] * s[0]
    return positions


@dataclass(frozen=True, slots=True)
class State:
    """What a frame shows of the procedure: its step (None: no step), the steps whose lasting effects it shows (`done`),
    and the stage, from 0 (None: unknown).

    A step at level k of the workflow stands for the stage 2·k, a step that is done for 2·k + 1; the stage is the
    largest of them.
    """

    step: str | None
    done: tuple[str, ...]
    stage: int | None


def state_of(facts: Collection[str], workflow: Workflow) -> State:
    """The state in which these facts are known to be true, and no others.

    The step is the latest one (by level, then as listed) all of whose `shown_by` are true and none of whose
    `never_with` is. Facts that the workflow does not know are ignored.

    >>> from proctor.tasks.clinicalskillqa.methods.workflow import built_in
    >>> state_of(["hands_on_chest", "chest_bare"], built_in("cpr"))
    State(step='compress', done=('bare_chest',), stage=8)
    >>> state_of(["chest_bare"], built_in("cpr")).stage, state_of([], built_in("cpr")).stage
    (7, None)
    """
    shown = [
        step.name
        for step in workflow.steps
        if all(name in facts for name in step.shown_by) and not any(name in facts for name in step.never_with)
    ]
    step = max(shown, key=workflow.level, default=None)
    done = tuple(
        dict.fromkeys(
            fact.lasts.since for name, fact in workflow.facts.items() if name in facts and fact.lasts is not None
        )
    )
    stages = [2 * workflow.level(name) + 1 for name in done]
    if step is not None:
        stages.append(2 * workflow.level(step))
    return State(step, done, max(stages, default=None))


@dataclass(frozen=True, slots=True)
class Sorted:
    """The order. `borrowed` maps each frame without a stage to the most similar frame with one, whose stage it gets;
    `tied` are the groups that share a stage; `direction` is what oriented the principal component: "stages", "given"
    (nothing but the order in which frames are given), or "" where nothing was tied."""

    order: tuple[str, ...]
    borrowed: dict[str, str]
    tied: tuple[tuple[str, ...], ...]
    direction: str


def sort_frames(labels: Sequence[str], stages: Mapping[str, int | None], vectors: NDArray[np.float64]) -> Sorted:
    """Sorts by stage, ties by the first principal component of `vectors` (one row per label, in the order of `labels`).

    A component has no direction of its own: it is oriented by its correlation with the stages (Pearson's, over the
    frames that have one); where there is none, it begins at the end of the frame that is given first. A frame without a
    stage gets that of the nearest frame (Euclidean) with one. Where no frame has a stage, all are tied.
    """
    own = {label: stage for label in labels if (stage := stages.get(label)) is not None}
    if not labels:
        return Sorted((), {}, (), "")
    row = {label: number for number, label in enumerate(labels)}
    borrowed = {
        label: min(own, key=lambda one: (float(np.linalg.norm(vectors[row[label]] - vectors[row[one]])), row[one]))
        for label in labels
        if own and label not in own
    }
    stage_of = dict.fromkeys(labels, 0) | own | {label: own[lender] for label, lender in borrowed.items()}
    groups = {
        stage: tuple(label for label in labels if stage_of[label] == stage) for stage in sorted(set(stage_of.values()))
    }
    tied = tuple(group for group in groups.values() if len(group) > 1)
    if not tied:
        return Sorted(tuple(group[0] for group in groups.values()), borrowed, (), "")
    along, direction = _directed(first_component(vectors), labels, own)
    order = sorted(labels, key=lambda label: (stage_of[label], round(float(along[row[label]]), 9), row[label]))
    return Sorted(tuple(order), borrowed, tied, direction)


def _directed(
    positions: NDArray[np.float64], labels: Sequence[str], own: Mapping[str, int]
) -> tuple[NDArray[np.float64], str]:
    """The scores, with the sign that makes them grow with the stages, and what decided the sign."""
    if not own:
        return (positions if positions[0] <= 0 else -positions), "given"
    with_stage = [number for number, label in enumerate(labels) if label in own]
    stages = np.array([own[labels[number]] for number in with_stage], dtype=float)
    with_them = float(((stages - stages.mean()) * (positions[with_stage] - positions[with_stage].mean())).sum())
    if abs(with_them) > 1e-9:
        return (positions if with_them > 0 else -positions), "stages"
    return (positions if positions[0] <= 0 else -positions), "given"


NO_FACTS = "no frame shows a fact: all are tied, and ordered by the first component alone"
"""In an answer's `extra["fallback"]`: its order rests on appearance, and its direction is unknown."""


class StageScoreOptions(MethodOptions):
    """`encoder`: a model of pictures and texts (a folder or an id) whose vectors break ties, instead of the pictures'
    colours. `unseen`: what happens where no frame shows a fact: all frames are tied ("component", as in the paper), or
    there is no order ("none")."""

    encoder: str | None = None
    unseen: Literal["component", "none"] = "component"


class ProcedureReply(ReplyForm):
    """Which procedure the pictures show."""

    procedure: str = Field(default="", description="Its name, or other.")


class StageReply(ReplyForm):
    """What one picture shows."""

    seen: str = Field(default="", description="What the picture shows.")
    true_facts: list[str] = Field(default=[], description="Names of the facts that it shows.")


@dataclass(frozen=True, slots=True)
class _Seen:
    """One frame's description, its facts that the workflow knows, and the resulting state."""

    words: str
    facts: tuple[str, ...]
    state: State


class StageScore(KeyFrameMethod):
    """Facts per frame from the model, a stage by rules, frames sorted by stage (VerbaNexAI).

    For n frames shown it makes n calls with one image each; where neither the options nor the question name the
    procedure, one call more, with all n images, in which the model chooses among all that are known (where it chooses
    none, no facts are asked for). No frames, no calls.

    The model says which facts a frame shows; rules derive a state and an ordinal stage from them (see `state_of`).
    Frames of one stage are sorted by the first principal component of their vectors: those of `encoder` (picture and
    description, as in the paper), else the pictures' colours alone (`seriation`'s). See `sort_frames` for frames
    without a stage, and for the direction. Where no frame has a stage all frames are tied, so that there is always a
    complete order of what is shown, as in the paper; `extra["fallback"]` then says so. With `unseen="none"` the answer
    states no order in that case.

    `Answer.extra`: `rationale` (made from the descriptions), `evidence` (procedure, and of each frame `seen`,
    `facts`, `step`, `done`, `stage`), `ties` (`features`, `groups`, `direction`), `borrowed`, `calls`, `images`.
    """

    method, version, folder, files = "stage-score", "2", "stage_score", ("procedure", "frame")
    form = StageScoreOptions
    options: StageScoreOptions

    @cached_property
    def _encoder(self) -> MultimodalEncoder | None:
        return MultimodalEncoder(self.options.encoder) if self.options.encoder is not None else None

    def details(self) -> dict[str, JsonValue]:
        return {"features": self.options.encoder or APPEARANCE, "unseen": self.options.unseen}

    async def find(self, task: OrderingTask) -> FoundOrder:
        """The procedure, the facts that each frame shows, and the resulting order."""
        workflow = await self._workflow(task)
        seen: dict[str, _Seen] = {}
        if workflow is not None:
            for label in task.frames.shown:
                seen[label] = await self._look(task, label, workflow)
        found = await asyncio.to_thread(self._sorted, task.frames, seen)
        extra: dict[str, JsonValue] = {
            "evidence": _evidence(workflow, seen),
            "ties": {
                "features": self.options.encoder or APPEARANCE,
                "groups": [[*group] for group in found.tied],
                "direction": found.direction,
            },
            "borrowed": {**found.borrowed},
            **({"fallback": NO_FACTS} if task.frames.frames and _stageless(seen) else {}),
        }
        return FoundOrder(found.order, _rationale(found, seen, workflow), extra)

    async def _workflow(self, task: OrderingTask) -> Workflow | None:
        frames, workflows = task.frames, task.workflows
        if not frames.frames or len(workflows) == 1:
            return workflows[0] if len(workflows) == 1 else None
        reply = await task.model.ask(
            self.prompts["procedure"], ProcedureReply, frames.captioned(), labels=frames.shown, workflows=workflows
        )
        return workflow_named(reply.procedure, workflows)

    async def _look(self, task: OrderingTask, label: str, workflow: Workflow) -> _Seen:
        shown = task.frames.captioned([label])
        reply = await task.model.ask(self.prompts["frame"], StageReply, shown, label=label, workflow=workflow)
        facts = tuple(name for name in spelled(reply.true_facts) if name in workflow.facts)
        return _Seen(clipped(reply.seen), facts, state_of(facts, workflow))

    def _sorted(self, frames: KeyFrames, seen: Mapping[str, _Seen]) -> Sorted:
        if not frames.frames or (self.options.unseen == "none" and _stageless(seen)):
            return Sorted((), {}, (), "")
        jpegs = [frame.jpeg for frame in frames.frames]
        words = [seen[label].words if label in seen else "" for label in frames.shown]
        vectors = appearance(jpegs) if self._encoder is None else _both(self._encoder, jpegs, words)
        return sort_frames(frames.shown, {label: one.state.stage for label, one in seen.items()}, vectors)


def _evidence(workflow: Workflow | None, seen: Mapping[str, _Seen]) -> dict[str, JsonValue]:
    frames = {label: {"seen": one.words, "facts": one.facts, **asdict(one.state)} for label, one in seen.items()}
    found: dict[str, JsonValue] = to_jsonable_python({"procedure": workflow and workflow.name, "frames": frames})
    return found


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

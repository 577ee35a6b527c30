"""`perceive-and-plan`: what is seen and what follows from it are asked apart."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from proctor.core import Frame, InputError, Item, Region, content_hash
from proctor.media import ShowsOriginals
from proctor.systems import Demonstration, Demonstrations
from proctor.tasks.clinicalskillqa.keypoints import Pose, open_pose
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    Asking,
    FoundOrder,
    KeyFrameMethod,
    KeyFrames,
    LabelList,
    MethodOptions,
    OrderingTask,
    OrderReply,
    ReplyForm,
    clipped,
    read_labels,
)
from proctor.tasks.clinicalskillqa.methods.saliency import COLOURS, Detail, details_of, enlarged, saliency
from proctor.tasks.clinicalskillqa.pose import marked_regions

Described = dict[str, dict[str, str]]
Describe = Callable[[Demonstration], Awaitable[Described]]


@dataclass(frozen=True)
class Example:
    """What the plan is told of a solved instance: each picture's description, the right order, and why."""

    id: str
    described: Mapping[str, Mapping[str, str]]
    order: Sequence[str]
    rationale: str


class Examples:
    """The first `shots` instances of a file or folder that are not the item itself (see `Demonstrations`).

    The descriptions of an instance are asked for by the item that needs them first and kept for all others.
    """

    def __init__(self, source: Path, shots: int) -> None:
        self._demonstrations = Demonstrations(source)
        self._shots = shots
        self._known: dict[str, Example] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @property
    def sha256(self) -> str:
        """Of ids, orders, rationales and names of pictures."""
        return self._demonstrations.sha256

    async def of(
        self, item: str, frames: Sequence[Frame], describe: Describe
    ) -> tuple[list[Example], Mapping[str, str]]:
        """Those to show for an item, and those that were passed over, with the reason."""
        picked = await asyncio.to_thread(self._demonstrations.pick, item, frames, self._shots)
        return [await self._example(one, describe) for one in picked.shown], picked.passed_over

    async def _example(self, one: Demonstration, describe: Describe) -> Example:
        async with self._locks.setdefault(one.id, asyncio.Lock()):
            if one.id not in self._known:
                described = await describe(one)
                self._known[one.id] = Example(one.id, described, one.order, one.rationale.strip())
        return self._known[one.id]


Insets = bool | Literal["both"]
"""Whether details are enlarged; "both" adds what stands out to what joints and marks tell."""


@dataclass(frozen=True)
class SentPicture:
    """One picture to be sent, without a label (one picture alone needs none), and what is enlarged in it."""

    frame: Frame
    details: tuple[Detail, ...]

    @property
    def insets(self) -> list[tuple[str, str]]:
        """Colour and content ("" for a place that stands out) of each inset, in its order."""
        return [(colour, detail.what) for colour, detail in zip(COLOURS, self.details, strict=False)]


def sent_pictures(
    frames: Sequence[Frame],
    poses: Sequence[Pose | None],
    marked: Mapping[str, Region],
    *,
    insets: Insets = True,
    originals: Sequence[Frame] = (),
) -> list[SentPicture]:
    """One look for each frame; motion is taken between all of them. Details are cut from the `originals`, the same
    pictures before they were scaled, where they are given. Raises `InputError` for an unreadable picture, and where
    the originals are not those of the frames."""
    if not insets:
        return [SentPicture(Frame(frame.jpeg, frame.time, ""), ()) for frame in frames]
    if originals and [one.label for one in originals] != [one.label for one in frames]:
        given, expected = (", ".join(one.label for one in some) for some in (originals, frames))
        raise InputError("originals", found=given, expected=expected)
    sources: list[bytes | None] = [one.jpeg for one in originals]
    sources = sources or [None] * len(frames)
    looks = []
    maps = saliency([frame.jpeg for frame in frames])
    for frame, pose, found, source in zip(frames, poses, maps, sources, strict=True):
        details = details_of(found, _aspect(frame.jpeg), pose, marked, both=insets == "both")
        looks.append(SentPicture(Frame(enlarged(frame.jpeg, details, source), frame.time, ""), tuple(details)))
    return looks


def _aspect(jpeg: bytes) -> float:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        return opened.width / opened.height


_MOST = 240
_PARTS = {
    "action": "doing",
    "people": "people",
    "head_airway": "head and airway",
    "chest_hands": "chest and hands",
    "devices": "devices",
    "anchor": "places it in time",
    "unclear": "unclear",
}


class Description(ReplyForm):
    """What one picture shows, each part in at most 25 words; empty where nothing of it can be seen."""

    people: str = Field(default="", description="Who is where, standing or kneeling, facing what.")
    head_airway: str = Field(default="", description="At the patient's head: hands, mask, tilt of the head.")
    chest_hands: str = Field(default="", description="On the patient's chest: hands, clothes, pads.")
    devices: str = Field(default="", description="Devices and where they are: defibrillator, pads, bag, mask.")
    action: str = Field(description="What is being done at this moment.")
    anchor: str = Field(default="", description="What in the picture tells how far the procedure has come.")
    unclear: str = Field(default="", description="What can't be made out.")

    def parts(self) -> dict[str, str]:
        """What was said, part by part, each cut to 240 characters; empty parts are left out."""
        said = {told: clipped(str(getattr(self, name)), _MOST) for name, told in _PARTS.items()}
        return {told: text for told, text in said.items() if text}


class PlannedStep(BaseModel):
    """One picture of the plan."""

    picture: str = Field(default="", description="The label.")
    step: str = Field(default="", description="The step of the procedure.")
    anchor: str = Field(default="", description="What was seen that puts it there.")

    def to_json(self) -> dict[str, JsonValue]:
        return {"picture": clipped(self.picture, 40), "step": clipped(self.step), "anchor": clipped(self.anchor)}


class PlanReply(OrderReply):
    """The plan: which step each picture shows, why the order is this one, and the order."""

    steps: list[PlannedStep] = Field(
        default_factory=list, description="The pictures in their order, with step and anchor."
    )


class Problem(BaseModel):
    """One place where the plan breaks a rule or contradicts a description."""

    rule: str = Field(default="", description="The rule that is broken.")
    pictures: LabelList = Field(default_factory=list, description="The labels of the pictures.")
    evidence: str = Field(default="", description="What was seen that shows it.")

    def to_json(self) -> dict[str, JsonValue]:
        pictures: list[JsonValue] = [clipped(one, 40) for one in self.pictures[:12]]
        return {"rule": clipped(self.rule), "pictures": pictures, "evidence": clipped(self.evidence)}


class CheckReply(ReplyForm):
    """Whether the plan holds; where it does not, the order that does."""

    problems: list[Problem] = Field(default_factory=list, description="What is wrong with the plan; empty if nothing.")
    revise: bool = Field(description="Whether the order must change.")
    rationale: str = Field(default="", description="Why the changed order is right, picture by picture; else empty.")
    order: LabelList = Field(default_factory=list, description="The changed order, all labels; else empty.")


_MOST_STEPS = 26
_MOST_PROBLEMS = 12
_MOST_REASON = 4000  # characters of the plan's rationale that the check is told


class PerceiveAndPlanOptions(MethodOptions):
    """`insets` whether details are enlarged ("both": what stands out beside head and chest); `pose` a network or a file
    of keypoints that tells where head and chest are, `head` and `chest` marked places instead (x,y,width,height in
    fractions); `demonstrations` a file or folder of solved instances, of which `shots` are shown to the plan."""

    insets: Insets = True
    pose: str | None = None
    head: str | None = None
    chest: str | None = None
    demonstrations: str | None = None
    shots: int = Field(default=2, ge=1, le=8)


class PerceiveAndPlan(KeyFrameMethod):
    """Each frame described by itself, with details enlarged; then a plan without pictures, checked once (ZZUNLP).

    For n frames shown it makes n + 2 calls with n images: n descriptions of 1 picture each, then, without any picture,
    the plan and its check. Each picture is sent with two details enlarged beside it (see
    `proctor.tasks.clinicalskillqa.methods.saliency`), in one image and without its label; they are cut from the picture as
    large as its file is. Plan and check are told the same rules. Under a condition that shows no frames it makes the 2
    calls without images.

    With `demonstrations` the plan is shown solved instances first, never the item itself: their pictures are described
    in the same way, once a run, which is one call and one image for each of them, counted in the answer that needs
    them first.

    The check may revise the order once: its order is taken where it asks for it and names every label once, or where
    the plan did not name every label either; else the plan stays. A file of keypoints serves only under the condition
    `video`, since it would tell a blind run what it may not see.

    `Answer.extra`: `rationale` (the plan's, or the check's where it revised with a reason), `described`, `insets`,
    `plan`, `check` (problems, `revised`), `calls`, `images`, `demonstrations` (ids shown) and `passed_over`; `labels`
    where the order misses, repeats or invents.
    """

    method, version, folder, files = "perceive-and-plan", "2", "perceive_and_plan", ("perceive", "plan", "check")
    form = PerceiveAndPlanOptions
    options: PerceiveAndPlanOptions

    def prepare(self) -> None:
        super().prepare()
        chosen = self.options
        self._pose = None if chosen.pose is None else open_pose(Path(chosen.pose))
        self._marked = marked_regions({"head": chosen.head, "chest": chosen.chest})
        self._examples = None if chosen.demonstrations is None else Examples(Path(chosen.demonstrations), chosen.shots)
        self._rules = files(__package__).joinpath("prompts", self.folder, "rules.txt").read_text("utf-8").strip()

    def details(self) -> dict[str, JsonValue]:
        """How details are found, the rules by hash, and what is shown beside."""
        shown = self._examples
        return {
            "insets": self.options.insets,
            **({} if self._pose is None else self._pose.settings),
            **{name: region.model_dump(mode="json") for name, region in self._marked.items()},
            "rules_sha256": content_hash(self._rules),
            **({} if shown is None else {"demonstrations": shown.sha256, "shots": self.options.shots}),
        }

    async def find(self, task: OrderingTask) -> FoundOrder:
        item, frames, view = task.item, task.frames, task.view
        large = await view.originals() if self.options.insets and isinstance(view, ShowsOriginals) else []
        poses = await asyncio.to_thread(self._poses, item, frames, view.condition)
        looks = await asyncio.to_thread(self._looks, frames.frames, poses, large)
        described = await self._perceive(task.asking, frames.shown, looks)
        examples, passed_over = await self._shown(task)
        plan = await self._plan(task, described, examples)
        check = await self._check(task, described, plan)
        revised = _revises(check, plan, frames.labels)
        extra: dict[str, JsonValue] = {
            "described": {label: {**parts} for label, parts in described.items()},
            "insets": {
                label: [what or "stands out" for _, what in look.insets]
                for label, look in zip(frames.shown, looks, strict=True)
            },
            "plan": {"order": list(_said(plan.order, frames.labels)), "steps": _steps(plan)},
            "check": {"problems": _problems(check), "revised": revised},
            **({"demonstrations": [one.id for one in examples]} if self._examples is not None else {}),
            **({"passed_over": {**passed_over}} if passed_over else {}),
        }
        order = check.order if revised else plan.order
        rationale = check.rationale if revised and check.rationale else plan.rationale
        return FoundOrder(_said(order, frames.labels), rationale, extra)

    def _poses(self, item: Item, frames: KeyFrames, condition: str) -> list[Pose | None]:
        if self.options.insets and self._pose is not None and (self._pose.sees or condition == "video"):
            return [self._pose.look(frame.jpeg, f"{item.id}/{frame.label}") for frame in frames.frames]
        return [None] * len(frames.frames)

    def _looks(
        self, frames: Sequence[Frame], poses: Sequence[Pose | None], originals: Sequence[Frame] = ()
    ) -> list[SentPicture]:
        return sent_pictures(frames, poses, self._marked, insets=self.options.insets, originals=originals)

    async def _shown(self, task: OrderingTask) -> tuple[list[Example], Mapping[str, str]]:
        """Without a frame nothing is shown: what a blind run may not see, an example may tell."""
        if self._examples is None or not task.frames.frames:
            return [], {}

        async def describe(one: Demonstration) -> dict[str, dict[str, str]]:
            pictures = list(one.frames.values())
            pose = self._pose if self.options.insets and self._pose is not None and self._pose.sees else None
            poses = [None if pose is None else pose.look(picture.jpeg, "") for picture in pictures]
            looks = await asyncio.to_thread(self._looks, pictures, poses)
            return await self._perceive(task.asking, list(one.frames), looks)

        return await self._examples.of(task.item.id, task.frames.frames, describe)

    async def _perceive(
        self, asking: Asking, labels: Sequence[str], looks: Sequence[SentPicture]
    ) -> dict[str, dict[str, str]]:
        described = {}
        for label, look in zip(labels, looks, strict=True):
            said = await asking.ask(self.prompts["perceive"], Description, [look.frame], insets=look.insets)
            described[label] = said.parts()
        return described

    async def _plan(self, task: OrderingTask, described: Described, examples: Sequence[Example]) -> PlanReply:
        return await task.asking.ask(
            self.prompts["plan"],
            PlanReply,
            question=task.item.question,
            labels=task.frames.labels,
            unseen=task.frames.unseen,
            described=described,
            workflows=task.workflows,
            examples=examples,
            rules=self._rules,
        )

    async def _check(self, task: OrderingTask, described: Described, plan: PlanReply) -> CheckReply:
        labels = task.frames.labels
        return await task.asking.ask(
            self.prompts["check"],
            CheckReply,
            question=task.item.question,
            labels=labels,
            described=described,
            workflows=task.workflows,
            rules=self._rules,
            order=_said(plan.order, labels),
            steps=_steps(plan),
            rationale=clipped(plan.rationale, _MOST_REASON),
        )


def _said(order: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    return read_labels(order, labels).said


def _revises(check: CheckReply, plan: PlanReply, labels: Sequence[str]) -> bool:
    new = read_labels(check.order, labels)
    return check.revise and len(new.said) > 1 and (new.complete or not read_labels(plan.order, labels).complete)


def _steps(plan: PlanReply) -> list[JsonValue]:
    return [step.to_json() for step in plan.steps[:_MOST_STEPS]]


def _problems(check: CheckReply) -> list[JsonValue]:
    return [problem.to_json() for problem in check.problems[:_MOST_PROBLEMS]]

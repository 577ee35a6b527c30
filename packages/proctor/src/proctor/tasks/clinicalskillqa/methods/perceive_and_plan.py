"""`perceive-and-plan`: each picture is described on its own; an order is then planned from the descriptions alone."""

from __future__ import annotations

import asyncio
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from proctor.core import Frame, InputError, Region, content_hash, need_extra
from proctor.media import ShowsOriginals
from proctor.systems import Demonstration
from proctor.tasks.clinicalskillqa.keypoints import Pose
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    Aids,
    FoundOrder,
    KeyFrameMethod,
    LabelList,
    MethodOptions,
    OrderingTask,
    OrderReply,
    ReplyForm,
    clipped,
    read_labels,
)
from proctor.tasks.clinicalskillqa.methods.saliency import COLOURS, Detail, details_of, enlarged, saliency

Described = dict[str, dict[str, str]]
"""Of each picture, by label, what was described, part by part."""


@dataclass(frozen=True)
class Example:
    """A solved instance in the plan's prompt: each picture's description, the right order, and why."""

    id: str
    described: Described
    order: Sequence[str]
    rationale: str


Insets = bool | Literal["both"]
"""Whether details are enlarged; "both" adds salient regions to those of joints and marks."""


@dataclass(frozen=True)
class SentPicture:
    """One picture to send, without a label (a single picture needs none), and the details enlarged in it."""

    frame: Frame
    details: tuple[Detail, ...]

    @property
    def insets(self) -> list[tuple[str, str]]:
        """Colour and content ("" for a salient region) of each inset, in order."""
        return [(colour, detail.what) for colour, detail in zip(COLOURS, self.details, strict=False)]


def sent_pictures(
    frames: Sequence[Frame],
    poses: Sequence[Pose | None],
    marked: Mapping[str, Region],
    *,
    insets: Insets = True,
    originals: Sequence[Frame] = (),
) -> list[SentPicture]:
    """One picture for each frame; motion is measured across all frames. Details are cut from the `originals`, the same
    pictures before scaling, where there are any. Raises `InputError` for an unreadable picture, and for originals that
    are not those of the frames."""
    if not insets:
        return [SentPicture(Frame(frame.jpeg, frame.time, ""), ()) for frame in frames]
    if originals and [original.label for original in originals] != [one.label for one in frames]:
        given, expected = (", ".join(one.label for one in some) for some in (originals, frames))
        raise InputError("originals", found=given, expected=expected)
    sources: Sequence[bytes | None] = [original.jpeg for original in originals] or [None] * len(frames)
    pictures = []
    maps = saliency([frame.jpeg for frame in frames])
    for frame, pose, found, source in zip(frames, poses, maps, sources, strict=True):
        details = details_of(found, _aspect(frame.jpeg), pose, marked, both=insets == "both")
        pictures.append(SentPicture(Frame(enlarged(frame.jpeg, details, source), frame.time, ""), tuple(details)))
    return pictures


def _aspect(jpeg: bytes) -> float:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        return opened.width / opened.height


_MAX_PART = 240
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
        """The parts that are not empty, under the names of the prompt, each cut to 240 characters."""
        parts = {title: clipped(str(getattr(self, name)), _MAX_PART) for name, title in _PARTS.items()}
        return {title: text for title, text in parts.items() if text}


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
        pictures: list[JsonValue] = [clipped(picture, 40) for picture in self.pictures[:12]]
        return {"rule": clipped(self.rule), "pictures": pictures, "evidence": clipped(self.evidence)}


class CheckReply(ReplyForm):
    """Whether the plan holds; where it does not, the order that does."""

    problems: list[Problem] = Field(default_factory=list, description="What is wrong with the plan; empty if nothing.")
    revise: bool = Field(description="Whether the order must change.")
    rationale: str = Field(default="", description="Why the changed order is right, picture by picture; else empty.")
    order: LabelList = Field(default_factory=list, description="The changed order, all labels; else empty.")


_MAX_STEPS = 26
_MAX_PROBLEMS = 12
_MAX_RATIONALE = 4000  # characters of the plan's rationale in the check's prompt


class PerceiveAndPlanOptions(MethodOptions):
    """`insets`: whether details are enlarged ("both": salient regions beside head and chest). `pose`: a network or a file
    of keypoints that locates head and chest; `head` and `chest`: marked regions instead (x,y,width,height in fractions).
    `demonstrations`: a file or folder of solved instances, of which the plan's prompt shows `shots`."""

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
    `proctor.tasks.clinicalskillqa.methods.saliency`), in one image and without its label; they are cut from the picture
    in its file's full size. Plan and check have the same rules. Under a condition that shows no frames it makes the 2
    calls without images.

    With `demonstrations` the plan's prompt begins with solved instances, never the item itself. Their pictures are
    described in the same way, once a run: one call and one image for each, counted in the answer that needs them first.

    The check may revise the order once. Its order counts where it asks for the revision and names every label once, or
    where the plan does not name every label either. A file of keypoints is used under the condition `video` only.

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
        if chosen.insets:
            need_extra("vision", f"{self.method} with insets", "cv2")
        marks = {"head": chosen.head, "chest": chosen.chest}
        self._aids = Aids(chosen.pose, marks, chosen.demonstrations, chosen.shots)
        self._rules = files(__package__).joinpath("prompts", self.folder, "rules.txt").read_text("utf-8").strip()
        self._examples: dict[str, Example] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def details(self) -> dict[str, JsonValue]:
        """How details are found, the hash of the rules, and what the prompts show beside."""
        return {"insets": self.options.insets, **self._aids.settings, "rules_sha256": content_hash(self._rules)}

    async def find(self, task: OrderingTask) -> FoundOrder:
        frames, view = task.frames, task.view
        originals = await view.originals() if self.options.insets and isinstance(view, ShowsOriginals) else []
        pictures = await asyncio.to_thread(self._pictures, task, originals)
        described = await self._describe(task, frames.shown, pictures)
        examples, passed_over = await self._examples_for(task)
        plan = await self._plan(task, described, examples)
        check = await self._check(task, described, plan)
        revised = _revises(check, plan, frames.labels)
        steps: list[JsonValue] = [step.to_json() for step in plan.steps[:_MAX_STEPS]]
        problems: list[JsonValue] = [problem.to_json() for problem in check.problems[:_MAX_PROBLEMS]]
        extra: dict[str, JsonValue] = {
            "described": {label: {**parts} for label, parts in described.items()},
            "insets": {
                label: [what or "stands out" for _, what in picture.insets]
                for label, picture in zip(frames.shown, pictures, strict=True)
            },
            "plan": {"order": [*read_labels(plan.order, frames.labels).labels], "steps": steps},
            "check": {"problems": problems, "revised": revised},
            **(
                {"demonstrations": [example.id for example in examples]}
                if self._aids.demonstrations is not None
                else {}
            ),
            **({"passed_over": {**passed_over}} if passed_over else {}),
        }
        order = check.order if revised else plan.order
        rationale = check.rationale if revised and check.rationale else plan.rationale
        return FoundOrder(read_labels(order, frames.labels).labels, rationale, extra)

    def _pictures(self, task: OrderingTask, originals: Sequence[Frame]) -> list[SentPicture]:
        frames, insets = task.frames.frames, self.options.insets
        poses = self._aids.poses(task.item, frames, task.view.condition) if insets else {}
        seen = [poses.get(frame.label) for frame in frames]
        return sent_pictures(frames, seen, self._aids.marked, insets=insets, originals=originals)

    async def _describe(self, task: OrderingTask, labels: Sequence[str], pictures: Sequence[SentPicture]) -> Described:
        described = {}
        for label, picture in zip(labels, pictures, strict=True):
            reply = await task.model.ask(self.prompts["perceive"], Description, [picture.frame], insets=picture.insets)
            described[label] = reply.parts()
        return described

    async def _examples_for(self, task: OrderingTask) -> tuple[list[Example], Mapping[str, str]]:
        """The examples for an item, and the instances that were passed over with the reason."""
        picked = await asyncio.to_thread(self._aids.picked, task.item, task.frames.frames)
        return [await self._example(task, demonstration) for demonstration in picked.shown], picked.passed_over

    async def _example(self, task: OrderingTask, demonstration: Demonstration) -> Example:
        """The item that needs an instance first asks for its descriptions; all others reuse them."""
        async with self._locks[demonstration.id]:
            if demonstration.id not in self._examples:
                pictures = await asyncio.to_thread(self._example_pictures, list(demonstration.frames.values()))
                described = await self._describe(task, list(demonstration.frames), pictures)
                self._examples[demonstration.id] = Example(
                    demonstration.id, described, demonstration.order, demonstration.rationale.strip()
                )
        return self._examples[demonstration.id]

    def _example_pictures(self, frames: Sequence[Frame]) -> list[SentPicture]:
        pose, insets = self._aids.pose, self.options.insets
        poses = [pose.look(frame.jpeg, "") if insets and pose is not None and pose.sees else None for frame in frames]
        return sent_pictures(frames, poses, self._aids.marked, insets=insets)

    async def _plan(self, task: OrderingTask, described: Described, examples: Sequence[Example]) -> PlanReply:
        return await task.model.ask(
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
        return await task.model.ask(
            self.prompts["check"],
            CheckReply,
            question=task.item.question,
            labels=labels,
            described=described,
            workflows=task.workflows,
            rules=self._rules,
            order=read_labels(plan.order, labels).labels,
            steps=[step.to_json() for step in plan.steps[:_MAX_STEPS]],
            rationale=clipped(plan.rationale, _MAX_RATIONALE),
        )


def _revises(check: CheckReply, plan: PlanReply, labels: Sequence[str]) -> bool:
    new = read_labels(check.order, labels)
    return check.revise and len(new.labels) > 1 and (new.complete or not read_labels(plan.order, labels).complete)

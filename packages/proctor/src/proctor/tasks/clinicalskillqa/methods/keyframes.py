"""What the methods that order key frames with a model share: labels, frames, replies, the answer, and the base class."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from proctor.core import Answer, Frame, InputError, Item, ParseError, ProctorError, Usage, View
from proctor.core.formats import OrderingFormat
from proctor.models import ModelClient, Part, Prompt, load_prompt
from proctor.systems import NO_OPTIONS, Demonstrations, Picked, SystemOptions, format_value, only_model, read_options
from proctor.tasks.clinicalskillqa.keypoints import Pose, open_pose
from proctor.tasks.clinicalskillqa.methods.workflow import Workflow, WorkflowChoice
from proctor.tasks.clinicalskillqa.pose import marked_regions

_ENDING = re.compile(r"\.(?:jpe?g|png|webp|bmp|gif|tiff?)$", re.IGNORECASE)
_WORD = re.compile(r"^(?:key[ _-]?frame|frame|image|picture|photo|img|pic|label)[ _:#-]*", re.IGNORECASE)
_AROUND = " \t\n.,;:!?*_`'\"()[]{}<>"


@dataclass(frozen=True, slots=True)
class LabelReading:
    """The labels in a reply. `labels` are all of them in their order, known labels in their own spelling; `known` has each
    known label once, at its first position; `missing`, `repeated` and `unknown` are the faults."""

    labels: tuple[str, ...]
    known: tuple[str, ...]
    missing: tuple[str, ...]
    repeated: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether it has every label once, and nothing else."""
        return not (self.missing or self.repeated or self.unknown)

    def faults(self) -> dict[str, JsonValue]:
        """The faults for an answer's `extra`; empty where there are none."""
        faults = {"missing": self.missing, "repeated": self.repeated, "unknown": self.unknown}
        return {name: list(labels) for name, labels in faults.items() if labels}


def read_labels(names: Iterable[str], labels: Sequence[str]) -> LabelReading:
    """Reads names as labels. Only the spelling is corrected: no label is added, guessed or moved.

    >>> read_labels(["b", "A.jpg", "Frame B", "7"], ["A", "B", "C"])
    LabelReading(labels=('B', 'A', 'B', '7'), known=('B', 'A'), missing=('C',), repeated=('B',), unknown=('7',))
    """
    known_by = {label.casefold(): label for label in labels}
    stated = tuple(_label(name, labels, known_by) for name in names)
    known = tuple(dict.fromkeys(label for label in stated if label in labels))
    return LabelReading(
        labels=stated,
        known=known,
        missing=tuple(label for label in labels if label not in known),
        repeated=tuple(label for label in known if stated.count(label) > 1),
        unknown=tuple(dict.fromkeys(label for label in stated if label not in labels)),
    )


def spelled(names: Iterable[str]) -> list[str]:
    """Names of facts, steps or procedures as a workflow spells them, each once.

    >>> spelled([" Pads_On", "pads_on", "hands on chest"])
    ['pads_on', 'hands_on_chest']
    """
    return list(dict.fromkeys("_".join(name.casefold().replace("-", " ").split()) for name in names))


def workflow_named(procedure: str, workflows: Sequence[Workflow]) -> Workflow | None:
    """The only workflow, else the one that a model named; None where it named none."""
    if len(workflows) == 1:
        return workflows[0]
    return next((workflow for workflow in workflows if workflow.name in spelled([procedure])), None)


def _label(name: str, labels: Sequence[str], known_by: dict[str, str]) -> str:
    if name in labels:
        return name
    plain = _ENDING.sub("", re.split(r"[/\\]", name.strip(_AROUND))[-1]).strip(_AROUND)
    for form in (plain, _WORD.sub("", plain).strip(_AROUND)):
        if form.casefold() in known_by:
            return known_by[form.casefold()]
    return " ".join(name.split())[:40]


@dataclass(frozen=True)
class KeyFrames:
    """The labels to put in order, and the frames that the view shows: all of them, some, or none (text-only)."""

    labels: tuple[str, ...]
    frames: tuple[Frame, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """The labels of the frames, in the order in which they are given."""
        return tuple(frame.label for frame in self.frames)

    @property
    def unseen(self) -> tuple[str, ...]:
        """The labels without a frame."""
        return tuple(label for label in self.labels if label not in self.shown)

    def captioned(self, labels: Sequence[str] | None = None) -> list[Frame]:
        """The frames with these labels (default: all), each with the caption "Picture A".

        >>> KeyFrames(("A", "B"), (Frame(b"", None, "A"), Frame(b"", None, "B"))).captioned(["B"])[0].label
        'Picture B'
        """
        known = {frame.label: frame for frame in self.frames}
        return [replace(known[label], label=f"Picture {label}") for label in (self.shown if labels is None else labels)]


def ordering_labels(item: Item) -> tuple[str, ...]:
    """The labels to put in order. Raises `ValueError` for another format."""
    if not isinstance(item.answer, OrderingFormat):
        raise ValueError(f"an answer of the format {item.answer.kind} has no order")
    return item.answer.labels


async def key_frames(item: Item, view: View) -> KeyFrames:
    """The frames of an item. Raises `ValueError` for another format, and `InputError` for a frame whose label is unknown
    or repeated."""
    labels = ordering_labels(item)
    frames = await view.frames()
    found = [frame.label for frame in frames]
    wrong = next(
        (label for position, label in enumerate(found) if label not in labels or label in found[:position]), None
    )
    if wrong is not None:
        what = "twice" if wrong in labels else "that the answer does not know"
        expected = f"{', '.join(labels)}, each at most once"
        raise InputError(f"item {item.id!r}", found=f"a picture labelled {wrong!r} {what}", expected=expected)
    return KeyFrames(labels, tuple(frames))


def _listed(value: object) -> object:
    """`D > B > A` (also joined by commas, arrows or spaces) as a list; also where it is a list's only entry."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return [label for label in re.split(r"\s*(?:->|[>→,;])\s*|\s+", value.strip()) if label]
    return value


LabelList = Annotated[list[str], BeforeValidator(_listed)]
"""An order of labels, as a list or as one text."""


class ReplyForm(BaseModel):
    """The base class of structured replies; further fields of a reply are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, str_strip_whitespace=True)


class OrderReply(ReplyForm):
    """The pictures in the order in which they were taken, and why."""

    rationale: str = Field(description="Why the order is this one: for each picture what is seen and done.")
    order: LabelList = Field(description="The labels of all pictures, each once, from first to last.")


T = TypeVar("T", bound=BaseModel)


class CountedModel:
    """A model during one answer. `usage` is the sum of all requests, `calls` the number of questions (retries of an
    unparseable reply count as one call), `images` the number of pictures in them.

    Make one call at a time: an answer's stopwatch can't separate overlapping calls.
    """

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self.usage = Usage()
        self.calls = 0
        self.images = 0

    async def ask(self, prompt: Prompt, schema: type[T], shown: Sequence[Part] = (), /, **values: object) -> T:
        """Sends the pictures, then the prompt with its values; returns the reply in its schema.

        Raises `InfrastructureError` (no reply, or none that fits the schema), `RefusalError`, `ConfigurationError`.
        """
        system, user = prompt.render(**values)
        self.calls += 1
        self.images += sum(isinstance(part, Frame) for part in shown)
        try:
            reply = await self._client.ask([*shown, user], system=system, schema=schema)
        except ProctorError as error:
            self.usage += error.usage or Usage()
            error.usage = self.usage  # that of the answer, if this error ends it
            raise
        self.usage += reply.usage
        return reply.value


MOST_RATIONALE = 8000
"""Characters of a rationale; what is longer is cut, and ends with "…"."""


def clipped(text: str, max_chars: int = 300) -> str:
    """The text on one line, cut to a length.

    >>> clipped("hands  on\\nthe chest", 8)
    'hands o…'
    """
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"


def in_turn(order: Sequence[str], seen: Mapping[str, str], steps: Mapping[str, str]) -> str:
    """A rationale made from notes: for each label in turn what is seen, and which step that is.

    >>> in_turn(["B", "A"], {"B": "Hands on the chest.", "A": ""}, {"B": "compressions"})
    'First B: Hands on the chest (compressions). Then A: nothing was noted.'
    """
    turns = []
    for position, label in enumerate(order):
        words, step = seen.get(label, "").strip().rstrip("."), steps.get(label, "")
        shown = f"{words} ({step})" if words and step else words or step or "nothing was noted"
        turns.append(f"{'Then' if position else 'First'} {label}: {shown}.")
    return " ".join(turns)


def order_answer(
    item: Item, order: Sequence[str], *, rationale: str, usage: Usage, extra: Mapping[str, JsonValue]
) -> Answer:
    """The answer that states `order` as it is, with its missing, repeated and unknown labels.

    `extra["rationale"]` is the rationale, as in recorded predictions ("" where there is none), `extra["labels"]` the
    faults of the order. An order of fewer than two labels is none: `parsed` is None, and `problem` says so.
    """
    faults = read_labels(order, ordering_labels(item)).faults()
    kept = rationale.strip()
    kept = kept if len(kept) <= MOST_RATIONALE else kept[: MOST_RATIONALE - 1] + "…"
    more: dict[str, JsonValue] = {"rationale": kept, **({"labels": faults} if faults else {}), **extra}
    text, parsed, problem = _stated(item, list(order))
    return Answer(item_id=item.id, text=text, parsed=parsed, problem=problem, usage=usage, extra=more)


def _stated(item: Item, order: list[str]) -> tuple[str, JsonValue, str]:
    """Text, value, and why there is no value. An order that the format would not read back the same is written as JSON."""
    value: JsonValue = [*order]
    text, listed = format_value(item.answer, value), json.dumps(order, ensure_ascii=False)
    problem = ""
    for form in (text, listed):
        try:
            parsed = item.answer.parse(form)
        except ParseError as error:
            problem = problem or str(error)
            continue
        if form == listed or parsed == value:
            return form, value, ""
    return text, None, problem


class Aids:
    """What a method may use beside the frames: poses, marked regions, and solved instances as demonstrations.

    `pose` is a network or a file of keypoints; `marks` are regions by name (x,y,width,height in fractions); of the file
    or folder `demonstrations`, `shots` instances are shown.
    """

    def __init__(
        self, pose: str | None, marks: Mapping[str, str | None], demonstrations: str | None, shots: int
    ) -> None:
        self.pose = None if pose is None else open_pose(Path(pose))
        self.marked = marked_regions(marks)
        self.demonstrations = None if demonstrations is None else Demonstrations(Path(demonstrations))
        self.shots = shots

    @property
    def settings(self) -> dict[str, JsonValue]:
        shown = self.demonstrations
        return {
            **({} if self.pose is None else self.pose.settings),
            **{name: region.model_dump(mode="json") for name, region in self.marked.items()},
            **({} if shown is None else {"demonstrations": shown.sha256, "shots": self.shots}),
        }

    def poses(self, item: Item, frames: Sequence[Frame], condition: str) -> dict[str, Pose]:
        """The pose in each frame by label; empty without a source.

        A file of keypoints is used under the condition `video` only: it would tell a blind run what it may not see.
        """
        if self.pose is None or not (self.pose.sees or condition == "video"):
            return {}
        return {frame.label: self.pose.look(frame.jpeg, f"{item.id}/{frame.label}") for frame in frames}

    def picked(self, item: Item, frames: Sequence[Frame]) -> Picked:
        """The demonstrations for an item; none where no frame is shown, since they might tell a blind run something."""
        if self.demonstrations is None or not frames:
            return Picked((), {})
        return self.demonstrations.pick(item.id, frames, self.shots)


class MethodOptions(SystemOptions):
    """Options of every method: `scenario` (cpr, aed, bmv) or `workflow` (a file) names the procedure."""

    scenario: str | None = None
    workflow: str | None = None


@dataclass(frozen=True)
class OrderingTask:
    """One item for a method: its key frames, the candidate workflows, the view, and the model to ask."""

    item: Item
    frames: KeyFrames
    workflows: tuple[Workflow, ...]
    view: View
    model: CountedModel


@dataclass(frozen=True)
class FoundOrder:
    """The order that a method found, its rationale, and further fields of the answer's `extra`."""

    order: Sequence[str]
    rationale: str
    extra: Mapping[str, JsonValue]


class KeyFrameMethod(ABC):
    """A published method that orders key frames with one model.

    A subclass implements `find` and declares `method` (its name), `version` (raised whenever the same replies may give
    another answer; prompts have their own hashes), its prompts (`files` in `prompts/FOLDER`), and `form`, the schema of
    its options.
    """

    method: ClassVar[str]
    version: ClassVar[str]
    folder: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    form: ClassVar[type[MethodOptions]] = MethodOptions

    def __init__(
        self, models: Sequence[ModelClient], options: Mapping[str, JsonValue] = NO_OPTIONS, seed: int = 0
    ) -> None:
        self.client = only_model(self.method, models)
        self.options = read_options(self.method, self.form, options)
        self.seed = seed
        prompts = Path(__file__).with_name("prompts") / self.folder
        self.prompts: dict[str, Prompt] = {name: load_prompt(prompts / f"{name}.txt.j2") for name in self.files}
        self.prepare()

    def prepare(self) -> None:
        """Opens the files that the options name, before any call."""
        self.workflows = WorkflowChoice(self.method, scenario=self.options.scenario, workflow=self.options.workflow)

    @property
    def name(self) -> str:
        """The method with its model: another model is another system."""
        return f"{self.method}[{self.client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model, the hashes of prompts and workflows, and whatever else changes the answers."""
        return {
            **self.client.settings,
            **self.workflows.settings,
            "version": self.version,
            "prompts_sha256": {name: prompt.sha256 for name, prompt in self.prompts.items()},
            **self.details(),
        }

    def details(self) -> dict[str, JsonValue]:
        """Settings of this method only."""
        return {}

    def supports(self, item: Item) -> bool:
        return isinstance(item.answer, OrderingFormat)

    async def answer(self, item: Item, view: View) -> Answer:
        """Raises `InfrastructureError` and `RefusalError` where a call ends so, `InputError` for a picture that can't
        be used, `ValueError` for another format."""
        frames, model = await key_frames(item, view), CountedModel(self.client)
        found = await self.find(OrderingTask(item, frames, self.workflows.of(item.question), view, model))
        extra = {**found.extra, "calls": model.calls, "images": model.images}
        return order_answer(item, found.order, rationale=found.rationale, usage=model.usage, extra=extra)

    @abstractmethod
    async def find(self, task: OrderingTask) -> FoundOrder:
        """The method's steps."""

"""A scripted model that is shown key frames: it knows when each was taken, and is as good as it is told to be."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from PIL import Image
from pydantic import JsonValue

from proctor.core import Answer, Benchmark, Item, generator
from proctor.media import MediaLibrary, view
from proctor.models import ModelClient, ModelSpec
from proctor.runs import ask
from proctor.systems import build_system
from proctor.tasks.clinicalskillqa import READER
from proctor.tasks.clinicalskillqa.instances import InstancePlan, build_instances
from proctor.tasks.clinicalskillqa.methods.workflow import Workflow, built_in
from proctor.tasks.simulated import simulate
from tests.support.faulty_server import FaultyServer, Request

STEPS = ("check_scene", "check_response", "check_breathing", "bare_chest", "compress", "check_again")
"""Steps of the workflow `cpr` that come strictly one after the other: the frames of an instance show them in turn."""


@dataclass(frozen=True)
class Instances:
    """Simulated instances, with the location in time of every picture, by its hash."""

    benchmark: Benchmark
    library: MediaLibrary
    positions: Mapping[str, int]

    @property
    def items(self) -> list[Item]:
        """All of them."""
        return list(self.benchmark.items)

    def only(self, *items: Item) -> Instances:
        """The same with these items alone, which may be changed ones."""
        return replace(self, benchmark=replace(self.benchmark, items=items))

    def first(self, frames: int) -> Instances:
        """The first instance of this many frames."""
        return self.only(next(item for item in self.items if item.tags["frames"] == frames))

    def right(self, answers: Sequence[Answer]) -> float:
        """Task accuracy."""
        keys = [item.reference.answer for item in self.items if item.reference is not None]
        return sum(answer.parsed == key for answer, key in zip(answers, keys, strict=True)) / len(keys)


@dataclass(frozen=True)
class Sent:
    """What a request asks for: the form's name ("" where none), and the pictures by what stands before each."""

    form: str
    pictures: tuple[tuple[str, str], ...]
    text: str


def made_instances(
    folder: Path, *, videos: int = 5, frames: tuple[int, ...] = (4, 6), scenario: str | None = "CPR"
) -> Instances:
    """Instances of simulated videos, one of each number of frames a video."""
    source = simulate(
        folder / "simulated", videos=videos, seconds=12, fps=5, size=(256, 144), seed=5, questions_per_video=1
    )
    plan = InstancePlan(frames=frames, per_video=1, seconds=2.0, seed=1, scenario=scenario)  # type: ignore[arg-type]
    build_instances(source / "videos", folder / "task", plan, cache=folder / "cache")
    benchmark = READER.load(folder / "task")
    library = MediaLibrary(benchmark.media_root, cache_dir=folder / "cache")
    locations: dict[str, int] = {}
    items = []
    for item in benchmark.items:
        assert item.reference is not None
        order = item.reference.answer
        assert isinstance(order, list)
        seen = asyncio.run(view(item, "video", library).frames())
        own = {hashlib.sha256(frame.jpeg).hexdigest(): order.index(frame.label) for frame in seen}
        if own.keys().isdisjoint(locations):  # a moment may be in two instances, at different positions
            locations |= own
            items.append(item)
    assert {item.tags["frames"] for item in items} == set(frames)
    return Instances(replace(benchmark, items=tuple(items)), library, locations)


def sent(request: Request) -> Sent:
    """Reads a request."""
    form = request.body.get("response_format", {}).get("json_schema", {}).get("name", "")
    pictures: list[tuple[str, str]] = []
    before, text = "", ""
    for message in request.body["messages"]:
        content = message["content"]
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            if part["type"] == "text":
                before = text = part["text"]
            else:
                jpeg = base64.b64decode(part["image_url"]["url"].partition(",")[2])
                pictures.append((before.removeprefix("Picture "), hashlib.sha256(jpeg).hexdigest()))
    return Sent(form, tuple(pictures), text)


@dataclass
class KeyFrameModel:
    """The script: `positions` is the truth.

    `order` changes what it says in an order (the good model leaves it), `step` the step that it sees at a position,
    `earlier` which of two it names, `certain` whether it is sure. `reply` overrules everything for a form.
    """

    positions: Mapping[str, int]
    workflow: Workflow = field(default_factory=lambda: built_in("cpr"))
    order: Callable[[list[str]], list[str]] = lambda order: order
    step: Callable[[int], str | None] = lambda position: STEPS[position]
    earlier: Callable[[str, str], str] = lambda earlier, _: earlier
    certain: bool = True
    reply: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, request: Request) -> str:
        asked = sent(request)
        said = self.reply.get(asked.form)
        if callable(said):
            return str(said(asked))
        if not asked.form and said is None:
            return f"Answer: {' > '.join(self.order(self._in_time(asked)))}"
        return json.dumps(said if said is not None else self._good(asked))

    def _good(self, asked: Sent) -> dict[str, Any]:
        labels = self._in_time(asked)
        if asked.form in {"OverviewReply", "ProcedureReply"}:
            return {"summary": "a rescuer and a patient", "procedure": self.workflow.name, "order": self.order(labels)}
        if asked.form == "OrderReply":
            return {"rationale": "first " + ", then ".join(labels), "order": self.order(labels)}
        if asked.form in {"PairReply", "VoteReply"}:
            return {
                "change": "what changed",
                "reason": f"picture {labels[0]} is the earlier one",
                "earlier": self.earlier(labels[0], labels[1]),
                "certain": self.certain,
            }
        return self._frame(self.step(self.positions[asked.pictures[0][1]]))

    def _in_time(self, asked: Sent) -> list[str]:
        seen = dict(asked.pictures)
        return sorted(seen, key=lambda label: self.positions[seen[label]])

    def _frame(self, name: str | None) -> dict[str, Any]:
        step = self.workflow.step(name)
        lasting = {
            fact: lasts.since == name or self.workflow.precedes(lasts.since, name or "")
            for fact, known in self.workflow.facts.items()
            if (lasts := known.lasts) is not None
        }
        shown = [*(step.shown_by if step else ()), *(fact for fact, so in lasting.items() if so)]
        return {
            "seen": f"the rescuer does {name}",
            "step": name or "none",
            "certain": self.certain,
            "true_facts": shown,
            "false_facts": [fact for fact, so in lasting.items() if not so] if step else [],
        }


def run_method(
    name: str,
    instances: Instances,
    server: FaultyServer,
    *,
    condition: str = "video",
    models: Sequence[str] = ("openai:m",),
    **options: JsonValue,
) -> list[Answer]:
    """The answers of a method to all instances, as the engine records them."""

    async def run() -> list[Answer]:
        clients = [
            ModelClient(ModelSpec(name=model, base_url=server.url, backoff_s=0.001, retries=2, timeout_s=600.0))
            for model in models
        ]
        try:
            system = build_system(name, clients, seed=0, options=options)
            return [
                await ask(system, item, lambda one: view(one, condition, instances.library)) for item in instances.items
            ]
        finally:
            for client in clients:
                await client.aclose()

    return asyncio.run(run())


def only(instances: Instances, frames: int) -> Instances:
    item = next(item for item in instances.items if item.tags["frames"] == frames)
    benchmark = type(instances.benchmark)(**{**vars(instances.benchmark), "items": (item,)})
    return Instances(benchmark, instances.library, instances.positions)


def keys(instances: Instances) -> list[Any]:
    return [item.reference.answer for item in instances.items if item.reference is not None]


class AskedModel(KeyFrameModel):
    """A good model that looks at the pictures of the question, and not at the examples before it."""

    def __call__(self, request: Request) -> str:
        asked = sent(request)
        mine = [(name, digest) for name, digest in asked.pictures if not name.startswith("Example")]
        said = self.order(sorted((name for name, _ in mine), key=lambda name: self.positions[dict(mine)[name]]))
        return json.dumps({"rationale": f"{said[0]} shows it first, then {said[1].lower()}.", "order": said})


def solved(folder: Path, ids: Sequence[str], start: int = 0) -> Path:
    """A file of solved instances with pictures of their own."""
    folder.mkdir(exist_ok=True)
    rows = []
    for number, one in enumerate(ids):
        frames = {}
        for row, label in enumerate("ABC"):
            name = f"{one}{label}.png"
            noise = generator(start + 10 * number + row, "demonstration").integers(0, 255, (24, 32, 3), "uint8")
            Image.fromarray(noise).resize((320, 240), Image.Resampling.NEAREST).save(folder / name)
            frames[label] = name
        rows.append(
            {"id": one, "frames": frames, "order": ["C", "A", "B"], "rationale": f"Frame A of {one} is second."}
        )
    (folder / "solved.json").write_text(json.dumps(rows))
    return folder / "solved.json"

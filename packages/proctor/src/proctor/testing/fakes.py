"""Doubles for tests: a model without a network, a view of given pictures, a short video, and judgements in memory."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, JsonValue

from proctor.core import (
    Answer,
    Criterion,
    Frame,
    Item,
    Judgement,
    ProctorError,
    Reference,
    SystemFaultError,
    VideoClip,
    whole_file,
)
from proctor.core.formats import EVERY_KIND, AnswerFormat, format_of_kind
from proctor.models import ModelClient, ModelSpec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class ScriptedRequest:
    """A request to a `ScriptedModel`: the user's `text` and the `system` message, each joined by lines, the number of
    `pictures` (and of sounds and videos), the JSON schema of the `form` that the reply is to have (None: any text), and
    the names of the `tools` that it may call, of which the last one takes the reply of an agent."""

    text: str
    system: str
    pictures: int
    form: Mapping[str, Any] | None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScriptedCall:
    """The call of an agent's tool, as a reply."""

    tool: str
    arguments: Mapping[str, JsonValue]


Scripted = str | BaseModel | ScriptedCall | Exception
"""What a script says: a text, a value that is sent as JSON, the call of a tool, or an exception that the client
raises."""


class ScriptedModel(ModelClient):
    """A model without a network, for every system and judge that takes a `ModelClient`.

    `replies` is what it says: one reply to every request; a list, one after the other (a request after the last one is a
    `SystemFaultError`); or a function of the `ScriptedRequest`. Without `replies` it says something valid: the smallest
    value of the requested form, and else "Scripted reply.". Everything else is that of a `ModelClient`: forms are read as
    from a server, a text that is no value of the form is asked for again up to 3 times, and each request counts its
    tokens. A `ProctorError` in the script is raised as it stands, and no request is retried.

    `requests` are all requests, in order. For tests of what is stopped: while `hold` is an event that is not set, replies
    wait, and `asked` is set at the first request.

    >>> class Verdict(BaseModel):
    ...     same: bool
    >>> model = ScriptedModel(Verdict(same=True))
    >>> asyncio.run(model.ask(["Do these say the same?"], schema=Verdict)).value.same
    True
    >>> [request.text for request in model.requests]
    ['Do these say the same?']
    """

    def __init__(
        self,
        replies: Scripted | Sequence[Scripted] | Callable[[ScriptedRequest], Scripted] | None = None,
        *,
        name: str = "scripted:model",
        settings: Mapping[str, JsonValue] | None = None,
    ) -> None:
        from pydantic_ai.models.function import FunctionModel

        spec = ModelSpec(name=name, retries=0, backoff_s=0, settings=dict(settings or {}))
        super().__init__(spec, model=FunctionModel(self._replied, model_name=name))
        self.requests: list[ScriptedRequest] = []
        self.hold: asyncio.Event | None = None
        self.asked = asyncio.Event()
        self._script = replies

    async def _replied(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        request = _read(messages, info)
        number = len(self.requests)
        self.requests.append(request)
        self.asked.set()
        if self.hold is not None:
            await self.hold.wait()
        said = self._said(request, number)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, ScriptedCall):
            return ModelResponse(parts=[ToolCallPart(said.tool, dict(said.arguments))], finish_reason="stop")
        text = said.model_dump_json() if isinstance(said, BaseModel) else said
        return ModelResponse(parts=[TextPart(text)], finish_reason="stop")

    def _said(self, request: ScriptedRequest, number: int) -> Scripted:
        script = self._script
        if script is None and request.form is not None:
            value = smallest_value(request.form)
            return ScriptedCall(request.tools[-1], value) if request.tools else json.dumps(value)
        if script is None:
            return "Scripted reply."
        if isinstance(script, str | BaseModel | ScriptedCall | Exception):
            return script
        if isinstance(script, Sequence):
            if number >= len(script):
                return SystemFaultError(f"{self.name}: found request {number + 1}, expected at most {len(script)}")
            return script[number]
        return script(request)


def _read(messages: Sequence[ModelMessage], info: AgentInfo) -> ScriptedRequest:
    from pydantic_ai.messages import BinaryContent, SystemPromptPart, UserPromptPart

    texts: list[str] = []
    system: list[str] = []
    pictures = 0
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, SystemPromptPart):
            system.append(str(part.content))
        elif isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            texts += [one for one in content if isinstance(one, str)]
            pictures += sum(isinstance(one, BinaryContent) for one in content)
    output = info.model_request_parameters.output_object
    form = None if output is None else output.json_schema
    if info.output_tools:
        form = info.output_tools[0].parameters_json_schema
    tools = tuple(tool.name for tool in (*info.function_tools, *info.output_tools))
    return ScriptedRequest("\n".join(texts), "\n".join(system), pictures, form, tools)


def smallest_value(schema: Mapping[str, Any]) -> Any:
    """A value of a JSON schema, such as that of a pydantic model: the first choice of an enumeration, the least number, as
    few entries as are allowed, all properties of an object.

    >>> smallest_value({"type": "object", "properties": {"level": {"type": "integer", "minimum": 1}}})
    {'level': 1}
    """
    return _smallest(schema, schema.get("$defs", {}))


def _smallest(schema: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _smallest(known[str(schema["$ref"]).rpartition("/")[2]], known)
    if (
        choice := next((schema[name][0] for name in ("anyOf", "oneOf", "allOf") if schema.get(name)), None)
    ) is not None:
        return _smallest(choice, known)
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _smallest(part, known) for name, part in schema.get("properties", {}).items()}
        case "array":
            return _few(schema, known)
        case "integer" | "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
            return min(low, schema.get("maximum", low))
        case "string":
            return "text".ljust(int(schema.get("minLength", 0)), "x")
        case kind:
            return True if kind == "boolean" else None


def _few(schema: Mapping[str, Any], known: Mapping[str, Any]) -> list[Any]:
    """As few entries as are allowed, different ones where they are from an enumeration."""
    items = schema.get("items") or {}
    if isinstance(items, Mapping) and "$ref" in items:
        items = known[str(items["$ref"]).rpartition("/")[2]]
    parts = [_smallest(part, known) for part in schema.get("prefixItems", [])]
    count = int(schema.get("minItems", 0)) - len(parts)
    choices = items.get("enum") if isinstance(items, Mapping) else None
    if choices and count <= len(choices):
        return [*parts, *choices[: max(0, count)]]
    return [*parts, *(_smallest(items, known) for _ in range(max(0, count)))]


class MemoryJudgements:
    """A judgement cache in memory. As in a store, the first judgement under a key stays.

    >>> judgements = MemoryJudgements()
    >>> for judge in ("first", "second"):
    ...     judgements.put(Judgement(key="k", judge=judge, item_id="q1", reply={}))
    >>> [judgement.judge for judgement in judgements.kept.values()]
    ['first']
    """

    def __init__(self, *judgements: Judgement) -> None:
        self.kept = {judgement.key: judgement for judgement in judgements}

    def get(self, key: str) -> Judgement | None:
        """The judgement with this key, or None."""
        return self.kept.get(key)

    def put(self, judgement: Judgement) -> None:
        """Keep a judgement, unless there is one under its key."""
        self.kept.setdefault(judgement.key, judgement)


class PictureView:
    """A view of given pictures (see `view_of`). `asked` counts the calls of `frames`."""

    def __init__(self, frames: Sequence[Frame], condition: str, fault: Exception | None = None) -> None:
        self.condition = condition
        self.asked = 0
        self._frames = tuple(frames)
        self._fault = fault

    @property
    def span(self) -> tuple[float, float] | None:
        """The first and the last time; None for still images."""
        times = [frame.time for frame in self._frames if frame.time is not None]
        return (min(times), max(times)) if times else None

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        """Still images: all. Frames with times: those in `window`; of these, `count` evenly spaced ones, or those at each
        of `fps` moments a second. Raises the view's fault, if it has one."""
        self.asked += 1
        if self._fault is not None:
            raise self._fault
        if self.span is None:
            return list(self._frames)
        timed = [(frame, frame.time) for frame in self._frames if frame.time is not None]
        if window is not None:
            timed = [(frame, time) for frame, time in timed if window[0] <= time <= window[1]]
        if fps is not None and timed:
            timed = _at_rate(timed, fps)
        if count is not None and count < len(timed):
            timed = [timed[int((row + 0.5) * len(timed) / count)] for row in range(count)]
        return [frame for frame, _ in timed]


def _at_rate(timed: Sequence[tuple[Frame, float]], fps: float) -> list[tuple[Frame, float]]:
    kept = list(timed[:1])
    for frame, time in timed[1:]:
        if time >= kept[-1][1] + 1 / fps - 1e-9:
            kept.append((frame, time))
    return kept


def view_of(
    pictures: Sequence[bytes] = (), *, times: Sequence[float] | None = None, fault: Exception | None = None
) -> PictureView:
    """A view of JPEGs: still images "A", "B" …, or frames of a video at these `times` in seconds. Without pictures it is
    that of the condition `text-only`. With `fault`, asking for frames raises it.

    >>> [frame.label for frame in asyncio.run(view_of([picture(), picture()]).frames())]
    ['A', 'B']
    >>> view_of().condition, view_of([picture()], times=[2.5]).span
    ('text-only', (2.5, 2.5))
    """
    if times is None:
        frames = [Frame(jpeg, None, chr(ord("A") + row)) for row, jpeg in enumerate(pictures)]
    else:
        frames = [Frame(jpeg, time, f"t = {time:.1f} s") for jpeg, time in zip(pictures, times, strict=True)]
    return PictureView(frames, "video" if frames else "text-only", fault)


def picture(step: int = 0, *, size: tuple[int, int] = (64, 48)) -> bytes:
    """A JPEG: a bright bar on a dark ground, further to the right with each of 8 steps.

    >>> picture(0)[:2], picture(0) == picture(0), picture(0) == picture(1)
    (b'\\xff\\xd8', True, False)
    """
    from PIL import Image, ImageDraw

    drawn = Image.new("RGB", size, (20, 30, 40))
    left = size[0] * (step % 8) // 8
    ImageDraw.Draw(drawn).rectangle((left, 0, left + size[0] // 8, size[1]), fill=(200, 120, 40 + 20 * (step % 8)))
    out = io.BytesIO()
    drawn.save(out, "JPEG", quality=95)
    return out.getvalue()


def tiny_clip(file: Path, *, seconds: float = 2.0, fps: float = 4.0, first: int = 0) -> VideoClip:
    """Write a video (MP4, 64 × 48) of the pictures from step `first` on, and return it as a medium of its folder. Raises
    `InputError` if it can't be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tiny_clip(Path(folder) / "clip.mp4").source, (Path(folder) / "clip.mp4").is_file()
    ('clip.mp4', True)
    """
    from proctor.media import from_jpegs

    count = max(1, round(seconds * fps))
    with whole_file(file) as draft:
        draft.write_bytes(from_jpegs((row / fps, picture(first + row)) for row in range(count)))
    return VideoClip(source=file.name)


_OPTIONS = ("liver", "spleen", "left kidney", "aorta")
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "ordering": {"labels": ("A", "B", "C")},
    "classes": {"classes": ("clip", "sponge", "specimen bag")},
    "timestamps": {"tolerance": 2},
    "point": {"tolerance": 20},
    "quantity": {"unit": "mm", "tolerance": 2},
    "scale": {"labels": ("poor", "fair", "good", "very good", "excellent")},
    "pattern": {"pattern": "[1-4]/[1-4]"},
    "ratings": {"dimensions": ("accuracy", "safety")},
}
_CELLS = {
    "choice": "C",
    "choices": "A, C",
    "ordering": "C > A > B",
    "binary": "yes",
    "count": "3",
    "percentage": "40",
    "classes": "clip, sponge",
    "timestamps": "00:00:01",
    "intervals": "00:00:01-00:00:02",
    "boxes": "12, 8, 46, 30",
    "point": "51, 30",
    "quantity": "35",
    "short_text": "left kidney",
    "scale": "2",
    "preference": "B",
    "pattern": "2/3",
    "free_text": "The probe slides caudally over the left kidney.",
    "ratings": "accuracy: 0.5, safety: 1",
}


def example_items(formats: Sequence[str] = (), *, references: bool = True) -> list[Item]:
    """An item for each answer format, or for those named, with a reference, criteria for free text, and the tag
    `language`; without `references`, the same items with none. Half of them have one group, half the other.

    >>> [item.id for item in example_items(["binary", "free_text"])]
    ['example-binary', 'example-free_text']
    """
    return [_example(name, format_of_kind(name), references, row) for row, name in enumerate(formats or EVERY_KIND)]


def _example(name: str, kind: type[Any], references: bool, row: int) -> Item:
    answer: AnswerFormat = kind(**_SETTINGS.get(name, {}))
    options = _OPTIONS if name in {"choice", "choices"} else ()
    value = answer.from_cell(_CELLS[name], options)
    criteria = (Criterion(criterion="It names the organ.", points=1),) if name == "free_text" else ()
    return Item(
        id=f"example-{name}",
        group=f"group-{row % 2}",
        question=f"What is seen? (example of {name})",
        answer=answer,
        options=options,
        reference=Reference(answer=value, criteria=criteria) if references else None,
        tags={"language": "en"},
    )


def right_answer(item: Item) -> Answer:
    """The reference of an item as an answer, in the format's own words. Raises `ValueError` for an item without one.

    >>> right_answer(example_items(["binary"])[0]).parsed
    True
    """
    if item.reference is None or item.reference.answer is None:
        raise ValueError(f"item {item.id!r} has no reference")
    text = item.answer.write(item.reference.answer)
    return Answer(item_id=item.id, text=text, parsed=item.reference.answer)


def raising(error: ProctorError) -> Callable[[ScriptedRequest], Scripted]:
    """A script that raises an error for every request, a new one each time."""

    def script(request: ScriptedRequest) -> Scripted:
        del request
        return error.reworded(str(error))

    return script

"""A vision-language model of the `transformers` library: loaded once, asked in batches."""

from __future__ import annotations

import asyncio
import io
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from proctor.core import ConfigurationError, SystemFaultError, aside, pip_install
from proctor.models.faults import one_line
from proctor.models.prompts import template_ends

TICKS = 1000
"""A processor counts frames at a rate: at a number per second, every time has a number of its own."""


def video_metadata(seconds: tuple[float, ...]) -> dict[str, object]:
    """What a processor must know of sampled frames, or it invents their times: it takes index over rate.

    >>> known = video_metadata((0.0, 1.5, 4.0))
    >>> [index / known["fps"] for index in known["frames_indices"]], known["total_num_frames"]
    ([0.0, 1.5, 4.0], 4001)
    """
    indices = [round(time * TICKS) for time in seconds]
    count = max(indices, default=0) + 1
    return {"fps": float(TICKS), "frames_indices": indices, "total_num_frames": count, "duration": count / TICKS}


Message = dict[str, Any]


@dataclass(frozen=True)
class Choices:
    """How words are chosen: the likeliest one at temperature 0, else drawn with a seed."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clip:
    """A video as frames (JPEG), each at its time in seconds."""

    jpegs: tuple[bytes, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Query:
    """One question: what stands before it, and texts, pictures (JPEG) and clips in their order."""

    system: str
    parts: tuple[str | bytes | Clip, ...]
    choices: Choices

    @property
    def pictures(self) -> list[bytes]:
        """The pictures alone."""
        return [part for part in self.parts if isinstance(part, bytes)]

    @property
    def clips(self) -> list[Clip]:
        """The clips alone."""
        return [part for part in self.parts if isinstance(part, Clip)]


@dataclass(frozen=True)
class GeneratedText:
    """One reply; `cut_off` where the limit of tokens ended it."""

    text: str
    input_tokens: int
    output_tokens: int
    cut_off: bool


class Weights:
    """`where` is a folder or a model's id; an id is looked for in the library's cache, and fetched unless
    HF_HUB_OFFLINE=1. For one thread."""

    def __init__(self, name: str, where: str, device: str = "auto", dtype: str = "auto") -> None:
        self._name = name
        self._where = where
        self._device = device
        self._dtype = dtype
        self._model: Any = None
        self._processor: Any = None

    def load(self) -> None:
        """Loads it, the first time. Raises `ConfigurationError` that says what is missing."""
        if self._model is not None:
            return
        try:
            self._processor, self._model = self._loaded()
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(f"{self._name}: {_advice(error)}") from error

    def generate(self, queries: Sequence[Query], given_up: Callable[[], bool]) -> list[GeneratedText]:
        """The replies to questions with as many pictures each and the same choices. A batch that is too large
        for the memory is halved. Raises `SystemFaultError` where one question alone is too large."""
        import torch

        try:
            return self._generated(queries, given_up)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
        if len(queries) == 1:
            raise SystemFaultError(f"{self._name}: out of memory with {len(queries[0].pictures)} pictures")
        half = len(queries) // 2
        return self.generate(queries[:half], given_up) + self.generate(queries[half:], given_up)

    def _loaded(self) -> tuple[Any, Any]:
        import torch
        from transformers import AutoModelForImageTextToText, AutoProcessor
        from transformers.utils import logging

        logging.disable_progress_bar()
        processor = AutoProcessor.from_pretrained(self._where)
        if getattr(processor, "chat_template", None) is None:
            raise ValueError("its processor has no chat template: it is no model that can be asked")
        templates = processor.chat_template
        for template in templates.values() if isinstance(templates, dict) else [templates]:
            if not template_ends(str(template)):
                raise ValueError("its chat template does not come to an end")
        processor.tokenizer.padding_side = "left"
        model = AutoModelForImageTextToText.from_pretrained(self._where, dtype=self._dtype, use_safetensors=True)
        device = self._device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        return processor, model.to(device).eval()

    def _generated(self, queries: Sequence[Query], given_up: Callable[[], bool]) -> list[GeneratedText]:
        import torch

        choices = queries[0].choices
        clips = [query.clips for query in queries]
        inputs = self._inputs([_messages(query) for query in queries], clips)
        inputs = inputs.to(self._model.device, dtype=self._model.dtype)
        drawn: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if choices.temperature > 0:
            torch.manual_seed(choices.seed)
            drawn = {"do_sample": True, "temperature": choices.temperature}
            drawn |= {"top_p": choices.top_p or 1.0, "top_k": choices.top_k or 0}
        if choices.stop:
            drawn |= {"stop_strings": list(choices.stop), "tokenizer": self._processor.tokenizer}
        with torch.inference_mode():
            tokens = self._model.generate(
                **inputs, max_new_tokens=choices.max_tokens, stopping_criteria=_ended_by(given_up), **drawn
            )
        asked = inputs["attention_mask"].sum(dim=1).tolist()
        rows = tokens[:, inputs["input_ids"].shape[1] :].tolist()
        return [self._said(row, int(count), choices) for row, count in zip(rows, asked, strict=True)]

    def _inputs(self, conversations: list[list[Message]], clips: Sequence[Sequence[Clip]] = ()) -> Any:
        from jinja2 import TemplateError

        given: dict[str, Any] = {"return_tensors": "pt", "padding": True}
        if any(clips):
            if getattr(self._processor, "video_processor", None) is None:
                raise ConfigurationError(f"{self._name}: its processor takes no video: use --video-as frames")
            known = [[video_metadata(clip.seconds) for clip in some] for some in clips]
            given |= {"do_sample_frames": False, "video_metadata": known}

        def lined_up(messages: list[list[Message]]) -> Any:
            return self._processor.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=True, return_dict=True, processor_kwargs=dict(given)
            )

        try:
            return lined_up(conversations)
        except TemplateError:  # many templates know no system message
            return lined_up([_without_system(messages) for messages in conversations])

    def _said(self, row: list[int], asked: int, choices: Choices) -> GeneratedText:
        ends = self._model.generation_config.eos_token_id
        ends = set(ends) if isinstance(ends, list) else {ends}
        own = next((place for place, token in enumerate(row) if token in ends), len(row))
        text = self._processor.tokenizer.decode(row[:own], skip_special_tokens=True)
        stopped = next((word for word in choices.stop if text.endswith(word)), "")
        cut_off = own == len(row) and not stopped and len(row) >= choices.max_tokens
        return GeneratedText(text.removesuffix(stopped), asked, min(own + 1, len(row)), cut_off)


def _messages(query: Query) -> list[Message]:
    from PIL import Image

    content: list[Message] = []
    for part in query.parts:
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        elif isinstance(part, Clip):
            frames = [Image.open(io.BytesIO(jpeg)).convert("RGB") for jpeg in part.jpegs]
            content.append({"type": "video", "video": frames})
        else:
            content.append({"type": "image", "image": Image.open(io.BytesIO(part)).convert("RGB")})
    system = {"role": "system", "content": [{"type": "text", "text": query.system}]}
    return [*([system] if query.system else []), {"role": "user", "content": content}]


def _without_system(messages: list[Message]) -> list[Message]:
    """The system's words as the first of the user's."""
    if messages[0]["role"] != "system":
        return messages
    system, user = messages
    return [{"role": "user", "content": [*system["content"], *user["content"]]}]


def _ended_by(given_up: Callable[[], bool]) -> Any:
    import torch
    from transformers import StoppingCriteria, StoppingCriteriaList

    class NobodyWaits(StoppingCriteria):  # type: ignore[misc]  # the library has no types
        """Ends when the answers are not wanted any more."""

        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            del scores, kwargs
            return torch.full((input_ids.shape[0],), given_up(), device=input_ids.device)

    return StoppingCriteriaList([NobodyWaits()])


def _advice(error: Exception) -> str:
    told = one_line(str(error))
    if "torchvision" in str(error).lower():
        return f"its processor needs torchvision, which is not installed: pip install torchvision ({told})"
    return told


Q = TypeVar("Q")
R = TypeVar("R")

_GATHERING_S = 0.01  # so long the first one waits for others that are about to be asked


@dataclass
class _Waiting(Generic[Q, R]):
    query: Q
    started: asyncio.Future[None]
    done: asyncio.Future[R]

    @property
    def given_up(self) -> bool:
        return self.started.cancelled() or self.done.cancelled()


class Batches(Generic[Q, R]):
    """`load` is called once before the first batch, `run` with up to `size` questions of one `kind` and a
    function that says whether nobody waits for their answers any more; both in a thread of their own."""

    def __init__(
        self,
        load: Callable[[], None],
        run: Callable[[Sequence[Q], Callable[[], bool]], Sequence[R]],
        size: int,
        kind: Callable[[Q], object],
    ) -> None:
        self._load = load
        self._run = run
        self._size = size
        self._kind = kind
        self._queue: deque[_Waiting[Q, R]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="weights")

    async def ask(self, query: Q) -> R:
        """The answer to one question. Raises what `load` or `run` raised."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting[Q, R] = _Waiting(query, loop.create_future(), loop.create_future())
        self._queue.append(waiting)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        with aside("retry"):  # others are at work: no time of this question's
            await waiting.started
        return await waiting.done

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(_GATHERING_S)
            while self._queue:
                batch = self._next()
                if not batch:
                    continue
                try:
                    await loop.run_in_executor(self._thread, self._load)
                except Exception as error:  # noqa: BLE001 - the caller gets it: else they would wait indefinitely
                    _end(batch, error)
                    continue
                await self._answer(batch)
        finally:
            self._worker = None

    async def _answer(self, batch: Sequence[_Waiting[Q, R]]) -> None:
        for one in batch:
            if not one.started.done():
                one.started.set_result(None)
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(
                self._thread, self._run, [one.query for one in batch], lambda: all(o.given_up for o in batch)
            )
        except Exception as error:  # noqa: BLE001 - the caller gets it, whatever it is
            _end(batch, error)
            return
        for one, answer in zip(batch, answers, strict=True):
            if not one.given_up:
                one.done.set_result(answer)

    def _next(self) -> list[_Waiting[Q, R]]:
        """The questions to be answered together: the oldest one, and others of its kind."""
        waiting = [one for one in self._queue if not one.given_up]
        batch = [one for one in waiting if self._kind(one.query) == self._kind(waiting[0].query)][: self._size]
        self._queue = deque(one for one in waiting if one not in batch)
        return batch


def _end(batch: Sequence[_Waiting[Q, R]], error: Exception) -> None:
    for one in batch:
        if one.given_up:
            continue
        if one.started.done():
            one.done.set_exception(error)
        else:
            one.started.set_exception(error)


PREFIX = "transformers:"
_NEEDED = ("torch", "transformers")
_MAX_TOKENS = 512
_BATCH_SIZE = 4


class LocalModelSettings(ModelSettings, total=False):
    """Settings of local weights alone: `device` is "auto" (a GPU where there is one), "cpu", "cuda" or
    "cuda:1"; `dtype` is "auto" (the weights' own), "float32", "bfloat16" or "float16"; `batch_size` is how
    many questions run together at most, of those that are under way at once."""

    device: str
    dtype: str
    batch_size: int


class LocalModel(Model):
    """Raises `ConfigurationError` where a package is missing or a path holds no weights; what only loading
    shows (unknown model, a processor that needs more) is one as well, with the first question."""

    unsupported_settings: ClassVar[frozenset[str]] = frozenset(  # type: ignore[assignment]  # names of fields
        set(ModelSettings.__annotations__) - {"max_tokens", "temperature", "top_p", "top_k", "seed", "stop_sequences"}
    )

    def __init__(self, name: str, settings: LocalModelSettings, seed: int) -> None:
        profile = ModelProfile(supports_tools=False, supports_video_input=False, supports_audio_file_input=False)
        super().__init__(profile=profile)
        where = name.removeprefix(PREFIX)
        missing = [package for package in _NEEDED if find_spec(package) is None]
        if missing:
            line = pip_install("local", torch="torch" not in missing)
            raise ConfigurationError(f"{name}: {' and '.join(missing)} missing: {line}")
        if where.startswith((".", "/", "~")) and not (Path(where).expanduser() / "config.json").is_file():
            raise ConfigurationError(f"{name}: found no config.json there, expected a folder with weights")
        self._name = where
        self._seed = seed
        weights = Weights(
            name, str(Path(where).expanduser()), settings.get("device", "auto"), settings.get("dtype", "auto")
        )
        self._batches: Batches[Query, GeneratedText] = Batches(
            weights.load, weights.generate, settings.get("batch_size", _BATCH_SIZE), _kind
        )

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return "transformers"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One reply. Waiting for the weights to be loaded, and for a place in a batch, is not the model's
        time."""
        prepared, parameters = self.prepare_request(model_settings, model_request_parameters)
        query = _query(messages, parameters, self._choices(prepared or {}))
        said = await self._batches.ask(query)
        return ModelResponse(
            parts=[TextPart(said.text)],
            usage=RequestUsage(input_tokens=said.input_tokens, output_tokens=said.output_tokens),
            model_name=self._name,
            provider_name=self.system,
            finish_reason="length" if said.cut_off else "stop",
        )

    def _choices(self, settings: ModelSettings) -> Choices:
        return Choices(
            max_tokens=settings.get("max_tokens", _MAX_TOKENS),
            temperature=settings.get("temperature", 0.0),
            top_p=settings.get("top_p"),
            top_k=settings.get("top_k"),
            seed=settings.get("seed", self._seed),
            stop=tuple(settings.get("stop_sequences", ())),
        )


def _kind(query: Query) -> tuple[int, ...]:
    """Questions with as many pictures, and clips as long, run together: every processor can line those up."""
    return len(query.pictures), *(len(clip.jpegs) for clip in query.clips)


def _query(messages: Sequence[ModelMessage], parameters: ModelRequestParameters, choices: Choices) -> Query:
    instructions = InstructionPart.join(parameters.instruction_parts) if parameters.instruction_parts else ""
    system = [instructions] if instructions else []
    parts: list[str | bytes | Clip] = []
    for message in messages:
        for part in cast("ModelRequest", message).parts:
            if isinstance(part, SystemPromptPart):
                system.insert(0, part.content)
            elif isinstance(part, UserPromptPart):
                content = [part.content] if isinstance(part.content, str) else part.content
                parts += _in_clips(content)
    return Query("\n\n".join(system), tuple(parts), choices)


def _in_clips(content: Sequence[object]) -> list[str | bytes | Clip]:
    """Texts and pictures as they come; the frames of one footage as one clip."""
    parts: list[str | bytes | Clip] = []
    for footage, group in groupby(content, key=_footage):
        some = list(group)
        if footage is None:
            parts += [one.data if isinstance(one, BinaryContent) else str(one) for one in some]
            continue
        frames = [one for one in some if isinstance(one, BinaryContent)]
        seconds = tuple(float((one.vendor_metadata or {})["seconds"]) for one in frames)
        parts.append(Clip(tuple(one.data for one in frames), seconds))
    return parts


def _footage(one: object) -> object:
    return (one.vendor_metadata or {}).get("footage") if isinstance(one, BinaryContent) else None

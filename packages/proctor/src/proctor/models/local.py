"""Local weights as a model of the model library: loaded once, queried in batches."""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Generic, TypeVar, cast

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

from proctor.core import ConfigurationError, aside, pip_install
from proctor.models.adapters import base_and_adapter, check_adapter
from proctor.models.prefix_cache import NOT_REUSED
from proctor.models.queries import Choices, Clip, FixedForm, GeneratedText, Query
from proctor.models.weights import Weights

Q = TypeVar("Q")
R = TypeVar("R")

_GATHERING_S = 0.01  # the first query waits for others to share its batch


@dataclass
class _Waiting(Generic[Q, R]):
    query: Q
    started: asyncio.Future[None]
    done: asyncio.Future[R]

    @property
    def given_up(self) -> bool:
        return self.started.cancelled() or self.done.cancelled()


class Batches(Generic[Q, R]):
    """Runs queries in batches, in a thread of its own. `load` is called before each batch, `run` with up to `size`
    queries of one `kind` and a function that says whether all their answers are given up."""

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
        """The answer to one query. Raises what `load` or `run` raised."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting[Q, R] = _Waiting(query, loop.create_future(), loop.create_future())
        self._queue.append(waiting)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        with aside("retry"):  # waiting for other batches is not this query's time
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
                self._thread, self._run, [waiting.query for waiting in batch], lambda: all(o.given_up for o in batch)
            )
        except Exception as error:  # noqa: BLE001 - the caller gets it, whatever it is
            _end(batch, error)
            return
        for one, answer in zip(batch, answers, strict=True):
            if not one.given_up:
                one.done.set_result(answer)

    def _next(self) -> list[_Waiting[Q, R]]:
        """The next batch: the oldest query, and others of its kind."""
        waiting = [one for one in self._queue if not one.given_up]
        batch = [one for one in waiting if self._kind(one.query) == self._kind(waiting[0].query)][: self._size]
        self._queue = deque(one for one in waiting if one not in batch)
        return batch


def _end(batch: Sequence[_Waiting[Q, R]], error: Exception) -> None:
    for waiting in batch:
        if waiting.given_up:
            continue
        if waiting.started.done():
            waiting.done.set_exception(error)
        else:
            waiting.started.set_exception(error)


PREFIX = "transformers:"
_NEEDED = ("torch", "transformers")
_MAX_TOKENS = 512
_BATCH_SIZE = 4
_PREFIX_CACHE_GB = 2.0


class LocalModelSettings(ModelSettings, total=False):
    """Settings of local weights: `device` is "auto" (a GPU if there is one), "cpu", "cuda" or "cuda:1"; `dtype` is "auto"
    (the weights' own), "float32", "bfloat16" or "float16"; `batch_size` is the largest number of questions that run
    together; `prefix_cache_gb` is how many gigabytes of computations of pictures are kept for other questions about
    them (0: none)."""

    device: str
    dtype: str
    batch_size: int
    fill_form: bool
    prefix_cache_gb: float


class LocalModel(Model):
    """Local weights. Raises `ConfigurationError` where a package is missing or a path holds no weights, and with the
    first question where loading fails (unknown model, a processor that needs more)."""

    settings_type = LocalModelSettings
    unsupported_settings: ClassVar[frozenset[str]] = frozenset(  # type: ignore[assignment]  # names of fields
        set(ModelSettings.__annotations__) - {"max_tokens", "temperature", "top_p", "top_k", "seed", "stop_sequences"}
    )

    def __init__(self, name: str, settings: LocalModelSettings, seed: int) -> None:
        profile = ModelProfile(
            supports_tools=False,
            supports_video_input=False,
            supports_audio_file_input=False,
            supports_json_schema_output=settings.get("fill_form", False),
        )
        super().__init__(profile=profile)
        where = name.removeprefix(PREFIX)
        missing = [package for package in _NEEDED if find_spec(package) is None]
        if missing:
            line = pip_install("local", torch="torch" not in missing)
            raise ConfigurationError(f"{name}: {' and '.join(missing)} missing: {line}")
        base, adapter = base_and_adapter(where)
        if base.startswith((".", "/", "~")) and not (Path(base).expanduser() / "config.json").is_file():
            raise ConfigurationError(f"{name}: found no config.json there, expected a folder with weights")
        if adapter is not None:
            check_adapter(name, base, adapter)
        self._name = where
        self._seed = seed
        self._size = settings.get("batch_size", _BATCH_SIZE)
        kept = settings.get("prefix_cache_gb", _PREFIX_CACHE_GB) * 1e9
        self.use(Weights(name, where, settings.get("device", "auto"), settings.get("dtype", "auto"), kept))

    def use(self, weights: Weights) -> None:
        """Replaces the weights, for example by those in training."""
        self._batches: Batches[Query, GeneratedText] = Batches(weights.load, weights.generate, self._size, _kind)

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
        """One reply. Waiting for the weights to load, and for a batch, is not the model's time."""
        query = self.query(messages, model_settings, model_request_parameters)
        said = await self._batches.ask(query)
        return ModelResponse(
            parts=[TextPart(said.text, provider_details=_listed(query.form, said))],
            usage=RequestUsage(
                input_tokens=said.input_tokens, output_tokens=said.output_tokens, cache_read_tokens=said.cached_tokens
            ),
            model_name=self._name,
            provider_name=self.system,
            provider_details={NOT_REUSED: said.not_reused} if said.not_reused else None,
            finish_reason="length" if said.cut_off else "stop",
        )

    def query(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> Query:
        """The query of this request."""
        prepared, parameters = self.prepare_request(model_settings, model_request_parameters)
        return _query(messages, parameters, self._choices(prepared or {}))

    def _choices(self, settings: ModelSettings) -> Choices:
        return Choices(
            max_tokens=settings.get("max_tokens", _MAX_TOKENS),
            temperature=settings.get("temperature", 0.0),
            top_p=settings.get("top_p"),
            top_k=settings.get("top_k"),
            seed=settings.get("seed", self._seed),
            stop=tuple(settings.get("stop_sequences", ())),
        )


def _kind(query: Query) -> object:
    """Questions with equal numbers of pictures, and clips of equal length, can share a batch in every processor; if
    tokens are drawn, of one seed."""
    seed = query.choices.seed if query.choices.temperature > 0 else 0
    return seed, len(query.pictures), *(len(clip.jpegs) for clip in query.clips), query.form


def _form(parameters: ModelRequestParameters) -> FixedForm | None:
    """The requested form, if any. Raises `ConfigurationError` for one that can't be filled in."""
    if parameters.output_mode != "native" or parameters.output_object is None:
        return None
    fields: dict[str, dict[str, object]] = parameters.output_object.json_schema.get("properties", {})
    options = []
    for name, about in fields.items():
        most = about.get("maximum")
        if about.get("type") != "integer" or about.get("minimum") != 0 or not isinstance(most, int | float) or most > 9:
            raise ConfigurationError(f"fill_form: {name!r} is not a whole number of 0 to 9: it can't be filled in")
        options.append(tuple(str(level) for level in range(int(most) + 1)))
    starts = [f"{json.dumps(name, ensure_ascii=False)}: " for name in fields]
    return FixedForm(("{" + starts[0], *(f", {start}" for start in starts[1:]), "}"), tuple(options))


def _listed(form: FixedForm | None, said: GeneratedText) -> dict[str, object] | None:
    """The probabilities of a form's slots in OpenAI's format; the text between is one token of probability 1."""
    if form is None:
        return None
    tokens = [_token(form.texts[0], {form.texts[0]: 1.0})]
    position = len(form.texts[0])
    for text, chances in zip(form.texts[1:], said.chances, strict=True):
        tokens += [_token(said.text[position], chances), _token(text, {text: 1.0})]
        position += 1 + len(text)
    return {"logprobs": tokens}


def _token(text: str, chances: Mapping[str, float]) -> dict[str, object]:
    def one(token: str) -> dict[str, object]:
        chance = chances[token]
        return {"token": token, "bytes": None, "logprob": math.log(chance) if chance > 0 else -math.inf}

    return {**one(text), "top_logprobs": [one(other) for other in chances]}


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
    return Query("\n\n".join(system), tuple(parts), choices, _form(parameters))


def _in_clips(content: Sequence[object]) -> list[str | bytes | Clip]:
    """Texts and pictures in order; the frames of one footage as one clip."""
    parts: list[str | bytes | Clip] = []
    for footage, group in groupby(content, key=_footage):
        some = list(group)
        if footage is None:
            parts += [one.data if isinstance(one, BinaryContent) else str(one) for one in some]
            continue
        frames = [one for one in some if isinstance(one, BinaryContent)]
        seconds = tuple(float((frame.vendor_metadata or {})["seconds"]) for frame in frames)
        parts.append(Clip(tuple(frame.data for frame in frames), seconds))
    return parts


def _footage(one: object) -> object:
    return (one.vendor_metadata or {}).get("footage") if isinstance(one, BinaryContent) else None

"""The model client: retries and waits, time-outs, empty replies, replies in a form, seeds and usage around the model
library."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast, overload

from pydantic import BaseModel, JsonValue

from proctor.core import (
    ConfigurationError,
    Frame,
    InfrastructureError,
    ProctorError,
    RefusalError,
    SystemFaultError,
    Usage,
    aside,
    current_repetition,
    generator,
    rebook,
)
from proctor.media import ClipFile, Sound
from proctor.models.adapters import local_hashes
from proctor.models.endings import CUT_OFF, Ending, end_of
from proctor.models.faults import Fault, one_line, understand
from proctor.models.prefix_cache import NOT_REUSED
from proctor.models.reply import (
    Reply,
    Token,
    UnreadableReplyError,
    read_tokens,
    read_usage,
    read_value,
    text_with_calls,
    thinks_aloud,
)
from proctor.models.spec import ModelSpec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserContent
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from proctor.models.connections import BatchFolder
    from proctor.models.local import LocalModel
    from proctor.models.queries import Query
    from proctor.models.servers import ModelServers
    from proctor.models.weights import Weights


@dataclass(frozen=True)
class Footage:
    """Frames in ascending time, in seconds of the clip."""

    frames: tuple[Frame, ...]


Part = str | Frame | ClipFile | Footage | Sound

T = TypeVar("T", bound=BaseModel)
V = TypeVar("V", bound=BaseModel | None)

NO_SOUND = (
    "{}: this model takes no sound: use --condition muted, or a provider that takes it "
    "(google:…, openai-chat:gpt-audio, an OpenAI-compatible server with --base-url)"
)
_FORM_TRIES = 3  # requests for a reply of a given form
_EMPTY_TRIES = 2  # repeated requests after an empty reply, before it counts as the model's reply
_BROKEN = (ValueError, TypeError, AttributeError, LookupError, AssertionError)
"""What the library raises on JSON that is no reply (`"choices": []` …)."""


class ModelClient:
    """A client for one model, with one connection pool for all requests; close it with `aclose()`.

    With `batch`, replies are read from that folder, and `ask` raises `PendingError` for replies that are not there.
    `likes` are settings where the specification has none; unlike its own, they are ignored by a model that does not
    take them. With `model`, a model of the library in this process is asked, and nothing is connected. The constructor
    raises `ConfigurationError`: unknown provider, no API key, a setting that is unknown or not taken, a batch for another
    protocol.
    """

    def __init__(
        self,
        spec: ModelSpec,
        batch: BatchFolder | None = None,
        *,
        likes: Mapping[str, JsonValue] | None = None,
        model: Model | None = None,
    ) -> None:
        from proctor.models.provider import build_model, http_client

        own, likes = spec.settings, likes or {}
        spec = ModelSpec.model_validate(spec.model_dump() | {"settings": {**likes, **own}}) if likes else spec
        self.spec = spec
        self._http = http_client(spec.timeout_s) if model is None else None
        liked = {name: one for name, one in likes.items() if name not in own}
        self._model = build_model(spec, self._http, liked) if self._http is not None else cast("Model", model)
        self._servers: ModelServers | None = getattr(self._model, "servers", None)
        self._empty_tries = _EMPTY_TRIES if batch is None else 0
        if batch is not None:
            if self._servers is None:
                raise ConfigurationError(
                    f"{spec.name}: a batch is for OpenAI's protocol: name its server by --base-url"
                )
            self._model.post_by(batch)  # type: ignore[attr-defined]
        self._draw = generator(spec.seed, "retry", spec.name)
        self._unpriced: set[str] = set()
        self._weights: dict[str, JsonValue] = {**local_hashes(spec.name.partition(":")[2])} if spec.is_local else {}
        self._forms: dict[type[BaseModel], ModelRequestParameters] = {}

    @property
    def name(self) -> str:
        """`provider:model`, as specified."""
        return self.spec.name

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The settings that change replies, for the record; never a secret."""
        return {
            "model": self.spec.name,
            "base_url": self.spec.base_url,
            **({"servers": [*self.spec.servers]} if self.spec.replicas else {}),
            **self._weights,
            "model_settings": dict(self.spec.settings),
            "structured": self.spec.structured,
        }

    @property
    def servers(self) -> tuple[str, ...]:
        """The addresses of servers with OpenAI's protocol; none for other protocols, which take other keys."""
        return self.spec.servers if self._servers is not None or self.spec.hears else ()

    @property
    def takes_video(self) -> bool:
        """Whether it accepts video files."""
        return bool(self._model.profile.get("supports_video_input", True))

    @property
    def takes_audio(self) -> bool:
        """Whether its protocol has sound; the model may still refuse it."""
        return bool(self._model.profile.get("supports_audio_file_input", True))

    @property
    def takes_tools(self) -> bool:
        """Whether its protocol has tools; the server may still refuse them."""
        return bool(self._model.profile.get("supports_tools", True))

    @property
    def takes_schema(self) -> bool:
        """Whether a JSON schema for a reply of any kind can be sent: by the mode that its protocol has for that, or as a
        tool if the specification says so, since a model that has to call a tool may not think; the server may still
        refuse it. Local weights fill in forms of levels only."""
        if self.spec.is_local or self.spec.hears:
            return False
        native = bool(self._model.profile.get("supports_json_schema_output", False))
        tool = self.takes_tools and self.spec.structured == "tool"
        return {"native": native, "tool": tool}.get(self._mode(), False)

    @property
    def takes_footage(self) -> bool:
        """Whether it accepts a video as frames with times (local weights, if their processor does)."""
        return self.spec.is_local and not self.spec.hears

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._http is not None:
            await self._http.aclose()
        if (connections := getattr(self._model, "connections", None)) is not None:
            await connections.aclose()

    @overload
    async def ask(
        self, parts: Sequence[Part], *, system: str = "", shape: type[BaseModel] | None = None
    ) -> Reply[None]: ...
    @overload
    async def ask(self, parts: Sequence[Part], *, system: str = "", schema: type[T]) -> Reply[T]: ...
    async def ask(
        self,
        parts: Sequence[Part],
        *,
        system: str = "",
        schema: type[T] | None = None,
        shape: type[BaseModel] | None = None,
    ) -> Reply[T] | Reply[None]:
        """Sends texts, pictures, video files and sounds, in this order, and returns the reply.

        Each picture follows its label and time, each sound its label. With `schema` the reply is a value of that form,
        requested up to 3 times, and once if the token limit cuts the reply off. Infrastructure errors are retried as the specification says; their time, waits
        included, counts as the stopwatch's "retry". A `shape` is requested in the same way as a schema, but what comes
        back is returned as it is, whether it has that form or not: for replies that an answer format reads.

        Raises `InfrastructureError` (no reply), `SystemFaultError` (no reply of the form, context too long, content
        that the provider rejects, out of memory), `RefusalError` (the model or a filter declined),
        `ConfigurationError` (no access, no such model, no such setting, sound for a model without sound).
        """
        if not self.takes_audio and any(isinstance(part, Sound) for part in parts):
            raise ConfigurationError(NO_SOUND.format(self.name))
        if schema is not None:
            return await self._ask_for(schema, parts, system)
        form = None if shape is None else self._form(shape)
        response, usage = await self.converse([self._message(parts, system)], form)
        try:
            reply = _reply(response, usage, None, self._tokens(response))
            return reply if shape is None else replace(reply, text=text_with_calls(response))
        except UnreadableReplyError as error:
            raise SystemFaultError(f"{self.name}: {error}").after(usage) from error

    async def _ask_for(self, schema: type[T], parts: Sequence[Part], system: str) -> Reply[T]:
        usage, reason = Usage(), ""
        for _ in range(_FORM_TRIES):
            again = [f"Your last reply could not be read ({reason}). Reply again, in the form asked for."]
            message = self._message([*parts, *(again if reason else [])], system)
            try:
                response, spent = await self.converse([message], self._form(schema))
            except ProctorError as error:
                error.after(usage)
                raise
            usage += spent
            if end_of(response).ending is Ending.CUT_OFF:  # half a reply has no value, and the next would end the same
                raise SystemFaultError(f"{self.name}: {CUT_OFF}").after(usage)
            try:
                value = read_value(response, schema, [part for part in parts if isinstance(part, str)])
                return _reply(response, usage, value, self._tokens(response))
            except UnreadableReplyError as error:
                reason = str(error)
        # Some servers ignore a form that is sent beside the messages, without a word.
        ignored = reason.startswith("Invalid JSON") and self.spec.structured == "auto" and self._mode() == "native"
        hint = " (--structured prompted, if the server ignores the form)" if ignored else ""
        raise SystemFaultError(f"{self.name}: no readable reply in {_FORM_TRIES} tries: {reason}{hint}").after(usage)

    async def converse(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters | None = None
    ) -> tuple[ModelResponse, Usage]:
        """The next response in a conversation, and the usage of it and of empty ones before it. Raises as `ask`."""
        usage, empty, faults = Usage(), 0, 0
        while True:
            outcome, seconds = await self._attempt(messages, parameters)
            if isinstance(outcome, Fault):
                fault, faults = outcome, faults + (not outcome.elsewhere)
            else:
                usage += read_usage(outcome, self._unpriced, self.spec.priced)
                end = end_of(outcome)
                if end.ending is Ending.REFUSED:
                    raise RefusalError(f"{self.name}: the model or its provider declined to answer").after(usage)
                if end.fault:
                    fault, faults = Fault(InfrastructureError(one_line(end.fault)), again=True), faults + 1
                elif empty == self._empty_tries or end.ending is Ending.CUT_OFF or _says_something(outcome):
                    return outcome, usage
                else:
                    fault, empty = Fault(InfrastructureError("an empty reply"), again=True), empty + 1
            rebook(seconds, "retry")
            if fault.elsewhere:
                continue
            if not fault.again or faults > self.spec.retries:
                after = f" (after {faults} tries)" if faults > 1 else ""
                raise fault.error.reworded(f"{self.name}: {fault.error}{after}").after(usage)
            with aside("retry"):
                await asyncio.sleep(self._wait(faults + empty - 1, fault.wait_s))

    async def _attempt(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters | None
    ) -> tuple[ModelResponse | Fault, float]:
        """The response or fault of one request, and its seconds."""
        if self._servers is None:
            outcome, seconds = await self._timed(messages, parameters)
            if isinstance(outcome, Fault) and self.spec.base_url is not None:
                outcome = replace(outcome, error=_assigned(outcome.error, self.spec.base_url, below=""))
            return outcome, seconds
        async with self._servers.slot_of() as server:
            outcome, seconds = await self._timed(messages, parameters)
            if isinstance(outcome, Fault):
                if outcome.timed_out:
                    server.hung(asyncio.get_running_loop().time())
                elsewhere = outcome.again and self._servers.elsewhere(server)
                outcome = replace(outcome, error=_assigned(outcome.error, server.url), elsewhere=elsewhere)
        return outcome, seconds

    async def _timed(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters | None
    ) -> tuple[ModelResponse | Fault, float]:
        import httpx2
        from pydantic_ai.direct import model_request
        from pydantic_ai.exceptions import AgentRunError, UserError

        started = time.monotonic()
        try:
            async with asyncio.timeout(None if self.spec.is_local else self.spec.timeout_s):
                outcome = await model_request(
                    self._model, list(messages), model_settings=self._settings, model_request_parameters=parameters
                )
        except (AgentRunError, UserError, httpx2.HTTPError, OSError, *_BROKEN) as error:
            return understand(error), time.monotonic() - started
        return outcome, time.monotonic() - started

    def _tokens(self, response: ModelResponse) -> tuple[Token, ...]:
        """The tokens of a reply. Those that nobody requested decide nothing: without a form they are left out."""
        try:
            return read_tokens(response)
        except UnreadableReplyError:
            if self.spec.settings.get("openai_logprobs"):
                raise
            return ()

    def _message(self, parts: Sequence[Part], system: str) -> ModelRequest:
        from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart

        head = [SystemPromptPart(system)] if system else []
        return ModelRequest(parts=[*head, UserPromptPart(content_of(parts))])

    @property
    def _settings(self) -> ModelSettings:
        """The settings of a request. A repetition after the first has a seed of its own, where the protocol takes one:
        that of the specification, or else of the client, plus its number."""
        settings: dict[str, JsonValue] = {**self.spec.settings}
        repetition = current_repetition()
        if repetition.number and self.takes_seed:
            known = settings.get("seed", self.spec.seed)
            settings["seed"] = repetition.seed(known if isinstance(known, int) else self.spec.seed)
        return settings  # type: ignore[return-value]

    @property
    def temperature(self) -> float | None:
        """The temperature at which tokens are drawn; None where nobody said, and a provider's default holds."""
        given = self.spec.settings.get("temperature", 0.0 if self.spec.is_local else None)
        return float(given) if isinstance(given, int | float) else None

    @cached_property
    def takes_seed(self) -> bool:
        """Whether its protocol has a seed: each repetition of a question is sent its own; the server may still ignore
        it."""
        from proctor.models.provider import takes_seed

        return takes_seed(self.spec, self._model)

    def use(self, weights: Weights) -> None:
        """Replaces the local weights by these, which are in memory. Raises `ConfigurationError` for a remote model."""
        self._local().use(weights)

    def query(self, parts: Sequence[Part], *, system: str = "", schema: type[BaseModel] | None = None) -> Query:
        """The query that `ask` would send to local weights, to train them on it. Raises `ConfigurationError` for a
        remote model."""
        from pydantic_ai.models import ModelRequestParameters

        form = self._form(schema) if schema else ModelRequestParameters()
        return self._local().query([self._message(parts, system)], self._settings, form)

    def _local(self) -> LocalModel:
        from proctor.models.local import LocalModel

        if not isinstance(self._model, LocalModel):
            raise ConfigurationError(
                f"{self.name}: found a model elsewhere, expected local weights (transformers:PATH)"
            )
        return self._model

    def _form(self, schema: type[BaseModel]) -> ModelRequestParameters:
        if schema not in self._forms:
            self._forms[schema] = _parameters(schema, self._mode())
        return self._forms[schema]

    def _mode(self) -> str:
        if self.spec.structured != "auto":
            return self.spec.structured
        profile = self._model.profile
        if profile.get("supports_json_schema_output", False):
            return "native"
        return "tool" if profile.get("supports_tools", True) else "prompted"

    def _wait(self, earlier: int, asked_for: float | None) -> float:
        """Full jitter over a doubling range; a wait requested by the server comes on top, up to the limit."""
        limit = self.spec.max_wait_s
        jitter = float(self._draw.uniform(0.0, min(limit, self.spec.backoff_s * 2.0 ** min(earlier, 30))))
        return jitter if asked_for is None else min(limit, asked_for + min(jitter, 1.0))


def _assigned(error: ProctorError, url: str, below: str = "/v1") -> ProctorError:
    """The error with the server's address, where the address may be wrong. Most servers of the protocol answer `below`
    it."""
    said = str(error)
    if said.startswith("Connection error"):
        return error.reworded(f"{said} at {url}")
    if said.startswith("HTTP 404") and not url.endswith(below):
        return error.reworded(f"{said} at {url}: did you mean --base-url {url.rstrip('/')}{below}?")
    return error


def _says_something(response: ModelResponse) -> bool:
    from pydantic_ai.messages import ToolCallPart

    return bool((response.text or "").strip()) or any(isinstance(p, ToolCallPart) for p in response.parts)


def _reply(response: ModelResponse, usage: Usage, value: V, tokens: tuple[Token, ...]) -> Reply[V]:
    model, said = response.model_name or "", response.provider_details or {}
    reason = str(said.get(NOT_REUSED, ""))
    word, aloud = end_of(response).word or None, thinks_aloud(response)
    return Reply(response.text or "", value, usage, word, model, tokens, reason, aloud)


def content_of(parts: Sequence[Part]) -> list[UserContent]:
    """Texts, pictures, videos and sounds in the model library's types."""
    from pydantic_ai.messages import BinaryContent

    # With an identifier given, the library does not hash the bytes to make one up.
    content: list[UserContent] = []
    for part in parts:
        match part:
            case str():
                content.append(part)
            case Footage():
                for frame in part.frames:
                    location = {"footage": id(part), "seconds": frame.time or 0.0}
                    content.append(
                        BinaryContent(frame.jpeg, media_type="image/jpeg", identifier="frame", vendor_metadata=location)
                    )
            case ClipFile():
                content += [part.label] if part.label else []
                content.append(BinaryContent(part.mp4, media_type="video/mp4", identifier="clip"))
            case Sound():
                content += [part.label] if part.label else []
                content.append(BinaryContent(part.wav, media_type="audio/wav", identifier="sound"))
            case Frame():
                content += [caption] if (caption := caption_of(part)) else []
                content.append(BinaryContent(part.jpeg, media_type="image/jpeg", identifier="frame"))
    return content


def caption_of(frame: Frame) -> str:
    """The text that is sent before a picture: its label and its time, the time only if the label does not hold it.

    >>> caption_of(Frame(b"", 3.0, "clip 2")), caption_of(Frame(b"", 3.0, "t = 3.0 s")), caption_of(Frame(b"", None, "A"))
    ('clip 2, t = 3.0 s', 't = 3.0 s', 'A')
    """
    time_text = "" if frame.time is None else f"t = {frame.time:.1f} s"
    known = [text for text in (frame.label, time_text if time_text not in frame.label else "") if text]
    return ", ".join(known)


def _parameters(schema: type[BaseModel], mode: str) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    about = " ".join((schema.__doc__ or "").split("\n\n")[0].split())
    form = schema.model_json_schema() | {"description": about}
    if mode == "tool":
        tool = ToolDefinition(name=schema.__name__, description=about, parameters_json_schema=form, kind="output")
        return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    described = OutputObjectDefinition(json_schema=form, name=schema.__name__, description=about)
    return ModelRequestParameters(output_mode="native" if mode == "native" else "prompted", output_object=described)

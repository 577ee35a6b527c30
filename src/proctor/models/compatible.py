"""Models behind servers that speak OpenAI's protocol: the model library builds requests and interprets replies, with a
faster serializer and a faster HTTP client in between (decision 0064)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Annotated, Any, Literal, TypedDict, cast

import httpx2
import orjson
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, NotGiven, Omit
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletion, ChatCompletionContentPartParam, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from pydantic import Field, ValidationError, field_validator
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import BinaryContent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.usage import RequestUsage

from proctor.core.formats import is_cut_thought
from proctor.media import StoredPicture
from proctor.models.connections import ENCODINGS, BatchFolder, Connections, Posted
from proctor.models.faults import told_in
from proctor.models.servers import ModelServers

_ERROR = 300  # this status and higher ones are errors
_TOO_BUSY = {429, 503}


class _VideoUrl(TypedDict):
    url: str


class _VideoPart(TypedDict):
    type: Literal["video_url"]
    video_url: _VideoUrl


class CompatibleModel(OpenAIChatModel):
    """Sends a video file as a `video_url` part with the bytes in it, which these servers accept and OpenAI's own protocol
    does not. All of them know `max_tokens`, not all its newer name; they enforce a JSON schema for every model, while
    most need a switch for tool calls."""

    _unsupported_file_inputs = frozenset()

    def __init__(
        self, name: str, urls: Sequence[str], key: str | None, http: httpx2.AsyncClient, connections: Connections
    ) -> None:
        self.servers = ModelServers(urls)
        client = _Client(self.servers, key or "api-key-not-set", http, connections)
        profile = OpenAIModelProfile(
            openai_chat_supports_max_completion_tokens=False,
            supports_json_schema_output=True,
            supports_video_input=True,
        )
        # The price list looks for providers' names within this name: with "openai" in it, a local server would be
        # priced as OpenAI.
        super().__init__(name, provider=OpenAICompatibleProvider("compatible", openai_client=client, profile=profile))
        self.connections: Connections | BatchFolder = connections

    def post_by(self, connections: Connections | BatchFolder) -> None:
        """Sends requests by these connections from now on."""
        self.connections = cast("_Client", self.client).connections = connections

    def _validate_completion(self, response: ChatCompletion) -> Any:
        """Nothing to do: `_completion` has validated it."""
        return response

    def _map_usage(self, response: ChatCompletion) -> RequestUsage:
        """The protocol's counts alone; the library would search for those of all providers."""
        if (told := response.usage) is None:
            return RequestUsage(unmeasured_requests=1)
        cached = told.prompt_tokens_details and told.prompt_tokens_details.cached_tokens
        return RequestUsage(
            input_tokens=told.prompt_tokens, output_tokens=told.completion_tokens, cache_read_tokens=cached or 0
        )

    async def _map_binary_content_item(self, item: BinaryContent) -> ChatCompletionContentPartParam:
        if item.is_video:
            part: _VideoPart = {"type": "video_url", "video_url": {"url": item.data_uri}}
            return cast("ChatCompletionContentPartParam", part)
        if item.is_image and item.vendor_metadata is None:
            url = cast("str", _data_uri(item))
            return {"type": "image_url", "image_url": {"url": url}}
        return await super()._map_binary_content_item(item)


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture on its way into a body: the head of its data URI, and its base64 text."""

    head: bytes
    base64: bytes


def _data_uri(item: BinaryContent) -> _Picture:
    encoded = item.data.base64 if isinstance(item.data, StoredPicture) else item.base64.encode()
    return _Picture(b"data:%b;base64," % item.media_type.encode(), encoded)


_MARK = token_hex(16).encode()
"""Marks the place of a picture in a body; it is random, so that no question can contain it."""


def _pieces(body: dict[str, Any]) -> list[bytes]:
    """A body as JSON, in pieces. Each picture is a piece of its own, so that it is neither copied nor searched for
    characters to escape."""
    pictures: list[bytes] = []

    def put(one: object) -> orjson.Fragment:
        if not isinstance(one, _Picture):
            raise TypeError(f"found {type(one).__name__}, expected JSON")
        pictures.append(one.base64)
        return orjson.Fragment(b'"%b%b"' % (one.head, _MARK))

    text = orjson.dumps(body, default=put, option=orjson.OPT_PASSTHROUGH_DATACLASS).split(_MARK)
    return [text[0], *(piece for pair in zip(pictures, text[1:], strict=True) for piece in pair)]


class _Client(AsyncOpenAI):
    def __init__(self, servers: ModelServers, key: str, http: httpx2.AsyncClient, connections: Connections) -> None:
        super().__init__(base_url=servers.all[0].url, api_key=key, http_client=http)
        self.connections: Connections | BatchFolder = connections
        self.servers = servers
        self.post_headers = {name: one for name, one in self.default_headers.items() if isinstance(one, str)}
        self.post_headers |= self.auth_headers | {"Accept-Encoding": ENCODINGS}

    @property
    def chat(self) -> AsyncChat:
        return _Chat(self)


class _Chat(AsyncChat):
    @property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    """Sends a request unchanged. OpenAI's client would compare each part of a message with all its types, and its HTTP
    client would check every connection for each request."""

    async def create(self, *, extra_body: Any = None, extra_headers: Any = None, **more: Any) -> Any:
        more.pop("timeout", None)  # the caller's
        client = cast("_Client", self._client)
        body = {name: one for name, one in more.items() if not isinstance(one, Omit | NotGiven)} | (extra_body or {})
        headers = client.post_headers | (extra_headers or {})
        server, clock = client.servers.chosen, asyncio.get_running_loop().time
        url, begun = f"{server.url}/chat/completions", clock()
        try:
            posted = await client.connections.post(url, headers, _pieces(body))
        except OSError as error:
            server.lost(clock())
            timed_out = isinstance(error, TimeoutError)
            raise (
                APITimeoutError(_request(url)) if timed_out else APIConnectionError(request=_request(url))
            ) from error
        if posted.status in _TOO_BUSY:
            server.refused(clock(), begun)
        else:
            server.replied(clock())
        if posted.status >= _ERROR:
            raise _refusal(url, posted)
        return _completion(posted)


def _refusal(url: str, posted: Posted) -> APIStatusError:
    """The error that OpenAI's client raises for such a status."""
    said: object = posted.body.decode(errors="replace").strip()
    with suppress(ValueError):
        said = _read(posted.body)
    known = {name: one for name, one in posted.headers.items() if name != "content-encoding"}
    response = httpx2.Response(posted.status, headers=known, content=posted.body, request=_request(url))
    body = said.get("error", said) if isinstance(said, dict) else said
    return APIStatusError(f"Error code: {posted.status}", response=response, body=body)


def _request(url: str) -> httpx2.Request:
    return httpx2.Request("POST", url)


_LIBRARY_OPENS = "<think>"
"""The only mark of a thought that the model library knows. It drops such thoughts; all others stay in the text, where
answer formats and judges' replies are read without them."""


class _Message(ChatCompletionMessage):
    @field_validator("content", mode="before")
    @classmethod
    def _join(cls, content: object) -> object:
        """Some servers send a text in parts. A thought that the token limit cut off gets its closing tag: without it,
        the model library would take the thought for the answer."""
        if isinstance(content, list):
            texts = [one if isinstance(one, str) else one.get("text") for one in content if isinstance(one, str | dict)]
            content = "".join(text for text in texts if isinstance(text, str)) or None
        if isinstance(content, str) and _LIBRARY_OPENS in content and is_cut_thought(content):
            content += "</think>"
        return content


class _Choice(Choice):
    message: _Message
    finish_reason: Annotated[str, Field(min_length=1)]  # type: ignore[assignment]  # servers have words of their own


class _Completion(ChatCompletion):
    """A reply of a compatible server in the type of the model library, read in one step instead of three."""

    choices: list[_Choice]  # type: ignore[assignment]
    service_tier: str | None = None  # type: ignore[assignment]
    metadata: dict[str, Any] | None = None


def _completion(posted: Posted) -> ChatCompletion | str:
    """The reply, or its text if it is no JSON and does not claim to be. Raises `ValueError` for broken JSON, and
    `UnexpectedModelBehavior` for JSON that is no reply."""
    try:
        said = _read(posted.body)
    except ValueError:
        if posted.headers.get("content-type", "json").partition(";")[0].endswith("json"):
            raise
        return posted.body.decode(errors="replace")
    if not isinstance(said, dict):
        return str(said)
    if said.get("error") and not said.get("choices"):
        raise UnexpectedModelBehavior(f"an error under status {posted.status}: {told_in(said)}")
    said["created"] = said.get("created") or 0
    choices = said.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("finish_reason") is None:
            choice["finish_reason"] = "stop"
    try:
        return _Completion.model_validate(said)
    except ValidationError as error:
        raise UnexpectedModelBehavior("Invalid response from a compatible server") from error


def _read(body: bytes) -> Any:
    """JSON by the standard library: orjson refuses lone surrogates, which some servers send, and converts large integers
    to floats."""
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None

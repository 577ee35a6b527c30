"""Models behind servers that speak OpenAI's protocol: the model library builds requests and interprets replies, with a
faster serializer and a faster HTTP client in between: three quarters of the CPU time of an answer were theirs
(`bench/README.md`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Literal, TypedDict, cast

import httpx2
import orjson
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, NotGiven, Omit
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletion, ChatCompletionContentPartParam
from openai.types.chat.chat_completion import Choice
from pydantic import Field, ValidationError
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import BinaryContent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.usage import RequestUsage

from proctor.core.formats import is_cut_thought
from proctor.media import StoredPicture
from proctor.models.connections import ENCODINGS, BatchFolder, Connections, Posted
from proctor.models.endings import FAULT, FINISH_REASON, Ending, end_of_body
from proctor.models.faults import message_in
from proctor.models.reply import read_count
from proctor.models.servers import ModelServers

_ANSWERS = {200, 201, 203}
"""The statuses of answers. Others are errors: also 202 (not yet), 206 (a part), and those that HTTP does not know."""
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
        """The protocol's counts alone; the library would search for those of all providers. A count that is missing, or
        none, stays unknown."""
        told = cast("_Completion", response).counts
        details = told.get("prompt_tokens_details")
        given, made = read_count(told.get("prompt_tokens")), read_count(told.get("completion_tokens"))
        cached = read_count(details.get("cached_tokens")) if isinstance(details, dict) else 0
        return RequestUsage(
            input_tokens=given or 0,
            output_tokens=made or 0,
            cache_read_tokens=min(cached or 0, given or 0),
            unmeasured_requests=int(given is None or made is None),
        )

    def _process_provider_details(self, response: ChatCompletion) -> dict[str, Any]:
        told = cast("_Completion", response)
        found = {FAULT: told.fault, "logprobs": told.chances}
        return {FINISH_REASON: told.word} | {name: value for name, value in found.items() if value}

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
"""Marks where a picture stands in a body; it is random, so that no question can contain it."""


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
        if posted.status not in _ANSWERS:
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
    return APIStatusError(f"HTTP {posted.status:03d}, which is no answer", response=response, body=body)


def _request(url: str) -> httpx2.Request:
    return httpx2.Request("POST", url)


_LIBRARY_OPENS = "<think>"
"""The only mark of a thought that the model library knows. It drops such thoughts; all others stay in the text, where
answer formats and judges' replies are read without them."""


class _Choice(Choice):
    finish_reason: str | None  # type: ignore[assignment]  # servers have words of their own


class _Completion(ChatCompletion):
    """A reply of a compatible server in the type of the model library, with what the library would not keep: the
    server's word for its end, what it says of a fault, its counts, and token probabilities, as they came."""

    choices: list[_Choice]  # type: ignore[assignment]
    word: str = ""
    fault: str = ""
    counts: dict[str, Any] = Field(default_factory=dict)
    chances: list[Any] = Field(default_factory=list)


def _completion(posted: Posted) -> ChatCompletion | str:
    """The reply, or its text if it is no JSON and does not claim to be. Raises `ValueError` for broken JSON, and
    `UnexpectedModelBehavior` for JSON that is no reply.

    Only what a number hangs on decides whether it is one: the text, calls of tools, and how it ended. Labels and counts
    beside them (`id`, `object`, `created`, `index`, `role`, `usage` …) may be missing or of any type.
    """
    try:
        said = _read(posted.body)
    except ValueError:
        if posted.headers.get("content-type", "json").partition(";")[0].endswith("json"):
            raise
        return posted.body.decode(errors="replace")
    if not isinstance(said, dict):
        return str(said)
    if not said.get("choices"):
        told = message_in(said) if any(said.get(key) for key in ("error", "message", "detail")) else _base_resp(said)
        raise UnexpectedModelBehavior(
            f"an error under status {posted.status}: {told}" if told else "found no choices, expected one"
        )
    try:
        return _built(said)
    except ValidationError as error:
        raise UnexpectedModelBehavior("Invalid response from a compatible server") from error
    except ValueError as error:
        raise UnexpectedModelBehavior(str(error)) from None


def _base_resp(said: dict[str, Any]) -> str:
    """What MiniMax says of an error; "" for a body without it."""
    told = said.get("base_resp")
    return str(told.get("status_msg") or "") if isinstance(told, dict) and told.get("status_code") else ""


def _built(said: dict[str, Any]) -> _Completion:
    choices = said["choices"]
    choice = choices[0] if isinstance(choices, list) else None
    if not isinstance(choice, dict):
        raise _wrong("choices", choices, "a list of objects")
    end = end_of_body(said)
    message = choice.get("message")
    if message is None and end.ending is not Ending.FINISHED:
        message = {}  # such as one whose tokens went into thinking
    if not isinstance(message, dict):
        raise _wrong("message", message, "an object")
    text, refusal = _texts(message.get("content"))
    thoughts = {name: message[name] for name in _THOUGHTS if isinstance(message.get(name), str)}
    plain = {"role": "assistant", "content": text, "refusal": _told(message.get("refusal")) or refusal, **thoughts}
    if calls := [_call(call) for call in _list("tool_calls", message.get("tool_calls"))]:
        plain["tool_calls"] = calls
    model, counts, chances = said.get("model"), said.get("usage"), choice.get("logprobs")
    chances = chances.get("content") if isinstance(chances, dict) else None
    said_choice = {"index": 0, "finish_reason": end.word or None, "message": plain}
    return _Completion.model_validate(
        {
            "id": "",
            "object": "chat.completion",
            "created": 0,
            "model": model if isinstance(model, str) else "",
            "choices": [said_choice],
            "word": end.word,
            "fault": end.told,
            "counts": counts if isinstance(counts, dict) else {},
            "chances": chances if isinstance(chances, list) else [],
        }
    )


_THOUGHTS = ("reasoning", "reasoning_content")
_TEXT_PARTS = {None, "", "text", "output_text"}


def _wrong(location: str, found: object, expected: str) -> ValueError:
    shown = repr(found)
    return ValueError(f"{location}: found {shown if len(shown) <= 60 else shown[:59] + '…'}, expected {expected}")


def _list(location: str, found: object) -> list[Any]:
    if found and not isinstance(found, list):
        raise _wrong(location, found, "a list")
    return found if isinstance(found, list) else []


def _told(found: object) -> str | None:
    """What a server says, as text; None or an empty text for nothing."""
    return found if isinstance(found, str) else str(found) if found else None


def _texts(content: object) -> tuple[str | None, str | None]:
    """The text of a message and its refusal. Some servers send a text in parts; parts of other kinds are no answer."""
    texts: list[str] = []
    refusal = None
    for part in content if isinstance(content, list) else [] if content is None else [content]:
        text, kind = (part.get("text"), part.get("type")) if isinstance(part, dict) else (part, None)
        kind = kind if isinstance(kind, str) else None  # a label, see `_completion`
        if isinstance(part, dict) and kind == "refusal":
            refusal = _told(part.get("refusal")) or refusal
        elif isinstance(text, str) and kind in _TEXT_PARTS:
            texts.append(text)
        elif not isinstance(part, dict) or kind in _TEXT_PARTS or part is content:
            raise _wrong("content", part, "text")
    return _closed("".join(texts)) or None, refusal


def _closed(text: str) -> str:
    """A thought that the token limit cut off gets its closing tag: without it, the model library would take the thought
    for the answer."""
    return f"{text}</think>" if _LIBRARY_OPENS in text and is_cut_thought(text) else text


def _call(call: object) -> dict[str, Any]:
    """A call of a tool; its id and type may be missing, and its arguments may be an object instead of its text."""
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not (isinstance(call, dict) and isinstance(function, dict) and isinstance(name, str) and name):
        raise _wrong("tool_calls", call, "a call of a function")
    given = function.get("arguments")
    if not isinstance(given, str):
        given = json.dumps(given if isinstance(given, dict) else {}, ensure_ascii=False)
    known = call.get("id")
    plain = {"name": name, "arguments": given}
    return {"id": known if isinstance(known, str) else "", "type": "function", "function": plain}


def _read(body: bytes) -> Any:
    """JSON by the standard library: orjson refuses lone surrogates, which some servers send, and converts large integers
    to floats."""
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None

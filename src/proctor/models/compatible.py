"""Models behind servers that speak OpenAI's protocol: the model library makes the requests and reads the replies, and
between the two stand one serializer and one HTTP client, both chosen for their speed (decision 0064)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Literal, TypedDict, cast

import httpx2
import orjson
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, NotGiven, Omit
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletion, ChatCompletionContentPartParam
from pydantic_ai.messages import BinaryContent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from proctor.media import StoredPicture
from proctor.models.body_limit import ENCODINGS
from proctor.models.connections import Connections, Posted

_ERROR = 300  # the first status that is no reply of the model


class _VideoUrl(TypedDict):
    url: str


class _VideoPart(TypedDict):
    type: Literal["video_url"]
    video_url: _VideoUrl


class CompatibleModel(OpenAIChatModel):
    """Sends a video file as a `video_url` part with the bytes in it, which these servers know and OpenAI's own
    protocol does not. Every such server knows `max_tokens`, not all know its newer name; and they hold a reply to a
    JSON schema whatever the model, while tool calls need a switch on most."""

    _unsupported_file_inputs = frozenset()

    def __init__(
        self, name: str, url: str, key: str | None, http: httpx2.AsyncClient, connections: Connections
    ) -> None:
        client = _Client(url, key or "api-key-not-set", http, connections)
        profile = OpenAIModelProfile(
            openai_chat_supports_max_completion_tokens=False,
            supports_json_schema_output=True,
            supports_video_input=True,
        )
        # The price list looks for providers' names within this name: with "openai" in it, a local server would be
        # priced as OpenAI.
        super().__init__(name, provider=OpenAICompatibleProvider("compatible", openai_client=client, profile=profile))
        self.connections = connections

    async def _map_binary_content_item(self, item: BinaryContent) -> ChatCompletionContentPartParam:
        if item.is_video:
            part: _VideoPart = {"type": "video_url", "video_url": {"url": item.data_uri}}
            return cast("ChatCompletionContentPartParam", part)
        if item.is_image and item.vendor_metadata is None:
            url = cast("str", _data_uri(item))
            return {"type": "image_url", "image_url": {"url": url}}
        return await super()._map_binary_content_item(item)


def _data_uri(item: BinaryContent) -> orjson.Fragment:
    """A picture as JSON already: it is neither looked through for what needs an escape, nor encoded for each
    question that shows it."""
    encoded = item.data.base64 if isinstance(item.data, StoredPicture) else item.base64.encode()
    return orjson.Fragment(b'"data:%b;base64,%b"' % (item.media_type.encode(), encoded))


class _Client(AsyncOpenAI):
    def __init__(self, url: str, key: str, http: httpx2.AsyncClient, connections: Connections) -> None:
        super().__init__(base_url=url, api_key=key, http_client=http)
        self.connections = connections
        self.post_url = f"{url}/chat/completions"
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
    """Sends a request as it is, and gives the reply as it comes. OpenAI's client would compare each part of a message
    with every type that it knows, and its HTTP client look at each connection for each request."""

    async def create(self, *, extra_body: Any = None, extra_headers: Any = None, **more: Any) -> Any:
        more.pop("timeout", None)  # the caller's
        client = cast("_Client", self._client)
        body = {name: one for name, one in more.items() if not isinstance(one, Omit | NotGiven)} | (extra_body or {})
        headers = client.post_headers | (extra_headers or {})
        try:
            posted = await client.connections.post(client.post_url, headers, orjson.dumps(body))
        except TimeoutError as error:
            raise APITimeoutError(_request(client.post_url)) from error
        except OSError as error:
            raise APIConnectionError(request=_request(client.post_url)) from error
        if posted.status >= _ERROR:
            raise _refusal(client.post_url, posted)
        return _completion(posted)


def _refusal(url: str, posted: Posted) -> APIStatusError:
    """The error that OpenAI's client makes of such a status."""
    said: object = posted.body.decode(errors="replace").strip()
    with suppress(ValueError):
        said = _read(posted.body)
    known = {name: one for name, one in posted.headers.items() if name != "content-encoding"}
    response = httpx2.Response(posted.status, headers=known, content=posted.body, request=_request(url))
    body = said.get("error", said) if isinstance(said, dict) else said
    return APIStatusError(f"Error code: {posted.status}", response=response, body=body)


def _request(url: str) -> httpx2.Request:
    return httpx2.Request("POST", url)


def _completion(posted: Posted) -> ChatCompletion | str:
    """The reply as the model library expects it: any JSON object, which it examines itself; a text for what is none."""
    try:
        said = _read(posted.body)
    except ValueError:
        if posted.headers.get("content-type", "json").partition(";")[0].endswith("json"):
            raise
        return posted.body.decode(errors="replace")
    return ChatCompletion.construct(**said) if isinstance(said, dict) else str(said)


def _read(body: bytes) -> Any:
    """JSON as Python reads it: orjson would refuse half characters, which some servers write, and make fractions of large
    integers."""
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None

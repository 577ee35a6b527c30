"""A model's server without a network: replies in the time of the test's own clock (see `virtual_time`)."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel

from proctor.models.compatible import CompatibleModel
from proctor.models.connections import Connections, Posted


@dataclass(frozen=True)
class Outcome:
    """What becomes of one request: this many seconds of waiting, then a status with its headers and a body,
    whose second half comes after `body_s`, or, with `resets`, no reply at all."""

    after_s: float = 0.0
    status: int = 200
    retry_after_s: float | None = None
    body_s: float = 0.0
    resets: bool = False


GOOD = Outcome()
HANG = Outcome(after_s=math.inf)


class _Trickle(httpx2.AsyncByteStream):
    def __init__(self, body: bytes, pause_s: float) -> None:
        self._body = body
        self._pause_s = pause_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        half = len(self._body) // 2
        yield self._body[:half]
        await _wait(self._pause_s)
        yield self._body[half:]


async def _wait(seconds: float) -> None:
    await (asyncio.Event().wait() if math.isinf(seconds) else asyncio.sleep(seconds))


def _body(text: str) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps(whole | {"usage": usage}).encode()


def answer_by_script(
    monkeypatch: pytest.MonkeyPatch, script: Sequence[Outcome], text: str = "Answer: B"
) -> list[Outcome]:
    """Every `ModelClient` made from now on gets these outcomes, one for each request. Returns those to come."""
    left = list(script)

    async def handle(request: httpx2.Request) -> httpx2.Response:
        outcome = left.pop(0)
        await _wait(outcome.after_s)
        if outcome.resets:
            raise httpx2.ReadError("reset", request=request)
        headers = {"Content-Type": "application/json"}
        if outcome.retry_after_s is not None:
            headers["Retry-After"] = f"{outcome.retry_after_s:g}"
        if outcome.status != 200:
            error = {"error": {"message": "Rate limit reached", "type": "error", "code": "rate_limit_exceeded"}}
            return httpx2.Response(outcome.status, headers=headers, json=error)
        return httpx2.Response(200, headers=headers, stream=_Trickle(_body(text), outcome.body_s))

    async def post(_: Connections, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Posted:
        try:
            response = await handle(httpx2.Request("POST", url, headers=dict(headers), content=b"".join(body)))
        except httpx2.ReadError as error:
            raise ConnectionError("reset") from error
        return Posted(response.status_code, {**response.headers}, await response.aread())

    def client(timeout_s: float) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(handle), timeout=timeout_s)

    monkeypatch.setattr("proctor.models.provider.http_client", client)
    monkeypatch.setattr(Connections, "post", post)
    return left


TRANSPORTS = ("own", "library")


def choose_transport(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """`library` has compatible servers asked as the model library asks all others: by OpenAI's client and httpx2."""
    if which == "library":
        for name in ("_validate_completion", "_map_usage", "_process_provider_details"):
            monkeypatch.setattr(CompatibleModel, name, getattr(OpenAIChatModel, name))
        monkeypatch.setattr("proctor.models.compatible._Client.chat", AsyncOpenAI.chat)
        monkeypatch.setattr("proctor.models.compatible._data_uri", lambda item: item.data_uri)

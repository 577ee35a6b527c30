"""A real HTTP server on localhost that speaks OpenAI's chat completions and transcriptions, and breaks on purpose.

`FaultyServer` runs it in a thread for tests; `faulty_server(...)` runs it in a process of its own for
benchmarks, and `python -m tests.support.faulty_server --port 0 --faults 0.3 --seed 1` by hand.
Which request gets which fault is either scripted (in the order of arrival) or drawn with a seed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, cast

from aiohttp import web

from proctor.core import generator


class Fault(StrEnum):
    """One way to break, named as on the command line."""

    RATE_LIMIT = "429"
    RATE_LIMIT_WITH_DELAY = "429-retry-after"
    QUOTA = "429-quota"
    SERVER_ERROR = "500"
    UNAVAILABLE = "503"
    RESET = "reset"
    HANG = "hang"
    SLOW_BODY = "slow-body"
    CUT_OFF = "cut-off"
    TRUNCATED_JSON = "truncated-json"
    WRONG_TYPES = "wrong-types"
    EMPTY_CHOICES = "empty-choices"
    EMPTY_CONTENT = "empty-content"
    NOT_JSON = "not-json"
    ERROR_AS_SUCCESS = "error-as-200"
    BAD_REQUEST = "400"
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    NOT_FOUND = "404"
    TOO_LARGE = "413"
    CONTEXT = "400-context"
    POLICY = "400-policy"
    PARAMETER = "400-parameter"
    NO_REASON = "400-no-reason"
    CONTENT_FILTER = "content-filter"
    REFUSAL = "refusal"
    LENGTH = "length"


TRANSIENT = (
    Fault.RATE_LIMIT,
    Fault.RATE_LIMIT_WITH_DELAY,
    Fault.SERVER_ERROR,
    Fault.UNAVAILABLE,
    Fault.RESET,
    Fault.HANG,
    Fault.CUT_OFF,
    Fault.TRUNCATED_JSON,
    Fault.WRONG_TYPES,
    Fault.EMPTY_CHOICES,
)
"""The infrastructure errors that another try may get over."""

AT_ONCE = tuple(fault for fault in TRANSIENT if fault is not Fault.HANG)
"""Those of them that need no time-out to be noticed: what a call takes on a busy machine decides nothing."""

_STATUS: dict[Fault, tuple[int, str, str]] = {
    Fault.RATE_LIMIT: (429, "rate_limit_exceeded", "Rate limit reached"),
    Fault.RATE_LIMIT_WITH_DELAY: (429, "rate_limit_exceeded", "Rate limit reached"),
    Fault.QUOTA: (429, "insufficient_quota", "You exceeded your current quota"),
    Fault.SERVER_ERROR: (500, "server_error", "The server had an error"),
    Fault.UNAVAILABLE: (503, "service_unavailable", "The engine is loading"),
    Fault.BAD_REQUEST: (400, "invalid_value", "The video is too short"),
    Fault.UNAUTHORIZED: (401, "invalid_api_key", "Incorrect API key provided: {key}"),
    Fault.FORBIDDEN: (403, "forbidden", "No access for key {key}"),
    Fault.NOT_FOUND: (404, "model_not_found", "The model does not exist"),
    Fault.TOO_LARGE: (413, "too_large", "The request is too large"),
    Fault.CONTEXT: (400, "context_length_exceeded", "40000 tokens are more than it takes"),
    Fault.POLICY: (400, "content_policy_violation", "Your request was rejected"),
    Fault.PARAMETER: (400, "unsupported_parameter", "top_k is not known here"),
    Fault.NO_REASON: (400, "bad_request", "Bad request"),
}

_HANGS_S = 600.0  # a guard against a server that does not start or end; no property
_FINISH = {Fault.CONTENT_FILTER: "content_filter", Fault.LENGTH: "length"}


def _wrong_bodies(good: dict[str, Any]) -> list[Any]:
    """Replies that are JSON, and are not a chat completion."""
    choice = good["choices"][0]
    return [
        good | {"choices": "none"},
        good | {"choices": [choice | {"message": None}]},
        good | {"choices": [choice | {"message": {"role": "assistant", "content": 42}}]},
        good | {"choices": {"0": choice}},
        good | {"usage": "many"},
        [good],
        "Answer: B",
        2,
        None,
        {},
    ]


@dataclass(frozen=True)
class Request:
    """What one request asked for, and how it was treated."""

    model: str
    texts: tuple[str, ...]
    image_bytes: tuple[int, ...]
    size: int
    body: dict[str, Any] = field(repr=False)
    fault: Fault | None = None

    @property
    def text(self) -> str:
        """All its text, from the system's to the last of the user's."""
        return "\n".join(self.texts)


@dataclass(frozen=True)
class Tokens:
    """A reply token by token, each with the probabilities of what could have stood there; they are sent to
    those that ask for them. A token without alternatives is certain."""

    said: Sequence[tuple[str, dict[str, float]]]

    @property
    def text(self) -> str:
        """The whole reply."""
        return "".join(token for token, _ in self.said)

    @property
    def logprobs(self) -> dict[str, Any]:
        """As the protocol has them."""
        return {"content": [_token(token, others or {token: 1.0}) for token, others in self.said]}


def _token(token: str, others: dict[str, float]) -> dict[str, Any]:
    def one(text: str) -> dict[str, Any]:
        chance = others.get(text, 0.0)
        return {"token": text, "bytes": list(text.encode()), "logprob": math.log(chance) if chance > 0 else -9999.0}

    likely = sorted(others, key=lambda text: -others[text])
    return one(token) | {"top_logprobs": [one(text) for text in likely]}


@dataclass(frozen=True)
class Calls:
    """A reply that calls tools, by name and with arguments (JSON or any text), beside what it says."""

    calls: Sequence[tuple[str, Any]]
    text: str = ""

    @property
    def message(self) -> dict[str, Any]:
        """As the protocol has them."""
        made = [
            {
                "id": f"call-{number}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for number, (name, given) in enumerate(self.calls)
        ]
        return {"content": self.text or None, "tool_calls": made}


@dataclass(frozen=True)
class Rejects:
    """A reply that rejects the request, with an error's status and body."""

    status: int
    body: Any


@dataclass(frozen=True)
class Cut:
    """A reply that the token limit ended."""

    text: str


Reply = str | Callable[[Request], str | Tokens | Calls | Rejects | Cut]


class FaultyServer:
    """The server, in a thread of its own while inside `with`.

    `reply` is the text of a good answer, or a function of the request. `script` says what happens to the
    first requests in the order of their arrival (None is a good answer), `faults` is the share of all later
    ones that break, each in one of `kinds`, drawn with `seed`; it may be changed meanwhile (0: healed).
    Each reply takes `latency_s`; those after the first `holds_after` wait until `release()`. `requests` is what came
    (up to `keep`), `count` how many.
    """

    def __init__(
        self,
        reply: Reply = "Answer: A",
        *,
        script: Sequence[Fault | None] = (),
        faults: float = 0.0,
        kinds: Sequence[Fault] = TRANSIENT,
        seed: int = 0,
        keep: int = 10_000,
        **options: float,
    ) -> None:
        self.requests: list[Request] = []
        self.count = 0
        self.retry_after_s = options.pop("retry_after_s", 1.0)
        self.hang_s = options.pop("hang_s", 3600.0)
        self.slow_s = options.pop("slow_s", 3600.0)
        self.latency_s = options.pop("latency_s", 0.0)
        self.holds_after: float = options.pop("holds_after", math.inf)
        self.cached_tokens = int(options.pop("cached_tokens", 0))
        self._wanted_port = int(options.pop("port", 0))
        if options:
            raise TypeError(f"unknown options: {', '.join(options)}")
        self._reply = reply
        self._script = list(script)
        self.faults = faults
        self._kinds = tuple(kinds)
        self._draw = generator(seed, "faults")
        self._keep = keep
        self._wrong = 0
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """Where it listens: another one started there afterwards is the same server, come back."""
        return self._port

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def _stopping(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    def release(self) -> None:
        """Lets all replies go that are held, and holds none from now on."""
        self.holds_after = math.inf

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: self._loop.run_until_complete(self.serve(self._wanted_port, ready.set)), daemon=True
        )
        self._thread.start()
        if not ready.wait(_HANGS_S):
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        if self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_HANGS_S)
        self._loop.close()

    async def serve(self, port: int = 0, on_ready: Callable[[], object] = lambda: None) -> None:
        """Serves until stopped."""
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=256 * 2**20)
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/v1/audio/transcriptions", self._hear)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
        await site.start()
        server = cast("asyncio.Server", site._server)
        self._port = server.sockets[0].getsockname()[1]
        on_ready()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        raw = await http.read()
        return await self._treat(http, _read(json.loads(raw), len(raw), self._next_fault()), self._completion)

    async def _hear(self, http: web.Request) -> web.StreamResponse:
        """`reply` is the whole body here; the request's has the fields as lists, and the file's bytes."""
        body: dict[str, Any] = {"headers": dict(http.headers)}
        fence = b"--" + http.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
        for part in (await http.read()).split(fence)[1:-1]:
            head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
            name, content = head.decode().partition('name="')[2].partition('"')[0], content.removesuffix(b"\r\n")
            if name == "file":
                body["file"] = content
            else:
                body.setdefault(name, []).append(content.decode())
        request = Request(body["model"][0], (), (), len(body["file"]), body, self._next_fault())
        return await self._treat(http, request, self._said)

    def _said(self, request: Request) -> str:
        said = self._reply if isinstance(self._reply, str) else self._reply(request)
        assert not isinstance(said, Rejects)
        return said if isinstance(said, str) else said.text

    async def _treat(
        self, http: web.Request, request: Request, good: Callable[[Request], dict[str, Any] | str | Rejects]
    ) -> web.StreamResponse:
        self.count += 1
        if len(self.requests) < self._keep:
            self.requests.append(request)
        fault = request.fault
        row = self.count
        if self.latency_s:
            await self._pause(self.latency_s)
        while row > self.holds_after and not self._stopping:  # noqa: ASYNC110 (told from another thread)
            await asyncio.sleep(0.005)
        if fault in _STATUS:
            return self._refuse(fault, http)
        if fault is Fault.RESET:
            _reset(http)
        if fault is Fault.HANG:
            await self._pause(self.hang_s)
        made = good(request)
        if isinstance(made, Rejects):
            return web.json_response(made.body, status=made.status)
        return await self._send(http, fault, made)

    def _next_fault(self) -> Fault | None:
        if self._script:
            return self._script.pop(0)
        if self.faults and self._draw.random() < self.faults:
            return self._kinds[int(self._draw.integers(len(self._kinds)))]
        return None

    def _refuse(self, fault: Fault, http: web.Request) -> web.Response:
        status, code, message = _STATUS[fault]
        key = http.headers.get("Authorization", "").removeprefix("Bearer ")
        delay = {"Retry-After": f"{self.retry_after_s:g}"} if fault is Fault.RATE_LIMIT_WITH_DELAY else None
        error = {"error": {"message": message.format(key=key), "type": "error", "code": code}}
        return web.json_response(error, status=status, headers=delay)

    def _completion(self, request: Request) -> dict[str, Any] | Rejects:
        fault = request.fault
        reply = self._reply if isinstance(self._reply, str) else self._reply(request)
        if isinstance(reply, Rejects):
            return reply
        text = reply if isinstance(reply, str) else reply.text
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if isinstance(reply, Calls):
            message |= reply.message
        if fault is Fault.EMPTY_CONTENT:
            message["content"] = ""
        if fault is Fault.CONTENT_FILTER:
            message["content"] = None
        if fault is Fault.REFUSAL:
            message |= {"content": None, "refusal": "I can't help with that."}
        choice: dict[str, Any] = {"index": 0, "finish_reason": _FINISH.get(fault, "stop") if fault else "stop"}
        if isinstance(reply, Cut):
            choice["finish_reason"] = "length"
        if isinstance(reply, Tokens) and request.body.get("logprobs"):
            choice |= {"logprobs": reply.logprobs}
        prompt_tokens = sum(len(said) for said in request.texts) // 4 + 85 * len(request.image_bytes)
        prompt_tokens += self.cached_tokens
        completion_tokens = len(text) // 4 + 1
        return {
            "id": f"chatcmpl-{self.count}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": request.model,
            "choices": [] if fault is Fault.EMPTY_CHOICES else [choice | {"message": message}],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
                "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            },
        }

    async def _send(
        self, http: web.Request, fault: Fault | None, completion: dict[str, Any] | str
    ) -> web.StreamResponse:
        if fault is Fault.WRONG_TYPES and isinstance(completion, dict):
            wrong = _wrong_bodies(completion)
            self._wrong += 1
            return web.json_response(wrong[(self._wrong - 1) % len(wrong)])
        if fault is Fault.ERROR_AS_SUCCESS:
            return web.json_response({"error": {"message": "upstream failed", "code": 502}})
        body = (completion if isinstance(completion, str) else json.dumps(completion)).encode()
        if fault is Fault.NOT_JSON:
            return web.Response(text="<html>Bad gateway</html>", content_type="text/html")
        if fault is Fault.TRUNCATED_JSON:
            body = body[: len(body) // 2]
        if fault in {Fault.SLOW_BODY, Fault.CUT_OFF}:
            return await self._trickle(http, fault, body)
        return web.Response(body=body, content_type="application/json")

    async def _trickle(self, http: web.Request, fault: Fault, body: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(body)
        await response.prepare(http)
        with contextlib.suppress(ConnectionError):
            await response.write(body[:20])
            if fault is Fault.CUT_OFF:
                if http.transport is not None:
                    http.transport.close()
                return response
            steps = 50
            for step in range(steps):
                await self._pause(self.slow_s / steps)
                await response.write(body[20 + step : 21 + step])
            await response.write(body[20 + steps :])
        return response

    async def _pause(self, seconds: float) -> None:
        assert self._stop is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)


def _read(body: dict[str, Any], size: int, fault: Fault | None) -> Request:
    texts: list[str] = []
    images: list[int] = []
    for message in body.get("messages", []):
        content = message.get("content") or []
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            if part["type"] == "text":
                texts.append(part["text"])
            elif part["type"] == "image_url":
                encoded = part["image_url"]["url"].partition(",")[2]
                images.append(len(encoded) * 3 // 4 - encoded[-2:].count("="))
    return Request(str(body.get("model")), tuple(texts), tuple(images), size, body, fault)


def _reset(http: web.Request) -> None:
    """Closes the connection with a RST, as a crashed peer does."""
    transport = http.transport
    if transport is not None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


@contextlib.contextmanager
def faulty_server(*arguments: str) -> Iterator[str]:
    """The server in a process of its own, with these command-line arguments; gives its base URL."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "tests.support.faulty_server", "--port", "0", *arguments]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def main() -> None:
    """Serves from the command line until it is told to stop; its first line is the base URL."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--faults", type=float, default=0.0, help="share of the requests that break, 0 to 1")
    parser.add_argument("--kinds", nargs="*", type=Fault, default=TRANSIENT, choices=list(Fault))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--text", default="Answer: A", help="what it answers")
    parser.add_argument("--hang", type=float, default=3600.0, help="seconds that a hanging request takes")
    given = parser.parse_args()
    server = FaultyServer(
        given.text, faults=given.faults, kinds=given.kinds, seed=given.seed, keep=0, hang_s=given.hang
    )

    def announce() -> None:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(given.port, on_ready=announce))


if __name__ == "__main__":
    main()

"""A server on localhost that speaks Anthropic's or Google's protocol, by a script, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

JSON, EVENTS = "application/json", "text/event-stream"


@dataclass(frozen=True)
class Said:
    """One reply: a status, a body (what is no bytes is sent as JSON) and headers."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class ProviderServer:
    """The server, in threads of its own while inside `with`. It says `good` after what is in `script`; a message of
    Anthropic's to those that want a stream as events."""

    def __init__(self, good: dict[str, Any], script: Sequence[Said] = ()) -> None:
        self.good = good
        self.script = list(script)
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _reply(self, asked: Asked) -> tuple[Said, str]:
        with self._lock:
            self.asked.append(asked)
            said = self.script.pop(0) if self.script else Said(self.good)
        if asked.body.get("stream") and isinstance(said.body, dict) and said.body.get("type") == "message":
            return Said(events(said.body), said.status, said.headers), EVENTS
        return said, EVENTS if isinstance(said.body, bytes) else JSON

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        reply = self._reply

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                said, kind = reply(Asked(self.path, dict(self.headers), json.loads(raw)))
                sent = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
                self.send_response(said.status)
                for name, value in {"content-type": kind, "content-length": str(len(sent)), **said.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        return Handler


def message(text: str = "Answer: A", stop: str = "end_turn", **changes: Any) -> dict[str, Any]:
    """A message of Anthropic's: 170 tokens in, 50 of them read from the cache and 20 written to it, 5 tokens out."""
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5-20251101",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 50,
            "output_tokens": 5,
        },
        **changes,
    }


def events(whole: dict[str, Any], until: str = "", then: Sequence[dict[str, Any]] = ()) -> bytes:
    """A message of Anthropic's as the events of a stream. It breaks off before the first event of the kind `until`; the
    events in `then` follow."""
    usage = whole["usage"]
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    made: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        delta = {"type": f"{kind}_delta", kind: block[kind]}
        made.append({"type": "content_block_start", "index": index, "content_block": {**block, kind: ""}})
        made.append({"type": "content_block_delta", "index": index, "delta": delta})
        made.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    made.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}})
    made.append({"type": "message_stop"})
    kinds = [one["type"] for one in made]
    made = made[: kinds.index(until)] if until else made
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in [*made, *then]).encode()


def anthropic_error(kind: str, said: str) -> dict[str, Any]:
    """An error of Anthropic's."""
    return {"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_011CS"}


def candidate(text: str | None = "Answer: A", finish: str = "STOP", **changes: Any) -> dict[str, Any]:
    """A response of Google's: 150 tokens in, 50 of them from the cache, 5 tokens out after 40 of thinking."""
    said = {} if text is None else {"content": {"role": "model", "parts": [{"text": text}]}}
    return {
        "candidates": [{**said, "finishReason": finish, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 150,
            "cachedContentTokenCount": 50,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 40,
            "totalTokenCount": 195,
        },
        "modelVersion": "gemini-2.5-pro",
        **changes,
    }


def google_error(code: int, status: str, said: str, *details: dict[str, Any]) -> dict[str, Any]:
    """An error of Google's."""
    return {"error": {"code": code, "status": status, "message": said, "details": list(details)}}

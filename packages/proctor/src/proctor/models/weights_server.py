"""A local server with OpenAI's chat completions protocol, to check weights as they are served.

It answers one question at a time by greedy decoding, with the probabilities of alternatives. For production use vLLM or
another server.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from proctor.core import InputError, ProctorError
from proctor.models.queries import Choices, Query
from proctor.models.weights import Weights

_MAX_BODY = 64 * 2**20
_LISTED = 20
_IMPOSSIBLE = -9999.0
_HANGS_S = 600.0


class WeightsServer:
    """Serves loaded weights under `url` inside `with`, to this machine only."""

    def __init__(self, weights: Weights, name: str) -> None:
        lock = threading.Lock()

        class Handler(_Handler):
            def reply(self, body: dict[str, Any]) -> dict[str, Any]:
                with lock:  # weights are for one thread
                    return _completion(weights, name, body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The base URL of an OpenAI client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(_HANGS_S)
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or -1)
        if self.path != "/v1/chat/completions" or not 0 <= size <= _MAX_BODY:
            self._send(404 if size >= 0 else 411, _error("no such page, or a body that is too large"))
            return
        try:
            status, said = 200, self.reply(json.loads(self.rfile.read(size)))
        except (ValueError, LookupError, TypeError, AttributeError, ProctorError) as error:
            status, said = 400, _error(str(error))
        self._send(status, said)

    def _send(self, status: int, said: dict[str, Any]) -> None:
        raw = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}


def _completion(weights: Weights, name: str, body: dict[str, Any]) -> dict[str, Any]:
    query = _query(body)
    asked, said, stopped = _likeliest(weights, query)
    text = "".join(token for token, _ in said)
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop" if stopped else "length"}
    if body.get("logprobs"):
        choice["logprobs"] = {"content": [_listed(token, others) for token, others in said]}
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": name,
        "choices": [choice | {"message": {"role": "assistant", "content": text}}],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": len(said) + stopped,
            "total_tokens": asked + len(said) + stopped,
        },
    }


def _query(body: dict[str, Any]) -> Query:
    """The query of a request. Raises `InputError` for content other than texts and pictures."""
    system: list[str] = []
    parts: list[str | bytes | Any] = []
    for message in body["messages"]:
        content = message["content"]
        some: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "system":
            system += [one["text"] for one in some]
            continue
        if message["role"] != "user":
            raise InputError("request", "messages", found=repr(message["role"]), expected="system or user")
        for one in some:
            if one["type"] == "text":
                parts.append(str(one["text"]))
            elif one["type"] == "image_url":
                parts.append(_picture(str(one["image_url"]["url"])))
            else:
                raise InputError("request", "messages", found=repr(one["type"]), expected="text or image_url")
    return Query("\n\n".join(system), tuple(parts), Choices(max_tokens=int(body.get("max_tokens") or 512)))


def _picture(url: str) -> bytes:
    """The bytes that a `data:` URL holds; nothing is fetched."""
    head, comma, coded = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64") and comma):
        raise InputError("request", "image_url", found=repr(url[:40]), expected="a data: URL with a picture")
    try:
        return base64.b64decode(coded, validate=True)
    except binascii.Error as error:
        raise InputError("request", "image_url", found="no base64", expected="a picture") from error


Alternatives = dict[str, float]


def _likeliest(weights: Weights, query: Query) -> tuple[int, list[tuple[str, Alternatives]], bool]:
    """The number of input tokens, the greedy reply token by token with the log-probabilities of alternatives, and
    whether the model ended it."""
    import torch

    inputs = weights.prompts([query])
    with torch.inference_mode():
        made = weights.model.generate(
            **inputs,
            max_new_tokens=query.choices.max_tokens,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            output_logits=True,
            return_dict_in_generate=True,
        )
    asked = inputs["input_ids"].shape[1]
    ids: list[int] = made.sequences[0, asked:].tolist()
    said: list[tuple[str, Alternatives]] = []
    shown = ""
    for position, (token, logits) in enumerate(zip(ids, made.logits, strict=True)):
        if token in weights.ends:
            return asked, said, True
        likely = logits[0].float().log_softmax(dim=-1).topk(min(_LISTED, logits.shape[-1]))
        others: Alternatives = {}
        for other, chance in zip(likely.indices.tolist(), likely.values.tolist(), strict=True):
            text = weights.tokenizer.decode([*ids[:position], other]).removeprefix(shown)
            others[text] = max(others.get(text, -math.inf), chance)
        now = weights.tokenizer.decode(ids[: position + 1])
        said.append((now.removeprefix(shown), others))
        shown = now
    return asked, said, False


def _listed(token: str, others: Alternatives) -> dict[str, Any]:
    def one(text: str) -> dict[str, Any]:
        return {"token": text, "bytes": list(text.encode()), "logprob": others.get(text, _IMPOSSIBLE)}

    return one(token) | {"top_logprobs": [one(text) for text in others]}

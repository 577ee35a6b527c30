"""A server that costs next to nothing: it counts the bytes of each request and sends one fixed reply.

What a client reaches against it is the client's own limit. It reads no request, so it is no test double:
for that there is `tests/support/faulty_server.py`. Its first line of output is its port.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys

REPLY = "Answer: 3"
_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)


def _response() -> bytes:
    body = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "local",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": REPLY}}],
            "usage": {"prompt_tokens": 120, "completion_tokens": 4, "total_tokens": 124},
        }
    ).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class _Connection(asyncio.Protocol):
    """One client: a head, then as many bytes as it announced, then the reply; again and again."""

    def __init__(self, response: bytes) -> None:
        self._response = response
        self._head = b""
        self._left = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if not self._left:
            self._head += data
            head, found, rest = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            announced = _LENGTH.search(head)
            assert announced is not None, "a request without Content-Length"
            self._left, self._head, data = int(announced[1]), b"", rest
        self._left -= len(data)
        if self._left == 0:
            self._transport.write(self._response)


async def _serve() -> None:
    response = _response()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(response), "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve())

"""A server that answers every request with the bytes that it is told to send, whatever they are."""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from aiohttp import web

Body = bytes | Iterable[bytes]
_HANGS_S = 600.0  # a guard against a server that does not start or end; no property


def completion(text: str, **usage: int) -> bytes:
    """The body of a good reply with this text, and with this usage where any is given."""
    message = {"role": "assistant", "content": text}
    body: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    return json.dumps(body | ({"usage": usage} if usage else {})).encode()


@contextlib.contextmanager
def raw_server(
    reply: Callable[[dict[str, Any]], Body], *, headers: dict[str, str] | None = None, status: int = 200
) -> Iterator[str]:
    """The server, in a thread of its own; gives its base URL. `reply` makes a body of what was asked: bytes, or pieces
    that are sent one after the other until the client goes away."""

    async def answer(http: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={"Content-Type": "application/json", **(headers or {})})
        await response.prepare(http)
        body = reply(json.loads(await http.read()))
        with contextlib.suppress(ConnectionError):
            for piece in [body] if isinstance(body, bytes) else body:
                await response.write(piece)
        return response

    ready: queue.Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = queue.Queue()

    async def serve() -> None:
        app = web.Application(client_max_size=2**28)
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        stop = asyncio.Event()
        ready.put((asyncio.get_running_loop(), stop, int(runner.addresses[0][1])))
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    loop, stop, port = ready.get(timeout=_HANGS_S)
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(_HANGS_S)

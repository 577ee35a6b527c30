"""A site that is served by uvicorn in this process, for browsers and for clients that need a real connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

_HANGS_S = 600.0  # a guard, no property of the server


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The address at which an ASGI app is served, in a thread of its own, while the block lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(_HANGS_S)
            assert not thread.is_alive(), "a request that does not end"

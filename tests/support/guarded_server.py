"""A guarded server in a thread of this process, whose clock a test moves, and raw sockets to it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn

from proctor_web.app import create_app
from proctor_web.connections import ConnectionLimits, ConnectionStage, Guard, GuardedServer
from proctor_web.site import Site, upload_limit

_HANGS_S = 60.0


@dataclass
class Ahead:
    """Instead of the module `time`: a clock that only a test moves on."""

    ahead: float = 0.0

    def monotonic(self) -> float:
        return self.ahead


@dataclass
class Served:
    """A server that runs. `guard` belongs to its event loop: look at it by `within`."""

    port: int
    guard: Guard
    loop: asyncio.AbstractEventLoop
    clock: Ahead
    server: GuardedServer
    sockets: list[socket.socket] = field(default_factory=list)

    @property
    def tally(self) -> Counter[str]:
        """What was closed and refused, by reason."""
        return self.guard.tally

    def opened(self, *parts: bytes, source: str = "127.0.0.1") -> socket.socket:
        """A connection from an address of this machine, on which the parts were sent."""
        made = socket.create_connection(("127.0.0.1", self.port), _HANGS_S, (source, 0))
        self.sockets.append(made)
        for part in parts:
            made.sendall(part)
        return made

    def within(self, act: Callable[[], object]) -> None:
        """Does something in the server's event loop, and returns when it is done."""
        done = threading.Event()

        def acted() -> None:
            act()
            done.set()

        self.loop.call_soon_threadsafe(acted)
        assert done.wait(_HANGS_S)

    def stages(self) -> list[ConnectionStage]:
        """What the connections wait for."""
        found: list[ConnectionStage] = []
        self.within(lambda: found.extend(one.progress(self.clock.monotonic()).stage for one in self.guard))
        return found

    def pass_by(self, seconds: float) -> None:
        """Lets the guard look now, and again after so many seconds."""
        self.within(lambda: self.guard.sweep(self.clock.monotonic()))
        self.clock.ahead += seconds
        self.within(lambda: self.guard.sweep(self.clock.monotonic()))

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits until the server has noticed what a test did."""
        end = time.monotonic() + _HANGS_S
        while not holds():
            assert time.monotonic() < end, dict(self.tally)
            time.sleep(0.005)


@contextmanager
def guarded(site: Site, *, tls: tuple[Path, Path] | None = None, **limits: int) -> Iterator[Served]:
    """Serves a site within limits, by default 40 connections, 20 of one address."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.bind(("127.0.0.1", 0))
    opened.listen(128)
    cert, key = tls or (None, None)
    app = create_app(site)
    config = uvicorn.Config(
        app, log_config=None, lifespan="off", ws="none", access_log=False, ssl_certfile=cert, ssl_keyfile=key
    )
    config.load()
    guard = Guard(ConnectionLimits(**{"connections": 40, "per_address": 20} | limits), app.state.tally)
    server = GuardedServer(config, guard, lambda path: upload_limit(site, path) is not None)
    loop, clock = asyncio.new_event_loop(), Ahead()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve([opened])), daemon=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("proctor_web.connections.time", clock)
        thread.start()
        served = Served(opened.getsockname()[1], guard, loop, clock, server)
        served.until(lambda: server.started)
        try:
            yield served
        finally:
            for one in served.sockets:
                one.close()
            server.should_exit = server.force_exit = True
            thread.join(_HANGS_S)
            assert not thread.is_alive()
            loop.close()


def read_all(opened: socket.socket) -> bytes:
    """What comes until the other end closes; a reset ends it, too."""
    found = b""
    try:
        while piece := opened.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def without_checks() -> ssl.SSLContext:
    """A client's context for a certificate that nobody signed."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

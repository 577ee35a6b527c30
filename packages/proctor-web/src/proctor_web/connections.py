"""Connections of a server that may face the internet: how many there are, from where, and how long each may take.

uvicorn limits none of this (its issue 157), and when file descriptors run out, asyncio's accept loop logs a traceback
per try (CPython's issue 151615). So the server takes its connections in itself (`Listener`), before TLS, and a `Guard`
looks at each of them once a second. When there are too many, one makes room: first those without a whole request, of
these one of the address that has most, and of its own the one that has kept the server waiting longest. Slow senders
shorten their own time and nobody else's. (hypercorn and granian have some time-outs; neither has a limit per address, a
least rate, or makes room.)
"""

from __future__ import annotations

import asyncio
import logging
import math
import resource
import socket
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from proctor_web.proxies import network

_TLS_BUFFER = 2**15  # bytes of each connection; asyncio's own 2**18 take 180 MB and long to clear for 700 of them
_BATCH = 64  # connections taken in before others have their turn
_PAUSE_S = 0.5  # without descriptors
_LOOK_S = 0.2
_REPORT_TICKS = 600  # of a tenth of a second
_MOST = 2048
_OTHER_FILES = 64  # descriptors of the database, of checks and of the program itself
_ORDER_S = 0.5  # how long the order in which connections make room is kept
_YOUNG_S = 3.0
_SLOW_AFTER_S = 5.0  # a sender or a reader who is slow for so long may have to make room


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """What connections are allowed: how many (`connections` in all, `per_address` from an IPv4 address or an IPv6
    network of 64 bits), and the seconds for each step.

    `headers_s`: for a TLS handshake, and then for the first byte and all headers of a request. `form_s`: for a body that
    is no upload. `upload_bytes_s`: the average rate in bytes per second that an upload must keep after `form_s`, so that
    a body of B bytes has at most form_s + B / upload_bytes_s. `idle_s`: between two requests. `stalled_s`: for a reader
    who takes nothing of an answer. `closing_s`: to read the end of it.
    """

    connections: int
    per_address: int
    headers_s: float = 10.0
    form_s: float = 30.0
    upload_bytes_s: float = 10_000.0
    idle_s: int = 75
    stalled_s: float = 60.0
    closing_s: float = 10.0

    @classmethod
    def of_process(cls) -> ConnectionLimits:
        """The limits that the descriptors of this process allow: three quarters are for connections, the others for the
        files that they read and write. One address may have a quarter of the connections."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        files = _MOST * 2 if soft == resource.RLIM_INFINITY else soft
        most = max(16, min(_MOST, (files - _OTHER_FILES) * 3 // 4))
        return cls(connections=most, per_address=max(8, most // 4))


def raise_descriptor_limit() -> None:
    """Raises the soft limit of file descriptors towards the hard one, as far as `ConnectionLimits` has use for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST * 2 if hard == resource.RLIM_INFINITY else min(hard, _MOST * 2)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class ConnectionStage(StrEnum):
    """What a connection waits for: the TLS `handshake`; the `headers` of a request; its `body`; the server's `answer`;
    a reader who takes nothing of the answer (`stalled`); the next request (`idle`); its end (`closing`)."""

    HANDSHAKE = "handshake"
    HEADERS = "headers"
    BODY = "body"
    ANSWER = "answer"
    STALLED = "stalled"
    IDLE = "idle"
    CLOSING = "closing"


@dataclass(frozen=True)
class Progress:
    """A connection's stage, the seconds since it began, the bytes received since then, and whether its request is an
    upload."""

    stage: ConnectionStage
    seconds: float
    received: int = 0
    upload: bool = False

    def is_overdue(self, limits: ConnectionLimits) -> bool:
        """Whether its time is over. The server's own time is not limited.

        >>> limits = ConnectionLimits(connections=100, per_address=10)
        >>> Progress(ConnectionStage.HEADERS, 9.0).is_overdue(limits), Progress(ConnectionStage.HEADERS, 10.5).is_overdue(limits)
        (False, True)
        >>> [Progress(ConnectionStage.BODY, 130.0, received, upload=True).is_overdue(limits) for received in (999_999, 1_000_000)]
        [True, False]
        """
        if self.stage is ConnectionStage.BODY and self.upload:
            return self.received < limits.upload_bytes_s * (self.seconds - limits.form_s)
        allowed = {
            ConnectionStage.HANDSHAKE: limits.headers_s,
            ConnectionStage.HEADERS: limits.headers_s,
            ConnectionStage.BODY: limits.form_s,
            ConnectionStage.STALLED: limits.stalled_s,
            ConnectionStage.CLOSING: limits.closing_s,
        }.get(self.stage)  # idle: uvicorn's own timer
        return allowed is not None and self.seconds > allowed

    def rank(self, limits: ConnectionLimits) -> int | None:
        """How soon it makes room for another connection: 0 without a whole request after `_YOUNG_S`, 1 for a slow body or
        reader, 2 between two requests and for one that just came; None for one that is being answered or sends fast
        enough."""
        if self.stage in {ConnectionStage.HANDSHAKE, ConnectionStage.HEADERS, ConnectionStage.CLOSING}:
            return 0 if self.seconds > _YOUNG_S or self.stage is ConnectionStage.CLOSING else 2
        slow = self.stage is ConnectionStage.STALLED or self.received < limits.upload_bytes_s * self.seconds
        if self.stage in {ConnectionStage.STALLED, ConnectionStage.BODY} and self.seconds > _SLOW_AFTER_S and slow:
            return 1
        return 2 if self.stage is ConnectionStage.IDLE else None


class HeldConnection(Protocol):
    """A connection as a `Guard` sees it."""

    address: str

    def progress(self, now: float) -> Progress:
        """What it waits for at this moment."""

    def end(self, *, told: bool) -> None:
        """Closes it, at once or, `told`, with status 408 if a request was begun."""


class Guard:
    """The connections of a server within their limits. `exempt` says which addresses have no limit of their own: that
    of a proxy. `tally` counts what was closed and refused, by reason."""

    def __init__(
        self, limits: ConnectionLimits, tally: Counter[str], exempt: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.limits, self.tally = limits, tally
        self._exempt = exempt
        self._by_address: dict[str, set[HeldConnection]] = defaultdict(set)
        self._all: set[HeldConnection] = set()
        self._order: list[tuple[int, HeldConnection]] = []
        self._ordered_at = -math.inf

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[HeldConnection]:
        return iter(list(self._all))

    def enter(self, connection: HeldConnection) -> None:
        """Counts a connection."""
        self._all.add(connection)
        self._by_address[connection.address].add(connection)

    def leave(self, connection: HeldConnection) -> None:
        """Counts it no longer; it may have left before."""
        self._all.discard(connection)
        own = self._by_address.get(connection.address)
        if own is not None:
            own.discard(connection)
            if not own:
                del self._by_address[connection.address]

    def has_room(self, address: str, now: float) -> bool:
        """Whether another connection from this address may enter, after another one made room for it if need be: one of
        the same address where that has as many as it may."""
        own = self._by_address.get(address, set())
        if len(own) >= self.limits.per_address and not self._exempt(address) and not self._make_room(own, now):
            self.tally["connections refused: too many from one address"] += 1
            return False
        if len(self._all) >= self.limits.connections and not self._make_room(self._all, now):
            self.tally["connections refused: too many"] += 1
            return False
        return True

    def _make_room(self, among: Collection[HeldConnection], now: float) -> bool:
        """Ends the first of these in the order of `Progress.rank`, then of those whose address has most, then of those that
        have kept the server waiting longest. The order of all is kept for a moment: looking for it takes time."""
        if among is not self._all:
            return self._end_first(self._ordered(among, now), now)
        if now - self._ordered_at < _ORDER_S and self._end_first(self._order, now):
            return True
        self._order, self._ordered_at = self._ordered(among, now), now
        return self._end_first(self._order, now)

    def _ordered(self, among: Collection[HeldConnection], now: float) -> list[tuple[int, HeldConnection]]:
        """Those that may make room, with their rank, the first of them last."""
        found: list[tuple[tuple[int, int, float], HeldConnection]] = []
        for held in among:
            one = held.progress(now)
            rank = one.rank(self.limits)
            if rank is not None:
                found.append(((rank, -len(self._by_address[held.address]), -one.seconds), held))
        found.sort(key=lambda entry: entry[0], reverse=True)
        return [(key[0], held) for key, held in found]

    def _end_first(self, order: list[tuple[int, HeldConnection]], now: float) -> bool:
        """Ends the last in the list that is still there and has not become of a later rank; whether there was one."""
        while order:
            rank, connection = order.pop()
            if connection not in self._all:
                continue
            progress = connection.progress(now)
            current = progress.rank(self.limits)
            if current is None or current > rank:
                continue
            self.tally[f"closed to make room ({progress.stage})"] += 1
            connection.end(told=False)
            self.leave(connection)
            return True
        return False

    def uploads(self, now: float) -> int:
        """The number of uploads under way."""
        return sum(one.upload and one.stage is ConnectionStage.BODY for one in (held.progress(now) for held in self))

    def sweep(self, now: float) -> None:
        """Ends all connections whose time is over. Call it once a second."""
        for connection in self:
            progress = connection.progress(now)
            if progress.is_overdue(self.limits):
                self.tally[f"closed after its time was over ({progress.stage})"] += 1
                connection.end(told=progress.stage in {ConnectionStage.HEADERS, ConnectionStage.BODY})


def report(tally: Counter[str]) -> None:
    """Logs what was counted since the last call, in one line; nothing without any."""
    if tally:
        told = ", ".join(f"{count} × {reason}" for reason, count in sorted(tally.items()))
        logging.getLogger("uvicorn.error").warning("in the last minute: %s", told)
        tally.clear()


# -- on uvicorn


class GuardedProtocol(H11Protocol):
    """uvicorn's connection, which a `Guard` can look at and end. `takes_files` says which paths take uploads."""

    def __init__(self, guard: Guard, address: str, takes_files: Callable[[str], bool], **given: Any) -> None:
        super().__init__(**given)
        self.address = address
        self.opening: asyncio.Task[None] | None = None
        self.is_open = False  # after TLS
        self._guard, self._takes_files = guard, takes_files
        self._total = self._before = 0
        self._drained, self._upload = 0, False
        self._mark: tuple[object, ...] = (ConnectionStage.HANDSHAKE, None, 0)
        self._since = self._looked = time.monotonic()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Waits for the first request."""
        super().connection_made(transport)
        self.is_open = True
        self._mark, self._since = (ConnectionStage.HEADERS, None, 0), time.monotonic()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leaves the guard."""
        self._guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts what arrives."""
        self._total += len(data)
        if not self.transport.is_closing():
            super().data_received(data)

    def resume_writing(self) -> None:
        """Notes that a reader took something of an answer."""
        self._drained += 1
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answers nonsense, unless an answer has begun: then the connection just ends."""
        if self.cycle is not None and not self.cycle.response_complete and self.cycle.response_started:
            self.transport.abort()
        elif self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def progress(self, now: float) -> Progress:
        """What it waits for. Time in which the server does not read a body does not count against its sender."""
        stage = self._stage()
        mark = (stage, self.cycle, self._drained if stage is ConnectionStage.STALLED else 0)
        if mark != self._mark:
            self._mark, self._since, self._before = mark, now, self._total
            self._upload = stage is ConnectionStage.BODY and self._takes_files(self.scope["path"])
        elif stage is ConnectionStage.BODY and self.flow.read_paused:
            self._since += now - self._looked
        self._looked = now
        return Progress(stage, now - self._since, self._total - self._before, upload=self._upload)

    def _stage(self) -> ConnectionStage:
        if not self.is_open:
            return ConnectionStage.HANDSHAKE
        if self.transport.is_closing():
            return ConnectionStage.CLOSING
        if self.flow.write_paused:
            return ConnectionStage.STALLED
        if self.conn.their_state is h11.SEND_BODY:
            return ConnectionStage.BODY
        if self.cycle is not None and not self.cycle.response_complete:
            return ConnectionStage.ANSWER
        return ConnectionStage.HEADERS if self.cycle is None or self.conn.trailing_data[0] else ConnectionStage.IDLE

    def end(self, *, told: bool) -> None:
        """Closes it, at once or, `told`, with status 408 if a request was begun and not answered."""
        if not self.is_open:
            if self.opening is not None:
                self.opening.cancel()
            return
        if not told or not self._total:
            self.transport.abort()
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_refusal("408 Request Timeout", "This took too long."))
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


def _refusal(status: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"retry-after: 10\r\nconnection: close\r\n\r\n" + body


class Listener:
    """Takes connections in from a listening socket, as far as the guard has room. It closes like an `asyncio.Server`.

    Without free descriptors it pauses: those who come meanwhile wait in the system's queue.
    """

    def __init__(
        self, opened: socket.socket, guard: Guard, made: Callable[[str], GuardedProtocol], tls: ssl.SSLContext | None
    ) -> None:
        self._socket, self._guard, self._made, self._tls = opened, guard, made, tls
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        opened.setblocking(False)
        self._loop.add_reader(opened.fileno(), self._take_in)

    def close(self) -> None:
        """Takes no more in."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._socket.fileno())

    async def wait_closed(self) -> None:
        """Returns at once: uvicorn waits for the connections itself."""

    def _take_in(self) -> None:
        for _ in range(_BATCH):
            try:
                connection, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError:  # no descriptors, or no memory
                self._guard.tally["pauses without a free file descriptor"] += 1
                self._loop.remove_reader(self._socket.fileno())
                self._loop.call_later(_PAUSE_S, self._go_on)
                return
            crowded = len(self._guard) >= self._guard.limits.connections
            self._open(connection, network(str(peer[0])) if peer else "")
            if crowded:
                return  # the next one once the descriptors of those who made room are free

    def _go_on(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._socket.fileno(), self._take_in)

    def _open(self, connection: socket.socket, address: str) -> None:
        connection.setblocking(False)
        if not self._guard.has_room(address, time.monotonic()):
            with connection:
                if self._tls is None:
                    _send_what_fits(connection, _refusal("503 Service Unavailable", "Too many connections."))
            return
        protocol = self._made(address)
        self._guard.enter(protocol)
        protocol.opening = self._loop.create_task(self._connect(connection, protocol))
        self._tasks.add(protocol.opening)
        protocol.opening.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket, protocol: GuardedProtocol) -> None:
        limit = self._guard.limits
        more = (
            {}
            if self._tls is None
            else {"ssl_handshake_timeout": limit.headers_s, "ssl_shutdown_timeout": limit.closing_s}
        )
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection, ssl=self._tls, **more)
        except OSError:  # TLS failed, or the other end has gone
            self._guard.tally["handshakes that failed"] += 1
        finally:
            protocol.opening = None
            if not protocol.is_open:
                self._guard.leave(protocol)


def _send_what_fits(connection: socket.socket, data: bytes) -> None:
    try:
        connection.send(data)
    except OSError:  # it has gone, or reads nothing
        return


class GuardedServer(uvicorn.Server):
    """uvicorn's server with limits on its connections."""

    def __init__(self, config: uvicorn.Config, guard: Guard, takes_files: Callable[[str], bool]) -> None:
        super().__init__(config)
        self._guard, self._takes_files = guard, takes_files
        SSLProtocol.max_size = _TLS_BUFFER

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens on the sockets."""
        listeners = [Listener(one, self._guard, self._made, self.config.ssl) for one in sockets or []]
        self.servers = cast("list[asyncio.base_events.Server]", listeners)
        self.started = True

    def _made(self, address: str) -> GuardedProtocol:
        given = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        return GuardedProtocol(self._guard, address, self._takes_files, **given)

    async def on_tick(self, counter: int) -> bool:
        """Looks at the connections once a second, and reports once a minute."""
        if counter % 10 == 0:
            self._guard.sweep(time.monotonic())
        if counter % _REPORT_TICKS == 0:
            report(self._guard.tally)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends, with a last report. It takes no more connections, and first lets uploads arrive that are fast enough: who
        has sent for an hour has not sent for nothing. A second Ctrl+C ends them."""
        for listener in self.servers:
            listener.close()
        for opened in sockets or []:
            opened.close()  # so that visitors find the server that follows
        while not self.force_exit and self._guard.uploads(time.monotonic()):
            self._guard.sweep(time.monotonic())
            await asyncio.sleep(_LOOK_S)
        await super().shutdown(sockets)
        report(self._guard.tally)


class NoiseFilter(logging.Filter):
    """Counts what uvicorn logs for each request that is no HTTP, so that strangers can't fill the log."""

    _NOISE = ("Invalid HTTP request received", "Unsupported upgrade request", "No supported WebSocket library")

    def __init__(self, tally: Counter[str]) -> None:
        super().__init__()
        self._tally = tally

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        noise = record.getMessage().startswith(self._NOISE)
        if noise:
            self._tally["requests that are no HTTP"] += 1
        return not noise

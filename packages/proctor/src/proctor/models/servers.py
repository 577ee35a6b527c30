"""Load balancing over several servers with one model: which server gets a call, and how many at once."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from itertools import count

from proctor.core import aside

_FIRST_LIMIT = 8.0
_GROWTH = 1.5
_WORTH = 1.1  # growth goes on while it brings a tenth more replies a second
_CUT = 0.7
_SETTLED_WINDOWS = 10  # after which growth is tried again
_MAX_DOWN_S = 60.0
_MAX_HANGS = 3
_UNEVEN = 1.25  # times the servers' mean load: a video goes elsewhere where its server has more than that

_near: ContextVar[str] = ContextVar("near", default="")
_chosen: ContextVar[ModelServer] = ContextVar("chosen")


@contextmanager
def near(what: str) -> Iterator[None]:
    """Calls inside go to the server that had earlier calls about the same thing (a video that it may have cached),
    unless that server is overloaded."""
    token = _near.set(what)
    try:
        yield
    finally:
        _near.reset(token)


class ModelServer:
    """The state of one server: its outstanding calls, its limit of concurrent calls, and its failures.

    With other servers, the limit starts at 8 and grows by half as long as that brings a tenth more replies a second;
    else it goes back, and growth is tried again later. After an overload (HTTP 429, 503) the limit falls to 0.7 of the
    outstanding calls, and grows by one call at a time from then on. Latency would not tell: it depends on the length of
    replies as much as on the load.
    """

    def __init__(self, url: str, limit: float) -> None:
        self.url = url
        self.limit = limit
        self.outstanding = 0
        self.down_until = -math.inf
        self._failures = 0  # in a row, since it last replied
        self._hangs = 0
        self._cut_at = -math.inf
        self._careful = False
        self._rate = 0.0
        self._settled = 0
        self._window_from, self._replies, self._used_up = -math.inf, -1, False

    @property
    def full(self) -> bool:
        """Whether its limit is reached."""
        return self.outstanding + 1 > max(1.0, self.limit)

    def ready(self, now: float) -> bool:
        """Whether it may get a call; a server that was down gets a single one first."""
        return self.down_until <= now and (not self._failures or not self.outstanding)

    def lost(self, now: float) -> None:
        """Notes that no connection was possible: no calls for 1 s, doubled each time, at most a minute."""
        if now >= self.down_until:
            self.down_until = now + min(_MAX_DOWN_S, 2.0 ** min(self._failures, 10))
            self._failures += 1

    def hung(self, now: float) -> None:
        """Notes a time-out. Three in a row count as a lost connection."""
        self._hangs += 1
        if self._hangs >= _MAX_HANGS:
            self.lost(now)

    def refused(self, now: float, begun: float) -> None:
        """Notes an overload. Calls that began before the last reduction are ignored."""
        if begun >= self._cut_at:
            self.limit = max(1.0, _CUT * min(self.limit, self.outstanding))
            self._cut_at, self._careful = now, True
            self._begin()

    def replied(self, now: float) -> None:
        """Notes a reply of any kind."""
        self._failures, self._hangs, self.down_until = 0, 0, -math.inf
        self._used_up = self._used_up or self.full
        self._replies += 1
        if self._replies == 0:  # from here on, replies are to calls under this limit
            self._window_from, self._used_up = now, False
        elif self._replies >= 2 * self.limit and now > self._window_from:
            if self._used_up:
                self._adapt(self._replies / (now - self._window_from))
            self._begin()

    def _begin(self) -> None:
        """Begins a new window of replies, after those that are still outstanding."""
        self._replies = -math.ceil(min(self.limit, self.outstanding)) - 1

    def _adapt(self, rate: float) -> None:
        """Changes the limit at the end of a window in which it was reached."""
        if self._careful:
            self.limit += 1.0
        elif self._settled > _SETTLED_WINDOWS or (not self._settled and rate > _WORTH * self._rate):
            self.limit, self._rate, self._settled = self.limit * _GROWTH, rate, 0
        elif not self._settled:
            self.limit, self._settled = max(1.0, self.limit / _GROWTH), 1
        else:
            self._settled += 1


class ModelServers:
    """The servers of one model, for one event loop at a time. A single server has no limit until it reports an
    overload."""

    def __init__(self, urls: Sequence[str]) -> None:
        first = _FIRST_LIMIT if len(urls) > 1 else math.inf
        self.all = [ModelServer(url, first) for url in urls]
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turn = count()

    @asynccontextmanager
    async def slot_of(self) -> AsyncIterator[ModelServer]:
        """A server for one call, which counts as outstanding inside. Waits until a server may get a call; the wait
        counts as time in the queue, not the model's."""
        loop = asyncio.get_running_loop()
        server = self._free(loop.time())
        while server is None:
            waiter = loop.create_future()
            self._waiting.append(waiter)
            with aside("queue"):
                try:
                    await waiter
                except asyncio.CancelledError:
                    self._wake()  # passes the turn on
                    raise
            server = self._free(loop.time())
        server.outstanding += 1
        token = _chosen.set(server)
        try:
            yield server
        finally:
            _chosen.reset(token)
            server.outstanding -= 1
            self._wake()

    @property
    def chosen(self) -> ModelServer:
        """The server of the current call."""
        return _chosen.get(self.all[0])

    def elsewhere(self, server: ModelServer) -> bool:
        """Whether a server is down and another one is not, so that a failed call can be repeated there at once."""
        now = asyncio.get_running_loop().time()
        return server.down_until > now and any(other.down_until <= now for other in self.all)

    def _wake(self) -> None:
        """Wakes as many waiting calls as there is room for; each chooses its server itself."""
        positions = sum(
            max(0, int(min(model_server.limit, 1e6)) - model_server.outstanding) for model_server in self.all
        )
        while self._waiting and positions > 0:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                positions -= 1

    def _free(self, now: float) -> ModelServer | None:
        if len(self.all) == 1:
            (only,) = self.all
            return None if only.full else only
        ready = [model_server for model_server in self.all if model_server.ready(now)]
        ready = ready or [min(self.all, key=lambda model_server: model_server.down_until)]
        able = [model_server for model_server in ready if not model_server.full]
        if not able:
            return None
        key = _near.get()
        if key:
            most = _UNEVEN * sum(model_server.outstanding for model_server in ready) / len(ready) + 1.0
            kept = [model_server for model_server in able if model_server.outstanding < most]
            if kept:
                return max(kept, key=lambda model_server: _weight(key, model_server.url))
        turn = next(self._turn)
        order = able[turn % len(able) :] + able[: turn % len(able)]
        return min(order, key=lambda model_server: model_server.outstanding)


def _weight(key: str, url: str) -> bytes:
    """The weight of a server for a key (rendezvous hashing): each key has its own order of servers, and a server that
    comes or goes moves only its own keys."""
    return blake2b(f"{key}\n{url}".encode(), digest_size=8).digest()

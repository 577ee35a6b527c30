"""A database that is busy: changes wait for its lock only briefly, are refused with 503 then, and never keep readers
from their threads and connections."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.concurrency import run_in_threadpool

from proctor.runs import LOCK_WAIT

LOCK_WAIT_S = 2.0
"""How long a change in the browser waits for the lock of the database."""

RETRY_AFTER_S = 5
"""What `Retry-After` says."""

WRITERS = 8
"""The maximum number of changes at once in a process: fewer than it has threads and connections, so that readers have
some whatever the changes wait for."""

_QUEUE_S = 20.0
_LEAST_WAIT_S = 0.001  # 0 would be no limit on PostgreSQL
_SQLITE = {sqlite3.SQLITE_BUSY: "locked", sqlite3.SQLITE_LOCKED: "locked", sqlite3.SQLITE_FULL: "out of room"}

T = TypeVar("T")


class BusyError(Exception):
    """The database is busy, with the reason: the change was not made, and may be tried again."""


def busy_reason(error: Exception) -> str:
    """Why the same request may succeed in a moment: the database is locked, is out of room, can't be reached, or all
    connections to it are in use. "" for any other error. It holds no SQL."""
    if isinstance(error, BusyError):
        return str(error)
    if isinstance(error, PoolTimeoutError):
        return "no free connection"
    if not isinstance(error, DBAPIError):
        return ""
    if isinstance(error.orig, sqlite3.Error):
        code: int = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF  # without the extension
        return _SQLITE.get(code, "")
    away = error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
    return type(error.orig).__name__ if away else ""


def limit_waits(engine: Engine) -> None:
    """Lets transactions of this engine wait `LOCK_WAIT_S` for a lock."""
    engine.update_execution_options(**{LOCK_WAIT: LOCK_WAIT_S})


def change_if_free(engine: Engine, change: Callable[[Connection], object]) -> None:
    """Makes a small change that may be left out: it is, where the database is busy."""
    try:
        with engine.connect().execution_options(**{LOCK_WAIT: _LEAST_WAIT_S}) as connection, connection.begin():
            change(connection)
    except SQLAlchemyError as error:
        if not busy_reason(error):
            raise


class WriterGate:
    """Lets `most` changes at once through, in the order in which they came. When one of them finds the database busy
    (`refuse`), all who have waited until then are refused, too: none waits longer than the lock allows. `tally` counts
    the refusals."""

    def __init__(self, tally: Counter[str], most: int = WRITERS) -> None:
        self._free, self._tally = most, tally
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """One change within the block. Raises `BusyError`."""
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    async def run(self, change: Callable[..., T], *given: Any) -> T:
        """Makes a change in a thread. Raises `BusyError`."""
        async with self.entered():
            try:
                return await run_in_threadpool(change, *given)
            except (SQLAlchemyError, BusyError) as error:
                if not (reason := busy_reason(error)):
                    raise
                self.refuse(reason)
                raise BusyError(reason) from error

    def refuse(self, reason: str) -> None:
        """Counts a change that found the database busy, and refuses all who wait. Call it in the event loop."""
        self._tally[f"requests answered with 503, the database: {reason}"] += 1
        while self._waiting:
            one = self._waiting.popleft()
            if not one.done():
                self._tally[f"requests answered with 503, the database: {reason}"] += 1
                one.set_exception(BusyError(reason))

    async def _enter(self) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            async with asyncio.timeout(_QUEUE_S):
                await mine
        except TimeoutError as error:
            self._given_up(mine)
            raise BusyError("too many changes at once") from error
        except asyncio.CancelledError:
            self._given_up(mine)
            raise

    def _given_up(self, mine: asyncio.Future[None]) -> None:
        if mine in self._waiting:
            self._waiting.remove(mine)
        elif mine.done() and not mine.cancelled() and mine.exception() is None:  # its turn came as it left
            self._leave()

    def _leave(self) -> None:
        while self._waiting:
            following = self._waiting.popleft()
            if not following.done():
                following.set_result(None)  # takes over the slot
                return
        self._free += 1

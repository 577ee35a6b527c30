"""Leases: who holds a row, until when. One mechanism for whole runs, for items among workers, and for submissions.

- **Take.** A holder writes its token into the rows, with the end of its lease (`until`), both in one transaction.
- **Clock.** All times are those of the database (`proctor.runs.database.clock`): no machine's clock decides.
- **Beat.** A holder renews its lease four times as often as it would end, and only where its token still stands. While
  the database is away it tries again every second: the lease is its own until somebody else takes the rows.
- **Fence.** Each of its writes looks for the token in the same transaction, so that a former holder writes nothing,
  however late it comes back.
- **End.** A lease that is not renewed ends. Anybody who wants the rows then takes them.

Which rows there are, what is done with those of a dead holder, and how a lease is given back, is up to its users:
`proctor.runs.run_leases`, `proctor.runs.item_leases` and `proctor_challenge.queue`.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Row, update

from proctor.core import ProctorError
from proctor.runs.database import StoreAwayError, outlasting

LEASE_S = 60.0
"""The seconds that a lease lasts without being renewed."""

BEATS = 4
"""How often a holder renews its lease in the time that the lease lasts."""

LONGEST_S = 10 * LEASE_S
"""A lease that ends later than this does not hold: it was written by another clock, or before the clock was set back."""

_AGAIN_S = 1.0


def lease_time() -> float:
    """Seconds by a clock of this process that also counts while the machine sleeps, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def holds_at(until: float, now: float) -> bool:
    """Whether a lease that ends at `until` holds, by the database's clock; `LeasedRows.in_force` in SQL.

    >>> holds_at(160.0, now=100.0), holds_at(99.0, now=100.0), holds_at(100.0 + 2 * LONGEST_S, now=100.0)
    (True, False, False)
    """
    return now <= until <= now + LONGEST_S


@dataclass(frozen=True)
class LeasedRows:
    """The rows of a table that can be leased: the column with the `token` of a row's holder, and the column with the end
    of its lease."""

    token: Column[Any]
    until: Column[Any]

    def in_force(self, now: ColumnElement[float] | float) -> ColumnElement[bool]:
        """The condition that the lease on a row holds."""
        return self.until.between(now, now + LONGEST_S)

    def of(self, token: object) -> ColumnElement[bool]:
        """The fence: the condition that this holder's token still stands in a row."""
        return self.token == token

    def renew(
        self,
        connection: Connection,
        token: object,
        until: float,
        *where: ColumnElement[bool],
        returning: Sequence[Column[Any]],
        **more: Any,
    ) -> Sequence[Row[Any]]:
        """Renews the leases of a holder on the rows `where` its token still stands, and returns these columns of them.
        `more` are further columns to write."""
        own = update(self.token.table).where(self.of(token), *where)
        return connection.execute(own.values({self.until.name: until, **more}).returning(*returning)).all()


class Lease(ABC):
    """What one holder knows of its lease. Once all is `lost`, nothing of this holder is written any more."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self.lost: ProctorError | None = None
        self._renewed = -math.inf  # by `lease_time`
        self._lock = threading.Lock()

    @property
    def every_s(self) -> float:
        """The seconds from one beat to the next."""
        return self.lease_s / BEATS

    @property
    def fresh(self) -> bool:
        """Whether the lease can't have ended."""
        return lease_time() - self._renewed <= self.lease_s

    def beat(self) -> None:
        """Renews what this holder still has. Safe to repeat. Raises `StoreAwayError`."""
        with self._lock, self._renewing():
            self._renew()

    def confirm(self) -> None:
        """Returns when the lease can't have ended unnoticed: where it must be renewed first, this blocks (see `fresh`)."""
        if not self.fresh:
            outlasting(self.beat)

    @abstractmethod
    def _renew(self) -> None:
        """Renews it in one transaction, and notes in `lost` if nothing is left."""

    @contextmanager
    def _renewing(self) -> Iterator[None]:
        """The lease counts from the begin of the block, if that succeeds: the database's clock was read later."""
        begun = lease_time()
        yield
        self._renewed = begun


def beat_once(lease: Lease) -> float | None:
    """Renews a lease, as far as the database can be reached. Returns the seconds until the next beat; None once the lease
    is lost."""
    try:
        lease.beat()
    except StoreAwayError:
        return min(_AGAIN_S, lease.every_s)
    return lease.every_s if lease.lost is None else None


async def beat_until_lost(lease: Lease) -> None:
    """Renews a lease from a task, again and again; returns once it is lost."""
    pause: float | None = lease.every_s
    while pause is not None:
        await asyncio.sleep(pause)
        pause = await asyncio.to_thread(beat_once, lease)


@contextmanager
def beating(lease: Lease, lost: Callable[[], object]) -> Iterator[None]:
    """Renews a lease within the block, from a thread of its own, so that nothing that the holder does delays it. Once it
    is lost, the thread calls `lost`."""
    done = threading.Event()

    def beat_on() -> None:
        pause: float | None = lease.every_s
        while pause is not None:
            if done.wait(pause):
                return
            pause = beat_once(lease)
        lost()

    thread = threading.Thread(target=beat_on, name="proctor-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()

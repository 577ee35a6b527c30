"""Answers on their way to disk: one transaction at a time, in a thread of its own. A store that can't be reached or is
locked is waited for; what it does not take even then goes to a file (`runs.unwritten`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proctor import core
from proctor.runs.database import StoreAwayError, StoreWriteError, outlasting
from proctor.runs.store import Fence, Run, Store
from proctor.runs.unwritten import keep_unwritten

_REST = 4.0
_MOST_REST_S = 0.01
"""After a transaction the next one is delayed by this multiple of its duration, up to this many seconds, so that fast
answers share few transactions and slow ones do not wait."""


@dataclass(frozen=True)
class _Entry:
    run: Run
    answer: core.Answer
    scores: Sequence[core.Score]
    done: asyncio.Future[bool]


class UnwrittenError(core.InputError):
    """The store did not take answers; the message says where they are kept."""


class Journal:
    """Writes answers from an event loop, one transaction at a time, in its own thread. A context manager for use inside
    the loop.

    `writers` is the number of tasks that write: once all of them wait, the transaction is not delayed any longer.
    """

    def __init__(self, store: Store, writers: int, fence: Fence | None = None) -> None:
        self._store = store
        self._fence = fence
        self._writers = writers
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="proctor-journal")
        self._loop: asyncio.AbstractEventLoop
        self._waiting: list[_Entry] = []
        self._under_way = 0
        self._free_at = 0.0
        self._fault: core.InputError | None = None
        self._kept: Path | None = None
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Journal:
        self._loop = asyncio.get_running_loop()
        return self

    def __exit__(self, *exception: object) -> None:
        self._commit()  # answers are kept even when the task that wrote them was cancelled
        self._thread.shutdown(wait=True)

    @property
    def fault(self) -> UnwrittenError | None:
        """What the store did not take so far, and where it is kept."""
        if self._fault is None:
            return None
        kept = f"the next proctor run adds {core.count_of(self._count, 'answer')} kept in {self._kept}"
        return UnwrittenError(None, f"{self._fault}; {kept}")

    async def write(self, run: Run, answer: core.Answer, scores: Sequence[core.Score]) -> bool:
        """Returns when the answer is on disk: True if it is in the store, False if the fence kept it out or the store did
        not take it (`fault`). Raises what else the store raised."""
        entry = _Entry(run, answer, scores, self._loop.create_future())
        self._waiting.append(entry)
        self._plan()
        return await entry.done

    def _plan(self) -> None:
        """Schedules the next transaction."""
        if not self._waiting or self._under_way:
            return
        rest = self._free_at - self._loop.time()
        if rest <= 0 or len(self._waiting) >= self._writers:
            self._commit()
        elif self._timer is None:
            self._timer = self._loop.call_later(rest, self._commit)

    def _commit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            batch, self._waiting = self._waiting, []
            self._under_way += 1
            self._thread.submit(self._write, batch)

    def _write(self, batch: Sequence[_Entry]) -> None:
        """Runs in the thread."""
        started = time.monotonic()
        error: Exception | None = None
        stored = [False] * len(batch)
        try:
            stored = self._stored(batch)
        except Exception as raised:  # noqa: BLE001 - handed to the waiting caller
            error = raised
        taken = time.monotonic() - started
        self._loop.call_soon_threadsafe(self._settle, batch, error or stored, taken)

    def _stored(self, batch: Sequence[_Entry]) -> list[bool]:
        """Whether each answer is in the store. All can be repeated: an answer that is there already stays as it is."""
        rows = [(entry.run, entry.answer, entry.scores) for entry in batch]
        call = partial(self._store.write_many, rows, self._fence)
        try:
            return outlasting(call) if self._fault is None else call()
        except (StoreAwayError, StoreWriteError) as error:
            try:
                self._kept = keep_unwritten(self._store, rows)
            except OSError:
                raise error from None
            self._fault = self._fault or error
            self._count += len(rows)
        return [False] * len(batch)

    def _settle(self, batch: Sequence[_Entry], outcome: Exception | list[bool], taken: float) -> None:
        self._under_way -= 1
        self._free_at = self._loop.time() + min(_REST * taken, _MOST_REST_S)
        for row, entry in enumerate(batch):
            if entry.done.done():  # cancelled
                continue
            if isinstance(outcome, list):
                entry.done.set_result(outcome[row])
            else:
                entry.done.set_exception(outcome)
        self._plan()

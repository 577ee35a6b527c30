"""Answers on their way to disk: one transaction at a time, in a thread of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from proctor import core
from proctor.runs.sharing import outlasting
from proctor.runs.store import Fence, Run, Store

_REST = 4.0
_MOST_REST_S = 0.01
"""After a transaction the next one is delayed by this multiple of its duration, up to this many seconds, so that fast
answers share few transactions and slow ones do not wait."""


@dataclass(frozen=True)
class _Entry:
    run: Run
    answer: core.Answer
    scores: Sequence[core.Score]
    done: asyncio.Future[None]


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
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Journal:
        self._loop = asyncio.get_running_loop()
        return self

    def __exit__(self, *exception: object) -> None:
        self._commit()  # answers are kept even when the task that wrote them was cancelled
        self._thread.shutdown(wait=True)

    async def write(self, run: Run, answer: core.Answer, scores: Sequence[core.Score]) -> None:
        """Returns when the answer is on disk; raises what the store raised."""
        entry = _Entry(run, answer, scores, self._loop.create_future())
        self._waiting.append(entry)
        self._plan()
        await entry.done

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
        rows = [(entry.run, entry.answer, entry.scores) for entry in batch]
        try:
            if self._fence is None:
                self._store.write_many(rows)
            else:  # safe to repeat: the fence lets no answer through a second time
                outlasting(lambda: self._store.write_many(rows, self._fence))
        except Exception as raised:  # noqa: BLE001 - handed to the waiting caller
            error = raised
        taken = time.monotonic() - started
        self._loop.call_soon_threadsafe(self._settle, batch, error, taken)

    def _settle(self, batch: Sequence[_Entry], error: Exception | None, taken: float) -> None:
        self._under_way -= 1
        self._free_at = self._loop.time() + min(_REST * taken, _MOST_REST_S)
        for entry in batch:
            if entry.done.done():  # cancelled
                continue
            if error is None:
                entry.done.set_result(None)
            else:
                entry.done.set_exception(error)
        self._plan()

"""Group commit: answers given at about the same time share one transaction, none counts before it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from proctor.core import Answer, Score
from proctor.runs.store import Run, Store

_REST = 4.0
_MOST_REST_S = 0.01
"""After a transaction the next one is held back this many times as long as it took, up to this many seconds, for
others to share it: where answers come fast, few transactions are made; where they come slowly, none waits."""


@dataclass(frozen=True)
class _Entry:
    run: Run
    answer: Answer
    scores: Sequence[Score]
    done: asyncio.Future[None]


class Journal:
    """Writes answers from an event loop, one transaction at a time, in a thread of its own. Use as a context
    manager inside the loop.

    `writers` is how many tasks write: once all of them wait, nobody else can come, and they are not held back.
    """

    def __init__(self, store: Store, writers: int) -> None:
        self._store = store
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
        self._commit()  # what came is kept, also where nobody waits for it any more
        self._thread.shutdown(wait=True)

    async def write(self, run: Run, answer: Answer, scores: Sequence[Score]) -> None:
        """Returns when the answer is on disk; raises what the store raised."""
        entry = _Entry(run, answer, scores, self._loop.create_future())
        self._waiting.append(entry)
        self._plan()
        await entry.done

    def _plan(self) -> None:
        """Says when those that wait are written."""
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
        """In the thread."""
        started = time.monotonic()
        error: Exception | None = None
        try:
            self._store.write_many([(entry.run, entry.answer, entry.scores) for entry in batch])
        except Exception as raised:  # noqa: BLE001 - handed to the waiting caller
            error = raised
        taken = time.monotonic() - started
        self._loop.call_soon_threadsafe(self._settle, batch, error, taken)

    def _settle(self, batch: Sequence[_Entry], error: Exception | None, taken: float) -> None:
        self._under_way -= 1
        self._free_at = self._loop.time() + min(_REST * taken, _MOST_REST_S)
        for entry in batch:
            if entry.done.done():  # cancelled: nobody waits for it
                continue
            if error is None:
                entry.done.set_result(None)
            else:
                entry.done.set_exception(error)
        self._plan()

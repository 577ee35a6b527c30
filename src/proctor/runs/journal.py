"""Group commit: answers given at about the same time share one transaction, none counts before it."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.core import Answer, Score
from proctor.runs.store import Run, Store

__all__ = ["Journal"]

_MOST = 512  # answers in one transaction


@dataclass(frozen=True)
class _Entry:
    run: Run
    answer: Answer
    scores: Sequence[Score]
    done: asyncio.Future[None]


class Journal:
    """Writes answers from an event loop through one thread. Use as a context manager inside the loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="proctor-journal", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Journal:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._waiting.put(None)
        self._thread.join()

    async def write(self, run: Run, answer: Answer, scores: Sequence[Score]) -> None:
        """Returns when the answer is on disk; raises what the store raised."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.put(_Entry(run, answer, scores, done))
        await done

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, last = self._gather(first)
            error: Exception | None = None
            try:
                self._store.write_many([(entry.run, entry.answer, entry.scores) for entry in batch])
            except Exception as raised:  # noqa: BLE001 - handed to whoever waits; the thread must go on
                error = raised
            if self._loop is not None:
                self._loop.call_soon_threadsafe(_settle, batch, error)
            if last:
                return

    def _gather(self, first: _Entry) -> tuple[list[_Entry], bool]:
        batch = [first]
        while len(batch) < _MOST:
            try:
                entry = self._waiting.get_nowait()
            except queue.Empty:
                return batch, False
            if entry is None:
                return batch, True
            batch.append(entry)
        return batch, False


def _settle(batch: Sequence[_Entry], error: Exception | None) -> None:
    for entry in batch:
        if entry.done.done():
            continue
        if error is None:
            entry.done.set_result(None)
        else:
            entry.done.set_exception(error)

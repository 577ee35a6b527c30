"""Questions that are asked at the same time, answered together by one worker thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from proctor.core import aside

__all__ = ["Batches"]

Q = TypeVar("Q")
R = TypeVar("R")

_GATHERING_S = 0.01  # so long the first one waits for others that are about to be asked


@dataclass
class _Waiting(Generic[Q, R]):
    query: Q
    started: asyncio.Future[None]
    done: asyncio.Future[R]

    @property
    def given_up(self) -> bool:
        return self.started.cancelled() or self.done.cancelled()


class Batches(Generic[Q, R]):
    """`load` is called once before the first batch, `run` with up to `size` questions of one `kind` and a
    function that says whether nobody waits for their answers any more; both in a thread of their own."""

    def __init__(
        self,
        load: Callable[[], None],
        run: Callable[[Sequence[Q], Callable[[], bool]], Sequence[R]],
        size: int,
        kind: Callable[[Q], object],
    ) -> None:
        self._load = load
        self._run = run
        self._size = size
        self._kind = kind
        self._queue: deque[_Waiting[Q, R]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="weights")

    async def ask(self, query: Q) -> R:
        """The answer to one question. Raises what `load` or `run` raised."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting[Q, R] = _Waiting(query, loop.create_future(), loop.create_future())
        self._queue.append(waiting)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        with aside("retry"):  # others are at work: no time of this question's
            await waiting.started
        return await waiting.done

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(_GATHERING_S)
            while self._queue:
                batch = self._next()
                if not batch:
                    continue
                try:
                    await loop.run_in_executor(self._thread, self._load)
                except Exception as error:  # noqa: BLE001 - whoever asked gets it: else they would wait for ever
                    _end(batch, error)
                    continue
                await self._answer(batch)
        finally:
            self._worker = None

    async def _answer(self, batch: Sequence[_Waiting[Q, R]]) -> None:
        for one in batch:
            if not one.started.done():
                one.started.set_result(None)
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(
                self._thread, self._run, [one.query for one in batch], lambda: all(o.given_up for o in batch)
            )
        except Exception as error:  # noqa: BLE001 - whoever asked gets it, whatever it is
            _end(batch, error)
            return
        for one, answer in zip(batch, answers, strict=True):
            if not one.given_up:
                one.done.set_result(answer)

    def _next(self) -> list[_Waiting[Q, R]]:
        """The questions to be answered together: the oldest one, and others of its kind."""
        waiting = [one for one in self._queue if not one.given_up]
        batch = [one for one in waiting if self._kind(one.query) == self._kind(waiting[0].query)][
            : self._size
        ]
        self._queue = deque(one for one in waiting if one not in batch)
        return batch


def _end(batch: Sequence[_Waiting[Q, R]], error: Exception) -> None:
    for one in batch:
        if one.given_up:
            continue
        if one.started.done():
            one.done.set_exception(error)
        else:
            one.started.set_exception(error)

"""How the engine keeps a pause: which runs are paused, and items queued in order without those of paused runs."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from proctor.core import Item
from proctor.runs.controls import pauses
from proctor.runs.database import StoreAwayError, outlasting
from proctor.runs.store import Run, Store
from proctor.runs.tally import Tally

if TYPE_CHECKING:
    from proctor.runs.engine import Job

    Waiting = asyncio.Queue[tuple[Job, Item, float] | None]

LOOK_S = 1.0
"""The seconds between looks for runs that were paused or resumed."""

_REST_S = 0.25


class PausedRuns:
    """Which of these runs are `paused`, by number, and the items of theirs that were queued before and are set `aside`."""

    def __init__(self, store: Store, runs: Sequence[Run], tally: Tally, on_change: Callable[[Tally], None]) -> None:
        self._store, self._runs = store, {run.id: run for run in runs}
        self._tally, self._on_change = tally, on_change
        self.paused: frozenset[int] = frozenset()
        self.aside: list[tuple[Job, Item]] = []

    async def begin(self) -> None:
        """Looks once, before anything is asked."""
        self._note(await asyncio.to_thread(outlasting, self._look))

    async def watch(self) -> None:
        """Looks repeatedly. A database that can't be reached is reported by those who write to it."""
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(StoreAwayError):
                self._note(await asyncio.to_thread(self._look))

    def _look(self) -> frozenset[int]:
        with self._store.reading() as connection:
            return frozenset(pauses(connection, self._store.shown).keys() & self._runs.keys())

    def _note(self, found: frozenset[int]) -> None:
        if found != self.paused:
            self.paused = found
            names = (self._runs[number] for number in sorted(found))
            self._tally.paused = tuple(f"{run.system} / {run.condition}" for run in names)
            self._on_change(self._tally)


async def feed(jobs: Sequence[Job], waiting: Waiting, stop: asyncio.Event, tally: Tally, held: PausedRuns) -> None:
    """Queues the items of the jobs in order, those of a paused run once it is resumed, until `stop` is set."""
    tally.total += sum(len(job.items) for job in jobs)
    left = [(job, deque(job.items)) for job in jobs if job.items]
    while left and not stop.is_set():
        entry = next((one for one in left if one[0].run.id not in held.paused), None)
        if entry is None:
            await asyncio.sleep(_REST_S)
            continue
        job, items = entry
        await waiting.put((job, items.popleft(), time.monotonic()))
        if not items:
            left.remove(entry)
        if not left:
            await waiting.join()  # of a run that was paused meanwhile, queued items come back
            left, held.aside = [(own, deque([item])) for own, item in held.aside], []

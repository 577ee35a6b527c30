"""Processes that exist in a test alone: each has an event loop, a clock, a machine, a PID namespace and a number of its own,
and can be stopped, continued and killed between any two steps. All work on one real SQLite store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np
from sqlalchemy import Connection, select

from proctor.core import Answer, Item, Usage, View
from proctor.metrics import AccuracyScorer
from proctor.runs import ItemClaims, Limits, Run, Store, Tally, schema
from proctor.runs.database import StoreAwayError
from proctor.runs.engine import Job, ask_all
from proctor.runs.run_leases import Process
from proctor.runs.unwritten import add_unwritten
from tests.support.toy_run import BlindView

T = TypeVar("T")

CONCURRENCY = 2
LATEST_S = 35.0  # a reply takes up to this long


class _Loop(asyncio.SelectorEventLoop):
    """Threads run at once, and the time is the world's."""

    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__()

    def time(self) -> float:
        return self._world.now

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *args: object) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 (as a thread hands it on)
            done.set_exception(error)
        return done

    @property
    def wakes_at(self) -> float | None:
        """When there is something to do; None: never again by itself."""
        if self._ready:  # type: ignore[attr-defined]
            return self._world.now
        timers = [timer._when for timer in self._scheduled if not timer._cancelled]  # type: ignore[attr-defined]
        return min(timers, default=None)


class _AtOnce:
    """Instead of the journal's thread."""

    def __init__(self, **_: object) -> None:
        pass

    def submit(self, call: Callable[..., object], *args: object) -> Future[None]:
        call(*args)
        return Future()

    def shutdown(self, *, wait: bool) -> None:
        pass


class PretendedStore(Store):
    """The store as one process sees it: away at times, and at times without a word that a commit succeeded."""

    process: PretendedProcess

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        self._check()
        with super().writing() as connection:
            yield connection
        if self.process.world.draws.random() < self.process.world.unconfirmed:
            raise StoreAwayError(self.shown, found="no word of the commit", expected="a database that can be reached")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        self._check()
        with super().reading() as connection:
            yield connection

    def _check(self) -> None:
        world = self.process.world
        if self.process.dead or world.now < world.away_until:
            raise StoreAwayError(self.shown, found="no connection", expected="a database that can be reached")


@dataclass
class PretendedProcess:
    """One `run`. `ahead` is how far its clock is ahead of the others'."""

    world: World
    number: int
    who: Process
    ahead: float
    shares: bool
    dead: bool = False
    stopped: bool = False
    tally: Tally | None = None
    error: BaseException | None = None
    asked: list[str] = field(default_factory=list)
    name = "scripted"
    settings: dict[str, Any] = field(default_factory=dict)

    def start(self) -> None:
        self.loop = _Loop(self.world)
        self.store = PretendedStore(self.world.path)
        self.store.process = self
        self.claims = ItemClaims(self.store) if self.shares else None
        self.task = self.loop.create_task(self._run())

    @property
    def ended(self) -> bool:
        return self.task.done()

    async def _run(self) -> None:
        try:
            await self._ask()
        except Exception as error:  # noqa: BLE001 (the edge of a process)
            self.error = error

    async def _ask(self) -> None:
        run = self.store.start_run("toy", "scripted", "video", {})
        add_unwritten(self.store, run)
        settled = self.store.settled(run)
        items = [item for item in self.store.items("toy") if item.id not in settled]
        job = Job(run, self, items, lambda _: BlindView(), (AccuracyScorer(),), settled=len(settled))
        await asyncio.sleep(float(self.world.draws.uniform(0, 5)))  # between the plan and the first question
        limits = Limits(concurrency=CONCURRENCY)
        await ask_all([job], self.store, limits=limits, on_change=self._counted, claims=self.claims)

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        self.world.note_asked(self, item.id)
        self.asked.append(item.id)
        await asyncio.sleep(float(self.world.draws.uniform(1, LATEST_S)))
        return Answer(item_id=item.id, text="2", usage=Usage(requests=1, input_tokens=self.number))

    def _counted(self, tally: Tally) -> None:
        """What is counted is on disk, and is this process's own answer."""
        self.tally = tally
        self.world.expect(tally.done <= self.world.stored_of(self), f"process {self.number} counts what is not on disk")

    def step(self) -> None:
        """One turn of its loop."""
        self.world.current = self
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def end(self) -> None:
        """Cleans up after the test: whatever it does now reaches no store."""
        self.dead = True
        self.task.cancel()
        while not self.task.done():
            self.step()
            self.world.now += 1.0
        with suppress(asyncio.CancelledError):
            self.task.exception()
        self.loop.close()
        self.store.close()


class World:
    """All processes, their clocks, and what they asked. `skewed` clocks make an owner that is at work look silent: then it
    may ask once more in each task before it learns that it lost the run."""

    def __init__(self, path: Path, draws: np.random.Generator, *, skewed: bool, unconfirmed: float) -> None:
        self.path, self.draws, self.skewed, self.unconfirmed = path, draws, skewed, unconfirmed
        self.now, self.away_until = 1_000_000.0, 0.0
        self.processes: list[PretendedProcess] = []
        self.current: PretendedProcess | None = None
        self.requests: list[tuple[int, str]] = []
        self.without_lease: dict[int, int] = {}
        self.violations: list[str] = []
        self.look = Store(path)  # the test's own eyes

    def start(self, location: str, pid: int, *, ahead: float, shares: bool) -> PretendedProcess:
        """A new process; it may have the number of one that is dead."""
        number = len(self.processes) + 1
        who = Process(location, pid, str(number), "node")
        made = PretendedProcess(self, number, who, ahead if self.skewed else 0.0, shares)
        self.processes.append(made)
        self.current = made
        made.start()
        return made

    def living(self) -> list[PretendedProcess]:
        return [one for one in self.processes if not one.dead and not one.ended]

    def pass_time(self, seconds: float) -> None:
        """Lets every process that is not stopped work for so long."""
        ends = self.now + seconds
        while True:
            at_work = [one for one in self.living() if not one.stopped]
            due = [(wakes, one.number, one) for one in at_work if (wakes := one.loop.wakes_at) is not None]
            if not due or min(due)[0] > ends:
                self.now = max(self.now, ends)
                return
            now = [one for wakes, _, one in due if wakes <= max(self.now, min(due)[0])]
            self.now = max(self.now, min(due)[0])
            now[int(self.draws.integers(len(now)))].step()

    # -- what is patched

    def status(self, pid: int) -> tuple[str, str]:
        """As in /proc of the process that looks."""
        assert self.current is not None
        location = self.current.who.location
        for one in reversed(self.processes):
            if (one.who.location, one.who.pid) == (location, pid):
                gone = one.dead or one.ended
                return ("", "") if gone else ("T" if one.stopped else "S", one.who.started)
        return "", ""

    def clock(self) -> float:
        assert self.current is not None
        return self.now + self.current.ahead

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    # -- what is watched

    def note_asked(self, by: PretendedProcess, item: str) -> None:
        """Whoever asks holds the lease, and what is on disk is not asked."""
        self.requests.append((by.number, item))
        run = self.look.runs("toy")[0]
        if self._has_lease(by, run, item):
            self.expect(item not in self.look.settled(run), f"{item} is on disk and asked again")
            return
        self.without_lease[by.number] = self.without_lease.get(by.number, 0) + 1
        once_more = self.skewed and (by.shares or self.without_lease[by.number] <= CONCURRENCY)
        self.expect(once_more, f"process {by.number} asks {item} without a lease")

    def expect(self, holds: bool, otherwise: str) -> None:
        """Notes what does not hold: the engine takes an exception here for one of the system."""
        if not holds:
            self.violations.append(otherwise)

    def _has_lease(self, by: PretendedProcess, run: Run, item: str) -> bool:
        number = self.look.item_numbers("toy")[item]
        with self.look.reading() as connection:
            owner = connection.execute(select(schema.runs.c.owner).where(schema.runs.c.id == run.id)).scalar_one()
            table = schema.claims
            mine = select(table.c.worker).where(table.c.run == run.id, table.c.item == number)
            worker = connection.execute(mine).scalar()
        if by.claims is not None:
            return worker == by.claims.worker
        return f" {by.who.location} {by.who.pid} {by.who.started} " in owner

    def stored_of(self, process: PretendedProcess) -> int:
        run = self.look.runs("toy")[0]
        return sum(one.usage.input_tokens == process.number for one in self.look.answers(run).values())

    def close(self) -> None:
        for one in self.processes:
            one.end()
        self.look.close()


@contextmanager
def pretended_world(path: Path, draws: np.random.Generator, *, skewed: bool, unconfirmed: float) -> Iterator[World]:
    """A world whose time the processes of Proctor take for theirs."""
    world = World(path, draws, skewed=skewed, unconfirmed=unconfirmed)
    with ExitStack() as stack:
        for name, value in {
            "proctor.runs.run_leases.this_process": lambda: world.current.who,  # type: ignore[union-attr]
            "proctor.runs.run_leases._status": world.status,
            "proctor.runs.leases.lease_time": world.read,
            "proctor.runs.database.machine_time": world.clock,
            "proctor.runs.journal.ThreadPoolExecutor": _AtOnce,
            "time.monotonic": world.read,
            "time.sleep": world.sleep,
        }.items():
            stack.enter_context(mock.patch(name, value))
        try:
            yield world
        finally:
            world.close()

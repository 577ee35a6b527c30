"""What is in a store, followed while others write it.

One thread looks at the store's files, reads again what changed, and publishes a new state; pages read the newest state
and never wait for it. Nothing is ever written.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from proctor.core import ProctorError
from proctor.results import AnswerIndex, AnswerState, RunProgress, load_index, run_progress
from proctor.runs import Run, Store, runs_at_work, store_files

_LOOK_S = 0.5  # between two looks, and at least this multiple of what the last one took:
_REST = 3.0
_AGAIN_S = 15.0  # read again although no file seems to have changed
_WHOLE_REST = 10.0  # all runs are looked at in a tenth of the time at most; those that are being asked, each time
_SERVER_S = 1.0  # between two looks at a database server, which has no files
_RATE_S = 60.0  # over which the rate of answers is measured
_LEAST_S = 3.0  # no rate before
_NEWEST = 8
_ABSENT = (AnswerState.NOT_ASKED, AnswerState.FAILED, AnswerState.UNSUPPORTED)  # what fails is asked again


@dataclass(frozen=True)
class RunState:
    """A run as it is now: how far it is, whether somebody asks it, and the answers a second that were seen to arrive
    (None: not yet known)."""

    progress: RunProgress
    working: bool
    rate: float | None = None

    @property
    def left_s(self) -> float | None:
        """The seconds until it is complete at this rate; None where nothing can be said."""
        if not self.working or not self.rate:
            return None
        return self.progress.left / self.rate


@dataclass(frozen=True)
class Arrival:
    """An answer that came in while the store was followed: the position of its item, its run and repetition, and when it was
    seen (UTC). The store keeps no time of an answer."""

    position: int
    run: int
    repetition: int
    seen: datetime


@dataclass(frozen=True)
class BenchmarkState:
    """A benchmark as it is now. `version` rises with each change; `changed` is when the last one was seen. `newest` are the
    last answers that came in since the view began, the newest first; of those seen at once, the later items first."""

    index: AnswerIndex
    runs: tuple[RunState, ...]
    version: int
    changed: datetime
    newest: tuple[Arrival, ...] = ()

    @property
    def name(self) -> str:
        """The benchmark's name."""
        return self.index.card.name

    @property
    def working(self) -> list[RunState]:
        """The runs that are being asked."""
        return [one for one in self.runs if one.working]

    @property
    def settled_stamp(self) -> tuple[object, ...]:
        """What statistics depend on: the answers of runs that nobody asks now, and which ones these are. So figures do not
        jump while a run goes on, and are computed when it ends."""
        idle = [one.progress.run.id for one in self.runs if not one.working]
        return self.index.fingerprint, tuple((number, self.index.stamps[number]) for number in idle), len(self.runs)


@dataclass
class _Samples:
    """How many answers of a run were there at which time (monotonic seconds)."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, now: float, count: int) -> None:
        self.seen.append((now, count))
        while len(self.seen) > 2 and now - self.seen[1][0] > _RATE_S:
            self.seen.popleft()

    @property
    def rate(self) -> float | None:
        """Answers a second."""
        if len(self.seen) < 2:
            return None
        (start, first), (end, last) = self.seen[0], self.seen[-1]
        return max(0.0, (last - first) / (end - start)) if end - start >= _LEAST_S else None


class StoreWatch:
    """A store that is followed. `start` begins a thread; `look` can be called instead, as tests do. `states` is the newest
    state of each benchmark, `fault` what keeps the store from being read now ("" for nothing); `seen` is when it was read
    last."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self.states: Mapping[str, BenchmarkState] = {}
        self.fault = ""
        self.seen = datetime.now(UTC)
        self._clock = clock
        self._files: tuple[tuple[int, int, int], ...] = ()
        self._read_at = self._whole_at = float("-inf")
        self._samples: dict[int, _Samples] = {}
        self._stop = threading.Event()
        self._looking = threading.Lock()

    def start(self) -> None:
        """Follows the store in a thread, which ends with the process or `stop`."""
        threading.Thread(target=self._follow, name="proctor-view", daemon=True).start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()

    def _follow(self) -> None:
        pause = _LOOK_S
        while not self._stop.wait(pause):
            began = self._clock()
            self.look()
            least = _LOOK_S if self._files else _SERVER_S
            pause = max(least, _REST * (self._clock() - began))

    def look(self) -> None:
        """Reads what has changed since the last look. A store that can't be read now leaves the last state, and a `fault`."""
        with self._looking:
            try:
                self._look()
            except ProctorError as error:
                self.fault = str(error)
            else:
                self.fault = ""

    def _look(self) -> None:
        files, now = self._stamp(), self._clock()
        changed = files != self._files or not files or now - self._read_at > _AGAIN_S
        whole = changed and now >= self._whole_at
        found: dict[str, BenchmarkState] = {}
        for name in self.store.benchmark_names() if changed else list(self.states):
            before = self.states.get(name)
            index = None if before is None else before.index
            if changed or index is None:
                lively = None if whole or before is None else {one.progress.run.id for one in before.working}
                index = load_index(self.store, name, index, lively)
            found[name] = self._state(index, before, now)
        self.states, self.seen = found, datetime.now(UTC)
        if whole:
            self._files, self._read_at = files, now
            self._whole_at = now + _WHOLE_REST * (self._clock() - now)

    def _state(self, index: AnswerIndex, before: BenchmarkState | None, now: float) -> BenchmarkState:
        working = runs_at_work(self.store, index.card.name)
        runs = list({one.run.id: one.run for one in index.columns}.values())
        known = {} if before is None else {one.progress.run.id: one.progress for one in before.runs}
        stale = [run for run in runs if run.id not in known or _moved(index, before, run)]
        known |= {one.run.id: one for one in run_progress(self.store, index, stale)}
        states = []
        for run in runs:
            samples = self._samples.setdefault(run.id, _Samples())
            if run.id not in working:
                samples.seen.clear()
            samples.add(now, known[run.id].settled)
            states.append(RunState(known[run.id], run.id in working, samples.rate))
        if before is not None and index is before.index and _same(before.runs, states):
            return replace(before, runs=tuple(states))
        version = 1 if before is None else before.version + 1
        seen = datetime.now(UTC)
        return BenchmarkState(index, tuple(states), version, seen, _newest(index, before, seen))

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        """What changes when a file of the store is written; empty for a server's database."""
        found = []
        for file in store_files(self.store.shown):
            try:
                known = file.stat()
            except OSError:
                continue
            found.append((known.st_ino, known.st_size, known.st_mtime_ns))
        return tuple(found)


def _newest(index: AnswerIndex, before: BenchmarkState | None, seen: datetime) -> tuple[Arrival, ...]:
    """The answers that are here now and were not `before`, then those that were new then."""
    if before is None or before.index.items is not index.items:
        return ()
    then = {(one.run.id, one.repetition): one for one in before.index.columns}
    new = list[Arrival]()
    for column in index.columns:
        key = column.run.id, column.repetition
        known = then.get(key)
        if known is not None and known.state is column.state:
            continue
        there = ~column.where(_ABSENT)
        came = there if known is None else there & known.where(_ABSENT)
        new += [Arrival(position, *key, seen) for position in came.nonzero()[0][-_NEWEST:].tolist()]
    new.sort(key=lambda one: one.position, reverse=True)
    here = {(column.run.id, column.repetition) for column in index.columns}
    again = {(one.position, one.run, one.repetition) for one in new}
    earlier = [one for one in before.newest if (one.position, one.run, one.repetition) not in again]
    return (*new, *(one for one in earlier if (one.run, one.repetition) in here))[:_NEWEST]


def _moved(index: AnswerIndex, before: BenchmarkState | None, run: Run) -> bool:
    return (
        before is None
        or before.index.stamps.get(run.id) != index.stamps.get(run.id)
        or before.index.items is not index.items
    )


def _same(before: tuple[RunState, ...], now: list[RunState]) -> bool:
    return [(one.progress, one.working) for one in before] == [(one.progress, one.working) for one in now]

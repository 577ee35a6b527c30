"""A clock of the test's own: waiting takes no time and lasts exactly as long as it says, however busy the
machine is. Beside it, two ways to prove a property without any clock: patience, and counting steps."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from types import FrameType
from typing import Any, TypeVar, cast
from unittest import mock

T = TypeVar("T")

_HANGS_S = 600.0  # a guard against waiting indefinitely; no property of what is waited for


class Clock:
    """Stands still until somebody waits."""

    def __init__(self) -> None:
        self._now = 1000.0

    def read(self) -> float:
        """Seconds, from where `time.monotonic` would be."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Lets so much time pass at once."""
        self._now += seconds


@contextlib.contextmanager
def clock_standing_still() -> Iterator[Clock]:
    """`time.monotonic` reads this clock, and `time.sleep` advances it."""
    clock = Clock()
    with mock.patch.object(time, "monotonic", clock.read), mock.patch.object(time, "sleep", clock.advance):
        yield clock


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, with a clock that jumps to the next timer once nothing else is left to do.

    What runs in threads of `run_in_executor` is waited for, and takes no time. There is no network in here: a
    server's reply would come after every time-out.
    """
    with clock_standing_still() as clock, asyncio.Runner(loop_factory=lambda: _Loop(clock)) as runner:
        return runner.run(main)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Clock) -> None:
        self._virtual = clock
        self.at_work = 0
        super().__init__(_Selector(self, clock))

    def time(self) -> float:
        return self._virtual.read()

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *args: object) -> asyncio.Future[T]:
        self.at_work += 1
        future = super().run_in_executor(cast("Any", executor), func, *args)
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, _: asyncio.Future[Any]) -> None:
        self.at_work -= 1


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: _Loop, clock: Clock) -> None:
        super().__init__()
        self._loop = loop
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None or self._loop.at_work:
            return super().select(None)
        self._clock.advance(timeout)
        return []


def until(holds: Callable[[], bool]) -> None:
    """Waits for what other threads or processes do; raises where it never comes."""
    deadline = time.monotonic() + _HANGS_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come to it"
        time.sleep(0.005)


def steps_of(work: Callable[[], object]) -> int:
    """How many lines of Python a call executes: its cost, the same on every machine."""
    steps = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        nonlocal steps
        steps += event == "line"
        return count

    earlier = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(earlier)
    return steps

"""A stopwatch that keeps the model's time apart from everybody else's.

An answer's time is the model's, except for what is spent in `aside(...)`: decoding media, waiting to
retry after an infrastructure error, or for a server that is free. A budget is measured on the model's time alone, so a slow disk
or a rate limit never turns into "the model was too slow".
"""

from __future__ import annotations

import time
from asyncio import Timeout
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from proctor.core.records import Timing

Purpose = Literal["media", "retry", "queue"]

_current: ContextVar[Stopwatch | None] = ContextVar("proctor_stopwatch", default=None)


class Stopwatch:
    """Measures one answer by the monotonic clock. Not for several tasks of one answer at once:
    overlapping asides are counted once, from the first one's start to the last one's end.

    >>> watch = Stopwatch()
    >>> with watch.running(), aside("media"):
    ...     time.sleep(0.01)
    >>> watch.timing().media_s >= 0.01 > watch.timing().model_s
    True
    """

    def __init__(self, budget: Timeout | None = None) -> None:
        self._budget = budget
        self._spent: dict[Purpose, float] = {"media": 0.0, "retry": 0.0, "queue": 0.0}
        self._open = 0
        self._opened_at = 0.0
        self._deadline: float | None = None
        self._started = time.monotonic()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Makes this the stopwatch that `aside` finds in this task and the tasks it starts."""
        token = _current.set(self)
        self._started = time.monotonic()
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def aside(self, purpose: Purpose) -> Iterator[None]:
        """Counts the time inside as `purpose`, and stops the budget for as long."""
        self._enter()
        try:
            yield
        finally:
            self._leave(purpose)

    def rebook(self, seconds: float, purpose: Purpose) -> None:
        """Counts the last `seconds` as `purpose` after all, and gives them back to the budget: what an
        attempt was is known only when it has failed. Inside an aside they are counted there already."""
        if self._open:
            return
        self._spent[purpose] += seconds
        deadline = self._budget.when() if self._budget is not None else None
        if self._budget is not None and deadline is not None and not self._budget.expired():
            self._budget.reschedule(deadline + seconds)

    def timing(self, queue_s: float = 0.0) -> Timing:
        """What was measured up to now."""
        total = time.monotonic() - self._started
        beside = sum(self._spent.values())
        return Timing(
            model_s=max(0.0, total - beside),
            media_s=self._spent["media"],
            retry_s=self._spent["retry"],
            queue_s=queue_s + self._spent["queue"],
        )

    def _enter(self) -> None:
        if self._open == 0:
            self._opened_at = time.monotonic()
            if self._budget is not None:
                self._deadline = self._budget.when()
                if not self._budget.expired():
                    self._budget.reschedule(None)
        self._open += 1

    def _leave(self, purpose: Purpose) -> None:
        self._open -= 1
        if self._open:
            return
        taken = time.monotonic() - self._opened_at
        self._spent[purpose] += taken
        if self._budget is not None and self._deadline is not None and not self._budget.expired():
            self._budget.reschedule(self._deadline + taken)


@contextmanager
def aside(purpose: Purpose) -> Iterator[None]:
    """Marks time that is not the model's, wherever in the call tree; free when nobody measures.

    >>> with aside("retry"):
    ...     print("waiting")
    waiting
    """
    watch = _current.get()
    if watch is None:
        yield
        return
    with watch.aside(purpose):
        yield


def rebook(seconds: float, purpose: Purpose) -> None:
    """The same for time that has just passed: `seconds` up to now were not the model's.

    >>> watch = Stopwatch()
    >>> with watch.running():
    ...     rebook(0.5, "retry")
    >>> watch.timing().retry_s
    0.5
    """
    watch = _current.get()
    if watch is not None:
        watch.rebook(seconds, purpose)

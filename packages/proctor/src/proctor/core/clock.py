"""A stopwatch that separates the model's time from waiting and decoding.

The time of an answer counts as the model's, except for what is spent in `aside(...)`: decoding media, waiting to retry
after an infrastructure error, or waiting for a free server. A time budget covers the model's time only, so a slow disk
or a rate limit never makes an answer time out.
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
    """Measures one answer by the monotonic clock. Overlapping asides of concurrent tasks are counted once, from the
    start of the first to the end of the last. `budget` is the timeout that is paused during asides.

    >>> watch = Stopwatch()
    >>> with watch.running(), aside("media"):
    ...     time.sleep(0.01)
    >>> watch.timing().media_s >= 0.01
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
        """Make this the stopwatch used by `aside` in this task and the tasks that it starts."""
        token = _current.set(self)
        self._started = time.monotonic()
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def aside(self, purpose: Purpose) -> Iterator[None]:
        """Count the time inside the block as `purpose`, and pause the budget meanwhile."""
        self._enter()
        try:
            yield
        finally:
            self._leave(purpose)

    def rebook(self, seconds: float, purpose: Purpose) -> None:
        """Count the last `seconds` as `purpose` and return them to the budget, for attempts that turn out to have
        failed. Has no effect inside an aside, where the time is already counted."""
        if self._open:
            return
        self._spent[purpose] += seconds
        deadline = self._budget.when() if self._budget is not None else None
        if self._budget is not None and deadline is not None and not self._budget.expired():
            self._budget.reschedule(deadline + seconds)

    def timing(self, queue_s: float = 0.0) -> Timing:
        """The times measured so far."""
        total = time.monotonic() - self._started
        spent_aside = sum(self._spent.values())
        return Timing(
            model_s=max(0.0, total - spent_aside),
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
    """Count the time inside the block as `purpose` on the current stopwatch, if there is one.

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
    """Count the last `seconds` as `purpose` on the current stopwatch, if there is one.

    >>> watch = Stopwatch()
    >>> with watch.running():
    ...     rebook(0.5, "retry")
    >>> watch.timing().retry_s
    0.5
    """
    watch = _current.get()
    if watch is not None:
        watch.rebook(seconds, purpose)

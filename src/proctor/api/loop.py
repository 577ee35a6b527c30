"""From plain code into the event loop, also where one runs already, as in a notebook."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def wait_for(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs what `make` makes to its end and returns its result, or raises what it raised.

    Where an event loop runs in this thread, another one is started in a thread of its own. Ctrl-C stops the work in
    both cases; what is on disk stays there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    return _Beside(make).wait()


class _Beside(Generic[T]):
    """One coroutine in an event loop of its own, beside the one that runs in this thread."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[T] | None = None
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=lambda: context.run(self._work), daemon=True, name="proctor-loop")

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._task = self._loop.create_task(self._make())
            self._loop.run_until_complete(asyncio.wait([self._task]))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    def wait(self) -> T:
        self._thread.start()
        try:
            self._thread.join()
        except KeyboardInterrupt:
            if self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join()
            raise
        if self._task is None:
            raise RuntimeError("the event loop did not start")
        return self._task.result()

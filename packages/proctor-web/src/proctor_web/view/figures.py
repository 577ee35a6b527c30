"""Statistics for pages, computed one after the other in a thread and kept until what they depend on has changed."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from proctor.core import ProctorError

T = TypeVar("T")

_KEPT = 64
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Figures(Generic[T]):
    """A result and when it was computed (UTC); instead of one, the reason why there is none (`fault`). `stale` says that it
    is of an earlier state, and a newer one is being computed."""

    value: T | None
    as_of: datetime
    fault: str = ""
    stale: bool = False


class FigureDesk:
    """Computes figures on request. Who asks gets what is there at once: the newest result, an earlier one, or None
    while the first one is computed. Nothing is computed before `release`, or before somebody waits for it: the first page
    has the processor to itself."""

    def __init__(self) -> None:
        self._released = threading.Event()
        self._pool = ThreadPoolExecutor(1, "proctor-figures")
        self._lock = threading.Lock()
        self._done: OrderedDict[Hashable, tuple[Hashable, Figures[object]]] = OrderedDict()
        self._running: dict[Hashable, tuple[Hashable, Future[None]]] = {}
        self._closed = False

    def get(
        self, name: Hashable, stamp: Hashable, compute: Callable[[], T], patience_s: float = 0.0
    ) -> Figures[T] | None:
        """The figures of this `name` for a state (`stamp`), of an earlier state while those are computed, or None. Waits
        for new ones up to `patience_s`."""
        with self._lock:
            done = self._done.get(name)
            if done is not None and done[0] == stamp:
                self._done.move_to_end(name)
                return done[1]  # type: ignore[return-value]
            running = self._running.get(name)
            if running is None:
                running = stamp, self._pool.submit(self._compute, name, stamp, compute)
                self._running[name] = running
        if patience_s:
            self._released.set()
            with suppress(TimeoutError):
                running[1].result(patience_s)
        with self._lock:
            done = self._done.get(name)
        if done is None:
            return None
        found: Figures[T] = done[1]  # type: ignore[assignment]
        return found if done[0] == stamp else Figures(found.value, found.as_of, found.fault, stale=True)

    def release(self) -> None:
        """Begins to compute what was asked for."""
        self._released.set()

    def close(self) -> None:
        """Ends the thread, after what it computes now; what waits is left out."""
        self._closed = True
        self._released.set()
        self._pool.shutdown(cancel_futures=True)

    def _compute(self, name: Hashable, stamp: Hashable, compute: Callable[[], object]) -> None:
        self._released.wait()
        if self._closed:
            return
        found = _figures(compute)
        with self._lock:
            self._running.pop(name, None)
            self._done[name] = stamp, found
            while len(self._done) > _KEPT:
                self._done.popitem(last=False)


def _figures(compute: Callable[[], object]) -> Figures[object]:
    try:
        return Figures(compute(), datetime.now(UTC))
    except ProctorError as error:
        return Figures(None, datetime.now(UTC), str(error))
    except Exception:  # noqa: BLE001 - the edge of a thread: the pages say it, the log has the traceback
        _LOG.exception("figures of a view")
        return Figures(None, datetime.now(UTC), "The figures could not be computed; the program's log says why.")

"""Frames of the next items, made in the background while a system works on one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.core import Item, ProctorError

_IDLE_S = 0.2  # for which a thread waits for tasks: starting one takes longer than most of them
_AHEAD = 8
"""Items beyond the last one that was requested; their frames go to the store, not into memory."""


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of `View.frames`; with `own`, instead, one frame for each of the file's own pictures."""

    count: int | None = None
    fps: float | None = None
    window: tuple[float, float] | None = None
    own: bool = False


class LookAhead:
    """Makes the frames of the next items in the background, by the request that the last item got.

    It changes when frames are made and nothing else: a view serves frames from the store, and an error that occurs
    ahead is raised when the item itself is requested. Items that are `ready` are skipped. The thread ends when it has
    nothing to do, and with the process.
    """

    def __init__(
        self,
        items: Sequence[Item],
        prepare: Callable[[Item, Request], object],
        ready: Callable[[Item, Request], bool] = lambda _item, _request: False,
    ) -> None:
        self._items = list(items)
        self._positions = {item.id: position for position, item in enumerate(items)}
        self._prepare = prepare
        self._ready = ready
        self._guard = threading.Condition()
        self._waiting: deque[tuple[int, Request]] = deque()
        self._reached = self._planned = 0
        self._working = False

    def asked(self, item: Item, request: Request) -> None:
        """Notes that an item's frames were requested, and served."""
        position = self._positions.get(item.id)
        if position is None:
            return
        with self._guard:
            self._reached = max(self._reached, position + 1)
            end = min(len(self._items), self._reached + _AHEAD)
            new = range(max(self._planned, self._reached), end)
            self._waiting.extend((k, request) for k in new if not self._ready(self._items[k], request))
            self._planned = max(self._planned, end)
            if self._waiting and not self._working:
                self._working = True
                threading.Thread(target=self._work, name="look-ahead", daemon=True).start()
            elif self._waiting:
                self._guard.notify()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            position, request = task
            try:
                self._prepare(self._items[position], request)
            except ProctorError:
                continue  # raised again when the item itself is requested
            except RuntimeError as error:
                if "interpreter shutdown" in str(error):
                    return  # the program ends
                raise

    def _next(self) -> tuple[int, Request] | None:
        with self._guard:
            while True:
                while self._waiting and self._waiting[0][0] < self._reached:
                    self._waiting.popleft()  # the item itself was faster
                if self._waiting:
                    return self._waiting.popleft()
                if not self._guard.wait(_IDLE_S):
                    self._working = False
                    return None

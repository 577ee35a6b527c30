"""Decoding runs ahead of the model: while it answers one question, the frames of the next ones are made."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.core import Item, ProctorError

__all__ = ["LookAhead", "Request"]

_AHEAD = 8
"""So many items beyond the last one that was asked for; their frames go to the store, not into memory."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a system asks a view for."""

    count: int | None = None
    fps: float | None = None


class LookAhead:
    """Of items in the order in which they will be asked: whatever the last one was asked for is made for the
    next ones as well, one after the other, in the background.

    It changes when frames are made and nothing else: what a view gives comes from the store, and what goes
    wrong ahead is told when the item itself is asked for. The thread ends when it has nothing to do, and with
    the process.
    """

    def __init__(self, items: Sequence[Item], prepare: Callable[[Item, Request], object]) -> None:
        self._items = list(items)
        self._places = {item.id: place for place, item in enumerate(items)}
        self._prepare = prepare
        self._guard = threading.Lock()
        self._waiting: deque[tuple[int, Request]] = deque()
        self._reached = self._planned = 0
        self._working = False

    def asked(self, item: Item, request: Request) -> None:
        """An item's frames were asked for, and are there."""
        place = self._places.get(item.id)
        if place is None:
            return
        with self._guard:
            self._reached = max(self._reached, place + 1)
            end = min(len(self._items), self._reached + _AHEAD)
            self._waiting.extend((k, request) for k in range(max(self._planned, self._reached), end))
            self._planned = max(self._planned, end)
            if self._waiting and not self._working:
                self._working = True
                threading.Thread(target=self._work, name="look-ahead", daemon=True).start()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            place, request = task
            try:
                self._prepare(self._items[place], request)
            except ProctorError:
                continue  # told when the item itself is asked for
            except RuntimeError as error:
                if "interpreter shutdown" in str(error):
                    return  # the program ends: nobody will ask
                raise

    def _next(self) -> tuple[int, Request] | None:
        with self._guard:
            while self._waiting and self._waiting[0][0] < self._reached:
                self._waiting.popleft()  # the item itself was faster
            if not self._waiting:
                self._working = False
                return None
            return self._waiting.popleft()

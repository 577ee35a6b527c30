"""What the pages of a view share: the store that is followed, statistics, pictures; and what a page is."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.core import InputError, one_of
from proctor.runs import Store
from proctor_web.view.figures import FigureDesk
from proctor_web.view.query import Query, read_query
from proctor_web.view.shown import ShownAgain
from proctor_web.view.watch import BenchmarkState, StoreWatch

TOKEN = "token"  # noqa: S105 - the name of the field
"""Under this name an address may bring the token."""


_QUIET_S = 0.4  # without a page that is asked for, before what can wait begins,
_MOST_WAIT_S = 4.0  # at the latest after this time


@dataclass(frozen=True)
class Page:
    """A page: its template, what it fills in, and the same as data: `data` for JSON, `rows` for CSV."""

    template: str
    context: Mapping[str, Any]
    data: Any = None
    rows: Sequence[Mapping[str, Any]] = ()
    tab: str = ""


class View:
    """A store that is shown. `media` is the folder of the media instead of the one that the store remembers. What can wait
    (statistics, texts read ahead) begins once the first page is sent (`first_sent`) and no other one follows at once."""

    def __init__(self, store: Store, media: str | Path | None = None) -> None:
        self.store, self.watch, self.desk = store, StoreWatch(store), FigureDesk()
        self.media = media
        self.first_sent = threading.Event()
        self.closed = False
        self._shown: dict[str, ShownAgain] = {}
        self._pages = threading.Condition()
        self._answering, self._last = 0, time.monotonic()
        self.most_wait_s = _MOST_WAIT_S

    @property
    def name(self) -> str:
        """The store's name: that of its file, or the address of its server without a password."""
        shown = self.store.shown
        return Path(shown).name if "://" not in shown else shown

    def state(self, benchmark: str) -> BenchmarkState:
        """The newest state of a benchmark. Raises `InputError` for one that is not in the store."""
        states = self.watch.states
        if benchmark not in states:
            raise InputError(
                "benchmark", found=repr(benchmark), expected=one_of([*states], benchmark) if states else "one"
            )
        return states[benchmark]

    def media_of(self, benchmark: str) -> str | Path | None:
        """Where this benchmark's media are; None where that is not known."""
        return self.media or self.state(benchmark).index.card.folders.get("media")

    def shown(self, benchmark: str) -> ShownAgain:
        """What makes pictures of this benchmark again."""
        from proctor.media import cache_folder, media_folder

        if benchmark not in self._shown:
            location = self.media_of(benchmark)
            root = None if location is None else media_folder(location, cache_folder(None))
            self._shown[benchmark] = ShownAgain(self.store, benchmark, root)
        return self._shown[benchmark]

    def page_asked(self) -> None:
        """Somebody waits for a page."""
        with self._pages:
            self._answering += 1

    def page_sent(self) -> None:
        """A page is with the reader; the first one begins the wait of what can wait."""
        with self._pages:
            self._answering -= 1
            self._last = time.monotonic()
            first = not self.first_sent.is_set()
            self.first_sent.set()
            self._pages.notify_all()
        if first:
            threading.Thread(target=self._release, name="proctor-release", daemon=True).start()

    def wait_for_quiet(self, most_s: float | None = None) -> None:
        """Waits until nobody has waited for a page for a moment, or for `most_s` seconds at most (None: `most_wait_s`)."""
        end = time.monotonic() + (self.most_wait_s if most_s is None else most_s)
        with self._pages:
            while not self.closed and (now := time.monotonic()) < end:
                quiet = self._last + _QUIET_S
                if not self._answering and now >= quiet:
                    return
                self._pages.wait(end - now if self._answering else min(end, quiet) - now)

    def _release(self) -> None:
        self.wait_for_quiet()
        self.desk.release()

    def close(self) -> None:
        """Ends the threads that follow the store, and removes cached pictures."""
        with self._pages:
            self.closed = True
            self._pages.notify_all()
        self.first_sent.set()
        self.watch.stop()
        self.desk.close()
        for one in self._shown.values():
            one.close()
        self.store.close()


@dataclass(frozen=True)
class Asked:
    """A request for a page of one benchmark. `part` is a piece of the page that its script asks for."""

    view: View
    state: BenchmarkState
    pairs: Sequence[tuple[str, str]] = ()
    segments: Sequence[str] = ()
    query: Query = field(default_factory=Query)

    @classmethod
    def of(cls, view: View, benchmark: str, pairs: Sequence[tuple[str, str]], segments: Sequence[str]) -> Asked:
        """What an address asks for. Raises `InputError` for what is unknown."""
        state = view.state(benchmark)
        return cls(view, state, pairs, segments, read_query(pairs, state.index))

    def value(self, name: str) -> str:
        """A value of the address; "" where there is none."""
        return next((value for known, value in self.pairs if known == name), "")

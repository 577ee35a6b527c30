"""The frame store as a whole: what it holds, whether that is sound, and how it is kept within bounds."""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proctor.media.catalogue import unwritable
from proctor.media.entries import LOCK, drop, is_whole, source_of

_PINNED = 32  # each costs an open file


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """One ZIP of the store: its size and when it was last read (seconds since 1970)."""

    path: Path
    size: int
    used_at: float

    def source(self) -> str:
        """The name of the file that its pictures are of; empty where the entry can't be read."""
        return source_of(self.path)


def kept(cache_dir: Path) -> list[KeptEntry]:
    """All entries, the one that was not read for longest first."""
    found = []
    for path in cache_dir.glob("frames/*/*/*.zip"):
        with suppress(FileNotFoundError):
            state = path.stat()
            found.append(KeptEntry(path, state.st_size, state.st_mtime))
    return sorted(found, key=lambda entry: (entry.used_at, entry.path))


def damaged(cache_dir: Path) -> list[KeptEntry]:
    """The entries of which a picture is not what was written."""
    found = []
    for entry in kept(cache_dir):
        with suppress(FileNotFoundError):
            if not is_whole(entry.path):
                found.append(entry)
    return found


def prune(cache_dir: Path, max_bytes: int) -> list[KeptEntry]:
    """Removes the entries that were not read for longest, until the others take at most `max_bytes`; returns
    what was removed.

    What a running process reads (see `Pins`) and what is being filled stays, even where that is more than
    `max_bytes`. Raises `ConfigurationError` where the cache can't be written to.
    """
    entries = kept(cache_dir)
    total = sum(entry.size for entry in entries)
    removed = []
    for entry in entries:
        if total <= max_bytes:
            break
        with _unless_used(entry.path.parent) as free:
            if free:
                drop(entry.path)
                removed.append(entry)
                total -= entry.size
    return removed


class Pins:
    """The shelves that a process read last (32), held with a shared lock on their folders, which the system
    releases when the process dies, however it dies: a pin that is left behind can't be."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: OrderedDict[Path, int] = OrderedDict()
        weakref.finalize(self, _release, self._held)

    def hold(self, folder: Path) -> None:
        """Keeps this shelf from being removed; waits while it is. Nothing to hold before the shelf exists."""
        with self._guard:
            if folder in self._held:
                self._held.move_to_end(folder)
                return
            with suppress(FileNotFoundError, NotADirectoryError):
                opened = os.open(folder, os.O_RDONLY)
                fcntl.flock(opened, fcntl.LOCK_SH)
                self._held[folder] = opened
            while len(self._held) > _PINNED:
                os.close(self._held.popitem(last=False)[1])


def _release(held: dict[Path, int]) -> None:
    while held:
        os.close(held.popitem()[1])


@contextmanager
def _unless_used(folder: Path) -> Iterator[bool]:
    with ExitStack() as locks:
        try:
            opened = os.open(folder, os.O_RDONLY)
            locks.callback(os.close, opened)
            lock = locks.enter_context((folder / LOCK).open("ab"))
        except OSError as error:
            raise unwritable(folder, error) from error
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True

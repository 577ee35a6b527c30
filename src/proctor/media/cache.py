"""The frame store as a whole: what it holds, whether that is sound, and how it is kept within bounds."""

from __future__ import annotations

import fcntl
import json
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proctor.media.catalogue import unwritable
from proctor.media.entries import LOCK, MANIFEST, is_whole

__all__ = ["KeptEntry", "damaged", "kept", "prune"]

_IN_USE_S = 60.0  # a read is marked at most half as often; what was read since is not removed


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """One ZIP of the store: its size and when it was last read (seconds since 1970)."""

    path: Path
    size: int
    used_at: float

    def source(self) -> str:
        """The name of the file that its pictures are of; empty where the entry can't be read."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                return str(json.loads(archive.read(MANIFEST))["name"])
        except (OSError, zipfile.BadZipFile, KeyError, ValueError):
            return ""


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

    What was read within the last minute and what is being filled stays, even where that is more than
    `max_bytes`. A reader that has an entry open reads it to its end all the same. Raises
    `ConfigurationError` where the cache can't be written to.
    """
    entries = kept(cache_dir)
    total = sum(entry.size for entry in entries)
    removed = []
    for entry in entries:
        if total <= max_bytes or entry.used_at > time.time() - _IN_USE_S:
            break
        with _unless_filling(entry.path.parent) as free:
            if free:
                entry.path.unlink(missing_ok=True)
                removed.append(entry)
                total -= entry.size
    return removed


@contextmanager
def _unless_filling(folder: Path) -> Iterator[bool]:
    try:
        opened = (folder / LOCK).open("ab")
    except OSError as error:
        raise unwritable(folder, error) from error
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True

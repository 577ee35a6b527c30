"""The frame store: pictures that were decoded and encoded once, for any number of threads and processes.

A *frame set* holds pictures of one content, cut, scaled and encoded in one way; the key of a picture is its presentation
timestamp (and the text painted on it, if any). Whatever the sampling (a rate, a count, a window, a clip), pictures that
are stored are read, and only the others are decoded. Each decoding adds one *entry*, a plain ZIP of JPEGs that any tool
can open and that never changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import ConfigurationError
from proctor.media.frame_archive import (
    LOCK,
    ByteRange,
    EncodedFrame,
    FrameSet,
    Key,
    entry_is_whole,
    read_manifest,
    read_pictures,
    source_of,
    write_entry,
)
from proctor.media.media_paths import noted_identity
from proctor.media.objects import OBJECTS, unwritable

if TYPE_CHECKING:
    from proctor.media.shared_frames import SharedFrames

Make = Callable[[Sequence[Key], Container[Key]], Iterable[EncodedFrame]]
"""Makes pictures, given the keys that are missing and those that the frame set has."""

_log = logging.getLogger(__name__)
_DRAFT = ".draft-"
_ATTEMPTS = 3
_MARK_EVERY_S = 30.0
_MEMORY_BYTES = 128 * 2**20


class FrameStore:
    """Frame sets below one folder, at most `max_bytes` in all (None: no limit; see `prune`).

    Readers never wait, since entries are complete when they appear and never change. Filling a frame set takes the lock
    on its lock file, which the system releases when the process dies. The pictures read last stay in memory, up to
    `memory_bytes`, so that overlapping windows are read once.

    With `shared`, pictures that are not in the folder are read from there before they are made, and pictures that are
    made are kept there, too.
    """

    def __init__(
        self,
        cache_dir: Path,
        max_bytes: int | None = None,
        memory_bytes: int = _MEMORY_BYTES,
        shared: SharedFrames | None = None,
    ) -> None:
        self._shared = shared
        self._cache_dir = cache_dir
        self._folder = cache_dir / "frames"
        self._max_bytes = max_bytes
        self._guard = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._locks = CacheLocks()
        self._memory = _Memory(memory_bytes)

    def hold(self, folder: Path) -> None:
        """Keeps a folder of the cache from being removed while this process may read from it."""
        self._locks.hold(folder)

    def serve(self, frame_set: FrameSet, wanted: Sequence[Key], make: Make, *, share: bool = True) -> dict[Key, bytes]:
        """The JPEGs of these keys, byte for byte as they were encoded; without `share` from this folder alone.

        The first process that requests a missing picture makes it, and may make more. Raises what `make` raises (then
        nothing is kept), `ConfigurationError` where the folder can't be written to, and `InputError` where `shared`
        fails.
        """
        address = frame_set.address
        folder = self._folder / address[:2] / address
        with self._guard:
            known = self._known.get(address) or self._known.setdefault(address, _Known(folder))
        self._locks.hold(folder)
        at_hand = self._memory.of(address)
        served = {key: at_hand[key] for key in wanted if key in at_hand}
        if len(served) < len(wanted):
            lacking = [key for key in wanted if key not in served]
            served |= self._from_disk(frame_set, known, lacking, make, share=share)
            self._memory.add(address, served)
        if share and self._shared is not None and self._shared.writable and known.unshared():
            with _filling(folder):
                self._share(self._shared, frame_set, known)
        known.mark()
        return served

    def at_hand(self, frame_set: FrameSet, key: Key) -> bytes | None:
        """The JPEG of this key if this process has it in memory; never waits."""
        address = frame_set.address
        jpeg = self._memory.of(address).get(key)
        if jpeg is not None and address in self._known:
            self._known[address].mark()
        return jpeg

    def _from_disk(
        self, frame_set: FrameSet, known: _Known, wanted: Sequence[Key], make: Make, *, share: bool
    ) -> dict[Key, bytes]:
        folder = known.folder
        served = known.read(wanted)
        for _ in range(_ATTEMPTS):
            if all(key in served for key in wanted):
                return served
            with _filling(folder):
                self._locks.hold(folder)
                known.look()
                served |= known.read([key for key in wanted if key not in served])
                missing = [key for key in wanted if key not in served]
                there: frozenset[Key] = frozenset()
                if missing and share and self._shared is not None:
                    there = self._shared.keys(frame_set)
                    served |= self._copied(self._shared, frame_set, known, [key for key in missing if key in there])
                    missing = [key for key in missing if key not in served]
                if missing:
                    _add_entry(folder, frame_set, make(missing, known.keys() | there))
                    known.look()
                    served |= known.read(missing)
            if self._max_bytes is not None:
                prune(self._cache_dir, self._max_bytes)
        raise ConfigurationError(
            f"pictures of {frame_set.name} were written to {folder} and can't be read back: "
            "choose another cache with the environment variable PROCTOR_CACHE"
        )

    def _copied(
        self, shared: SharedFrames, frame_set: FrameSet, known: _Known, wanted: Sequence[Key]
    ) -> dict[Key, bytes]:
        """The wanted pictures that `shared` has, which are kept in the folder as one entry."""
        pictures = shared.pictures(frame_set, wanted)
        first = next(pictures, None)
        if first is None:
            return {}
        entry = _add_entry(known.folder, frame_set, chain([first], pictures))
        known.look()
        known.note_shared(entry)
        return known.read(wanted)

    def _share(self, shared: SharedFrames, frame_set: FrameSet, known: _Known) -> None:
        for name in sorted(known.unshared()):
            shared.add(frame_set, known.folder / name)
            known.note_shared(name)

    def file(self, frame_set: FrameSet, write: Callable[[Path], object]) -> Path:
        """A file too large for an entry, written once, and named by the hash of its content. It may be removed like any
        entry; a process that has it open can read on. Raises as `serve`."""
        address = frame_set.address
        folder = self._folder / address[:2] / address
        self._locks.hold(folder)
        found = _kept_file(folder, frame_set.suffix)
        if found is None:
            with _filling(folder):
                self._locks.hold(folder)
                found = _kept_file(folder, frame_set.suffix) or _add_file(folder, frame_set, write)
            if self._max_bytes is not None:
                prune(self._cache_dir, self._max_bytes)
        with suppress(OSError):
            os.utime(found)
        return found


class _Memory:
    """A cache in memory, by frame set; the least recently used frame set goes first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._guard = threading.Lock()
        self._frame_sets: OrderedDict[str, dict[Key, bytes]] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def of(self, address: str) -> Mapping[Key, bytes]:
        """The pictures of a frame set that are in memory. The mapping never changes."""
        with self._guard:
            if address not in self._frame_sets:
                return {}
            self._frame_sets.move_to_end(address)
            return self._frame_sets[address]

    def add(self, address: str, jpegs: Mapping[Key, bytes]) -> None:
        with self._guard:
            frame_set = self._frame_sets[address] = {**self._frame_sets.pop(address, {}), **jpegs}
            self._sizes[address] = sum(map(len, frame_set.values()))
            while self._frame_sets and sum(self._sizes.values()) > self._max_bytes:
                oldest, _ = self._frame_sets.popitem(last=False)
                del self._sizes[oldest]


class _Known:
    """The entries of one frame set that this process knows, and where each picture lies in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._guard = threading.Lock()
        self._positions: dict[Key, ByteRange] = {}
        self._entries: set[str] | None = None
        self._shared: set[str] = set()
        self._marked_at = -_MARK_EVERY_S

    def read(self, wanted: Sequence[Key]) -> dict[Key, bytes]:
        """The wanted pictures that are known and intact."""
        if self._entries is None:
            self.look()
        with self._guard:
            here = [(key, self._positions[key]) for key in wanted if key in self._positions]
        by_entry: dict[Path, list[tuple[Key, ByteRange]]] = {}
        for key, location in here:
            by_entry.setdefault(location.entry, []).append((key, location))
        served: dict[Key, bytes] = {}
        for entry, asked in by_entry.items():
            try:
                jpegs = read_pictures(entry, [location for _, location in asked])
            except FileNotFoundError:  # removed to make room
                self._forget(entry)
                continue
            if jpegs is None:
                self._forget(entry)
                _drop(entry)
                continue
            served.update({key: jpeg for (key, _), jpeg in zip(asked, jpegs, strict=True)})
        return served

    def look(self) -> None:
        """Reads the entries that have appeared since the last call; removes damaged ones."""
        names = {path.name for path in self.folder.glob("*.zip")}
        with self._guard:
            new = names - (self._entries or set())
        found: dict[Key, ByteRange] = {}
        whole: set[str] = set()
        for name in sorted(new):
            try:
                locations = read_manifest(self.folder / name)
            except FileNotFoundError:
                continue
            if locations is None:
                _drop(self.folder / name)
                continue
            found.update(locations)
            whole.add(name)
        with self._guard:
            self._entries = (self._entries or set()) | whole
            self._positions.update(found)

    def keys(self) -> frozenset[Key]:
        """The keys of all known pictures."""
        with self._guard:
            return frozenset(self._positions)

    def unshared(self) -> set[str]:
        """The entries that are not known to be in object storage."""
        with self._guard:
            return (self._entries or set()) - self._shared

    def note_shared(self, entry: str) -> None:
        """Notes that an entry is in object storage."""
        with self._guard:
            self._shared.add(entry)

    def mark(self) -> None:
        """Updates the entries' time of use, every 30 seconds at most: `prune` removes the least recently used."""
        now = time.monotonic()
        if now - self._marked_at >= _MARK_EVERY_S:
            self._marked_at = now
            for name in self._entries or ():
                with suppress(OSError):  # gone, or another user's cache that can only be read
                    os.utime(self.folder / name)

    def _forget(self, entry: Path) -> None:
        with self._guard:
            self._positions = {key: location for key, location in self._positions.items() if location.entry != entry}
            self._entries = (self._entries or set()) - {entry.name}


def _drop(entry: Path) -> None:
    drop(entry)
    _log.warning("%s was damaged and has been removed; its pictures are made again", entry)


@contextmanager
def _filling(folder: Path) -> Iterator[None]:
    """Holds the lock for filling a frame set, and removes what a killed process left half written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise unwritable(folder, error) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for draft in folder.glob(f"{_DRAFT}*"):
            draft.unlink(missing_ok=True)
        yield


def _kept_file(folder: Path, suffix: str) -> Path | None:
    return next(iter(sorted(folder.glob(f"{'[0-9a-f]' * 64}{suffix}"))), None)


@contextmanager
def _draft_in(folder: Path) -> Iterator[Path]:
    """A file to write, which is gone afterwards unless it was renamed."""
    draft = folder / f"{_DRAFT}{os.getpid()}-{threading.get_ident()}"
    try:
        yield draft
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        draft.unlink(missing_ok=True)


def _add_file(folder: Path, frame_set: FrameSet, write: Callable[[Path], object]) -> Path:
    with _draft_in(folder) as draft:
        write(draft)
        with draft.open("rb") as file:
            whole = folder / f"{hashlib.file_digest(file, 'sha256').hexdigest()}{frame_set.suffix}"
        return draft.replace(whole)


def _add_entry(folder: Path, frame_set: FrameSet, made: Iterable[EncodedFrame]) -> str:
    """Adds an entry, and returns its name."""
    with _draft_in(folder) as draft:
        name = write_entry(draft, frame_set, made)
        draft.replace(folder / name)
        return name


def is_whole(entry: Path) -> bool:
    """Whether every picture of the entry, or an object's copy, is what was written."""
    if entry.parent.parent.name == OBJECTS:
        known = noted_identity(entry.parents[2], entry)
        with entry.open("rb") as file:
            return known is not None and hashlib.file_digest(file, "sha256").hexdigest() == known
    if entry.suffix != ".zip":  # a file by itself, named by its hash
        with entry.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == entry.stem
    return entry_is_whole(entry)


def drop(entry: Path) -> None:
    """Removes a damaged entry, so that it is made again; a folder of its name is renamed. Raises `ConfigurationError`
    where that fails."""
    try:
        if entry.is_dir() and not entry.is_symlink():
            entry.rename(entry.with_name(f"{entry.name}.damaged"))
        else:
            entry.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(entry.parent, error) from error


_ENTRIES = ("frames/*/*/*.zip", "frames/*/*/*.mp4", f"{OBJECTS}/*/[!.]*")
_MAX_LOCKS = 128  # each costs an open file; a question may show 64 images, each a frame set of its own


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """A ZIP of the store, a playback video or the copy of an object: its size in bytes, and when it was last read
    (seconds since 1970)."""

    path: Path
    size: int
    used_at: float

    def source(self) -> str:
        """The name of the file that its pictures show; "" where the entry can't be read."""
        return self.path.name if self.path.parent.parent.name == OBJECTS else source_of(self.path)


def kept(cache_dir: Path) -> list[KeptEntry]:
    """All entries, the least recently used first."""
    found = []
    for path in chain(*(cache_dir.glob(entry) for entry in _ENTRIES)):
        if path.name == LOCK:
            continue
        with suppress(FileNotFoundError):
            state = path.stat()
            # A copy's time of change is part of how its content is known again.
            used_at = state.st_atime if path.parent.parent.name == OBJECTS else state.st_mtime
            found.append(KeptEntry(path, state.st_size, used_at))
    return sorted(found, key=lambda entry: (entry.used_at, entry.path))


def damaged(cache_dir: Path) -> list[KeptEntry]:
    """The entries that hold a picture that is not what was written."""
    found = []
    for entry in kept(cache_dir):
        with suppress(FileNotFoundError):
            if not is_whole(entry.path):
                found.append(entry)
    return found


def prune(cache_dir: Path, max_bytes: int) -> list[KeptEntry]:
    """Removes the least recently used entries until the others take at most `max_bytes`; returns what was removed.

    Entries that a running process reads (see `CacheLocks`) or fills stay, even above `max_bytes`. Raises
    `ConfigurationError` where the cache can't be written to.
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


class CacheLocks:
    """Shared locks on the folders of the 128 frame sets that a process read last. The system releases them when the
    process dies, so that no stale lock can remain."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: OrderedDict[Path, int] = OrderedDict()
        weakref.finalize(self, _release, self._held)

    def hold(self, folder: Path) -> None:
        """Keeps this frame set from being removed; waits while it is. Does nothing before the frame set exists."""
        with self._guard:
            if folder in self._held:
                self._held.move_to_end(folder)
                return
            with suppress(FileNotFoundError, NotADirectoryError):
                opened = os.open(folder, os.O_RDONLY)
                fcntl.flock(opened, fcntl.LOCK_SH)
                self._held[folder] = opened
            while len(self._held) > _MAX_LOCKS:
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

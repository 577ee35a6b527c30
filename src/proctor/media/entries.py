"""The file format of the frame store: one ZIP of JPEGs, stored as they are, with a manifest."""

from __future__ import annotations

import fcntl
import hashlib
import json
import lzma
import os
import stat
import threading
import weakref
import zipfile
import zlib
from binascii import b2a_base64
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import JsonValue

from proctor.core import content_hash, load_json
from proctor.media.files import noted_identity, unwritable
from proctor.media.objects import OBJECTS

_FORMAT = 2
_MOST_BYTES = 64 * 2**20  # of a manifest: half a million pictures
Key = int | str
"""By what a frame set knows a picture: its timestamp in ticks, or timestamp and text where a text is painted on."""
MANIFEST = "manifest.json"
LOCK = "lock"
"""The file of each frame set's folder that the process filling it holds locked."""


@dataclass(frozen=True)
class FrameSet:
    """What all pictures of a frame set have in common: the content's hash, and how it was cut, scaled and
    encoded. The hash of both is the frame set's address; `name` (the source) is for people only, and `suffix` is
    what the files in the ZIP are called by."""

    content: str
    how: dict[str, JsonValue]
    name: str = ""
    suffix: str = ".jpg"

    @cached_property
    def address(self) -> str:
        return content_hash({"format": _FORMAT, "content": self.content, "how": self.how})


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """A picture fresh from the encoder: its key, time in seconds (None for a still image)."""

    key: Key
    time: float | None
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Where a picture's bytes lie, so that it is read without looking through the ZIP's directory."""

    entry: Path
    offset: int
    size: int
    crc: int


def key_of(pts: int, text: str) -> Key:
    """The key of the picture at a timestamp with a text painted on it; an empty text is none.

    >>> key_of(512, ""), key_of(512, "00:00:20")
    (512, '512 00:00:20')
    """
    return f"{pts} {text}" if text else pts


def write_entry(draft: Path, frame_set: FrameSet, made: Iterable[EncodedFrame]) -> str:
    """Writes the entry, picture by picture, so that it is never in memory as a whole. Returns the name
    that its content gives it."""
    frames: list[JsonValue] = []
    keys: list[JsonValue] = []
    with draft.open("wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for picture in made:
            told = "still" if picture.time is None else f"{picture.time:.3f}s"
            name = f"{len(frames):06d}_{told}{frame_set.suffix}"
            archive.writestr(_member(name), picture.jpeg)
            size = len(picture.jpeg)
            place = {"offset": out.tell() - size, "size": size, "crc": zlib.crc32(picture.jpeg)}
            frames.append({"file": name, "key": picture.key, "time": picture.time, **place})
            keys.append(picture.key)
        about: JsonValue = {
            "format": _FORMAT,
            "name": frame_set.name,
            "content": frame_set.content,
            "how": frame_set.how,
            "frames": frames,
        }
        archive.writestr(_member(MANIFEST), json.dumps(about, indent=1))
    return f"{content_hash(keys)[:16]}.zip"


def read_manifest(entry: Path) -> dict[Key, ByteRange] | None:
    """Where each key's picture lies; None where this is no whole entry, whatever it is. Raises `FileNotFoundError`
    where the entry is gone."""
    try:
        with _opened(entry) as file:
            end = os.fstat(file.fileno()).st_size
            places = {
                _key(frame["key"]): ByteRange(entry, int(frame["offset"]), int(frame["size"]), int(frame["crc"]))
                for frame in _about(file)["frames"]
            }
    except FileNotFoundError:
        raise
    except _DAMAGED:
        return None
    whole = all(0 <= one.offset < one.offset + one.size <= end for one in places.values())
    return places if whole else None


@dataclass(frozen=True, slots=True)
class StoredFrame:
    """A picture of an entry: its key, its time in seconds (None for a still image), where its bytes lie, and their
    SHA-256."""

    key: Key
    time: float | None
    offset: int
    size: int
    sha256: str


def frames_of(entry: Path) -> list[StoredFrame] | None:
    """All pictures of an entry, each of which is read; None where this is no whole entry. Raises `FileNotFoundError`
    where the entry is gone."""
    try:
        with _opened(entry) as file:
            told = _about(file)["frames"]
        places = [ByteRange(entry, int(one["offset"]), int(one["size"]), int(one["crc"])) for one in told]
        return [
            StoredFrame(
                _key(one["key"]),
                None if one["time"] is None else float(one["time"]),
                place.offset,
                place.size,
                hashlib.sha256(jpeg).hexdigest(),
            )
            for one, place, jpeg in zip(told, places, _pictures(entry, places), strict=True)
        ]
    except FileNotFoundError:
        raise
    except _DAMAGED:
        return None


def source_of(entry: Path) -> str:
    """The name of the file that the entry's pictures are of; empty where it can't be read."""
    try:
        with _opened(entry) as file:
            return str(_about(file)["name"])
    except _DAMAGED:
        return ""


class StoredPicture(bytes):
    """A picture as it was read from an entry. It stays in memory and is shown many times: its digest is worked out
    once, and so is its base64 text.

    >>> StoredPicture(b"one").sha256.hex()[:8]
    '7692c3ad'
    """

    @cached_property
    def sha256(self) -> bytes:
        return hashlib.sha256(self).digest()

    @cached_property
    def base64(self) -> bytes:
        return b2a_base64(self, newline=False)


def read_pictures(entry: Path, places: Sequence[ByteRange]) -> list[StoredPicture] | None:
    """The bytes at these places of one entry; None where they are not what was written. Raises
    `FileNotFoundError` where the entry is gone."""
    try:
        pictures = [StoredPicture(jpeg) for jpeg in _pictures(entry, places)]
    except FileNotFoundError:
        raise
    except _DAMAGED:
        return None
    return pictures


def is_whole(entry: Path) -> bool:
    """Whether every picture of the entry, or an object's copy, is what was written."""
    if entry.parent.parent.name == OBJECTS:
        known = noted_identity(entry.parents[2], entry)
        with entry.open("rb") as file:
            return known is not None and hashlib.file_digest(file, "sha256").hexdigest() == known
    if entry.suffix != ".zip":  # a file by itself, named by its hash
        with entry.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == entry.stem
    places = read_manifest(entry)
    if places is None:
        return False
    try:
        for _ in _pictures(entry, list(places.values())):
            pass  # one at a time: an entry may be larger than the memory
    except FileNotFoundError:
        raise
    except _DAMAGED:
        return False
    return True


def drop(entry: Path) -> None:
    """Removes a damaged entry, so that it is made again. What is a folder, which nothing here makes, is renamed. Raises
    `ConfigurationError` where that can't be done."""
    try:
        if entry.is_dir() and not entry.is_symlink():
            entry.rename(entry.with_name(f"{entry.name}.damaged"))
        else:
            entry.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(entry.parent, error) from error


class _NotWholeError(Exception):
    pass


_DAMAGED = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    OverflowError,
    RuntimeError,  # an encrypted member, or one that is packed in an unknown way
    _NotWholeError,
)
"""What a file is met with that is no entry as it was written."""


def _opened(entry: Path) -> BinaryIO:
    """The entry, opened for reading, where it is a regular file: a pipe would keep its reader indefinitely."""
    file = open(os.open(entry, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _NotWholeError
    return file


def _about(file: BinaryIO) -> Any:
    """The manifest, where it is stored as it is and not larger than a manifest can be."""
    with zipfile.ZipFile(file) as archive:
        manifest = archive.getinfo(MANIFEST)
        if manifest.compress_type != zipfile.ZIP_STORED or manifest.compress_size != manifest.file_size:
            raise _NotWholeError
        if manifest.file_size > _MOST_BYTES:
            raise _NotWholeError
        return load_json(archive.read(manifest))


def _key(value: object) -> Key:
    if not isinstance(value, int | str):
        raise _NotWholeError
    return value


def _pictures(entry: Path, places: Sequence[ByteRange]) -> Iterator[bytes]:
    with _opened(entry) as file:
        for place in places:
            file.seek(place.offset)
            jpeg = file.read(place.size)
            if zlib.crc32(jpeg) != place.crc:
                raise _NotWholeError
            yield jpeg


def _member(name: str) -> zipfile.ZipInfo:
    """Without the time of writing: the same pictures make the same file."""
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o644 << 16
    return info


_ENTRIES = ("frames/*/*/*.zip", "frames/*/*/*.mp4", f"{OBJECTS}/*/[!.]*")
_MOST_LOCKS = 128  # each costs an open file; a question may show 64 images, each a frame set of its own


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """One ZIP of the store, one video made for players, or the copy of an object: its size and when it was last read (seconds since 1970)."""

    path: Path
    size: int
    used_at: float

    def source(self) -> str:
        """The name of the file that its pictures are of; empty where the entry can't be read."""
        return self.path.name if self.path.parent.parent.name == OBJECTS else source_of(self.path)


def kept(cache_dir: Path) -> list[KeptEntry]:
    """All entries, the one that was not read for longest first."""
    found = []
    for path in chain(*(cache_dir.glob(one) for one in _ENTRIES)):
        if path.name == LOCK:
            continue
        with suppress(FileNotFoundError):
            state = path.stat()
            # A copy's time of change is part of how its content is known again.
            used_at = state.st_atime if path.parent.parent.name == OBJECTS else state.st_mtime
            found.append(KeptEntry(path, state.st_size, used_at))
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

    What a running process reads (see `CacheLocks`) and what is being filled stays, even where that is more than
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


class CacheLocks:
    """The frame sets that a process read last (128), held with a shared lock on their folders, which the system
    releases when the process dies, however it dies: a pin that is left behind can't be."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: OrderedDict[Path, int] = OrderedDict()
        weakref.finalize(self, _release, self._held)

    def hold(self, folder: Path) -> None:
        """Keeps this frame set from being removed; waits while it is. Nothing to hold before the frame set exists."""
        with self._guard:
            if folder in self._held:
                self._held.move_to_end(folder)
                return
            with suppress(FileNotFoundError, NotADirectoryError):
                opened = os.open(folder, os.O_RDONLY)
                fcntl.flock(opened, fcntl.LOCK_SH)
                self._held[folder] = opened
            while len(self._held) > _MOST_LOCKS:
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

"""The file format of the frame store: one ZIP of JPEGs, stored as they are, with a manifest."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import stat
import zipfile
import zlib
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import JsonValue

from proctor.core import content_hash, load_json

_FORMAT = 2
_MAX_MANIFEST = 64 * 2**20  # bytes: half a million pictures
Key = int | str
"""The key of a picture in a frame set: its timestamp in ticks, with something painted timestamp and what (`key_of`)."""
MANIFEST = "manifest.json"
LOCK = "lock"
"""The file of each frame set's folder that the process filling it holds locked."""


@dataclass(frozen=True)
class FrameSet:
    """The common facts of all pictures of a frame set: the content's hash, and `how` it was cropped, scaled and encoded.
    The hash of both is the frame set's address. `name` (the source) is informative only; `suffix` is that of the files
    in the ZIP."""

    content: str
    how: dict[str, JsonValue]
    name: str = ""
    suffix: str = ".jpg"

    @cached_property
    def address(self) -> str:
        return content_hash({"format": _FORMAT, "content": self.content, "how": self.how})


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """A picture from the encoder, with its key and time in seconds (None for a still image)."""

    key: Key
    time: float | None
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The location of a picture's bytes, so that it is read without the ZIP's directory."""

    entry: Path
    offset: int
    size: int
    crc: int


def key_of(pts: int, *painted: str) -> Key:
    """The key of the picture at a timestamp with texts painted on it, or names of what else is; an empty one is none.

    >>> key_of(512, ""), key_of(512, "00:00:20")
    (512, '512 00:00:20')
    """
    return " ".join([str(pts), *filter(None, painted)]) if any(painted) else pts


def write_entry(draft: Path, frame_set: FrameSet, made: Iterable[EncodedFrame]) -> str:
    """Writes an entry picture by picture, so that it is never in memory as a whole. Returns its name, a hash of its
    keys."""
    frames: list[JsonValue] = []
    keys: list[JsonValue] = []
    with draft.open("wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for picture in made:
            told = "still" if picture.time is None else f"{picture.time:.3f}s"
            name = f"{len(frames):06d}_{told}{frame_set.suffix}"
            archive.writestr(_member(name), picture.jpeg)
            size = len(picture.jpeg)
            location = {"offset": out.tell() - size, "size": size, "crc": zlib.crc32(picture.jpeg)}
            frames.append({"file": name, "key": picture.key, "time": picture.time, **location})
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
    """The location of each key's picture; None for anything but an intact entry. Raises `FileNotFoundError` where the
    entry is gone."""
    try:
        with _opened(entry) as file:
            end = os.fstat(file.fileno()).st_size
            positions = {
                _key(frame["key"]): ByteRange(entry, int(frame["offset"]), int(frame["size"]), int(frame["crc"]))
                for frame in _about(file)["frames"]
            }
    except FileNotFoundError:
        raise
    except _DAMAGED:
        return None
    whole = all(0 <= position.offset < position.offset + position.size <= end for position in positions.values())
    return positions if whole else None


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
    """All pictures of an entry, each of which is read; None for anything but an intact entry. Raises
    `FileNotFoundError` where the entry is gone."""
    try:
        with _opened(entry) as file:
            told = _about(file)["frames"]
        positions = [ByteRange(entry, int(one["offset"]), int(one["size"]), int(one["crc"])) for one in told]
        return [
            StoredFrame(
                _key(one["key"]),
                None if one["time"] is None else float(one["time"]),
                position.offset,
                position.size,
                hashlib.sha256(jpeg).hexdigest(),
            )
            for one, position, jpeg in zip(told, positions, _pictures(entry, positions), strict=True)
        ]
    except FileNotFoundError:
        raise
    except _DAMAGED:
        return None


def source_of(entry: Path) -> str:
    """The name of the file that an entry's pictures show; "" where the entry can't be read."""
    try:
        with _opened(entry) as file:
            return str(_about(file)["name"])
    except _DAMAGED:
        return ""


class StoredPicture(bytes):
    """A picture as read from an entry. It stays in memory and is shown many times, so that its digest and its base64
    text are computed once.

    >>> StoredPicture(b"one").sha256.hex()[:8]
    '7692c3ad'
    """

    @cached_property
    def sha256(self) -> bytes:
        return hashlib.sha256(self).digest()

    @cached_property
    def base64(self) -> bytes:
        return b2a_base64(self, newline=False)


def read_pictures(entry: Path, locations: Sequence[ByteRange]) -> list[StoredPicture] | None:
    """The pictures at these positions of one entry; None where they are damaged. Raises `FileNotFoundError` where the
    entry is gone."""
    try:
        pictures = [StoredPicture(jpeg) for jpeg in _pictures(entry, locations)]
    except FileNotFoundError:
        raise
    except _DAMAGED:
        return None
    return pictures


def entry_is_whole(entry: Path) -> bool:
    """Whether every picture of an entry is what was written. Raises `FileNotFoundError` where the entry is gone."""
    locations = read_manifest(entry)
    if locations is None:
        return False
    try:
        for _ in _pictures(entry, list(locations.values())):
            pass  # one at a time: an entry may be larger than the memory
    except FileNotFoundError:
        raise
    except _DAMAGED:
        return False
    return True


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
"""What reading a damaged entry can raise."""


def _opened(entry: Path) -> BinaryIO:
    """The entry, opened for reading if it is a regular file: a pipe would block its reader indefinitely."""
    file = open(os.open(entry, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _NotWholeError
    return file


def _about(file: BinaryIO) -> Any:
    """The manifest, if it is not compressed and no larger than a manifest can be."""
    with zipfile.ZipFile(file) as archive:
        manifest = archive.getinfo(MANIFEST)
        if manifest.compress_type != zipfile.ZIP_STORED or manifest.compress_size != manifest.file_size:
            raise _NotWholeError
        if manifest.file_size > _MAX_MANIFEST:
            raise _NotWholeError
        return load_json(archive.read(manifest))


def _key(value: object) -> Key:
    if not isinstance(value, int | str):
        raise _NotWholeError
    return value


def _pictures(entry: Path, positions: Sequence[ByteRange]) -> Iterator[bytes]:
    with _opened(entry) as file:
        for position in positions:
            file.seek(position.offset)
            jpeg = file.read(position.size)
            if zlib.crc32(jpeg) != position.crc:
                raise _NotWholeError
            yield jpeg


def _member(name: str) -> zipfile.ZipInfo:
    """A member without its time of writing, so that the same pictures make the same file."""
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o644 << 16
    return info

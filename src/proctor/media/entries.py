"""The file format of the frame store: one ZIP of JPEGs, stored as they are, with a manifest."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from proctor.core import content_hash

__all__ = [
    "LOCK",
    "MANIFEST",
    "Key",
    "Made",
    "Place",
    "Shelf",
    "is_whole",
    "key_of",
    "read_manifest",
    "read_pictures",
    "write_entry",
]

_FORMAT = 2
Key = int | str
"""By what a shelf knows a picture: its timestamp in ticks, or timestamp and text where a text is painted on."""
MANIFEST = "manifest.json"
LOCK = "lock"
"""The file of each shelf's folder that whoever fills it holds locked."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """What all pictures of a shelf have in common: the content's hash, and how it was cut, scaled and
    encoded. The hash of both is the shelf's address; `name` (the source) is for people only, and `suffix` is
    what the files in the ZIP are called by."""

    content: str
    how: dict[str, JsonValue]
    name: str = ""
    suffix: str = ".jpg"

    @property
    def address(self) -> str:
        return content_hash({"format": _FORMAT, "content": self.content, "how": self.how})


@dataclass(frozen=True, slots=True)
class Made:
    """A picture fresh from the encoder: its key, time in seconds (None for a still image)."""

    key: Key
    time: float | None
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class Place:
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


def write_entry(draft: Path, shelf: Shelf, made: Iterable[Made]) -> str:
    """Writes the entry, picture by picture, so that it is never in memory as a whole. Returns the name
    that its content gives it."""
    frames: list[JsonValue] = []
    keys: list[JsonValue] = []
    with draft.open("wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for picture in made:
            told = "still" if picture.time is None else f"{picture.time:.3f}s"
            name = f"{len(frames):06d}_{told}{shelf.suffix}"
            archive.writestr(_member(name), picture.jpeg)
            size = len(picture.jpeg)
            place = {"offset": out.tell() - size, "size": size, "crc": zlib.crc32(picture.jpeg)}
            frames.append({"file": name, "key": picture.key, "time": picture.time, **place})
            keys.append(picture.key)
        about: JsonValue = {
            "format": _FORMAT,
            "name": shelf.name,
            "content": shelf.content,
            "how": shelf.how,
            "frames": frames,
        }
        archive.writestr(_member(MANIFEST), json.dumps(about, indent=1))
    return f"{content_hash(keys)[:16]}.zip"


def read_manifest(entry: Path) -> dict[Key, Place] | None:
    """Where each key's picture lies; None where the file is no whole entry."""
    try:
        with zipfile.ZipFile(entry) as archive:
            about = json.loads(archive.read(MANIFEST))
        return {
            frame["key"]: Place(entry, int(frame["offset"]), int(frame["size"]), int(frame["crc"]))
            for frame in about["frames"]
        }
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError):
        return None


def read_pictures(entry: Path, places: Sequence[Place]) -> list[bytes] | None:
    """The bytes at these places of one entry; None where they are not what was written. Raises
    `FileNotFoundError` where the entry is gone."""
    pictures = []
    with entry.open("rb") as file:
        for place in places:
            file.seek(place.offset)
            jpeg = file.read(place.size)
            if zlib.crc32(jpeg) != place.crc:
                return None
            pictures.append(jpeg)
    return pictures


def is_whole(entry: Path) -> bool:
    """Whether every picture of the entry is what was written."""
    places = read_manifest(entry)
    return places is not None and read_pictures(entry, list(places.values())) is not None


def _member(name: str) -> zipfile.ZipInfo:
    """Without the time of writing: the same pictures make the same file."""
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o644 << 16
    return info

"""What a view shows beside frames (clips as files, and sound), and records of what it showed: enough to verify later, from
the media alone, which pictures and sounds a system got."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from proctor.core import Frame, FrozenModel, count_of
from proctor.media.frame_archive import StoredPicture

MAX_SOUND_S = 600.0
"""The longest sound that goes with one question: 19 MB, 26 MB as it is sent."""


@dataclass(frozen=True, slots=True)
class ClipFile:
    """One clip as an MP4, its label ("" if there is only one), and its start and end in seconds of its video."""

    mp4: bytes
    label: str
    span: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of sound as a system gets it: a WAV of one channel, 16,000 samples a second, 16 bits each; its label
    ("recording", "clip 2"), and its start and end in seconds of its file."""

    wav: bytes
    label: str
    span: tuple[float, float]


_PREFIX = 8
_MAX_RECORDS = 200

As = Literal["frames", "files", "originals", "sounds"]


class ShownRecord(FrozenModel):
    """One request to a view and its result, in the order shown.

    `asked_as` is the view's method and `count`, `fps`, `window` are its arguments. `times` are seconds of the video
    (None for a still image; the start of files and sounds, whose end is in `ends`). `prefixes` are the first 8
    hexadecimal digits of the SHA-256 of each picture, file or sound as the system got it, to find the one that differs
    (64 frames take about 1.2 KB so, 5 KB with whole digests).
    `sha256` is the SHA-256 of all these digests, one after the other. `media` is the SHA-256 of each media file, by its
    name in the item.

    >>> ShownRecord.of([Frame(b"one", 0.0, "A"), Frame(b"two", 1.0, "B")]).prefixes
    ('7692c3ad', '3fc4ccfe')
    """

    asked_as: As = "frames"
    count: int | None = None
    fps: float | None = None
    window: tuple[float, float] | None = None
    times: tuple[float | None, ...] = ()
    ends: tuple[float, ...] = Field(default=(), exclude_if=lambda given: not given)
    prefixes: tuple[str, ...] = ()
    sha256: str
    media: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pictures: Sequence[Frame | ClipFile | Sound],
        *,
        asked_as: As = "frames",
        count: int | None = None,
        fps: float | None = None,
        window: tuple[float, float] | None = None,
        media: Mapping[str, str] | None = None,
    ) -> ShownRecord:
        """The record of these pictures, video files or sounds."""
        digests = [_digest(bytes_of(picture)) for picture in pictures]
        return cls(
            asked_as=asked_as,
            count=count,
            fps=fps,
            window=window,
            times=tuple(picture.time if isinstance(picture, Frame) else picture.span[0] for picture in pictures),
            ends=tuple(picture.span[1] for picture in pictures if isinstance(picture, Sound)),
            prefixes=tuple(digest.hex()[:_PREFIX] for digest in digests),
            sha256=hashlib.sha256(b"".join(digests)).hexdigest(),
            media=dict(media or {}),
        )

    def difference(self, other: ShownRecord) -> str:
        """How another record of the same request differs, in words; "" if the pictures are the same.

        >>> then = ShownRecord.of([Frame(b"one", 0.0, "A"), Frame(b"two", 1.0, "B")])
        >>> then.difference(ShownRecord.of([Frame(b"one", 0.0, "A"), Frame(b"2", 1.0, "B")]))
        'picture 2 of 2 (at 1 s) has other pixels: 3fc4ccfe then, d4735e3a now'
        """
        if self.sha256 == other.sha256 and self.times == other.times:
            return ""
        what, content = ("sound", "samples") if self.asked_as == "sounds" else ("picture", "pixels")
        if len(self.prefixes) != len(other.prefixes):
            return f"{count_of(len(self.prefixes), what)} then, {len(other.prefixes)} now"
        pairs = zip(self.times, other.times, self.prefixes, other.prefixes, strict=True)
        for number, (time, now, prefix, found) in enumerate(pairs, start=1):
            which = f"{what} {number} of {len(self.prefixes)}"
            if time != now:
                return f"{which} is another one: at {_at(time)} then, at {_at(now)} now"
            if prefix != found:
                return f"{which} (at {_at(time)}) has other {content}: {prefix} then, {found} now"
        return f"the {what}s have other {content}"

    def changed_media(self, other: ShownRecord) -> list[str]:
        """The names of the media files that have changed."""
        return sorted(name for name, then in self.media.items() if other.media.get(name, then) != then)


@runtime_checkable
class RecordsShown(Protocol):
    """A view that records what it showed."""

    @property
    def shown(self) -> Sequence[ShownRecord]:
        """The records so far: each different request once, the first 200."""


class ShownLog:
    """The records of one view."""

    def __init__(self) -> None:
        self._known: dict[str, ShownRecord] = {}

    def add(self, shown_record: ShownRecord) -> None:
        """Adds a record, unless there is an equal one."""
        key = shown_record.model_dump_json()
        if len(self._known) < _MAX_RECORDS:
            self._known.setdefault(key, shown_record)

    @property
    def records(self) -> tuple[ShownRecord, ...]:
        """The records in order."""
        return tuple(self._known.values())


def bytes_of(picture: Frame | ClipFile | Sound) -> bytes:
    """The bytes that a system gets of a picture, file or sound."""
    if isinstance(picture, Frame):
        return picture.jpeg
    return picture.wav if isinstance(picture, Sound) else picture.mp4


def _digest(shown: bytes) -> bytes:
    return shown.sha256 if isinstance(shown, StoredPicture) else hashlib.sha256(shown).digest()


def _at(time: float | None) -> str:
    return "no time" if time is None else f"{time:g} s"

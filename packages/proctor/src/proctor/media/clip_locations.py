"""Excerpts: where a benchmark's clips lie in the video files at hand.

Files come whole as downloaded, trimmed to the excerpt, or trimmed and cropped to the benchmark's region. Length and
picture size must fit the kind, so that a clip is never cut at the wrong time unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from proctor.core import Excerpt, InputError, Region

if TYPE_CHECKING:
    from proctor.media.video import VideoInfo

_LENGTH_S = 1.5  # what cutting and rounding may change of a length; excerpts start far later in their sources
_USUAL_SHAPES = (16 / 9, 4 / 3)
_USUAL_HEIGHTS = (144, 240, 360, 480, 540, 720, 1080, 1440, 2160)
_SHAPE, _REGION_SHAPE = 0.01, 0.03


class MediaAs(StrEnum):
    """The kind of the files: whole videos, excerpts, or excerpts cropped to the region."""

    FULL = "full"
    TRIMMED = "trimmed"
    CROPPED = "cropped"


@dataclass(frozen=True, slots=True)
class ClipLocation:
    """How a benchmark's times map to a file: `offset` seconds later. `cropped`: the pictures show the region alone.
    `seconds` is the length that the benchmark states, None without one."""

    offset: float = 0.0
    cropped: bool = False
    seconds: float | None = None


@dataclass(frozen=True)
class Excerpts:
    """The excerpts of a benchmark by video name, and the declared kind of the files (None: trimmed)."""

    known: Mapping[str, Excerpt]
    media_as: MediaAs | None = None

    def locate(self, source: str, region: Region | None, info: VideoInfo) -> ClipLocation:
        """Where the excerpt lies in the file. Raises `InputError` where length or picture size do not fit the kind."""
        excerpt = self.known.get(source)
        if excerpt is None:
            return ClipLocation()
        said = self.media_as or (MediaAs.FULL if excerpt.whole else None)
        expected = said or MediaAs.TRIMMED
        kinds = _by_length(excerpt, info.duration_s)
        if (MediaAs.FULL if expected is MediaAs.FULL else MediaAs.TRIMMED) not in kinds:
            raise _other_length(source, excerpt, info, kinds, expected)
        if region is not None:
            _check_picture(source, region, info, said)
        offset = excerpt.start if expected is MediaAs.FULL else _cut_off(excerpt, info.duration_s)
        return ClipLocation(offset, expected is MediaAs.CROPPED, excerpt.seconds)


def _by_length(excerpt: Excerpt, seconds: float) -> set[MediaAs]:
    """The kinds that a file of this length can be; a trimmed one may be cropped as well."""
    kinds = set()
    lengths = (excerpt.seconds, excerpt.end - max(0.0, excerpt.start))
    if any(abs(seconds - length) <= _LENGTH_S for length in lengths):
        kinds.add(MediaAs.TRIMMED)
    if seconds >= excerpt.end - _LENGTH_S:
        kinds.add(MediaAs.FULL)
    return kinds


def _cut_off(excerpt: Excerpt, seconds: float) -> float:
    """The offset in a file whose excerpt begins before its source: such a file may lack that part."""
    if excerpt.start >= 0 or abs(seconds - excerpt.seconds) < abs(seconds - excerpt.end):
        return 0.0
    return excerpt.start


def _other_length(source: str, excerpt: Excerpt, info: VideoInfo, kinds: set[MediaAs], asked: MediaAs) -> InputError:
    trimmed = f"the excerpt of {excerpt.seconds:.1f} s"
    whole = f"the whole video of {excerpt.end:.1f} s or more"
    found = f"a video of {info.duration_s:.1f} s"
    if asked is MediaAs.FULL:
        hint = " (for that, --media-as trimmed)" if MediaAs.TRIMMED in kinds else ""
        return InputError(source, "length", found=found + hint, expected=whole)
    if MediaAs.FULL in kinds:
        return InputError(source, "length", found=found, expected=f"{trimmed}; for whole videos pass --media-as full")
    return InputError(source, "length", found=found, expected=f"{trimmed}, or {whole} with --media-as full")


def _check_picture(source: str, region: Region, info: VideoInfo, said: MediaAs | None) -> None:
    seen = _by_picture(region, info)
    found = f"a picture of {info.width} × {info.height}"
    if said is MediaAs.CROPPED and seen == {False}:
        raise InputError(
            source, "picture", found=f"{found}: a whole one", expected="the region alone (else --media-as trimmed)"
        )
    if said is not MediaAs.CROPPED and seen == {True}:
        raise InputError(
            source,
            "picture",
            found=f"{found}: the region alone",
            expected="a whole one (for cropped files: --media-as cropped)",
        )
    if said is None and len(seen) != 1:
        raise InputError(
            source,
            "picture",
            found=f"{found}, which may be whole or the region alone",
            expected="--media-as trimmed, full or cropped to say which it is",
        )


def _by_picture(region: Region, info: VideoInfo) -> set[bool]:
    """Whether the picture can be the region alone (True), the whole (False), or either; empty where it looks like
    neither."""
    shape = info.width / info.height
    own = region.width / region.height
    whole = any(abs(shape / usual - 1) <= _SHAPE for usual in _USUAL_SHAPES)
    cropped = any(abs(shape / (own * usual) - 1) <= _REGION_SHAPE for usual in _USUAL_SHAPES)
    if whole and cropped:  # a region of the same shape as the whole: only the size can tell
        whole = info.height in _USUAL_HEIGHTS
        cropped = any(abs(info.height - region.height * height) <= 1 for height in _USUAL_HEIGHTS)
        if not whole and not cropped:
            return {True, False}
    return {kind for kind, can_be in ((True, cropped), (False, whole)) if can_be}

"""What is to be hidden in a video, and what the video without it shows, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.core import InputError, Region
from proctor.media.decode import VideoSource, decode_at
from proctor.media.pictures import upright
from proctor.media.video import FrameIndex, probe, read_index

BLOCKS = 8
"""A blurred picture or region keeps this many blocks along its longer side."""

Pixels = NDArray[np.uint8]


class Redaction(BaseModel):
    """What is hidden from `start` up to `end` (seconds of the video's clock; None: to its end): the whole picture, or a
    region of it.

    `blur` leaves at most 8 × 8 blocks of mean colour that change once a second, so that neither one picture nor many
    together hold any detail; `black` leaves nothing (take it for text: of a known alphabet even means of blocks say
    something, Hill et al. 2016, doi 10.1515/popets-2016-0047); `remove` cuts the pictures out.

    >>> Redaction(start=3.0, end=7.5).how
    'blur'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    start: float = Field(default=0.0, ge=0)
    end: float | None = None
    region: Region | None = None
    how: Literal["blur", "black", "remove"] = "blur"

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.end is not None and self.end <= self.start:
            raise ValueError("the end is not after the start")
        if self.how == "remove" and self.region is not None:
            raise ValueError("a region can't be removed: blur or black")
        return self


class VideoPiece(BaseModel):
    """From `start` to `end` of the original, shown from `at` on in the result; seconds of each one's clock."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: float
    end: float
    at: float


@dataclass(frozen=True)
class PlannedPictures:
    """The pictures of the result: which of the original (`kept`, ascending), their timestamps in ticks of `base` from 0
    on (`stamps`, with the end of the last one), and for each the redactions that touch it.

    The first picture is shown from 0 on even if the original begins with sound: all other times stay.
    """

    index: FrameIndex
    base: Fraction
    kept: list[int]
    stamps: list[int]
    touched: list[tuple[Redaction, ...]]
    pieces: tuple[VideoPiece, ...]


@dataclass(frozen=True)
class Masking:
    """Hides what redactions say in pictures that come in order."""

    _held: dict[tuple[Redaction, int], Pixels] = field(default_factory=dict)

    def hide(self, pixels: Pixels, redactions: Iterable[Redaction], time: float) -> Pixels:
        """A picture (height × width × 3) without what the redactions hide at this time, black over all else."""
        shown = pixels.copy()
        for one in in_layers(redactions):
            top, bottom, left, right = hidden_box(one.region, *pixels.shape[:2])
            if one.how == "black":
                shown[top:bottom, left:right] = 0
                continue
            key = (one, int(time))
            if key not in self._held:
                for old in [each for each in self._held if each[0] == one]:
                    del self._held[old]
                self._held[key] = mosaic(pixels[top:bottom, left:right])
            shown[top:bottom, left:right] = self._held[key]
        return shown


def in_layers(redactions: Iterable[Redaction]) -> list[Redaction]:
    """As they are laid over one another: black at last."""
    return sorted(redactions, key=lambda one: one.how == "black")


def hidden_box(region: Region | None, height: int, width: int) -> tuple[int, int, int, int]:
    """Top, bottom, left and right of a region in pixels, outwards to even ones: two share their colour in a video."""
    if region is None:
        return 0, height, 0, width
    top, left = int(region.y * height) // 2 * 2, int(region.x * width) // 2 * 2
    bottom = min(height, -int(-(region.y + region.height) * height // 2) * 2)
    right = min(width, -int(-(region.x + region.width) * width // 2) * 2)
    return top, max(bottom, top + 1), left, max(right, left + 1)


def mosaic(pixels: NDArray[Any]) -> NDArray[Any]:
    """The picture as blocks of its mean colour, at most 8 along its longer side."""
    import cv2

    height, width = pixels.shape[:2]
    longer = max(height, width)
    size = max(1, round(BLOCKS * width / longer)), max(1, round(BLOCKS * height / longer))
    blocks = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return cv2.resize(blocks, (width, height), interpolation=cv2.INTER_NEAREST).reshape(pixels.shape)


def outside_of(region: Region) -> tuple[Redaction, ...]:
    """Black over everything but this region, for the whole video.

    >>> [one.region.width for one in outside_of(Region(x=0.25, y=0, width=0.75, height=1))]
    [0.25]
    """
    right, bottom = region.x + region.width, region.y + region.height
    parts = [(0.0, 0.0, 1.0, region.y), (0.0, bottom, 1.0, 1 - bottom), (0.0, region.y, region.x, region.height)]
    parts.append((right, region.y, 1 - right, region.height))
    return tuple(
        Redaction(region=Region(x=x, y=y, width=width, height=height), how="black")
        for x, y, width, height in parts
        if width > 1e-6 and height > 1e-6
    )


def planned(source: Path, redactions: Sequence[Redaction]) -> PlannedPictures:
    """What a redacted video shows, and when. A picture that is shown at any moment of a redaction is touched by it.

    Raises `InputError` where the video can't be read, a redaction begins after its end, or nothing would be left.
    """
    index = read_index(source)
    end = max(probe(source).duration_s, index.seconds(int(index.pts[-1])))
    for one in redactions:
        if one.start >= end:
            found = f"a redaction that begins at {one.start:g} s"
            raise InputError(source, found=found, expected=f"one within the video's {end:.2f} s")
    ends = [*index.pts[1:].tolist(), index.zero + int(Fraction(end) / index.time_base)]
    ends[-1] = max(ends[-1], int(index.pts[-1]) + 1)
    base = Fraction(1, index.time_base.denominator)
    kept: list[int] = []
    pieces: list[VideoPiece] = []
    stamps, touched = [0], []
    first = index.at([0.0])[0]  # those before it are over when the video's clock begins
    for pts, after in zip(index.pts.tolist(), ends, strict=True):
        if pts < first:
            continue
        from_ = index.seconds(pts) if kept or pts != first else min(0.0, index.seconds(pts))
        to = index.seconds(after)
        here = [one for one in redactions if one.start < to and (one.end is None or one.end > from_)]
        if any(one.how == "remove" for one in here):
            continue
        begins = index.zero if pts == first else pts
        if not pieces or abs(pieces[-1].end - index.seconds(begins)) > 1e-9:
            pieces.append(VideoPiece(start=index.seconds(begins), end=to, at=float(stamps[-1] * base)))
        else:
            pieces[-1] = pieces[-1].model_copy(update={"end": to})
        kept.append(pts)
        touched.append(tuple(here))
        stamps.append(stamps[-1] + (after - begins) * index.time_base.numerator)
    if not kept:
        raise InputError(source, found="redactions that remove every picture", expected="at least one that is left")
    return PlannedPictures(index, base, kept, stamps, touched, tuple(pieces))


def shown_pictures(source: Path, plan: PlannedPictures) -> Iterator[tuple[int, Pixels]]:
    """The original's kept pictures, upright, in order."""
    with VideoSource(source) as opened:
        for pts, frame, aspect in decode_at(opened, plan.index, plan.kept):
            yield pts, np.asarray(upright(frame, aspect, None, None))

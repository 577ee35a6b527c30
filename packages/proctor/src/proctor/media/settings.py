"""Settings that change what a system sees, and the size that a picture is scaled to by them: by its longest side, with square
pixels, never enlarged."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from proctor.core import FPS, JPEG_QUALITY, MAX_FRAMES, MAX_SIDE, FrozenModel


class MediaSettings(FrozenModel):
    """Settings that change what a system sees; recorded with a run.

    `max_side` is the longest side in pixels (None: unscaled; pictures are never enlarged), `quality` is JPEG's. A
    system that requests neither a count nor a rate gets `fps` frames a second, and at most `max_frames`, then spread
    evenly. `overlay` paints the elapsed time on each picture of a video, as hh:mm:ss: `absolute` counts from the
    video's start, `clip` from the clip's.

    >>> MediaSettings().model_dump(mode="json")
    {'max_side': 512, 'quality': 85, 'max_frames': 64, 'fps': 1.0, 'overlay': 'none'}
    """

    max_side: int | None = Field(default=MAX_SIDE, ge=16)
    quality: int = Field(default=JPEG_QUALITY, ge=1, le=95)
    max_frames: int = Field(default=MAX_FRAMES, ge=1)
    fps: float = Field(default=FPS, gt=0)
    overlay: Literal["none", "absolute", "clip"] = "none"


def fitted(width: int, height: int, max_side: int | None, aspect: Fraction) -> tuple[int, int]:
    """The size to scale to: pixels made square by shrinking the longer direction, then the longest side."""
    wide, high = width * min(aspect, Fraction(1)), height / max(aspect, Fraction(1))
    scale = Fraction(1) if max_side is None else min(Fraction(1), max_side / max(wide, high))
    return max(1, round(wide * scale)), max(1, round(high * scale))

"""Sampling: the settings that change what a system sees, the size that a picture is scaled to by them, and at which moments
of a clip frames are taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from proctor.core import FPS, JPEG_QUALITY, MAX_FRAMES, MAX_SIDE, FrozenModel, InputError, VideoClip

if TYPE_CHECKING:
    from proctor.media.library import MediaLibrary


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


_NEAR_S = 1e-5  # a time so near a part's end is the start of the next one
_ROUNDING = 1e-9  # 0.3 s at 10 a second are 3 frames, though 0.3 * 10 may come out above 3


def evenly(start: float, end: float, count: int) -> list[float]:
    """The middles of `count` equal parts of start to end; one frame is the middle one.

    >>> evenly(0.0, 10.0, 2)
    [2.5, 7.5]
    """
    step = (end - start) / count
    return [start + (k + 0.5) * step for k in range(count)]


def at_rate(start: float, end: float, fps: float) -> list[float]:
    """Start, and every 1/fps seconds after it, up to but without end; at least the start itself.

    >>> at_rate(2.0, 4.0, 2.0)
    [2.0, 2.5, 3.0, 3.5]
    """
    return [start + k / fps for k in range(int(count_at_rate(start, end, fps)))]


def sample_times(
    start: float, end: float, settings: MediaSettings, *, count: int | None, fps: float | None
) -> list[float]:
    """The moments for a request, ascending.

    `count` alone: spread evenly. `fps` alone: that rate. Both: that rate, but at most `count`, then
    spread evenly. Neither: the settings' rate and cap. Raises `InputError` for a count below 1 or a rate
    that is not above 0.
    """
    if count is not None and count < 1:
        raise InputError("frames", found=f"count={count}", expected="at least 1")
    if fps is not None and not (fps > 0 and math.isfinite(fps)):
        raise InputError("frames", found=f"fps={fps}", expected="a rate above 0")
    if fps is None and count is not None:
        return evenly(start, end, count)
    rate = settings.fps if fps is None else fps
    cap = settings.max_frames if fps is None else count
    if cap is not None and count_at_rate(start, end, rate) > cap:
        return evenly(start, end, cap)
    return at_rate(start, end, rate)


def count_at_rate(start: float, end: float, fps: float) -> float:
    """The number of times of `at_rate`; infinite for more than a float holds.

    >>> count_at_rate(2.0, 4.0, 2.0)
    4
    """
    exact = (end - start) * fps - _ROUNDING
    return max(1, math.ceil(exact)) if math.isfinite(exact) else exact


def sample_parts(
    parts: Sequence[tuple[float, float]], settings: MediaSettings, *, count: int | None, fps: float | None
) -> list[float]:
    """The moments for a request (see `sample_times`), where only these parts of a clip are shown: as if they followed each
    other without a gap.

    >>> sample_parts([(0.0, 2.0), (8.0, 10.0)], MediaSettings(), count=4, fps=None)
    [0.5, 1.5, 8.5, 9.5]
    """
    if len(parts) == 1:
        return sample_times(*parts[0], settings, count=count, fps=fps)
    shown = sum(end - start for start, end in parts)
    found: list[float] = []
    before = 0.0
    times = sample_times(0.0, shown, settings, count=count, fps=fps) if parts else []
    for start, end in parts:
        inside = [time for time in times if before - _NEAR_S <= time < before + (end - start) - _NEAR_S]
        found += [start + max(0.0, time - before) for time in inside]
        before += end - start
    return found


def picture_starts(library: MediaLibrary, clip: VideoClip, span: tuple[float, float]) -> list[float]:
    """The span's start, and when each later picture in it begins."""
    offset = library.excerpts.locate(clip.source, clip.region, library.probe(clip.source)).offset
    index = library.index(clip.source)
    first = index.pts.searchsorted(index.tick(span[0] + offset), side="right")
    later = index.pts[first : index.pts.searchsorted(index.end_tick(span[1] + offset))]
    base = index.time_base
    seconds = (later - index.zero) * base.numerator / base.denominator  # as `FrameIndex.seconds`, for all at once
    return [span[0], *(float(time) - offset for time in seconds)]

"""Which moments of a stretch of video are looked at."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from proctor.core import InputError


class MediaSettings(BaseModel):
    """Recorded with a run, since each of these changes what a system sees.

    `max_side` is the longest side in pixels (None: as large as the file; pictures are never enlarged),
    `quality` is JPEG's. A system that asks for neither a count nor a rate gets `fps` frames a second,
    and at most `max_frames`, then spread evenly. `overlay` burns the elapsed time into each picture of a
    video, as hh:mm:ss: `absolute` counts from the video's start, `clip` from the clip's.

    >>> MediaSettings().model_dump(mode="json")
    {'max_side': 512, 'quality': 85, 'max_frames': 64, 'fps': 1.0, 'overlay': 'none'}
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    max_side: int | None = Field(default=512, ge=16)
    quality: int = Field(default=85, ge=1, le=95)
    max_frames: int = Field(default=64, ge=1)
    fps: float = Field(default=1.0, gt=0)
    overlay: Literal["none", "absolute", "clip"] = "none"


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
    return [start + k / fps for k in range(_number(start, end, fps))]


def sample_times(
    start: float, end: float, settings: MediaSettings, *, count: int | None, fps: float | None
) -> list[float]:
    """The moments for a request, ascending.

    `count` alone: spread evenly. `fps` alone: that rate. Both: that rate, but at most `count`, then
    spread evenly. Neither: the settings' rate and cap. Raises `InputError` for a count below 1 or a rate
    that is not above 0.
    """
    if count is not None and count < 1:
        raise InputError(None, "frames", found=f"count={count}", expected="at least 1")
    if fps is not None and not (fps > 0 and math.isfinite(fps)):
        raise InputError(None, "frames", found=f"fps={fps}", expected="a rate above 0")
    if fps is None and count is not None:
        return evenly(start, end, count)
    rate = settings.fps if fps is None else fps
    cap = settings.max_frames if fps is None else count
    if cap is not None and _number(start, end, rate) > cap:
        return evenly(start, end, cap)
    return at_rate(start, end, rate)


def _number(start: float, end: float, fps: float) -> int:
    return max(1, math.ceil((end - start) * fps - _ROUNDING))

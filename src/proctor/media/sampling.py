"""Which moments of a stretch of video are looked at."""

from __future__ import annotations

import math

from proctor.core import InputError
from proctor.media.settings import MediaSettings

__all__ = ["at_rate", "clock_text", "evenly", "sample_times"]

_CLOCK_ROUNDING = 1e-6
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


def clock_text(time: float) -> str:
    """Elapsed time as it is painted on a picture: whole seconds that have passed.

    >>> clock_text(0.1 * 3 * 10), clock_text(3725.9)
    ('00:00:03', '01:02:05')
    """
    minutes, seconds = divmod(math.floor(max(0.0, time) + _CLOCK_ROUNDING), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


def _number(start: float, end: float, fps: float) -> int:
    return max(1, math.ceil((end - start) * fps - _ROUNDING))

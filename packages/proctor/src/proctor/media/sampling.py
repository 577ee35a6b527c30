"""Sampling times: at which moments of a clip frames are taken."""

from __future__ import annotations

import math

from proctor.core import InputError
from proctor.media.settings import MediaSettings

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

"""The timestamps of all pictures of a video, read without decoding: what a moment resolves to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.media.video import clock_zero, open_video

__all__ = ["FrameIndex", "read_index"]

_FLOAT_NOISE_S = 1e-6  # 3 * (1 / 30) is a little less than the timestamp of frame 3
_NEAR_TICK = 1e-5  # in ticks: rounding can reach the next tick, but not cross it from farther off


@dataclass(frozen=True)
class FrameIndex:
    """`pts` are the presentation timestamps of all pictures in ticks of `time_base`, ascending; `keys` those
    at which decoding can begin; `zero` is the tick at which the video's own clock shows 0.

    `stamped` is False where packets do not tell when they are shown (AVI, raw streams): then pictures are
    found by counting them, from the start or from a keyframe's time of decoding, which `keys` then holds.
    """

    time_base: Fraction
    zero: int
    pts: NDArray[np.int64]
    keys: NDArray[np.int64]
    stamped: bool = True

    def seconds(self, pts: int) -> float:
        """A timestamp on the video's own clock."""
        return float((pts - self.zero) * self.time_base)

    def at(self, times: Sequence[float]) -> list[int]:
        """For each time the last timestamp at or before it; before the first picture, the first."""
        places = np.searchsorted(self.pts, self._ticks(times), side="right") - 1
        return [int(pts) for pts in self.pts[np.maximum(places, 0)]]

    def tick(self, time: float) -> int:
        """The last tick at or before a time of the video's own clock."""
        return math.floor(Fraction(time + _FLOAT_NOISE_S) / self.time_base) + self.zero

    def _ticks(self, times: Sequence[float]) -> NDArray[np.int64]:
        """`tick` of many times at once: in floating point, and exactly where that is too near to call."""
        base = self.time_base
        moments: NDArray[np.float64] = np.asarray(times, dtype=np.float64) + _FLOAT_NOISE_S
        scaled = moments * base.denominator / base.numerator
        ticks: NDArray[np.int64] = np.floor(scaled).astype(np.int64) + self.zero
        for place in np.flatnonzero(np.abs(scaled - np.rint(scaled)) < _NEAR_TICK):
            ticks[place] = self.tick(times[int(place)])
        return ticks

    def key_before(self, pts: int) -> int:
        """Where decoding has to begin to get this picture."""
        place = int(np.searchsorted(self.keys, pts, side="right")) - 1
        return int(self.keys[max(place, 0)])

    def going_on(self, times: Sequence[float], groups: int) -> list[float]:
        """Where the times go on in equal steps: the next ones, up to the next place at which decoding can begin,
        or a later one: at most so many of these places on, and not further than the times reach back. Empty
        where the steps differ."""
        ordered = sorted(times)
        steps = np.diff(ordered)
        if not len(steps) or steps[0] <= 0 or np.ptp(steps) > _FLOAT_NOISE_S:
            return []
        first, last = self.at([ordered[0], ordered[-1]])
        after = self.keys[np.searchsorted(self.keys, last, side="right") :][:groups]
        near = [int(key) for key in after if key <= 2 * last - first]
        end = max([*near, *(int(key) for key in after[:1])], default=int(self.pts[-1]) + 1)
        ahead = int((self.seconds(end) - ordered[-1]) / steps[0]) + 1
        further = [ordered[-1] + k * float(steps[0]) for k in range(1, ahead + 1)]
        return [time for time in further if self.tick(time) < end]

    def between(self, first: int, last: int) -> int:
        """How many pictures lie from the one timestamp up to the other."""
        return int(np.searchsorted(self.pts, last) - np.searchsorted(self.pts, first))


def read_index(path: Path) -> FrameIndex:
    """Reads all packets of the video once. Raises `InputError` where there is no picture."""
    import av

    with open_video(path) as (container, stream):
        base = Fraction(stream.time_base or Fraction(1, 1_000_000))
        zero = clock_zero(container, stream)
        in_order, reordered = container.format.name == "avi", bool(stream.has_b_frames)
        packets: list[tuple[int | None, int | None, bool]] = []
        with suppress(av.FFmpegError):  # where it breaks off; `probe` says so if the header promised more
            packets.extend(
                (packet.pts, packet.dts, packet.is_keyframe)
                for packet in container.demux(stream)
                if packet.size and not packet.is_discard
            )
    if in_order:  # AVI tells when packets are decoded: the n-th picture is shown at the n-th such time
        stamps = _ascending([dts for _, dts, _ in packets])
        if stamps is not None:
            starts = [dts for _, dts, is_key in packets if is_key and dts is not None and not reordered]
            keys = np.array([*stamps[:1], *starts[1:]], dtype=np.int64)
            return FrameIndex(base, int(stamps[0]), stamps, keys, stamped=False)
    stamps = _ascending([pts for pts, _, _ in packets])
    keys = np.array(sorted(pts for pts, _, key in packets if key and pts is not None), dtype=np.int64)
    if stamps is None or not len(keys) or in_order:
        return _counted(path, zero)
    return FrameIndex(base, zero, stamps, keys)


def _ascending(stamps: Sequence[int | None]) -> NDArray[np.int64] | None:
    """All timestamps in ascending order; None where there are none, one is missing, or two are the same."""
    known = np.array(sorted({stamp for stamp in stamps if stamp is not None}), dtype=np.int64)
    return known if len(known) and len(known) == len(stamps) else None


def _counted(path: Path, zero: int) -> FrameIndex:
    """By decoding everything once: timestamps as the decoder gives them, or else by the average rate."""
    with open_video(path) as (container, stream):
        base = Fraction(stream.time_base or Fraction(1, 1_000_000))
        rate = stream.average_rate
        given = [frame.pts for frame in container.decode(stream)]
    if not given:
        raise InputError(path, found="a video without a picture")
    stamps = _ascending(given)
    if stamps is None or list(stamps) != given:
        if not rate:
            raise InputError(path, found="a video without timestamps or frame rate")
        base, zero, stamps = 1 / Fraction(rate), 0, np.arange(len(given), dtype=np.int64)
    return FrameIndex(base, zero, stamps, stamps[:1], stamped=False)

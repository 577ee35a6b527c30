"""A video's clock: when each of its pictures is shown.

The clock shows 0 where a player starts, at the file's first timestamp (`clock_zero`), and a picture is shown from its
presentation timestamp on until the next one's. Files that do not store presentation timestamps of all pictures, or none
that can be those of their pictures (`timestamps`), get them from decoding times (AVI, ASF), from the decoder, or from the
average rate, in this order (`read_index`). A frame asked for at a time is the last picture shown at or before it
(`FrameIndex.at`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.media.container import open_video
from proctor.media.pyav import exact
from proctor.media.timestamps import MOST_HELD, check_order, corrected, is_ascending, tell_the_order

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.stream import VideoStream

_FLOAT_NOISE_S = 1e-6  # 3 * (1 / 30) is a little less than the timestamp of frame 3
_NEAR_TICK = 1e-5  # in ticks: rounding can reach the next tick, but not cross it from farther off


def clock_zero(container: InputContainer, stream: VideoStream) -> int:
    """The timestamp, in the stream's ticks, at which a player's clock shows 0."""
    start: int | None = getattr(container, "start_time", None)  # None where no stream tells
    return 0 if start is None else round(Fraction(start, 1_000_000) / time_base(stream))


def time_base(stream: VideoStream) -> Fraction:
    """The length of a tick in seconds."""
    return exact(stream.time_base, Fraction(1, 1_000_000))


@dataclass(frozen=True)
class FrameIndex:
    """The timestamps of a video's pictures.

    `pts` are the presentation timestamps of all pictures in ticks of `time_base`, ascending; `keys` those at which
    decoding can begin; `zero` is the tick at which the video's clock shows 0.

    `stamped` is False where not every packet has a presentation timestamp (AVI, raw streams, a timestamp that is
    missing or repeated): then pictures are found by counting, from the start or from a keyframe's decoding time, which
    `keys` then holds. An edit list may begin within a group of pictures: its keyframe is in `keys`, but not in `pts`.
    """

    time_base: Fraction
    zero: int
    pts: NDArray[np.int64]
    keys: NDArray[np.int64]
    stamped: bool = True

    @property
    def edited(self) -> bool:
        """Whether the first picture depends on one that is not shown."""
        return self.stamped and int(self.keys[0]) < int(self.pts[0])

    def seconds(self, pts: int) -> float:
        """A timestamp on the video's own clock."""
        return float((pts - self.zero) * self.time_base)

    def at(self, times: Sequence[float]) -> list[int]:
        """For each time the last timestamp at or before it; before the first picture, the first."""
        positions = np.searchsorted(self.pts, self._ticks(times), side="right") - 1
        return [int(pts) for pts in self.pts[np.maximum(positions, 0)]]

    def tick(self, time: float) -> int:
        """The last tick at or before a time of the video's own clock."""
        return math.floor(Fraction(time + _FLOAT_NOISE_S) / self.time_base) + self.zero

    def end_tick(self, time: float) -> int:
        """The first tick at or after a time of the video's own clock: pictures before it are shown before that time."""
        return math.ceil(Fraction(time - _FLOAT_NOISE_S) / self.time_base) + self.zero

    def _ticks(self, times: Sequence[float]) -> NDArray[np.int64]:
        """`tick` of many times at once: in floating point, and exactly for times near a tick."""
        base = self.time_base
        moments: NDArray[np.float64] = np.asarray(times, dtype=np.float64) + _FLOAT_NOISE_S
        scaled = moments * base.denominator / base.numerator
        ticks: NDArray[np.int64] = np.floor(scaled).astype(np.int64) + self.zero
        for position in np.flatnonzero(np.abs(scaled - np.rint(scaled)) < _NEAR_TICK):
            ticks[position] = self.tick(times[int(position)])
        return ticks

    def key_before(self, pts: int) -> int:
        """The keyframe from which this picture can be decoded."""
        position = int(np.searchsorted(self.keys, pts, side="right")) - 1
        return int(self.keys[max(position, 0)])

    def begins_at(self, stamp: int) -> bool:
        """Whether decoding can begin at this timestamp."""
        return bool(self.keys[self.keys.searchsorted(stamp) % len(self.keys)] == stamp)

    def going_on(self, times: Sequence[float], groups: int) -> list[float]:
        """Times that continue these in equal steps, up to a later keyframe: at most `groups` keyframes on, and not
        further than the times reach back. Empty where the steps differ."""
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
        """The number of pictures from one timestamp up to the other."""
        return int(np.searchsorted(self.pts, last) - np.searchsorted(self.pts, first))


def read_index(path: Path) -> FrameIndex:
    """Reads all packets of the video once, and decodes it where they lack presentation timestamps. Raises `InputError`
    where there is no picture, and where time goes back."""
    with open_video(path) as (container, stream):
        base = time_base(stream)
        zero = clock_zero(container, stream)
        in_order, reordered = in_order_of_decoding(container, stream), bool(stream.has_b_frames)
        all_packets = _packets(container, stream)
    packets = [(pts, dts, is_key) for pts, dts, is_key, hidden in all_packets if not hidden]
    given = [pts for pts, _, _ in packets]
    if reordered and is_ascending(given) and not _shown_in_order(path, 4 * MOST_HELD):
        in_order = True  # an MP4 without its table of offsets
    if in_order and (by_decoding := _by_decoding_times(packets, base, reordered=reordered)) is not None:
        return by_decoding
    stamps = _ascending(given)
    keys = np.array([pts for pts, _, key, _ in all_packets if key and pts is not None], dtype=np.int64)
    if stamps is None or not len(keys) or in_order or np.any(np.diff(keys) < 0):
        return _counted(path, zero)
    at_keys = np.array([is_key for _, _, is_key in packets], dtype=bool)
    known = np.array(given, dtype=np.int64)
    if not tell_the_order(known, at_keys, reordered=reordered) and not _shown_in_order(path):
        return _counted(path, zero)
    return FrameIndex(base, zero, stamps, keys)


def _packets(container: InputContainer, stream: VideoStream) -> list[tuple[int | None, int | None, bool, bool]]:
    """Presentation and decoding timestamp of each packet, whether it is a keyframe, and whether it is hidden; up to where
    the file breaks off, which `probe` reports."""
    import av

    found: list[tuple[int | None, int | None, bool, bool]] = []
    with suppress(av.FFmpegError):
        found.extend(
            (packet.pts, packet.dts, packet.is_keyframe, packet.is_discard)
            for packet in container.demux(stream)
            if packet.size
        )
    return found


def _by_decoding_times(
    packets: Sequence[tuple[int | None, int | None, bool]], base: Fraction, *, reordered: bool
) -> FrameIndex | None:
    """The index of a file that stores decoding times alone: the n-th picture is shown at the n-th of them. None where a
    time is missing or comes twice."""
    stamps = _ascending([dts for _, dts, _ in packets])
    if stamps is None:
        return None
    starts = [dts for _, dts, is_key in packets if is_key and dts is not None and not reordered]
    keys = np.array([*stamps[:1], *starts[1:]], dtype=np.int64)
    return FrameIndex(base, int(stamps[0]), stamps, keys, stamped=False)


def in_order_of_decoding(container: InputContainer, stream: VideoStream) -> bool:
    """Whether the file stores decoding times alone: AVI, and ASF (WMV) where pictures are reordered."""
    return container.format.name == "avi" or (container.format.name == "asf" and bool(stream.has_b_frames))


def _shown_in_order(path: Path, most: int | None = None) -> bool:
    """Whether the decoder shows all pictures, or the first ones, in the order of their timestamps; up to where the file
    breaks off."""
    stamps: list[int | None] = []
    with suppress(InputError), open_video(path) as (container, stream):
        stamps.extend(frame.pts for frame in islice(container.decode(stream), most))
    return is_ascending(stamps)


def _ascending(stamps: Sequence[int | None]) -> NDArray[np.int64] | None:
    """All timestamps in ascending order; None where there are none, one is missing, or two are the same."""
    known = np.array(sorted({stamp for stamp in stamps if stamp is not None}), dtype=np.int64)
    return known if len(known) and len(known) == len(stamps) else None


def _counted(path: Path, zero: int) -> FrameIndex:
    """The index by decoding everything once: timestamps of the decoder (see `corrected`), or by the average rate."""
    with open_video(path) as (container, stream):
        base = time_base(stream)
        rate = exact(stream.average_rate, Fraction(0))
        given = [frame.pts for frame in container.decode(stream)]
    if not given:
        raise InputError(path, found="a video without a picture")
    if len(set(given)) > 1 or (len(given) == 1 and given[0] is not None):
        check_order(path, given, base)
        stamps, finer = corrected(given, 1 / (rate * base) if rate else None)
        base, zero = base / finer, zero * finer
    elif rate:
        base, zero, stamps = 1 / rate, 0, np.arange(len(given), dtype=np.int64)
    else:
        raise InputError(path, found="a video without timestamps or frame rate")
    return FrameIndex(base, zero, stamps, stamps[:1], stamped=False)

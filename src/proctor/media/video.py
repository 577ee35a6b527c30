"""One video file: opening it safely, what its header says, what it holds, and when its pictures are shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.media.container import ContainerFacts, container_facts, video_track
from proctor.media.pyav import exact, open_input, readable_tags
from proctor.media.timestamps import MOST_HELD, check_order, corrected, is_ascending, tell_the_order

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_DECLARE_DURATION = ("mov,mp4", "matroska,webm", "avi", "flv")  # others estimate it from the bit rate
_TRUNCATED_S = 0.5
_TAIL_S = 2.0
_USUAL_RATE = 25  # for the duration of the last picture where the file does not state one


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """The facts of a video that are known before decoding.

    A video's clock starts at 0 where a player starts: at the file's first timestamp, which is `start_s` in the file's
    own count. `duration_s` is on that clock: the end of the last picture that is really there, whatever the header
    says. Width and height are as displayed (see `Display`); `fps` is the average rate, 0 where the file does not state
    it. `remarks` are those of `ContainerFacts`.
    """

    duration_s: float
    width: int
    height: int
    fps: float
    start_s: float
    codec: str
    remarks: tuple[str, ...] = ()


@contextmanager
def open_video(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """The container and the video track that is shown (see `video_track`).

    Raises `InputError` where the file can't be opened or read, holds no video, or uses an unknown codec. Only local
    files are opened, whatever a playlist inside refers to.
    """
    import av

    try:
        with open_input(path) as container:
            yield container, video_track(container, path)
    except (av.FFmpegError, OSError) as error:
        raise InputError(path, found=f"an unreadable video ({reason_of(error)})") from error


def probe(path: Path) -> VideoInfo:
    """Reads the header, the first picture and the last packets. Raises `InputError` as `open_video`, and
    for a file that ends more than half a second before its header says."""
    with open_video(path) as (container, stream):
        first = _first_picture(container, stream, path)
        end_s, all_s = _ends(path)
        start_s = float(clock_zero(container, stream) * _time_base(stream))
        claimed = None if container.duration is None else container.duration / 1e6
        told = container.format.name.startswith(_DECLARE_DURATION)
        there = max(all_s, all_s - start_s)  # Matroska counts from 0, others from the first timestamp
        if claimed is not None and told and claimed - there > _TRUNCATED_S:
            raise InputError(
                path,
                found=f"a truncated video: it ends at {there:.1f} s",
                expected=f"{claimed:.1f} s as its header says",
            )
        facts = container_facts(container, stream, first, path)
        width, height = facts.display.size(first.width, first.height)
        return VideoInfo(
            duration_s=end_s - start_s,
            width=width,
            height=height,
            fps=float(exact(stream.average_rate, Fraction(0))),
            start_s=start_s,
            codec=stream.codec_context.codec.canonical_name,
            remarks=facts.remarks,
        )


def read_container(path: Path) -> ContainerFacts:
    """What the file says about its tracks and pictures. Raises `InputError` as `open_video`."""
    with open_video(path) as (container, stream):
        return container_facts(container, stream, _first_picture(container, stream, path), path)


def seek(container: InputContainer, target: int, stream: VideoStream | AudioStream | None = None) -> bool:
    """Seeks to a place where decoding can begin, at or before the target (in the stream's ticks, or without a stream in
    microseconds). False where the file is not seekable; it must then be reopened."""
    import av

    try:
        container.seek(target, stream=stream)
    except av.FFmpegError:
        return False
    return True


def clock_zero(container: InputContainer, stream: VideoStream) -> int:
    """The timestamp, in the stream's ticks, at which a player's clock shows 0."""
    start: int | None = getattr(container, "start_time", None)  # None where no stream tells
    return 0 if start is None else round(Fraction(start, 1_000_000) / _time_base(stream))


def _first_picture(container: InputContainer, stream: VideoStream, path: Path) -> VideoFrame:
    frame = next(iter(container.decode(stream)), None)
    if frame is None:
        raise InputError(path, found="a video without a picture")
    return frame


def _ends(path: Path) -> tuple[float, float]:
    """The end of the last picture, and of the last packet of any stream, in the file's own time."""
    with open_video(path) as (container, stream):
        start: int | None = getattr(container, "start_time", None)
        if container.duration is not None:
            near_end = (start or 0) + container.duration - round(_TAIL_S * 1e6)
            if near_end > (start or 0) and seek(container, near_end):
                end, of_all = _read_to_end(container, stream)
                if end is not None:
                    return end, of_all
    with open_video(path) as (container, stream):
        end, of_all = _read_to_end(container, stream)
    return (of_all if end is None else end), of_all


def _read_to_end(container: InputContainer, stream: VideoStream) -> tuple[float | None, float]:
    import av

    end, of_all, in_order = None, 0.0, _in_order_of_decoding(container, stream)
    picture_s = float(1 / exact(stream.average_rate, Fraction(_USUAL_RATE)))
    try:
        for packet in container.demux():
            stamp = packet.dts if packet.pts is None or in_order else packet.pts
            if stamp is None:
                continue
            mine = packet.stream_index == stream.index
            base = exact(packet.time_base, Fraction(0))
            length = float((packet.duration or 0) * base) or (picture_s if mine else 0.0)
            here = float(stamp * base) + length
            of_all = max(of_all, here)
            if mine:
                end = here if end is None else max(end, here)
    except av.FFmpegError:
        return end, of_all  # the file breaks off here: that is its end
    return end, of_all


def _time_base(stream: VideoStream) -> Fraction:
    return exact(stream.time_base, Fraction(1, 1_000_000))


def reason_of(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


_FLOAT_NOISE_S = 1e-6  # 3 * (1 / 30) is a little less than the timestamp of frame 3
_NEAR_TICK = 1e-5  # in ticks: rounding can reach the next tick, but not cross it from farther off


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
        places = np.searchsorted(self.pts, self._ticks(times), side="right") - 1
        return [int(pts) for pts in self.pts[np.maximum(places, 0)]]

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
        for place in np.flatnonzero(np.abs(scaled - np.rint(scaled)) < _NEAR_TICK):
            ticks[place] = self.tick(times[int(place)])
        return ticks

    def key_before(self, pts: int) -> int:
        """The keyframe from which this picture can be decoded."""
        place = int(np.searchsorted(self.keys, pts, side="right")) - 1
        return int(self.keys[max(place, 0)])

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
        base = _time_base(stream)
        zero = clock_zero(container, stream)
        in_order, reordered = _in_order_of_decoding(container, stream), bool(stream.has_b_frames)
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


def _in_order_of_decoding(container: InputContainer, stream: VideoStream) -> bool:
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
        base = _time_base(stream)
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


_MAX_PIXELS = 2**26  # 8192 × 8192: a header that promises more is refused before anything is decoded


def check_size(path: Path) -> None:
    """Raises `InputError` as `open_video`, and for pictures of more than 2²⁶ pixels, which could fill the memory."""
    with open_video(path) as (_, stream):
        width, height = stream.width, stream.height
    if width * height > _MAX_PIXELS:
        raise InputError(path, found=f"pictures of {width} × {height}", expected=f"at most {_MAX_PIXELS:,} pixels")


_STEADY = 0.25  # of the median step: a larger difference is not rounding
_IRREGULAR = 0.01  # share of steps above which a rate is variable
_MAX_VALUES = 1000
_FORMAT_TAGS = {"major_brand", "minor_version", "compatible_brands"}
_WRITTEN_TAGS = {"handler_name": {"VideoHandler", "SoundHandler"}, "language": {"und"}, "vendor_id": {"[0][0][0][0]"}}
"""Values that every MP4 has, which reveal nothing; Matroska writes the names in capitals."""


@dataclass(frozen=True)
class HeldMetadata:
    """The contents of a file beside its first video stream: the number of audio tracks and chapters, the kinds of
    further streams, and names ("title", "audio: language") and values of its tags, without those that every file has."""

    audio_tracks: int
    other_streams: tuple[str, ...]
    chapters: int
    tags: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class VideoFacts:
    """The facts of a video file. `fps` is the number of pictures over the duration, 0 for a single picture.
    `variable_rate`: more than one step in a hundred differs from the median step by more than a quarter. `longest_s` is
    the longest time that a picture other than the last one is shown."""

    container: str
    codec: str
    duration_s: float
    width: int
    height: int
    pictures: int
    fps: float
    variable_rate: bool
    longest_s: float
    held: HeldMetadata


def inspect_video(path: Path) -> VideoFacts:
    """Reads header and packets, and decodes the first picture. Raises `InputError` as `probe` and `check_size`."""
    check_size(path)
    info, index = probe(path), read_index(path)
    steps = np.diff(index.pts) * float(index.time_base)
    usual = float(np.median(steps)) if len(steps) else 0.0
    uneven = float(np.mean(np.abs(steps - usual) > _STEADY * usual)) if len(steps) else 0.0
    with open_video(path) as (container, _):
        kind = container.format.name
    return VideoFacts(
        container=kind,
        codec=info.codec,
        duration_s=info.duration_s,
        width=info.width,
        height=info.height,
        pictures=len(index.pts),
        fps=(len(index.pts) - 1) / float(steps.sum()) if len(steps) else 0.0,
        variable_rate=uneven > _IRREGULAR,
        longest_s=float(steps.max()) if len(steps) else 0.0,
        held=metadata_of(path),
    )


def metadata_of(path: Path) -> HeldMetadata:
    """The contents of a file beside its pictures. Raises `InputError` as `open_video`."""
    with open_video(path) as (container, video):
        others = [str(stream.type) for stream in container.streams if stream.index != video.index]
        pairs = list(_metadata_tags(container))
        chapters = len(container.chapters())
    return HeldMetadata(
        audio_tracks=others.count("audio"),
        other_streams=tuple(sorted(kind for kind in others if kind != "audio")),
        chapters=chapters,
        tags=tuple(sorted({name for name, _ in pairs})),
        values=tuple(sorted({value for _, value in pairs if value})[:_MAX_VALUES]),
    )


def _metadata_tags(container: InputContainer) -> Iterator[tuple[str, str]]:
    yield from _telling(container.metadata, "", _FORMAT_TAGS)
    for stream in container.streams:
        yield from _telling(stream.metadata, f"{stream.type}: ", set())
    for chapter in container.chapters():
        yield from _telling(chapter["metadata"], "chapter: ", set())


def _telling(tags: Mapping[str, str], kind: str, usual: set[str]) -> Iterator[tuple[str, str]]:
    for name, value in readable_tags(tags).items():
        if name.lower() not in usual and value not in _WRITTEN_TAGS.get(name.lower(), ()):
            yield f"{kind}{name}", value

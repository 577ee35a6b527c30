"""A clip as an MP4 file of its own, for models that take videos: copied where that is exact, else re-encoded.

Times in it start at 0 with the clip. Sound is left out.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import InputError, Region
from proctor.media.pictures import fitted, upright
from proctor.media.video import FrameIndex, decoding_times, open_video, pixel_aspect

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_TICKS = 90_000
_X264 = {"preset": "veryfast", "crf": "23"}


@dataclass(frozen=True, slots=True)
class ClipFile:
    """One clip as an MP4, what it is called ("" where there is only one), and its start and end in seconds of
    its video."""

    mp4: bytes
    label: str
    span: tuple[float, float]


def cut(path: Path, index: FrameIndex, span: tuple[float, float], region: Region | None, max_side: int | None) -> bytes:
    """The clip's pictures at their own times: the packets as they are where that is exact (see `_may_copy` and
    `_begins`), else re-encoded. Raises `InputError` where the file can't be read."""
    first, end = index.at([span[0]])[0], index.end_tick(span[1])
    if region is None and first in index.keys and _may_copy(path, index, end, max_side) and _begins(path, first):
        return _copied(path, first, end)
    return _made(path, index, first, end, region, max_side)


def from_jpegs(pictures: Iterable[tuple[float, bytes]]) -> bytes:
    """A video that shows JPEGs at times in seconds, ascending, from 0 on."""
    import av
    import numpy as np
    from PIL import Image

    def frames() -> Iterable[tuple[int, VideoFrame]]:
        for time, jpeg in pictures:
            with Image.open(io.BytesIO(jpeg)) as opened:
                pixels = np.asarray(opened.convert("RGB"))
            yield round(time * _TICKS), av.VideoFrame.from_ndarray(pixels, format="rgb24")

    return _encoded(frames(), Fraction(1, _TICKS))


def _may_copy(path: Path, index: FrameIndex, end: int, max_side: int | None) -> bool:
    """H.264, upright, not to be scaled, and no picture before the end needs one after it."""
    with open_video(path) as (container, stream):
        if stream.codec_context.name != "h264" or not index.stamped:
            return False
        frame = next(container.decode(stream))
        size = fitted(stream.width, stream.height, max_side, pixel_aspect(stream))
        in_order = not stream.codec_context.has_b_frames
        to_the_end = end > int(index.pts[-1])
        return size == (frame.width, frame.height) and not frame.rotation and (in_order or to_the_end)


def _begins(path: Path, first: int) -> bool:
    """Whether a decoder that begins at this keyframe shows it: with intra refresh only later ones."""
    with open_video(path) as (container, stream):
        packets = dropwhile(lambda packet: packet.pts != first, container.demux(stream))
        stamps = (frame.pts for packet in packets for frame in packet.decode())
        return next((pts for pts in stamps if pts is not None and pts >= first), None) == first


def _copied(path: Path, first: int, end: int) -> bytes:
    import av

    out = io.BytesIO()
    with open_video(path) as (container, stream), av.open(out, "w", format="mp4") as target:
        copy = target.add_stream_from_template(stream)
        # Reading past what lies before costs little, and never lands in the wrong place.
        packets = [packet for packet in container.demux(stream) if packet.pts is not None and first <= packet.pts < end]
        shown = [(packet.pts or 0) - first for packet in packets]
        told = [packet.dts - first for packet in packets if packet.dts is not None]
        decoded = told if len(told) == len(packets) else decoding_times(shown)
        for packet, pts, dts in zip(packets, shown, decoded, strict=True):
            packet.pts, packet.dts = pts, dts
            packet.stream = copy
            target.mux(packet)
    return out.getvalue()


def _made(path: Path, index: FrameIndex, first: int, end: int, region: Region | None, max_side: int | None) -> bytes:
    import av

    from proctor.media.decode import VideoSource, decode_at

    wanted = [int(pts) for pts in index.pts if first <= pts < max(end, first + 1)]

    def frames() -> Iterable[tuple[int, VideoFrame]]:
        import numpy as np

        with VideoSource(path) as source:
            for pts, frame, aspect in decode_at(source, index, wanted):
                picture = upright(frame, aspect, region, max_side)
                yield pts - first, av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")

    return _encoded(frames(), index.time_base)


def _encoded(frames: Iterable[tuple[int, VideoFrame]], base: Fraction) -> bytes:
    import av

    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as target:
        stream: VideoStream | None = None
        for pts, frame in frames:
            if stream is None:
                stream = _stream(target, frame, base)
            shown = frame.reformat(stream.width, stream.height, "yuv420p")
            shown.pts, shown.time_base = pts, base
            target.mux(stream.encode(shown))
        if stream is None:
            raise InputError("clip", found="no picture", expected="at least one")
        target.mux(stream.encode(None))
    return out.getvalue()


def _stream(target: OutputContainer, frame: VideoFrame, base: Fraction) -> VideoStream:
    """H.264 in colours that every reader takes; its sides are even, as it wants them."""
    stream = target.add_stream("libx264", options=_X264)
    stream.width, stream.height = max(2, frame.width // 2 * 2), max(2, frame.height // 2 * 2)
    stream.pix_fmt, stream.codec_context.time_base = "yuv420p", base
    stream.thread_type = "AUTO"
    return stream

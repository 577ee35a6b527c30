"""One video file: opening it safely, and what it says and really holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import InputError

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = ["VideoInfo", "clock_zero", "open_video", "pixel_aspect", "probe", "seek"]

_STILLS = ("_pipe", "image2", "gif", "apng", "webp")
_DECLARE_DURATION = ("mov,mp4", "matroska,webm", "avi", "flv")  # others estimate it from the bit rate
_TRUNCATED_S = 0.5
_TAIL_S = 2.0
_USUAL_RATE = 25  # for how long a last picture is shown where the file does not tell


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What is needed of a video before anything is decoded.

    A video's own clock starts at 0 where a player starts it: at the file's first timestamp, which is
    `start_s` in the file's own count. `duration_s` is on that clock: the end of the last picture that is
    really there, whatever the header says. Width and height are as displayed (rotation and pixel shape
    applied); `fps` is the average rate, 0 where the file does not tell.
    """

    duration_s: float
    width: int
    height: int
    fps: float
    start_s: float
    codec: str


@contextmanager
def open_video(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """The container and its first real video stream.

    Raises `InputError` where the file can't be opened or read, holds no video, or a codec that is not
    known here. Only local files are ever opened, whatever a playlist inside may ask for.
    """
    import av

    try:
        with av.open(
            str(path), "r", options={"protocol_whitelist": "file"}, metadata_errors="replace"
        ) as container:
            yield container, _video_stream(container, path)
    except (av.FFmpegError, OSError) as error:
        raise InputError(path, found=f"an unreadable video ({_reason(error)})") from error


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
        width, height = _displayed(first, pixel_aspect(stream))
        return VideoInfo(
            duration_s=end_s - start_s,
            width=width,
            height=height,
            fps=float(stream.average_rate or 0),
            start_s=start_s,
            codec=stream.codec_context.codec.canonical_name,
        )


def seek(container: InputContainer, target: int, stream: VideoStream | None = None) -> bool:
    """Goes to a place where decoding can begin, at or before the target: in the stream's ticks, or without
    a stream in microseconds. False where the file can't be sought in; it is then to be opened anew."""
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


def pixel_aspect(stream: VideoStream) -> Fraction:
    """Width over height of one pixel; 1 where the file does not tell."""
    aspect = stream.sample_aspect_ratio
    return Fraction(aspect) if aspect else Fraction(1)


def _video_stream(container: InputContainer, path: Path) -> VideoStream:
    from av.stream import Disposition

    streams = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
    if not streams:
        raise InputError(path, found="no video stream", expected="a video")
    if any(part in container.format.name for part in _STILLS):
        raise InputError(path, found="a still image", expected="a video")
    if getattr(streams[0], "codec_context", None) is None:
        raise InputError(path, found="an unknown video codec")
    return streams[0]


def _first_picture(container: InputContainer, stream: VideoStream, path: Path) -> VideoFrame:
    frame = next(iter(container.decode(stream)), None)
    if frame is None:
        raise InputError(path, found="a video without a picture")
    return frame


def _ends(path: Path) -> tuple[float, float]:
    """Where the last picture ends, and where the last packet of any stream does, in the file's time."""
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

    end, of_all = None, 0.0
    picture_s = float(1 / (stream.average_rate or _USUAL_RATE))
    try:
        for packet in container.demux():
            stamp = packet.dts if packet.pts is None else packet.pts
            if stamp is None:
                continue
            mine = packet.stream_index == stream.index
            length = float((packet.duration or 0) * Fraction(packet.time_base)) or (
                picture_s if mine else 0.0
            )
            here = float(stamp * Fraction(packet.time_base)) + length
            of_all = max(of_all, here)
            if mine:
                end = here if end is None else max(end, here)
    except av.FFmpegError:
        return end, of_all  # the file breaks off here: that is its end
    return end, of_all


def _displayed(frame: VideoFrame, aspect: Fraction) -> tuple[int, int]:
    one = Fraction(1)
    width, height = round(frame.width * max(aspect, one)), round(frame.height / min(aspect, one))
    return (height, width) if frame.rotation % 180 else (width, height)


def _time_base(stream: VideoStream) -> Fraction:
    return stream.time_base or Fraction(1, 1_000_000)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)

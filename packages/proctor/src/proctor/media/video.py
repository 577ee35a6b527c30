"""One video file: what its header says, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from proctor.core import InputError
from proctor.media.container import ContainerFacts, container_facts, open_video, seek
from proctor.media.pyav import exact, readable_tags
from proctor.media.video_clock import clock_zero, in_order_of_decoding, read_index, time_base

if TYPE_CHECKING:
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


def probe(path: Path) -> VideoInfo:
    """Reads the header, the first picture and the last packets. Raises `InputError` as `open_video`, and
    for a file that ends more than half a second before its header says."""
    with open_video(path) as (container, stream):
        first = _first_picture(container, stream, path)
        end_s, all_s = _ends(path)
        start_s = float(clock_zero(container, stream) * time_base(stream))
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

    end, of_all, in_order = None, 0.0, in_order_of_decoding(container, stream)
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

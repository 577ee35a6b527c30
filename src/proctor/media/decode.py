"""Decoding exactly the pictures that are wanted: in one pass where they lie close, by seeking where not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from proctor.core import InputError
from proctor.media.index import FrameIndex
from proctor.media.video import open_video, pixel_aspect

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = ["Shot", "decode_at"]

_WORTH_A_SEEK = 12  # pictures to skip; below that, decoding on is as fast as starting anew
_LOST = 8  # pictures that may be missing at the end before the file counts as broken


class Shot(NamedTuple):
    """A decoded picture: the timestamp asked for, the picture, and its pixels' width over height."""

    pts: int
    frame: VideoFrame
    aspect: Fraction


def decode_at(path: Path, index: FrameIndex, wanted: Sequence[int]) -> Iterator[Shot]:
    """The pictures with these timestamps in ascending order, each decoded once.

    `wanted` is ascending and without duplicates, from `index.at`. Where a stream announces a picture
    that it never shows, the last one shown before it is given. Raises `InputError` where the file can't
    be decoded.
    """
    if not wanted:
        return
    with open_video(path) as (container, stream):
        aspect = pixel_aspect(stream)
        stream.thread_type = "AUTO"
        if not index.stamped:
            for pts, frame in _counting(container, stream, index, wanted):
                yield Shot(pts, frame, aspect)
            return
        at_start = True
        for stretch in _stretches(index, wanted):
            key = index.key_before(stretch[0])
            packets = _packets(container, stream, index, key, at_start=at_start)
            for pts, frame in _pick(_pictures(packets, key), stretch, path, index):
                yield Shot(pts, frame, aspect)
            at_start = False


def _stretches(index: FrameIndex, wanted: Sequence[int]) -> list[list[int]]:
    """Cuts the wanted timestamps where so much lies between two that seeking is faster."""
    stretches = [[wanted[0]]]
    for pts in wanted[1:]:
        if index.between(stretches[-1][-1], index.key_before(pts)) > _WORTH_A_SEEK:
            stretches.append([pts])
        else:
            stretches[-1].append(pts)
    return stretches


def _packets(
    container: InputContainer, stream: VideoStream, index: FrameIndex, key: int, *, at_start: bool
) -> Iterator[Packet[VideoStream]]:
    """Packets from this keyframe or an earlier one on. Containers seek by decoding time, so a seek may
    land one keyframe too late; then it is tried from further back."""
    first_key = int(index.keys[0])
    if at_start and key == first_key:
        yield from container.demux(stream)
        return
    aim, back = key, 1
    while aim > first_key:
        container.seek(aim, stream=stream)
        packets = container.demux(stream)
        first = next(packets, None)
        if first is not None and first.pts is not None and first.pts <= key:
            yield first
            yield from packets
            return
        place = int(index.keys.searchsorted(key)) - back
        aim, back = int(index.keys[max(place, 0)]), back * 2
    container.seek(min(first_key, int(index.pts[0])), stream=stream)
    yield from container.demux(stream)


def _pictures(packets: Iterator[Packet[VideoStream]], key: int) -> Iterator[VideoFrame]:
    """Decodes, without the pictures before the keyframe, which may refer to others that were not read."""
    import av

    shown = False
    for packet in packets:
        try:
            frames = packet.decode()
        except av.error.InvalidDataError:
            if shown:
                raise
            continue  # a recording may start in the middle of a group: nothing to show until a keyframe
        for frame in frames:
            if frame.pts is not None and frame.pts >= key:
                shown = True
                yield frame


def _pick(
    pictures: Iterator[VideoFrame], wanted: Sequence[int], path: Path, index: FrameIndex
) -> Iterator[tuple[int, VideoFrame]]:
    """Of all pictures in order, for each wanted timestamp the last one at or before it."""
    waiting = list(reversed(wanted))
    last: VideoFrame | None = None
    for picture in pictures:
        pts = picture.pts or 0
        while waiting and waiting[-1] < pts:
            yield waiting.pop(), last or picture
        if waiting and waiting[-1] == pts:
            yield waiting.pop(), picture
        if not waiting:
            return
        last = picture
    if last is None or index.between(last.pts or 0, waiting[-1]) > _LOST:
        raise InputError(
            path, f"at {index.seconds(waiting[-1]):.3f} s", found="no picture that can be decoded"
        )
    for pts in reversed(waiting):
        yield pts, last


def _counting(
    container: InputContainer, stream: VideoStream, index: FrameIndex, wanted: Sequence[int]
) -> Iterator[tuple[int, VideoFrame]]:
    """Without usable timestamps: by the picture's number from the start."""
    numbers = {int(index.pts.searchsorted(pts)): pts for pts in wanted}
    for number, picture in enumerate(container.decode(stream)):
        if number in numbers:
            yield numbers.pop(number), picture
        if not numbers:
            return

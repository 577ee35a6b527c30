"""Decoding exactly the pictures that are wanted: in one pass where they lie close, by seeking where not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from proctor.core import InputError
from proctor.media.index import FrameIndex
from proctor.media.video import open_video, pixel_aspect, seek

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = ["Shot", "Source", "decode_at"]

_WORTH_A_SEEK = 12  # pictures to skip; below that, decoding on is as fast as starting anew
_INDEXED = ("mov,mp4", "matroska,webm")
_LOST = 8  # pictures that may be missing at the end before the file counts as broken


class Shot(NamedTuple):
    """A decoded picture: the timestamp asked for, the picture, and its pixels' width over height."""

    pts: int
    frame: VideoFrame
    aspect: Fraction


def decode_at(source: Source, index: FrameIndex, wanted: Sequence[int]) -> Iterator[Shot]:
    """The pictures with these timestamps in ascending order, each decoded once.

    `wanted` is ascending and without duplicates, from `index.at`. Where a stream announces a picture
    that it never shows, the last one shown before it is given. Raises `InputError` where the file can't
    be decoded.
    """
    if not wanted:
        return
    for stretch in _stretches(index, wanted):
        if not index.stamped:
            packets = source.packets_from(index.key_before(stretch[0]), index)
            yield from source.shots(_pick(_counted(packets, index), stretch, source.path, index))
            continue
        done = 0
        with suppress(_NeverShownError):
            for shot in source.stretch(stretch, index, sparing=True):
                done += 1
                yield shot
        if done < len(stretch):
            yield from source.stretch(stretch[done:], index, sparing=False)


class _NeverShownError(Exception):
    """A wanted picture did not come while unneeded ones were skipped: it may never be shown at all."""


class Source:
    """An open file, positioned anew for each stretch; `threads` says whether its decoder has several. For one
    thread at a time. Raises `InputError` as `open_video`."""

    def __init__(self, path: Path, *, threads: bool = True) -> None:
        self.path = path
        self.threads = threads
        self._stack = ExitStack()
        self._fresh = True
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._stack.close()

    @property
    def seeks_well(self) -> bool:
        """Whether the file tells where its keyframes are, so that going to one is not a search."""
        return self._container.format.name.startswith(_INDEXED)

    def stretch(self, wanted: Sequence[int], index: FrameIndex, *, sparing: bool) -> Iterator[Shot]:
        """Decodes from the keyframe before the first wanted picture to the last wanted one. `sparing` skips
        pictures that are neither wanted nor needed for others, and gives up where one is not shown."""
        key = index.key_before(wanted[0])
        packets = self.packets_from(key, index)
        if sparing:
            packets = _sparing(packets, self._stream, frozenset(wanted))
        pictures = _pictures(packets, key)
        try:
            yield from self.shots(_pick(pictures, wanted, self.path, index, exact=sparing))
        finally:
            self._stream.codec_context.skip_frame = "DEFAULT"

    def shots(self, picked: Iterator[tuple[int, VideoFrame]]) -> Iterator[Shot]:
        aspect = pixel_aspect(self._stream)
        for pts, frame in picked:
            yield Shot(pts, frame, aspect)

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """All packets from the start."""
        if not self._fresh:
            self._stack.close()
            self._open()
        self._fresh = False
        return self._container.demux(self._stream)

    def packets_from(self, key: int, index: FrameIndex) -> Iterator[Packet[VideoStream]]:
        """Packets from this keyframe or an earlier one on. Containers seek by decoding time, so a seek may
        land a keyframe too late; then it is tried from further back, and at last from the start."""
        aim, back = key, 1
        while aim > index.keys[0] and self._seek(aim):
            packets = self._container.demux(self._stream)
            first = next(packets, None)
            stamp = None if first is None else (first.pts if index.stamped else first.dts)
            if first is not None and stamp is not None and stamp <= key:
                return chain([first], packets)
            place = int(index.keys.searchsorted(key)) - back
            aim, back = int(index.keys[max(place, 0)]), back * 2
        return self.packets()

    def _open(self) -> None:
        self._container, self._stream = self._stack.enter_context(open_video(self.path))
        self._stream.thread_type = "AUTO" if self.threads else "NONE"
        self._fresh = True

    def _seek(self, pts: int) -> bool:
        self._fresh = False
        return seek(self._container, pts, self._stream)


def _stretches(index: FrameIndex, wanted: Sequence[int]) -> list[list[int]]:
    """Cuts the wanted timestamps where so much lies between two that seeking is faster."""
    stretches = [[wanted[0]]]
    for pts in wanted[1:]:
        if index.between(stretches[-1][-1], index.key_before(pts)) > _WORTH_A_SEEK:
            stretches.append([pts])
        else:
            stretches[-1].append(pts)
    return stretches


def _sparing(
    packets: Iterator[Packet[VideoStream]], stream: VideoStream, wanted: frozenset[int]
) -> Iterator[Packet[VideoStream]]:
    """The packets, while the decoder is told before each whether it may skip it if no other needs it."""
    for packet in packets:
        may_skip = packet.pts is not None and packet.pts not in wanted
        stream.codec_context.skip_frame = "NONREF" if may_skip else "DEFAULT"
        yield packet


def _pictures(packets: Iterator[Packet[VideoStream]], key: int) -> Iterator[tuple[int, VideoFrame]]:
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
                yield frame.pts, frame


def _counted(packets: Iterator[Packet[VideoStream]], index: FrameIndex) -> Iterator[tuple[int, VideoFrame]]:
    """Decodes, and gives the pictures their timestamps by counting from the first packet."""
    first = next(packets, None)
    if first is None:
        return
    begins_at = first.dts if len(index.keys) > 1 and first.dts is not None else int(index.pts[0])
    number = int(index.pts.searchsorted(begins_at))
    for packet in chain([first], packets):
        for picture in packet.decode():
            if number < len(index.pts):
                yield int(index.pts[number]), picture
            number += 1


def _pick(
    pictures: Iterator[tuple[int, VideoFrame]],
    wanted: Sequence[int],
    path: Path,
    index: FrameIndex,
    *,
    exact: bool = False,
) -> Iterator[tuple[int, VideoFrame]]:
    """Of all pictures in order, for each wanted timestamp the last one at or before it."""
    waiting = list(reversed(wanted))
    last: VideoFrame | None = None
    reached = -1
    for pts, picture in pictures:
        while waiting and waiting[-1] < pts:
            if exact:
                raise _NeverShownError
            yield waiting.pop(), last or picture
        if waiting and waiting[-1] == pts:
            yield waiting.pop(), picture
        if not waiting:
            return
        last, reached = picture, pts
    if exact:
        raise _NeverShownError
    if last is None or index.between(reached, waiting[-1]) > _LOST:
        raise InputError(
            path, f"at {index.seconds(waiting[-1]):.3f} s", found="no picture that can be decoded"
        )
    for pts in reversed(waiting):
        yield pts, last

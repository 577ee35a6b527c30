"""Decoding exactly the wanted pictures: in one pass where they lie close together, by seeking otherwise."""

from __future__ import annotations

import gc
import os
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from functools import lru_cache
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, cast
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, Region
from proctor.media.container import (
    Display,
    alpha_decoder,
    cropping_of,
    display_of,
    open_video,
    pixel_aspect,
    reason_of,
    seek,
)
from proctor.media.frame_archive import EncodedFrame, Key
from proctor.media.pictures import Finish, FrameEncoder, upright
from proctor.media.pyav import exact
from proctor.media.sampling import MediaSettings
from proctor.media.video import check_size, read_container
from proctor.media.video_clock import FrameIndex, read_index

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_WORTH_A_SEEK = 12  # pictures to skip; for fewer, decoding on is as fast as seeking
_INDEXED = ("mov,mp4", "matroska,webm")
_LOST = 8  # pictures in a row that may be announced and not shown before the file counts as broken


class Shot(NamedTuple):
    """A decoded picture: the requested timestamp, the picture, and how it is displayed."""

    pts: int
    frame: VideoFrame
    display: Display


def decode_at(source: VideoSource, index: FrameIndex, wanted: Sequence[int]) -> Iterator[Shot]:
    """The pictures with these timestamps in ascending order, each decoded once.

    `wanted` is ascending and without duplicates, from `index.at`. Instead of a picture that the stream announces and
    never shows, the last one shown before it is given, for at most eight in a row. Which picture is given does not
    depend on what else is wanted. Raises `InputError` with the time of the first picture that can't be decoded, or whose
    position among the others its timestamp does not tell.
    """
    import av

    if not wanted:
        return
    given = 0
    try:
        for stretch in _stretches(index, wanted) if source.repeats else [wanted]:
            for shot in _shots(source, index, stretch):
                given += 1
                yield shot
    except av.FFmpegError as error:
        location = f"at {index.seconds(wanted[given]):.3f} s"
        raise InputError(source.path, location, found=f"a damaged video ({reason_of(error)})") from error


def _shots(source: VideoSource, index: FrameIndex, stretch: Sequence[int]) -> Iterator[Shot]:
    if not index.stamped:
        yield from source.shots(_pick(source.counted(stretch[0], index), stretch, source.path, index))
        return
    done = 0
    with suppress(_NeverShownError):
        for shot in source.stretch(stretch, index, sparing=True):
            done += 1
            yield shot
    if done < len(stretch):
        yield from source.stretch(stretch[done:], index, sparing=False)


class _NeverShownError(Exception):
    """A wanted picture did not come while unneeded ones were skipped: it may never be shown at all."""


class VideoSource:
    """An open video file, repositioned for each stretch. `threads`: whether the decoder uses several threads itself.
    Not for several threads at once. Raises `InputError` as `open_video`."""

    def __init__(self, path: Path, *, threads: bool = True) -> None:
        self.path = path
        self.threads = threads
        self._stack = ExitStack()
        self._fresh = True
        self._open()
        _OPEN.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._stack.close()

    @property
    def seeks_well(self) -> bool:
        """Whether the file has an index of its keyframes, so that seeking is no search."""
        return self._container.format.name.startswith(_INDEXED)

    @property
    def repeats(self) -> bool:
        """Whether packets have the same timestamps after a seek as when read from the start. In MPEG program streams few
        packets have a timestamp, so these are read from the start."""
        return self._container.format.name != "mpeg"

    def stretch(self, wanted: Sequence[int], index: FrameIndex, *, sparing: bool) -> Iterator[Shot]:
        """Decodes from the keyframe before the first wanted picture to the last wanted one. `sparing` skips pictures
        that are neither wanted nor needed for others, and raises `_NeverShownError` where a wanted one is not shown."""
        key = index.key_before(wanted[0])
        if not sparing:
            pictures = _proved(self._pictures_up_to(wanted[0], index), self.path, index)
        else:
            packets = _sparing(self.packets_from(key, index), self._codec, frozenset(wanted))
            pictures = self._pictures(packets, key, index)
        try:
            yield from self.shots(_pick(pictures, wanted, self.path, index, exact=sparing))
        finally:
            self._codec.skip_frame = "DEFAULT"

    def _pictures_up_to(self, pts: int, index: FrameIndex) -> Iterator[tuple[int, VideoFrame]]:
        """Pictures from one at or before this timestamp on, or from the file's first one. After a keyframe that is not
        a whole picture (intra refresh), a decoder shows nothing until it has one; then decoding starts further back."""
        position = int(index.keys.searchsorted(pts, side="right")) - 1
        back = 1
        while True:
            key = int(index.keys[max(position, 0)])
            pictures = self._pictures(self.packets_from(key, index), key, index)
            first = next(pictures, None)
            if position <= 0 or (first is not None and first[0] <= pts):
                return pictures if first is None else chain([first], pictures)
            position, back = position - back, back * 2

    def counted(self, pts: int, index: FrameIndex) -> Iterator[tuple[int, VideoFrame]]:
        """The same where pictures are counted: from the file's first one if the keyframe before is not a whole picture."""
        from av.video.frame import PictureType

        pictures = self._counted(self.packets_from(index.key_before(pts), index), index)
        first = next(pictures, None)
        if first is None or first[1].pict_type not in {PictureType.I, PictureType.NONE}:
            return self._counted(self.packets(), index)
        return chain([first], pictures)

    def shots(self, picked: Iterator[tuple[int, VideoFrame]]) -> Iterator[Shot]:
        """The pictures as they are displayed. Raises `InputError` where the shape of pixels changes within the file: what
        was shown as a circle would be an ellipse."""
        for pts, frame in picked:
            stated = exact(self._codec.sample_aspect_ratio, self._shape)
            if stated != self._shape:
                found = f"pixels whose shape changes from {_ratio(self._shape)} to {_ratio(stated)}"
                raise InputError(self.path, found=found, expected="one shape: encode it as one video")
            display = display_of(frame, self._cropping, self._aspect)
            yield Shot(pts, frame, display if self._turn is None else display._replace(turn=self._turn))

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """All packets from the start."""
        if not self._fresh:
            self._stack.close()
            self._open()
        self._fresh = False
        return self._container.demux(self._stream)

    def packets_from(self, key: int, index: FrameIndex) -> Iterator[Packet[VideoStream]]:
        """Packets from this keyframe or an earlier one on. Containers seek by decoding time or between keyframes, so a
        seek may land too late; then it is repeated from further back, and finally from the start."""
        if not self.repeats and key > index.keys[0]:
            return dropwhile(lambda one: not (one.is_keyframe and one.pts == key), self.packets())
        aim, back = key, 1
        while aim > index.keys[0] and self._seek(aim):
            packets = self._container.demux(self._stream)
            first = next((packet for packet in packets if packet.is_keyframe), None)
            stamp = None if first is None else (first.pts if index.stamped else first.dts)
            if first is not None and stamp is not None and stamp <= key and index.begins_at(stamp):
                return chain([first], packets)
            location = int(index.keys.searchsorted(key)) - back
            aim, back = int(index.keys[max(location, 0)]), back * 2
        return self.packets()

    def _open(self) -> None:
        self._container, self._stream = self._stack.enter_context(open_video(self.path))
        self._cropping = cropping_of(self._container, self._stream, self.path)
        self._aspect, self._turn = pixel_aspect(self._stream), None
        self._codec = self._stream.codec_context
        self._shape = exact(self._codec.sample_aspect_ratio, Fraction(1))
        if alpha_decoder(self._stream):
            self._codec, self._turn = _with_alpha(self._stream), read_container(self.path).display.turn
        self._codec.thread_type = "AUTO" if self.threads else "NONE"
        self._fresh = True

    def _seek(self, pts: int) -> bool:
        self._fresh = False
        if self._codec is not self._stream.codec_context and self._codec.is_open:
            self._codec.flush_buffers()
        return seek(self._container, pts, self._stream)

    def _decode(self, packet: Packet[VideoStream]) -> list[VideoFrame]:
        if self._codec is self._stream.codec_context:
            return packet.decode()
        return self._codec.decode(packet if packet.size else None)

    def _pictures(
        self, packets: Iterator[Packet[VideoStream]], key: int, index: FrameIndex
    ) -> Iterator[tuple[int, VideoFrame]]:
        """Decodes, without pictures before the keyframe, which may refer to others that were not read."""
        import av

        from_start, shown = key <= int(index.keys[0]), False
        for packet in packets:
            try:
                frames = self._decode(packet)
            except av.error.InvalidDataError:
                if shown or not from_start:
                    raise
                continue  # a recording may start in the middle of a group: nothing to show until a keyframe
            for frame in frames:
                if frame.pts is not None and frame.pts >= key:
                    shown = True
                    yield frame.pts, frame

    def _counted(self, packets: Iterator[Packet[VideoStream]], index: FrameIndex) -> Iterator[tuple[int, VideoFrame]]:
        """Decodes, and assigns timestamps by counting from the first packet."""
        first = next(packets, None)
        if first is None:
            return
        begins_at = first.dts if len(index.keys) > 1 and first.dts is not None else int(index.pts[0])
        number = int(index.pts.searchsorted(begins_at))
        for packet in chain([first], packets):
            for picture in self._decode(packet):
                if number < len(index.pts):
                    yield int(index.pts[number]), picture
                number += 1


def _with_alpha(stream: VideoStream) -> VideoCodecContext:
    """A decoder that gives transparency, too."""
    from av import CodecContext

    codec = cast("VideoCodecContext", CodecContext.create(alpha_decoder(stream), "r"))
    codec.extradata = stream.codec_context.extradata
    return codec


def _ratio(shape: Fraction) -> str:
    return f"{shape.numerator}:{shape.denominator}"


def _stretches(index: FrameIndex, wanted: Sequence[int]) -> list[list[int]]:
    """Splits the wanted timestamps where seeking is faster than decoding what lies between two."""
    stretches = [[wanted[0]]]
    for pts in wanted[1:]:
        if index.between(stretches[-1][-1], index.key_before(pts)) > _WORTH_A_SEEK:
            stretches.append([pts])
        else:
            stretches[-1].append(pts)
    return stretches


def _sparing(
    packets: Iterator[Packet[VideoStream]], codec: VideoCodecContext, wanted: frozenset[int]
) -> Iterator[Packet[VideoStream]]:
    """The packets; before each, the decoder is set to skip it if it is neither wanted nor a reference for others."""
    for packet in packets:
        may_skip = packet.pts is not None and packet.pts not in wanted
        codec.skip_frame = "NONREF" if may_skip else "DEFAULT"
        yield packet


def _proved(
    pictures: Iterator[tuple[int, VideoFrame]], path: Path, index: FrameIndex
) -> Iterator[tuple[int, VideoFrame]]:
    """The pictures; where announced ones are left out, only after the next eight show that these do not come later.
    Raises `InputError` where they do: a timestamp is wrong, and nobody can say whose."""
    ahead: deque[tuple[int, VideoFrame]] = deque()
    reached: int | None = None
    while True:
        ahead.extend(islice(pictures, 0 if ahead else 1))
        if not ahead:
            return
        pts, picture = ahead.popleft()
        if reached is None or index.between(reached, pts) > 1:
            ahead.extend(islice(pictures, _LOST - len(ahead)))
            back = next((later for later, _ in ahead if later < pts), None)
            if back is not None:
                found = f"a timestamp that goes back to {index.seconds(back):.3f} s"
                expected = "pictures in the order of their times"
                raise InputError(path, f"after {index.seconds(pts):.3f} s", found=found, expected=expected)
        yield pts, picture
        reached = pts if reached is None else max(reached, pts)


def _pick(
    pictures: Iterator[tuple[int, VideoFrame]],
    wanted: Sequence[int],
    path: Path,
    index: FrameIndex,
    *,
    exact: bool = False,
) -> Iterator[tuple[int, VideoFrame]]:
    """For each wanted timestamp the picture that has it; without `exact`, for one that is never shown, the last before
    it."""
    waiting = deque(wanted)
    last: tuple[int, VideoFrame] | None = None
    for shown in pictures:
        missing = [waiting.popleft() for _ in range(bisect_left(waiting, shown[0]))]
        if missing and exact:
            raise _NeverShownError
        yield from _filled(missing, last, shown, path, index)
        if waiting and waiting[0] == shown[0]:
            yield waiting.popleft(), shown[1]
        if not waiting:
            return
        last = shown if last is None or shown[0] >= last[0] else last
    if exact:
        raise _NeverShownError
    yield from _filled(waiting, last, None, path, index)


def _filled(
    missing: Collection[int],
    last: tuple[int, VideoFrame] | None,
    following: tuple[int, VideoFrame] | None,
    path: Path,
    index: FrameIndex,
) -> Iterator[tuple[int, VideoFrame]]:
    """For timestamps that are never shown the last picture before them, or the first of all. Raises `InputError` for one
    of more than eight in a row."""
    for pts in missing:
        after = int(index.pts[-1]) + 1 if following is None else following[0]
        in_a_row = index.between(pts, after) if last is None else index.between(last[0], after) - 1
        shown = last or following
        if shown is None or in_a_row > _LOST:
            location = f"at {index.seconds(pts):.3f} s"
            raise InputError(path, location, found="no picture that can be decoded")
        yield pts, shown[1]


_OPEN: WeakSet[VideoSource] = WeakSet()
_OF_PARENT: list[VideoSource] = []


def _keep_what_has_no_threads() -> None:
    """In a fork, keeps the parent's decoders from being used, closed or collected: FFmpeg waits for a decoder's threads
    before it frees it, and those threads exist in the parent only."""
    gc.freeze()
    _OF_PARENT.extend(_OPEN)


os.register_at_fork(after_in_child=_keep_what_has_no_threads)

_MAX_CORES = 8
_LOT = 32  # pictures of one part, if keyframes allow: all of a part are in memory
_LARGEST_LOT = 256
Finishes = Mapping[int, Mapping[Key, Finish]]
"""By timestamp the keys of the pictures to make, each with what is painted on it."""
Encode = Callable[[VideoSource, Sequence[int]], Iterator[EncodedFrame]]


class Decoding:
    """The decoders of one library: at most one for each core (8 in all) at work, and as many files kept open, since
    opening a file costs as much as decoding a second of it."""

    def __init__(self, cores: int | None = None) -> None:
        self.cores = cores or min(_MAX_CORES, os.cpu_count() or 1)
        self._turn = threading.BoundedSemaphore(self.cores)
        self._guard = threading.Lock()
        self._idle: deque[VideoSource] = deque()
        self._process = os.getpid()

    def pictures(
        self, path: Path, index: FrameIndex, finishes: Finishes, region: Region | None, settings: MediaSettings
    ) -> Iterator[EncodedFrame]:
        """The JPEGs at these timestamps, ascending. A caller that stops early ends the work after the current part.
        Raises `InputError` where the file can't be decoded."""

        def encoded(source: VideoSource, some: Sequence[int]) -> Iterator[EncodedFrame]:
            encoder = FrameEncoder(region, settings)
            for pts, frame, display in decode_at(source, index, some):
                for key, finish in finishes[pts].items():
                    yield EncodedFrame(key, index.seconds(pts), encoder.jpeg(frame, display, finish))

        wanted = sorted(finishes)
        lots = _lots(index, wanted, -(-len(wanted) // (2 * self.cores)))
        if self._worth_parting(path, index, lots):
            yield from self._in_parts(path, lots, encoded)
            return
        with self._turn, self._lent(path, threads=True) as source:
            yield from encoded(source, wanted)

    def _worth_parting(self, path: Path, index: FrameIndex, lots: Sequence[Sequence[int]]) -> bool:
        if self.cores < 2 or len(lots) < self.cores or not index.stamped:
            return False
        if max(map(len, lots)) > _LARGEST_LOT:
            return False
        with self._lent(path, threads=False) as source:
            return source.seeks_well

    def _in_parts(self, path: Path, lots: Sequence[Sequence[int]], encoded: Encode) -> Iterator[EncodedFrame]:
        def part(lot: Sequence[int]) -> list[EncodedFrame]:
            with self._turn, self._lent(path, threads=False) as source:
                return list(encoded(source, lot))

        pool = _threads(os.getpid())
        waiting = iter(lots)
        under_way = deque(pool.submit(part, lot) for lot in islice(waiting, self.cores + 1))
        try:
            while under_way:
                done = under_way.popleft().result()
                under_way.extend(pool.submit(part, lot) for lot in islice(waiting, 1))
                yield from done
        finally:
            for future in under_way:
                future.cancel()

    @contextmanager
    def _lent(self, path: Path, *, threads: bool) -> Iterator[VideoSource]:
        with self._guard:
            if self._process != os.getpid():  # see `_keep_what_has_no_threads`
                self._process, self._idle = os.getpid(), deque()
            fitting = [
                video_source
                for video_source in self._idle
                if (video_source.path, video_source.threads) == (path, threads)
            ]
            if fitting:
                self._idle.remove(fitting[0])
        source = fitting[0] if fitting else VideoSource(path, threads=threads)
        try:
            yield source
        except BaseException:
            source.close()
            raise
        with self._guard:
            self._idle.append(source)
            surplus = [self._idle.popleft() for _ in range(len(self._idle) - self.cores)]
        for video_source in surplus:
            video_source.close()


def _lots(index: FrameIndex, wanted: Sequence[int], size: int) -> list[list[int]]:
    """Cuts the wanted timestamps at keyframes into parts of about this size."""
    lots: list[list[int]] = []
    last_key = None
    for pts in wanted:
        key = index.key_before(pts)
        if not lots or (key != last_key and len(lots[-1]) >= min(size, _LOT)):
            lots.append([])
        lots[-1].append(pts)
        last_key = key
    return lots


@lru_cache(maxsize=1)
def _threads(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_CORES, thread_name_prefix="decode")


MAX_SAMPLES = 100_000  # 14 hours at two a second


class SampledPicture(NamedTuple):
    """One picture: its own time in seconds of the video's clock, and height × width × 3 bytes, RGB, upright."""

    time: float
    pixels: NDArray[np.uint8]


def sampled(
    path: Path, fps: float, max_side: int | None, *, index: FrameIndex | None = None, start: float = 0.0
) -> Iterator[SampledPicture]:
    """The pictures shown at `start` and every 1/fps seconds after it, as arrays; each once, with the time at which it
    begins.

    `max_side` bounds the longer side in pixels (None: unscaled). One picture is in memory at a time. Raises
    `InputError` where the file can't be decoded, or has more than 100,000 such moments.
    """
    check_size(path)
    index = index or read_index(path)
    last = index.seconds(int(index.pts[-1]))
    if (last - start) * fps >= MAX_SAMPLES:
        found = f"{last / 3600:.1f} hours at {fps:g} pictures a second"
        raise InputError(path, found=found, expected=f"at most {MAX_SAMPLES:,} pictures: a lower rate")
    moments = start + np.arange(int(max(0.0, last - start) * fps) + 1) / fps
    with VideoSource(path) as source:
        for pts, frame, display in decode_at(source, index, sorted(set(index.at(moments.tolist())))):
            yield SampledPicture(index.seconds(pts), np.asarray(upright(frame, display, None, max_side)))

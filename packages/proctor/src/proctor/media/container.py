"""Opening a video safely, and what its container says: which tracks are shown and heard, and how a decoded picture
becomes the displayed one.

All that decodes, copies or checks a video takes it from here, so that frames, clip files, copies and checks agree.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from proctor.core import InputError, count_of
from proctor.media.pyav import exact, open_input

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.format import VideoFormat
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_STILLS = ("_pipe", "image2", "gif", "apng", "webp")
_TRANSFERS = {16: "PQ", 18: "HLG"}  # ITU-T H.273, 8.2
_WITH_ALPHA = {"vp8": "libvpx", "vp9": "libvpx-vp9"}  # the decoder of each that does not leave transparency out
_MIRRORING = {"FLIP_LEFT_RIGHT", "FLIP_TOP_BOTTOM", "TRANSPOSE", "TRANSVERSE"}
_SIDEWAYS = {"ROTATE_90", "ROTATE_270", "TRANSPOSE", "TRANSVERSE"}


class Cropping(NamedTuple):
    """The lines and columns of a decoded picture that are not displayed."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


class Turn(NamedTuple):
    """How a picture is turned for display: `steps` are Pillow's names of transpositions, `degrees` a clockwise rotation
    within the picture's own frame, which is 0 for quarter turns."""

    steps: tuple[str, ...] = ()
    degrees: float = 0.0

    @property
    def sideways(self) -> bool:
        """Whether width and height are swapped."""
        return bool(_SIDEWAYS.intersection(self.steps))

    @property
    def mirrored(self) -> bool:
        """Whether left and right of the decoded picture are swapped without a rotation that explains it."""
        return len(_MIRRORING.intersection(self.steps)) == 1


class Display(NamedTuple):
    """How one decoded picture is displayed: cropped, then turned; `aspect` is width over height of a pixel as stored."""

    cropping: Cropping = Cropping()
    turn: Turn = Turn()
    aspect: Fraction = Fraction(1)

    @property
    def plain(self) -> bool:
        """Whether the decoded picture is displayed as it is."""
        return self == Display()

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height as displayed, with square pixels, of a decoded picture of this size."""
        width -= self.cropping.left + self.cropping.right
        height -= self.cropping.top + self.cropping.bottom
        one = Fraction(1)
        width, height = round(width * max(self.aspect, one)), round(height / min(self.aspect, one))
        return (height, width) if self.turn.sideways else (width, height)


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """What a video file says about its pictures and its sound.

    `shown_track` and `heard_track` count the video tracks (without cover pictures) and the audio tracks from 1;
    `heard_track` is 0 without sound. `display` is that of the first picture. `transfer` is "PQ" or "HLG" for high
    dynamic range, else "". `alpha`: parts of pictures may be transparent.
    """

    video_tracks: int
    shown_track: int
    audio_tracks: int
    heard_track: int
    display: Display
    transfer: str
    alpha: bool

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know who looks at the pictures, each to follow "with"."""
        told = []
        if self.video_tracks > 1:
            told.append(f"{self.video_tracks} video tracks, of which number {self.shown_track} is shown")
        if self.audio_tracks > 1:
            told.append(f"{self.audio_tracks} audio tracks, of which number {self.heard_track} is heard")
        if any(self.display.cropping):
            top, bottom, left, right = self.display.cropping
            lines, columns = count_of(top + bottom, "line"), count_of(left + right, "column")
            told.append(f"cropping by the container: {lines} and {columns} are not shown")
        if self.display.turn.degrees:
            told.append(f"a rotation by {self.display.turn.degrees:g}° within the picture, whose corners are cut off")
        if self.transfer:
            told.append(f"high dynamic range ({self.transfer}), shown without tone mapping")
        if self.alpha:
            told.append("transparent parts, which are shown on white")
        return tuple(told)


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


def seek(container: InputContainer, target: int, stream: VideoStream | AudioStream | None = None) -> bool:
    """Seeks to a position where decoding can begin, at or before the target (in the stream's ticks, or without a stream in
    microseconds). False where the file is not seekable; it must then be reopened."""
    import av

    try:
        container.seek(target, stream=stream)
    except av.FFmpegError:
        return False
    return True


def reason_of(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def video_track(container: InputContainer, path: Path) -> VideoStream:
    """The video track that is shown: of those flagged as default (or of all, where none is) the one with the largest
    pictures, then the first. Cover pictures are none.

    Raises `InputError` where there is none, for a still image, and where its codec is unknown."""
    from av.stream import Disposition

    streams = _tracks(container)
    if not streams:
        raise InputError(path, found="no video stream", expected="a video")
    if any(part in container.format.name for part in _STILLS):
        raise InputError(path, found="a still image", expected="a video")

    def rank(stream: VideoStream) -> tuple[bool, int]:
        known = getattr(stream, "codec_context", None) is not None
        return bool(stream.disposition & Disposition.default), stream.width * stream.height if known else 0

    best = max(streams, key=rank)  # the first of equals
    if getattr(best, "codec_context", None) is None:
        raise InputError(path, found="an unknown video codec")
    return best


def audio_track(container: InputContainer) -> AudioStream | None:
    """The audio track that is heard: of those that can be decoded and are flagged as default (or of all, where none is)
    the one with the most channels, then the first."""
    from av.stream import Disposition

    streams = [one for one in container.streams.audio if getattr(one, "codec_context", None) is not None]

    def rank(stream: AudioStream) -> tuple[bool, int]:
        return bool(stream.disposition & Disposition.default), stream.codec_context.channels

    return max(streams, key=rank, default=None)


def container_facts(container: InputContainer, stream: VideoStream, first: VideoFrame, path: Path) -> ContainerFacts:
    """The facts of an open file, given its first picture."""
    heard = audio_track(container)
    tracks = _tracks(container)
    return ContainerFacts(
        video_tracks=len(tracks),
        shown_track=tracks.index(stream) + 1,
        audio_tracks=len(container.streams.audio),
        heard_track=0 if heard is None else container.streams.audio.index(heard) + 1,
        display=display_of(first, cropping_of(container, stream, path), pixel_aspect(stream)),
        transfer=_TRANSFERS.get(int(first.color_trc), ""),
        alpha=has_alpha(first.format) or bool(alpha_decoder(stream)),
    )


def display_of(frame: VideoFrame, cropping: Cropping, aspect: Fraction) -> Display:
    """How this picture is displayed; its own display matrix counts, as in FFmpeg."""
    told: Any = frame.side_data.get("DISPLAYMATRIX")
    return Display(cropping, Turn() if told is None else turn_of(struct.unpack("=9i", bytes(told)[:36])), aspect)


def turn_of(matrix: tuple[int, ...]) -> Turn:
    """The turn of a display matrix (nine numbers, row by row, of which the first two of the first two rows count), as
    FFmpeg's `autorotate` applies it: quarter turns, with or without a mirror, or a rotation by whole degrees."""
    a, b, _, c, d = matrix[:5]
    wide, high = math.hypot(a, c), math.hypot(b, d)
    if not wide or not high:
        return Turn()
    degrees = _whole(math.degrees(math.atan2(b / high, a / wide))) % 360
    match degrees:
        case 0:
            return Turn(("FLIP_TOP_BOTTOM",) if d < 0 else ())
        case 90:
            return Turn(("TRANSPOSE",) if c > 0 else ("ROTATE_270",))
        case 180:
            flips = ("FLIP_LEFT_RIGHT",) if a < 0 else ()
            return Turn((*flips, "FLIP_TOP_BOTTOM") if d < 0 else flips)
        case 270:
            return Turn(("TRANSVERSE",) if c < 0 else ("ROTATE_90",))
    return Turn((), float(degrees))


def _whole(degrees: float) -> int:
    """To the nearest whole number, halves away from 0, as C rounds."""
    return int(math.copysign(math.floor(abs(degrees) + 0.5), degrees))


def pixel_aspect(stream: VideoStream) -> Fraction:
    """Width over height of one pixel; 1 where the file does not state it."""
    return exact(stream.sample_aspect_ratio, Fraction(1))


def has_alpha(form: VideoFormat) -> bool:
    """Whether pictures of this pixel format may be transparent."""
    return any(component.is_alpha for component in form.components)


def alpha_decoder(stream: VideoStream) -> str:
    """The decoder that this track needs for its transparency, which VP8 and VP9 keep beside the pictures and FFmpeg's own
    decoders leave out; "" for other tracks."""
    told = stream.metadata.get("alpha_mode") == "1"
    return _WITH_ALPHA.get(stream.codec_context.codec.canonical_name, "") if told else ""


def cropping_of(container: InputContainer, stream: VideoStream, path: Path) -> Cropping:
    """What the container hides of the track's pictures: Matroska's PixelCrop elements, or `clap` of an MP4. (Cropping
    inside the stream is the decoder's work.) The library does not tell it, so the file's header is read."""
    kind = container.format.name
    try:
        with path.open("rb") as file:
            if kind.startswith("matroska"):
                found = _matroska_cropping(file, _tracks(container).index(stream))
            elif kind.startswith("mov"):
                found = _mp4_cropping(file, stream)
            else:
                return Cropping()
    except OSError as error:
        raise InputError(path, found=f"an unreadable video ({error.strerror or error})") from error
    inside = found.left + found.right < stream.width and found.top + found.bottom < stream.height
    return found if inside and min(found) >= 0 else Cropping()


def _tracks(container: InputContainer) -> list[VideoStream]:
    from av.stream import Disposition

    return [stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic]


_SEGMENT, _TRACKS, _ENTRY, _TYPE, _VIDEO = 0x18538067, 0x1654AE6B, 0xAE, 0x83, 0xE0  # RFC 9559, 5.1
_PIXEL_CROP = {"top": 0x54BB, "bottom": 0x54AA, "left": 0x54CC, "right": 0x54DD}


class _Part(NamedTuple):
    """An element of Matroska or a box of an MP4: its name, and where its content begins and ends."""

    name: int
    start: int
    end: int


def _matroska_cropping(file: BinaryIO, number: int) -> Cropping:
    """The cropping of the video track with this number, from 0."""
    segment = _child(_elements(file, 0, _size_of(file)), _SEGMENT)
    tracks = None if segment is None else _child(_elements(file, segment.start, segment.end), _TRACKS)
    for entry in () if tracks is None else _elements(file, tracks.start, tracks.end):
        parts = {part.name: part for part in _elements(file, entry.start, entry.end)} if entry.name == _ENTRY else {}
        if _TYPE not in parts or _number(file, parts[_TYPE]) != 1:
            continue
        if number == 0:
            video = parts.get(_VIDEO)
            told = {part.name: part for part in _elements(file, video.start, video.end)} if video else {}
            return Cropping(**{side: _number(file, told[name]) for side, name in _PIXEL_CROP.items() if name in told})
        number -= 1
    return Cropping()


def _elements(file: BinaryIO, start: int, end: int) -> Iterator[_Part]:
    """The elements from one position to another (RFC 8794): a name and a length of variable size, then the content."""
    while start < end:
        file.seek(start)
        head = file.read(12)
        name_size = 9 - head[0].bit_length() if head else 0
        if not 1 <= name_size <= 4 or len(head) <= name_size or not head[name_size]:
            return
        size = 9 - head[name_size].bit_length()
        stated = int.from_bytes(head[name_size : name_size + size]) & ((1 << 7 * size) - 1)
        begins = start + name_size + size
        unknown = stated == (1 << 7 * size) - 1
        part = _Part(int.from_bytes(head[:name_size]), begins, end if unknown else min(end, begins + stated))
        yield part
        start = part.end


def _number(file: BinaryIO, part: _Part) -> int:
    file.seek(part.start)
    size = max(0, part.end - part.start)  # a damaged element may end before it begins
    return int.from_bytes(file.read(min(8, size)))


def _child(parts: Iterator[_Part], name: int) -> _Part | None:
    return next((part for part in parts if part.name == name), None)


def _size_of(file: BinaryIO) -> int:
    return file.seek(0, 2)


_ENTRY_BYTES = 78  # of a visual sample entry before the boxes in it (ISO/IEC 14496-12, 12.1.3)
_TO_ENTRIES = (b"mdia", b"minf", b"stbl", b"stsd")


def _mp4_cropping(file: BinaryIO, stream: VideoStream) -> Cropping:
    """By the clean aperture of the track's first sample entry (ISO/IEC 14496-12, 12.1.4): its size, and how far its
    centre is from the picture's, in fractions of pixels."""
    movie = _child(_boxes(file, 0, _size_of(file)), _box(b"moov"))
    for track in () if movie is None else _boxes(file, movie.start, movie.end):
        if track.name != _box(b"trak") or _track_id(file, track) != stream.id:
            continue
        inner: _Part | None = track
        for name in _TO_ENTRIES:
            inner = None if inner is None else _child(_boxes(file, inner.start, inner.end), _box(name))
        entry = None if inner is None else next(_boxes(file, inner.start + 8, inner.end), None)
        clean = None if entry is None else _child(_boxes(file, entry.start + _ENTRY_BYTES, entry.end), _box(b"clap"))
        return Cropping() if clean is None else _clean_aperture(_bytes(file, clean, 32), stream.width, stream.height)
    return Cropping()


def _clean_aperture(told: bytes, width: int, height: int) -> Cropping:
    if len(told) < 32:
        return Cropping()
    numbers = struct.unpack(">IIIIiIiI", told)
    if not all(numbers[1::2]):
        return Cropping()
    wide, high, across, down = (Fraction(numbers[k], numbers[k + 1]) for k in (0, 2, 4, 6))
    left, top = (width - wide) / 2 + across, (height - high) / 2 + down
    right, bottom = width - left - wide, height - top - high
    return Cropping(*(math.floor(side) for side in (top, bottom, left, right)))


def _boxes(file: BinaryIO, start: int, end: int) -> Iterator[_Part]:
    """The boxes from one position to another (ISO/IEC 14496-12, 4.2): a length and a name, then the content."""
    while start + 8 <= end:
        file.seek(start)
        head = file.read(16)
        if len(head) < 8:
            return
        size, begins = int.from_bytes(head[:4]), start + 8
        if size == 1:
            size, begins = int.from_bytes(head[8:]), start + 16
        stop = end if size == 0 else start + size
        if not begins <= stop <= end:
            return
        yield _Part(int.from_bytes(head[4:8]), begins, stop)
        start = stop


def _track_id(file: BinaryIO, track: _Part) -> int | None:
    header = _child(_boxes(file, track.start, track.end), _box(b"tkhd"))
    told = b"" if header is None else _bytes(file, header, 24)
    if len(told) < 24:
        return None
    return int.from_bytes(told[20:24] if told[0] == 1 else told[12:16])


def _bytes(file: BinaryIO, part: _Part, most: int) -> bytes:
    file.seek(part.start)
    return file.read(min(most, part.end - part.start))


def _box(name: bytes) -> int:
    return int.from_bytes(name)

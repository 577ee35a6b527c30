"""Small videos with something to say in their container: a display matrix, cropping, several tracks, transparency."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
WIDTH, HEIGHT = 64, 48
ORIENTATIONS = {
    "as it is": (1, 0, 0, 1),
    "mirrored": (-1, 0, 0, 1),
    "flipped": (1, 0, 0, -1),
    "turned by 180": (-1, 0, 0, -1),
    "turned clockwise": (0, 1, -1, 0),
    "turned counterclockwise": (0, -1, 1, 0),
    "transposed": (0, 1, 1, 0),
    "transposed the other way": (0, -1, -1, 0),
}
"""The eight orientations, as the upper left of their matrix: (x, y) is shown at (a x + c y, b x + d y) for a, b, c, d."""


def matrix(a: float, b: float, c: float, d: float) -> list[int]:
    """A display matrix with these numbers in its upper left."""
    one = 1 << 16
    return [round(a * one), round(b * one), 0, round(c * one), round(d * one), 0, 0, 0, 1 << 30]


def rotated(degrees: float, *, mirrored: bool = False) -> list[int]:
    """The matrix of a clockwise rotation, after a mirror if told."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    side = -1 if mirrored else 1
    return matrix(side * cosine, side * sine, -sine, cosine)


def scene(number: int = 0, width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    """Smooth, and different in every corner: red, green, blue and white ones on grey; brighter with each picture."""
    y, x = np.mgrid[0:height, 0:width] / np.array([height - 1, width - 1])[:, None, None]
    corners = ((0, 0, (200, 30, 30)), (0, 1, (30, 200, 30)), (1, 0, (30, 30, 200)), (1, 1, (220, 220, 220)))
    total = np.full((height, width, 3), 60.0 + number)
    for down, across, colour in corners:
        near = np.clip(1 - 2.2 * np.hypot(y - down, x - across), 0, 1)[..., None]
        total = total * (1 - near) + np.array(colour) * near
    return total.round().astype(np.uint8)


@dataclass(frozen=True)
class Track:
    """One video track of `pictures` frames, 25 a second."""

    pictures: Sequence[Pixels] = field(default_factory=lambda: [scene(number) for number in range(5)])
    codec: str = "libx264"
    planes: str = "yuv444p"
    matrix: Sequence[int] | None = None
    default: bool = True
    options: Mapping[str, str] = field(default_factory=dict)


_FINE = {
    "libx264": {"crf": "4", "preset": "ultrafast"},
    "libvpx-vp9": {"lossless": "1", "cpu-used": "8"},
    "libvpx": {"auto-alt-ref": "0", "b": "2M"},
}


def write_tracks(path: Path, *tracks: Track) -> Path:
    """A video with these tracks; the container follows from the file's extension."""
    from av.stream import Disposition

    with av.open(str(path), "w") as out:
        streams = []
        for track in tracks:
            stream = out.add_stream(track.codec, rate=25, options={**_FINE.get(track.codec, {}), **track.options})
            assert isinstance(stream, av.VideoStream)
            stream.height, stream.width = track.pictures[0].shape[:2]
            stream.pix_fmt = track.planes
            stream.disposition = Disposition.default if track.default else Disposition(0)
            if track.matrix is not None:
                stream.set_display_matrix(track.matrix)
            streams.append(stream)
        for stream, track in zip(streams, tracks, strict=True):
            for number, pixels in enumerate(track.pictures):
                form = "rgba" if pixels.shape[2] == 4 else "rgb24"
                frame = av.VideoFrame.from_ndarray(pixels, format=form).reformat(format=track.planes)
                frame.pts, frame.time_base = number, Fraction(1, 25)
                out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
    return path


def with_cropping(path: Path, top: int = 0, bottom: int = 0, left: int = 0, right: int = 0) -> Path:
    """Lets the container of a file that `write_tracks` has written hide the edges of its first track."""
    raw = path.read_bytes()
    if path.suffix in {".mkv", ".webm"}:
        sides = ((0x54BB, top), (0x54AA, bottom), (0x54CC, left), (0x54DD, right))
        told = b"".join(struct.pack(">HBH", name, 0x82, count) for name, count in sides)
        path.write_bytes(_in_video_element(raw, told))
        return path
    size = WIDTH - left - right, HEIGHT - top - bottom
    across, down = left - right, top - bottom  # twice the way from the picture's centre
    clap = struct.pack(">I4sIIIIiIiI", 40, b"clap", size[0], 1, size[1], 1, across, 2, down, 2)
    path.write_bytes(in_sample_entry(raw, clap))
    return path


def in_sample_entry(raw: bytes, box: bytes) -> bytes:
    """An MP4 whose header comes last, with a further box in the first track's sample entry."""
    out, at = bytearray(raw), 0
    names = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd")
    rows = []
    for name in names:
        at = raw.index(name, at) - 4
        rows.append(at)
    rows.append(at + 16)
    for row in rows:
        out[row : row + 4] = struct.pack(">I", int.from_bytes(raw[row : row + 4]) + len(box))
    end = rows[-1] + int.from_bytes(raw[rows[-1] : rows[-1] + 4])
    return bytes(out[:end]) + box + bytes(out[end:])


def _in_video_element(raw: bytes, told: bytes) -> bytes:
    """A Matroska file with further elements in the first track's Video, taken from the room that the writer left."""
    segment = next(one for one in _elements(raw, 0, len(raw)) if one[0] == 0x18538067)
    inner = {name: (size, start, end) for name, size, start, end in reversed(list(_elements(raw, *segment[2:])))}
    out, parents = bytearray(raw), [inner[0x1654AE6B]]
    for name in (0xAE, 0xE0):
        parents.append(next(one[1:] for one in _elements(raw, *parents[-1][1:]) if one[0] == name))
    for row, start, end in parents:
        _restate(out, row, start, end - start + len(told))
    end = parents[-1][2]
    out[end:end] = told
    row, start, stop = inner[0xEC]
    _restate(out, row, start, stop - start - len(told))
    del out[start : start + len(told)]
    return bytes(out)


def _elements(raw: bytes, start: int, end: int) -> list[tuple[int, int, int, int]]:
    """(name, where its length stands, where its content begins and ends)."""
    found = []
    while start < end:
        name_size = 9 - raw[start].bit_length()
        row = start + name_size
        size = 9 - raw[row].bit_length()
        length = int.from_bytes(raw[row : row + size]) & ((1 << 7 * size) - 1)
        found.append((int.from_bytes(raw[start:row]), row, row + size, row + size + length))
        start = found[-1][3]
    return found


def _restate(out: bytearray, row: int, start: int, length: int) -> None:
    size = start - row
    assert length < (1 << 7 * size) - 1
    out[row:start] = (length | 1 << 7 * size).to_bytes(size)

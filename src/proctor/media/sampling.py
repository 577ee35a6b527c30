"""Pictures of a video at a steady rate, as arrays, for what looks at pixels and shows them to nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.media.decode import VideoSource, decode_at
from proctor.media.pictures import upright
from proctor.media.video import FrameIndex, open_video, read_index

MOST_SAMPLES = 100_000  # 14 hours at two a second
_MOST_PIXELS = 2**26  # 8192 × 8192: a header that promises more is refused before anything is decoded


class SampledPicture(NamedTuple):
    """One picture: its own time in seconds of the video's clock, and height × width × 3 bytes, RGB, upright."""

    time: float
    pixels: NDArray[np.uint8]


def check_size(path: Path) -> None:
    """Raises `InputError` as `open_video`, and for pictures larger than any camera's, which would fill the memory."""
    with open_video(path) as (_, stream):
        width, height = stream.width, stream.height
    if width * height > _MOST_PIXELS:
        raise InputError(path, found=f"pictures of {width} × {height}", expected=f"at most {_MOST_PIXELS:,} pixels")


def sampled(
    path: Path, fps: float, max_side: int | None, *, index: FrameIndex | None = None, start: float = 0.0
) -> Iterator[SampledPicture]:
    """The pictures shown at `start`, and every 1/fps seconds after it; each once, with the time at which it begins.

    `max_side` bounds the longer side in pixels (None: as large as the file). One picture is in memory at a time.
    Raises `InputError` where the file can't be decoded, or has more than 100,000 such moments.
    """
    check_size(path)
    index = index or read_index(path)
    last = index.seconds(int(index.pts[-1]))
    if (last - start) * fps >= MOST_SAMPLES:
        found = f"{last / 3600:.1f} hours at {fps:g} pictures a second"
        raise InputError(path, found=found, expected=f"at most {MOST_SAMPLES:,} pictures: a lower rate")
    moments = start + np.arange(int(max(0.0, last - start) * fps) + 1) / fps
    with VideoSource(path) as source:
        for pts, frame, aspect in decode_at(source, index, sorted(set(index.at(moments.tolist())))):
            yield SampledPicture(index.seconds(pts), np.asarray(upright(frame, aspect, None, max_side)))

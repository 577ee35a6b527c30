"""What is seen in a video once, and kept: its looks at a steady rate, and its text-like overlays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proctor.construction.sources.outside import LOOK_SIDE, LOOK_VERSION, look_of
from proctor.core import InputError, Region, content_hash, read_arrays, replacing, write_arrays
from proctor.media import TextOverlay, find_text, sampled

_VERSION = 1  # of how text is found


@dataclass(frozen=True)
class SeenVideo:
    """The times and looks of a video's pictures at a steady rate, and the overlays found in it."""

    times: NDArray[np.float64]
    looks: NDArray[np.float64]
    overlays: tuple[TextOverlay, ...]


def seen_video(video: Path, identity: str, cache: Path, *, fps: float, text_score: float) -> SeenVideo:
    """Looks at a video, or reads what was kept below `cache` under its content and these settings. Raises `InputError`
    where the video can't be decoded or the folder can't be written to."""
    key = content_hash([identity, fps, text_score, LOOK_VERSION, LOOK_SIDE, _VERSION])
    file = cache / f"{key}.npz"
    known = _kept(file)
    if known is not None:
        return known
    pictures = [(one.time, look_of(one.pixels)) for one in sampled(video, fps, LOOK_SIDE)]
    overlays = tuple(find_text(video, fps=fps, least=text_score))
    seen = SeenVideo(np.array([time for time, _ in pictures]), np.stack([look for _, look in pictures]), overlays)
    places = [one.region for one in overlays]
    rows = [
        [place.x, place.y, place.width, place.height, one.start, one.end, one.score]
        for place, one in zip(places, overlays, strict=True)
    ]
    try:
        with replacing(file) as draft:
            write_arrays(draft, {"times": seen.times, "looks": seen.looks, "overlays": np.array(rows).reshape(-1, 7)})
    except OSError as error:
        raise InputError(cache, found=error.strerror or str(error), expected="a folder to write to") from error
    return seen


def _kept(file: Path) -> SeenVideo | None:
    """What was kept; None where there is nothing usable."""
    try:
        found = read_arrays(file, "looks", "the looks of a video") if file.is_file() else {}
        rows = [[float(cell) for cell in row] for row in found["overlays"]]
        overlays = tuple(
            TextOverlay(Region(x=x, y=y, width=width, height=height), start, end, score)
            for x, y, width, height, start, end, score in rows
        )
        return SeenVideo(found["times"], found["looks"], overlays)
    except (InputError, KeyError, ValueError):
        return None

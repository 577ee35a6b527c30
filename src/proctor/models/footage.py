"""Frames that belong together as one video, each at a time of its own: what local weights take instead of a file."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.core import Frame

__all__ = ["TICKS", "Footage", "video_metadata"]

TICKS = 1000
"""A processor counts frames at a rate: at so many a second, every time has a number of its own."""


@dataclass(frozen=True)
class Footage:
    """Frames in ascending time, in seconds of the clip."""

    frames: tuple[Frame, ...]


def video_metadata(seconds: tuple[float, ...]) -> dict[str, object]:
    """What a processor must know of sampled frames, or it invents their times: it takes index over rate.

    >>> known = video_metadata((0.0, 1.5, 4.0))
    >>> [index / known["fps"] for index in known["frames_indices"]], known["total_num_frames"]
    ([0.0, 1.5, 4.0], 4001)
    """
    indices = [round(time * TICKS) for time in seconds]
    count = max(indices, default=0) + 1
    return {
        "fps": float(TICKS),
        "frames_indices": indices,
        "total_num_frames": count,
        "duration": count / TICKS,
    }

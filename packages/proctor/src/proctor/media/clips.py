"""What a view shows beside frames: clips as files, and sound."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SOUND_S = 600.0
"""The longest sound that goes with one question: 19 MB, 26 MB as it is sent."""


@dataclass(frozen=True, slots=True)
class ClipFile:
    """One clip as an MP4, its label ("" if there is only one), and its start and end in seconds of its video."""

    mp4: bytes
    label: str
    span: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of sound as a system gets it: a WAV of one channel, 16,000 samples a second, 16 bits each; its label
    ("recording", "clip 2"), and its start and end in seconds of its file."""

    wav: bytes
    label: str
    span: tuple[float, float]

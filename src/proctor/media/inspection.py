"""What a video file is and holds beside its pictures: size, rate, sound, further streams, metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from proctor.media.sampling import check_size
from proctor.media.video import open_video, probe, read_index

if TYPE_CHECKING:
    from av.container import InputContainer

_STEADY = 0.25  # of the usual step: a step that differs by more is no rounding
_IRREGULAR = 0.01  # share of steps above which a rate is variable
_MOST_VALUES = 1000
_FORMAT_TAGS = {"major_brand", "minor_version", "compatible_brands"}
_WRITTEN_TAGS = {"handler_name": {"VideoHandler", "SoundHandler"}, "language": {"und"}, "vendor_id": {"[0][0][0][0]"}}
"""What every MP4 has, and says nothing of where it comes from; Matroska has its names in capitals."""


@dataclass(frozen=True)
class HeldMetadata:
    """What a file holds beside its first video stream: how many audio tracks and chapters, the kinds of further
    streams, the names of its tags ("title", "audio: language"; without those that every file has), and their values."""

    audio_tracks: int
    other_streams: tuple[str, ...]
    chapters: int
    tags: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class VideoFacts:
    """A video as it is shown: `fps` is pictures by duration, 0 for a single one; `variable_rate` where more than one
    step in a hundred differs from the usual one by more than a quarter; `longest_s` is the longest that a picture other
    than the last one stays."""

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
    """What a file holds beside its pictures. Raises `InputError` as `open_video`."""
    with open_video(path) as (container, video):
        others = [str(one.type) for one in container.streams if one.index != video.index]
        pairs = list(_tags(container))
        chapters = len(container.chapters())
    return HeldMetadata(
        audio_tracks=others.count("audio"),
        other_streams=tuple(sorted(kind for kind in others if kind != "audio")),
        chapters=chapters,
        tags=tuple(sorted({name for name, _ in pairs})),
        values=tuple(sorted({value for _, value in pairs if value})[:_MOST_VALUES]),
    )


def _tags(container: InputContainer) -> Iterator[tuple[str, str]]:
    yield from _telling(container.metadata, "", _FORMAT_TAGS)
    for stream in container.streams:
        yield from _telling(stream.metadata, f"{stream.type}: ", set())
    for chapter in container.chapters():
        yield from _telling(chapter["metadata"], "chapter: ", set())


def _telling(tags: Mapping[str, Any], kind: str, usual: set[str]) -> Iterator[tuple[str, str]]:
    for name, value in tags.items():
        if name.lower() not in usual and value not in _WRITTEN_TAGS.get(name.lower(), ()):
            yield f"{kind}{name}", str(value)

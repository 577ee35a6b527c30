"""Boxes once a second in the clips in which a class is present: which seconds are due, and what is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from proctor.construction.annotation import AnnotatedVideo, Annotation, official_name
from proctor.construction.annotators.presence import CLIP_S, ClipPresence

BoxFindingKind = Literal["no-box", "unexpected-box", "outside-clips"]


@dataclass(frozen=True, slots=True)
class DueSecond:
    """A second of a video at which boxes are drawn, and the classes that are present in its clip."""

    video: str
    second: int
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoxFinding:
    """Where boxes and presence disagree: a clip in which a class is present and has no box and is not said to be
    covered (`no-box`), a box of a class that is not present in its clip (`unexpected-box`), or of a clip that nobody
    has decided (`outside-clips`)."""

    id: str
    video: str
    start: int
    class_name: str
    kind: BoxFindingKind
    detail: str


def due_seconds(clips: Iterable[ClipPresence], videos: Sequence[AnnotatedVideo]) -> list[DueSecond]:
    """The whole seconds of all clips in which a class is decided to be present, in order. Clips that need another vote
    are not due yet; a clip ends with its video."""
    ends = {one.id: one.whole_seconds for one in videos}
    present: dict[tuple[str, int], set[str]] = defaultdict(set)
    for one in clips:
        if one.present and one.video in ends:
            present[one.video, one.start].add(one.class_name)
    return [
        DueSecond(video, second, tuple(sorted(names)))
        for (video, start), names in sorted(present.items())
        for second in range(start, min(start + CLIP_S, ends[video]))
    ]


def check_boxes(clips: Sequence[ClipPresence], annotations: Sequence[Annotation]) -> list[BoxFinding]:
    """Every disagreement of boxes with presence, clip by clip, in order. Videos without annotation have all their
    boxes missing; classes are compared as `official_name` has them."""
    decided = {(one.video, one.start, _class(one.class_name)): one for one in clips}
    drawn: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for annotation in annotations:
        for one in annotation.sightings:
            start = one.second - one.second % CLIP_S
            drawn[annotation.video.id, start, _class(one.class_name)].append(one.second)
    found = []
    for key in sorted({*decided, *drawn}):
        clip, seconds = decided.get(key), drawn.get(key, [])
        kind: BoxFindingKind
        if clip is not None and clip.present and not seconds:
            kind, detail = "no-box", f"present with a probability of {clip.probability:.2f}, and no box in {CLIP_S} s"
        elif clip is not None and clip.present is False and seconds:
            kind, detail = (
                "unexpected-box",
                f"{_boxes(seconds)}, first at {seconds[0]} s; presence {clip.yes} of {clip.votes} votes",
            )
        elif seconds and (clip is None or clip.present is None):
            kind, detail = "outside-clips", f"{_boxes(seconds)}; {clip.why if clip else 'nobody voted on this clip'}"
        else:
            continue
        found.append(BoxFinding(f"{key[0]}@{key[1]}:{key[2]}", *key, kind, detail))
    return found


def _boxes(seconds: Sequence[int]) -> str:
    return f"{len(seconds)} box{'' if len(seconds) == 1 else 'es'}"


def _class(name: str) -> str:
    return official_name(name) or name

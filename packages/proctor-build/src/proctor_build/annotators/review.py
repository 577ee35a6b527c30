"""What annotators settle in a review: which classes are in a clip, a detector's proposals, and where two annotators
differ. Each is an item of a study with the form `presence` or `choice`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core import InputError, Region, content_hash
from proctor.tracks import AnnotatedBox, AnnotatedVideo, Annotation
from proctor_build.annotators.pairs import CHOICES, TrackDifference
from proctor_build.annotators.presence import CLIP_S, PresenceVote, clip_start, clips_of
from proctor_build.annotators.proposals import ACCEPT, REJECT, BoxProposal
from proctor_build.pipeline import ConsensusLine, RecordToReview, ReviewedBody, ReviewPart

PRESENCE_FORM, CHOICE_FORM = "presence", "choice"
_AROUND_S = 2  # seconds of video before and after what is decided

Classes = tuple[str, ...]


# -- presence


class _Classes(ReviewPart):
    present: Classes = Field(default=(), max_length=60)


class _PresenceBody(ReviewedBody):
    classes: Classes = Field(min_length=1, max_length=60)


class _PresenceReading(ReviewPart):
    reader: str = Field(min_length=1, max_length=80)
    payload: _Classes


class PresenceLine(ConsensusLine):
    """A clip that annotators read: the classes that each saw in it."""

    form: Literal["presence"]
    payload: _Classes | None
    body: _PresenceBody
    readings: tuple[_PresenceReading, ...] = Field(default=(), max_length=100)

    def votes(self, videos: Mapping[str, float], file: Path) -> Iterator[PresenceVote]:
        """A vote of each reader on each class. Raises `InputError` for a clip that no video (seconds by name) has."""
        video, start = clip_start(self.item, videos, file)
        for reading in self.readings:
            for name in self.body.classes:
                yield PresenceVote(video, start, name, reading.reader, name in reading.payload.present)

    def settled(self, videos: Mapping[str, float]) -> dict[tuple[str, int, str], bool]:
        """What an adjudicator decided, by video, start and class."""
        if self.payload is None or not self.adjudicated:
            return {}
        key = clip_start(self.item, videos)
        return {(*key, name): name in self.payload.present for name in self.body.classes}


def clips_to_review(
    videos: Sequence[AnnotatedVideo], classes: Sequence[str], read_by: Mapping[str, int]
) -> list[RecordToReview]:
    """The clips of the videos; `read_by` are the readings of those that need another one."""
    return [
        RecordToReview(
            name, video.id, float(start), min(start + CLIP_S, video.seconds), {"classes": [*classes]}, read_by.get(name)
        )
        for video in videos
        for start, name in zip(range(0, 10**6, CLIP_S), clips_of(video.id, video.seconds), strict=False)
    ]


# -- choices


class _Choice(ReviewPart):
    choice: str = Field(min_length=1, max_length=80)


class ChoiceLine(ConsensusLine):
    """A decision about a proposal or a difference."""

    form: Literal["choice"]
    payload: _Choice | None
    body: ReviewedBody


def choices_of(lines: Mapping[str, ChoiceLine], choices: Sequence[str], named: str) -> dict[str, str]:
    """The choice of each settled line of the file `named`. Raises `InputError` for another one than `choices`."""
    found = {name: line.payload.choice for name, line in lines.items() if line.payload is not None}
    wrong = next((name for name, choice in found.items() if choice not in choices), None)
    if wrong is not None:
        expected = f"one of {', '.join(choices)}"
        raise InputError(named, f"item {wrong!r}", found=repr(found[wrong]), expected=expected)
    return found


def version_of(record: BoxProposal | TrackDifference) -> str:
    """A short hash of what people decide about."""
    return content_hash(asdict(record))[:16]


def proposal_to_review(proposal: BoxProposal, annotation: Annotation, region: Region | None) -> RecordToReview:
    """A proposal with the box that stands, if any, and the one that is proposed."""
    stands = next(
        (one for one in annotation.by_second().get(proposal.second, []) if one.instance == proposal.instance), None
    )
    boxes = [("now", stands.class_name, stands.box)] if stands is not None and stands.box is not None else []
    boxes += [("proposed", proposal.class_name, proposal.box)]
    drawn = [
        shown
        for word, name, box in boxes
        for shown in _drawn(f"{word}: {name}", box, proposal.second, annotation, region)
    ]
    question = f"{proposal.kind} at {proposal.second} s (score {proposal.score:.2f}): {proposal.reason}"
    return _record(proposal, question, (ACCEPT, REJECT), drawn, annotation.video, proposal.second, proposal.second)


def difference_to_review(
    difference: TrackDifference, a: Annotation, b: Annotation, region: Region | None
) -> RecordToReview:
    """A difference with the boxes of both annotators, at up to three of its seconds."""
    seconds = range(difference.first, difference.last + 1)
    shown = sorted({seconds[round(part * (len(seconds) - 1))] for part in (0, 0.5, 1)})
    drawn = [
        box
        for second in shown
        for letter, annotation, instance in (("a", a, difference.a), ("b", b, difference.b))
        for one in annotation.by_second().get(second, [])
        if one.instance == instance and one.box is not None
        for box in _drawn(f"{letter}: {one.class_name}", one.box, second, annotation, region)
    ]
    when = f"{difference.first} s" if len(seconds) == 1 else f"{difference.first} s to {difference.last} s"
    named = f"a: {difference.a or 'nothing'}, b: {difference.b or 'nothing'}"
    question = f"{difference.kind}, {when} ({named}): {difference.detail}"
    return _record(difference, question, CHOICES, drawn, a.video, difference.first, difference.last)


def _record(
    record: BoxProposal | TrackDifference,
    question: str,
    options: Sequence[str],
    boxes: list[JsonValue],
    video: AnnotatedVideo,
    first: int,
    last: int,
) -> RecordToReview:
    body: dict[str, JsonValue] = {"question": question, "options": [*options], "origin": version_of(record)}
    start, end = max(0.0, first - float(_AROUND_S)), min(video.seconds, last + 1.0 + _AROUND_S)
    return RecordToReview(record.id, record.video, start, end, body | ({"boxes": boxes} if boxes else {}))


def _drawn(
    label: str, box: AnnotatedBox, second: int, annotation: Annotation, region: Region | None
) -> list[JsonValue]:
    """The box in fractions of what is shown of the picture; nothing of one outside it."""
    part = region or Region(x=0, y=0, width=1, height=1)
    wide, high = annotation.video.width, annotation.video.height
    left, right = (_share(x / wide, part.x, part.width) for x in (box.x, box.x + box.width))
    top, bottom = (_share(y / high, part.y, part.height) for y in (box.y, box.y + box.height))
    if right - left <= 0 or bottom - top <= 0:
        return []
    location = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    return [{"time": float(second), "label": label[:80], **{name: round(value, 5) for name, value in location.items()}}]


def _share(at: float, start: float, length: float) -> float:
    return min(1.0, max(0.0, (at - start) / length))

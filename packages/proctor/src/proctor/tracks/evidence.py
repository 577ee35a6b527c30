"""Where and when the answer to a candidate question is visible, from the tracks of the objects that it is about.

A rule has evidence for each of its answers, or for none: else having evidence would tell the answer. So a question of
whether an object ever comes into view has none, as nothing shows that it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from proctor.core import Evidence, EvidenceBox, EvidenceWindow
from proctor.core.formats import OrderingFormat
from proctor.tracks.annotation import AnnotatedBox, AnnotatedVideo, Timeline
from proctor.tracks.rules import CandidateQuestion

Where = Literal["moment", "followed", "covered", "everything"]

EVIDENCE_OF_RULES: dict[str, Where] = {
    **dict.fromkeys(("seen-at", "kinds-seen-at", "how-many-at", "where"), "moment"),
    **dict.fromkeys(("never", "plural", "before", "first-seen", "first-out", "order-seen", "order-out"), "followed"),
    **dict.fromkeys(("which-hidden", "which-moved"), "followed"),
    **dict.fromkeys(("when-seen", "when-each", "when-out", "out", "hidden", "moved"), "covered"),
    **dict.fromkeys(("kinds-seen", "kinds-out", "how-many-out"), "everything"),
}
"""Where the answer to each rule's questions is visible. `moment`: in the whole picture, around the second that the question
names. `followed`: in the objects of the classes that the question names, wherever they are: the black boxes show how many
there are and how they move, not which is which. `covered`: in one object, by a box over all its positions for the whole video,
which shows neither when it comes nor how it moves. `everything`: in all objects, followed."""

AROUND_S = 1.0
"""Seconds before and after the second that a question names."""

_GROWTH = 1.15  # by which a box may exceed that of one moment, in width and height, to last for several
_DIGITS = 4


@dataclass(frozen=True)
class Trace:
    """The position of an instance from `start` to `end` seconds: a box in pixels that contains it."""

    start: float
    end: float
    box: AnnotatedBox


def evidence_of(candidate: CandidateQuestion, line: Timeline, traces: Traces) -> Evidence | None:
    """The evidence of a candidate question about one video; None for a rule without, and where nothing is traced."""
    where = EVIDENCE_OF_RULES.get(candidate.rule)
    video = line.annotation.video
    end = min(video.seconds, line.end if candidate.end is None else candidate.end)
    if where == "moment":
        return None if candidate.at is None else _around(candidate.at, candidate.start, end)
    if where is None:
        return None
    named = {*candidate.mentions, *candidate.choices}
    if isinstance(candidate.format, OrderingFormat):
        named |= set(candidate.format.labels)
    instances = traces.of(None if where == "everything" else named, cover=candidate.rule in {"hidden", "which-hidden"})
    boxes: list[EvidenceBox] = []
    for own in instances:
        shown = [Trace(max(one.start, candidate.start), min(one.end, end), one.box) for one in own]
        shown = [one for one in shown if one.end - one.start > 10.0**-_DIGITS]
        if shown and where == "covered":
            shown = [Trace(candidate.start, end, hull([one.box for one in shown]))]
        found = [_box(one, video) for one in merged(shown)]
        boxes += [one for one in found if one is not None]
    return Evidence(boxes=tuple(boxes)) if boxes else None


@dataclass(frozen=True)
class Traces:
    """The traces of each instance of a video, in order of time, by class; and those of what covers an instance, by the
    instance's class."""

    instances: tuple[tuple[str, tuple[Trace, ...]], ...] = ()
    covers: tuple[tuple[str, tuple[Trace, ...]], ...] = ()

    def of(self, classes: Iterable[str] | None, *, cover: bool = False) -> list[tuple[Trace, ...]]:
        """The traces of the instances of some classes (None: all), with `cover` also of what covers them."""
        kept = None if classes is None else set(classes)
        named = (*self.instances, *(self.covers if cover else ()))
        return [traces for name, traces in named if kept is None or name in kept]


def _around(second: int, start: float, end: float) -> Evidence | None:
    first, last = max(start, second - AROUND_S), min(end, second + AROUND_S)
    if last <= first:
        return None
    return Evidence(windows=(EvidenceWindow(start=round(first, _DIGITS), end=round(last, _DIGITS)),))


def hull(boxes: Sequence[AnnotatedBox]) -> AnnotatedBox:
    """The smallest box that contains these.

    >>> hull([AnnotatedBox(x=0, y=0, width=2, height=2), AnnotatedBox(x=3, y=1, width=2, height=4)])
    AnnotatedBox(x=0.0, y=0.0, width=5.0, height=5.0)
    """
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = max(box.x + box.width for box in boxes), max(box.y + box.height for box in boxes)
    return AnnotatedBox(x=left, y=top, width=right - left, height=bottom - top)


def merged(traces: Sequence[Trace]) -> list[Trace]:
    """The traces with fewer boxes: those that follow each other become one, as long as it is hardly larger than the
    smallest of them."""
    found: list[list[Trace]] = []
    for one in traces:
        if found and abs(found[-1][-1].end - one.start) < 10.0**-_DIGITS and _alike([*found[-1], one]):
            found[-1].append(one)
        else:
            found.append([one])
    return [Trace(group[0].start, group[-1].end, hull([one.box for one in group])) for group in found]


def _alike(group: Sequence[Trace]) -> bool:
    whole = hull([one.box for one in group])
    least = min(one.box.width for one in group), min(one.box.height for one in group)
    return whole.width <= _GROWTH * least[0] and whole.height <= _GROWTH * least[1]


def _box(trace: Trace, video: AnnotatedVideo) -> EvidenceBox | None:
    """The box in fractions of the frame; None where it lies outside."""
    box = trace.box
    left, top = max(0.0, box.x) / video.width, max(0.0, box.y) / video.height
    right, bottom = min(1.0, (box.x + box.width) / video.width), min(1.0, (box.y + box.height) / video.height)
    left, top, right, bottom = (round(edge, _DIGITS) for edge in (left, top, right, bottom))
    if right <= left or bottom <= top:
        return None
    return EvidenceBox(
        x=left,
        y=top,
        width=round(right - left, _DIGITS),
        height=round(bottom - top, _DIGITS),
        start=round(trace.start, _DIGITS),
        end=round(trace.end, _DIGITS),
    )


def traces_of(line: Timeline) -> Traces:
    """The traces that an annotation with a box a second gives: from one second to the next the box around both. A second
    before the first box in a row, and after the last one, nobody drew where the instance is: there it is that box, half as
    large again on each side."""
    found: list[tuple[str, tuple[Trace, ...]]] = []
    for seen in line.annotation.by_instance().values():
        boxes = {one.second: one.box for one in seen if one.box is not None and one.second <= line.end}
        own: list[Trace] = []
        for _, group in groupby(enumerate(sorted(boxes)), key=lambda pair: pair[1] - pair[0]):
            run = [second for _, second in group]
            if run[0] > 0:
                own.append(Trace(run[0] - 1.0, run[0], _grown(boxes[run[0]])))
            own += [Trace(a, a + 1.0, hull([boxes[a], boxes[a + 1]])) for a in run[:-1]]
            own.append(Trace(run[-1], run[-1] + 1.0, _grown(boxes[run[-1]])))
        if own:
            found.append((seen[0].class_name, tuple(own)))
    return Traces(tuple(found))


def _grown(box: AnnotatedBox) -> AnnotatedBox:
    across, down = box.width / 2, box.height / 2
    return AnnotatedBox(x=box.x - across, y=box.y - down, width=2 * box.width, height=2 * box.height)

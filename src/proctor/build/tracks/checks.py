"""What is wrong, or odd, with an annotation: every finding with its place, for programs and for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from proctor.build.tracks.annotation import Annotation, Moment, Sighting
from proctor.build.tracks.vocabulary import ARISING, official_name

__all__ = ["CHECKS", "Finding", "find", "gaps"]

NEAR_S = 5.0
"""A moment needs a box of its instance within so many seconds, inside the stay that it begins or ends."""
LEEWAY_S = 2.0
"""A box may stand so many seconds before an insertion or after a retrieval: hands are slow."""
JUMP = 0.6
"""A box that moves by more than this share of the picture's diagonal in a second has jumped."""
MISSED_S = 10
"""Up to this length a gap between two boxes at the same place looks like boxes that were forgotten."""


@dataclass(frozen=True)
class Finding:
    """One thing found in one video: the kind of fault, the instance (empty where it is none's), the time in
    seconds where it has one, what it is in words, and whether a person has to decide."""

    kind: str
    video: str
    instance: str
    time: float | None
    detail: str
    needs_person: bool = True

    def __str__(self) -> str:
        when = "" if self.time is None else f"{self.time:g} s"
        level = "decide" if self.needs_person else "note"
        return ": ".join(
            part for part in (level, self.kind, self.video, self.instance, when, self.detail) if part
        )


def find(annotation: Annotation) -> list[Finding]:
    """All findings on one video, in order of time.

    Kinds: `two-places` (an instance with two boxes in one second), `class-changes`, `gap` (out of sight between
    two boxes; needs a person where both lie at the same place and no more than 10 s apart, for then boxes seem
    to be forgotten), `outside-frame` (needs a person where nothing of the box is inside), `degenerate` (less
    than one pixel wide or high), `jump` (more than 0.6 of the diagonal in a second), `outside-video`,
    `moment-without-box` (none within 5 s), `retrieval-before-insertion`, `inserted-twice`, `retrieved-twice`,
    `seen-before-insertion`, `seen-after-retrieval` (by more than 2 s), `never-inserted` (no need of a person for
    what arises in the body: specimen, gallstone), `no-moments`, `no-boxes`, `unknown-class`.
    """
    found = [one for check in CHECKS for one in check(annotation)]
    return sorted(found, key=lambda one: (-1.0 if one.time is None else one.time, one.kind, one.instance))


def gaps(sightings: list[Sighting]) -> Iterator[tuple[Sighting, Sighting]]:
    """Of one instance's sightings those pairs between which it is out of sight without being said to be covered:
    the last before and the first after."""
    boxes = sorted(sightings, key=lambda one: one.second)
    for before, after in pairwise(boxes):
        if after.second > before.second + 1 and before.box is not None and after.box is not None:
            yield before, after


def _two_places(annotation: Annotation) -> Iterator[Finding]:
    for second, seen in annotation.by_second().items():
        for one, other in combinations(seen, 2):
            if one.instance == other.instance:
                apart = _apart(one, other)
                detail = (
                    "two boxes" if apart is None else f"two boxes, their middles {apart:.0f} pixels apart"
                )
                yield Finding("two-places", annotation.video.id, one.instance, float(second), detail)


def _apart(one: Sighting, other: Sighting) -> float | None:
    return None if one.box is None or other.box is None else math.dist(one.box.centre, other.box.centre)


def _class_changes(annotation: Annotation) -> Iterator[Finding]:
    named: dict[str, list[tuple[float, str]]] = {}
    for sighting in annotation.sightings:
        named.setdefault(sighting.instance, []).append((float(sighting.second), sighting.class_name))
    for moment in annotation.moments:
        named.setdefault(moment.instance, []).append((moment.time, moment.class_name))
    for instance, said in named.items():
        for (_, one), (time, other) in pairwise(sorted(said)):
            if (official_name(one) or one) != (official_name(other) or other):
                yield Finding("class-changes", annotation.video.id, instance, time, f"{one}, then {other}")


def _gaps(annotation: Annotation) -> Iterator[Finding]:
    moments: dict[str, list[float]] = {}
    for moment in annotation.moments:
        moments.setdefault(moment.instance, []).append(moment.time)
    for instance, sightings in annotation.by_instance().items():
        for before, after in gaps(sightings):
            missing = after.second - before.second - 1
            between = [t for t in moments.get(instance, []) if before.second <= t <= after.second]
            same = before.box is not None and after.box is not None and before.box.overlap(after.box) >= 0.5
            forgotten = same and missing <= MISSED_S and not between
            place = "at the same place before and after" if same else "elsewhere before and after"
            detail = f"{missing} s without a box, {place}"
            yield Finding("gap", annotation.video.id, instance, before.second + 1.0, detail, forgotten)


def _boxes(annotation: Annotation) -> Iterator[Finding]:
    width, height = annotation.video.width, annotation.video.height
    for one in annotation.sightings:
        box = one.box
        if box is None:
            continue
        shown = f"x {box.x:g} to {box.x + box.width:g}, y {box.y:g} to {box.y + box.height:g}"
        if box.width < 1 or box.height < 1:
            detail = f"{box.width:g} x {box.height:g} pixels"
            yield Finding("degenerate", annotation.video.id, one.instance, float(one.second), detail)
        beyond = max(-box.x, -box.y, box.x + box.width - width, box.y + box.height - height)
        if beyond > 1:  # a pixel is rounding
            inside = box.x < width and box.y < height and box.x + box.width > 0 and box.y + box.height > 0
            detail = f"{shown} in a picture of {width} x {height}"
            yield Finding(
                "outside-frame", annotation.video.id, one.instance, float(one.second), detail, not inside
            )


def _jumps(annotation: Annotation) -> Iterator[Finding]:
    diagonal = math.hypot(annotation.video.width, annotation.video.height)
    for instance, sightings in annotation.by_instance().items():
        for one, other in pairwise(sightings):
            apart = _apart(one, other)
            if apart is not None and other.second == one.second + 1 and apart > JUMP * diagonal:
                detail = f"{apart:.0f} pixels in a second, {apart / diagonal:.0%} of the diagonal"
                yield Finding("jump", annotation.video.id, instance, float(other.second), detail)


def _outside_video(annotation: Annotation) -> Iterator[Finding]:
    video = annotation.video
    for sighting in annotation.sightings:
        if sighting.second >= video.whole_seconds:
            detail = f"a box in a video of {video.seconds:g} s"
            yield Finding("outside-video", video.id, sighting.instance, float(sighting.second), detail)
    for moment in annotation.moments:
        if moment.time > video.seconds:
            detail = f"{moment.kind} in a video of {video.seconds:g} s"
            yield Finding("outside-video", video.id, moment.instance, moment.time, detail)


def _moments(annotation: Annotation) -> Iterator[Finding]:
    """Each instance's moments must take turns, begin with an insertion and have boxes near."""
    seen = annotation.by_instance()
    by_instance: dict[str, list[Moment]] = {}
    for moment in annotation.moments:
        by_instance.setdefault(moment.instance, []).append(moment)
    for instance, moments in by_instance.items():
        arising = official_name(moments[0].class_name) in ARISING
        before = "insertion" if arising and moments[0].kind == "retrieval" else "retrieval"
        for number, moment in enumerate(moments):
            if moment.kind == before:
                first = number == 0 and moment.kind == "retrieval"
                kind = "retrieval-before-insertion" if first else _twice(moment)
                detail = "no insertion before it" if moment.kind == "retrieval" else "no retrieval in between"
                yield Finding(kind, annotation.video.id, instance, moment.time, detail)
            before = moment.kind
            boxes = [one.second for one in seen.get(instance, []) if one.box is not None]
            if not any(abs(second - moment.time) <= NEAR_S for second in boxes):
                detail = f"{moment.kind}, and no box within {NEAR_S:g} s"
                yield Finding("moment-without-box", annotation.video.id, instance, moment.time, detail)


def _twice(moment: Moment) -> str:
    return "inserted-twice" if moment.kind == "insertion" else "retrieved-twice"


def _stays(annotation: Annotation) -> Iterator[Finding]:
    """Boxes at times at which the instance is not in the body, and instances that never came in."""
    if annotation.sightings and not annotation.moments:
        detail = "no insertion and no retrieval of anything"
        yield Finding("no-moments", annotation.video.id, "", None, detail)
        return
    moments: dict[str, list[Moment]] = {}
    for moment in annotation.moments:
        moments.setdefault(moment.instance, []).append(moment)
    for instance, sightings in annotation.by_instance().items():
        own = moments.get(instance, [])
        arising = official_name(sightings[0].class_name) in ARISING
        if not any(one.kind == "insertion" for one in own):
            detail = f"a {sightings[0].class_name} with boxes and without an insertion"
            time = float(sightings[0].second)
            yield Finding("never-inserted", annotation.video.id, instance, time, detail, not arising)
        yield from _strays(annotation, sightings, own)


def _strays(annotation: Annotation, sightings: list[Sighting], moments: list[Moment]) -> Iterator[Finding]:
    reported: set[str] = set()
    for one in sightings:
        if one.box is None or not one.in_patient:
            continue
        past = [moment for moment in moments if moment.time <= one.second]
        coming = [moment for moment in moments if moment.time > one.second]
        last = past[-1] if past else None
        following = coming[0] if coming else None
        if following is not None and following.time - one.second <= LEEWAY_S:
            continue
        if last is not None and last.kind == "retrieval" and one.second - last.time > LEEWAY_S:
            kind, detail = "seen-after-retrieval", f"retrieved at {last.time:g} s"
        elif last is None and following is not None and following.kind == "insertion":
            kind, detail = "seen-before-insertion", f"inserted at {following.time:g} s"
        else:
            continue
        if kind not in reported:  # once for an instance: the first box says it
            reported.add(kind)
            yield Finding(kind, annotation.video.id, one.instance, float(one.second), detail)


def _nothing(annotation: Annotation) -> Iterator[Finding]:
    if not annotation.sightings:
        yield Finding("no-boxes", annotation.video.id, "", None, "nothing is annotated")


def _unknown(annotation: Annotation) -> Iterator[Finding]:
    for name in annotation.classes:
        if official_name(name) is None:
            detail = f"{name!r} is none of the classes that FOCUS defines; it is taken as it is"
            yield Finding("unknown-class", annotation.video.id, "", None, detail, needs_person=False)


CHECKS: tuple[Callable[[Annotation], Iterator[Finding]], ...] = (
    _nothing,
    _two_places,
    _class_changes,
    _gaps,
    _boxes,
    _jumps,
    _outside_video,
    _moments,
    _stays,
    _unknown,
)
"""All checks; each looks at one video."""

"""Check annotations for errors and oddities, and fill short gaps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from proctor.tracks import ARISING, AnnotatedMoment, Annotation, Sighting, official_name

_SLOW = 0.25  # share of the frame's width per second up to which motion is interpolated


@dataclass(frozen=True)
class Filled:
    """A filled gap: the instance, and the first and last second without a box."""

    video: str
    instance: str
    first: int
    last: int


@dataclass(frozen=True)
class Completion:
    """A completed annotation, the gaps that were filled, and the findings in the completed annotation."""

    annotation: Annotation
    filled: tuple[Filled, ...]
    findings: tuple[TrackFinding, ...]

    @property
    def open(self) -> tuple[TrackFinding, ...]:
        """The findings that a person must decide on."""
        return tuple(finding for finding in self.findings if finding.needs_person)


def complete(annotation: Annotation, longest_s: int = 2) -> Completion:
    """Fills gaps of up to `longest_s` seconds (0 fills none) with interpolated boxes, each marked `filled`.

    A gap stays if the instance is covered, enters or leaves the body in it, changes its class, is at two positions before
    or after it, is outside the body, or moves by more than a quarter of the frame's width per second. The default is
    short, since the object may really have been out of sight.
    """
    moments = {
        instance: [annotated_moment.time for annotated_moment in some]
        for instance, some in annotation.moments_by_instance().items()
    }
    added: list[Sighting] = []
    filled: list[Filled] = []
    for instance, sightings in annotation.by_instance().items():
        twice = {second for second, times in Counter(sighting.second for sighting in sightings).items() if times > 1}
        for before, after in gaps(sightings):
            between = any(before.second <= time <= after.second for time in moments.get(instance, []))
            if between or {before.second, after.second} & twice:
                continue
            new = _between(before, after, longest_s, annotation.video.width)
            if new:
                added += new
                filled.append(Filled(annotation.video.id, instance, new[0].second, new[-1].second))
    completed = annotation
    if added:
        completed = annotation.model_copy(update={"sightings": ()})
        completed = Annotation.model_validate({**completed.model_dump(), "sightings": (*annotation.sightings, *added)})
    return Completion(completed, tuple(filled), tuple(find(completed)))


def _between(before: Sighting, after: Sighting, longest_s: int, width: int) -> list[Sighting]:
    """The interpolated sightings in a gap; none where interpolation would be a guess."""
    start, end = before.box, after.box
    steps = after.second - before.second
    if start is None or end is None or steps - 1 > longest_s or before.class_name != after.class_name:
        return []
    fast = abs(end.centre[0] - start.centre[0]) + abs(end.centre[1] - start.centre[1]) > _SLOW * width * steps
    if fast or not (before.in_patient and after.in_patient):
        return []
    return [
        Sighting(
            second=before.second + step,
            instance=before.instance,
            class_name=before.class_name,
            box=start.towards(end, step / steps),
            occluded=before.occluded or after.occluded,
            filled=True,
        )
        for step in range(1, steps)
    ]


NEAR_S = 5.0
"""A moment needs a box of its instance within this many seconds."""
LEEWAY_S = 2.0
"""A box may be this many seconds before an insertion or after a retrieval."""
JUMP = 0.6
"""A box that moves by more than this share of the frame's diagonal in a second has jumped."""
MISSED_S = 10
"""Up to this length, boxes are probably missing in a gap between two boxes at the same position."""


@dataclass(frozen=True)
class TrackFinding:
    """A finding in one video: its kind, the instance ("" for none), the time in seconds (None without one), a
    description, and whether a person must decide."""

    kind: str
    video: str
    instance: str
    time: float | None
    detail: str
    needs_person: bool = True

    def __str__(self) -> str:
        when = "" if self.time is None else f"{self.time:g} s"
        level = "decide" if self.needs_person else "note"
        return ": ".join(part for part in (level, self.kind, self.video, self.instance, when, self.detail) if part)


def find(annotation: Annotation) -> list[TrackFinding]:
    """All findings in one video, in order of time.

    Kinds: `two-places` (an instance with two boxes in one second), `class-changes`, `gap` (seconds without a box; a
    person decides if both ends are at the same position and at most 10 s apart: boxes may be missing), `outside-frame` (a
    person decides if no part is inside), `degenerate` (less than one pixel wide or high), `jump` (more than 0.6 of the
    diagonal in a second), `outside-video`, `moment-without-box` (none within 5 s), `retrieval-before-insertion`,
    `inserted-twice`, `retrieved-twice`, `seen-before-insertion`, `seen-after-retrieval` (by more than 2 s),
    `never-inserted` (no decision for specimens and gallstones), `no-moments`, `no-boxes`, `unknown-class`.
    """
    found = [track_finding for check in CHECKS for track_finding in check(annotation)]
    return sorted(
        found,
        key=lambda track_finding: (
            -1.0 if track_finding.time is None else track_finding.time,
            track_finding.kind,
            track_finding.instance,
        ),
    )


def gaps(sightings: list[Sighting]) -> Iterator[tuple[Sighting, Sighting]]:
    """The gaps of one instance: the last sighting before and the first after seconds without one, unless it is covered
    at either end."""
    boxes = sorted(sightings, key=lambda sighting: sighting.second)
    for before, after in pairwise(boxes):
        if after.second > before.second + 1 and before.box is not None and after.box is not None:
            yield before, after


def _two_positions(annotation: Annotation) -> Iterator[TrackFinding]:
    for second, seen in annotation.by_second().items():
        for one, other in combinations(seen, 2):
            if one.instance == other.instance:
                apart = _apart(one, other)
                detail = "two boxes" if apart is None else f"two boxes, their middles {apart:.0f} pixels apart"
                yield TrackFinding("two-places", annotation.video.id, one.instance, float(second), detail)


def _apart(sighting: Sighting, other: Sighting) -> float | None:
    return None if sighting.box is None or other.box is None else math.dist(sighting.box.centre, other.box.centre)


def _class_changes(annotation: Annotation) -> Iterator[TrackFinding]:
    named: dict[str, list[tuple[float, str]]] = {}
    for sighting in annotation.sightings:
        named.setdefault(sighting.instance, []).append((float(sighting.second), sighting.class_name))
    for moment in annotation.moments:
        named.setdefault(moment.instance, []).append((moment.time, moment.class_name))
    for instance, names in named.items():
        for (_, one), (time, other) in pairwise(sorted(names)):
            if (official_name(one) or one) != (official_name(other) or other):
                yield TrackFinding("class-changes", annotation.video.id, instance, time, f"{one}, then {other}")


def _gaps(annotation: Annotation) -> Iterator[TrackFinding]:
    moments = {
        instance: [annotated_moment.time for annotated_moment in some]
        for instance, some in annotation.moments_by_instance().items()
    }
    for instance, sightings in annotation.by_instance().items():
        for before, after in gaps(sightings):
            missing = after.second - before.second - 1
            between = [t for t in moments.get(instance, []) if before.second <= t <= after.second]
            same = before.box is not None and after.box is not None and before.box.overlap(after.box) >= 0.5
            forgotten = same and missing <= MISSED_S and not between
            location = "at the same position before and after" if same else "elsewhere before and after"
            detail = f"{missing} s without a box, {location}"
            yield TrackFinding("gap", annotation.video.id, instance, before.second + 1.0, detail, forgotten)


def _boxes(annotation: Annotation) -> Iterator[TrackFinding]:
    width, height = annotation.video.width, annotation.video.height
    for sighting in annotation.sightings:
        box = sighting.box
        if box is None:
            continue
        shown = f"x {box.x:g} to {box.x + box.width:g}, y {box.y:g} to {box.y + box.height:g}"
        if box.width < 1 or box.height < 1:
            detail = f"{box.width:g} x {box.height:g} pixels"
            yield TrackFinding("degenerate", annotation.video.id, sighting.instance, float(sighting.second), detail)
        beyond = max(-box.x, -box.y, box.x + box.width - width, box.y + box.height - height)
        if beyond > 1:  # a pixel is rounding
            inside = box.x < width and box.y < height and box.x + box.width > 0 and box.y + box.height > 0
            detail = f"{shown} in a picture of {width} x {height}"
            yield TrackFinding(
                "outside-frame", annotation.video.id, sighting.instance, float(sighting.second), detail, not inside
            )


def _jumps(annotation: Annotation) -> Iterator[TrackFinding]:
    diagonal = math.hypot(annotation.video.width, annotation.video.height)
    for instance, sightings in annotation.by_instance().items():
        for one, other in pairwise(sightings):
            apart = _apart(one, other)
            if apart is not None and other.second == one.second + 1 and apart > JUMP * diagonal:
                detail = f"{apart:.0f} pixels in a second, {apart / diagonal:.0%} of the diagonal"
                yield TrackFinding("jump", annotation.video.id, instance, float(other.second), detail)


def _outside_video(annotation: Annotation) -> Iterator[TrackFinding]:
    video = annotation.video
    for sighting in annotation.sightings:
        if sighting.second >= video.whole_seconds:
            detail = f"a box in a video of {video.seconds:g} s"
            yield TrackFinding("outside-video", video.id, sighting.instance, float(sighting.second), detail)
    for moment in annotation.moments:
        if moment.time > video.seconds:
            detail = f"{moment.kind} in a video of {video.seconds:g} s"
            yield TrackFinding("outside-video", video.id, moment.instance, moment.time, detail)


def _moments(annotation: Annotation) -> Iterator[TrackFinding]:
    """Each instance's moments must alternate, begin with an insertion and have boxes nearby."""
    seen = annotation.by_instance()
    for instance, moments in annotation.moments_by_instance().items():
        arising = official_name(moments[0].class_name) in ARISING
        before = "insertion" if arising and moments[0].kind == "retrieval" else "retrieval"
        for number, moment in enumerate(moments):
            if moment.kind == before:
                first = number == 0 and moment.kind == "retrieval"
                kind = "retrieval-before-insertion" if first else _TWICE[moment.kind]
                detail = "no insertion before it" if moment.kind == "retrieval" else "no retrieval in between"
                yield TrackFinding(kind, annotation.video.id, instance, moment.time, detail)
            before = moment.kind
            boxes = [sighting.second for sighting in seen.get(instance, []) if sighting.box is not None]
            if not any(abs(second - moment.time) <= NEAR_S for second in boxes):
                detail = f"{moment.kind}, and no box within {NEAR_S:g} s"
                yield TrackFinding("moment-without-box", annotation.video.id, instance, moment.time, detail)


_TWICE = {"insertion": "inserted-twice", "retrieval": "retrieved-twice"}


def _stays(annotation: Annotation) -> Iterator[TrackFinding]:
    """Boxes of instances that are not in the body, and instances that were never inserted."""
    if annotation.sightings and not annotation.moments:
        detail = "no insertion and no retrieval of anything"
        yield TrackFinding("no-moments", annotation.video.id, "", None, detail)
        return
    moments = annotation.moments_by_instance()
    for instance, sightings in annotation.by_instance().items():
        own = moments.get(instance, [])
        arising = official_name(sightings[0].class_name) in ARISING
        if not any(annotated_moment.kind == "insertion" for annotated_moment in own):
            detail = f"a {sightings[0].class_name} with boxes and without an insertion"
            time = float(sightings[0].second)
            yield TrackFinding("never-inserted", annotation.video.id, instance, time, detail, not arising)
        yield from _strays(annotation, sightings, own)


def _strays(
    annotation: Annotation, sightings: list[Sighting], moments: list[AnnotatedMoment]
) -> Iterator[TrackFinding]:
    reported: set[str] = set()
    for sighting in sightings:
        if sighting.box is None or not sighting.in_patient:
            continue
        past = [moment for moment in moments if moment.time <= sighting.second]
        coming = [moment for moment in moments if moment.time > sighting.second]
        last = past[-1] if past else None
        following = coming[0] if coming else None
        if following is not None and following.time - sighting.second <= LEEWAY_S:
            continue
        if last is not None and last.kind == "retrieval" and sighting.second - last.time > LEEWAY_S:
            kind, detail = "seen-after-retrieval", f"retrieved at {last.time:g} s"
        elif last is None and following is not None and following.kind == "insertion":
            kind, detail = "seen-before-insertion", f"inserted at {following.time:g} s"
        else:
            continue
        if kind not in reported:  # once for each instance
            reported.add(kind)
            yield TrackFinding(kind, annotation.video.id, sighting.instance, float(sighting.second), detail)


def _nothing(annotation: Annotation) -> Iterator[TrackFinding]:
    if not annotation.sightings:
        yield TrackFinding("no-boxes", annotation.video.id, "", None, "nothing is annotated")


def _unknown(annotation: Annotation) -> Iterator[TrackFinding]:
    for name in annotation.classes:
        if official_name(name) is None:
            detail = f"{name!r} is none of the classes that FOCUS defines; it is taken as it is"
            yield TrackFinding("unknown-class", annotation.video.id, "", None, detail, needs_person=False)


CHECKS: tuple[Callable[[Annotation], Iterator[TrackFinding]], ...] = (
    _nothing,
    _two_positions,
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

"""Short gaps in tracks are filled; what was filled is listed, and so is what a person has to decide."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from proctor.build.tracks.annotation import Annotation, Sighting
from proctor.build.tracks.checks import Finding, find, gaps

__all__ = ["Completion", "Filled", "complete"]

_SLOW = 0.25  # share of the picture's width that an object may move in a second and still be the same way


@dataclass(frozen=True)
class Filled:
    """A gap that was filled: the instance, the first and the last second without a box."""

    video: str
    instance: str
    first: int
    last: int


@dataclass(frozen=True)
class Completion:
    """The completed annotation, what was filled in it, and what is found in it as it now is."""

    annotation: Annotation
    filled: tuple[Filled, ...]
    findings: tuple[Finding, ...]

    @property
    def open(self) -> tuple[Finding, ...]:
        """The findings that a person has to decide."""
        return tuple(one for one in self.findings if one.needs_person)


def complete(annotation: Annotation, longest_s: int = 2) -> Completion:
    """Fills gaps of up to `longest_s` seconds (0 fills none) with boxes on the straight way from the last box
    before to the first box after, each marked `filled`.

    A gap is left alone where the instance is said to be covered, enters or leaves the body in it, changes its
    class, is in two places before or after, is seen outside the body, or moved by more than a quarter of the
    picture's width per second. Nothing else is changed. Seconds that it fills may be seconds in which the
    object really was out of sight, so the default is short.
    """
    moments: dict[str, list[float]] = {}
    for moment in annotation.moments:
        moments.setdefault(moment.instance, []).append(moment.time)
    added: list[Sighting] = []
    filled: list[Filled] = []
    for instance, sightings in annotation.by_instance().items():
        twice = {second for second, times in Counter(one.second for one in sightings).items() if times > 1}
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
        completed = Annotation.model_validate(
            {**completed.model_dump(), "sightings": (*annotation.sightings, *added)}
        )
    return Completion(completed, tuple(filled), tuple(find(completed)))


def _between(before: Sighting, after: Sighting, longest_s: int, width: int) -> list[Sighting]:
    """What stands between two sightings; nothing where a straight line would be a guess."""
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

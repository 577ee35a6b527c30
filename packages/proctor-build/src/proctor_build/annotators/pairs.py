"""Compare two annotators' tracks of one video: their agreement, their differences, and the merged annotation after a
third person has decided on each difference."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from proctor.core import InputError
from proctor.stats import Estimate, Floats, Resampling, Share, ratio, sums_interval
from proctor.tracks import AnnotatedMoment, Annotation, Sighting, official_name

ALIKE = 0.5
"""Boxes with at least this overlap (intersection over union) show the same object."""

MOMENT_S = 1.0
"""Moments up to this many seconds apart are the same; where annotators differ by more, their own differences say how far
(`MeasuredTolerances.moment_apart`)."""

DifferenceKind = Literal["only-a", "only-b", "position", "class", "identity", "covered", "state", "moment"]
CHOICES = ("a", "b")


@dataclass(frozen=True, slots=True)
class TrackDifference:
    """A difference between two annotators from second `first` to `last`: `a` and `b` are their instances, '' for none.

    only-a, only-b: a box that the other annotator lacks. position: boxes of one instance that overlap by less than
    `ALIKE`. class: another class. identity: the same box in another track. covered: covered according to one annotator
    only. state: partly covered or not, inside the patient or not. moment: insertions or retrievals that differ in number
    or by more than what counts as the same moment.
    """

    id: str
    video: str
    first: int
    last: int
    kind: DifferenceKind
    a: str
    b: str
    detail: str


@dataclass(frozen=True)
class TrackComparison:
    """The comparison of annotations a and b of one video. `partner` maps instances of b one to one to instances of a.
    `sums`: pairs of boxes of one class, boxes of a, boxes of b, pairs of any class, pairs whose instances are partners,
    and the sum of the overlaps of all pairs."""

    video: str
    partner: Mapping[str, str]
    differences: tuple[TrackDifference, ...]
    sums: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TrackAgreement:
    """The agreement of two annotators over videos: F1 of boxes (same class, overlap of `ALIKE` or more), the share of
    pairs with the same class, F1 of identity (IDF1, Ristani et al. 2016, ECCV workshops: pairs of partner instances), and
    the mean overlap of pairs. Intervals are clustered by video."""

    boxes: Estimate
    classes: Estimate
    identity: Estimate
    overlap: Estimate


def compare_tracks(a: Annotation, b: Annotation, *, moment_s: float = MOMENT_S) -> TrackComparison:
    """Compares two annotators. Moments up to `moment_s` seconds apart are the same. At each second boxes are paired one to one for the largest sum of overlaps of at least
    `ALIKE`, ignoring classes; instances become partners one to one so that most pairs belong to partners.

    Raises `InputError` for annotations of different videos, and for an instance at two positions in one second.
    """
    if a.video.id != b.video.id:
        raise InputError("video", found=f"{a.video.id!r} and {b.video.id!r}", expected="the same")
    for annotation in (a, b):
        _check_single(annotation)
    pairs = {second: _paired(left, right) for second, left, right in _seconds(a, b)}
    partner = _partners([(left.instance, right.instance) for some in pairs.values() for left, right, _ in some])
    found: dict[tuple[DifferenceKind, str, str, str], list[int]] = defaultdict(list)
    for second, left, right in _seconds(a, b):
        for kind, own, other, detail in _differences(left, right, pairs[second], partner):
            found[kind, own, other, detail].append(second)
    differences = [
        _difference(a.video.id, key, first, last) for key, seconds in found.items() for first, last in _runs(seconds)
    ]
    differences += _moments(a, b, partner, moment_s)
    every = [pair for some in pairs.values() for pair in some]
    sums = (
        float(sum(class_of(left) == class_of(right) for left, right, _ in every)),
        *(float(sum(sighting.box is not None for sighting in each.sightings)) for each in (a, b)),
        float(len(every)),
        float(sum(partner.get(right.instance) == left.instance for left, right, _ in every)),
        sum(overlap for _, _, overlap in every),
    )
    ordered = sorted(
        differences,
        key=lambda difference: (difference.first, difference.last, difference.kind, difference.a, difference.b),
    )
    return TrackComparison(a.video.id, partner, tuple(ordered), sums)


def agreement_of(comparisons: Sequence[TrackComparison], plan: Resampling = Resampling()) -> TrackAgreement:
    """The agreement over all videos; an estimate is None with nothing to compare, and has no interval with a single video
    (the mean overlap: with fewer than three)."""
    table = np.array([comparison.sums for comparison in comparisons], dtype=np.float64).reshape(-1, 6)
    groups, within = [comparison.video for comparison in comparisons], plan.within(0, 1)

    def estimate(statistic: Callable[[Floats], Floats]) -> Estimate:
        return sums_interval(table, groups, statistic, plan=within)

    return TrackAgreement(
        boxes=estimate(Share((1, 0, 0, 0, 0, 0), (-1, 1, 1, 0, 0, 0), f1=True)),
        classes=estimate(Share((1, 0, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0))),
        identity=estimate(Share((0, 0, 0, 0, 1, 0), (0, 1, 1, 0, -1, 0), f1=True)),
        overlap=estimate(lambda sums: ratio(sums[:, 5], sums[:, 3])),
    )


def adjudicated(
    a: Annotation, b: Annotation, comparison: TrackComparison, decisions: Mapping[str, str]
) -> tuple[Annotation, list[TrackDifference]]:
    """The merged annotation, and the undecided differences (`decisions` are a or b, by id). Annotation a is used unless "b" was decided; then b is, with
    the names of a's instances. Instances of b alone keep their names; "-b" is added if a has an instance of that name.

    Raises `InputError` if decisions put an instance at two positions in one second, as when only one of two swapped
    identities is decided.
    """
    name = _Names(a, comparison.partner)
    mine = {(one.second, one.instance): one for one in a.sightings}
    theirs = {(one.second, one.instance): one for one in b.sightings}
    kept, added = dict(mine), []
    moments, open_ones = list(a.moments), []
    for difference in comparison.differences:
        if difference.id not in decisions:
            open_ones.append(difference)
        elif decisions[difference.id] == "b" and difference.kind == "moment":
            moments = _moments_of_b(moments, b, difference, name)
        elif decisions[difference.id] == "b":
            for second in range(difference.first, difference.last + 1):
                kept.pop((second, difference.a), None)
                new = theirs.get((second, difference.b))
                if new is not None:
                    instance = difference.a if difference.a and difference.kind != "identity" else name.of(difference.b)
                    added.append(new.model_copy(update={"instance": instance}))
    for sighting in added:
        key = (sighting.second, sighting.instance)
        if key in kept and kept[key] != sighting:
            expected = "one: decide about both tracks alike"
            location = f"video {a.video.id!r}, {sighting.second} s, instance {sighting.instance!r}"
            raise InputError(location, found="two positions", expected=expected)
        kept[key] = sighting
    return Annotation(video=a.video, sightings=tuple(kept.values()), moments=tuple(moments)), open_ones


class _Names:
    def __init__(self, a: Annotation, partner: Mapping[str, str]) -> None:
        self._taken = {sighting.instance for sighting in a.sightings} | {moment.instance for moment in a.moments}
        self._partner = partner

    def of(self, instance: str) -> str:
        alone = f"{instance}-b" if instance in self._taken else instance
        return self._partner.get(instance, alone)


def _check_single(annotation: Annotation) -> None:
    times = Counter((seen.second, seen.instance) for seen in annotation.sightings)
    twice = next((key for key, count in times.items() if count > 1), None)
    if twice is not None:
        location = f"video {annotation.video.id!r}, {twice[0]} s, instance {twice[1]!r}"
        raise InputError(location, found="two positions", expected="one at a second")


def _seconds(a: Annotation, b: Annotation) -> Iterator[tuple[int, list[Sighting], list[Sighting]]]:
    left, right = a.by_second(), b.by_second()
    for second in sorted({*left, *right}):
        yield second, left.get(second, []), right.get(second, [])


def _paired(left: Sequence[Sighting], right: Sequence[Sighting]) -> list[tuple[Sighting, Sighting, float]]:
    """Boxes paired one to one, with their overlaps; the same class and name break ties."""
    one, other = ([each for each in some if each.box is not None] for some in (left, right))
    if not one or not other:
        return []
    overlap = np.array([[0.0 if x.box is None or y.box is None else x.box.overlap(y.box) for y in other] for x in one])
    alike = np.array([[(class_of(x) == class_of(y)) + (x.instance == y.instance) for y in other] for x in one])
    worth = np.where(overlap >= ALIKE, overlap + 1e-6 * alike, 0.0)
    rows = zip(*linear_sum_assignment(-worth), strict=True)
    return [(one[i], other[j], float(overlap[i, j])) for i, j in rows if worth[i, j] > 0]


def _partners(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    counts = Counter(pairs)
    own, other = (sorted({pair[side] for pair in counts}) for side in (0, 1))
    if not counts:
        return {}
    table = np.array(
        [[counts.get((x, y), 0) + (0.5 if x == y and (x, y) in counts else 0) for y in other] for x in own]
    )
    rows = zip(*linear_sum_assignment(-table), strict=True)
    return {other[j]: own[i] for i, j in rows if table[i, j] > 0}


def class_of(one: Sighting | AnnotatedMoment) -> str:
    """The official name of the class, or its own."""
    return official_name(one.class_name) or one.class_name


_Found = tuple[DifferenceKind, str, str, str]


def _differences(
    left: Sequence[Sighting],
    right: Sequence[Sighting],
    pairs: Sequence[tuple[Sighting, Sighting, float]],
    partner: Mapping[str, str],
) -> Iterator[_Found]:
    for x, y, _ in pairs:
        yield from _of_pair(x, y, partner)
    mine = {x.instance: x for x in left if x.instance not in {one.instance for one, _, _ in pairs}}
    for y in right:
        if y.instance in {one.instance for _, one, _ in pairs}:
            continue
        name = partner.get(y.instance, "")
        if name not in mine:
            yield ("only-b" if y.box else "covered"), "", y.instance, f"nothing | {_what(y)}"
            continue
        x = mine.pop(name)
        if x.box is not None and y.box is not None:
            yield "position", x.instance, y.instance, f"two boxes of {x.class_name}"
        elif x.box is not None or y.box is not None:
            yield "covered", x.instance, y.instance, f"{_what(x)} | {_what(y)}"
    for x in mine.values():
        yield ("only-a" if x.box else "covered"), x.instance, "", f"{_what(x)} | nothing"


def _of_pair(x: Sighting, y: Sighting, partner: Mapping[str, str]) -> Iterator[_Found]:
    if class_of(x) != class_of(y):
        yield "class", x.instance, y.instance, f"{x.class_name} | {y.class_name}"
    if partner.get(y.instance) != x.instance:
        yield "identity", x.instance, y.instance, f"{x.instance} | {partner.get(y.instance, y.instance)}"
    if (x.occluded, x.in_patient) != (y.occluded, y.in_patient):
        yield "state", x.instance, y.instance, f"{_state(x)} | {_state(y)}"


def _what(sighting: Sighting) -> str:
    return sighting.class_name if sighting.box is not None else f"{sighting.class_name} covered"


def _state(sighting: Sighting) -> str:
    return ("partly covered" if sighting.occluded else "plain") + ("" if sighting.in_patient else ", outside")


def _runs(seconds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of each run of consecutive seconds."""
    first = last = seconds[0]
    for second in seconds[1:]:
        if second > last + 1:
            yield first, last
            first = second
        last = second
    yield first, last


def _difference(video: str, found: _Found, first: int, last: int) -> TrackDifference:
    kind, a, b, detail = found
    label = detail.partition(":")[0] if kind == "moment" else kind
    name = f"{video}@{first}-{last}:{label}:{a or '-'}|{b or '-'}"
    return TrackDifference(name, video, first, last, kind, a, b, detail)


def _moments(a: Annotation, b: Annotation, partner: Mapping[str, str], moment_s: float) -> Iterator[TrackDifference]:
    theirs = {one: name for name, one in partner.items()}
    pairs = {(theirs.get(moment.instance, ""), moment.instance) for moment in a.moments}
    pairs |= {(moment.instance, partner.get(moment.instance, "")) for moment in b.moments}
    for pair in sorted(pairs):
        for kind in ("insertion", "retrieval"):
            x = sorted(moment.time for moment in a.moments if moment.instance == pair[1] and moment.kind == kind)
            y = sorted(moment.time for moment in b.moments if moment.instance == pair[0] and moment.kind == kind)
            if len(x) == len(y) and all(abs(s - t) <= moment_s for s, t in zip(x, y, strict=True)):
                continue
            shown = " | ".join(", ".join(f"{time:g} s" for time in times) or "none" for times in (x, y))
            first = int(min(x + y))
            yield _difference(a.video.id, ("moment", pair[1], pair[0], f"{kind}: {shown}"), first, int(max(x + y)))


def _moments_of_b(
    moments: list[AnnotatedMoment], b: Annotation, difference: TrackDifference, name: _Names
) -> list[AnnotatedMoment]:
    kind = difference.detail.partition(":")[0]
    kept = [moment for moment in moments if not (moment.instance == difference.a and moment.kind == kind)]
    instance = difference.a or name.of(difference.b)
    new = [moment for moment in b.moments if moment.instance == difference.b and moment.kind == kind]
    return [*kept, *(each.model_copy(update={"instance": instance}) for each in new)]

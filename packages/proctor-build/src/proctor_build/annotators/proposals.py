"""Propose corrections of boxes from a detector that has not seen the video: missing, misplaced or mislabelled boxes.

People decide on each proposal; only accepted ones change an annotation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from proctor.core import InputError
from proctor.tracks import AnnotatedBox, Annotation, Sighting
from proctor_build.annotators.tables import Cells, read_rows

SAME = 0.4
"""A box and a detection with at least this overlap (intersection over union) show the same object. A box displaced by
half the size of a small object overlaps it by a third; two careful annotators' boxes overlap by more than half."""

ONCE = 0.5
"""Two detections of one class with a larger overlap show the same object."""

NEAR = 1.5
"""The largest distance of a misplaced box from a detection, in diagonals of the larger of both."""

TWICE = 0.3
"""A detection with at least this overlap with a box of its class is no missing box."""

CROSSED = 0.75
"""Two detections of different classes with a larger overlap show the same object."""

ProposalKind = Literal["missing", "misplaced", "mislabelled"]


@dataclass(frozen=True, slots=True)
class BoxDetection:
    """A detected box at a second of a video, with its class and a score from 0 to 1."""

    video: str
    second: int
    class_name: str
    box: AnnotatedBox
    score: float


def read_detections(file: Path) -> list[BoxDetection]:
    """The detections in a table with the columns video, second, class, x, y, width, height (pixels, origin at the top
    left) and score. Raises one `InputError` with all faults."""

    def read(cells: Cells) -> BoxDetection | None:
        video, class_name = cells.text("video"), cells.text("class")
        second = cells.number_in("second", 0, 360_000)
        if second != int(second):
            cells.fault("second", f"{second:g}", "a whole second")
        x, y = (cells.number_in(name, -1e5, 1e5) for name in ("x", "y"))
        width, height = (cells.number_in(name, 0, 1e5) for name in ("width", "height"))
        score = cells.number_in("score", 0, 1)
        if not cells.sound:
            return None
        return BoxDetection(video, int(second), class_name, AnnotatedBox(x=x, y=y, width=width, height=height), score)

    columns = ("video", "second", "class", "x", "y", "width", "height", "score")
    return read_rows(file, columns, read)


@dataclass(frozen=True, slots=True)
class BoxProposal:
    """A proposed correction of one box. `instance` is that of the box, of the track that a missing box would continue,
    or a new name. `was` is the current class, '' for a missing box; `class_name`, `x`, `y`, `width` and `height` are the
    proposed values. `score` is the detection's, `reason` describes it."""

    id: str
    video: str
    second: int
    kind: ProposalKind
    instance: str
    was: str
    class_name: str
    x: float
    y: float
    width: float
    height: float
    score: float
    reason: str

    @property
    def box(self) -> AnnotatedBox:
        """The proposed box."""
        return AnnotatedBox(x=self.x, y=self.y, width=self.width, height=self.height)


ACCEPT, REJECT = "accept", "reject"


def sure_score(annotations: Sequence[Annotation], detections: Sequence[BoxDetection]) -> float:
    """The threshold at which detections agree best with the current boxes (largest F1; a match has the same class and an
    overlap of `SAME`), since networks differ in calibration. ½ without detections.

    Missing boxes count as false detections, so the threshold is slightly too high, never too low."""
    found = _by_frame(detections)
    hits: list[tuple[float, bool]] = []
    boxes = 0
    for annotation in annotations:
        for second, seen in annotation.by_second().items():
            drawn = [sighting for sighting in seen if sighting.box is not None]
            boxes += len(drawn)
            some = _distinct(found.pop((annotation.video.id, second), []))
            matched = {
                b for a, b in _pairs(drawn, some, SAME) if _class(drawn[a].class_name) == _class(some[b].class_name)
            }
            hits += [(one.score, row in matched) for row, one in enumerate(some)]
    hits += [(box_detection.score, False) for some in found.values() for box_detection in _distinct(some)]
    if not hits:
        return 0.5
    ordered = sorted(hits, key=lambda hit: -hit[0])
    right = np.cumsum([hit for _, hit in ordered])
    f1 = 2 * right / (boxes + np.arange(1, len(ordered) + 1))
    return ordered[int(np.argmax(f1))][0]


def propose(
    annotation: Annotation, detections: Iterable[BoxDetection], score: float, seconds: Iterable[int] | None = None
) -> list[BoxProposal]:
    """The corrections that held-out detections of a video suggest, in order of time.

    `seconds` are the annotated seconds (default: all with a box or a detection). At each, only the best of detections
    that overlap by more than `ONCE` (of different classes: `CROSSED`) is kept. Boxes and detections are paired one to
    one for the largest sum of overlaps of at least `SAME`. Then boxes are

    - *mislabelled*, if the class of their detection differs, its score is `score` or more, and no detection of the
      box's class with half that score is there;
    - *misplaced*, if neither the box nor a detection of its class, within the distance `NEAR`, has a pair;
    - *missing* at remaining detections with `score` or more that overlap no box (by `TWICE`; of another class `SAME`).

    No box is missing where a covered instance has its nearest box in time, nor of a covered class that has none.
    """
    video = annotation.video.id
    found = _by_frame(detection for detection in detections if detection.video == video)
    by_second = annotation.by_second()
    due = sorted({*by_second, *(second for _, second in found)} if seconds is None else set(seconds))
    tracks = _Tracks(annotation)
    proposals: list[BoxProposal] = []
    for second in due:
        proposals += _at_second(tracks, video, by_second.get(second, []), found.get((video, second), []), score)
    return proposals


def _at_second(
    tracks: _Tracks, video: str, seen: Sequence[Sighting], everything: Sequence[BoxDetection], score: float
) -> Iterator[BoxProposal]:
    """The corrections of one second (see `propose`): mislabelled boxes, misplaced ones, missing ones."""
    some = _distinct(everything)
    boxes = [sighting for sighting in seen if sighting.box is not None]
    pairs = _pairs(boxes, some, SAME)
    for a, b in pairs:
        if some[b].score >= score and _other_class(boxes[a], some[b], everything):
            yield _proposal("mislabelled", video, boxes[a], some[b])
    paired, paired_detections = {a for a, _ in pairs}, {b for _, b in pairs}
    left = [box for k, box in enumerate(boxes) if k not in paired]
    free = [one for k, one in enumerate(some) if k not in paired_detections and one.score >= score]
    moved = _moved(left, free)
    for a, b in moved:
        yield _proposal("misplaced", video, left[a], free[b])
    moved_detections = {b for _, b in moved}
    drawn = [*boxes, *(tracks.covered(sighting) for sighting in seen if sighting.box is None)]
    new = _off([one for k, one in enumerate(free) if k not in moved_detections], drawn)
    yield from (_missing(tracks, one) for one in new)


def _off(detections: Sequence[BoxDetection], boxes: Sequence[Sighting]) -> list[BoxDetection]:
    """The detections that are on none of the boxes."""
    return [one for one in detections if not any(_on(box, one) for box in boxes)]


def _on(box: Sighting, seen: BoxDetection) -> bool:
    least = TWICE if _class(box.class_name) == _class(seen.class_name) else SAME
    if box.box is None:
        return least == TWICE
    return box.box.overlap(seen.box) >= least


def _class(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


def _by_frame(detections: Iterable[BoxDetection]) -> dict[tuple[str, int], list[BoxDetection]]:
    found: dict[tuple[str, int], list[BoxDetection]] = defaultdict(list)
    for detection in detections:
        found[detection.video, detection.second].append(detection)
    return dict(found)


def _distinct(detections: Sequence[BoxDetection]) -> list[BoxDetection]:
    """The best of all detections of the same object."""
    kept: list[BoxDetection] = []
    for detection in sorted(
        detections, key=lambda detection: (-detection.score, detection.class_name, detection.box.x, detection.box.y)
    ):
        if all(
            detection.box.overlap(other.box)
            <= (ONCE if _class(detection.class_name) == _class(other.class_name) else CROSSED)
            for other in kept
        ):
            kept.append(detection)
    return kept


def _pairs(boxes: Sequence[Sighting], detections: Sequence[BoxDetection], least: float) -> list[tuple[int, int]]:
    """Boxes and detections paired one to one for the largest sum of overlaps; the same class breaks ties."""
    if not boxes or not detections:
        return []
    overlap = np.array([[0.0 if a.box is None else a.box.overlap(b.box) for b in detections] for a in boxes])
    alike = np.array([[_class(a.class_name) == _class(b.class_name) for b in detections] for a in boxes])
    worth = np.where(overlap >= least, overlap + 0.1 * alike, 0.0)
    return [(int(a), int(b)) for a, b in zip(*linear_sum_assignment(-worth), strict=True) if worth[a, b] > 0]


def _other_class(box: Sighting, detection: BoxDetection, everything: Sequence[BoxDetection]) -> bool:
    own = _class(box.class_name)
    if own == _class(detection.class_name) or box.box is None:
        return False
    return not any(
        _class(box_detection.class_name) == own
        and box_detection.box.overlap(box.box) >= SAME
        and box_detection.score >= detection.score / 2
        for box_detection in everything
    )


def _moved(boxes: Sequence[Sighting], detections: Sequence[BoxDetection]) -> list[tuple[int, int]]:
    if not boxes or not detections:
        return []
    far = np.full((len(boxes), len(detections)), 1e6)
    for a, box in enumerate(boxes):
        for b, one in enumerate(detections):
            if box.box is not None and _class(box.class_name) == _class(one.class_name):
                apart = float(np.hypot(*np.subtract(box.box.centre, one.box.centre)))
                far[a, b] = apart / max(*(np.hypot(each.width, each.height) for each in (box.box, one.box)), 1.0)
    return [(int(a), int(b)) for a, b in zip(*linear_sum_assignment(far), strict=True) if far[a, b] <= NEAR]


def _proposal(kind: ProposalKind, video: str, box: Sighting, seen: BoxDetection) -> BoxProposal:
    overlap = 0.0 if box.box is None else box.box.overlap(seen.box)
    if kind == "mislabelled":
        location, reason = box.box or seen.box, f"a {seen.class_name} is seen in the box of a {box.class_name}"
    else:
        location, reason = seen.box, f"the {seen.class_name} is seen elsewhere, overlap {overlap:.2f}"
    name = f"{video}@{box.second}:{box.instance}:{kind}"
    return _at(name, kind, (video, box.second, box.instance, box.class_name), seen, location, reason)


def _at(
    name: str, kind: ProposalKind, stood: tuple[str, int, str, str], seen: BoxDetection, box: AnnotatedBox, reason: str
) -> BoxProposal:
    video, second, instance, was = stood
    x, y, width, height = (round(value, 2) for value in (box.x, box.y, box.width, box.height))
    return BoxProposal(
        id=name, video=video, second=second, kind=kind, instance=instance, was=was, class_name=seen.class_name,
        x=x, y=y, width=width, height=height, score=round(seen.score, 4), reason=reason,
    )  # fmt: skip


class _Tracks:
    """The tracks that a missing box may continue, and names for new ones."""

    def __init__(self, annotation: Annotation) -> None:
        self.by_second = annotation.by_second()
        self.names = {sighting.instance for sighting in annotation.sightings} | {
            moment.instance for moment in annotation.moments
        }
        self.added: list[tuple[int, Sighting]] = []

    def covered(self, sighting: Sighting) -> Sighting:
        """A sighting without a box, with the box of the same instance that is nearest in time, if any."""
        own = [other for seen in self.by_second.values() for other in seen if other.instance == sighting.instance]
        boxed = [other for other in own if other.box is not None]
        near = min(boxed, key=lambda other: abs(other.second - sighting.second), default=sighting)
        return sighting.model_copy(update={"box": near.box})

    def around(self, seen: BoxDetection) -> str:
        """The instance of the same class without a box now whose box within two seconds overlaps most; else a new
        name."""
        here = {one.instance for one in self.by_second.get(seen.second, [])}
        here |= {one.instance for second, one in self.added if second == seen.second}
        best, most = "", 0.1
        near = [one for step in (-1, 1, -2, 2) for one in self.by_second.get(seen.second + step, [])]
        near += [one for second, one in self.added if 0 < abs(second - seen.second) <= 2]
        for one in near:
            alike = _class(one.class_name) == _class(seen.class_name) and one.instance not in here
            overlap = one.box.overlap(seen.box) if one.box is not None and alike else 0.0
            if overlap > most:
                best, most = one.instance, overlap
        if not best:
            number = 1
            while (best := f"{_class(seen.class_name).replace(' ', '-')}-new-{number}") in self.names:
                number += 1
            self.names.add(best)
        sighting = Sighting(second=seen.second, instance=best, class_name=seen.class_name, box=seen.box)
        self.added.append((seen.second, sighting))
        return best


def _missing(tracks: _Tracks, seen: BoxDetection) -> BoxProposal:
    instance = tracks.around(seen)
    name = f"{seen.video}@{seen.second}:{instance}:missing"
    stood = (seen.video, seen.second, instance, "")
    return _at(name, "missing", stood, seen, seen.box, f"a {seen.class_name} is seen where no box is drawn")


def corrected(annotation: Annotation, proposals: Iterable[BoxProposal], decisions: Mapping[str, str]) -> Annotation:
    """The annotation with all accepted proposals applied.

    A corrected box keeps its instance, attributes and flags; a moved box is no longer `filled`. Raises `InputError` if
    an accepted proposal does not fit the annotation, since it was made for another version.
    """
    stands = {(sighting.second, sighting.instance): sighting for sighting in annotation.sightings}
    for proposal in proposals:
        if proposal.video != annotation.video.id or decisions.get(proposal.id) != ACCEPT:
            continue
        key = (proposal.second, proposal.instance)
        box = stands.get(key)
        if (box is None) != (proposal.kind == "missing") or (box is not None and box.class_name != proposal.was):
            found = "no such box" if box is None else f"a box of a {box.class_name}"
            expected = f"the box of a {proposal.was}" if proposal.was else "none"
            raise InputError(f"proposal {proposal.id!r}", found=found, expected=f"{expected}: propose again")
        if box is None:
            stands[key] = Sighting(
                second=proposal.second, instance=proposal.instance, class_name=proposal.class_name, box=proposal.box
            )
        elif proposal.kind == "mislabelled":
            stands[key] = box.model_copy(update={"class_name": proposal.class_name})
        else:
            stands[key] = box.model_copy(update={"box": proposal.box, "filled": False})
    twice = len(annotation.sightings) - len({(sighting.second, sighting.instance) for sighting in annotation.sightings})
    if twice:
        raise InputError(f"video {annotation.video.id!r}", found="an instance at two positions in one second",
                         expected="one: proctor build convert lists them")  # fmt: skip
    return Annotation(video=annotation.video, sightings=tuple(stands.values()), moments=annotation.moments)


_ASKED = "proposal"


def with_proposals(annotation: Annotation, proposals: Iterable[BoxProposal]) -> Annotation:
    """The annotation with each proposal as a box of its own, for CVAT: instance and attribute `proposal` are its id;
    `kind`, `score` and `reason` describe it; a person writes accept or reject into `decision` and a name into `by`.
    `asked_back` reads the decisions."""
    shown = [
        Sighting(
            second=proposal.second,
            instance=proposal.id[:200],
            class_name=proposal.class_name,
            box=proposal.box,
            attributes={
                _ASKED: proposal.id[:200], "kind": proposal.kind, "score": f"{proposal.score:.2f}", "reason": proposal.reason[:200],
                "decision": "open", "by": "nobody",
            },
        )
        for proposal in proposals
        if proposal.video == annotation.video.id
    ]  # fmt: skip
    return Annotation(video=annotation.video, sightings=(*annotation.sightings, *shown), moments=annotation.moments)


def asked_back(annotation: Annotation) -> tuple[Annotation, dict[str, str]]:
    """The annotation without the boxes that `with_proposals` added, and the decisions about them.

    Raises `InputError` for a decision that is neither accept nor reject, or without a name."""
    kept, decisions = [], dict[str, str]()
    for sighting in annotation.sightings:
        name = sighting.attributes.get(_ASKED)
        if name is None:
            kept.append(sighting)
            continue
        choice, by = (sighting.attributes.get(key, "").strip() for key in ("decision", "by"))
        if choice in {"", "open"}:
            continue
        if choice not in {ACCEPT, REJECT} or by in {"", "nobody"}:
            found = f"decision {choice!r} by {by or 'nobody'!r}"
            raise InputError(f"proposal {name!r}", found=found, expected="accept or reject, and a name in 'by'")
        decisions[name] = choice
    return Annotation(video=annotation.video, sightings=tuple(kept), moments=annotation.moments), decisions

"""Annotations with faults that are known: boxes left out, of another class, drawn beside the thing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from proctor.tracks import AnnotatedBox, Annotation, Sighting
from proctor_build.annotators.proposals import BoxProposal

Fault = tuple[str, int, str, str]
"""Video, second, instance and kind: missing, mislabelled or misplaced."""


@dataclass(frozen=True)
class Planted:
    """What annotators would have drawn, what they drew, and where it differs."""

    truth: Annotation
    crowd: Annotation
    faults: frozenset[Fault]


def planted(truth: Annotation, seed: int, shares: tuple[float, float, float] = (0.10, 0.05, 0.05)) -> Planted:
    """The shares of boxes are left out, given another class, and moved by 0.6 to 1 of their size in any direction."""
    rng = np.random.default_rng([seed, *truth.video.id.encode()])
    classes = truth.classes
    drawn: list[Sighting] = []
    faults: set[Fault] = set()
    for one in truth.sightings:
        lot = rng.random()
        if one.box is None or lot >= sum(shares):
            drawn.append(one)
            continue
        kind = "missing" if lot < shares[0] else "mislabelled" if lot < shares[0] + shares[1] else "misplaced"
        faults.add((truth.video.id, one.second, one.instance, kind))
        if kind == "mislabelled":
            others = [name for name in classes if name != one.class_name]
            drawn.append(one.model_copy(update={"class_name": others[int(rng.integers(len(others)))]}))
        elif kind == "misplaced":
            angle, far = rng.uniform(0, math.tau), rng.uniform(0.6, 1.0)
            box = one.box
            moved = AnnotatedBox(
                x=box.x + far * box.width * math.cos(angle),
                y=box.y + far * box.height * math.sin(angle),
                width=box.width,
                height=box.height,
            )
            drawn.append(one.model_copy(update={"box": moved}))
    crowd = Annotation(video=truth.video, sightings=tuple(drawn), moments=truth.moments)
    return Planted(truth, crowd, frozenset(faults))


def alike(one: Annotation, other: Annotation, least: float = 0.5) -> float:
    """The share of boxes of both that have a partner of the same class in the other, at this overlap (F1)."""
    hits = 0
    theirs = other.by_second()
    for second, seen in one.by_second().items():
        left = [box for box in theirs.get(second, []) if box.box is not None]
        for box in seen:
            best = max(left, key=lambda each: _overlap(box, each), default=None)
            if best is not None and _overlap(box, best) >= least:
                left.remove(best)
                hits += 1
    total = sum(box.box is not None for each in (one, other) for box in each.sightings)
    return 2 * hits / total


def _overlap(one: Sighting, other: Sighting) -> float:
    if one.box is None or other.box is None or one.class_name != other.class_name:
        return 0.0
    return one.box.overlap(other.box)


def counted(flags: Iterable[Fault], faults: Sequence[Fault] | frozenset[Fault]) -> tuple[float, float]:
    """Recall and precision of what was flagged."""
    flagged, known = set(flags), set(faults)
    return len(flagged & known) / len(known), len(flagged & known) / max(1, len(flagged))


def flags_of(proposals: list[BoxProposal], truth: Annotation) -> list[Fault]:
    """Each proposal as the fault it is of: a missing box by the instance that really is there."""
    by_second = truth.by_second()
    found = []
    for one in proposals:
        name = one.instance
        if one.kind == "missing":
            here = [other for other in by_second.get(one.second, []) if other.box and other.box.overlap(one.box) >= 0.5]
            name = here[0].instance if here and here[0].class_name == one.class_name else f"no {name}"
        found.append((one.video, one.second, name, str(one.kind)))
    return found

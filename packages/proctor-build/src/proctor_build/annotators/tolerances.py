"""Tolerances from the differences between two annotators' tracks: of times, and of shares of a video."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from pydantic import JsonValue, TypeAdapter

from proctor.core import count_of, number_interval
from proctor.stats import (
    FEWEST_DIFFERENCES,
    FEWEST_GROUPS,
    AnnotationTolerance,
    Estimate,
    Resampling,
    annotation_tolerance,
)
from proctor.tracks import Annotation
from proctor_build.annotators.pairs import TrackComparison, class_of

AnnotatedPair = tuple[Annotation, Annotation, TrackComparison]
"""Two annotators' tracks of one video, compared."""

MeasuredKind = Literal["moment", "appearance", "share", "count"]
"""What two annotators measure: times of insertion and retrieval in seconds; the first and the last second in which an
instance is seen; the share of a video in which a class is seen, in percentage points; and the number of its instances."""

MEASURED: tuple[MeasuredKind, ...] = get_args(MeasuredKind)


@dataclass(frozen=True, slots=True)
class MeasuredTolerances:
    """The tolerances that follow from the differences of two annotators: of a kind, how many there are, in how many videos,
    and what they say (`proctor.stats.annotation_tolerance`)."""

    kinds: Mapping[MeasuredKind, AnnotationTolerance]

    @property
    def moment_apart(self) -> float | None:
        """What the moments of two annotators stay within in 95 of 100 cases; None with too few."""
        return self.kinds["moment"].apart.value

    @property
    def time_s(self) -> float | None:
        """The tolerance of times in seconds: the larger one of moments and appearances, to a tenth, and at least 1, since
        answers are whole seconds; None with too few of both."""
        return _at_least_one([self.kinds["moment"].tolerance.value, self.kinds["appearance"].tolerance.value])

    @property
    def share_pp(self) -> float | None:
        """The tolerance of shares in percentage points, at least 1; None with too few."""
        return _at_least_one([self.kinds["share"].tolerance.value])

    def to_json(self) -> dict[str, JsonValue]:
        """The estimates by kind, and the tolerances of times and shares, as plain data."""
        plain: dict[str, JsonValue] = {
            kind: TypeAdapter(dict[str, JsonValue]).validate_python(asdict(found)) for kind, found in self.kinds.items()
        }
        return plain | {"time_s": self.time_s, "share_pp": self.share_pp}


def _at_least_one(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(1.0, *(math.ceil(10 * value - 1e-9) / 10 for value in known)) if known else None


def measured_tolerances(pairs: Sequence[AnnotatedPair], plan: Resampling = Resampling()) -> MeasuredTolerances:
    """The tolerances from all videos that two annotators compared, with intervals over videos."""
    measured = [(a.video.id, _apart(a, b, comparison.partner)) for a, b, comparison in pairs]
    kinds: dict[MeasuredKind, AnnotationTolerance] = {}
    for kind in MEASURED:
        found = [(apart, video) for video, some in measured for apart in some[kind]]
        kinds[kind] = annotation_tolerance([apart for apart, _ in found], [video for _, video in found], plan=plan)
    return MeasuredTolerances(kinds)


_UNITS = {
    "moment": ("times of insertion and retrieval", " s"),
    "appearance": ("first and last second in view", " s"),
    "share": ("shares of a video in view", " points"),
    "count": ("numbers of instances", ""),
}


def tolerance_lines(measured: MeasuredTolerances) -> list[str]:
    """What two annotators differ by and the tolerances that follow, one line for each kind."""
    lines = []
    for kind, found in measured.kinds.items():
        name, unit = _UNITS[kind]
        number = f"{count_of(found.apart.n, 'pair')} in {count_of(found.apart.groups, 'video')}"
        if found.apart.value is None:
            fewest = f"{FEWEST_DIFFERENCES} pairs in {count_of(FEWEST_GROUPS, 'video')}"
            lines.append(f"{name}: no tolerance from {number}, expected at least {fewest}")
        else:
            lines.append(
                f"{name}: 95 % of {number} within {estimate_text(found.apart)}{unit}; tolerance "
                f"{estimate_text(found.tolerance)}{unit}"
            )
    return lines


def estimate_text(estimate: Estimate) -> str:
    """An estimate with its interval."""
    value = "–" if estimate.value is None else f"{estimate.value:.2f}"
    return value if estimate.ci_low is None else f"{value} ({number_interval(estimate.ci_low, estimate.ci_high, 2)})"


def _apart(a: Annotation, b: Annotation, partner: Mapping[str, str]) -> dict[MeasuredKind, tuple[float, ...]]:
    """a minus b of what both marked. Of moments, an instance counts where both have the same number of them; of
    appearances, shares and counts, instances and classes that both have."""
    moments = [
        s - t
        for other, own in sorted(partner.items())
        for kind in ("insertion", "retrieval")
        for s, t in _paired_times(a, own, b, other, kind)
    ]
    seen = [
        {name: [sighting.second for sighting in some] for name, some in each.by_instance().items()} for each in (a, b)
    ]
    both = [(seen[0][own], seen[1][other]) for other, own in sorted(partner.items())]
    appearances = [float(end(x) - end(y)) for x, y in both if x and y for end in (min, max)]
    classes = [_seconds_and_instances(each) for each in (a, b)]
    common = sorted(classes[0].keys() & classes[1].keys())
    length = int(a.video.seconds) + 1
    shares = [100 * (classes[0][name][0] - classes[1][name][0]) / length for name in common]
    counts = [float(classes[0][name][1] - classes[1][name][1]) for name in common]
    return {
        "moment": tuple(moments), "appearance": tuple(appearances), "share": tuple(shares), "count": tuple(counts),
    }  # fmt: skip


def _paired_times(a: Annotation, own: str, b: Annotation, other: str, kind: str) -> list[tuple[float, float]]:
    """The times of one kind of an instance in temporal order; none if the annotators differ in their number."""
    x, y = (
        sorted(moment.time for moment in each.moments if (moment.instance, moment.kind) == (name, kind))
        for each, name in ((a, own), (b, other))
    )
    return list(zip(x, y, strict=True)) if len(x) == len(y) else []


def _seconds_and_instances(annotation: Annotation) -> dict[str, tuple[int, int]]:
    """The number of seconds in which a class is seen, and of its instances."""
    seconds: dict[str, set[int]] = defaultdict(set)
    instances: dict[str, set[str]] = defaultdict(set)
    for sighting in annotation.sightings:
        seconds[class_of(sighting)].add(sighting.second)
        instances[class_of(sighting)].add(sighting.instance)
    return {name: (len(seconds[name]), len(instances[name])) for name in seconds}

"""The annotation of one video: a box a second for every instance, with its class, and the moments at which instances
are inserted or retrieved."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from proctor.core import FrozenModel, InputError

OBJECTS: MappingProxyType[str, str] = MappingProxyType(
    json.loads(files(__package__).joinpath("objects.json").read_text(encoding="utf-8"))
)
"""Known classes of foreign objects with their definitions. Other classes are allowed."""

ARISING = frozenset({"Specimen", "Gallstone"})
"""Classes that come from the body itself: they are not inserted."""

STAYING = frozenset({"Clip", "Mesh", "External Drain", "Absorbable Hemostatic Agent"})
"""Classes that may remain in the body after the operation."""

_KNOWN = {name.casefold(): name for name in OBJECTS}


def official_name(name: str) -> str | None:
    """The class as spelled in `OBJECTS`, ignoring case and white space; None for other classes.

    >>> official_name("specimen  bag"), official_name("anvil")
    ('Specimen Bag', None)
    """
    return _KNOWN.get(" ".join(name.replace("_", " ").split()).casefold())


K = TypeVar("K")
V = TypeVar("V")

FORMAT_VERSION = 1
"""The version of the file that an `Annotation` is written as."""

MOST_SIGHTINGS = 250_000
"""For one video: 35 instances in view for two hours. More would need gigabytes of memory."""

RESERVED = ("instance", "hidden", "in_patient", "filled", "visibility", "inserted_at", "retrieved_at", "moment")
"""Attributes with a fixed meaning, which annotators can't use for their own."""

MomentKind = Literal["insertion", "retrieval"]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a name is printable text on one line")
    return text


Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_printable)
]


class AnnotatedBox(FrozenModel):
    """A rectangle in pixels, origin at the top left of the frame. It may reach outside the frame or be empty, which
    `find` reports."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> tuple[float, float]:
        """The middle, in pixels."""
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def area(self) -> float:
        """Square pixels; 0 for a box without extent."""
        return max(0.0, self.width) * max(0.0, self.height)

    def overlap(self, other: AnnotatedBox) -> float:
        """Intersection over union, 0 to 1; 0 where both are empty."""
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        down = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        shared = max(0.0, across) * max(0.0, down)
        union = self.area + other.area - shared
        return shared / union if union > 0 else 0.0

    def towards(self, other: AnnotatedBox, share: float) -> AnnotatedBox:
        """Linear interpolation: this box at `share` 0, the other one at 1."""
        return AnnotatedBox(
            x=self.x + share * (other.x - self.x),
            y=self.y + share * (other.y - self.y),
            width=self.width + share * (other.width - self.width),
            height=self.height + share * (other.height - self.height),
        )


class Sighting(FrozenModel):
    """One instance at one whole second of the video.

    `box` is None if the annotator marked the instance as there but covered; a second without a sighting says nothing.
    `occluded`: partly covered, so that no question relies on it. `visibility`: the visible share (0–1), if known.
    `in_patient` is False outside the body (in the trocar, on the drape). `filled`: added by `complete`.
    """

    second: int = Field(ge=0)
    instance: Name
    class_name: Name
    box: AnnotatedBox | None
    occluded: bool = False
    in_patient: bool = True
    filled: bool = False
    visibility: float | None = Field(default=None, ge=0, le=1)
    attributes: dict[Name, Name] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _own(self) -> Self:
        taken = sorted(self.attributes.keys() & set(RESERVED))
        if taken:
            raise ValueError(f"the attribute {taken[0]!r} has a meaning of its own")
        return self

    @property
    def clear(self) -> bool:
        """Whether it was drawn by an annotator, inside the body and not occluded."""
        return self.box is not None and self.in_patient and not self.occluded and not self.filled


class AnnotatedMoment(FrozenModel):
    """An instance enters the body, or leaves it, at `time` seconds."""

    kind: MomentKind
    instance: Name
    class_name: Name
    time: float = Field(ge=0)


class AnnotatedVideo(FrozenModel):
    """The video: `file` in the media folder, size in pixels, length in seconds, frames per second (at least 1), and the
    kind of procedure, if known. It is annotated from `begins` seconds on, except the whole seconds in `unseen`: of the
    rest nothing is known, also not that nothing is there."""

    id: Name
    file: Name
    width: int = Field(gt=0, le=32_768)
    height: int = Field(gt=0, le=32_768)
    seconds: float = Field(gt=0, le=360_000)
    fps: float = Field(ge=1, le=1000)
    procedure: str = ""
    begins: float = Field(default=0.0, ge=0, exclude_if=lambda begins: not begins)
    unseen: tuple[int, ...] = Field(default=(), exclude_if=lambda unseen: not unseen)

    @model_validator(mode="after")
    def _annotated(self) -> Self:
        if self.begins >= self.seconds:
            raise ValueError(f"an annotation that begins before the video's end ({self.seconds:g} s)")
        return self

    @property
    def first_second(self) -> int:
        """The first whole second that is annotated."""
        return math.ceil(self.begins)

    @property
    def whole_seconds(self) -> int:
        """The number of whole seconds 0, 1 … with a frame."""
        return math.ceil(self.seconds)

    def frame_of(self, time: float) -> int:
        """The number of the frame nearest to a time, from 0."""
        return math.floor(time * self.fps + 0.5)


class Annotation(FrozenModel):
    """All that is annotated of one video. Sightings are sorted by second and instance, moments by time, so that
    annotations with the same content are equal."""

    kind: Literal["annotated video"] = "annotated video"
    format_version: int = Field(default=FORMAT_VERSION, ge=1, le=FORMAT_VERSION)
    video: AnnotatedVideo
    sightings: tuple[Sighting, ...] = Field(default=(), max_length=MOST_SIGHTINGS)
    moments: tuple[AnnotatedMoment, ...] = ()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        object.__setattr__(self, "sightings", tuple(sorted(self.sightings, key=_row)))
        moments = sorted(
            self.moments, key=lambda moment: (moment.time, moment.kind, moment.instance, moment.class_name)
        )
        object.__setattr__(self, "moments", tuple(moments))
        return self

    def by_second(self) -> dict[int, list[Sighting]]:
        """The sightings of every second that has some, in order."""
        return _grouped(self.sightings, lambda sighting: sighting.second)

    def by_instance(self) -> dict[str, list[Sighting]]:
        """The sightings of every instance that has some, each in order of time."""
        return _grouped(self.sightings, lambda sighting: sighting.instance)

    def moments_by_instance(self) -> dict[str, list[AnnotatedMoment]]:
        """The moments of every instance that has some, each in order of time."""
        return _grouped(self.moments, lambda annotated_moment: annotated_moment.instance)

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes, sorted."""
        named = {sighting.class_name for sighting in self.sightings} | {moment.class_name for moment in self.moments}
        return tuple(sorted(named))


def _grouped(values: Iterable[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    found: dict[K, list[V]] = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return found


def _row(sighting: Sighting) -> tuple[int, str, str, str]:
    return sighting.second, sighting.instance, sighting.class_name, sighting.model_dump_json(exclude={"second"})


def video_id(name: str) -> str:
    """The id of a video that another program's file calls `name`: without folders and the ending of a video file.

    >>> video_id("raw/liver.2024.MP4"), video_id("liver.2024")
    ('liver.2024', 'liver.2024')
    """
    from proctor.media import VIDEO_EXTENSIONS

    path = PurePath(name)
    return path.stem if path.suffix.lower() in VIDEO_EXTENSIONS else path.name


@dataclass(frozen=True)
class ReadDefaults:
    """Values for files that lack them: frames per second, the kind of procedure."""

    fps: float | None = None
    procedure: str = ""

    def __post_init__(self) -> None:
        if self.fps is not None and not 1 <= self.fps <= 1000:
            raise InputError("fps", found=f"{self.fps:g}", expected="1 to 1000")


_CALM_S = 1.5  # around an insertion or a retrieval it is unclear to the second what is in view


class Timeline:
    """An annotated video up to `end` seconds (default: all of it); nothing later is used, and nothing is claimed about
    seconds that nobody annotated.

    Subclasses that know more than an annotation, such as the simulator, override `quiet` and `plain`.
    """

    def __init__(self, annotation: Annotation, end: float | None = None) -> None:
        self.annotation = annotation
        self.end = annotation.video.seconds if end is None else end
        self._moments = [moment for moment in annotation.moments if moment.time <= self.end]
        self._by_second = {second: seen for second, seen in annotation.by_second().items() if second <= self.end}
        unseen = {second for second in annotation.video.unseen if second <= self.end}
        self.unseen = frozenset(unseen | set(range(min(annotation.video.first_second, int(self.end) + 1))))
        self._arrivals = [arrival for arrival in arrivals(annotation) if arrival.time <= self.end]

    def moments(self, kind: MomentKind, class_name: str | None = None) -> list[AnnotatedMoment]:
        """Insertions or retrievals, of one class or all, in order of time."""
        return [moment for moment in self._moments if moment.kind == kind and class_name in {None, moment.class_name}]

    def insertions(self, class_name: str | None = None) -> list[AnnotatedMoment]:
        return self.moments("insertion", class_name)

    def retrievals(self, class_name: str | None = None) -> list[AnnotatedMoment]:
        return self.moments("retrieval", class_name)

    def first(self, kind: MomentKind) -> dict[str, float]:
        """The time of the first such moment of each class, in order of time."""
        found: dict[str, float] = {}
        for moment in self.moments(kind):
            found.setdefault(moment.class_name, moment.time)
        return found

    def first_in(self) -> dict[str, float]:
        """The time of the first insertion of each class, in order of time."""
        return self.first("insertion")

    def first_out(self) -> dict[str, float]:
        """The time of the first retrieval of each class, in order of time."""
        return self.first("retrieval")

    def first_there(self) -> dict[str, float]:
        """The time since which each class is in the body, inserted or come loose there, in order of time."""
        found: dict[str, float] = {}
        for arrival in self._arrivals:
            found.setdefault(arrival.class_name, arrival.time)
        return found

    def inside(self, class_name: str | None = None) -> list[str]:
        """The instances in the body at the end, in order of arrival."""
        return [name for name, there in self._stays(class_name).items() if there]

    def outside(self, class_name: str | None = None) -> list[str]:
        """The instances that were in the body and are not at the end, each once."""
        return [name for name, there in self._stays(class_name).items() if not there]

    def returned(self) -> list[str]:
        """The instances that were retrieved and are in the body again at the end."""
        went = {retrieval.instance for retrieval in self.retrievals()}
        return [name for name in self.inside() if name in went]

    def _stays(self, class_name: str | None) -> dict[str, bool]:
        """Whether each instance that ever was in the body is there at the end."""
        there: dict[str, bool] = {}
        # of what happens at one time the arrival comes first
        for annotated_moment in sorted(
            [*self._arrivals, *self.retrievals()], key=lambda annotated_moment: annotated_moment.time
        ):
            if class_name in {None, annotated_moment.class_name}:
                there[annotated_moment.instance] = annotated_moment.kind == "insertion"
        return there

    def in_view(self, second: int) -> list[Sighting]:
        """The clear sightings at a second."""
        return [sighting for sighting in self._by_second.get(second, []) if sighting.clear]

    def last_clear(self, instance: str) -> Sighting | None:
        """The last box of an instance, if it is clear."""
        mine = [
            sighting
            for _, seen in sorted(self._by_second.items())
            for sighting in seen
            if sighting.instance == instance and sighting.box is not None
        ]
        return mine[-1] if mine and mine[-1].clear else None

    def shown(self, class_name: str) -> list[int]:
        """The seconds at which a class has a box inside the body."""
        return [
            second
            for second, seen in sorted(self._by_second.items())
            if any(
                sighting.class_name == class_name and sighting.box is not None and sighting.in_patient
                for sighting in seen
            )
        ]

    def quiet(self) -> list[int]:
        """The seconds at which it is clear what is in view: the same instances a second before and after, each with one
        clear sighting, and no insertion or retrieval nearby."""
        changes = [moment.time for moment in self._moments]
        seconds = range(int(self.end) + 1)
        names = [[sighting.instance for sighting in self.in_view(second)] for second in seconds]
        settled = [self._settled(second) for second in seconds]
        return [
            second
            for second in seconds[self.annotation.video.first_second + 2 : -1]
            if not self.unseen & {second - 1, second, second + 1}
            and settled[second - 1]
            and settled[second]
            and settled[second + 1]
            and names[second - 1] == names[second] == names[second + 1]
            and not any(abs(second - time) < _CALM_S for time in changes)
        ]

    def plain(self, instance: str) -> bool:
        """Whether the instance can be followed from its insertion on."""
        del instance
        return True

    def times_to_ask(self) -> list[int]:
        """The quiet seconds that questions may ask about."""
        return self.quiet()

    def _settled(self, second: int) -> bool:
        seen = self._by_second.get(second, [])
        instances = [sighting.instance for sighting in seen]
        return len(set(instances)) == len(instances) and all(
            sighting.clear or sighting.box is None for sighting in seen
        )


def arrivals(annotation: Annotation) -> list[AnnotatedMoment]:
    """When each instance came to be in the body, in order of time: its insertions, or its first sighting there for a
    specimen or a stone, which come loose in the body."""
    found = [moment for moment in annotation.moments if moment.kind == "insertion"]
    inserted = {annotated_moment.instance for annotated_moment in found}
    for instance, seen in annotation.by_instance().items():
        here = [sighting for sighting in seen if sighting.in_patient]
        if here and instance not in inserted and official_name(here[0].class_name) in ARISING:
            time, name = float(here[0].second), here[0].class_name
            found.append(AnnotatedMoment(kind="insertion", instance=instance, class_name=name, time=time))
    return sorted(found, key=lambda annotated_moment: (annotated_moment.time, annotated_moment.instance))

"""What is annotated of one video: boxes second by second, each of an instance and its class, and moments of
importance. Everything else (checks, questions, other tools' files) starts from here."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

__all__ = ["FORMAT_VERSION", "RESERVED", "Annotation", "Box", "Moment", "MomentKind", "Sighting", "Video"]

FORMAT_VERSION = 1
"""The version of the file that an `Annotation` is written as."""

RESERVED = (
    "instance",
    "hidden",
    "in_patient",
    "filled",
    "visibility",
    "inserted_at",
    "retrieved_at",
    "moment",
)
"""Names of attributes that mean something here and so can't be somebody's own."""

MomentKind = Literal["insertion", "retrieval"]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a name is printable text on one line")
    return text


Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(_printable),
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Box(_Frozen):
    """A rectangle in pixels, origin at the top left of the picture. Whatever was drawn is kept: it may reach
    outside, or be empty; `find` (checks) tells of it."""

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

    def overlap(self, other: Box) -> float:
        """Intersection over union, 0 to 1; 0 where both are empty."""
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        down = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        shared = max(0.0, across) * max(0.0, down)
        union = self.area + other.area - shared
        return shared / union if union > 0 else 0.0

    def towards(self, other: Box, share: float) -> Box:
        """The box at `share` (0–1) of the straight way to another one."""
        return Box(
            x=self.x + share * (other.x - self.x),
            y=self.y + share * (other.y - self.y),
            width=self.width + share * (other.width - self.width),
            height=self.height + share * (other.height - self.height),
        )


class Sighting(_Frozen):
    """One instance at one whole second of the video.

    `box` is None where the annotator says that it is there and not to be seen (covered); a second without a
    sighting says nothing of that kind. `occluded`: partly covered, so that no question relies on it.
    `visibility` is the share of it that shows (0–1) where that is known. `in_patient` is False where it is
    seen outside the body (in the trocar, on the drape). `filled`: added by `complete`, drawn by nobody.
    """

    second: int = Field(ge=0)
    instance: Name
    class_name: Name
    box: Box | None
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
        """Whether it is plainly to be seen inside the body, and was drawn by somebody."""
        return self.box is not None and self.in_patient and not self.occluded and not self.filled


class Moment(_Frozen):
    """A moment of importance: an instance enters the body, or leaves it, at `time` seconds."""

    kind: MomentKind
    instance: Name
    class_name: Name
    time: float = Field(ge=0)


class Video(_Frozen):
    """The video: `file` as it lies in the media folder, size in pixels, length in seconds, frames per second
    (at least 1), and the kind of procedure where it is known."""

    id: Name
    file: Name
    width: int = Field(gt=0, le=32_768)
    height: int = Field(gt=0, le=32_768)
    seconds: float = Field(gt=0, le=360_000)
    fps: float = Field(ge=1, le=1000)
    procedure: str = ""

    @property
    def whole_seconds(self) -> int:
        """How many whole seconds it has a picture of: 0, 1 … up to this, without this."""
        return math.ceil(self.seconds)

    def frame_of(self, time: float) -> int:
        """The number of the frame that is nearest to a time, the first frame being 0."""
        return math.floor(time * self.fps + 0.5)


class Annotation(_Frozen):
    """Everything that is annotated of one video. Sightings stand in order of second and instance, moments in
    order of time, however they were given; so two annotations that say the same are equal."""

    kind: Literal["annotated video"] = "annotated video"
    format_version: int = Field(default=FORMAT_VERSION, ge=1, le=FORMAT_VERSION)
    video: Video
    sightings: tuple[Sighting, ...] = ()
    moments: tuple[Moment, ...] = ()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        object.__setattr__(self, "sightings", tuple(sorted(self.sightings, key=_place)))
        moments = sorted(self.moments, key=lambda one: (one.time, one.kind, one.instance, one.class_name))
        object.__setattr__(self, "moments", tuple(moments))
        return self

    def by_second(self) -> dict[int, list[Sighting]]:
        """The sightings of every second that has some, in order."""
        found: dict[int, list[Sighting]] = {}
        for one in self.sightings:
            found.setdefault(one.second, []).append(one)
        return found

    def by_instance(self) -> dict[str, list[Sighting]]:
        """The sightings of every instance that has some, each in order of time."""
        found: dict[str, list[Sighting]] = {}
        for one in self.sightings:
            found.setdefault(one.instance, []).append(one)
        return found

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that are named, sorted."""
        named = {one.class_name for one in self.sightings} | {one.class_name for one in self.moments}
        return tuple(sorted(named))


def _place(one: Sighting) -> tuple[int, str, str, str]:
    return one.second, one.instance, one.class_name, one.model_dump_json(exclude={"second"})

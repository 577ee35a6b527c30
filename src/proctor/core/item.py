"""Items: one question each, with what is to be looked at and what is to be answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator, model_validator

from proctor.core.criteria import Criterion
from proctor.core.formats import MOST_OPTIONS, AnswerFormat

TagValue = bool | int | float | str | tuple[str, ...]
"""A facet's value on one item; a tuple where an item carries several at once."""

OPTION_POOL = "option_pool"
"""The tag of items whose wrong options are right answers of other items of the same pool: folds and splits keep a pool
together, since who knows the other answers knows what is wrong."""

_EDGE = 1e-6  # regions come as rounded fractions: 0.559719 + 0.440281 may exceed 1 by rounding


class _Frozen(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", allow_inf_nan=False)


class Region(_Frozen):
    """A rectangle as fractions of the frame, origin at the top left; inside 0 to 1.

    >>> Region(x=0.25, y=0.0, width=0.5, height=1.0).width
    0.5
    """

    x: float = Field(ge=0, le=1)
    y: float = Field(ge=0, le=1)
    width: float = Field(gt=0, le=1)
    height: float = Field(gt=0, le=1)

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if self.x + self.width > 1 + _EDGE or self.y + self.height > 1 + _EDGE:
            raise ValueError("a region inside the frame (0 to 1)")
        return self


class Excerpt(_Frozen):
    """Of which part of a longer video a benchmark's video was made: `start` to `end` in its seconds, so that a clip's
    second 0 is its second `start`; found at `url`, if anywhere.

    `start` may lie just before 0, where the times were aligned so.

    >>> Excerpt(start=18.25, end=131.25, url="https://example.org/v").seconds
    113.0
    """

    start: float
    end: float
    url: str = ""

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


class Scan(_Frozen):
    """How a medical file (DICOM, NIfTI) becomes a picture: `window` is centre and width of the values that are shown;
    `frame` is that of a DICOM file with several, from 1; `axis` and `slice` (from 0) are those of a NIfTI volume in
    RAS+ orientation, and `volume` (from 0) is the one of a file with several.

    >>> Scan(window=(40, 400)).window
    (40.0, 400.0)
    >>> Scan(slice=12)
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for Scan
      Value error, an axis and a slice go together ...
    """

    window: tuple[float, Annotated[float, Field(gt=0)]] | None = None
    frame: int | None = Field(default=None, ge=1)
    axis: Literal["axial", "coronal", "sagittal"] | None = None
    slice: int | None = Field(default=None, ge=0)
    volume: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_plane(self) -> Self:
        if (self.axis is None) != (self.slice is None):
            raise ValueError("an axis and a slice go together")
        if self.axis is None and self.volume is not None:
            raise ValueError("a volume goes with an axis and a slice")
        if self.axis is not None and self.frame is not None:
            raise ValueError("a frame (DICOM) and a slice (NIfTI) exclude each other")
        return self


def _scan_field() -> Any:
    """Left out where there is none: items without medical files keep the fingerprint they always had."""
    return Field(default=None, exclude_if=lambda given: given is None)


def _check_forward(start: float, end: float | None) -> None:
    if end is not None and end <= start:
        raise ValueError(f"the clip ends at {end} s, not after its start at {start} s")


class VideoClip(_Frozen):
    """A stretch of one video: `start` to `end` in seconds of that video's own clock.

    `source` is a name below the media folder, never an absolute path, so that a benchmark has the
    same fingerprint on every machine. `end=None` means to the end of the video. `scan` says how a DICOM file whose
    frames have times is shown. With `audio` its sound belongs to the question; else its pictures alone do.

    >>> VideoClip(source="liver.mp4", start=12.5, end=20.0).region is None
    True
    >>> VideoClip(source="liver.mp4", start=20.0, end=12.5)
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for VideoClip
      Value error, the clip ends at 12.5 s, not after its start at 20.0 s ...
    """

    kind: Literal["video"] = "video"
    source: str
    start: float = Field(default=0.0, ge=0)
    end: float | None = None
    region: Region | None = None
    scan: Scan | None = _scan_field()
    audio: bool = Field(default=False, exclude_if=lambda given: not given)

    @model_validator(mode="after")
    def _forward(self) -> Self:
        _check_forward(self.start, self.end)
        if self.scan is not None and self.audio:
            raise ValueError("a DICOM clip has no sound")
        if self.scan is not None and (self.scan.frame is not None or self.scan.axis is not None):
            raise ValueError("a clip has a window alone, no frame and no slice")
        return self


class Image(_Frozen):
    """One still image with the label under which the question speaks of it; `scan` says how a medical file is shown.

    >>> Image(source="case-1/before.png", label="A").kind
    'image'
    """

    kind: Literal["image"] = "image"
    source: str
    label: str = ""
    region: Region | None = None
    scan: Scan | None = _scan_field()


class AudioClip(_Frozen):
    """A stretch of one audio file: `start` to `end` in seconds of its own clock; `end=None` means to its end.

    >>> AudioClip(source="handover.wav", start=2.0).kind
    'audio'
    """

    kind: Literal["audio"] = "audio"
    source: str
    start: float = Field(default=0.0, ge=0)
    end: float | None = None

    @model_validator(mode="after")
    def _forward(self) -> Self:
        _check_forward(self.start, self.end)
        return self


Media = Annotated[VideoClip | Image | AudioClip, Field(discriminator="kind")]


class Reliability(_Frozen):
    """How far a reference answer can be relied on: `frequency` says how far it is what most experts answered,
    `completeness` how complete it is; higher is more, None is not known.

    >>> Reliability(frequency=2.0).completeness is None
    True
    """

    frequency: float | None = Field(default=None, ge=0)
    completeness: float | None = Field(default=None, ge=0)


class Reference(_Frozen):
    """The right answer, in the form that the item's answer format parses to.

    `accepted` are further answers that count as right, `rationale` is why. `reliability`, where it is given, has an
    entry for the answer and for each accepted one, in this order. `criteria` are what a judge marks an answer in free
    text by; an item that has nothing else to be right by has the answer None.

    >>> Reference(answer=2, accepted=(3,), rationale="the third clip is half hidden").accepted
    (3,)
    """

    answer: JsonValue
    accepted: tuple[JsonValue, ...] = ()
    rationale: str = ""
    reliability: tuple[Reliability, ...] = Field(
        default=(),
        exclude_if=lambda given: not given,  # items that have none keep the fingerprint they always had
    )

    criteria: tuple[Criterion, ...] = Field(default=(), exclude_if=lambda given: not given)

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if self.criteria and not any(one.points > 0 for one in self.criteria):
            raise ValueError("a criterion with positive points is expected")
        if self.reliability and len(self.reliability) != 1 + len(self.accepted):
            raise ValueError("the reliability of every reference answer, or of none, is expected")
        return self


class Item(_Frozen):
    """One question. What shares a `group` (a video, a patient) is resampled together.

    >>> from proctor.core.formats import BinaryFormat
    >>> item = Item(id="q1", group="v1", question="Is a clip visible?", answer=BinaryFormat(),
    ...             reference=Reference(answer=True))
    >>> item.as_asked().reference is None
    True
    """

    id: str = Field(min_length=1)
    group: str = Field(min_length=1)
    question: str = Field(min_length=1)
    answer: AnswerFormat
    media: tuple[Media, ...] = ()
    options: tuple[str, ...] = ()
    reference: Reference | None = None
    tags: dict[str, TagValue] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _lettered(cls, options: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if len(options) > MOST_OPTIONS:
            there = f"item {info.data.get('id')!r} has {len(options)}"
            raise ValueError(f"at most {MOST_OPTIONS} options, a letter for each ({there})")
        return options

    @property
    def sounding(self) -> tuple[VideoClip | AudioClip, ...]:
        """The media whose sound belongs to the question, in their order."""
        return tuple(
            one for one in self.media if isinstance(one, AudioClip) or (isinstance(one, VideoClip) and one.audio)
        )

    @property
    def pictured(self) -> tuple[VideoClip | Image, ...]:
        """The media that have pictures, in their order."""
        return tuple(one for one in self.media if not isinstance(one, AudioClip))

    @property
    def has_answer(self) -> bool:
        """Whether there is a reference answer: a reference may hold criteria alone."""
        return self.reference is not None and self.reference.answer is not None

    def as_asked(self) -> Item:
        """The item as a system may see it: without the key, the tags (which may hint at it) and the media,
        whose names and times may too; pixels come from the view alone."""
        return self.model_copy(update={"reference": None, "tags": {}, "media": ()})

"""Items: a question with its media, answer format, options and reference answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from proctor.core.criteria import Criterion
from proctor.core.evidence import Evidence, Region
from proctor.core.formats import MOST_OPTIONS, AnswerFormat
from proctor.core.validation import FrozenModel

TagValue = bool | int | float | str | tuple[str, ...]
"""The value of a tag of an item; a tuple if the item has several values."""

OPTION_POOL = "option_pool"
"""The tag of items whose wrong options are right answers to other items of the same pool. Folds and splits keep pools
together, since the answers to other items reveal which options are wrong."""


class Scan(FrozenModel):
    """How to render a medical image file (DICOM, NIfTI). `window` is the centre and width of the displayed values.
    `frame` (from 1) selects a frame of a multi-frame DICOM file. `axis` and `slice` (from 0) select a slice of a NIfTI
    volume in RAS+ orientation, and `volume` (from 0) the volume of a file with several.

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
    """An optional `Scan`, excluded from JSON if None, so that fingerprints of items without medical files are
    stable."""
    return Field(default=None, exclude_if=lambda scan: scan is None)


def _check_forward(start: float, end: float | None) -> None:
    if end is not None and end <= start:
        raise ValueError(f"the clip ends at {end} s, not after its start at {start} s")


class VideoClip(FrozenModel):
    """A part of a video: `start` to `end` in seconds of the video; `end=None` is the end of the video.

    `source` is a path relative to the media folder, so that the fingerprint of a benchmark does not depend on the
    machine. `scan` is for DICOM files whose frames have times. With `audio`, the sound belongs to the question too.

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


class Image(FrozenModel):
    """A still image with the label that the question uses for it. `scan` is for medical image files.

    >>> Image(source="case-1/before.png", label="A").kind
    'image'
    """

    kind: Literal["image"] = "image"
    source: str
    label: str = ""
    region: Region | None = None
    scan: Scan | None = _scan_field()


class AudioClip(FrozenModel):
    """A part of an audio file: `start` to `end` in seconds; `end=None` is the end of the file.

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


class Reliability(FrozenModel):
    """The reliability of a reference answer: `frequency` is how common it is among experts, `completeness` how complete
    it is; higher is better, None is unknown.

    >>> Reliability(frequency=2.0).completeness is None
    True
    """

    frequency: float | None = Field(default=None, ge=0)
    completeness: float | None = Field(default=None, ge=0)


class Reference(FrozenModel):
    """The right answer, as a value that the item's answer format parses to.

    `accepted` are other right answers; `rationale` is an explanation. `reliability`, if given, has one entry for the
    answer and one for each accepted answer, in this order. `criteria` are for judges of free-text answers; an item with
    criteria only has the answer None.

    >>> Reference(answer=2, accepted=(3,), rationale="the third clip is half hidden").accepted
    (3,)
    """

    answer: JsonValue
    accepted: tuple[JsonValue, ...] = ()
    rationale: str = ""
    reliability: tuple[Reliability, ...] = Field(
        default=(),
        exclude_if=lambda given: not given,  # keeps fingerprints of items without it stable
    )

    criteria: tuple[Criterion, ...] = Field(default=(), exclude_if=lambda given: not given)

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if self.criteria and not any(criterion.points > 0 for criterion in self.criteria):
            raise ValueError("a criterion with positive points is expected")
        if self.reliability and len(self.reliability) != 1 + len(self.accepted):
            raise ValueError("the reliability of every reference answer, or of none, is expected")
        return self


class Item(FrozenModel):
    """A question. Items of the same `group` (such as a video or a patient) are resampled together.

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
    evidence: Evidence | None = Field(default=None, exclude_if=lambda evidence: evidence is None)

    @field_validator("options")
    @classmethod
    def _lettered(cls, options: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if len(options) > MOST_OPTIONS:
            found = f"item {info.data.get('id')!r} has {len(options)}"
            raise ValueError(f"at most {MOST_OPTIONS} options, a letter for each ({found})")
        return options

    @model_validator(mode="after")
    def _evident(self) -> Self:
        if self.evidence is not None and (fault := self.evidence.fault(self.media)):
            raise ValueError(fault)
        return self

    @property
    def sounding(self) -> tuple[VideoClip | AudioClip, ...]:
        """The media whose sound belongs to the question, in order."""
        return tuple(
            clip for clip in self.media if isinstance(clip, AudioClip) or (isinstance(clip, VideoClip) and clip.audio)
        )

    @property
    def pictured(self) -> tuple[VideoClip | Image, ...]:
        """The media with pictures, in order."""
        return tuple(medium for medium in self.media if not isinstance(medium, AudioClip))

    @property
    def has_answer(self) -> bool:
        """Whether there is a reference answer; a reference may have only criteria."""
        return self.reference is not None and self.reference.answer is not None

    def as_asked(self) -> Item:
        """The item as systems see it: without the reference and the evidence, and without tags and media, whose names and
        times may reveal the answer. Systems get pictures from the view."""
        return self.without_answer().model_copy(update={"tags": {}, "media": ()})

    def without_answer(self) -> Item:
        """The item as it is handed out: without the reference, and without the evidence, which tells where to look."""
        return self.model_copy(update={"reference": None, "evidence": None})

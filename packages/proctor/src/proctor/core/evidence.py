"""Evidence: where and when the answer to a question is visible or audible in the question's media."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from proctor.core.validation import FrozenModel

if TYPE_CHECKING:
    from proctor.core.item import Media

MOST_EVIDENCE = 20_000
"""Windows, and boxes, of one item: an object in view for half an hour, a box for every tenth of a second."""

_EDGE = 1e-6  # tolerance for regions given as rounded fractions: 0.559719 + 0.440281 may exceed 1


class Region(FrozenModel):
    """A rectangle in fractions of the frame, with the origin at the top left; inside 0 to 1.

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


def _medium_field() -> int:
    """The position of a medium among the item's media, from 0; left out of JSON for the first one."""
    given: int = Field(default=0, ge=0, exclude_if=lambda position: position == 0)
    return given


class EvidenceWindow(FrozenModel):
    """A stretch of a video or a sound in which the answer is visible or audible: `start` to `end` in seconds of the file,
    as those of a clip. `medium` is the position of the medium among the item's media, from 0.

    >>> EvidenceWindow(start=12.0, end=15.5).medium
    0
    """

    medium: int = _medium_field()
    start: float = Field(ge=0, allow_inf_nan=False)
    end: float = Field(allow_inf_nan=False)

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"a window that ends at {self.end:g} s, not after its start at {self.start:g} s")
        return self


class EvidenceBox(Region):
    """A rectangle in which the answer is visible, in fractions of the picture as it is shown (of a medium with a region:
    of that region). Of a video from `start` to `end`, in seconds of the file; of a still image both are None. `medium` is
    the position of the medium among the item's media, from 0.

    >>> EvidenceBox(x=0.25, y=0.5, width=0.1, height=0.2, start=3.0, end=4.0).start
    3.0
    """

    medium: int = _medium_field()
    start: float | None = Field(default=None, ge=0, allow_inf_nan=False, exclude_if=lambda time: time is None)
    end: float | None = Field(default=None, allow_inf_nan=False, exclude_if=lambda time: time is None)

    @model_validator(mode="after")
    def _timed(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise ValueError("a box with a start and an end, or with neither")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError(f"a box that ends at {self.end:g} s, not after its start at {self.start:g} s")
        return self


class Evidence(FrozenModel):
    """Where and when the answer is visible: whole `windows` of time, and `boxes`. What is named covers all that the answer
    depends on, or hiding it shows nothing. No system ever gets it.

    >>> Evidence(windows=(EvidenceWindow(start=12.0, end=15.5),)).boxes
    ()
    >>> Evidence()
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for Evidence
      Value error, a window or a box ...
    """

    windows: tuple[EvidenceWindow, ...] = Field(
        default=(), max_length=MOST_EVIDENCE, exclude_if=lambda given: not given
    )
    boxes: tuple[EvidenceBox, ...] = Field(default=(), max_length=MOST_EVIDENCE, exclude_if=lambda given: not given)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.windows and not self.boxes:
            raise ValueError("a window or a box")
        return self

    def fault(self, media: Sequence[Media]) -> str:
        """Why it can't be of an item with these media; "" where it can."""
        faults = (*(_fault(one, media) for one in self.windows), *(_fault(one, media) for one in self.boxes))
        return next((fault for fault in faults if fault), "")

    @property
    def media(self) -> frozenset[int]:
        """The positions of the media with evidence."""
        return frozenset((*(one.medium for one in self.windows), *(one.medium for one in self.boxes)))


def _fault(one: EvidenceWindow | EvidenceBox, media: Sequence[Media]) -> str:
    what = "box" if isinstance(one, EvidenceBox) else "window"
    if one.medium >= len(media):
        return f"a {what} of one of the item's media (0 to {len(media) - 1}), not of {one.medium}"
    medium = media[one.medium]
    if medium.kind == "image":
        if isinstance(one, EvidenceWindow) or one.start is not None:
            return f"no times in the {what} of the still image {medium.source!r}"
        return ""
    if isinstance(one, EvidenceBox) and medium.kind == "audio":
        return f"no box of the sound {medium.source!r}"
    if one.start is None or one.end is None:
        return f"a start and an end of the box of the video {medium.source!r}"
    last = math.inf if medium.end is None else medium.end
    if one.end <= medium.start or one.start >= last:
        shown = f"from {medium.start:g} s to {'its end' if medium.end is None else f'{medium.end:g} s'}"
        return f"a {what} within what is shown of {medium.source!r} ({shown}), not {one.start:g} to {one.end:g} s"
    return ""

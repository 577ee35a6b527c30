"""A form: the questions about an item, what a complete reading needs, and when two readings agree.

A form never knows the reader. It turns a reading into comparable values (`ReadingValues`): labels, ratings, boxes and
times. Two readings agree if their values do, and all agreement statistics are computed from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints

from proctor.core import FrozenModel, InputError, kept_text, one_of, validated
from proctor.core.formats import matching
from proctor.stats import times_paired

LEAST_IOU = 0.5
"""Minimum intersection over union of two boxes that are the same (Everingham et al. 2010, IJCV 88:303)."""

MOST_SECONDS = 10**6


def plain(value: object) -> object:
    """A text as it is stored, without surrounding spaces; anything else unchanged."""
    return kept_text(value).strip() if isinstance(value, str) else value


Line = Annotated[str, BeforeValidator(plain), StringConstraints(max_length=1_000)]
Passage = Annotated[str, BeforeValidator(plain), StringConstraints(max_length=10_000)]
Label = Annotated[str, BeforeValidator(plain), StringConstraints(min_length=1, max_length=80)]

Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class FormModel(FrozenModel):
    """A model of bounded plain JSON, without unknown fields."""


@dataclass(frozen=True)
class BoxAt:
    """A box of a class at a time: left, top, right, bottom as fractions of the frame."""

    time: float
    label: str
    extent: tuple[float, float, float, float]


@dataclass(frozen=True)
class ReadingValues:
    """A reading as comparable values: one label or rating per dimension, boxes, and times in seconds by kind. `text`
    must be the same in readings that agree, but is no part of agreement statistics."""

    labels: Mapping[str, str] = field(default_factory=dict)
    ratings: Mapping[str, float] = field(default_factory=dict)
    boxes: tuple[BoxAt, ...] | None = None
    times: Mapping[str, tuple[float, ...]] | None = None
    text: str = ""


def boxes_matched(one: Sequence[BoxAt], other: Sequence[BoxAt]) -> int:
    """The number of boxes that can be paired one to one: same time, same class, and an intersection over union of at
    least 0.5.

    >>> boxes_matched([BoxAt(1, "clip", (0, 0, 0.2, 0.2))], [BoxAt(1, "clip", (0, 0, 0.2, 0.3))])
    1
    """
    first, second = _by_time_and_class(one), _by_time_and_class(other)
    return sum(matching(first[key], second[key], LEAST_IOU) for key in sorted(first.keys() & second.keys()))


def _by_time_and_class(boxes: Sequence[BoxAt]) -> dict[tuple[float, str], list[tuple[float, ...]]]:
    found: dict[tuple[float, str], list[tuple[float, ...]]] = {}
    for box in boxes:
        found.setdefault((box.time, box.label), []).append(box.extent)
    return found


B = TypeVar("B", bound=FormModel)
P = TypeVar("P", bound=FormModel)


class Form(ABC, Generic[B, P]):
    """One way to read an item. `body` is the model of an item, `payload` the model of a reading. All fields of a
    payload have defaults, so that a draft may be incomplete."""

    name: ClassVar[str]
    body: ClassVar[type[FormModel]]
    payload: ClassVar[type[FormModel]]
    frames_only: ClassVar[bool] = False
    """Whether readers see single frames alone, by their ids: neither the video nor the time of a frame."""

    def read_body(self, body: object, file: Path | None = None, location: str = "") -> B:
        """Validates the body of an item. Raises `InputError` with the field."""
        return validated(self.body, body, file, location)  # type: ignore[return-value]

    def read(self, body: B, payload: object) -> P:
        """Validates a payload, also against the item. Raises `InputError` with the field."""
        found: P = validated(self.payload, payload, None, "reading")  # type: ignore[assignment]
        self.check(body, found)
        return found

    def check(self, body: B, payload: P) -> None:
        """Raises `InputError` for a payload that does not fit the item."""

    @abstractmethod
    def missing(self, body: B, payload: P) -> list[str]:
        """What a reading lacks before it can be sealed, as keys of the pages' texts; empty for a complete one."""

    def unready(self, body: B, before: P | None, now: P) -> list[str]:
        """Why a reader's draft may not be stored after the one `before` it (None for the first), as keys of the pages'
        texts; empty where it may. It is for forms whose second step is shown only after the first."""
        del body, before, now
        return []

    def submits_order(self, before: P | None, now: P) -> bool:
        """Whether a draft submits the first of two steps, an order that is final from then on."""
        del before, now
        return False

    def unsettled(self, body: B, payload: P) -> list[str]:
        """What an adjudicator's decision lacks, as keys of the pages' texts."""
        return self.missing(body, payload)

    @abstractmethod
    def values(self, body: B, payload: P) -> ReadingValues:
        """The reading as comparable values."""

    def media_needed(self, body: B) -> int:
        """The number of media that the body refers to."""
        del body
        return 0

    def dimension(self, label: str) -> str:
        """The dimension of a label. Agreement is computed per dimension, over all its labels."""
        return label

    def levels(self, dimension: str) -> tuple[str, ...]:
        """All labels that a dimension allows, given or not: chance agreement depends on their number. None where they are
        too many for an agreement by chance."""
        del dimension
        return "yes", "no"

    def same(self, body: B, one: P, other: P) -> bool:
        """Whether two complete readings agree."""
        a, b = self.values(body, one), self.values(body, other)
        if (a.labels, a.ratings, a.text) != (b.labels, b.ratings, b.text):
            return False
        if a.boxes is not None and b.boxes is not None:
            return len(a.boxes) == len(b.boxes) == boxes_matched(a.boxes, b.boxes)
        if a.times is not None and b.times is not None:
            pairs = [(a.times.get(kind, ()), b.times.get(kind, ())) for kind in {*a.times, *b.times}]
            within = self.tolerance(body)
            return all(len(first) == len(second) == times_paired(first, second, within) for first, second in pairs)
        return True

    def tolerance(self, body: B) -> float:
        """The maximum difference of two times that are the same, in seconds."""
        del body
        return 0.0

    def settled(self, payloads: Sequence[P]) -> P:
        """The consensus of payloads that agree: the first."""
        return payloads[0]

    def settle(self, body: B, payloads: Sequence[P]) -> P | None:
        """The consensus of all readings of an item; None where an adjudicator is to decide."""
        agree = all(self.same(body, payloads[0], other) for other in payloads[1:])
        return self.settled(payloads) if agree else None

    def begun(self, body: B, payloads: Sequence[P]) -> dict[str, JsonValue]:
        """The fields that an adjudicator's page starts with, of readings that differ; empty for an empty form."""
        del body, payloads
        return {}

    def taken(self, body: B, payload: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """A reader's payload as an adjudicator takes it over."""
        del body
        return payload

    def new_body(self, body: B, payload: P) -> dict[str, JsonValue] | None:
        """The body that a settled payload makes of the item; None where it changes nothing."""
        del body, payload
        return None


def check_known(named: Sequence[str], known: Sequence[str], what: str) -> None:
    """Raises `InputError` for the first unknown name."""
    unknown = next((one for one in named if one not in known), None)
    if unknown is not None:
        raise InputError(f"reading, {what}", found=repr(unknown), expected=one_of(list(known), unknown))


def yes(value: bool) -> str:
    """A truth value as a label."""
    return "yes" if value else "no"

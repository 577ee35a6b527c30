"""Forms: what is asked about an item, what must be there before a reading is sealed, and when two readings agree.

A form never sees who read. What a reader says of an item becomes comparable values (`Said`): labels, ratings, boxes
and times. Two readings agree where these do, and all figures of agreement are made from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, StringConstraints

from proctor.core import InputError, kept_text, one_of, validated
from proctor.core.formats import matching
from proctor.stats import times_paired

LEAST_IOU = 0.5
"""Two boxes are the same from this intersection over union (Everingham et al. 2010, IJCV 88:303)."""

MOST_SECONDS = 10**6


def plain(value: object) -> object:
    """A text fit to be kept, without spaces around it; anything else as it is."""
    return kept_text(value).strip() if isinstance(value, str) else value


Line = Annotated[str, BeforeValidator(plain), StringConstraints(max_length=1_000)]
"""A short text by a person."""

Passage = Annotated[str, BeforeValidator(plain), StringConstraints(max_length=10_000)]
"""A longer one."""

Label = Annotated[str, BeforeValidator(plain), StringConstraints(min_length=1, max_length=80)]
"""A class, a dimension, an identifier."""

Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class FormModel(BaseModel):
    """Plain JSON with bounds; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class BoxAt:
    """A box of a class at a time: left, top, right, bottom as fractions of the frame."""

    time: float
    label: str
    extent: tuple[float, float, float, float]


@dataclass(frozen=True)
class Said:
    """What a reading says, as values that can be compared: one label or rating per dimension, boxes by time and class,
    and times (seconds) by kind. `text` is what must be the same but is no measure of agreement."""

    labels: Mapping[str, str] = field(default_factory=dict)
    ratings: Mapping[str, float] = field(default_factory=dict)
    boxes: tuple[BoxAt, ...] | None = None
    times: Mapping[str, tuple[float, ...]] | None = None
    text: str = ""


def boxes_matched(one: Sequence[BoxAt], other: Sequence[BoxAt]) -> int:
    """How many boxes can be paired, one to one, at the same time and of the same class, with an intersection over union
    of at least 0.5.

    >>> boxes_matched([BoxAt(1, "clip", (0, 0, 0.2, 0.2))], [BoxAt(1, "clip", (0, 0, 0.2, 0.3))])
    1
    """
    mine, theirs = _by_place(one), _by_place(other)
    return sum(matching(mine[place], theirs[place], LEAST_IOU) for place in sorted(mine) if place in theirs)


def _by_place(boxes: Sequence[BoxAt]) -> dict[tuple[float, str], list[tuple[float, ...]]]:
    found: dict[tuple[float, str], list[tuple[float, ...]]] = {}
    for box in boxes:
        found.setdefault((box.time, box.label), []).append(box.extent)
    return found


B = TypeVar("B", bound=FormModel)
P = TypeVar("P", bound=FormModel)


class Form(ABC, Generic[B, P]):
    """One way to read an item. `body` is what an item of it holds, `payload` what a reading of it says; all fields of a
    payload have defaults, so that a draft may be incomplete. `tolerance` is for times, in seconds."""

    name: ClassVar[str]
    summary: ClassVar[str]
    body: ClassVar[type[FormModel]]
    payload: ClassVar[type[FormModel]]

    def read_body(self, body: object, file: Path | None = None, place: str = "") -> B:
        """The body of an item, checked. Raises `InputError` that names the field."""
        return validated(self.body, body, file, place)  # type: ignore[return-value]

    def read(self, body: B, payload: object) -> P:
        """A payload, checked on its own and against the item. Raises `InputError` that names the field."""
        found: P = validated(self.payload, payload, None, "reading")  # type: ignore[assignment]
        self.check(body, found)
        return found

    def check(self, body: B, payload: P) -> None:
        """Raises `InputError` where a payload names what the item does not have."""

    @abstractmethod
    def missing(self, body: B, payload: P) -> list[str]:
        """What must still be there before a reading is sealed, as keys of the page's strings; empty when complete."""

    @abstractmethod
    def said(self, body: B, payload: P) -> Said:
        """The values that are compared."""

    def media_needed(self, body: B) -> int:
        """How many media a body speaks of."""
        del body
        return 0

    def dimension(self, label: str) -> str:
        """Under which name agreement on a label is measured: labels of one dimension are pooled."""
        return label

    def levels(self, dimension: str) -> tuple[str, ...]:
        """The labels that a dimension may have, whether anybody gave them or not: agreement by chance depends on it."""
        del dimension
        return "yes", "no"

    def same(self, body: B, one: P, other: P) -> bool:
        """Whether two complete readings say the same."""
        a, b = self.said(body, one), self.said(body, other)
        if (a.labels, a.ratings, a.text) != (b.labels, b.ratings, b.text):
            return False
        if a.boxes is not None and b.boxes is not None:
            return len(a.boxes) == len(b.boxes) == boxes_matched(a.boxes, b.boxes)
        if a.times is not None and b.times is not None:
            within = self.tolerance(body)
            return all(
                len(a.times.get(kind, ()))
                == len(b.times.get(kind, ()))
                == times_paired(a.times.get(kind, ()), b.times.get(kind, ()), within)
                for kind in {*a.times, *b.times}
            )
        return True

    def tolerance(self, body: B) -> float:
        """Within how many seconds two times are the same."""
        del body
        return 0.0

    def settled(self, payloads: Sequence[P]) -> P:
        """The payload of readings that agree: the first."""
        return payloads[0]

    def new_body(self, body: B, payload: P) -> dict[str, JsonValue] | None:
        """The item as a settled payload changes it; None where it does not."""
        del body, payload
        return None


def check_known(named: Sequence[str], known: Sequence[str], what: str) -> None:
    """Raises `InputError` for the first name that is not known."""
    unknown = next((one for one in named if one not in known), None)
    if unknown is not None:
        raise InputError(f"reading, {what}", found=repr(unknown), expected=one_of(list(known), unknown))


def yes(value: bool) -> str:
    """A check as a label."""
    return "yes" if value else "no"

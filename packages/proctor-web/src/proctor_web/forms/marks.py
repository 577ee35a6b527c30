"""Forms on media: classes that are present, boxes, moments on the timeline, and the order of frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from proctor.core import InputError
from proctor_web.forms.base import (
    BoxAt,
    Form,
    FormModel,
    Fraction,
    Label,
    Line,
    Passage,
    ReadingValues,
    Seconds,
    check_known,
    plain,
    yes,
)

_MOST_BOXES = 2000
_MOST_MOMENTS = 500
_MOST_PER_FRAME = 100  # boxes of one class on one frame, which are compared in pairs

ORDER = "order of two frames"
"""The dimension of orders."""


class PresenceBody(FormModel):
    """A clip, and the classes that may be in it."""

    question: Passage = ""
    classes: tuple[Label, ...] = Field(min_length=1, max_length=60)


class PresencePayload(FormModel):
    """The classes that are present; `nothing` states that there are none."""

    present: tuple[Label, ...] = Field(default=(), max_length=60)
    nothing: bool = False


class PresenceForm(Form[PresenceBody, PresencePayload]):
    """Mark the classes that are present in a clip."""

    name = "presence"
    body = PresenceBody
    payload = PresencePayload

    def check(self, body: PresenceBody, payload: PresencePayload) -> None:
        check_known(payload.present, body.classes, "class")

    def missing(self, body: PresenceBody, payload: PresencePayload) -> list[str]:
        del body
        return _marks_or_nothing(bool(payload.present), nothing=payload.nothing)

    def values(self, body: PresenceBody, payload: PresencePayload) -> ReadingValues:
        return ReadingValues({name: yes(name in payload.present) for name in body.classes})


def _marks_or_nothing(some: bool, *, nothing: bool) -> list[str]:
    """A complete reading has marks or states that there is nothing to mark, not both."""
    return [] if some != nothing else ["nothing" if not some else "nothing_and_some"]


class DrawnBox(FormModel):
    """A box on one frame: the frame's time (presentation timestamp in seconds), the box in fractions of the frame, and
    the SHA-256 of the picture on which it was drawn. `by` is how the box was made."""

    time: Seconds
    label: Label
    instance: Annotated[str, BeforeValidator(plain), StringConstraints(max_length=80)] = ""
    x: Fraction
    y: Fraction
    width: float = Field(gt=0, le=1)
    height: float = Field(gt=0, le=1)
    frame_sha256: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")] = ""
    by: Literal["hand", "copied", "interpolated", "proposal"] = "hand"

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if self.x + self.width > 1 + 1e-6 or self.y + self.height > 1 + 1e-6:
            raise ValueError("a box inside the frame (0 to 1) is expected")
        return self

    @property
    def at(self) -> BoxAt:
        """The box as it is compared."""
        return BoxAt(round(self.time, 3), self.label, (self.x, self.y, self.x + self.width, self.y + self.height))


class BoxesBody(FormModel):
    """The classes, the times at which boxes are drawn (any, if empty), and proposals to accept or refuse."""

    question: Passage = ""
    classes: tuple[Label, ...] = Field(min_length=1, max_length=60)
    times: tuple[Seconds, ...] = Field(default=(), max_length=2000)
    proposals: tuple[DrawnBox, ...] = Field(default=(), max_length=_MOST_BOXES)


class DecidedProposals(FormModel):
    """The item's proposals that became boxes, and those that were refused, by index from 0."""

    accepted: tuple[Annotated[int, Field(ge=0, lt=_MOST_BOXES)], ...] = Field(default=(), max_length=_MOST_BOXES)
    refused: tuple[Annotated[int, Field(ge=0, lt=_MOST_BOXES)], ...] = Field(default=(), max_length=_MOST_BOXES)


class BoxesPayload(FormModel):
    """The boxes, and the decisions on proposals; `nothing` states that there is nothing to draw."""

    boxes: tuple[DrawnBox, ...] = Field(default=(), max_length=_MOST_BOXES)
    decided: DecidedProposals = DecidedProposals()
    nothing: bool = False


class BoxesForm(Form[BoxesBody, BoxesPayload]):
    """Draw boxes with class and instance."""

    name = "boxes"
    body = BoxesBody
    payload = BoxesPayload

    def check(self, body: BoxesBody, payload: BoxesPayload) -> None:
        check_known([box.label for box in payload.boxes], body.classes, "class")
        for (time, label), times in Counter((box.at.time, box.label) for box in payload.boxes).items():
            if times > _MOST_PER_FRAME:
                location = f"reading, class {label!r} at {time:g} s"
                raise InputError(location, found=f"{times} boxes", expected=f"at most {_MOST_PER_FRAME}")

        decided = Counter([*payload.decided.accepted, *payload.decided.refused])
        wrong = next((one for one, times in decided.items() if one >= len(body.proposals) or times > 1), None)
        if wrong is not None:
            expected = f"each of {len(body.proposals)} once, from 0"
            raise InputError("reading, proposals", found=str(wrong), expected=expected)

    def missing(self, body: BoxesBody, payload: BoxesPayload) -> list[str]:
        undecided = len(body.proposals) - len(payload.decided.accepted) - len(payload.decided.refused)
        lacking = ["boxes.proposals"] if undecided > 0 else []
        if payload.boxes or not body.proposals:
            lacking += _marks_or_nothing(bool(payload.boxes), nothing=payload.nothing)
        return lacking

    def values(self, body: BoxesBody, payload: BoxesPayload) -> ReadingValues:
        del body
        return ReadingValues(boxes=tuple(box.at for box in payload.boxes))


class ShownBox(FormModel):
    """A box that is drawn on the picture at a time, with a word beside it."""

    time: Seconds
    label: Label
    x: Fraction
    y: Fraction
    width: float = Field(gt=0, le=1)
    height: float = Field(gt=0, le=1)


class ChoiceBody(FormModel):
    """A question about boxes, and the options to choose from. `origin` is the version of the construction project's
    record."""

    question: Passage
    options: tuple[Label, ...] = Field(min_length=2, max_length=9)
    boxes: tuple[ShownBox, ...] = Field(default=(), max_length=60)
    origin: Line = ""

    @model_validator(mode="after")
    def _different(self) -> Self:
        if len({*self.options}) < len(self.options) or any(_OR in option for option in self.options):
            raise ValueError(f"different options without {_OR.strip()!r} are expected")
        return self

    @property
    def times(self) -> tuple[float, ...]:
        """The times at which boxes are drawn."""
        return tuple(sorted({box.time for box in self.boxes}))


class ChoicePayload(FormModel):
    """The chosen option."""

    choice: Annotated[str, BeforeValidator(plain), StringConstraints(max_length=80)] = ""


_OR = " / "


class ChoiceForm(Form[ChoiceBody, ChoicePayload]):
    """Choose one of the options, by pictures on which boxes are drawn. Agreement is computed for each set of options."""

    name = "choice"
    body = ChoiceBody
    payload = ChoicePayload

    def check(self, body: ChoiceBody, payload: ChoicePayload) -> None:
        check_known([payload.choice] if payload.choice else [], body.options, "choice")

    def missing(self, body: ChoiceBody, payload: ChoicePayload) -> list[str]:
        del body
        return [] if payload.choice else ["choice.choice"]

    def values(self, body: ChoiceBody, payload: ChoicePayload) -> ReadingValues:
        return ReadingValues({_OR.join(body.options): payload.choice})

    def levels(self, dimension: str) -> tuple[str, ...]:
        return tuple(dimension.split(_OR))


class MarkedMoment(FormModel):
    """A moment on the timeline."""

    time: Seconds
    kind: Label
    note: Line = ""


class MomentsBody(FormModel):
    """The kinds of moments to mark, and the maximum difference of two marks that are the same, in seconds."""

    question: Passage = ""
    kinds: tuple[Label, ...] = Field(default=("insertion", "retrieval"), min_length=1, max_length=20)
    tolerance: float = Field(default=1.0, ge=0, le=600)


class MomentsPayload(FormModel):
    """The moments; `nothing` states that there are none."""

    moments: tuple[MarkedMoment, ...] = Field(default=(), max_length=_MOST_MOMENTS)
    nothing: bool = False


class MomentsForm(Form[MomentsBody, MomentsPayload]):
    """Mark moments on the timeline, by kind."""

    name = "moments"
    body = MomentsBody
    payload = MomentsPayload

    def check(self, body: MomentsBody, payload: MomentsPayload) -> None:
        check_known([moment.kind for moment in payload.moments], body.kinds, "kind")

    def missing(self, body: MomentsBody, payload: MomentsPayload) -> list[str]:
        del body
        return _marks_or_nothing(bool(payload.moments), nothing=payload.nothing)

    def values(self, body: MomentsBody, payload: MomentsPayload) -> ReadingValues:
        return ReadingValues(
            times={
                kind: tuple(sorted(moment.time for moment in payload.moments if moment.kind == kind))
                for kind in body.kinds
            }
        )

    def tolerance(self, body: MomentsBody) -> float:
        return body.tolerance

    def settled(self, payloads: Sequence[MomentsPayload]) -> MomentsPayload:
        """The first payload, with the mean times of all: the n-th moments of a kind belong together."""
        first = payloads[0]
        moments = []
        for kind in dict.fromkeys(moment.kind for moment in first.moments):
            by_reader = [
                sorted((m for m in payload.moments if m.kind == kind), key=lambda m: m.time) for payload in payloads
            ]
            for same in zip(*by_reader, strict=True):
                mean = sum(one.time for one in same) / len(same)
                moments.append(same[0].model_copy(update={"time": round(mean, 3)}))
        return first.model_copy(update={"moments": tuple(sorted(moments, key=lambda moment: moment.time))})


class OrderFrame(FormModel):
    """A frame to order: a time in one of the item's media (by index from 0), or a whole image."""

    id: Label
    media: int = Field(default=0, ge=0, le=100)
    time: Seconds | None = None


class OrderBody(FormModel):
    """Frames to put in order, as they are shown, and whether a rationale is needed."""

    question: Passage = ""
    frames: tuple[OrderFrame, ...] = Field(min_length=2, max_length=40)
    rationale: bool = True

    @model_validator(mode="after")
    def _unique(self) -> Self:
        if len({frame.id for frame in self.frames}) < len(self.frames):
            raise ValueError("each frame's id once is expected")
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """The frames' ids, as they are shown."""
        return tuple(frame.id for frame in self.frames)


class RationaleSentence(FormModel):
    """A sentence of the rationale, with the frames that it cites."""

    text: Passage
    frames: tuple[Label, ...] = Field(default=(), max_length=40)


class OrderPayload(FormModel):
    """The frames in order, and the rationale."""

    order: tuple[Label, ...] = Field(default=(), max_length=40)
    rationale: tuple[RationaleSentence, ...] = Field(default=(), max_length=40)


class OrderForm(Form[OrderBody, OrderPayload]):
    """Put frames in order, with a rationale that cites them. Agreement is computed over pairs of frames."""

    name = "order"
    body = OrderBody
    payload = OrderPayload
    frames_only = True

    def check(self, body: OrderBody, payload: OrderPayload) -> None:
        check_known(payload.order, body.ids, "order")
        check_known([name for sentence in payload.rationale for name in sentence.frames], body.ids, "rationale")

    def missing(self, body: OrderBody, payload: OrderPayload) -> list[str]:
        lacking = [] if sorted(payload.order) == sorted(body.ids) else ["order.order"]
        if body.rationale:
            lacking += [] if payload.rationale else ["order.rationale"]
            lacking += (
                [] if all(sentence.text and sentence.frames for sentence in payload.rationale) else ["order.citation"]
            )
        return lacking

    def media_needed(self, body: OrderBody) -> int:
        return 1 + max(frame.media for frame in body.frames)

    def dimension(self, label: str) -> str:
        del label
        return ORDER

    def values(self, body: OrderBody, payload: OrderPayload) -> ReadingValues:
        row = {name: number for number, name in enumerate(payload.order)}
        pairs = {
            f"{one} before {other}": yes(row[one] < row[other])
            for one, other in combinations(sorted(body.ids), 2)
            if one in row and other in row
        }
        return ReadingValues(pairs)

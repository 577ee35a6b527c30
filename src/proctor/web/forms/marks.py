"""What is in a video: classes, boxes, moments, and the order of frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from proctor.core import InputError
from proctor.web.forms.base import (
    BoxAt,
    Form,
    FormModel,
    Fraction,
    Label,
    Line,
    Passage,
    Said,
    Seconds,
    check_known,
    plain,
    yes,
)

_MOST_BOXES = 2000
_MOST_MOMENTS = 500
_MOST_AT_ONCE = 100  # boxes of one class on one frame, which are compared each with each


class PresenceBody(FormModel):
    """A clip, and the classes that may be in it."""

    question: Passage = ""
    classes: tuple[Label, ...] = Field(min_length=1, max_length=60)


class PresencePayload(FormModel):
    """The classes that are present; `nothing` says that none is."""

    present: tuple[Label, ...] = Field(default=(), max_length=60)
    nothing: bool = False


class PresenceForm(Form[PresenceBody, PresencePayload]):
    """Which classes are in a clip."""

    name = "presence"
    summary = "Mark which classes are present in a clip"
    body = PresenceBody
    payload = PresencePayload

    def check(self, body: PresenceBody, payload: PresencePayload) -> None:
        check_known(payload.present, body.classes, "class")

    def missing(self, body: PresenceBody, payload: PresencePayload) -> list[str]:
        del body
        return _nothing_or(bool(payload.present), nothing=payload.nothing)

    def said(self, body: PresenceBody, payload: PresencePayload) -> Said:
        return Said({name: yes(name in payload.present) for name in body.classes})


def _nothing_or(some: bool, *, nothing: bool) -> list[str]:
    """Either something is marked, or that nothing is there: an empty form is no reading."""
    return [] if some != nothing else ["nothing" if not some else "nothing_and_some"]


class DrawnBox(FormModel):
    """A box on one frame: the frame's time (presentation timestamp in seconds), the box in fractions of the frame, and
    the SHA-256 of the frame's picture that it was drawn on. `by` says how it came about."""

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
        """As it is compared."""
        return BoxAt(round(self.time, 3), self.label, (self.x, self.y, self.x + self.width, self.y + self.height))


class BoxesBody(FormModel):
    """Times at which boxes are drawn (none named: any), the classes, and proposals to accept or refuse."""

    question: Passage = ""
    classes: tuple[Label, ...] = Field(min_length=1, max_length=60)
    times: tuple[Seconds, ...] = Field(default=(), max_length=2000)
    proposals: tuple[DrawnBox, ...] = Field(default=(), max_length=_MOST_BOXES)


class DecidedProposals(FormModel):
    """Which of the item's proposals, by place from 0, became boxes, and which are none."""

    accepted: tuple[Annotated[int, Field(ge=0, lt=_MOST_BOXES)], ...] = Field(default=(), max_length=_MOST_BOXES)
    refused: tuple[Annotated[int, Field(ge=0, lt=_MOST_BOXES)], ...] = Field(default=(), max_length=_MOST_BOXES)


class BoxesPayload(FormModel):
    """The boxes, and what became of the proposals; `nothing` says that there is none to draw."""

    boxes: tuple[DrawnBox, ...] = Field(default=(), max_length=_MOST_BOXES)
    decided: DecidedProposals = DecidedProposals()
    nothing: bool = False


class BoxesForm(Form[BoxesBody, BoxesPayload]):
    """Boxes with class and instance."""

    name = "boxes"
    summary = "Draw boxes with class and instance"
    body = BoxesBody
    payload = BoxesPayload

    def check(self, body: BoxesBody, payload: BoxesPayload) -> None:
        check_known([one.label for one in payload.boxes], body.classes, "class")
        for (time, label), times in Counter((one.at.time, one.label) for one in payload.boxes).items():
            if times > _MOST_AT_ONCE:
                place = f"reading, class {label!r} at {time:g} s"
                raise InputError(place, found=f"{times} boxes", expected=f"at most {_MOST_AT_ONCE}")

        decided = Counter([*payload.decided.accepted, *payload.decided.refused])
        wrong = next((one for one, times in decided.items() if one >= len(body.proposals) or times > 1), None)
        if wrong is not None:
            expected = f"each of {len(body.proposals)} once, from 0"
            raise InputError("reading, proposals", found=str(wrong), expected=expected)

    def missing(self, body: BoxesBody, payload: BoxesPayload) -> list[str]:
        open_ = len(body.proposals) - len(payload.decided.accepted) - len(payload.decided.refused)
        lacking = (
            [] if body.proposals and not payload.boxes else _nothing_or(bool(payload.boxes), nothing=payload.nothing)
        )
        return ["boxes.proposals"] * (open_ > 0) + lacking

    def said(self, body: BoxesBody, payload: BoxesPayload) -> Said:
        del body
        return Said(boxes=tuple(one.at for one in payload.boxes))


class MarkedMoment(FormModel):
    """A moment on the timeline, of one kind."""

    time: Seconds
    kind: Label
    note: Line = ""


class MomentsBody(FormModel):
    """The kinds of moments to mark, and within how many seconds two marks are the same."""

    question: Passage = ""
    kinds: tuple[Label, ...] = Field(default=("insertion", "retrieval"), min_length=1, max_length=20)
    tolerance: float = Field(default=1.0, ge=0, le=600)


class MomentsPayload(FormModel):
    """The moments; `nothing` says that there is none."""

    moments: tuple[MarkedMoment, ...] = Field(default=(), max_length=_MOST_MOMENTS)
    nothing: bool = False


class MomentsForm(Form[MomentsBody, MomentsPayload]):
    """Moments on a timeline, by kind."""

    name = "moments"
    summary = "Mark moments on the timeline"
    body = MomentsBody
    payload = MomentsPayload

    def check(self, body: MomentsBody, payload: MomentsPayload) -> None:
        check_known([one.kind for one in payload.moments], body.kinds, "kind")

    def missing(self, body: MomentsBody, payload: MomentsPayload) -> list[str]:
        del body
        return _nothing_or(bool(payload.moments), nothing=payload.nothing)

    def said(self, body: MomentsBody, payload: MomentsPayload) -> Said:
        return Said(
            times={kind: tuple(sorted(one.time for one in payload.moments if one.kind == kind)) for kind in body.kinds}
        )

    def tolerance(self, body: MomentsBody) -> float:
        return body.tolerance

    def settled(self, payloads: Sequence[MomentsPayload]) -> MomentsPayload:
        """The mean of the times that belong together, kind by kind, in order."""
        first = payloads[0]
        kinds = dict.fromkeys(one.kind for one in first.moments)
        moments = []
        for kind in kinds:
            by_reader = [sorted((m for m in one.moments if m.kind == kind), key=lambda m: m.time) for one in payloads]
            for some in zip(*by_reader, strict=True):
                mean = sum(one.time for one in some) / len(some)
                moments.append(some[0].model_copy(update={"time": round(mean, 3)}))
        return first.model_copy(update={"moments": tuple(sorted(moments, key=lambda one: one.time))})


class OrderFrame(FormModel):
    """A frame of the strip: a time of one of the item's media (by place, from 0), or the whole of it where that is an
    image."""

    id: Label
    media: int = Field(default=0, ge=0, le=100)
    time: Seconds | None = None


class OrderBody(FormModel):
    """Frames to put in order, in the order in which they are shown; with a rationale or without."""

    question: Passage = ""
    frames: tuple[OrderFrame, ...] = Field(min_length=2, max_length=40)
    rationale: bool = True

    @model_validator(mode="after")
    def _unique(self) -> Self:
        if len({one.id for one in self.frames}) < len(self.frames):
            raise ValueError("each frame's id once is expected")
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """The frames as shown."""
        return tuple(one.id for one in self.frames)


class RationaleSentence(FormModel):
    """A sentence of a rationale, with the frames that it cites."""

    text: Passage
    frames: tuple[Label, ...] = Field(default=(), max_length=40)


class OrderPayload(FormModel):
    """The order, and why."""

    order: tuple[Label, ...] = Field(default=(), max_length=40)
    rationale: tuple[RationaleSentence, ...] = Field(default=(), max_length=40)


class OrderForm(Form[OrderBody, OrderPayload]):
    """Frames are put in order, with a rationale that cites them. Agreement is measured over every two frames: which of
    them comes first."""

    name = "order"
    summary = "Put frames in order and say why, citing them"
    body = OrderBody
    payload = OrderPayload

    def check(self, body: OrderBody, payload: OrderPayload) -> None:
        check_known(payload.order, body.ids, "order")
        check_known([name for one in payload.rationale for name in one.frames], body.ids, "rationale")

    def missing(self, body: OrderBody, payload: OrderPayload) -> list[str]:
        lacking = [] if sorted(payload.order) == sorted(body.ids) else ["order.order"]
        if body.rationale:
            lacking += [] if payload.rationale else ["order.rationale"]
            lacking += [] if all(one.text and one.frames for one in payload.rationale) else ["order.citation"]
        return lacking

    def media_needed(self, body: OrderBody) -> int:
        return 1 + max(one.media for one in body.frames)

    def dimension(self, label: str) -> str:
        del label
        return "order of two frames"

    def said(self, body: OrderBody, payload: OrderPayload) -> Said:
        place = {name: number for number, name in enumerate(payload.order)}
        pairs = {
            f"{one} before {other}": yes(place[one] < place[other])
            for one, other in combinations(sorted(body.ids), 2)
            if one in place and other in place
        }
        return Said(pairs)

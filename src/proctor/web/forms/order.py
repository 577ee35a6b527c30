"""Frames put in order, with a rationale by sentence."""

from __future__ import annotations

from itertools import combinations
from typing import Self

from pydantic import Field, model_validator

from proctor.web.forms.base import Form, FormModel, Label, Passage, Said, Seconds, check_known, yes


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

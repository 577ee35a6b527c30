"""Answers of systems, rated by people who do not know whose they are."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from proctor.core import InputError
from proctor.web.forms.base import Form, FormModel, Label, Passage, Said, check_known


class RatedDimension(FormModel):
    """What an answer is rated on, with the values that may be given, lowest first."""

    name: Label
    levels: tuple[float, ...] = Field(min_length=2, max_length=9)
    description: Passage = ""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if list(self.levels) != sorted(set(self.levels)):
            raise ValueError("levels that rise are expected")
        return self


class RatingBody(FormModel):
    """One answer to a question, without a word of who gave it."""

    question: Passage
    answer: Passage
    reference: Passage = ""
    dimensions: tuple[RatedDimension, ...] = Field(min_length=1, max_length=20)


class RatingPayload(FormModel):
    """A level on each dimension."""

    scores: dict[Label, float] = Field(default={}, max_length=20)


class RatingForm(Form[RatingBody, RatingPayload]):
    """An answer is rated on dimensions."""

    name = "rating"
    summary = "Rate an answer on dimensions"
    body = RatingBody
    payload = RatingPayload

    def check(self, body: RatingBody, payload: RatingPayload) -> None:
        levels = {one.name: one.levels for one in body.dimensions}
        check_known(list(payload.scores), list(levels), "dimension")
        for name, score in payload.scores.items():
            if score not in levels[name]:
                expected = f"one of {', '.join(f'{level:g}' for level in levels[name])}"
                raise InputError(f"reading, dimension {name!r}", found=f"{score:g}", expected=expected)

    def missing(self, body: RatingBody, payload: RatingPayload) -> list[str]:
        return ["rating.scores"] if any(one.name not in payload.scores for one in body.dimensions) else []

    def said(self, body: RatingBody, payload: RatingPayload) -> Said:
        return Said(
            ratings={one.name: payload.scores[one.name] for one in body.dimensions if one.name in payload.scores}
        )


class PairwiseBody(FormModel):
    """Two answers to a question, in an order drawn by seed, without a word of who gave them."""

    question: Passage
    answers: tuple[Passage, Passage]
    reference: Passage = ""


class PairwisePayload(FormModel):
    """The better answer, or none, and why."""

    choice: Literal["first", "second", "tie"] | None = None
    reason: Passage = ""


class PairwiseForm(Form[PairwiseBody, PairwisePayload]):
    """The better of two answers is chosen."""

    name = "pairwise"
    summary = "Choose the better of two answers"
    body = PairwiseBody
    payload = PairwisePayload

    def missing(self, body: PairwiseBody, payload: PairwisePayload) -> list[str]:
        del body
        return [] if payload.choice else ["pairwise.choice"]

    def said(self, body: PairwiseBody, payload: PairwisePayload) -> Said:
        del body
        return Said({"choice": payload.choice or ""})

    def levels(self, dimension: str) -> tuple[str, ...]:
        del dimension
        return "first", "second", "tie"

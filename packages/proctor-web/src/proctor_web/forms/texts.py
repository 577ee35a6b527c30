"""Forms on texts: questions to check, answers to rate, and answers to choose between."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from proctor.core import InputError, content_hash
from proctor.core.formats import MOST_OPTIONS
from proctor_web.forms.base import (
    MOST_SECONDS,
    Form,
    FormModel,
    Label,
    Line,
    Passage,
    ReadingValues,
    Seconds,
    check_known,
    yes,
)

CHECKS = ("pictures", "one_right", "distractors", "clinical")
"""The checks of a question: answerable from the pictures, exactly one right option, distractors plausible and wrong,
clinically right."""


class QuestionEvent(FormModel):
    """An action from `start` to `end`, and the transcript's words that it was derived from."""

    start: Seconds
    end: Seconds
    text: Passage
    words: Passage = ""


class QuestionText(FormModel):
    """The parts of a question that people may edit: options (`key` is the index of the right one) or a free `answer`.
    Questions by experts may also have `format`, `tolerance`, `labels` (capabilities), `relevance` and the `moment` that
    they start from."""

    stem: Passage
    options: tuple[Line, ...] = Field(default=(), max_length=MOST_OPTIONS)
    key: int | None = Field(default=None, ge=0)
    answer: Passage = ""
    explanation: Passage = ""
    format: Line = ""
    tolerance: float | None = Field(default=None, ge=0, le=MOST_SECONDS)
    labels: tuple[Label, ...] = Field(default=(), max_length=20)
    relevance: Passage = ""
    moment: Seconds | None = None

    @property
    def faults(self) -> list[str]:
        """What the question lacks, as keys of the pages' texts."""
        lacking = [] if self.stem else ["question.stem"]
        if self.options:
            if len(self.options) < 2 or not all(self.options) or len(set(self.options)) < len(self.options):
                lacking.append("question.options")
            if self.key is None or self.key >= len(self.options):
                lacking.append("question.key")
        elif not self.answer:
            lacking.append("question.answer")
        return lacking


class QuestionBody(QuestionText):
    """A question with its source: events with their words, flags of screening, former versions, and the version of the
    construction project's question (`origin`), by which the consensus is imported there."""

    events: tuple[QuestionEvent, ...] = Field(default=(), max_length=100)
    flags: tuple[Line, ...] = Field(default=(), max_length=50)
    former: tuple[QuestionText, ...] = Field(default=(), max_length=50)
    type: Line = ""
    origin: Line = ""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.faults:
            raise ValueError("a stem with two or more different options and a key, or with an answer, is expected")
        return self

    @property
    def text(self) -> QuestionText:
        """The parts that people may edit."""
        return QuestionText.model_validate(self.model_dump(include=set(QuestionText.model_fields)))


_BESIDES = ("format", "tolerance", "labels", "relevance", "moment")


def changed(body: QuestionBody, edited: QuestionText) -> QuestionText:
    """The question after an edit. Format, tolerance, capabilities, relevance and moment stay unless the edit has its
    own."""
    kept = {name: getattr(body, name) for name in _BESIDES if getattr(edited, name) in ("", (), None)}
    return edited.model_copy(update=kept)


class QuestionPayload(FormModel):
    """The decision on a question, each check yes or no, the question as the reader `edited` it, and the `reason`."""

    decision: Literal["accept", "edit", "reject"] | None = None
    checks: dict[Literal["pictures", "one_right", "distractors", "clinical"], bool] = Field(default={})
    edited: QuestionText | None = None
    reason: Passage = ""


class QuestionForm(Form[QuestionBody, QuestionPayload]):
    """Accept, edit or reject a question after four checks."""

    name = "question"
    body = QuestionBody
    payload = QuestionPayload

    def missing(self, body: QuestionBody, payload: QuestionPayload) -> list[str]:
        lacking = [] if payload.decision else ["question.decision"]
        lacking += [f"question.check.{name}" for name in self.checks(body) if name not in payload.checks]
        if payload.decision == "accept" and not all(payload.checks.values()):
            lacking.append("question.accepted_with_fault")
        if payload.decision in ("edit", "reject") and not payload.reason:
            lacking.append("question.reason")
        if payload.decision == "edit":
            same = payload.edited is None or changed(body, payload.edited) == body.text
            lacking += ["question.edited"] if same else []
            lacking += payload.edited.faults if payload.edited is not None else []
        return lacking

    def checks(self, body: QuestionBody) -> tuple[str, ...]:
        """The checks of this question; those on options only if it has options."""
        return CHECKS if body.options else ("pictures", "clinical")

    def values(self, body: QuestionBody, payload: QuestionPayload) -> ReadingValues:
        given = {str(name): value for name, value in payload.checks.items()}
        labels: dict[str, str] = {"decision": payload.decision or ""}
        labels |= {name: yes(given[name]) for name in self.checks(body) if name in given}
        edited = payload.edited if payload.decision == "edit" else None
        return ReadingValues(labels, text="" if edited is None else content_hash(changed(body, edited)))

    def levels(self, dimension: str) -> tuple[str, ...]:
        return ("accept", "edit", "reject") if dimension == "decision" else super().levels(dimension)

    def new_body(self, body: QuestionBody, payload: QuestionPayload) -> dict[str, JsonValue] | None:
        if payload.decision != "edit" or payload.edited is None:
            return None
        kept = body.model_copy(update={"former": (*body.former, body.text)[-50:]})
        return kept.model_dump(mode="json") | changed(body, payload.edited).model_dump(mode="json")


class RatedDimension(FormModel):
    """A dimension of ratings, with its levels in ascending order, and a word for each level where there are `labels`."""

    name: Label
    levels: tuple[float, ...] = Field(min_length=2, max_length=11)
    labels: tuple[Label, ...] = Field(default=(), max_length=11)
    description: Passage = ""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if list(self.levels) != sorted(set(self.levels)):
            raise ValueError("levels that rise are expected")
        if self.labels and len(self.labels) != len(self.levels):
            raise ValueError(f"a label for each of the {len(self.levels)} levels is expected, not {len(self.labels)}")
        return self

    def word(self, level: float) -> str:
        """The label of a level; "" without labels."""
        return self.labels[self.levels.index(level)] if self.labels else ""


class RatingBody(FormModel):
    """One answer to a question; its system is not disclosed."""

    question: Passage
    answer: Passage
    reference: Passage = ""
    dimensions: tuple[RatedDimension, ...] = Field(min_length=1, max_length=20)


class RatingPayload(FormModel):
    """A level on each dimension."""

    scores: dict[Label, float] = Field(default={}, max_length=20)


class RatingForm(Form[RatingBody, RatingPayload]):
    """Rate an answer on dimensions."""

    name = "rating"
    body = RatingBody
    payload = RatingPayload

    def check(self, body: RatingBody, payload: RatingPayload) -> None:
        levels = {dimension.name: dimension.levels for dimension in body.dimensions}
        check_known(list(payload.scores), list(levels), "dimension")
        for name, score in payload.scores.items():
            if score not in levels[name]:
                expected = f"one of {', '.join(f'{level:g}' for level in levels[name])}"
                raise InputError(f"reading, dimension {name!r}", found=f"{score:g}", expected=expected)

    def missing(self, body: RatingBody, payload: RatingPayload) -> list[str]:
        return ["rating.scores"] if any(dimension.name not in payload.scores for dimension in body.dimensions) else []

    def values(self, body: RatingBody, payload: RatingPayload) -> ReadingValues:
        return ReadingValues(
            ratings={
                dimension.name: payload.scores[dimension.name]
                for dimension in body.dimensions
                if dimension.name in payload.scores
            }
        )


class PairwiseBody(FormModel):
    """Two answers to a question in random order; their systems are not disclosed."""

    question: Passage
    answers: tuple[Passage, Passage]
    reference: Passage = ""


class PairwisePayload(FormModel):
    """The better answer or a tie, and the reason."""

    choice: Literal["first", "second", "tie"] | None = None
    reason: Passage = ""


class PairwiseForm(Form[PairwiseBody, PairwisePayload]):
    """Choose the better of two answers."""

    name = "pairwise"
    body = PairwiseBody
    payload = PairwisePayload

    def missing(self, body: PairwiseBody, payload: PairwisePayload) -> list[str]:
        del body
        return [] if payload.choice else ["pairwise.choice"]

    def values(self, body: PairwiseBody, payload: PairwisePayload) -> ReadingValues:
        del body
        return ReadingValues({"choice": payload.choice or ""})

    def levels(self, dimension: str) -> tuple[str, ...]:
        del dimension
        return "first", "second", "tie"

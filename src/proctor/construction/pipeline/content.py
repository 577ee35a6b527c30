"""The records that stages of several benchmarks share: words, events, questions. Times are seconds of the video's own
clock."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from proctor.construction.pipeline.records import Frozen, Record

LOW_CONFIDENCE = "low confidence"
"""The flag of what a recogniser was not sure of."""


class Word(Frozen):
    """A word that was said, from `start` to `end`; `confidence` is the recogniser's (0 to 1), None where it gave
    none."""

    text: str = Field(min_length=1)
    start: float
    end: float
    confidence: float | None = Field(default=None, ge=0, le=1)


class FromSource(Record):
    """What is about one source."""

    source: str


class Timed(FromSource):
    """What lasts from `start` to `end` of one source."""

    start: float = Field(ge=0)
    end: float

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"an end after the start at {self.start:g} s is expected")
        return self


class Sentence(Timed):
    """A stretch of speech. `words` have times where the transcript gives them; `original` is the text before it was
    normalised, where it was."""

    text: str = Field(min_length=1)
    words: tuple[Word, ...] = ()
    original: str = ""


class ProcedureEvent(Timed):
    """What the operator does (`action`) and what for (`intent`, empty where it was not said); `made_from` are the
    sentences that say it, `quote` is their words."""

    action: str = Field(min_length=1)
    intent: str = ""
    quote: str = ""


class DraftQuestion(Timed):
    """A draft of a question about a stretch of one source, with options (the key is `options[key]`) or with a free
    `answer`; `groundtruth` says the events behind it in one piece. `version` counts the times it was changed."""

    type: str = Field(min_length=1)
    kind: Literal["mcq", "free"]
    text: str = Field(min_length=1)
    options: tuple[str, ...] = ()
    key: int | None = Field(default=None, ge=0)
    answer: str = ""
    groundtruth: str = Field(min_length=1)
    version: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind == "mcq" and (len(self.options) < 2 or self.key is None or self.key >= len(self.options)):
            raise ValueError("options, and the position of the right one among them, are expected")
        if self.kind == "free" and (self.options or self.key is not None or not self.answer):
            raise ValueError("an answer and no options are expected")
        return self

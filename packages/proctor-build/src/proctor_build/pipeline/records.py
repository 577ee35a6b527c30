"""The records that stages write: what they hold, what they were made from, and what was refused and why.

Times are seconds of the video's own clock.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from proctor.core import FrozenModel, ProctorError, Usage

_MOST_SHOWN = 400


class Call(FrozenModel):
    """A model's reply behind a record: its key in the project's journal, the model, the SHA-256 of the prompt's file
    ("" for recognised speech), and the number of the attempt, from 0."""

    key: str
    model: str
    prompt_sha256: str
    attempt: int = Field(default=0, ge=0)


class Record(FrozenModel):
    """What one stage made. `id` is unique within its stage and stays the same when the stage runs again; `made_from`
    are the ids of records of earlier stages; `flags` say what a person should look at."""

    id: str = Field(min_length=1)
    made_from: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    flags: tuple[str, ...] = ()


class Refused(FrozenModel):
    """What a stage rejected, and why. `kind` names the cause, `found` is what was rejected, cut to 400 characters.
    `usage` is that of replies that no record of the journal holds: they never had the form, or declined."""

    id: str
    kind: str
    reason: str
    found: str = ""
    made_from: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()

    @staticmethod
    def of(
        location: str,
        kind: str,
        reason: str,
        found: object = "",
        made_from: tuple[str, ...] = (),
        calls: tuple[Call, ...] = (),
    ) -> Refused:
        """A rejection of anything that can be written as text; of an error, with its usage.

        >>> Refused.of("v1-e3", "times", "ends before it starts", {"start": 3, "end": 2}).found
        "{'start': 3, 'end': 2}"
        """
        text = found if isinstance(found, str) else str(found)
        usage = (found.usage if isinstance(found, ProctorError) else None) or Usage()
        return Refused(
            id=location,
            kind=kind,
            reason=reason,
            found=text[:_MOST_SHOWN],
            made_from=made_from,
            calls=calls,
            usage=usage,
        )


class UnitFile(FrozenModel):
    """The content of `work/STAGE/UNIT.json`: what a stage made of one unit (a source, or all of them). `made_from` is
    the hash of all inputs: the unit is up to date while it stays the same. `notes` are shown with the funnel."""

    stage: str
    unit: str
    made_from: str
    attempts: dict[str, int] = Field(default_factory=dict)
    records: tuple[dict[str, JsonValue], ...] = ()
    refused: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()


LOW_CONFIDENCE = "low confidence"
"""The flag of speech that a recogniser was not sure of."""


class Word(FrozenModel):
    """A spoken word, from `start` to `end`; `confidence` is the recogniser's (0 to 1), None where it gave none."""

    text: str = Field(min_length=1)
    start: float
    end: float
    confidence: float | None = Field(default=None, ge=0, le=1)


class FromSource(Record):
    """A record about one source."""

    source: str


class Timed(FromSource):
    """A record about one source from `start` to `end`."""

    start: float = Field(ge=0)
    end: float

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"an end after the start at {self.start:g} s is expected")
        return self


class Sentence(Timed):
    """A stretch of speech. `words` have times where the transcript gives them; `original` is the text before
    normalisation."""

    text: str = Field(min_length=1)
    words: tuple[Word, ...] = ()
    original: str = ""


class ProcedureEvent(Timed):
    """What the operator does (`action`) and why (`intent`, empty where it was not said); `made_from` are the sentences
    that say so, `quote` is their words."""

    action: str = Field(min_length=1)
    intent: str = ""
    quote: str = ""


class DraftQuestion(Timed):
    """A draft of a question about a stretch of one source, with options (the right one is `options[key]`) or with a
    free `answer`; `groundtruth` tells the events behind it in one text. `version` counts its changes. Questions of one
    `pool` have right answers of one another as wrong options, and stay in one part; "" is none."""

    type: str = Field(min_length=1)
    kind: Literal["mcq", "free"]
    text: str = Field(min_length=1)
    options: tuple[str, ...] = ()
    key: int | None = Field(default=None, ge=0)
    answer: str = ""
    groundtruth: str = Field(min_length=1)
    version: int = Field(default=0, ge=0)
    pool: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind == "mcq" and (len(self.options) < 2 or self.key is None or self.key >= len(self.options)):
            raise ValueError("options, and the position of the right one among them, are expected")
        if self.kind == "free" and (self.options or self.key is not None or not self.answer):
            raise ValueError("an answer and no options are expected")
        return self

"""The records that stages write: what they hold, what they were made from, and what was refused and why.

Times are seconds of the video's own clock.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

_MOST_SHOWN = 400


class Frozen(BaseModel):
    """A value of a project's files: plain JSON, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Call(Frozen):
    """A model's reply behind a record: its key in the project's journal, the model, the SHA-256 of the prompt's file
    ("" where a sound was heard), and the number of the attempt, from 0. The same attempt is asked once."""

    key: str
    model: str
    prompt_sha256: str
    attempt: int = Field(default=0, ge=0)


class Record(Frozen):
    """What one stage made. `id` is unique among all records of its stage and stays the same when the stage is run
    again; `made_from` are the ids of records of earlier stages; `flags` say what a person should look at."""

    id: str = Field(min_length=1)
    made_from: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    flags: tuple[str, ...] = ()


class Refused(Frozen):
    """What a stage did not let pass, and why. `kind` is the same for all that has one cause; `found` is what it was,
    cut to 400 characters."""

    id: str
    kind: str
    reason: str
    found: str = ""
    made_from: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()

    @staticmethod
    def of(
        place: str,
        kind: str,
        reason: str,
        found: object = "",
        made_from: tuple[str, ...] = (),
        calls: tuple[Call, ...] = (),
    ) -> Refused:
        """With a text of whatever was found.

        >>> Refused.of("v1-e3", "times", "ends before it starts", {"start": 3, "end": 2}).found
        "{'start': 3, 'end': 2}"
        """
        text = found if isinstance(found, str) else str(found)
        return Refused(id=place, kind=kind, reason=reason, found=text[:_MOST_SHOWN], made_from=made_from, calls=calls)


class UnitFile(Frozen):
    """What a stage made of one unit (a source, or all of them): the content of `work/STAGE/UNIT.json`. `made_from` is
    the hash of everything that led to it: while it stays, there is nothing to do. `notes` are for the person who reads
    the funnel."""

    stage: str
    unit: str
    made_from: str
    attempts: dict[str, int] = {}
    records: tuple[dict[str, JsonValue], ...] = ()
    refused: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()


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

"""What a stage writes: records that say what they were made from, and what it refused and why."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, JsonValue

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

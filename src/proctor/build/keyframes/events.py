"""What an event log says of key frames: a rationale for their order, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from proctor.core import InputError
from proctor.core.files import read_bytes

__all__ = ["LoggedEvent", "rationale", "read_events"]

_KINDS = {
    "inserted": "the {name} is brought in",
    "moved": "the {name} is moved to another place",
    "hidden": "the {name} is covered",
    "retrieved": "the {name} is carried away",
}
"""The kinds of event that the simulator logs."""

Seconds = Annotated[float, Field(ge=0)]


class LoggedEvent(BaseModel):
    """One event, in seconds of its video: `text` says what happens ("the pads are placed"); the simulator's own events
    say it by `kind` and `class_name`."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    start: Seconds
    end: Seconds
    text: str = ""
    kind: str = ""
    class_name: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"an end from {self.start:g} on")
        if not self.said:
            raise ValueError(f"a text, or a kind ({', '.join(_KINDS)}) with a class_name")
        return self

    @property
    def said(self) -> str:
        """What happens, as part of a sentence; empty where the event does not say it."""
        known = _KINDS.get(self.kind, "") if self.class_name else ""
        return self.text.strip().rstrip(".") or known.format(name=self.class_name)


class _Log(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    events: tuple[LoggedEvent, ...]


def read_events(folder: Path, video: str) -> tuple[LoggedEvent, ...]:
    """The log of a video, `NAME.json` for `NAME.mp4`: `{"events": [{"start": 1.5, "end": 3, "text": "…"}, …]}`, in order
    of start. Raises `InputError` where there is none, or where it is something else."""
    file = folder / Path(video).with_suffix(".json")
    try:
        log = _Log.model_validate_json(read_bytes(file))
    except FileNotFoundError as error:
        raise InputError(file, found="no such file", expected=f"the event log of {video}") from error
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        place = f"field {field!r}" if field else ""
        found = "nothing" if first["type"] == "missing" else repr(first["input"])[:80]
        raise InputError(
            file, place, found=found, expected=first["msg"].removeprefix("Value error, ")
        ) from error
    return tuple(sorted(log.events, key=lambda one: (one.start, one.end)))


def rationale(order: Sequence[str], times: Sequence[float], events: Sequence[LoggedEvent]) -> str:
    """Why frames stand in this order, after the log: of each event in which frames it is seen, or between which two it
    happens; `times` are those of `order`. Empty where the log has nothing from the first frame to the last.

    >>> log = [LoggedEvent(start=1, end=3, text="the pads are placed"), LoggedEvent(start=4, end=5, text="a shock is given")]
    >>> rationale(["B", "C", "A"], [0.5, 2, 6], log)
    'In C the pads are placed. Between C and A a shock is given.'
    """
    sentences = []
    for one in events:
        inside = [label for label, time in zip(order, times, strict=True) if one.start <= time <= one.end]
        gap = next(
            (at for at in range(1, len(times)) if times[at - 1] < one.start and one.end < times[at]), 0
        )
        if inside:
            sentences.append(f"In {_joined(inside)} {one.said}.")
        elif gap:
            sentences.append(f"Between {order[gap - 1]} and {order[gap]} {one.said}.")
    return " ".join(sentences)


def _joined(labels: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))

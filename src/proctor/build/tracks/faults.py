"""What every reader of annotations shares: what the user adds to a file, and a fault told in one line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from proctor.core import InputError

__all__ = ["Given", "checked"]


@dataclass(frozen=True)
class Given:
    """What a file may lack and its user knows: frames per second, the kind of procedure. A file's own word
    counts before it."""

    fps: float | None = None
    procedure: str = ""

    def __post_init__(self) -> None:
        if self.fps is not None and not 1 <= self.fps <= 1000:
            raise InputError(None, "fps", found=f"{self.fps:g}", expected="1 to 1000")


def checked(file: Path, place: str, error: ValidationError) -> InputError:
    """pydantic's first complaint as one line that names the field."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    where = ", ".join(part for part in (place, f"field {field!r}" if field else "") if part)
    plain = isinstance(first["input"], str | int | float | bool | None)
    found = repr(first["input"])[:80] if plain else f"a {type(first['input']).__name__}"
    if first["type"] == "missing":
        found = "nothing"
    return InputError(file, where, found=found, expected=first["msg"].removeprefix("Value error, "))

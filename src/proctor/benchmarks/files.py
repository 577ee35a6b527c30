"""Reading a benchmark's JSON files: what is wrong is told in one line, with the place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from proctor.core import InputError
from proctor.core.files import JsonError, load_json, read_bytes

__all__ = ["read_json", "validated"]

Model = TypeVar("Model", bound=BaseModel)


def read_json(
    file: Path,
    expected: str = "a JSON file",
    *,
    pairs: Callable[[list[tuple[str, Any]]], object] | None = None,
    halves: bool = False,
) -> object:
    """The value in a JSON file in UTF-8; `pairs` makes what stands for an object, where a key given twice matters;
    `halves` of characters are refused unless they are asked for.
    Raises `InputError` that names the place of the fault."""
    try:
        return load_json(read_bytes(file), pairs=pairs, halves=halves)
    except FileNotFoundError as error:
        raise InputError(file, found="no such file", expected=expected) from error
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected=expected) from error
    except JsonError as error:
        raise InputError(file, error.place, found=error.found, expected="JSON") from error
    except UnicodeDecodeError as error:
        raise InputError(
            file, f"byte {error.start}", found="text that is not UTF-8", expected="UTF-8"
        ) from error


def validated(model: type[Model], entry: object, file: Path, place: str) -> Model:
    """One entry, checked. Raises `InputError` that names the field."""
    try:
        return TypeAdapter(model).validate_python(entry)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        where = f"{place}, field {field!r}" if field else place
        found = "nothing" if first["type"] == "missing" else repr(first["input"])[:80]
        raise InputError(file, where, found=found, expected=first["msg"]) from error

"""Reading a benchmark's JSON files: what is wrong is told in one line, with the place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from proctor.core import InputError

__all__ = ["read_json", "validated"]

Model = TypeVar("Model", bound=BaseModel)


def read_json(
    file: Path,
    expected: str = "a JSON file",
    *,
    pairs: Callable[[list[tuple[str, Any]]], object] | None = None,
) -> object:
    """The value in a JSON file in UTF-8; `pairs` makes what stands for an object, where a key given twice matters.
    Raises `InputError` that names the place of the fault."""
    try:
        return json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=pairs)
    except FileNotFoundError as error:
        raise InputError(file, found="no such file", expected=expected) from error
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected=expected) from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(file, place, found=error.msg.lower(), expected="JSON") from error
    except UnicodeDecodeError as error:
        raise InputError(
            file, f"byte {error.start}", found="text that is not UTF-8", expected="UTF-8"
        ) from error
    except RecursionError as error:
        raise InputError(file, found="lists or objects nested too deep", expected="JSON") from error
    except ValueError as error:  # Python reads no whole number of more than 4,300 digits
        raise InputError(file, found="a number of thousands of digits", expected="JSON") from error


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

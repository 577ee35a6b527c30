"""Records from a file: JSON, JSON lines or CSV, each with the place where it stands."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.core import InputError
from proctor.core.files import JsonError, load_json, read_text

__all__ = ["read_unique", "records"]

Model = TypeVar("Model", bound=BaseModel)


def records(file: Path, inside: str) -> list[tuple[str, JsonValue]]:
    """(place, record) of a `.json`, `.jsonl` or `.csv` file in UTF-8.

    JSON is a list of objects, the same below the key `inside`, or an object from ids to records (to orders
    alone, where a record is no object). Raises `InputError` for anything else, and for a key twice.
    """
    text = _text(file)
    suffix = file.suffix.casefold()
    if suffix == ".csv":
        return list(_rows(file, text))
    if suffix == ".jsonl":
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        return [(f"line {number}", _json(file, f"line {number}", line)) for number, line in lines]
    if suffix != ".json":
        raise InputError(file, found=f"a file named {file.name!r}", expected="a .json, .jsonl or .csv file")
    return _listed(file, _json(file, "", text), inside)


def read_unique(file: Path, inside: str, model: type[Model]) -> dict[str, Model]:
    """The records of a file by their `id`. Raises `InputError` that names the file and the item: a field that
    is not as it should be, an id twice, no record at all."""
    found: dict[str, Model] = {}
    for place, raw in records(file, inside):
        given = raw.get("id") if isinstance(raw, dict) else None
        where = f"item {given!r}" if isinstance(given, str) and given else place
        try:
            one = model.model_validate(raw)
        except ValidationError as error:
            raise _refused(file, where, error) from error
        name = str(given)
        if name in found:
            raise InputError(file, where, found=f"it a second time ({place})", expected="each item once")
        found[name] = one
    if not found:
        raise InputError(file, found="no entry", expected="one or more")
    return found


def _text(file: Path) -> str:
    try:
        return read_text(file, "utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(file, found="no such file", expected="a .json, .jsonl or .csv file") from error
    except UnicodeDecodeError as error:
        raise InputError(file, found="bytes that are no UTF-8", expected="a file in UTF-8") from error
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file") from error


def _json(file: Path, place: str, text: str) -> JsonValue:
    def once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        known: dict[str, JsonValue] = {}
        for key, value in pairs:
            if key in known:
                raise InputError(file, place, found=f"the key {key!r} twice", expected="each key once")
            known[key] = value
        return known

    try:
        value: JsonValue = load_json(text, pairs=once)
    except JsonError as error:
        raise InputError(file, place, found=f"no JSON ({error})", expected="JSON") from error
    return value


def _listed(file: Path, value: JsonValue, inside: str) -> list[tuple[str, JsonValue]]:
    if isinstance(value, dict) and isinstance(value.get(inside), list):
        value = value[inside]
    if isinstance(value, dict):
        return [
            (
                f"item {name!r}",
                {"id": name, **entry} if isinstance(entry, dict) else {"id": name, "order": entry},
            )
            for name, entry in value.items()
        ]
    if isinstance(value, list):
        return [(f"entry {number}", entry) for number, entry in enumerate(value, 1)]
    raise InputError(file, found=type(value).__name__, expected="a list of objects")


def _rows(file: Path, text: str) -> Iterator[tuple[str, JsonValue]]:
    table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = [column.strip() for column in table.fieldnames or ()]
        missing = {"id", "order"} - set(columns)
        if missing or len(set(columns)) != len(columns):
            raise InputError(
                file,
                "line 1",
                found=f"columns {', '.join(columns)}",
                expected="id, order and rationale, once each",
            )
        table.fieldnames = columns
        for row in table:
            place = f"line {table.line_num}"
            if None in row or None in row.values():
                raise InputError(file, place, found="another number of cells", expected=str(len(columns)))
            cells: dict[str, JsonValue] = dict(row.items())
            order = row["order"].strip()
            if order.startswith("["):
                cells["order"] = _json(file, place, order)
            yield place, cells
    except csv.Error as error:
        raise InputError(file, f"line {table.line_num}", found=str(error), expected="CSV") from error


def _refused(file: Path, place: str, error: ValidationError) -> InputError:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    where = f"{place}, field {field!r}" if field else place
    found = "nothing" if first["type"] == "missing" else repr(first["input"])[:80]
    return InputError(file, where, found=found, expected=first["msg"].removeprefix("Value error, "))

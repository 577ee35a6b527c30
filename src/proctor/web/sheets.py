"""Work by CSV, for people who use no browser: open items as a file to fill in, and decisions read from one.

A sheet has one item a row, with what is read, and empty cells for what is said. Its decisions pass the same checks as
those of a page, are sealed at once, and are that one person's: the rule of sealed readings holds for sheets, too.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from proctor.core import InputError, TableRow, cell_number, read_table, whole_file
from proctor.runs import read_safe_cell, safe_cell
from proctor.web.forms import CHECKS, Form, form_named
from proctor.web.readings import IncompleteError, OpenItem, Save, my_reading, open_item, seal
from proctor.web.schema import studies, study_items
from proctor.web.studies import my_work

SHEET_FORMS = ("question", "presence", "rating", "pairwise")
"""The forms whose readings fit into the cells of a row."""

_KEY = ("item", "version")
_YES = {"yes": True, "no": False, "ja": True, "nein": False, "1": True, "0": False}


@dataclass(frozen=True)
class SheetTally:
    """What a sheet did: readings that were `sealed`, rows `left` empty, and rows sealed `before` with the same
    content."""

    sealed: int
    left: int
    before: int


def write_sheet(connection: Connection, account: int, study: str, out: Path) -> int:
    """Writes the items that a person has still to read, in their order, and returns their number. Raises `InputError`
    for a form whose readings fit no row, and where `out` can't be written."""
    number, form = _study(connection, study)
    work = [one.item for one in my_work(connection, account, number) if one.role == "reader" and one.due]
    opened = [(item, open_item(connection, account, item)) for item in work]
    keys = _keys(connection, number)
    told = _told(form)
    said = _said_columns(form, [one.body for _, one in opened])
    with whole_file(out) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*_KEY, *told, *said])
        for item, one in opened:
            shown = [_shown(getattr(one.body, name)) for name in told]
            writer.writerow([safe_cell(cell) for cell in (keys[item], one.number, *shown, *("" for _ in said))])
    return len(opened)


def read_sheet(connection: Connection, account: int, study: str, file: Path, at: datetime) -> SheetTally:
    """Seals the decisions of a filled-in sheet as one person's: all of them or, where one row is wrong, none. Rows
    without any decision are left. Raises `InputError` with row and column."""
    number, form = _study(connection, study)
    ids = {key: item for item, key in _keys(connection, number).items()}
    mine = {one.item for one in my_work(connection, account, number) if one.role == "reader"}
    sealed = left = before = 0
    for row in read_table(file, _KEY, lenient=True).checked(file):
        cells = {name: str(read_safe_cell(cell)).strip() for name, cell in row.cells.items()}
        item = ids.get(cells["item"])
        if item is None or item not in mine:
            raise _wrong(file, row, "item", cells["item"], "an item of this person's work")
        opened = open_item(connection, account, item)
        if cells["version"] != str(opened.number):
            raise _wrong(file, row, "version", cells["version"], f"{opened.number}: write a new sheet")
        payload = _payload(form, opened, cells, file, row)
        if not payload:
            left += 1
            continue
        known = my_reading(connection, account, opened.version)
        save = Save(opened.number, 0 if known is None else known.revision, payload, cells.get("comment", ""))
        try:
            seal(connection, account, item, save, at)
        except IncompleteError as error:
            where = f"row {row.number}"
            raise InputError(file, where, found=f"no {', '.join(error.missing)}", expected="a whole reading") from error
        except InputError as error:
            raise InputError(file, f"row {row.number}", found=str(error)) from error
        before += known is not None and known.sealed is not None
        sealed += known is None or known.sealed is None
    return SheetTally(sealed, left, before)


def _study(connection: Connection, study: str) -> tuple[int, Form[Any, Any]]:
    row = connection.execute(select(studies.c.id, studies.c.form).where(studies.c.name == study)).one_or_none()
    if row is None:
        raise InputError("study", found=repr(study)[:80], expected="a study of the review")
    if row.form not in SHEET_FORMS:
        raise InputError(f"study {study}", found=f"the form {row.form}", expected=f"{', '.join(SHEET_FORMS)}")
    return int(row.id), form_named(row.form)


def _keys(connection: Connection, study: int) -> dict[int, str]:
    query = select(study_items.c.id, study_items.c.key).where(study_items.c.study == study)
    return {row.id: row.key for row in connection.execute(query)}


def _told(form: Form[Any, Any]) -> tuple[str, ...]:
    """The fields of a body that a row shows."""
    return {
        "question": ("stem", "options", "key", "answer", "explanation"),
        "presence": ("question",),
        "rating": ("question", "answer", "reference"),
        "pairwise": ("question", "answers", "reference"),
    }[form.name]


def _said_columns(form: Form[Any, Any], bodies: Sequence[Any]) -> list[str]:
    """The columns to fill in; classes and dimensions are those of all items."""
    if form.name == "question":
        return ["decision", *CHECKS, "reason", "comment"]
    if form.name == "pairwise":
        return ["choice", "reason", "comment"]
    named = [one.classes if form.name == "presence" else [d.name for d in one.dimensions] for one in bodies]
    return [*dict.fromkeys(name for some in named for name in some), "comment"]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "\n".join(f"{number}. {one}" for number, one in enumerate(value, start=1))
    if isinstance(value, int):  # the key: options are numbered from 1
        return str(value + 1)
    return "" if value is None else str(value)


def _payload(
    form: Form[Any, Any], opened: OpenItem, cells: Mapping[str, str], file: Path, row: TableRow
) -> dict[str, Any]:
    """What a row says; empty where nothing was filled in."""
    given: dict[str, Any]
    if form.name == "question":
        names = form.checks(opened.body)  # type: ignore[attr-defined]
        checks = {name: _flag(cells[name], file, row, name) for name in names if cells.get(name)}
        given = {"decision": cells.get("decision", "").lower(), "checks": checks, "reason": cells.get("reason", "")}
    elif form.name == "presence":
        flags = {name: _flag(cells[name], file, row, name) for name in opened.body.classes if cells.get(name)}
        if flags and len(flags) < len(opened.body.classes):
            empty = next(name for name in opened.body.classes if name not in flags)
            raise _wrong(file, row, empty, "", "yes or no in every column, or in none")
        present = [name for name, there in flags.items() if there]
        given = {"present": present, "nothing": bool(flags) and not present}
    elif form.name == "rating":
        names = [one.name for one in opened.body.dimensions]
        given = {"scores": {name: _number(cells[name], file, row, name) for name in names if cells.get(name)}}
    else:
        given = {"choice": cells.get("choice", "").lower(), "reason": cells.get("reason", "")}
    return {name: value for name, value in given.items() if value}


def _flag(cell: str, file: Path, row: TableRow, column: str) -> bool:
    if cell.lower() not in _YES:
        raise _wrong(file, row, column, cell, "yes or no")
    return _YES[cell.lower()]


def _number(cell: str, file: Path, row: TableRow, column: str) -> float:
    value = cell_number(cell)
    if value is None:
        raise _wrong(file, row, column, cell, "a number")
    return value


def _wrong(file: Path, row: TableRow, column: str, found: str, expected: str) -> InputError:
    return InputError(file, f"row {row.number}, column {column!r}", found=repr(found)[:80], expected=expected)

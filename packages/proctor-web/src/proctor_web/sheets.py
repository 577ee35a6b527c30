"""Sheets: open items as a CSV file to fill in, and decisions read from one, for people without a browser.

A sheet has one item per row, with empty cells for the decision. Decisions are checked like those of a page, final at
once, and belong to one person. An adjudicator's rows show the readings that differ, and their comment is the reason. A row names the revision of the person's draft when the sheet was written, so that what
was saved in the browser since is not overwritten.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from sqlalchemy import Connection, select

from proctor.core import (
    InputError,
    ProblemsError,
    TableRow,
    cell_number,
    read_safe_cell,
    read_table,
    safe_cell,
    whole_file,
)
from proctor_web.forms import CHECKS, Form, form_named
from proctor_web.progress import my_work
from proctor_web.readings import (
    ConflictError,
    IncompleteError,
    MyReading,
    OpenItem,
    Save,
    adjudicate,
    my_reading,
    open_item,
    save_draft,
    seal,
    settlement,
)
from proctor_web.schema import studies, study_items
from proctor_web.strings import DEFAULT, text
from proctor_web.visibility import others_readings

_SHOWN_FIELDS = {
    "question": ("stem", "options", "key", "answer", "explanation"),
    "presence": ("question",),
    "rating": ("question", "answer", "reference"),
    "choice": ("question", "options"),
    "pairwise": ("question", "answers", "reference"),
}
"""The fields of a body that a row shows, by form: the forms whose readings fit into a row."""

_KEY = ("item", "version")
_READINGS = "readings"
_REVISION = "revision"
_PAGE = "sheet"  # the page id of saves from a sheet, so that the same sheet can be read again
_YES = {"yes": True, "no": False, "ja": True, "nein": False, "1": True, "0": False}


@dataclass(frozen=True)
class SheetTally:
    """The rows of a sheet: readings that were `sealed` or settled, rows `left` without a decision, and rows sealed `before` with
    the same content. Of those left, `comments` have a comment, which is saved as a draft."""

    sealed: int
    left: int
    before: int
    comments: int = 0


def write_sheet(connection: Connection, account: int, study: str, out: Path) -> int:
    """Writes the items that wait for a person, to be read or to be settled, in their order, and returns their number.
    Raises `InputError` for a form whose readings do not fit a row, and where `out` can't be written."""
    number, form = _study(connection, study)
    work = [assigned.item for assigned in my_work(connection, account, number) if assigned.due]
    opened = [(item, open_item(connection, account, item)) for item in work]
    keys = _keys(connection, number)
    shown_fields = _SHOWN_FIELDS[form.name]
    settles = any(one.role == "adjudicator" for _, one in opened)
    decision_columns = _decision_columns(form, [one.body for _, one in opened])
    heads = (*_KEY, _REVISION, *shown_fields, *((_READINGS,) if settles else ()), *decision_columns)
    with whole_file(out) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([safe_cell(name) for name in heads])
        for item, one in opened:
            draft = my_reading(connection, account, one.version)
            known = (keys[item], one.number, 0 if draft is None else draft.revision)
            shown = [_shown(getattr(one.body, name)) for name in shown_fields]
            shown += [_differing(connection, account, one)] if settles else []
            writer.writerow([safe_cell(cell) for cell in (*known, *shown, *("" for _ in decision_columns))])
    return len(opened)


def read_sheet(connection: Connection, account: int, study: str, file: Path, at: datetime) -> SheetTally:
    """Seals the decisions of a filled-in sheet as one person's: all of them or, if one row is wrong, none. Rows without
    a decision are left: a comment in one is saved as a draft, and an empty comment leaves the draft's as it is.

    Raises `InputError` with row and column, and `ProblemsError` with all rows whose items were saved or sealed
    elsewhere since the sheet was written.
    """
    number, form = _study(connection, study)
    ids = {key: item for item, key in _keys(connection, number).items()}
    work = my_work(connection, account, number)
    mine = {one.item: one.role for one in work if one.role == "reader" or one.due or one.done}
    done: Counter[str] = Counter()
    conflicts = []
    for row in read_table(file, _KEY, lenient=True).checked(file):
        cells = {str(read_safe_cell(name)): str(read_safe_cell(cell)).strip() for name, cell in row.cells.items()}
        item = ids.get(cells["item"])
        if item is None or item not in mine:
            raise _wrong(file, row, "item", cells["item"], "an item of this person's work")
        opened = open_item(connection, account, item)
        if cells["version"] != str(opened.number):
            raise _wrong(file, row, "version", cells["version"], f"{opened.number}: write a new sheet")
        payload, revision = _payload(form, opened, cells, file, row), _revision(cells, file, row)
        try:
            if mine[item] == "adjudicator":
                done[_settled(connection, account, opened, payload, cells, at)] += 1
            else:
                done[_read(connection, account, opened, payload, cells, revision, at)] += 1
        except ConflictError as error:
            told = _conflict(error) if mine[item] == "reader" else "found another decision, expected no row for it"
            conflicts.append(f"row {row.number}, item {cells['item']!r}: {told}")
        except IncompleteError as error:
            lacking = "; ".join(text(DEFAULT, f"missing.{name}") for name in error.missing)
            raise InputError(file, f"row {row.number}: not yet complete: {lacking}") from error
        except InputError as error:
            raise InputError(file, f"row {row.number}: {error}") from error
    if conflicts:
        raise ProblemsError(file, conflicts)
    return SheetTally(done["sealed"], done["left"] + done["comment"], done["before"], done["comment"])


def _read(
    connection: Connection,
    account: int,
    opened: OpenItem,
    payload: dict[str, Any],
    cells: Mapping[str, str],
    revision: int,
    at: datetime,
) -> str:
    """Seals a reading as a row says, or keeps its comment as a draft; what became of the row."""
    known = my_reading(connection, account, opened.version)
    save = _save(opened, known, payload, cells, revision)
    if payload:
        seal(connection, account, opened.id, save, at)
        return "before" if known is not None and known.sealed is not None else "sealed"
    if cells.get("comment"):
        save_draft(connection, account, opened.id, save, at)
        return "comment"
    return "left"


def _settled(
    connection: Connection,
    account: int,
    opened: OpenItem,
    payload: dict[str, Any],
    cells: Mapping[str, str],
    at: datetime,
) -> str:
    """Settles an item as a row says, with its comment as the reason; what became of the row. Raises `IncompleteError` for a
    reason without a decision."""
    if not payload and not cells.get("comment"):  # a reason alone has no draft that could keep it
        return "left"
    known = settlement(connection, account, opened.version)
    adjudicate(connection, account, opened.id, opened.number, payload, cells.get("comment", ""), at)
    return "sealed" if known is None else "before"


def _differing(connection: Connection, account: int, opened: OpenItem) -> str:
    """The readings that an adjudicator settles, each on a line; "" for a reader's row."""
    if opened.role != "adjudicator":
        return ""
    some = others_readings(connection, account, opened.version)
    return "\n".join(
        f"Reader {letter} ({one.pseudonym}): {_in_words(one.payload)}{f' ({one.comment})' if one.comment else ''}"
        for letter, one in ((_letter(row), one) for row, one in enumerate(some))
    )


def _letter(row: int) -> str:
    return ascii_uppercase[row] if row < len(ascii_uppercase) else str(row + 1)


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_in_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _save(
    opened: OpenItem, known: MyReading | None, payload: dict[str, Any], cells: Mapping[str, str], revision: int
) -> Save:
    """What a row saves. An empty decision or comment leaves the draft's."""
    draft = known or MyReading({}, "", 0.0, 0, None)
    number = draft.last.number + 1 if draft.last is not None and draft.last.page == _PAGE else 1
    comment = cells.get("comment") or draft.comment
    return Save(opened.number, revision, payload or draft.payload, comment, page=_PAGE, number=number)


def _revision(cells: Mapping[str, str], file: Path, row: TableRow) -> int:
    """The revision of the draft when the sheet was written; older sheets without the column were written without a
    draft."""
    cell = cells.get(_REVISION) or "0"
    if not cell.isdecimal() or len(cell) > 9:
        raise _wrong(file, row, _REVISION, cell, "the number as the sheet was written")
    return int(cell)


def _conflict(error: ConflictError) -> str:
    if error.reading is not None and error.reading.sealed is not None:
        return "found another reading, submitted since the sheet was written, expected no row for it"
    return "found a draft, saved since the sheet was written, expected a new sheet, or to submit it in the browser"


def _study(connection: Connection, study: str) -> tuple[int, Form[Any, Any]]:
    row = connection.execute(select(studies.c.id, studies.c.form).where(studies.c.name == study)).one_or_none()
    if row is None:
        raise InputError("study", found=repr(study)[:80], expected="a study of the review")
    if row.form not in _SHOWN_FIELDS:
        expected = f"one of {', '.join(_SHOWN_FIELDS)}: its items are read in the browser (proctor serve)"
        raise InputError(f"study {study}", found=f"the form {row.form}", expected=expected)
    return int(row.id), form_named(row.form)


def _keys(connection: Connection, study: int) -> dict[int, str]:
    query = select(study_items.c.id, study_items.c.key).where(study_items.c.study == study)
    return {row.id: row.key for row in connection.execute(query)}


def _decision_columns(form: Form[Any, Any], bodies: Sequence[Any]) -> list[str]:
    """The columns to fill in, with the classes and dimensions of all items."""
    if form.name == "question":
        return ["decision", *CHECKS, "reason", "comment"]
    if form.name == "pairwise":
        return ["choice", "reason", "comment"]
    if form.name == "choice":
        return ["choice", "comment"]
    named = [body.classes if form.name == "presence" else [d.name for d in body.dimensions] for body in bodies]
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
    """The decision in a row; empty where nothing was filled in."""
    given: dict[str, Any]
    if form.name == "question":
        names = form.checks(opened.body)  # type: ignore[attr-defined]
        given = _question(names, cells, file, row)
    elif form.name == "presence":
        given = _presence(opened.body.classes, cells, file, row)
    elif form.name == "rating":
        names = [dimension.name for dimension in opened.body.dimensions]
        given = {"scores": {name: _number(cells[name], file, row, name) for name in names if cells.get(name)}}
    elif form.name == "choice":
        said = cells.get("choice", "")
        given = {"choice": next((name for name in opened.body.options if name.casefold() == said.casefold()), said)}
    else:
        given = {"choice": cells.get("choice", "").lower(), "reason": cells.get("reason", "")}
    return {name: value for name, value in given.items() if value}


def _question(checks: Sequence[str], cells: Mapping[str, str], file: Path, row: TableRow) -> dict[str, Any]:
    flags = {name: _flag(cells[name], file, row, name) for name in checks if cells.get(name)}
    decision = cells.get("decision", "").lower()
    if decision == "edit":
        raise _wrong(file, row, "decision", "edit", "accept or reject: a question is edited in the browser")
    return {"decision": decision, "checks": flags, "reason": cells.get("reason", "")}


def _presence(classes: Sequence[str], cells: Mapping[str, str], file: Path, row: TableRow) -> dict[str, Any]:
    flags = {name: _flag(cells[name], file, row, name) for name in classes if cells.get(name)}
    if flags and len(flags) < len(classes):
        empty = next(name for name in classes if name not in flags)
        raise _wrong(file, row, empty, "", "yes or no in every column, or in none")
    present = [name for name, there in flags.items() if there]
    return {"present": present, "nothing": bool(flags) and not present}


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

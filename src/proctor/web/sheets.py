"""Work by CSV, for people who use no browser: open items as a file to fill in, and decisions read from one.

A sheet has one item a row, with what is read, and empty cells for what is said. Its decisions pass the same checks as
those of a page, are sealed at once, and are that one person's: the rule of sealed readings holds for sheets, too. A row
names the revision of the draft that it was written beside: what was saved in the browser since is not overwritten.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from proctor.core import InputError, ProblemsError, TableRow, cell_number, read_table, whole_file
from proctor.runs import read_safe_cell, safe_cell
from proctor.web.forms import CHECKS, Form, form_named
from proctor.web.progress import my_work
from proctor.web.readings import (
    ConflictError,
    IncompleteError,
    MyReading,
    OpenItem,
    Save,
    my_reading,
    open_item,
    save_draft,
    seal,
)
from proctor.web.schema import studies, study_items
from proctor.web.strings import DEFAULT, text

SHEET_FORMS = ("question", "presence", "rating", "pairwise")
"""The forms whose readings fit into the cells of a row."""

_KEY = ("item", "version")
_REVISION = "revision"
_PAGE = "sheet"  # as which a sheet saves: one that is read again follows itself
_YES = {"yes": True, "no": False, "ja": True, "nein": False, "1": True, "0": False}


@dataclass(frozen=True)
class SheetTally:
    """What a sheet did: readings that were `sealed`, rows `left` without a decision, and rows sealed `before` with the
    same content. Of those left, `comments` have a comment, which is kept as a draft."""

    sealed: int
    left: int
    before: int
    comments: int = 0


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
        writer.writerow([*_KEY, _REVISION, *told, *said])
        for item, one in opened:
            draft = my_reading(connection, account, one.version)
            known = (keys[item], one.number, 0 if draft is None else draft.revision)
            shown = [_shown(getattr(one.body, name)) for name in told]
            writer.writerow([safe_cell(cell) for cell in (*known, *shown, *("" for _ in said))])
    return len(opened)


def read_sheet(connection: Connection, account: int, study: str, file: Path, at: datetime) -> SheetTally:
    """Seals the decisions of a filled-in sheet as one person's: all of them or, where one row is wrong, none. Rows
    without any decision are left; a comment in one is kept as a draft, and an empty cell for it leaves a draft's
    comment as it is. Raises `InputError` with row and column, and `ProblemsError` with all rows whose items were
    saved or sealed elsewhere since the sheet was written."""
    number, form = _study(connection, study)
    ids = {key: item for item, key in _keys(connection, number).items()}
    mine = {one.item for one in my_work(connection, account, number) if one.role == "reader"}
    done: Counter[str] = Counter()
    newer = []
    for row in read_table(file, _KEY, lenient=True).checked(file):
        cells = {name: str(read_safe_cell(cell)).strip() for name, cell in row.cells.items()}
        item = ids.get(cells["item"])
        if item is None or item not in mine:
            raise _wrong(file, row, "item", cells["item"], "an item of this person's work")
        opened = open_item(connection, account, item)
        if cells["version"] != str(opened.number):
            raise _wrong(file, row, "version", cells["version"], f"{opened.number}: write a new sheet")
        payload = _payload(form, opened, cells, file, row)
        known = my_reading(connection, account, opened.version)
        save = _save(opened, known, payload, cells, _revision(cells, file, row))
        what = "seal" if payload else "comment" if cells.get("comment") else "leave"
        try:
            done[_done(connection, account, item, known, save, what, at)] += 1
        except ConflictError as error:
            newer.append(f"row {row.number}, item {cells['item']!r}: {_newer(error)}")
        except IncompleteError as error:
            lacking = "; ".join(text(DEFAULT, f"missing.{name}") for name in error.missing)
            raise InputError(file, f"row {row.number}: not yet complete: {lacking}") from error
        except InputError as error:
            raise InputError(file, f"row {row.number}: {error}") from error
    if newer:
        raise ProblemsError(file, newer)
    return SheetTally(done["sealed"], done["left"] + done["comment"], done["before"], done["comment"])


def _done(
    connection: Connection, account: int, item: int, known: MyReading | None, save: Save, what: str, at: datetime
) -> str:
    """Seals a row's reading, keeps its comment, or leaves it; says which."""
    if what == "seal":
        seal(connection, account, item, save, at)
        return "before" if known is not None and known.sealed is not None else "sealed"
    if what == "comment":
        save_draft(connection, account, item, save, at)
        return "comment"
    return "left"


def _save(
    opened: OpenItem, known: MyReading | None, payload: dict[str, Any], cells: Mapping[str, str], revision: int
) -> Save:
    """What a row saves. Without a decision the draft's stays, without a comment the draft's."""
    draft = known or MyReading({}, "", 0.0, 0, None)
    number = draft.last.number + 1 if draft.last is not None and draft.last.page == _PAGE else 1
    comment = cells.get("comment") or draft.comment
    return Save(opened.number, revision, payload or draft.payload, comment, page=_PAGE, number=number)


def _revision(cells: Mapping[str, str], file: Path, row: TableRow) -> int:
    """Of the draft beside which the row was written; sheets of before it was there were written beside none."""
    cell = cells.get(_REVISION) or "0"
    if not cell.isdecimal() or len(cell) > 9:
        raise _wrong(file, row, _REVISION, cell, "the number as the sheet was written")
    return int(cell)


def _newer(error: ConflictError) -> str:
    if error.reading is not None and error.reading.sealed is not None:
        return "found another reading, sealed since the sheet was written, expected no row for it"
    return "found a draft, saved since the sheet was written, expected a new sheet, or a seal in the browser"


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
        decision = cells.get("decision", "").lower()
        if decision == "edit":
            raise _wrong(file, row, "decision", "edit", "accept or reject: a question is edited in the browser")
        given = {"decision": decision, "checks": checks, "reason": cells.get("reason", "")}
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

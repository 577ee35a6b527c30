"""Rows and columns of a table as people keep it, whatever file it comes from, with all that is wrong with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.core.tables import TableFault
from proctor.core.words import count_of

_MOST_COLUMNS = 500


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row: its number as a spreadsheet shows it (the header is row 1; of JSON Lines the line, of JSON and Parquet
    the entry), and its cells by column: texts, numbers, truth values, dates and times, lists; None where empty.

    >>> SheetRow(2, {"id": "q1", "start": 2.5}).cells["start"]
    2.5
    """

    number: int
    cells: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell that can't be taken for a value: what was found in it, and what was expected.

    >>> BadCell("a formula (=A1)", "its value").expected
    'its value'
    """

    found: str
    expected: str


@dataclass
class Sheet:
    """A file's rows as far as they could be read, its columns in their order, and all faults. `decimal_comma` says that
    numbers may be written so ("0,5"), since something else separates the columns; `notes` is what was decided.

    >>> Sheet(Path("a.csv"), ["id"], [SheetRow(2, {"id": "q1"})]).texts("id")
    ['q1']
    """

    file: Path
    columns: list[str] = field(default_factory=list)
    rows: list[SheetRow] = field(default_factory=list)
    faults: list[TableFault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    decimal_comma: bool = False

    def texts(self, column: str) -> list[str]:
        """What stands in a column, as texts, where something does."""
        return [cell_text(row.cells[column]) for row in self.rows if not is_empty(row.cells.get(column))]

    def fault(self, row: int, column: str, found: str, expected: str) -> None:
        """Adds a fault."""
        self.faults.append(TableFault(row, column, found, expected))


def is_empty(cell: object) -> bool:
    """Whether a cell holds nothing: no value, a text of white space, an empty list.

    >>> is_empty(" "), is_empty(None), is_empty([]), is_empty(0), is_empty(False)
    (True, True, True, False, False)
    """
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, list | dict) and not cell)


def cell_text(cell: object) -> str:
    """A cell as a text: whole numbers without a point, dates and times by ISO 8601.

    >>> cell_text(3.0), cell_text(" B "), cell_text(dt.time(1, 5, 3)), cell_text(None), cell_text(True)
    ('3', 'B', '01:05:03', '', 'true')
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 10**15 else repr(cell)
    if isinstance(cell, dt.datetime | dt.date | dt.time):
        return cell.isoformat()
    return str(cell).strip()


def add_records(sheet: Sheet, records: Iterator[tuple[int, Sequence[Any]]]) -> list[str]:
    """The names of all columns ("\\0…" for one without a name). Takes the first record for the header and the others
    for rows, as spreadsheets do: blank rows are passed over, empty columns at the end left out. Rows of another length,
    columns without a name and names given twice are faults."""
    place, header = next(records, (1, ()))
    while header and all(is_empty(cell) for cell in header):  # blank rows above the header
        place, header = next(records, (1, ()))
    names = _names(sheet, place, header)
    for number, cells in records:
        if all(is_empty(cell) for cell in cells):
            continue
        more = [cell for cell in cells[len(names) :] if not is_empty(cell)]
        if len(cells) < len(names) or more:
            sheet.fault(number, "", count_of(len(cells), "column"), count_of(len(names), "column"))
            continue
        row = dict(zip(names, cells, strict=False))
        for name, cell in row.items():
            if name.startswith("\0") and not is_empty(cell):
                sheet.fault(number, "", f"{_shown(cell)} in a column without a name", "a name in the header")
            elif isinstance(cell, BadCell):
                sheet.fault(number, name, cell.found, cell.expected)
                row[name] = None
        sheet.rows.append(SheetRow(number, {name: row[name] for name in sheet.columns if name in row}))
    return names


def _names(sheet: Sheet, place: int, header: Sequence[Any]) -> list[str]:
    """The columns' names; those without one get a name that no column has."""
    for cell in header:
        if isinstance(cell, BadCell):
            sheet.fault(place, "", cell.found, "the column's name")
    texts = ["" if isinstance(cell, BadCell) else cell_text(cell) for cell in header]
    while texts and not texts[-1]:
        texts.pop()
    if len(texts) > _MOST_COLUMNS:
        sheet.fault(place, "", f"{len(texts):,} columns", f"at most {_MOST_COLUMNS}")
        texts = []
    for name in dict.fromkeys(texts):
        if name and texts.count(name) > 1:
            sheet.fault(place, name, f"{texts.count(name)} columns of this name", "each name once")
    sheet.columns = list(dict.fromkeys(name for name in texts if name))
    return [name or f"\0{index}" for index, name in enumerate(texts)]


def add_entries(sheet: Sheet, entries: Sequence[tuple[int, Any]]) -> None:
    """Takes each object for a row; what is no object is a fault."""
    names: dict[str, None] = {}
    for number, entry in entries:
        if not isinstance(entry, dict):
            sheet.fault(number, "", _shown(entry), "an object")
            continue
        cells = {key.strip(): value for key, value in entry.items() if key.strip()}
        if all(is_empty(cell) for cell in cells.values()):
            continue
        names |= dict.fromkeys(cells)
        sheet.rows.append(SheetRow(number, cells))
    sheet.columns = list(names)


def _shown(value: object) -> str:
    return repr(value)[:60] if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"

"""The rows and faults of a table that is being read, whatever kind of file it comes from."""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.core.csv_files import TableFault
from proctor.core.formats.base import MOST_CELL_CHARS
from proctor.core.formatting import count_of

_MAX_COLUMNS = 500


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row: its number as in a spreadsheet (the header is row 1; for JSON Lines the line, for JSON and Parquet the
    entry), and its cells by column: texts, numbers, booleans, dates and times, lists, or None if empty.

    >>> SheetRow(2, {"id": "q1", "start": 2.5}).cells["start"]
    2.5
    """

    number: int
    cells: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell without a usable value: what was found and what was expected.

    >>> BadCell("a formula (=A1)", "its value").expected
    'its value'
    """

    found: str
    expected: str


@dataclass(frozen=True, slots=True)
class ShortClock:
    """A time shown as h:mm in a spreadsheet. It is ambiguous: "1:05" typed for 1 min 5 s is stored as 1 h 5 min.

    >>> str(ShortClock(3900.0))
    '1:05 (kept as 1 h 5 min)'
    """

    seconds: float

    def __str__(self) -> str:
        hours, minutes = divmod(round(self.seconds / 60), 60)
        return f"{hours}:{minutes:02d} (kept as {hours} h {minutes} min)"


@dataclass
class Sheet:
    """The rows of a file as far as they could be read, its columns in order, and all faults. With `decimal_comma`
    numbers may have a decimal comma ("0,5"), since columns have another separator. `notes` are decisions made while
    reading.

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
        """The nonempty cells of a column as texts."""
        return [cell_text(row.cells[column]) for row in self.rows if not is_empty(row.cells.get(column))]

    def fault(self, row: int, column: str, found: str, expected: str) -> None:
        """Add a fault."""
        self.faults.append(TableFault(row, column, found, expected))


def is_empty(cell: object) -> bool:
    """Whether a cell is empty: None, whitespace, or an empty list or object.

    >>> is_empty(" "), is_empty(None), is_empty([]), is_empty(0), is_empty(False)
    (True, True, True, False, False)
    """
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, list | dict) and not cell)


def cell_text(cell: object) -> str:
    """A cell as text: integers without decimal point, dates and times in ISO 8601.

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


def plain_column(name: str) -> str:
    """A column's name without case, accents, spaces and punctuation, as names are compared.

    >>> plain_column("Start-Time (s)"), plain_column("RÉPONSE"), plain_column("Frage")
    ('starttimes', 'reponse', 'frage')
    """
    apart = unicodedata.normalize("NFKD", name.casefold().replace("°", "o"))
    return "".join(one for one in apart if one.isalnum()) or name.strip()


def lost_text(cell: object) -> str:
    """Why a cell does not hold the text that was written into it, or "": a spreadsheet makes dates and times of texts
    such as "1-2" and "1:05", and cuts texts (characters beyond 16 bits count twice).

    >>> lost_text(dt.datetime(2026, 2, 1)), lost_text("B"), lost_text(ShortClock(3900.0))
    ('a date (2026-02-01), as a spreadsheet makes it of other texts', '', 'a time: 1:05 (kept as 1 h 5 min)')
    >>> lost_text("x" * 32_767)
    '32,767 characters, where a spreadsheet cuts a text'
    """
    if isinstance(cell, dt.date):
        return f"a date ({cell.isoformat()[:10]}), as a spreadsheet makes it of other texts"
    if isinstance(cell, ShortClock):
        return f"a time: {cell}"
    if isinstance(cell, str) and MOST_CELL_CHARS in {len(cell), len(cell.encode("utf-16-le", "surrogatepass")) // 2}:
        return f"{MOST_CELL_CHARS:,} characters, where a spreadsheet cuts a text"
    return ""


def add_records(sheet: Sheet, records: Iterator[tuple[int, Sequence[Any]]]) -> list[str]:
    """Add records to a sheet, the first one as header, and return the column names ("\\0…" for columns without a name).

    Blank rows and empty columns at the end are skipped. Rows of another length, values in columns without a name and
    duplicate names are faults."""
    position, header = next(records, (1, ()))
    while header and all(is_empty(cell) for cell in header):  # blank rows above the header
        position, header = next(records, (1, ()))
    names = _names(sheet, position, header)
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


def _names(sheet: Sheet, position: int, header: Sequence[Any]) -> list[str]:
    """The column names; columns without a name get a unique placeholder."""
    for cell in header:
        if isinstance(cell, BadCell):
            sheet.fault(position, "", cell.found, "the column's name")
    texts = ["" if isinstance(cell, BadCell) else cell_text(cell) for cell in header]
    while texts and not texts[-1]:
        texts.pop()
    if len(texts) > _MAX_COLUMNS:
        sheet.fault(position, "", f"{len(texts):,} columns", f"at most {_MAX_COLUMNS}")
        texts = []
    for name in dict.fromkeys(texts):
        if name and texts.count(name) > 1:
            sheet.fault(position, name, f"{texts.count(name)} columns of this name", "each name once")
    sheet.columns = list(dict.fromkeys(name for name in texts if name))
    return [name or f"\0{index}" for index, name in enumerate(texts)]


def add_entries(sheet: Sheet, entries: Sequence[tuple[int, Any]]) -> None:
    """Add each object as a row; anything else is a fault."""
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

"""Reading tables from spreadsheets, CSV, JSON, Parquet and Arrow files, with all faults in them."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.core.csv_files import TableFault, csv_records
from proctor.core.errors import InputError
from proctor.core.files import JsonError, load_json, read_bytes
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
    """The column names; columns without a name get a unique placeholder."""
    for cell in header:
        if isinstance(cell, BadCell):
            sheet.fault(place, "", cell.found, "the column's name")
    texts = ["" if isinstance(cell, BadCell) else cell_text(cell) for cell in header]
    while texts and not texts[-1]:
        texts.pop()
    if len(texts) > _MAX_COLUMNS:
        sheet.fault(place, "", f"{len(texts):,} columns", f"at most {_MAX_COLUMNS}")
        texts = []
    for name in dict.fromkeys(texts):
        if name and texts.count(name) > 1:
            sheet.fault(place, name, f"{texts.count(name)} columns of this name", "each name once")
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


SHEET_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".xlsx")
"""The extensions of the files that can be read."""

_INSTEAD = {".xls": ".xlsx or CSV", ".xlsb": ".xlsx or CSV", ".ods": ".xlsx or CSV", ".numbers": ".xlsx or CSV"}
_LISTS = ("questions", "items", "data", "rows", "examples", "answers")
_BREAK = re.compile(r"\r\n|\r|\n")
_DELIMITERS = ",;\t|"
_FOREIGN = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as decoded by "surrogateescape"
_MAX_FOREIGN = 3
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def read_sheet(file: Path, *, sheet: str = "") -> Sheet:
    """Read a file according to its extension (see `SHEET_SUFFIXES`); `sheet` selects a sheet of a workbook by name.

    Problems of the file are collected in `faults`. Raises `InputError` only for an unknown extension.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_bytes(b"id;start\\nq1;0,5\\nq2\\n")
    ...     table = read_sheet(file)
    >>> [row.cells for row in table.rows], [fault.place for fault in table.faults], table.decimal_comma
    ([{'id': 'q1', 'start': '0,5'}], ['row 3'], True)
    """
    suffix = file.suffix.lower()
    if suffix not in SHEET_SUFFIXES:
        expected = f"one of {', '.join(SHEET_SUFFIXES)}"
        raise InputError(
            file, found=f"a file {suffix or 'without an extension'}", expected=_INSTEAD.get(suffix, expected)
        )
    result = Sheet(file)
    try:
        raw = read_bytes(file)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        result.fault(0, "", "no such file" if missing else error.strerror or "an unreadable file", "a readable file")
        return result
    if not raw.strip():
        result.fault(0, "", "an empty file", "a header and one or more rows")
    elif suffix == ".xlsx":
        from proctor.core.workbooks import read_workbook

        read_workbook(raw, sheet, result)
    elif suffix in {".parquet", ".arrow"}:
        from proctor.core.workbooks import read_columns

        read_columns(raw, result, stream=suffix == ".arrow")
    elif suffix in {".csv", ".tsv"}:
        _read_text(raw, result)
    else:
        _read_json(raw, result, lines=suffix != ".json")
    _check_columns(result)
    if not result.rows and not result.faults:
        result.fault(0, "", "no rows", "one or more below the header")
    return result


def _check_columns(sheet: Sheet) -> None:
    """Remove empty columns, with a note."""
    empty = [name for name in sheet.columns if all(is_empty(row.cells.get(name)) for row in sheet.rows)]
    if sheet.rows and empty:
        sheet.columns = [name for name in sheet.columns if name not in empty]
        sheet.notes.append(f"{sheet.file.name}: empty columns left out: {', '.join(empty)}")


def _read_text(raw: bytes, sheet: Sheet) -> None:
    text = _decoded(raw, sheet)
    if text is None:
        return
    first = _BREAK.split(text, maxsplit=1)[0]
    skipped = 0
    if re.fullmatch(r"sep=[,;\t|]", first.strip(), re.IGNORECASE):  # Excel's own line on the delimiter
        delimiter, skipped = first.strip()[-1], 1
        text = text[len(first) :].lstrip("\r\n")
    else:
        outside = re.sub(r'"[^"]*"', "", first)
        delimiter = max(_DELIMITERS, key=outside.count)
    sheet.decimal_comma = delimiter != ","
    if delimiter != ",":
        sheet.notes.append(
            f"{sheet.file.name}: columns separated by {'tabs' if delimiter == chr(9) else repr(delimiter)}"
        )
    records = ((place + skipped, cells) for place, cells in csv_records(text, sheet.faults, delimiter))
    add_records(sheet, records)
    _note_foreign(sheet)


def _note_foreign(sheet: Sheet) -> None:
    """Add faults for text that is not UTF-8: one per cell, or a single one if there are many. If a column name is
    affected, all columns are dropped, so that no further faults are reported."""
    names = [name for name in sheet.columns if _FOREIGN.search(name)]
    cells = [(row, name) for row in sheet.rows for name, cell in row.cells.items() if _FOREIGN.search(cell)]
    expected = "UTF-8 (Excel: CSV UTF-8)"
    if len(names) + len(cells) > _MAX_FOREIGN:
        place = 1 if names else cells[0][0].number
        first = _readable(names[0] if names else str(cells[0][0].cells[cells[0][1]]))
        found = f"{first} and {len(names) + len(cells) - 1:,} more names and cells, which are not UTF-8"
        sheet.fault(place, "", found, expected)
    else:
        for name in names:
            sheet.fault(1, "", f"the column's name {_readable(name)}, which is not UTF-8", expected)
        for row, name in cells:
            found = f"{_readable(row.cells[name])}, which is not UTF-8"
            sheet.fault(row.number, _readable(name)[1:-1], found, expected)
    for row, name in cells:
        row.cells[name] = _FOREIGN.sub("\ufffd", row.cells[name])
    if names:
        sheet.columns = []


def _decoded(raw: bytes, sheet: Sheet) -> str | None:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            try:
                return raw[len(mark) :].decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
            except UnicodeDecodeError as error:
                sheet.fault(0, "", f"broken {encoding.upper()} at byte {error.start}", "UTF-8")
                return None
    if b"\0" in raw:
        sheet.fault(1 + raw[: raw.find(b"\0")].count(b"\n"), "", "a zero byte", "a text in UTF-8")
        return None
    return raw.decode("utf-8", "surrogateescape")


def _readable(text: str) -> str:
    """Text with bytes that are not UTF-8 decoded as Windows-1252, for messages."""
    return repr(_FOREIGN.sub(lambda hit: bytes([ord(hit[0]) - 0xDC00]).decode("cp1252", "replace"), text)[:60])


def _read_json(raw: bytes, sheet: Sheet, *, lines: bool) -> None:
    entries: list[tuple[int, Any]] = []
    try:
        if lines:
            for number, line in enumerate(raw.removeprefix(_MARKS[0][0]).split(b"\n"), start=1):
                if line.strip():
                    try:
                        entries.append((number, load_json(line)))
                    except JsonError as error:
                        sheet.fault(number, "", error.found.replace("file", "line"), error.expected)
        else:
            entries = list(enumerate(_listed(load_json(raw)), start=1))
    except JsonError as error:
        sheet.fault(0, "", ", ".join(part for part in (error.place, error.found) if part), error.expected)
    except UnicodeDecodeError as error:
        sheet.fault(1 + raw[: error.start].count(b"\n"), "", "text that is not UTF-8", "UTF-8")
    except TypeError:
        sheet.fault(0, "", "no list of objects", f"a list of objects, or an object with one as {_LISTS[0]!r}")
    add_entries(sheet, entries)


def _listed(value: Any) -> list[Any]:
    """The list of objects in a JSON file. Raises `TypeError` if there is none."""
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    if not isinstance(value, list):
        raise TypeError
    return value

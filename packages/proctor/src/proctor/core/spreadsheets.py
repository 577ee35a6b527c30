"""Reading tables from spreadsheets, CSV, JSON, Parquet and Arrow files, with all faults in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from proctor.core.csv_files import csv_records
from proctor.core.errors import InputError
from proctor.core.files import JsonError, load_json, read_bytes
from proctor.core.sheet_rows import Sheet, add_entries, add_records, is_empty

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
    >>> [row.cells for row in table.rows], [fault.location for fault in table.faults], table.decimal_comma
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
    records = ((position + skipped, cells) for position, cells in csv_records(text, sheet.faults, delimiter))
    add_records(sheet, records)
    _note_foreign(sheet)


def _note_foreign(sheet: Sheet) -> None:
    """Add faults for text that is not UTF-8: one per cell, or a single one if there are many. If a column name is
    affected, all columns are dropped, so that no further faults are reported."""
    names = [name for name in sheet.columns if _FOREIGN.search(name)]
    cells = [(row, name) for row in sheet.rows for name, cell in row.cells.items() if _FOREIGN.search(cell)]
    expected = "UTF-8 (Excel: CSV UTF-8)"
    if len(names) + len(cells) > _MAX_FOREIGN:
        location = 1 if names else cells[0][0].number
        first = _readable(names[0] if names else str(cells[0][0].cells[cells[0][1]]))
        found = f"{first} and {len(names) + len(cells) - 1:,} more names and cells, which are not UTF-8"
        sheet.fault(location, "", found, expected)
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
        sheet.fault(0, "", ", ".join(part for part in (error.location, error.found) if part), error.expected)
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

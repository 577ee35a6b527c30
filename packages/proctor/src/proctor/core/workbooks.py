"""Reading Excel workbooks (with openpyxl), and Parquet and Arrow files (with pyarrow). Sizes are checked before
unpacking, and nothing in a file is evaluated."""

from __future__ import annotations

import io
import json
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from typing import Any
from zipfile import BadZipFile, ZipFile

from proctor.core.formatting import count_of
from proctor.core.sheet_rows import BadCell, Sheet, ShortClock, add_entries, add_records, is_empty

_MAX_BYTES = 500 * 2**20
_MAX_MEMBERS = 10_000
_MAX_ROWS = 1_048_576
_PART = 2**20
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?ref=\"([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}\d{1,7}\"")
_PADDED = re.compile(r"0{2,20}")
_CHECKED_ROWS = 50  # rows of a sheet that are checked for content
_USUAL = "questions"
_BROKEN = (BadZipFile, SyntaxError, ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, zlib.error,
           RuntimeError, OverflowError)  # fmt: skip
"""The exceptions of the libraries for malformed files (`SyntaxError`: malformed XML)."""


def read_workbook(raw: bytes, chosen: str, sheet: Sheet) -> None:
    """Read one sheet of an .xlsx file: the `chosen` one, or else the only nonempty one, or else the one named
    "questions". Formulas, error values and merged cells are faults."""
    from openpyxl import load_workbook

    try:
        if _too_large(raw, sheet):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = load_workbook(io.BytesIO(raw), read_only=True, data_only=False, keep_links=False)
            page = _chosen(book, chosen, sheet)
            if page is None:
                return
            page.reset_dimensions()
            names = add_records(sheet, _records(page))
            merged = _merged(raw, str(vars(page).get("_worksheet_path", "")))
    except _BROKEN:
        sheet.rows.clear()
        sheet.fault(0, "", "no readable workbook", "an .xlsx file as Excel writes it")
        return
    for column, row in merged:
        name = names[column - 1] if column <= len(names) else ""
        sheet.fault(row, name.lstrip("\0"), "merged cells", "one value in each cell")


def _too_large(raw: bytes, sheet: Sheet) -> bool:
    """Whether the file is refused, with a fault: too large when unpacked, or with an XML document type."""
    with ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > _MAX_BYTES or len(members) > _MAX_MEMBERS:
            found = f"{size / 2**20:,.0f} MB in {count_of(len(members), 'part')} when unpacked"
            sheet.fault(0, "", found, f"at most {_MAX_BYTES // 2**20} MB in {_MAX_MEMBERS:,} parts")
            return True
        for member in members:
            with archive.open(member) as part:
                name = member.filename
                if name.endswith((".xml", ".rels")) and b"<!DOCTYPE" in part.read(_PART).replace(b"\0", b""):
                    sheet.fault(0, "", f"a document type in {name}", "a workbook as Excel writes it")
                    return True
    return False


def _chosen(book: Any, chosen: str, sheet: Sheet) -> Any:
    titles = [page.title for page in book.worksheets]
    if chosen:
        if chosen in titles:
            return book[chosen]
        sheet.fault(0, "", f"no sheet {chosen!r}", f"one of {', '.join(titles)}")
        return None
    filled = [page for page in book.worksheets if _holds_something(page)]
    usual = [page for page in filled if page.title.strip().casefold() == _USUAL]
    if len(filled) > 1 and len(usual) == 1:
        sheet.notes.append(f"{sheet.file.name}: sheet {usual[0].title!r} of {', '.join(titles)}")
        return usual[0]
    if len(filled) == 1:
        return filled[0]
    if filled:
        named = ", ".join(page.title for page in filled)
        sheet.fault(0, "", f"{len(filled)} sheets ({named})", f"one, or one called {_USUAL!r}, or `sheet: NAME`")
    else:
        sheet.fault(0, "", "an empty workbook", "a header and one or more rows")
    return None


def _holds_something(page: Any) -> bool:
    rows = page.iter_rows(max_row=_CHECKED_ROWS, values_only=True)
    return any(not is_empty(cell) for row in rows for cell in row)


def _records(page: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    width = 0
    for number, row in enumerate(page.iter_rows(), start=1):
        cells = [_cell(cell) for cell in row]
        while cells and is_empty(cells[-1]):
            cells.pop()
        width = max(width, len(cells))
        yield number, cells + [None] * (width - len(cells))


def _cell(cell: Any) -> Any:
    kind, value = cell.data_type, cell.value
    if value is None:
        return None
    if kind == "f" or (not isinstance(value, str) and hasattr(value, "ref")):
        return BadCell(f"a formula ({str(value)[:40]})", "its value (paste it as a value)")
    if kind == "e":
        return BadCell(f"the error value {value}", "a value")
    if kind == "n" and "%" in str(cell.number_format) and isinstance(value, int | float):
        return f"{round(100 * value, 9):g}%"  # as displayed
    if kind == "n" and isinstance(value, int) and value >= 0 and _PADDED.fullmatch(str(cell.number_format)):
        return f"{value:0{len(cell.number_format)}d}"  # an id such as 007, as displayed
    if kind == "d" and "s" not in str(cell.number_format).lower():
        seconds = _seconds(value)
        return value if seconds is None else ShortClock(seconds)
    return value


def _seconds(value: Any) -> float | None:
    """The seconds of a time of day or a duration; None for a date."""
    if hasattr(value, "total_seconds"):
        return float(value.total_seconds())
    if hasattr(value, "year"):
        return None
    return float(value.hour * 3600 + value.minute * 60 + value.second)


def _merged(raw: bytes, member: str) -> list[tuple[int, int]]:
    """The column and row of the first cell of each merged range."""
    from openpyxl.utils import column_index_from_string

    with ZipFile(io.BytesIO(raw)) as archive:
        content = archive.read(member.lstrip("/")) if member else b""
    return [(column_index_from_string(hit[1].decode()), int(hit[2])) for hit in _MERGED.finditer(content)]


def read_columns(raw: bytes, sheet: Sheet, *, stream: bool) -> None:
    """Read a Parquet file, or an Arrow `stream` as written by Hugging Face's `save_to_disk`. Class labels
    (`ClassLabel`) are replaced by their names."""
    try:
        table = _arrow(raw) if stream else _parquet(raw, sheet)
        if table is None:
            return
        classes = _class_names(table.schema.metadata)
        rows: list[dict[str, Any]] = table.to_pylist()
    except _BROKEN:
        found = "no readable Arrow stream" if stream else "no readable Parquet file"
        sheet.fault(0, "", found, "one as pyarrow writes it")
        return
    for name, labels in classes.items():
        for row in rows:
            number = row.get(name)
            if isinstance(number, int) and 0 <= number < len(labels):
                row[name] = labels[number]
    add_entries(sheet, list(enumerate(rows, start=1)))


def _parquet(raw: bytes, sheet: Sheet) -> Any:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(raw))
    size = sum(file.metadata.row_group(index).total_byte_size for index in range(file.metadata.num_row_groups))
    if file.metadata.num_rows > _MAX_ROWS or size > _MAX_BYTES:
        found = f"{file.metadata.num_rows:,} rows, {size / 2**20:,.0f} MB when unpacked"
        sheet.fault(0, "", found, f"at most {_MAX_ROWS:,} rows and {_MAX_BYTES // 2**20} MB")
        return None
    return file.read()


def _arrow(raw: bytes) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.BufferReader(raw)) as reader:
        return reader.read_all()


def _class_names(metadata: dict[bytes, bytes] | None) -> dict[str, list[str]]:
    """The class names of each column in the metadata of Hugging Face's libraries."""
    known = json.loads((metadata or {}).get(b"huggingface", b"{}"))
    features = known.get("info", {}).get("features", {}) if isinstance(known, dict) else {}
    return {
        name: list(map(str, feature["names"]))
        for name, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and isinstance(feature.get("names"), list)
    }

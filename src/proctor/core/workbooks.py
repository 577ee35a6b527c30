"""Tables in containers: Excel's workbooks (by openpyxl), Parquet and Arrow (by pyarrow). Sizes are checked before
anything is unpacked, and nothing in a file is evaluated."""

from __future__ import annotations

import io
import json
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile, ZipFile

from proctor.core.sheets import BadCell, Sheet, add_entries, add_records, is_empty
from proctor.core.words import count_of

_MOST_BYTES = 500 * 2**20
_MOST_MEMBERS = 10_000
_MOST_ROWS = 1_048_576
_PART = 2**20
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?ref=\"([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}\d{1,7}\"")
_LOOKED_AT = 50  # rows of a sheet that say whether it is empty
_USUAL = "questions"
_BROKEN = (BadZipFile, SyntaxError, ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, zlib.error,
           RuntimeError, OverflowError)  # fmt: skip
"""What the libraries raise on files that are broken, or packed as no program would; of XML it is a `SyntaxError`."""


@dataclass(frozen=True, slots=True)
class ShortClock:
    """A time that a spreadsheet shows as h:mm: what was typed as "1:05" for a minute and five seconds is kept as an
    hour and five minutes.

    >>> str(ShortClock(3900.0))
    '1:05 (kept as 1 h 5 min)'
    """

    seconds: float

    def __str__(self) -> str:
        hours, minutes = divmod(round(self.seconds / 60), 60)
        return f"{hours}:{minutes:02d} (kept as {hours} h {minutes} min)"


def read_workbook(raw: bytes, chosen: str, sheet: Sheet) -> None:
    """Reads one sheet of an .xlsx file: the one that is `chosen`, else the only one that holds something, else the one
    called "questions". Formulas, error values and merged cells are faults, with their places."""
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
    """Whether it would be too much when it is unpacked; a file with a document type of its own is refused, too."""
    with ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        size = sum(one.file_size for one in members)
        if size > _MOST_BYTES or len(members) > _MOST_MEMBERS:
            found = f"{size / 2**20:,.0f} MB in {count_of(len(members), 'part')} when unpacked"
            sheet.fault(0, "", found, f"at most {_MOST_BYTES // 2**20} MB in {_MOST_MEMBERS:,} parts")
            return True
        for one in members:
            with archive.open(one) as part:
                if one.filename.endswith((".xml", ".rels")) and b"<!DOCTYPE" in part.read(_PART).replace(b"\0", b""):
                    sheet.fault(0, "", f"a document type in {one.filename}", "a workbook as Excel writes it")
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
    rows = page.iter_rows(max_row=_LOOKED_AT, values_only=True)
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
        return f"{round(100 * value, 9):g}%"  # as it is shown
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
    """Column and row at which each merged range of a sheet begins."""
    from openpyxl.utils import column_index_from_string

    with ZipFile(io.BytesIO(raw)) as archive:
        content = archive.read(member.lstrip("/")) if member else b""
    return [(column_index_from_string(hit[1].decode()), int(hit[2])) for hit in _MERGED.finditer(content)]


def read_columns(raw: bytes, sheet: Sheet, *, stream: bool) -> None:
    """Reads a Parquet file, or an Arrow stream as Hugging Face's `save_to_disk` writes it; numbers of named classes
    (`ClassLabel`) become their names."""
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
    if file.metadata.num_rows > _MOST_ROWS or size > _MOST_BYTES:
        found = f"{file.metadata.num_rows:,} rows, {size / 2**20:,.0f} MB when unpacked"
        sheet.fault(0, "", found, f"at most {_MOST_ROWS:,} rows and {_MOST_BYTES // 2**20} MB")
        return None
    return file.read()


def _arrow(raw: bytes) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.BufferReader(raw)) as reader:
        return reader.read_all()


def _class_names(metadata: dict[bytes, bytes] | None) -> dict[str, list[str]]:
    """By column the names of its classes, as Hugging Face's libraries keep them beside the data."""
    known = json.loads((metadata or {}).get(b"huggingface", b"{}"))
    features = known.get("info", {}).get("features", {}) if isinstance(known, dict) else {}
    return {
        name: [str(one) for one in feature["names"]]
        for name, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and isinstance(feature.get("names"), list)
    }

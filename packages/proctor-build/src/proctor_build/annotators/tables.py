"""Tables: typed cells with all faults listed at once, and rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from proctor.core import Sheet, SheetRow, cell_text, error_of_faults, lost_text, read_safe_cell, read_sheet, safe_cell

T = TypeVar("T")

MOST_ROWS = 2_000_000
"""The limit for tables of detections."""


class Cells:
    """The cells of one row. An invalid cell is added to the sheet's faults."""

    def __init__(self, sheet: Sheet, row: SheetRow) -> None:
        self._sheet, self._row, self.number = sheet, row, row.number
        self.sound = True

    def fault(self, column: str, found: str, expected: str) -> None:
        """Adds a fault of this row."""
        self.sound = False
        self._sheet.fault(self.number, column, found, expected)

    def text(self, column: str, expected: str = "a name on one line", longest: int = 200) -> str:
        """Printable text of up to `longest` characters."""
        text = cell_text(self._row.cells.get(column))
        if lost := lost_text(self._row.cells.get(column)):
            self.fault(column, lost, expected)
        elif not text or not text.isprintable() or len(text) > longest:
            self.fault(column, repr(text[:40]) if text else "nothing", expected)
        return text

    def number_in(self, column: str, low: float, high: float) -> float:
        """A finite number from `low` to `high`; `low` for an invalid cell."""
        text = cell_text(self._row.cells.get(column))
        try:
            value = float(text.replace(",", ".") if self._sheet.decimal_comma else text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            self.fault(column, repr(text[:40]) if text else "nothing", f"a number from {low:g} to {high:g}")
            return low
        return value


def read_rows(file: Path, columns: Sequence[str], read: Callable[[Cells], T | None]) -> list[T]:
    """The results of `read` for each row of a table (`SHEET_SUFFIXES`), without None. Raises one `InputError` for all
    faults of the file and those that `read` adds; if there are several, its notes list them by cause."""
    sheet = read_sheet(file)
    named = set(sheet.rows[0].cells) if sheet.rows else set(sheet.columns)  # with columns that are still empty
    missing = [name for name in columns if name not in named] if sheet.columns else []
    if missing:
        sheet.fault(1, "", f"no column {missing[0]!r}", f"the columns {', '.join(columns)}")
    if len(sheet.rows) > MOST_ROWS:
        sheet.fault(0, "", f"{len(sheet.rows):,} rows", f"at most {MOST_ROWS:,}")
    rows = (replace(row, cells={name: read_safe_cell(cell) for name, cell in row.cells.items()}) for row in sheet.rows)
    found = [] if sheet.faults else [one for row in rows if (one := read(Cells(sheet, row))) is not None]
    if sheet.faults:
        raise error_of_faults(file, [(file, fault) for fault in sheet.faults])
    return found


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV below a header. None is an empty cell; numbers have at most six decimals. A text that a spreadsheet would take for a formula gets a leading apostrophe, which
    `read_rows` removes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(safe_cell, columns))
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return str(value).lower() if isinstance(value, bool) else str(safe_cell(value))

"""CSV files that came from outside: read strictly, and every fault named with its row."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proctor.core import InputError
from proctor.core.files import read_bytes

__all__ = ["Fault", "Row", "Table", "number", "printable", "read_table"]

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_OTHER_DELIMITERS = {";": "';'", "\t": "tabs", "|": "'|'"}
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a file: in a row (0: in the file as a whole) and a column ('': in the whole row)."""

    row: int
    column: str
    found: str
    expected: str

    @property
    def place(self) -> str:
        """Row and column as people say them."""
        parts = (f"row {self.row}" if self.row else "", f"column {self.column!r}" if self.column else "")
        return ", ".join(part for part in parts if part)

    def error(self, file: Path) -> InputError:
        """The fault as an error."""
        return InputError(file, self.place, found=self.found, expected=self.expected)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its number as a spreadsheet shows it (the header is row 1) and its cells by column."""

    number: int
    cells: dict[str, str]


@dataclass
class Table:
    """The rows that could be read, and the faults."""

    rows: list[Row] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def checked(self, file: Path) -> list[Row]:
        """The rows. Raises `InputError` for the first fault."""
        if self.faults:
            raise self.faults[0].error(file)
        return self.rows


def read_table(file: Path, columns: Sequence[str]) -> Table:
    """Reads a comma-separated UTF-8 file (RFC 4180) that has at least these columns.

    Other columns are kept. Blank lines are passed over. Faults of the file as a whole leave no rows.
    """
    table = Table()
    try:
        raw = read_bytes(file)
    except FileNotFoundError:
        return _refused("no such file", "a CSV file")
    except OSError as error:
        return _refused(error.strerror or "an unreadable file", "a readable file")
    text = _decoded(raw)
    if isinstance(text, Fault):
        return Table(faults=[text])
    records = _records(text, table)
    header = next(records, None)
    if header is None:
        return table if table.faults else _refused("an empty file", f"the columns {', '.join(columns)}")
    fault = _header_fault(header[1], columns)
    if fault is not None:
        return Table(faults=[fault])
    names = header[1]
    for place, cells in records:
        if len(cells) != len(names):
            table.faults.append(Fault(place, "", _many(len(cells)), _many(len(names))))
        else:
            table.rows.append(Row(place, dict(zip(names, cells, strict=True))))
    if not table.rows and not table.faults:
        table.faults.append(Fault(0, "", "no rows", "one or more below the header"))
    return table


def printable(text: str) -> str:
    r"""A cell as it may be shown: at most 80 characters, and nothing that a terminal would obey.

    >>> printable("ENC1\x1b[31m")
    'ENC1\\x1b[31m'
    """
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text[:80])
    return shown + ("…" if len(text) > 80 else "")


def number(text: str) -> float | None:
    """The finite number that a cell states, in plain ASCII digits; None where it states none.

    >>> number("0.5"), number("1e-3"), number("0,5"), number("nan"), number("")
    (0.5, 0.001, None, None, None)
    """
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _refused(found: str, expected: str) -> Table:
    return Table(faults=[Fault(0, "", found, expected)])


def _decoded(raw: bytes) -> str | Fault:
    if raw.startswith(_UTF16_MARKS) or b"\x00" in raw:
        found = "UTF-16" if raw.startswith(_UTF16_MARKS) else "a zero byte"
        return Fault(1 + raw[: max(0, raw.find(b"\x00"))].count(b"\n"), "", found, "UTF-8")
    if raw.startswith(_UTF8_MARK):
        return Fault(1, "", "a byte order mark", "UTF-8 without one")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = 1 + raw[: error.start].count(b"\n")
        return Fault(place, "", f"the byte 0x{raw[error.start]:02x}, which is not UTF-8", "UTF-8")


def _records(text: str, table: Table) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    place = 0
    while True:
        place += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            table.faults.append(Fault(place, "", f"broken quotes ({error})", "a row of CSV"))
            return
        if cells:
            yield place, cells


def _header_fault(names: list[str], columns: Sequence[str]) -> Fault | None:
    missing = [name for name in columns if name not in names]
    if missing:
        for mark, shown in _OTHER_DELIMITERS.items():
            if len(names) == 1 and mark in names[0]:
                return Fault(1, "", f"{shown} between the columns", "commas")
        return Fault(1, "", f"no column {missing[0]!r}", f"the columns {', '.join(columns)}")
    twice = next((name for name in names if names.count(name) > 1), None)
    return None if twice is None else Fault(1, "", f"two columns {twice!r}", "each column once")


def _many(columns: int) -> str:
    return f"{columns} column{'' if columns == 1 else 's'}"

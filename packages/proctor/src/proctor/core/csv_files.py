"""Reading CSV tables, and reading and writing NumPy arrays (`.npz`) without running code."""

from __future__ import annotations

import csv
import io
import lzma
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from proctor.core.errors import InputError
from proctor.core.file_kinds import kind_of_bytes
from proctor.core.files import read_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]
else:
    Arrays = dict[str, Any]

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_OTHER_DELIMITERS = {";": "';'", "\t": "tabs", "|": "'|'"}
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class TableFault:
    """A fault in a table: its row (0: the whole file), its column ('': the whole row), what was found and expected.

    >>> fault = TableFault(3, "score", "'high'", "a number")
    >>> fault.location
    "row 3, column 'score'"
    >>> print(fault.error(Path("a.csv")))
    a.csv: row 3, column 'score': found 'high', expected a number
    """

    row: int
    column: str
    found: str
    expected: str

    @property
    def location(self) -> str:
        """Row and column as text."""
        parts = (f"row {self.row}" if self.row else "", f"column {self.column!r}" if self.column else "")
        return ", ".join(part for part in parts if part)

    def error(self, file: Path) -> InputError:
        """The fault as an error."""
        return InputError(file, self.location, found=self.found, expected=self.expected)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its number as in a spreadsheet (the header is row 1) and its cells by column.

    >>> TableRow(2, {"id": "q1", "score": "0.5"}).cells["score"]
    '0.5'
    """

    number: int
    cells: dict[str, str]


@dataclass
class CsvTable:
    """The rows that could be read, and the faults.

    >>> CsvTable([TableRow(2, {"id": "q1"})]).checked(Path("a.csv"))
    [TableRow(number=2, cells={'id': 'q1'})]
    >>> CsvTable(faults=[TableFault(3, "", "1 column", "2 columns")]).checked(Path("a.csv"))
    Traceback (most recent call last):
    proctor.core.errors.InputError: a.csv: row 3: found 1 column, expected 2 columns
    """

    rows: list[TableRow] = field(default_factory=list)
    faults: list[TableFault] = field(default_factory=list)

    def checked(self, file: Path) -> list[TableRow]:
        """The rows. Raises `InputError` for the first fault."""
        if self.faults:
            raise self.faults[0].error(file)
        return self.rows


def read_table(file: Path, columns: Sequence[str], *, lenient: bool = False) -> CsvTable:
    """Read a comma-separated UTF-8 file (RFC 4180) with at least these columns.

    Other columns are kept, and blank lines skipped. After a fault of the whole file there are no rows. A byte order
    mark and spaces around column names are faults unless `lenient`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_bytes(b"id,score\\nq1,0.5\\nq2\\n")
    ...     table = read_table(file, ("id", "score"))
    >>> [row.cells for row in table.rows], [fault.location for fault in table.faults]
    ([{'id': 'q1', 'score': '0.5'}], ['row 3'])
    """
    table = CsvTable()
    try:
        raw = read_bytes(file)
    except FileNotFoundError:
        return _refused("no such file", "a CSV file")
    except OSError as error:
        return _refused(error.strerror or "an unreadable file", "a readable file")
    text = _decoded(raw.removeprefix(_UTF8_MARK) if lenient else raw)
    if isinstance(text, TableFault):
        return CsvTable(faults=[text])
    if text.lstrip()[:2] in {"[{", "[\n", "{\n", '{"'}:
        return _refused("JSON", f"a CSV file with the columns {', '.join(columns)}")
    records = csv_records(text, table.faults)
    header = next(records, None)
    if header is None:
        return table if table.faults else _refused("an empty file", f"the columns {', '.join(columns)}")
    names = [name.strip() for name in header[1]] if lenient else header[1]
    fault = _header_fault(names, columns)
    if fault is not None:
        return CsvTable(faults=[fault])
    for record_line, cells in records:
        if len(cells) != len(names):
            table.faults.append(TableFault(record_line, "", _many(len(cells)), _many(len(names))))
        else:
            table.rows.append(TableRow(record_line, dict(zip(names, cells, strict=True))))
    if not table.rows and not table.faults:
        table.faults.append(TableFault(0, "", "no rows", "one or more below the header"))
    return table


def cell_number(text: str) -> float | None:
    """The finite number in a cell, in ASCII digits with a decimal point; None for anything else.

    >>> cell_number("0.5"), cell_number("1e-3"), cell_number("0,5"), cell_number("nan"), cell_number("")
    (0.5, 0.001, None, None, None)
    """
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _refused(found: str, expected: str) -> CsvTable:
    return CsvTable(faults=[TableFault(0, "", found, expected)])


def _decoded(raw: bytes) -> str | TableFault:
    if (kind := kind_of_bytes(raw)) and not raw.startswith(_UTF16_MARKS):
        return TableFault(0, "", kind, "a CSV file in UTF-8")
    if raw.startswith(_UTF16_MARKS) or b"\x00" in raw:
        found = "UTF-16" if raw.startswith(_UTF16_MARKS) else "a zero byte"
        return TableFault(1 + raw[: max(0, raw.find(b"\x00"))].count(b"\n"), "", found, "UTF-8")
    if raw.startswith(_UTF8_MARK):
        return TableFault(1, "", "a byte order mark", "UTF-8 without one")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        record_line = 1 + raw[: error.start].count(b"\n")
        return TableFault(record_line, "", f"the byte 0x{raw[error.start]:02x}, which is not UTF-8", "UTF-8")


def csv_records(text: str, faults: list[TableFault], delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The number and cells of each record that is not blank. At a quoting error a fault is added and reading stops.

    >>> list(csv_records("id;score\\nq1;0,5\\n", [], ";"))
    [(1, ['id', 'score']), (2, ['q1', '0,5'])]
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    record_line = 0
    while True:
        record_line += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            faults.append(TableFault(record_line, "", f"broken quotes ({error})", "a row of CSV"))
            return
        if cells:
            yield record_line, cells


def _header_fault(names: list[str], columns: Sequence[str]) -> TableFault | None:
    missing = [name for name in columns if name not in names]
    if missing:
        for mark, shown in _OTHER_DELIMITERS.items():
            if len(names) == 1 and mark in names[0]:
                return TableFault(1, "", f"{shown} between the columns", "commas")
        return TableFault(1, "", f"no column {missing[0]!r}", f"the columns {', '.join(columns)}")
    twice = next((name for name in names if names.count(name) > 1), None)
    return None if twice is None else TableFault(1, "", f"two columns {twice!r}", "each column once")


def _many(columns: int) -> str:
    return f"{columns} column{'' if columns == 1 else 's'}"


_MAX_BYTES = 500 * 2**20
_MAX_ARRAYS = 10_000
_BROKEN = (BadZipFile, ValueError, LookupError, TypeError, zlib.error, lzma.LZMAError, RuntimeError, EOFError)
"""The exceptions of readers for malformed files."""


def write_arrays(file: Path, arrays: Arrays) -> None:
    """Write arrays to an .npz file. Raises `OSError`.

    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.npz"
    ...     write_arrays(file, {"weights": np.array([0.5, 1.5])})
    ...     list(read_arrays(file, "weights", "a file of weights"))
    ['weights']
    """
    import numpy as np

    with file.open("wb") as out:
        np.savez(out, allow_pickle=False, **arrays)


def read_arrays(file: Path, what: str, expected: str) -> Arrays:
    """Read arrays of numbers and texts from an .npz file. Raises `InputError` for an invalid file, other types, wrong
    sizes, and more than 500 MB. `what` names the content ("weights") in messages.

    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.npz"
    ...     write_arrays(file, {"weights": np.array([0.5, 1.5])})
    ...     read_arrays(file, "weights", "a file of weights")["weights"].tolist()
    [0.5, 1.5]
    """
    try:
        with ZipFile(io.BytesIO(read_bytes(file, _MAX_BYTES // 2**20))) as archive:
            members = archive.infolist()
            if len(members) > _MAX_ARRAYS or sum(member.file_size for member in members) > _MAX_BYTES:
                raise InputError(file, found=f"more than 500 MB of {what}", expected=expected)
            names = [member.filename.removesuffix(".npy") for member in members]
            if len(set(names)) < len(names):
                raise InputError(file, found="an array twice", expected=expected)
            return {name: _array(archive.read(member)) for name, member in zip(names, members, strict=True)}
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected=expected) from error
    except _BROKEN as error:
        raise InputError(file, found=f"no readable file of {what}", expected=expected) from error


def _array(content: bytes) -> NDArray[Any]:
    """An array in NumPy's format. Raises `ValueError` for another format and a wrong size."""
    import numpy as np

    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError("an array of another version")
    shape, by_columns, kind = np.lib.format.read_array_header_1_0(stream)
    rest = content[stream.tell() :]
    count = 1
    for size in shape:
        count *= size
    if kind.kind not in "iufU" or kind.itemsize * count != len(rest) or min(shape, default=0) < 0:
        raise ValueError("not an array of numbers or texts of this size")
    if kind.itemsize == 0 or count == 0:
        return np.zeros(shape, dtype=kind)
    return np.frombuffer(rest, dtype=kind).reshape(shape, order="F" if by_columns else "C").copy()


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # first characters of a spreadsheet's formula


def safe_cell(value: Any) -> Any:
    """A CSV cell that no spreadsheet takes for a formula: formulas get a leading apostrophe, and so do formulas that have
    one already, so that `read_safe_cell` restores them. What is no text stays.

    >>> safe_cell("=1+1"), safe_cell("a = b"), safe_cell(-1.5)
    ("'=1+1", 'a = b', -1.5)
    """
    return f"'{value}" if _like_a_formula(value) else value


def read_safe_cell(value: Any) -> Any:
    """The cell as it was before `safe_cell`.

    >>> read_safe_cell(safe_cell("=1+1")), read_safe_cell(safe_cell("'=1")), read_safe_cell("'tis")
    ('=1+1', "'=1", "'tis")
    """
    return value[1:] if _like_a_formula(value) and value.startswith("'") else value


def _like_a_formula(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip("'").startswith(_FORMULA)

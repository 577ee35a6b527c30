"""Many rows at once: written by COPY (PostgreSQL), and read as whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, MetaData, Table, Text, cast, func, insert, or_, select, true
from sqlalchemy.schema import CreateTable

Row = Mapping[str, Any]
T = TypeVar("T")

FEWEST = 200
"""With fewer rows COPY is not worth its round trips."""

_PART = 500  # values in the list of one statement
_COUNTED = {"preserve_rowcount": True}
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))


def in_parts(values: Sequence[T], size: int = _PART) -> Iterator[Sequence[T]]:
    """Slices of at most `size` values: databases limit the length of the lists in a statement."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Inserts rows, all with the same columns. Raises the database's error where one exists already."""
    if connection.dialect.name == "postgresql" and len(rows) >= FEWEST:
        _copy(connection, table.name, list(rows[0]), rows)
    elif rows:
        connection.execute(insert(table), rows)


def upsert_rows(connection: Connection, table: Table, upsert: Any, rows: Sequence[Row]) -> int:
    """Writes rows by a statement with a conflict rule (INSERT … ON CONFLICT); returns how many were written.

    For PostgreSQL many rows go through a temporary table, unless two of them have one key: it refuses such a statement.
    """
    names = [column.name for column in table.columns]
    several = connection.dialect.name == "postgresql" and len(rows) >= FEWEST
    keys = ([row[column.name] for row in rows] for column in table.primary_key) if several else ()
    if several and len(set(zip(*keys, strict=True))) == len(rows):
        aside = _aside(table)
        connection.execute(CreateTable(aside, if_not_exists=True))
        _copy(connection, aside.name, names, rows)
        return connection.execute(upsert.from_select(names, select(aside)), execution_options=_COUNTED).rowcount
    return connection.execute(upsert, rows, execution_options=_COUNTED).rowcount if rows else 0


@cache
def _aside(table: Table) -> Table:
    """A temporary table with the same columns, which is emptied after every transaction."""
    metadata = MetaData()
    columns = [type(column)(column.name, column.type) for column in table.columns]
    return Table(f"{table.name}_aside", metadata, *columns, prefixes=["TEMPORARY"], postgresql_on_commit="DELETE ROWS")


def _copy(connection: Connection, table: str, names: Sequence[str], rows: Sequence[Row]) -> None:
    """Writes rows in the text form of COPY: the CSV form of older servers ends at a line `\\.` inside an answer. PostgreSQL
    refuses a NUL in a text, as in a statement."""
    columns = ", ".join(f'"{name}"' for name in names)
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table}" ({columns}) FROM STDIN') as copy:
        for part in in_parts(rows, 1000):  # the server reads while the next part is written
            copy.write("".join([_line([row[name] for name in names]) for row in part]))


def _line(values: Sequence[Any]) -> str:
    r"""One row: fields between tabs, None as \\N.

    >>> _line([1, None, "a\tb\\", 0.1])
    '1\t\\N\ta\\tb\\\\\t0.1\n'
    """
    return (
        "\t".join(
            [_escaped(value) if type(value) is str else "\\N" if value is None else str(value) for value in values]
        )
        + "\n"
    )


def _escaped(text: str) -> str:
    for char, written in _ESCAPES:
        if char in text:
            text = text.replace(char, written)
    return text


Ints = NDArray[np.int64]

_BETWEEN = "\x1f"  # texts: the separator of units
_PAIRS = np.dtype([("key", np.int64), ("value", np.float64)])


def whole_numbers(connection: Connection, value: ColumnElement[Any], where: ColumnElement[bool]) -> Ints:
    """A whole number of each matching row, in any order. Raises `ValueError` for any other value."""
    return parted_numbers(connection, [(value, true())], where)[0]


def parted_numbers(
    connection: Connection, parts: Sequence[tuple[ColumnElement[Any], ColumnElement[bool]]], where: ColumnElement[bool]
) -> list[Ints]:
    """The same in parts, each with its value and the condition of its rows. Raises `ValueError` for a row in no part."""
    joined = (_joined(value).filter(condition) for value, condition in parts)
    count, *texts = connection.execute(select(func.count(), *joined).where(where)).one()
    found = [_numbers(text) for text in texts]
    _check_count(sum(map(len, found)), count)
    return found


def keyed_numbers(
    connection: Connection,
    key: ColumnElement[Any],
    value: ColumnElement[Any],
    where: ColumnElement[bool],
    by: Sequence[ColumnElement[Any]],
) -> dict[tuple[Any, ...], tuple[Ints, NDArray[np.float64]]]:
    """The key (a whole number) and the value of each matching row, in any order, by the values of the columns `by`. Most
    scores are 0 or 1: of these only the keys are read. Raises `ValueError` or `TypeError` where either is no number."""
    joined = (_joined(key).filter(value == one) for one in (0, 1))
    found = {}
    for *names, count, wrong_keys, right_keys in driver_rows(
        connection, select(*by, func.count(), *joined).where(where).group_by(*by)
    ):
        wrong, right = _numbers(wrong_keys), _numbers(right_keys)
        here = [where, *(column == name for column, name in zip(by, names, strict=True))]
        others = select(key, value).where(*here, or_(value.is_(None), value.not_in((0, 1))))
        rest = np.array(driver_rows(connection, others) if count > len(wrong) + len(right) else [], dtype=_PAIRS)
        keys = np.concatenate([wrong, right, rest["key"]])
        _check_count(len(keys), count)
        found[tuple(names)] = keys, np.concatenate([np.zeros(len(wrong)), np.ones(len(right)), rest["value"]])
    return found


def joined_columns(
    connection: Connection,
    numbers: Sequence[ColumnElement[Any]],
    texts: Sequence[ColumnElement[Any]],
    where: ColumnElement[bool],
) -> tuple[list[Ints], list[list[str]]]:
    """Columns of the matching rows, all in one arbitrary order: whole numbers, then texts. Raises `ValueError` or
    `TypeError` for any other value."""
    joined = [_joined(number) for number in numbers] + [_joined(text, _BETWEEN) for text in texts]
    count, *found = connection.execute(select(func.count(), *joined).where(where)).one()
    lines = [[] if one is None else one.split(_BETWEEN) for one in found[len(numbers) :]]
    if any(len(line) != count for line in lines):  # a text with the separator in it, or no text at all
        rows = driver_rows(connection, select(*numbers, *(cast(text, Text) for text in texts)).where(where))
        columns = [list(one) for one in zip(*rows, strict=True)]
        if any(None in column for column in columns):
            raise TypeError("a row without a value")
        return [np.array(column, dtype=np.int64) for column in columns[: len(numbers)]], columns[len(numbers) :]
    whole = [_numbers(one) for one in found[: len(numbers)]]
    for one in whole:
        _check_count(len(one), count)
    return whole, lines


def keyed_texts(
    connection: Connection, key: ColumnElement[Any], value: ColumnElement[Any], where: ColumnElement[bool]
) -> list[tuple[str, Ints]]:
    """Each distinct text of the matching rows, with the keys (whole numbers) of its rows, in any order."""
    query = select(value, func.count(), _joined(key)).where(where).group_by(value)
    found = []
    for text, count, keys in driver_rows(connection, query):
        found.append((text, _numbers(keys)))
        _check_count(len(found[-1][1]), count)
    return found


def driver_rows(connection: Connection, query: Any) -> list[Any]:
    """All rows as the driver's tuples: making SQLAlchemy's rows takes longer than reading them."""
    result = connection.execute(query)
    rows = list(result.cursor.fetchall())
    result.close()
    return rows


class Codes(dict[str, int]):
    """A code for each text, in the order of first appearance."""

    def __missing__(self, text: str) -> int:
        self[text] = code = len(self)
        return code

    def of(self, texts: Sequence[str]) -> Ints:
        return np.fromiter(map(self.__getitem__, texts), dtype=np.int64, count=len(texts))


def _joined(value: ColumnElement[Any], between: str = ",") -> Any:
    return func.aggregate_strings(cast(value, Text), between)


def _numbers(text: str | None) -> Ints:
    return np.fromstring(text or "", dtype=np.int64, sep=",")


def _check_count(found: int, rows: int) -> None:
    if found != rows:
        raise ValueError(f"{found} whole numbers in {rows} rows")

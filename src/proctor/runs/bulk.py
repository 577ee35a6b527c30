"""Many rows at once. PostgreSQL takes them by COPY, several times as fast as by statements for single rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, MetaData, Table, insert, select
from sqlalchemy.schema import CreateTable

Row = Mapping[str, Any]

FEWEST = 200
"""Rows below which COPY is not worth its round trips."""

_PART = 1000
_COUNTED = {"preserve_rowcount": True}
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Writes rows that are not there yet, all with the same columns. Raises as the database does where one is there."""
    if connection.dialect.name == "postgresql" and len(rows) >= FEWEST:
        _copy(connection, table.name, list(rows[0]), rows)
    elif rows:
        connection.execute(insert(table), rows)


def upsert_rows(connection: Connection, table: Table, upsert: Any, rows: Sequence[Row]) -> int:
    """Writes rows with all columns by a statement that says what becomes of those that are there (INSERT … ON
    CONFLICT); how many were written.

    PostgreSQL gets many of them in a temporary table, from which the statement takes them. It refuses to meet one row
    twice: several rows of one key are written one after the other, as SQLite does it.
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
    """A table of the same columns that lasts as long as a connection, and is emptied with every transaction."""
    metadata = MetaData()
    columns = [type(column)(column.name, column.type) for column in table.columns]
    return Table(f"{table.name}_aside", metadata, *columns, prefixes=["TEMPORARY"], postgresql_on_commit="DELETE ROWS")


def _copy(connection: Connection, table: str, names: Sequence[str], rows: Sequence[Row]) -> None:
    """Rows in the text form of COPY. A NUL, which PostgreSQL keeps in no text, is refused by it as in a statement."""
    columns = ", ".join(f'"{name}"' for name in names)
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table}" ({columns}) FROM STDIN') as copy:
        for start in range(0, len(rows), _PART):  # the server reads while the next part is written
            copy.write("".join([_line([row[name] for name in names]) for row in rows[start : start + _PART]]))


def _line(values: Sequence[Any]) -> str:
    r"""One row: fields between tabs, None as \\N.

    >>> _line([1, None, "a\tb\\", 0.1])
    '1\t\\N\ta\\tb\\\\\t0.1\n'
    """
    return (
        "\t".join([_escaped(one) if type(one) is str else "\\N" if one is None else str(one) for one in values]) + "\n"
    )


def _escaped(text: str) -> str:
    for char, written in _ESCAPES:
        if char in text:
            text = text.replace(char, written)
    return text

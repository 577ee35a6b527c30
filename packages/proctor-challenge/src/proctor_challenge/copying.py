"""A store as a whole, copied into an empty one: from a file to PostgreSQL or back, with a review or a challenge in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, Table, func, insert, select

from proctor.core import InputError
from proctor.runs import CONTROLS, STUDIES, StoredTables, open_engine, reading, shown_url, store_tables
from proctor_challenge.challenge import TABLES
from proctor_web import ACCOUNT_TABLES, REVIEW_TABLES, first_fault, private_store, trail_head

_PART = 1000  # rows that are read and written at once


@dataclass(frozen=True)
class CopiedStore:
    """What was copied: the number of rows by table, and the newest hash of the trail ("" where there is none)."""

    rows: dict[str, int]
    trail: str


def copy_store(source: str, target: str) -> CopiedStore:
    """Copies all rows of a store (a path or an SQLAlchemy URL) into an empty one, in one transaction that sees one state
    of the source, and checks that all arrived and that the trail is unbroken.

    Raises `InputError` for a source that is no store, a target with rows, and a source whose trail was changed; no row
    is written then.
    """
    first = open_engine(source, create=False)
    try:
        kinds = [
            tables for tables in (CONTROLS, STUDIES, ACCOUNT_TABLES, REVIEW_TABLES, TABLES) if tables.are_in(first)
        ]
        second = open_engine(target if "://" in target else private_store(Path(target)), create=True)
        try:
            return _copied(first, second, kinds, shown_url(source), shown_url(target))
        finally:
            second.dispose()
    finally:
        first.dispose()


def _copied(first: Engine, second: Engine, kinds: list[StoredTables], source: str, target: str) -> CopiedStore:
    known = set(sa.inspect(second).get_table_names())
    trailed = [tables for tables in kinds if tables not in (CONTROLS, STUDIES)]
    own = list(_ordered([CONTROLS, STUDIES, ACCOUNT_TABLES, REVIEW_TABLES, TABLES]))
    with reading(second) as there:
        used = [table.name for table in own if table.name in known and table.name != "meta" and _count(there, table)]
    if used:
        expected = "an empty store: another file or database"
        raise InputError(target, found=f"rows in {', '.join(used[:3])}", expected=expected)
    for tables in kinds:
        tables.prepare(second)
    with reading(first) as here, second.begin() as there:
        fault = first_fault(here) if trailed else None
        if fault is not None:
            raise InputError(source, f"entry {fault} of the trail", found="another one than was recorded")
        rows = {table.name: _copy(here, there, table) for table in _ordered(kinds)}
        if rows != (arrived := {name: _count(there, table) for name, table in _named(kinds)}):
            lost = next(name for name in rows if rows[name] != arrived[name])
            raise InputError(target, lost, found=f"{arrived[lost]} rows", expected=f"{rows[lost]} as in {source}")
        head = trail_head(there) if trailed else ""
        if trailed and (first_fault(there) is not None or head != trail_head(here)):
            raise InputError(target, "the trail", found="other entries", expected=f"those of {source}")
    return CopiedStore(rows, head)


def _ordered(kinds: list[StoredTables]) -> Iterator[Table]:
    """The tables of a store and of these kinds, each after those that it refers to."""
    yield from store_tables.sorted_tables
    for tables in kinds:
        yield from (table for table in tables.tables[0].metadata.sorted_tables if table in tables.tables)


def _named(kinds: list[StoredTables]) -> Iterator[tuple[str, Table]]:
    return ((table.name, table) for table in _ordered(kinds))


def _copy(here: Connection, there: Connection, table: Table) -> int:
    """Copies the rows that are not there yet (in `meta`, the versions of tables are)."""
    count, names = 0, [column.name for column in table.columns]
    known = set(there.execute(select(table.c.key)).scalars()) if table.name == "meta" else set()
    ordered = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_PART)
    for part in here.execute(ordered).mappings().partitions(_PART):
        count += len(part)
        rows = [_plain(table, dict(row)) for row in part if not known or row["key"] not in known]
        if rows:
            there.execute(insert(table), [{name: row[name] for name in names} for row in rows])
    _count_on(there, table)
    return count


def _plain(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """A row to insert: no value of a JSON column is NULL, and not JSON's null."""
    empty = [name for name, value in row.items() if value is None and isinstance(table.c[name].type, sa.JSON)]
    return row | {name: sa.null() for name in empty if table.c[name].nullable}


def _count_on(there: Connection, table: Table) -> None:
    """Lets PostgreSQL number new rows after the copied ones."""
    key = table.autoincrement_column
    if there.dialect.name != "postgresql" or key is None:
        return
    sequence = func.pg_get_serial_sequence(table.name, key.name)
    if there.execute(select(sequence)).scalar() is not None:
        last = select(func.max(key)).scalar_subquery()
        there.execute(select(func.setval(sequence, func.coalesce(last, 1), last.is_not(None))))


def _count(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())

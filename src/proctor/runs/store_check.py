"""Goes through a store and says of each row that Proctor could not have written what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping, select, text
from sqlalchemy.exc import DBAPIError

from proctor.core import Item, Vote
from proctor.runs import schema
from proctor.runs.cards import BenchmarkCard
from proctor.runs.database import READING_FAULTS
from proctor.runs.rows import answer_from_row
from proctor.runs.store import Store

__all__ = ["check_store"]


def check_store(store: Store) -> Iterator[str]:
    """One line for each damaged row, or for a table that can't be read at all; nothing where the store is whole.

    The file's own pages first (SQLite), then benchmarks, items, runs, answers, scores and judgements: that each can
    be read, and belongs to what it names. Nothing is changed.
    """
    with store.reading() as connection:
        if connection.dialect.name == "sqlite":
            yield from _pages(connection)
        for name, columns, check in _TABLES:
            yield from _rows(connection, name, columns, check)


def _pages(connection: Connection) -> Iterator[str]:
    try:
        found = connection.execute(text("PRAGMA integrity_check(20)")).scalars().all()
        lost = connection.execute(text("PRAGMA foreign_key_check")).all()
    except DBAPIError as error:
        yield f"the file: {error.orig}"
        return
    yield from (f"the file: {line}" for line in found if line != "ok")
    yield from (f"table {row[0]}: a row that belongs to no row of table {row[2]}" for row in lost[:20])


def _rows(
    connection: Connection, name: str, columns: tuple[str, ...], check: Callable[[RowMapping], object]
) -> Iterator[str]:
    """The rows as they are kept (JSON as text), one after the other."""
    table = schema.metadata.tables[name]
    try:
        for row in connection.execute(select(table).execution_options(yield_per=1000)).mappings():
            try:
                check(row)
            except READING_FAULTS as error:
                place = ", ".join(f"{column} {row[column]!r}"[:80] for column in columns)
                yield f"table {name}, row with {place}: {_reason(error)}"
    except DBAPIError as error:
        yield f"table {name}: {error.orig}"
    except READING_FAULTS as error:  # a column that the library itself decodes
        yield f"table {name}: a row that can't be read ({_reason(error)})"


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"{place}: {first['msg']}" if place else str(first["msg"])
    return f"{type(error).__name__}: {error}"[:200]


def _item(row: RowMapping) -> None:
    item = Item.model_validate_json(row["body"])
    kept = (row["item"], row["group_name"], row["format"])
    if kept != (item.id, item.group, item.answer.kind):
        raise ValueError(f"the item in it is {item.id!r}")


def _score(row: RowMapping) -> None:
    if not math.isfinite(row["value"]):
        raise ValueError("a value that is no finite number")


def _vote(row: RowMapping) -> None:
    vote = Vote.model_validate_json(row["body"])
    if vote.key != row["key"]:
        raise ValueError("the judgement in it has another key")


def _run(row: RowMapping) -> None:
    if not isinstance(row["settings"], dict):
        raise ValueError("settings that are no object")


def _flag(row: RowMapping) -> None:
    if not isinstance(row["value"], str):
        raise ValueError("a value that is no text")


_TABLES: tuple[tuple[str, tuple[str, ...], Callable[[RowMapping], Any]], ...] = (
    ("benchmarks", ("name",), lambda row: BenchmarkCard.model_validate(row["card"])),
    ("items", ("item",), _item),
    ("flags", ("item", "name"), _flag),
    ("runs", ("system", "condition"), _run),
    ("answers", ("run", "item"), lambda row: answer_from_row(str(row["item"]), row)),
    ("scores", ("run", "metric", "scorer", "item"), _score),
    ("votes", ("key",), _vote),
)

"""Numbers of many rows as arrays. The database joins them into one text, which is read as a whole: making a Python
object of every row takes several times as long as the database needs to find it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Text, cast, func, or_, select

Ints = NDArray[np.int64]

_PAIRS = np.dtype([("key", np.int64), ("value", np.float64)])


def whole_numbers(connection: Connection, value: ColumnElement[Any], where: ColumnElement[bool]) -> Ints:
    """A value of each row that fits, in any order; one may be joined of several texts of digits. Raises `ValueError`
    where a row has something else than a whole number."""
    count, text = connection.execute(select(func.count(), _joined(value)).where(where)).one()
    return _parsed(text, count)


def keyed_numbers(
    connection: Connection, key: ColumnElement[Any], value: ColumnElement[Any], where: ColumnElement[bool]
) -> tuple[Ints, NDArray[np.float64]]:
    """A whole number and a number of each row that fits, in any order and exactly. Most scores are 0 or 1: of these
    only the keys are read. Raises `ValueError` or `TypeError` where a row has something else than numbers."""
    parts: list[Any] = [func.count()]
    for one in (0, 1):
        parts += [func.count().filter(value == one), _joined(key).filter(value == one)]
    every, wrong, wrong_keys, right, right_keys = connection.execute(select(*parts).where(where)).one()
    others = select(key, value).where(where, or_(value.is_(None), value.not_in((0, 1))))
    rest = np.array(driver_rows(connection, others) if every > wrong + right else [], dtype=_PAIRS)
    keys = np.concatenate([_parsed(wrong_keys, wrong), _parsed(right_keys, right), rest["key"]])
    return keys, np.concatenate([np.zeros(wrong), np.ones(right), rest["value"]])


def driver_rows(connection: Connection, query: Any) -> list[Any]:
    """All rows as the database's driver gives them: SQLAlchemy's rows take longer to make than to read."""
    result = connection.execute(query)
    rows = list(result.cursor.fetchall())
    result.close()
    return rows


def _joined(value: ColumnElement[Any]) -> Any:
    return func.aggregate_strings(cast(value, Text), ",")


def _parsed(text: str | None, count: int) -> Ints:
    numbers = np.fromstring(text or "", dtype=np.int64, sep=",")
    if len(numbers) != count:
        raise ValueError(f"{len(numbers)} whole numbers in {count} rows")
    return numbers

"""Numbers and texts of many rows. The database joins them into one text a column, which is read as a whole: making a
Python object of every row takes several times as long as the database needs to find it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Text, cast, func, or_, select, true

Ints = NDArray[np.int64]

_BETWEEN = "\x1f"  # texts: the separator of units
_PAIRS = np.dtype([("key", np.int64), ("value", np.float64)])


def whole_numbers(connection: Connection, value: ColumnElement[Any], where: ColumnElement[bool]) -> Ints:
    """A value of each row that fits, in any order; one may be joined of several texts of digits. Raises `ValueError`
    where a row has something else than a whole number."""
    return parted_numbers(connection, [(value, true())], where)[0]


def parted_numbers(
    connection: Connection, parts: Sequence[tuple[ColumnElement[Any], ColumnElement[bool]]], where: ColumnElement[bool]
) -> list[Ints]:
    """The same in parts, each with its value and the condition of its rows. Raises `ValueError` also where a row is in
    no part."""
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
    """A whole number and a number of each row that fits, in any order and exactly, by what its columns `by` have. Most
    scores are 0 or 1: of these only the keys are read. Raises `ValueError` or `TypeError` where a row has something
    else than numbers."""
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
    """Columns of the rows that fit, in any order, which is the same for all: whole numbers, then texts. Raises
    `ValueError` or `TypeError` where a row has something else."""
    joined = [_joined(one) for one in numbers] + [_joined(one, _BETWEEN) for one in texts]
    count, *found = connection.execute(select(func.count(), *joined).where(where)).one()
    lines = [[] if one is None else one.split(_BETWEEN) for one in found[len(numbers) :]]
    if any(len(one) != count for one in lines):  # a text with the separator in it, or no text at all
        rows = driver_rows(connection, select(*numbers, *(cast(one, Text) for one in texts)).where(where))
        columns = [list(one) for one in zip(*rows, strict=True)]
        if any(None in one for one in columns):
            raise TypeError("a row without a value")
        return [np.array(one, dtype=np.int64) for one in columns[: len(numbers)]], columns[len(numbers) :]
    whole = [_numbers(one) for one in found[: len(numbers)]]
    for one in whole:
        _check_count(len(one), count)
    return whole, lines


def keyed_texts(
    connection: Connection, key: ColumnElement[Any], value: ColumnElement[Any], where: ColumnElement[bool]
) -> list[tuple[str, Ints]]:
    """Each text that rows have which fit, with the whole numbers of these rows, in any order."""
    query = select(value, func.count(), _joined(key)).where(where).group_by(value)
    found = []
    for text, count, keys in driver_rows(connection, query):
        found.append((text, _numbers(keys)))
        _check_count(len(found[-1][1]), count)
    return found


def driver_rows(connection: Connection, query: Any) -> list[Any]:
    """All rows as the database's driver gives them: SQLAlchemy's rows take longer to make than to read."""
    result = connection.execute(query)
    rows = list(result.cursor.fetchall())
    result.close()
    return rows


class Codes(dict[str, int]):
    """A code for each text, in the order of their first appearance."""

    def __missing__(self, text: str) -> int:
        self[text] = code = len(self)
        return code

    def of(self, texts: Sequence[str]) -> Ints:
        """The code of each of these texts."""
        return np.fromiter(map(self.__getitem__, texts), dtype=np.int64, count=len(texts))


def _joined(value: ColumnElement[Any], between: str = ",") -> Any:
    return func.aggregate_strings(cast(value, Text), between)


def _numbers(text: str | None) -> Ints:
    return np.fromstring(text or "", dtype=np.int64, sep=",")


def _check_count(found: int, rows: int) -> None:
    if found != rows:
        raise ValueError(f"{found} whole numbers in {rows} rows")

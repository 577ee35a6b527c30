"""What a store knows, as arrays: items with their groups and facets, statuses and scores by run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from proctor.core import Status
from proctor.runs import schema
from proctor.runs.cards import BenchmarkCard
from proctor.runs.store import Run, Store

__all__ = [
    "STATUS_CODES",
    "ItemTable",
    "Outcomes",
    "Series",
    "load_items",
    "load_labels",
    "load_outcomes",
    "load_series",
]

STATUS_CODES = {status.value: code for code, status in enumerate(Status)}
_UNREADABLE = len(STATUS_CODES)
_ABSENT = -1

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ItemTable:
    """The items that count, in the benchmark's order. All arrays have one entry an item.

    `group` codes the groups (`groups` has their names); `tags_code` leads into `tags`, because many
    items share the same tags; `flags` are facets derived later, such as `guessable`.
    """

    ids: list[str]
    group: Ints
    groups: list[str]
    formats: NDArray[np.str_]
    tags_code: Ints
    tags: list[dict[str, Any]]
    flags: dict[str, list[str]]
    row_of: Ints

    def facet_names(self) -> list[str]:
        """All tags and flags that results can be split by."""
        return sorted({name for tags in self.tags for name in tags} | set(self.flags) | {"format", "group"})

    def facet(self, name: str) -> list[tuple[str, ...]]:
        """Each item's values of a facet: several where a tag has several, none where it has none."""
        if name in self.flags:
            return [(value,) if value else () for value in self.flags[name]]
        if name == "group":
            return [(self.groups[code],) for code in self.group]
        if name == "format" and not any("format" in tags for tags in self.tags):
            return [(str(kind),) for kind in self.formats]
        values = [_texts(tags.get(name)) for tags in self.tags]
        return [values[code] for code in self.tags_code]


@dataclass(frozen=True)
class Outcomes:
    """How asking ended: one code an item of the table (`STATUS_CODES`, -1 where it was not asked)."""

    status: Ints
    readable: NDArray[np.bool_]

    def where(self, status: Status) -> NDArray[np.bool_]:
        """The items that ended so."""
        return np.equal(self.status, STATUS_CODES[status.value])

    @property
    def asked(self) -> NDArray[np.bool_]:
        """The items that have an answer, failed ones included."""
        return np.not_equal(self.status, _ABSENT)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """The items whose answer is the system's own: not failed."""
        return self.asked & ~self.where(Status.FAILED)


@dataclass(frozen=True)
class Series:
    """One metric by one scorer over the items of the table; NaN where there is no score."""

    metric: str
    scorer: str
    values: NDArray[np.float64]

    @property
    def marked(self) -> NDArray[np.bool_]:
        """The items that have a score."""
        return ~np.isnan(self.values)


def load_items(store: Store, card: BenchmarkCard, *, all_items: bool = False) -> ItemTable:
    """The items of a benchmark that count (or all)."""
    table = schema.items
    columns = (table.c.id, table.c.item, table.c.group_name, table.c.format, table.c.tags)
    with store.reading() as connection:
        own = select(schema.benchmarks.c.id).where(schema.benchmarks.c.name == card.name).scalar_subquery()
        query = select(*columns).where(table.c.benchmark == own).order_by(table.c.position)
        rows = connection.execute(query).all()
        flags = _flags(connection, own)
    texts: dict[str, int] = {}
    codes = [texts.setdefault(row.tags, len(texts)) for row in rows]
    tags = [json.loads(text) for text in texts]
    counts = [all_items or all(one.get(tag) == value for tag, value in card.only.items()) for one in tags]
    kept = [index for index, code in enumerate(codes) if counts[code]]
    groups: dict[str, int] = {}
    group = np.array(
        [groups.setdefault(rows[index].group_name, len(groups)) for index in kept], dtype=np.int64
    )
    numbers = np.array([rows[index].id for index in kept], dtype=np.int64)
    row_of = np.full(int(max((row.id for row in rows), default=0)) + 1, -1, dtype=np.int64)
    row_of[numbers] = np.arange(len(kept))
    return ItemTable(
        ids=[rows[index].item for index in kept],
        group=group,
        groups=list(groups),
        formats=np.array([rows[index].format for index in kept], dtype=np.str_),
        tags_code=np.array([codes[index] for index in kept], dtype=np.int64),
        tags=tags,
        flags={name: [values.get(rows[index].id, "") for index in kept] for name, values in flags.items()},
        row_of=row_of,
    )


def load_outcomes(store: Store, run: Run, items: ItemTable) -> Outcomes:
    """How asking ended in one run."""
    table = schema.answers
    query = select(table.c.item, table.c.status, table.c.readable).where(table.c.run == run.id)
    with store.reading() as connection:
        rows = connection.execute(query).all()
    status = np.full(len(items.ids), _ABSENT, dtype=np.int64)
    readable = np.zeros(len(items.ids), dtype=np.bool_)
    if rows:
        numbers, names, reads = zip(*rows, strict=True)
        place, inside = _places(numbers, items)
        codes = np.fromiter((STATUS_CODES[name] for name in names), dtype=np.int64, count=len(names))
        status[place] = codes[inside]
        readable[place] = np.array(reads, dtype=np.bool_)[inside]
    return Outcomes(status, readable)


def load_series(store: Store, run: Run, items: ItemTable) -> list[Series]:
    """All scores of one run, by metric and scorer."""
    table = schema.scores
    query = select(table.c.metric, table.c.scorer).where(table.c.run == run.id).distinct()
    with store.reading() as connection:
        return [
            _series(connection, run, items, metric, scorer)
            for metric, scorer in sorted((row.metric, row.scorer) for row in connection.execute(query))
        ]


def load_labels(store: Store, run: Run, items: ItemTable, metric: str, scorer: str) -> dict[int, str]:
    """The labels of one run's scores by the item's place in the table."""
    table = schema.scores
    query = select(table.c.item, table.c.label).where(
        table.c.run == run.id, table.c.metric == metric, table.c.scorer == scorer
    )
    with store.reading() as connection:
        found = ((int(items.row_of[row.item]), row.label) for row in connection.execute(query))
        return {place: label for place, label in found if place >= 0}


def _series(connection: Connection, run: Run, items: ItemTable, metric: str, scorer: str) -> Series:
    table = schema.scores
    query = select(table.c.item, table.c.value).where(
        table.c.run == run.id, table.c.metric == metric, table.c.scorer == scorer
    )
    numbers, found = zip(*connection.execute(query).all(), strict=True)
    values = np.full(len(items.ids), np.nan)
    place, inside = _places(numbers, items)
    values[place] = np.array(found, dtype=np.float64)[inside]
    return Series(metric, scorer, values)


def _places(numbers: Sequence[int], items: ItemTable) -> tuple[Ints, NDArray[np.bool_]]:
    rows = items.row_of[np.array(numbers, dtype=np.int64)]
    inside = rows >= 0
    return rows[inside], inside


def _flags(connection: Connection, benchmark: Any) -> dict[str, dict[int, str]]:
    flags, items = schema.flags, schema.items
    query = (
        select(flags.c.item, flags.c.name, flags.c.value)
        .join(items, items.c.id == flags.c.item)
        .where(items.c.benchmark == benchmark)
    )
    found: dict[str, dict[int, str]] = {}
    for row in connection.execute(query):
        found.setdefault(row.name, {})[row.item] = row.value
    return found


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(_text(one) for one in value)
    return (_text(value),)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)

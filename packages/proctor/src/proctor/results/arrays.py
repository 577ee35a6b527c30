"""The content of a store as arrays: items with groups and facets, outcomes and scores by run.

Rows are items, never answers: of an item that was asked repeatedly, what is loaded is the first answer (repetition 0), or
each repetition in an array of its own (`load_repetitions`). So nothing can take a repetition for an item.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue
from sqlalchemy import ColumnElement, Connection, Text, case, cast, func, select

from proctor.core import ACCURACY, NO_ANSWER, InputError, Metric, Status
from proctor.judges import UNRESOLVED
from proctor.results.reading_once import read_once
from proctor.runs import (
    BASELINES,
    CODE,
    UNSUPPORTED,
    BenchmarkCard,
    Codes,
    Run,
    Store,
    driver_rows,
    joined_columns,
    keyed_numbers,
    keyed_texts,
    parted_numbers,
    repeats_of,
    schema,
    whole_numbers,
)

STATUS_CODES = {status.value: code for code, status in enumerate(Status)}
_ABSENT = -1
_AT_ONCE = 25_000  # items per query
_REPETITIONS = 1000  # a store has fewer of one item
_APART = "\x1e"  # joins two texts; occurs neither in names of formats nor in JSON

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ItemNames:
    """The ids of a benchmark's items, read from the store on first use: most figures need none."""

    store: Store
    benchmark: int

    @cached_property
    def by_number(self) -> dict[int, str]:
        """The ids by the items' numbers in the store."""
        table = schema.items
        query = select(table.c.id, table.c.item).where(table.c.benchmark == self.benchmark)
        with self.store.reading() as connection:
            return dict(driver_rows(connection, query))


@dataclass(frozen=True)
class ItemTable:
    """The items that count, in the benchmark's order. All arrays have one entry per item.

    Shared values are coded: `group` indexes `groups`, `format` indexes `formats`, `tags_code` indexes `tags`; `flags` are
    derived facets such as `guessable`. `number` is an item's number in the store; `row_of` maps it to the row in the
    table (-1: not in it).
    """

    names: ItemNames
    number: Ints
    group: Ints
    groups: list[str]
    format: Ints
    formats: list[str]
    tags_code: Ints
    tags: list[dict[str, Any]]
    flags: dict[str, list[str]]
    row_of: Ints

    def __len__(self) -> int:
        return len(self.number)

    @cached_property
    def ids(self) -> list[str]:
        """The id of each item."""
        return [self.names.by_number[number] for number in self.number.tolist()]

    def facet_names(self) -> list[str]:
        """The names of all facets."""
        return sorted({name for tags in self.tags for name in tags} | set(self.flags) | {"format", "group"})

    def facet(self, name: str) -> list[tuple[str, ...]]:
        """Each item's distinct values of a facet: none, one or several."""
        codes, values = self.coded_facet(name)
        return [values[code] for code in codes]

    def coded_facet(self, name: str) -> tuple[Ints, list[tuple[str, ...]]]:
        """The same coded: a code per item, and the values of each code."""
        if name in self.flags:
            codes, values = _coded(self.flags[name])
            return codes, [(value,) if value else () for value in values]
        if name == "group":
            return self.group, [(group,) for group in self.groups]
        if name == "format" and not any("format" in tags for tags in self.tags):
            return self.format, [(kind,) for kind in self.formats]
        return self.tags_code, [_texts(tags.get(name)) for tags in self.tags]

    def only(self, kept: NDArray[np.bool_]) -> ItemTable:
        """The table of a subset of the items."""
        rows = np.flatnonzero(kept)
        group, groups = _recoded(self.group[rows], self.groups)
        row_of = np.full_like(self.row_of, -1)
        inside = (self.row_of >= 0) & kept[self.row_of]
        row_of[inside] = (np.cumsum(kept) - 1)[self.row_of[inside]]
        return replace(
            self,
            number=self.number[rows],
            group=group,
            groups=groups,
            format=self.format[rows],
            tags_code=self.tags_code[rows],
            flags={name: [values[position] for position in rows] for name, values in self.flags.items()},
            row_of=row_of,
        )

    def scorable(self, metric: Metric, scorer: str = "") -> NDArray[np.bool_]:
        """The items that the metric applies to; accuracy by code applies only to answers that code can compare."""
        declared = ACCURACY if (metric.name, scorer) == (ACCURACY.name, CODE) else metric
        scores = np.array([declared.scores(kind) for kind in self.formats], dtype=np.bool_)[self.format]
        if not declared.languages:
            return scores
        spoken = [tags.get("language") for tags in self.tags]
        return scores & np.array([one in declared.languages for one in spoken], dtype=np.bool_)[self.tags_code]

    def units(self, metric: Metric, rows: Ints) -> Ints:
        """The number of units (`Metric.per`) of each of these items; 1 for a metric without units. Repeating items by it
        gives the mean over units. Raises `InputError` for a tag that is no positive whole number."""
        if not metric.per:
            return np.ones(len(rows), dtype=np.int64)
        known = [tags.get(metric.per) for tags in self.tags]
        counts = np.array([one if isinstance(one, int) and one > 0 else 0 for one in known], dtype=np.int64)
        times = counts[self.tags_code[rows]]
        if np.any(times == 0):
            location = f"item {self.ids[int(rows[np.argmin(times)])]!r}, tag {metric.per!r}"
            raise InputError(location, found="no number of them", expected=f"one, for {metric.name}")
        return times


@dataclass(frozen=True)
class Outcomes:
    """The status of each item of the table (`STATUS_CODES`; -1: not asked). `submitted` is False for placeholders of
    answers that a submission lacks, `cut_off` is True for unreadable answers that the model's token limit ended.
    `unsupported` items were not asked, since the system does not support them: it never will be."""

    status: Ints
    readable: NDArray[np.bool_]
    submitted: NDArray[np.bool_]
    cut_off: NDArray[np.bool_]
    unsupported: NDArray[np.bool_]

    def among(self, kept: NDArray[np.bool_]) -> Outcomes:
        """The same of a subset of the items."""
        return Outcomes(
            self.status[kept], self.readable[kept], self.submitted[kept], self.cut_off[kept], self.unsupported[kept]
        )

    def where(self, status: Status) -> NDArray[np.bool_]:
        """The items with this status."""
        return np.equal(self.status, STATUS_CODES[status.value])

    @property
    def asked(self) -> NDArray[np.bool_]:
        """The items with an answer, failed ones included."""
        return np.not_equal(self.status, _ABSENT)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """The items with an answer that did not fail."""
        return self.asked & ~self.where(Status.FAILED)


@dataclass(frozen=True)
class Series:
    """One metric by one scorer over the items of the table; NaN without a score."""

    metric: str
    scorer: str
    values: NDArray[np.float64]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """The items with a score."""
        return ~np.isnan(self.values)


def load_items(store: Store, card: BenchmarkCard, *, all_items: bool = False) -> ItemTable:
    """The items of a benchmark that count (or all), as a table."""
    benchmarks = schema.benchmarks
    with store.reading() as connection:
        own = connection.execute(select(benchmarks.c.id).where(benchmarks.c.name == card.name)).scalar_one()
        (number, group, kind), groups, kinds = _read_items(connection, own)
        flags = _flags(connection, own)
        pairs = [text.split(_APART) for text in kinds]
        tags_code, texts = _recoded(kind, [text for _, text in pairs])
        tags = [_object(text) for text in texts]
    row_of = np.full(number.max(initial=0) + 1, -1, dtype=np.int64)
    counts = [all_items or all(one.get(tag) == value for tag, value in card.only.items()) for one in tags]
    kept = np.flatnonzero(np.array(counts, dtype=np.bool_)[tags_code])
    number, tags_code = number[kept], tags_code[kept]
    row_of[number] = np.arange(len(number))
    group, groups = _recoded(group[kept], groups)
    form, formats = _recoded(kind[kept], [name for name, _ in pairs])
    table = ItemTable(
        names=ItemNames(store, own),
        number=number,
        group=group,
        groups=groups,
        format=form,
        formats=formats,
        tags_code=tags_code,
        tags=tags,
        flags={name: [values.get(one, "") for one in number.tolist()] for name, values in flags.items()},
        row_of=row_of,
    )
    derived = {name: values for (whose, name), values in store.derived.items() if whose == card.name}
    table.flags.update({name: [values.get(one, "") for one in table.ids] for name, values in derived.items()})
    return table


def _read_items(connection: Connection, benchmark: int) -> tuple[list[Ints], list[str], list[str]]:
    """A benchmark's items in its order: their numbers and codes of group and kind; then the groups, and the kinds (format
    and tags, joined by `_APART`)."""
    table = schema.items
    number, own = table.c.id, table.c.benchmark == benchmark
    first, last = connection.execute(select(func.min(number), func.max(number)).where(own)).one()
    groups, kinds = Codes(), Codes()
    parts = [[np.zeros(0, dtype=np.int64)] * 4]
    for start in range(first or 0, (last or -1) + 1, _AT_ONCE):
        # Read in the order of numbers, as rows are stored; `+ 0` keeps the database from using the index on ids.
        within = number.between(start, start + _AT_ONCE - 1) & (table.c.benchmark + 0 == benchmark)
        numbers, texts = joined_columns(
            connection, (number, table.c.position), (table.c.group_name, table.c.format + _APART + table.c.tags), within
        )
        parts.append([*numbers, groups.of(texts[0]), kinds.of(texts[1])])
    found, position, group, kind = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(position, kind="stable")
    return [found[order], group[order], kind[order]], list(groups), list(kinds)


def cut_off_rows() -> ColumnElement[bool]:
    """The condition of unreadable answers that the model's token limit ended."""
    table = schema.answers
    return (table.c.readable == 0) & table.c.extra.contains('"cut_off": true')


def load_outcomes(store: Store, run: Run, items: ItemTable) -> Outcomes:
    """The outcomes of the first repetition of one run."""
    return load_repeated_outcomes(store, run, items)[0]


@read_once
def load_repeated_outcomes(store: Store, run: Run, items: ItemTable) -> list[Outcomes]:
    """The outcomes of each repetition of one run: as many as were asked for, also those that the run has not come to."""
    table = schema.answers
    first = table.c.repetition == 0
    usual = (table.c.status == Status.ANSWERED.value) & (table.c.readable != 0) & (table.c.reason != NO_ANSWER)
    code = case({status: str(number) for status, number in STATUS_CODES.items()}, value=table.c.status)
    readable_or_not = case((table.c.readable == 0, "0"), else_="1")
    lacking = case((table.c.reason == NO_ANSWER, "1"), else_="0")
    cut_off_or_not = case((cut_off_rows(), "1"), else_="0")
    how = code + readable_or_not + lacking + cut_off_or_not
    later = table.c.item * _REPETITIONS + table.c.repetition
    parts = [
        (table.c.item, usual & first),
        (cast(table.c.item, Text) + how, ~usual & first),
        (later, usual & ~first),
        (cast(later, Text) + how, ~usual & ~first),
    ]
    with store.reading() as connection:
        most, others, most_later, others_later = parted_numbers(connection, parts, table.c.run == run.id)
    usual_one = STATUS_CODES[Status.ANSWERED.value] * 1000 + 100
    found = [_outcomes(run, items, np.concatenate([most * 10_000 + usual_one, others]))]
    more = np.concatenate([most_later * 10_000 + usual_one, others_later])
    repetition = more // 10_000 % _REPETITIONS
    more = more // (10_000 * _REPETITIONS) * 10_000 + more % 10_000
    count = max(repeats_of(run.settings), int(repetition.max(initial=0)) + 1)
    found += [_outcomes(run, items, more[repetition == number]) for number in range(1, count)]
    return found


def _outcomes(run: Run, items: ItemTable, rows: Ints) -> Outcomes:
    """The outcomes of answers of which each is a number: the item's, and four digits that say how it ended."""
    position, inside = _rows(rows // 10_000, items)
    rows = rows[inside]
    status = np.full(len(items), _ABSENT, dtype=np.int64)
    readable = np.zeros(len(items), dtype=np.bool_)
    submitted = np.ones(len(items), dtype=np.bool_)
    cut_off = np.zeros(len(items), dtype=np.bool_)
    status[position] = rows // 1000 % 10
    readable[position] = rows // 100 % 10
    submitted[position] = rows // 10 % 10 == 0
    cut_off[position] = rows % 10
    unsupported = (status == _ABSENT) & _never_asked(run, items)
    return Outcomes(status, readable, submitted, cut_off, unsupported)


_TOLD = ("formats", "items")


def _listed(told: Mapping[str, JsonValue], what: str) -> list[JsonValue]:
    found = told.get(what)
    return found if isinstance(found, list) else []


def _never_asked(run: Run, items: ItemTable) -> NDArray[np.bool_]:
    """The items that a run does not ask, since its system does not support them. A baseline is asked everything that it
    supports; any other run has a list of what its system does not (`UNSUPPORTED`)."""
    if run.system in BASELINES:
        return np.ones(len(items), dtype=np.bool_)
    listed = run.settings.get(UNSUPPORTED)
    told = listed if isinstance(listed, dict) else {}
    formats, names = ({str(one) for one in _listed(told, what)} for what in _TOLD)
    never = np.array([name in formats for name in items.formats], dtype=np.bool_)[items.format]
    return never | np.array([name in names for name in items.ids], dtype=np.bool_) if names else never


def load_timed(store: Store, run: Run, items: ItemTable) -> NDArray[np.bool_]:
    """A mask of the items whose answer has a latency."""
    table = schema.answers
    with store.reading() as connection:
        numbers = whole_numbers(
            connection, table.c.item, schema.repetition_of(table, run.id) & table.c.model_s.is_not(None)
        )
    found = np.zeros(len(items), dtype=np.bool_)
    found[_rows(numbers, items)[0]] = True
    return found


def load_series(store: Store, run: Run, items: ItemTable) -> list[Series]:
    """All scores of one run by metric and scorer, as reported.

    Code's accuracy completes that of a judge, which scores only answers that code can't compare; code's own is listed,
    too. A judge without any verdict in the run has empty series of its metrics.
    """
    return _completed(store, run, [*load_raw_series(store, run, items)])


def _completed(store: Store, run: Run, found: list[Series]) -> list[Series]:
    """The scores of one repetition as reported (see `load_series`)."""
    found += _without_verdict(store, run, found)
    code = next((series for series in found if (series.metric, series.scorer) == (ACCURACY.name, CODE)), None)
    if code is None:
        return found
    return [
        Series(series.metric, series.scorer, np.where(series.scored, series.values, code.values))
        if series.metric == ACCURACY.name
        else series
        for series in found
    ]


def _without_verdict(store: Store, run: Run, found: Sequence[Series]) -> list[Series]:
    """Empty series of the judges without any verdict in this run, for the metrics that they give, and those
    that they have in other runs."""
    scoring = {series.scorer for series in found if series.metric != UNRESOLVED.name}
    silent = [series for series in found if series.metric == UNRESOLVED.name and series.scorer not in scoring]
    scores, runs = schema.scores, schema.runs
    own = select(runs.c.benchmark).where(runs.c.id == run.id).scalar_subquery()
    others = select(runs.c.id).where(runs.c.benchmark == own)
    empty = []
    gives = store.card(run.benchmark).gives if silent else {}
    for series in silent:
        query = select(scores.c.metric).where(
            scores.c.run.in_(others), scores.c.scorer == series.scorer, scores.c.metric != UNRESOLVED.name
        )
        with store.reading() as connection:
            names = sorted({*connection.scalars(query.distinct()), *gives.get(series.scorer, ())})
        empty += [Series(name, series.scorer, np.full(len(series.values), np.nan)) for name in names]
    return empty


@read_once
def load_raw_series(store: Store, run: Run, items: ItemTable) -> list[Series]:
    """All scores of the first repetition of one run by metric and scorer, as stored."""
    table = schema.scores
    by = (table.c.metric, table.c.scorer)
    with store.reading() as connection:
        found = keyed_numbers(connection, table.c.item, table.c.value, schema.repetition_of(table, run.id), by)
        return [_series(metric, scorer, *found[metric, scorer], items) for metric, scorer in sorted(found)]


@dataclass(frozen=True)
class StoredRepetition:
    """The outcomes and the scores (see `load_series`) of one repetition of a run."""

    outcomes: Outcomes
    series: list[Series]


def load_repetitions(store: Store, run: Run, items: ItemTable) -> list[StoredRepetition]:
    """Each repetition of a run, the first one first; at least that one."""
    outcomes = load_repeated_outcomes(store, run, items)
    series = [load_series(store, run, items)]
    if len(outcomes) > 1:
        later = _later_series(store, run, items, len(outcomes))
        series += [_completed(store, run, [*some]) for some in later]
    return [StoredRepetition(*both) for both in zip(outcomes, series, strict=True)]


def _later_series(store: Store, run: Run, items: ItemTable, repetitions: int) -> list[list[Series]]:
    """All scores of the repetitions after the first one, as stored: read at once."""
    table = schema.scores
    by = (table.c.metric, table.c.scorer)
    own = (table.c.run == run.id) & (table.c.repetition > 0)
    with store.reading() as connection:
        found = keyed_numbers(connection, table.c.item * _REPETITIONS + table.c.repetition, table.c.value, own, by)
    later: list[list[Series]] = [[] for _ in range(1, repetitions)]
    for metric, scorer in sorted(found):
        numbers, scores = found[metric, scorer]
        repetition = numbers % _REPETITIONS
        for number, some in enumerate(later, start=1):
            here = repetition == number
            if np.any(here):
                some.append(_series(metric, scorer, numbers[here] // _REPETITIONS, scores[here], items))
    return later


def judged_repeatedly(store: Store) -> set[int]:
    """The numbers of the runs with answers that a judge was asked about several times."""
    table = schema.judge_scores
    with store.reading() as connection:
        return set(connection.scalars(select(table.c.run).distinct()))


def load_labels(
    store: Store, run: Run, items: ItemTable, metric: str, scorer: str, repetition: int = 0
) -> dict[int, str]:
    """The labels of the scores of one repetition of a run by the item's position in the table."""
    table = schema.scores
    own = schema.repetition_of(table, run.id, repetition) & (table.c.metric == metric) & (table.c.scorer == scorer)
    with store.reading() as connection:
        texts = keyed_texts(connection, table.c.item, table.c.label, own)
    found: dict[int, str] = {}
    for label, numbers in texts:
        found |= dict.fromkeys(_rows(numbers, items)[0].tolist(), label)
    return found


def load_values(store: Store, run: Run, items: ItemTable) -> list[tuple[str, Ints]]:
    """The distinct parsed answers of one run as JSON, each with its items' positions in the table. Only readable answers with
    the status `answered` are included."""
    table = schema.answers
    own = schema.repetition_of(table, run.id) & (table.c.status == Status.ANSWERED.value) & (table.c.readable == 1)
    with store.reading() as connection:
        texts = keyed_texts(connection, table.c.item, table.c.parsed, own)
    return [(text, _rows(numbers, items)[0]) for text, numbers in texts]


def load_repeated_values(store: Store, run: Run, items: ItemTable) -> list[tuple[str, Ints, Ints]]:
    """The distinct parsed answers of all repetitions of one run as JSON, each with its items' rows in the table and the
    repetitions. Only readable answers with the status `answered` are included."""
    table = schema.answers
    own = (table.c.run == run.id) & (table.c.status == Status.ANSWERED.value) & (table.c.readable == 1)
    key = table.c.item * _REPETITIONS + table.c.repetition
    with store.reading() as connection:
        texts = keyed_texts(connection, key, table.c.parsed, own)
    found = []
    for text, numbers in texts:
        position, inside = _rows(numbers // _REPETITIONS, items)
        found.append((text, position, numbers[inside] % _REPETITIONS))
    return found


def _series(metric: str, scorer: str, numbers: Ints, scores: NDArray[np.float64], items: ItemTable) -> Series:
    position, inside = _rows(numbers, items)
    values = np.full(len(items), np.nan)
    values[position] = scores[inside]
    return Series(metric, scorer, values)


def _rows(numbers: Ints, items: ItemTable) -> tuple[Ints, NDArray[np.bool_]]:
    """The positions of items in the table, and a mask of those that are in it."""
    rows = items.row_of[numbers]
    inside = rows >= 0
    return rows[inside], inside


def _coded(values: Sequence[str]) -> tuple[Ints, list[str]]:
    """A code for each value, and the distinct values, in the order of first appearance."""
    codes = Codes()
    return codes.of(values), list(codes)


def _recoded(codes: Ints, values: Sequence[str]) -> tuple[Ints, list[str]]:
    """As `_coded`, for values given by codes: equal values get one code, unused ones are dropped."""
    code, values = _coded(values)
    codes = code[codes]
    first = np.full(len(values), len(codes), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several positions, the last one that is written
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
    new = np.full(len(values), _ABSENT, dtype=np.int64)
    new[order] = np.arange(len(order))
    return new[codes], [values[code] for code in order]


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("tags that are no object")
    return value


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
    return tuple(dict.fromkeys(map(_text, value))) if isinstance(value, list) else (_text(value),)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)

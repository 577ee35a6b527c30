"""All answers of a benchmark as arrays that are filtered in memory: what a page that browses answers is made from.

A row is one answer: an item, a run and a repetition. An index is read again run by run, where a run has changed, and
never altered. Texts stay in the store and are read for the rows that are shown.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from proctor.core import InputError, Metric, Status, one_of
from proctor.judges import JUDGE_FLAGS, UNRESOLVED
from proctor.results.answer_repetitions import answers_differ, results_differ
from proctor.results.answer_states import (
    CODE_OF,
    MISSING,
    REPETITION_DIFFERENCES,
    RESULTS,
    SORTS,
    STATES,
    AnswerFilter,
    AnswerState,
    Cells,
)
from proctor.results.arrays import ItemTable, Outcomes, Series, StoredRepetition, load_items, load_repetitions
from proctor.runs import CODE, BenchmarkCard, Run, Store, driver_rows, schema, whole_numbers

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


_PART = 5000  # items read at once
_SEARCHES = 4  # at the same time
_KEPT_WORDS, _KEPT_FILTERS = 64, 6


@dataclass(frozen=True)
class RunColumn:
    """The answers of one repetition of a run: for each item its state (a code of `STATES`), the value of the metric that
    decides it (NaN without one), and which metric that is (a row of `AnswerIndex.metrics`; -1 for none). `keys` are the
    metrics and scorers that may have scored it."""

    run: Run
    repetition: int
    state: Ints
    value: NDArray[np.float64]
    metric: Ints
    keys: tuple[tuple[str, str], ...] = ()

    def where(self, states: Iterable[AnswerState]) -> Mask:
        """The items whose answer ended in one of these states."""
        return _among(states)[self.state]

    def count(self, *states: AnswerState) -> int:
        """How many answers ended so."""
        return sum(self._counts[CODE_OF[state]] for state in states)

    @cached_property
    def _counts(self) -> list[int]:
        counts: list[int] = np.bincount(self.state, minlength=len(STATES)).tolist()
        return counts


def _among(states: Iterable[AnswerState]) -> Mask:
    """By the code of a state, whether it is one of these."""
    found = np.zeros(len(STATES), dtype=np.bool_)
    found[[CODE_OF[state] for state in states]] = True
    return found


@dataclass(frozen=True)
class RunStamp:
    """What changes when a run's answers or scores do: their numbers, that of failed answers, the sum of scores."""

    answers: int
    failed: int
    scores: int
    total: float


@dataclass(frozen=True)
class Selected:
    """The rows that a filter keeps, in their order: each is `item * columns + column`. `items` and `groups` count distinct
    ones among them, `total` the rows without the filter."""

    rows: Ints
    items: int
    groups: int
    total: int

    def __len__(self) -> int:
        return len(self.rows)

    def position(self, row: int) -> int | None:
        """The position of a row among these, from 0; None where it is not one of them."""
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) if len(found) else None


@dataclass(frozen=True)
class AnswerIndex:
    """The answers of one benchmark. `columns` are runs and repetitions, by system, condition and repetition; `metrics` are
    those that decide states, with their scorers."""

    card: BenchmarkCard
    items: ItemTable
    fingerprint: str
    columns: tuple[RunColumn, ...]
    metrics: tuple[tuple[Metric, str], ...]
    stamps: Mapping[int, RunStamp]
    _texts: list[str] = field(default_factory=list, repr=False)
    _words: dict[tuple[int, int, RunStamp, str], Mask] = field(default_factory=dict, repr=False, compare=False)
    _flipped: dict[tuple[int, RunStamp], Mask] = field(default_factory=dict, repr=False, compare=False)
    _chosen: dict[tuple[AnswerFilter, str], Selected] = field(default_factory=dict, repr=False, compare=False)

    @property
    def systems(self) -> list[str]:
        """The systems, by name."""
        return list(dict.fromkeys(column.run.system for column in self.columns))

    @property
    def conditions(self) -> list[str]:
        """The conditions, in the benchmark's order."""
        there = {column.run.condition for column in self.columns}
        known = [name for name in self.card.conditions if name in there]
        return known + sorted(there - set(known))

    @cached_property
    def state(self) -> Ints:
        """The state of each answer: a row for each item, a column for each of `columns`."""
        shape = len(self.items), len(self.columns)
        return np.stack([one.state for one in self.columns], axis=1) if self.columns else np.zeros(shape, np.int64)

    @cached_property
    def facets(self) -> dict[str, list[str]]:
        """The facets that answers can be filtered by, each with its values: the benchmark's and derived ones first."""
        own = [*self.card.facets, *self.items.flags, *self.items.facet_names()]
        found = {}
        for name in dict.fromkeys(own):
            if name != "group":
                _, values = self.items.coded_facet(name)
                distinct = sorted({value for some in values for value in some})
                if 2 <= len(distinct) <= _MOST_VALUES:
                    found[name] = distinct
        return found

    def column(self, system: str, condition: str, repetition: int = 0) -> int:
        """The position of a run's repetition among `columns`. Raises `InputError` for an unknown one."""
        for number, one in enumerate(self.columns):
            if (one.run.system, one.run.condition, one.repetition) == (system, condition, repetition):
                return number
        found = f"{system} / {condition}" + (f", repetition {repetition}" if repetition else "")
        known = list(dict.fromkeys(f"{one.run.system} / {one.run.condition}" for one in self.columns))
        raise InputError("run", found=repr(found), expected=one_of(known, found))

    def item_position(self, item: str) -> int:
        """The position of an item. Raises `InputError` for an unknown id."""
        try:
            number = self.items.names.number_of(item)
        except KeyError:
            number = len(self.items.row_of)
        position = int(self.items.row_of[number]) if number < len(self.items.row_of) else -1
        if position < 0:
            raise InputError("item", found=repr(item), expected=f"an item of {self.card.name}")
        return position

    def facet_mask(self, name: str, value: str) -> Mask:
        """The items with this value of a facet. Raises `InputError` for an unknown facet."""
        if name not in self.items.facet_names():
            raise InputError("facet", found=repr(name), expected=one_of(self.items.facet_names(), name))
        codes, values = self.items.coded_facet(name)
        return np.array([value in some for some in values], dtype=np.bool_)[codes]

    def mask(self, store: Store, wanted: AnswerFilter) -> Mask:
        """The answers that a filter keeps: a row for each item, a column for each of `columns`. Raises `InputError` for an
        unknown facet, result, item or difference."""
        kept = np.ones((len(self.items), len(self.columns)), dtype=np.bool_)
        for number, column in enumerate(self.columns):
            fits = not wanted.systems or column.run.system in wanted.systems
            fits = fits and (not wanted.conditions or column.run.condition in wanted.conditions)
            kept[:, number] = fits
        kept &= _among(self._states(wanted))[self.state]
        for name, value in wanted.facets:
            kept &= self.facet_mask(name, value)[:, None]
        if wanted.item:
            one = np.zeros(len(self.items), dtype=np.bool_)
            one[self.item_position(wanted.item)] = True
            kept &= one[:, None]
        if wanted.differ:
            kept &= self._differing(store, wanted.differ)
        for word in wanted.words:
            kept &= self._with_word(store, word, np.flatnonzero(kept.any(axis=0)).tolist())
        return kept

    @property
    def repeated(self) -> list[tuple[Run, Ints]]:
        """The runs that were asked several times, each with the codes of its states (items × repetitions)."""
        of_run: dict[int, list[RunColumn]] = {}
        for column in self.columns:
            of_run.setdefault(column.run.id, []).append(column)
        several = [own for own in of_run.values() if len(own) > 1]
        return [(own[0].run, np.stack([one.state for one in own], axis=1)) for own in several]

    def _differing(self, store: Store, how: str) -> Mask:
        """The answers to items whose repetitions differ; none of a run that was asked once."""
        if how not in REPETITION_DIFFERENCES:
            raise InputError("differ", found=repr(how), expected=one_of(list(REPETITION_DIFFERENCES), how))
        found = np.zeros((len(self.items), len(self.columns)), dtype=np.bool_)
        for run, states in self.repeated:
            if how == "result":
                differ = results_differ(states)
            else:
                key = run.id, self.stamps[run.id]
                if key not in self._flipped:
                    self._flipped[key] = answers_differ(store, run, self.items, states)
                differ = self._flipped[key]
            found[:, [column.run.id == run.id for column in self.columns]] = differ[:, None]
        return found

    @staticmethod
    def _states(wanted: AnswerFilter) -> set[AnswerState]:
        for name in wanted.results:
            if name not in RESULTS:
                raise InputError("result", found=repr(name), expected=one_of(list(RESULTS), name))
        if wanted.results:
            return {state for name in wanted.results for state in RESULTS[name]}
        never = set() if wanted.with_unasked else {AnswerState.NOT_ASKED}
        return {*STATES} - never - {AnswerState.UNSUPPORTED}

    def select(self, store: Store, wanted: AnswerFilter, sort: str = "item") -> Selected:
        """The answers that a filter keeps, sorted. Raises `InputError` as `mask` does, and for an unknown order."""
        if sort not in SORTS:
            raise InputError("sort", found=repr(sort), expected=one_of(list(SORTS), sort))
        if (wanted, sort) in self._chosen:
            return self._chosen[wanted, sort]
        kept = self.mask(store, wanted)
        every = self._states(AnswerFilter(with_unasked=wanted.with_unasked))
        total = sum(column.count(*every) for column in self.columns)
        found = self._chosen[wanted, sort] = self.selected(kept, total, sort)
        for old in list(self._chosen)[:-_KEPT_FILTERS]:
            self._chosen.pop(old, None)
        return found

    def selected(self, kept: Mask, total: int, sort: str = "item") -> Selected:
        """The answers of a mask, sorted."""
        rows = np.flatnonzero(kept)
        if sort == "system":
            rows = rows[np.argsort(rows % max(1, len(self.columns)), kind="stable")]
        elif sort in {"worst", "best"} and len(self.columns):
            values = np.stack([one.value for one in self.columns], axis=1).ravel()[rows]
            values = np.where(np.isnan(values), np.inf, values if sort == "worst" else -values)
            rows = rows[np.argsort(values, kind="stable")]
        distinct = np.flatnonzero(kept.any(axis=1))
        groups = np.count_nonzero(np.bincount(self.items.group[distinct], minlength=1))
        return Selected(rows, len(distinct), int(groups), total)

    def located(self, row: int) -> tuple[int, int]:
        """The item's position and the column of a row."""
        return divmod(row, max(1, len(self.columns)))

    def row(self, position: int, column: int) -> int:
        """The row of an item's position and a column."""
        return position * max(1, len(self.columns)) + column

    def crossed(self, a: int, b: int) -> Cells:
        """Two columns crossed. Items that a system does not support are in no cell."""
        first, second = self.columns[a], self.columns[b]
        out = first.where([AnswerState.UNSUPPORTED]) | second.where([AnswerState.UNSUPPORTED])
        lacking = (first.where(RESULTS[MISSING]) | second.where(RESULTS[MISSING])) & ~out
        there = ~lacking & ~out
        one, other = first.where(RESULTS["right"]), second.where(RESULTS["right"])
        return Cells(there & one & other, there & one & ~other, there & ~one & other, there & ~one & ~other, lacking)

    # -- words

    def read_texts(self, store: Store) -> None:
        """Reads the questions, options and references of all items, so that words are found in them at once."""
        if self._texts or not len(self.items):
            return
        table, found = schema.items, list[tuple[int, str]]()
        own = table.c.benchmark == self.items.names.benchmark
        low, high = int(self.items.number.min()), int(self.items.number.max())
        for start in range(low, high + 1, _PART):
            query = select(table.c.id, table.c.body).where(table.c.id.between(start, start + _PART - 1), own)
            with store.reading() as connection:
                found += [(number, searchable(body)) for number, body in driver_rows(connection, query)]
        texts = [""] * len(self.items)
        for number, text in found:
            if (position := int(self.items.row_of[number])) >= 0:
                texts[position] = text
        self._texts[:] = texts

    def _with_word(self, store: Store, word: str, columns: Sequence[int]) -> Mask:
        self.read_texts(store)
        plain = word.casefold()
        asked = np.array([plain in text for text in self._texts], dtype=np.bool_)
        kept = np.repeat(asked[:, None], len(self.columns), axis=1)
        if asked.all():
            return kept
        with ThreadPoolExecutor(_SEARCHES) as pool:  # the database searches outside of Python's lock
            found = pool.map(lambda number: self._remembered(store, self.columns[number], word), columns)
            for number, replied in zip(columns, found, strict=True):
                kept[:, number] |= replied
        return kept

    def _remembered(self, store: Store, column: RunColumn, word: str) -> Mask:
        """The same as `_replied`, searched once for each state of a run."""
        key = column.run.id, column.repetition, self.stamps[column.run.id], word
        found = self._words.get(key)
        if found is None:
            found = self._words[key] = self._replied(store, column, word)
            for old in list(self._words)[:-_KEPT_WORDS]:
                self._words.pop(old, None)
        return found

    def _replied(self, store: Store, column: RunColumn, word: str) -> Mask:
        """The items whose reply contains a word, letters of both cases alike."""
        table = schema.answers
        pattern = "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        same = table.c.text.like if store.dialect == "sqlite" else table.c.text.ilike  # SQLite's LIKE looks at no case
        with store.reading() as connection:
            own = schema.repetition_of(table, column.run.id, column.repetition)
            numbers = whole_numbers(connection, table.c.item, own & same(pattern, escape="\\"))
        found = np.zeros(len(self.items), dtype=np.bool_)
        positions = self.items.row_of[numbers]
        found[positions[positions >= 0]] = True
        return found


_MOST_VALUES = 200


def searchable(body: str) -> str:
    """The words of an item that are searched: its question, options and reference.

    >>> searchable('{"question": "Which?", "options": ["The Liver"], "reference": {"answer": "A"}}')
    'which?\\nthe liver\\na'
    """
    item = json.loads(body)
    reference = item.get("reference") or {}
    parts = [item.get("question", ""), *item.get("options", ()), reference.get("answer", "")]
    parts += [*reference.get("accepted", ()), reference.get("rationale", "")]
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in parts if one).casefold()


def load_index(
    store: Store, benchmark: str, before: AnswerIndex | None = None, only: Collection[int] | None = None
) -> AnswerIndex:
    """The index of a benchmark's answers. With an index from `before`, only runs that changed since are read; the same
    index is returned where nothing has changed. Of runs that are not among `only` (by number; None: all) and were there
    before, nothing is asked: to look whether a run has changed, the database counts its answers and scores. Raises
    `InputError` for an unknown benchmark."""
    card, fingerprint = store.card(benchmark), store.fingerprint(benchmark)
    runs = store.runs(benchmark)
    if before is None or before.fingerprint != fingerprint:
        with ThreadPoolExecutor(1) as pool:  # before any answer is read: what changes later is read again
            counting = pool.submit(run_stamps, store, runs)
            items = load_items(store, card, all_items=True)
            stamps = counting.result()
        return AnswerIndex(card, items, fingerprint, *_read(store, card, runs, items, [], {}), stamps)
    kept = {} if only is None else {run: stamp for run, stamp in before.stamps.items() if run not in only}
    stamps = kept | run_stamps(store, [run for run in runs if run.id not in kept])
    stamps = {run.id: stamps[run.id] for run in runs}
    if before.card == card and before.stamps == stamps and _same_runs(before, runs):
        return before
    known = _by_run(before, runs, stamps) if before.card.metrics == card.metrics else {}
    metrics = list(before.metrics) if known else []
    read = _read(store, card, runs, before.items, metrics, known)
    index = AnswerIndex(card, before.items, fingerprint, *read, stamps)
    index._texts[:] = before._texts  # noqa: SLF001 - the same items
    index._words.update(before._words)  # noqa: SLF001 - by the stamps of runs
    index._flipped.update((key, one) for key, one in before._flipped.items() if stamps.get(key[0]) == key[1])  # noqa: SLF001
    return index


def _read(
    store: Store,
    card: BenchmarkCard,
    runs: Sequence[Run],
    items: ItemTable,
    metrics: list[tuple[Metric, str]],
    known: Mapping[int, list[RunColumn]],
) -> tuple[tuple[RunColumn, ...], tuple[tuple[Metric, str], ...]]:
    """The columns of these runs, and the metrics that decide: those of `known` runs as they are, others from the store.
    New metrics are added to `metrics`."""
    fresh = [run for run in runs if run.id not in known]
    with ThreadPoolExecutor(_SEARCHES) as pool:
        loads = pool.map(lambda run: load_repetitions(store, run, items), fresh)
        loaded = dict(zip([run.id for run in fresh], loads, strict=True))
    columns: list[RunColumn] = []
    for run in runs:
        own = known.get(run.id) or _columns(card, run, loaded[run.id], metrics)
        columns += [replace(one, run=run) for one in own]
    return tuple(columns), tuple(metrics)


def _same_runs(before: AnswerIndex, runs: Sequence[Run]) -> bool:
    return list({one.run.id: one.run for one in before.columns}.values()) == list(runs)


def _by_run(before: AnswerIndex, runs: Sequence[Run], stamps: Mapping[int, RunStamp]) -> dict[int, list[RunColumn]]:
    """The columns of runs without a change."""
    settings = {run.id: run.settings for run in runs}
    found: dict[int, list[RunColumn]] = {}
    for column in before.columns:
        run = column.run
        if before.stamps.get(run.id) == stamps.get(run.id) and settings.get(run.id) == run.settings:
            found.setdefault(run.id, []).append(column)
    return found


def run_stamps(store: Store, runs: Sequence[Run]) -> dict[int, RunStamp]:
    """The stamp of each run."""
    answers, scores = schema.answers, schema.scores
    numbers = [run.id for run in runs]
    if not numbers:
        return {}
    failed = func.count().filter(answers.c.status == Status.FAILED.value)
    asked = select(answers.c.run, func.count(), failed).where(answers.c.run.in_(numbers)).group_by(answers.c.run)
    given = select(scores.c.run, func.count(), func.sum(scores.c.value)).where(scores.c.run.in_(numbers))
    with store.reading() as connection:
        first = {run: (count, lost) for run, count, lost in driver_rows(connection, asked)}
        second = {run: (count, total) for run, count, total in driver_rows(connection, given.group_by(scores.c.run))}
    return {run: RunStamp(*first.get(run, (0, 0)), *second.get(run, (0, 0.0))) for run in numbers}


def _columns(
    card: BenchmarkCard, run: Run, loaded: Sequence[StoredRepetition], metrics: list[tuple[Metric, str]]
) -> list[RunColumn]:
    """The columns of one run; metrics that are not among `metrics` are added."""
    found = []
    for repetition, one in enumerate(loaded):
        value = np.full(len(one.outcomes.status), np.nan)
        decides = np.full(len(one.outcomes.status), -1, dtype=np.int64)
        for series in sorted(one.series, key=lambda series: _precedence(card, series)):
            if series.metric in JUDGE_FLAGS or series.metric == UNRESOLVED.name:
                continue
            key = card.metric(series.metric), series.scorer
            if key not in metrics:
                metrics.append(key)
            new = series.scored & np.isnan(value)
            value[new], decides[new] = series.values[new], metrics.index(key)
        keys = tuple(dict.fromkeys((series.metric, series.scorer) for series in one.series))
        found.append(RunColumn(run, repetition, _state(one.outcomes, value, decides, metrics), value, decides, keys))
    return found


def _precedence(card: BenchmarkCard, series: Series) -> tuple[bool, int, bool, str]:
    """The headline decides first, then metrics in the benchmark's order, of one metric code before judges."""
    order = [metric.name for metric in card.metrics]
    position = order.index(series.metric) if series.metric in order else len(order)
    return series.metric != card.headline, position, series.scorer != CODE, series.scorer


def _state(
    outcomes: Outcomes, value: NDArray[np.float64], decides: Ints, metrics: Sequence[tuple[Metric, str]]
) -> Ints:
    """The state of each item's answer."""
    ends = [(one.high, one.low) if one.higher_is_better else (one.low, one.high) for one, _ in metrics]
    best, worst = (np.array([pair[side] for pair in ends] + [np.nan])[decides] for side in (0, 1))
    scored = ~np.isnan(value)
    answered = outcomes.where(Status.ANSWERED)
    unread = answered & ~outcomes.readable
    rules = (
        (outcomes.unsupported, AnswerState.UNSUPPORTED),
        (~outcomes.asked, AnswerState.NOT_ASKED),
        (outcomes.where(Status.FAILED), AnswerState.FAILED),
        (outcomes.where(Status.REFUSED), AnswerState.REFUSED),
        (outcomes.where(Status.TIMED_OUT), AnswerState.TIMED_OUT),
        (outcomes.where(Status.ERROR), AnswerState.ERROR),
        (unread & ~outcomes.submitted, AnswerState.NOT_SUBMITTED),
        (scored & (value == best), AnswerState.RIGHT),
        (outcomes.where(Status.ABSTAINED), AnswerState.ABSTAINED),
        (outcomes.cut_off & unread & (~scored | (value == worst)), AnswerState.CUT_OFF),
        (unread & (~scored | (value == worst)), AnswerState.UNREADABLE),
        (scored & (value == worst), AnswerState.WRONG),
        (scored, AnswerState.PARTIAL),
    )
    return np.select([mask for mask, _ in rules], [CODE_OF[state] for _, state in rules], CODE_OF[AnswerState.UNSCORED])

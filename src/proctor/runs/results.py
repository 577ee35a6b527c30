"""Results: every metric of every run, with its interval, its denominator and what is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, InputError, Metric, Status
from proctor.judges import UNRESOLVED
from proctor.runs.cards import BenchmarkCard
from proctor.runs.guessable import GUESSABLE, audit_stored, flag_guessable
from proctor.runs.store import Run, Store
from proctor.runs.table import (
    CODE,
    ItemTable,
    Outcomes,
    Series,
    load_items,
    load_labels,
    load_outcomes,
    load_series,
)
from proctor.stats import Estimate, slice_means

__all__ = ["FAILED_POLICIES", "Options", "Result", "Results", "results"]

FailedPolicy = Literal["wrong", "exclude", "refuse"]

FAILED_POLICIES: dict[FailedPolicy, str] = {
    "exclude": "failed answers are left out of the numbers and counted beside them",
    "wrong": "failed answers count as wrong",
    "refuse": "results with failed answers are refused",
}

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Options:
    """How results are computed. `by` splits by facets, all combinations of their values."""

    by: tuple[str, ...] = ()
    failed: FailedPolicy = "exclude"
    all_items: bool = False
    draws: int = 2000
    level: float = 0.95
    seed: int = 0
    two_level: bool = False
    systems: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """One number. `n` is its denominator (items, or the metric's units: see `Metric.per`) and `groups` how many
    clusters that spans; `answered` and `failed` count answers to the items that the metric marks.

    Of the answered ones, each counted once: `timed_out`, `refused`, `unreadable` and `not_submitted` (a file of
    answers lacks it) are the system's own failures. Of the answered ones, no score have those that are
    `unresolved` (a panel of judges came to no majority) or `unmarked` (a judge that gave none, or was not
    asked). `missing` items were not asked. `levels` counts the scores by their label, where the metric has named
    levels."""

    system: str
    condition: str
    metric: str
    scorer: str
    facets: dict[str, str]
    n: int
    answered: int
    failed: int
    timed_out: int
    refused: int
    unreadable: int
    not_submitted: int
    unresolved: int
    unmarked: int
    missing: int
    groups: int
    value: float | None
    ci_low: float | None
    ci_high: float | None
    levels: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The row as programs read it."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Results:
    """Rows with what is needed to read them."""

    card: BenchmarkCard
    options: Options
    rows: list[Result] = field(default_factory=list)


def results(store: Store, benchmark: str, options: Options | None = None) -> Results:
    """All numbers of a benchmark in a store.

    The facet `guessable` is derived by an item audit when it is asked for first. Raises `InputError` for
    an unknown facet, system or condition, and, under the policy `refuse`, when
    an answer failed.
    """
    options = options or Options()
    card = store.card(benchmark)
    items = load_items(store, card, all_items=options.all_items)
    if GUESSABLE in options.by and GUESSABLE not in items.flags:
        flag_guessable(store, benchmark, audit_stored(store, benchmark, all_items=options.all_items))
        items = load_items(store, card, all_items=options.all_items)
    facets = _Slices.of(items, options.by, store.shown)
    rows: list[Result] = []
    declared = {metric.name: place for place, metric in enumerate(card.metrics)}
    for run in chosen_runs(store, benchmark, options.systems, options.conditions):
        outcomes = load_outcomes(store, run, items)
        parts = _parts(load_series(store, run, items), card, items, outcomes)
        for part in sorted(parts, key=lambda one: declared.get(one.series.metric, len(declared))):
            metric, series = part.metric, part.series
            labels = load_labels(store, run, items, series.metric, series.scorer) if metric.levels else {}
            levels = _count_levels(labels, len(items.ids), facets)
            rows.extend(_rows(run, part, items, outcomes, facets, levels, options))
    if options.failed == "refuse":
        _refuse_failed(rows, store.shown)
    return Results(card, options, rows)


def chosen_runs(
    store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> list[Run]:
    """The runs of a benchmark, of these systems and conditions where any are named."""
    runs = store.runs(benchmark)
    for what, names, known in (
        ("system", systems, {run.system for run in runs}),
        ("condition", conditions, {run.condition for run in runs}),
    ):
        for name in names:
            if name not in known:
                raise InputError(
                    store.shown,
                    found=f"no run with the {what} {name!r}",
                    expected=f"one of {', '.join(sorted(known))}",
                )
    return [
        run
        for run in runs
        if (not systems or run.system in systems) and (not conditions or run.condition in conditions)
    ]


@dataclass(frozen=True)
class _Slices:
    """Facet combinations: which (item, slice) pairs there are; an item may be in several slices."""

    facets: list[dict[str, str]]
    items: NDArray[np.int64]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, items: ItemTable, by: Sequence[str], shown: str) -> _Slices:
        known = items.facet_names()
        for name in by:
            if name not in known:
                raise InputError(shown, found=f"no facet {name!r}", expected=f"one of {', '.join(known)}")
        columns = [items.coded_facet(name) for name in by]
        alike = np.zeros(len(items.ids), dtype=np.int64)
        for codes, values in columns:  # coded anew at each step, so that the numbers stay small
            alike = np.unique(alike * len(values) + codes, return_inverse=True)[1]
        _, first, alike = np.unique(alike, return_index=True, return_inverse=True)
        cells = [list(product(*(values[codes[item]] for codes, values in columns))) for item in first]
        names = sorted({cell for some in cells for cell in some}, key=_cell_order)
        place = {cell: code for code, cell in enumerate(names)}
        members = np.split(np.argsort(alike, kind="stable"), np.cumsum(np.bincount(alike))[:-1])
        pairs = [(members[number], place[cell]) for number, some in enumerate(cells) for cell in some]
        return cls(
            facets=[dict(zip(by, cell, strict=True)) for cell in names],
            items=np.concatenate([np.zeros(0, dtype=np.int64), *(where for where, _ in pairs)]),
            codes=np.repeat(
                np.array([code for _, code in pairs], dtype=np.int64), [len(where) for where, _ in pairs]
            ),
        )

    def count(self, mask: Mask) -> NDArray[np.int64]:
        """How many items of each slice are in a mask over items."""
        return np.bincount(self.codes[mask[self.items]], minlength=len(self.facets))


def facet_cells(items: ItemTable, by: Sequence[str], shown: str) -> list[tuple[dict[str, str], Mask]]:
    """Each combination of the facets' values, in their natural order, with the items that have it."""
    slices = _Slices.of(items, by, shown)
    cells = []
    for code, facets in enumerate(slices.facets):
        mask = np.zeros(len(items.ids), dtype=np.bool_)
        mask[slices.items[slices.codes == code]] = True
        cells.append((facets, mask))
    return cells


def natural(text: str) -> list[tuple[int, float, str]]:
    """A sort key under which "5-10 s" comes before "10-20 s".

    >>> sorted([">20 s", "10-20 s", "5-10 s"], key=natural)
    ['5-10 s', '10-20 s', '>20 s']
    """
    parts = re.findall(r"\d+(?:\.\d+)?|[^\W\d_]+", text)
    return [(0, float(part), "") if part[0].isdigit() else (1, 0.0, part.casefold()) for part in parts]


def _cell_order(cell: tuple[str, ...]) -> tuple[list[list[tuple[int, float, str]]], tuple[str, ...]]:
    """By each value's natural order; the text itself decides where that is the same."""
    return [natural(value) for value in cell], cell


@dataclass(frozen=True)
class _Part:
    """One metric by one scorer: its scores, the items that it marks, and those that it left unresolved."""

    metric: Metric
    series: Series
    markable: Mask
    unresolved: Mask


def _parts(series: list[Series], card: BenchmarkCard, items: ItemTable, outcomes: Outcomes) -> list[_Part]:
    """The scores of a run, and what nobody has marked: answers of a format (all failed, or waiting for a judge)
    that no score of the run speaks of are shown under the first metric that marks it, or nobody would miss them."""
    nothing = np.full(len(items.ids), np.nan)
    open_ones = {one.scorer: one.values == 1 for one in series if one.metric == UNRESOLVED.name}
    none_open = np.zeros(len(items.ids), dtype=np.bool_)
    found = []
    for one in series:
        metric = card.metric(one.metric)
        unresolved = open_ones.get(one.scorer, none_open) if metric.name == ACCURACY.name else none_open
        found.append(_Part(metric, one, items.markable(metric, one.scorer), unresolved))
    for metric in card.metrics:
        for scorer in (CODE, "") if metric.name == ACCURACY.name else ("",):
            spoken_for = np.logical_or.reduce([none_open, *(part.markable for part in found)])
            waiting = items.markable(metric, scorer) & ~spoken_for
            if np.any(waiting & outcomes.asked):
                found.append(_Part(metric, Series(metric.name, scorer, nothing), waiting, none_open))
    return found


def _rows(
    run: Run,
    part: _Part,
    items: ItemTable,
    outcomes: Outcomes,
    slices: _Slices,
    levels: list[dict[str, int]],
    options: Options,
) -> list[Result]:
    series, markable = part.series, part.markable
    failed = outcomes.where(Status.FAILED) & markable
    values = series.values.copy()
    if options.failed == "wrong":
        values[failed] = part.metric.worst
    used = ~np.isnan(values) & markable
    estimates = _estimates(values, used, items, slices, part.metric, options)
    answered = outcomes.answered & markable
    unread = outcomes.where(Status.ANSWERED) & ~outcomes.readable & markable
    unresolved = answered & ~series.marked & part.unresolved
    counts = {
        "answered": slices.count(answered),
        "failed": slices.count(failed),
        "timed_out": slices.count(outcomes.where(Status.TIMED_OUT) & markable),
        "refused": slices.count(outcomes.where(Status.REFUSED) & markable),
        "unreadable": slices.count(unread & outcomes.submitted),
        "not_submitted": slices.count(unread & ~outcomes.submitted),
        "unresolved": slices.count(unresolved),
        "unmarked": slices.count(answered & ~series.marked & ~unresolved),
        "missing": slices.count(markable & ~outcomes.asked),
    }
    return [
        Result(
            system=run.system,
            condition=run.condition,
            metric=series.metric,
            scorer=series.scorer,
            facets=facets,
            n=estimate.n,
            groups=estimate.groups,
            value=estimate.value,
            ci_low=estimate.ci_low,
            ci_high=estimate.ci_high,
            levels=levels[code],
            **{name: int(count[code]) for name, count in counts.items()},
        )
        for code, (facets, estimate) in enumerate(zip(slices.facets, estimates, strict=True))
        if counts["answered"][code] + counts["failed"][code]
    ]


def _count_levels(labels: dict[int, str], n_items: int, slices: _Slices) -> list[dict[str, int]]:
    counts: list[dict[str, int]] = [{} for _ in slices.facets]
    names = list(dict.fromkeys(labels.values()))
    numbers = {name: number for number, name in enumerate(names)}
    labelled = np.full(n_items, -1, dtype=np.int64)
    labelled[list(labels)] = [numbers[label] for label in labels.values()]
    for name, number in numbers.items():
        for code in np.flatnonzero(found := slices.count(labelled == number)):
            counts[code][name] = int(found[code])
    return counts


def _estimates(
    values: NDArray[np.float64],
    used: Mask,
    items: ItemTable,
    slices: _Slices,
    metric: Metric,
    options: Options,
) -> list[Estimate]:
    pairs = used[slices.items]
    where = slices.items[pairs]
    times = items.units(metric, where)
    where = np.repeat(where, times)
    return slice_means(
        values[where],
        items.group[where],
        np.repeat(slices.codes[pairs], times),
        len(slices.facets),
        draws=options.draws,
        level=options.level,
        seed=options.seed,
        two_level=options.two_level,
        bounds=(metric.low, metric.high),
    )


def _refuse_failed(rows: Sequence[Result], shown: str) -> None:
    for row in rows:
        if row.failed:
            raise InputError(
                shown,
                f"{row.system} under {row.condition}",
                found=f"{row.failed} failed answers",
                expected="none (--failed refuse): run the same command again to ask them again",
            )

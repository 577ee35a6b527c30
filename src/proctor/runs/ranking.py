"""The ranking of a store's systems over buckets of questions: all of them, and the relevant ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, InputError
from proctor.runs.cards import BenchmarkCard, Ruling
from proctor.runs.results import chosen_runs, natural
from proctor.runs.store import Run, Store
from proctor.runs.table import CODE, ItemTable, Series, load_accuracy, load_items, load_outcomes
from proctor.stats import RankingOptions, RankingPlan, Standing, Standings, rank_buckets

__all__ = ["BASELINES", "Board", "Entry", "Marks", "RankedRun", "rank_runs", "ranked_entries"]

BASELINES = ("random", "majority")
"""Where no baseline is named, these, as far as the store has them under `text-only`."""

_BLIND = "text-only"


@dataclass(frozen=True)
class RankedRun:
    """One system on a board. `below` says that it does not beat every baseline by its mean over the buckets
    (None for a baseline, and without baselines); `missing` questions were not asked or have no answer and
    count as wrong; `unmarked` ones (failed, unresolved, or for a judge that has not marked this system) are why the
    board leaves questions out for all."""

    standing: Standing
    baseline: bool
    below: bool | None
    missing: int
    unmarked: int = 0


@dataclass(frozen=True)
class Marks:
    """What a board was made from: `right` (1 or 0) per system, each item's group, and the number of its bucket."""

    right: dict[str, NDArray[np.float64]]
    group: NDArray[np.int64]
    bucket: NDArray[np.int64]


@dataclass(frozen=True)
class Board:
    """One leaderboard, best first. `left_out` questions have no mark from at least one system (failed, or for
    a judge to give) and are left out for all; `alpha` is the level of its tests; `judge` is the scorer behind the marks that code can't give,
    the same for all systems, or "code"; `disqualified` systems have answers under the condition and are not ranked."""

    name: str
    title: str
    standings: Standings
    runs: list[RankedRun]
    items: int
    left_out: int
    alpha: float
    marks: Marks = field(repr=False)
    judge: str = CODE
    disqualified: tuple[Ruling, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One system's marks by `scorer`: 1, 0, or NaN where an item has none; `missing` items count as wrong."""

    run: Run
    right: NDArray[np.float64]
    missing: NDArray[np.bool_]
    baseline: bool
    scorer: str = CODE


def rank_runs(
    store: Store,
    benchmark: str,
    *,
    condition: str = "video",
    systems: Sequence[str] = (),
    baselines: Sequence[str] = (),
    by: Sequence[str] = (),
    all_items: bool = False,
    **options: Unpack[RankingOptions],
) -> list[Board]:
    """The boards of a benchmark: "technical" over all questions and, where the benchmark says which are
    relevant, "clinical" over these.

    Buckets are all combinations of the values of the tags `by` (the benchmark's own, if none are named).
    Systems are the runs under `condition`; a baseline that has none there is taken from `text-only`. Raises
    `InputError` for an unknown system, baseline or tag, and where nothing can be ranked.
    """
    card = store.card(benchmark)
    items = load_items(store, card, all_items=all_items)
    entries = ranked_entries(store, benchmark, items, condition, systems, baselines)
    marked = np.logical_and.reduce([~np.isnan(entry.right) for entry in entries])
    names, codes = _buckets(items, card, by, store.shown)
    alpha = RankingPlan(**options).alpha
    boards = [("technical", "All questions", np.ones(len(items.ids), dtype=np.bool_))]
    if card.relevance:
        relevant = [values == ("yes",) for values in items.facet(card.relevance)]
        boards.append(("clinical", f"Questions of {card.relevance} relevance", np.array(relevant)))
    judge = next((entry.scorer for entry in entries if entry.scorer != CODE), CODE)
    found = []
    for name, title, asked in boards:
        inside = np.flatnonzero(asked & marked & (codes >= 0))
        right = {entry.run.system: entry.right[inside] for entry in entries}
        marks = Marks(right, items.group[inside], codes[inside])
        standings = rank_buckets(
            np.stack(list(right.values())), list(right), marks.group, marks.bucket, names, **options
        )
        left_out = int((asked & (codes >= 0)).sum()) - len(inside)
        lacking = {
            entry.run.system: (
                int(entry.missing[inside].sum()),
                int(np.isnan(entry.right[asked & (codes >= 0)]).sum()),
            )
            for entry in entries
        }
        own = {entry.run.system for entry in entries if entry.baseline}
        runs = _lined(standings, own, lacking)
        out = _disqualified(store, card, condition, systems)
        found.append(Board(name, title, standings, runs, len(inside), left_out, alpha, marks, judge, out))
    return found


def ranked_entries(
    store: Store,
    benchmark: str,
    items: ItemTable,
    condition: str,
    systems: Sequence[str],
    baselines: Sequence[str],
) -> list[Entry]:
    """The chosen systems and the baselines, by name (see `rank_runs`)."""
    runs = {(run.system, run.condition): run for run in chosen_runs(store, benchmark)}
    known = sorted({system for system, _ in runs})
    for name in (*systems, *baselines):
        if name not in known:
            raise InputError(
                store.shown, found=f"no run of {name!r}", expected=f"one of {', '.join(known) or 'none'}"
            )
    out = store.card(benchmark).disqualified
    wanted = baselines or [name for name in BASELINES if (name, _BLIND) in runs]
    chosen = {
        system: run
        for (system, under), run in runs.items()
        if under == condition and (not systems or system in systems) and system not in out
    }
    for name in wanted:
        run = runs.get((name, condition)) or runs.get((name, _BLIND))
        if run is None:
            expected = f"one under {condition} or {_BLIND}"
            raise InputError(store.shown, found=f"no such run of the baseline {name}", expected=expected)
        chosen[name] = run
    if not set(chosen) - set(wanted):
        raise InputError(store.shown, found=f"no run under {condition}", expected="a system to rank")
    accuracy = load_accuracy(store, list(chosen.values()), items)
    return [
        _entry(store, run, items, accuracy[run.id], system in wanted)
        for system, run in sorted(chosen.items())
    ]


def _disqualified(
    store: Store, card: BenchmarkCard, condition: str, systems: Sequence[str]
) -> tuple[Ruling, ...]:
    """The decisions on systems that the board would have, by name."""
    asked = {run.system for run in chosen_runs(store, card.name) if run.condition == condition}
    named = asked & set(systems) if systems else asked
    return tuple(card.disqualified[name] for name in sorted(named & card.disqualified.keys()))


def _entry(store: Store, run: Run, items: ItemTable, accuracy: Series, baseline: bool) -> Entry:
    right = accuracy.values.copy()
    outcomes = load_outcomes(store, run, items)
    right[~outcomes.asked] = ACCURACY.worst
    return Entry(run, right, ~(outcomes.asked & outcomes.submitted), baseline, accuracy.scorer)


def _buckets(
    items: ItemTable, card: BenchmarkCard, by: Sequence[str], shown: str
) -> tuple[list[str], NDArray[np.int64]]:
    """The names of all buckets, and which one each item is in; −1 for an item that lacks one of the tags."""
    tags = list(by) or list(card.buckets) or list(card.facets[:1])
    for tag in tags:
        if tag not in items.facet_names():
            known = ", ".join(items.facet_names())
            raise InputError(shown, found=f"no facet {tag!r}", expected=f"one of {known}")
    columns = [items.facet(tag) for tag in tags]
    values = [sorted({name for names in column for name in names}, key=natural) for column in columns]
    cells = {cell: number for number, cell in enumerate(product(*values))}
    codes = [
        cells.get(tuple(names[0] if len(names) == 1 else "" for names in row), -1)
        for row in zip(*columns, strict=True)
    ]
    return [" / ".join(cell) for cell in cells], np.array(codes, dtype=np.int64)


def _lined(standings: Standings, baselines: set[str], lacking: dict[str, tuple[int, int]]) -> list[RankedRun]:
    """The systems with what they lack: answers, and marks."""
    means = [one.mean for one in standings.systems if one.name in baselines and one.mean is not None]
    bar = max(means) if means else None
    found = []
    for one in standings.systems:
        own = one.name in baselines
        below = None if own or bar is None or one.mean is None else one.mean <= bar
        found.append(RankedRun(one, own, below, *lacking[one.name]))
    return found

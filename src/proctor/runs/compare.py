"""Two runs side by side: the same items under two conditions, or by two systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, InputError
from proctor.runs.cards import BenchmarkCard
from proctor.runs.results import Options, chosen_runs, facet_cells
from proctor.runs.store import Run, Store
from proctor.runs.table import ItemTable, load_items, load_labels, load_series
from proctor.stats import Difference, cross_table, holm, paired_difference

__all__ = ["Comparison", "Comparisons", "Side", "compare", "compare_runs", "condition_pairs"]

BLIND = "text-only"
_PAIRS = "two conditions of one system, or two systems and one --condition, or runs named SYSTEM/CONDITION (--system, --against)"
_RIGHT_OR_WRONG = ("correct", "incorrect")


@dataclass(frozen=True)
class Side:
    """One of the two runs compared."""

    system: str
    condition: str

    def __str__(self) -> str:
        return f"{self.system} / {self.condition}"


@dataclass(frozen=True)
class Comparison:
    """How two runs differ on the items that both have a score for.

    `difference` is first minus second; `table` counts items by outcome (rows: first, columns: second,
    both in the order of `levels`); `only_first` and `only_second` items have a score on one side only
    and are left out; `p_holm` is adjusted over all comparisons made together. `facets` say of which items alone, where
    they are split.
    """

    metric: str
    scorer: str
    first: Side
    second: Side
    difference: Difference
    levels: tuple[str, ...]
    table: list[list[int]] | None
    other_levels: int
    only_first: int
    only_second: int
    p_holm: float | None = None
    facets: dict[str, str] = field(default_factory=dict)

    @property
    def recovered(self) -> tuple[int, int] | None:
        """Of the items that were wrong in the one of the two that saw less (`text-only`), how many were right in the
        other, and how many there are; None without such a pair of conditions, or levels that say right and wrong."""
        if self.table is None or self.levels != _RIGHT_OR_WRONG:
            return None
        if self.first.condition == BLIND != self.second.condition:
            row = self.table[1]
        elif self.second.condition == BLIND != self.first.condition:
            row = [line[1] for line in self.table]
        else:
            return None
        return row[0], sum(row)

    def to_json(self) -> dict[str, Any]:
        """The comparison as programs read it."""
        difference, recovered = self.difference, self.recovered
        return {
            "metric": self.metric,
            "scorer": self.scorer,
            "first": {"system": self.first.system, "condition": self.first.condition},
            "second": {"system": self.second.system, "condition": self.second.condition},
            "facets": self.facets,
            "n": difference.n,
            "groups": difference.groups,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "difference": difference.value,
            "ci_low": difference.ci_low,
            "ci_high": difference.ci_high,
            "p": difference.p,
            "p_holm": self.p_holm,
            "levels": list(self.levels),
            "table": self.table,
            "other_levels": self.other_levels,
            "recovered": None if recovered is None else recovered[0],
            "wrong_without_media": None if recovered is None else recovered[1],
        }


@dataclass(frozen=True)
class _Scored:
    scorer: str
    values: NDArray[np.float64]
    labels: dict[int, str]


@dataclass(frozen=True)
class Comparisons:
    """Comparisons with the card that tells how their metrics are shown."""

    card: BenchmarkCard
    comparisons: list[Comparison]


def compare(
    store: Store,
    benchmark: str,
    options: Options | None = None,
    *,
    against: tuple[str, str] | None = None,
    metrics: Sequence[str] = (),
) -> Comparisons:
    """Conditions of each system against each other; or, with several systems and one condition, systems;
    or every chosen run against one (`against`: its system and condition).

    Where several systems are named and no condition, and they share one alone, systems are compared under that one:
    a guess that was also made without the media, as the floor of the results, is no other condition to look at.
    Where systems are named as SYSTEM/CONDITION, these very runs are compared.

    `options` choose systems and conditions (all, where none are named), items, the facets to split by, draws and
    seed. Raises
    `InputError` where that leaves nothing to compare.
    """
    options = options or Options()
    card = store.card(benchmark)
    named = _named_runs(store, benchmark, options.systems)
    runs = named or chosen_runs(store, benchmark, options.systems, options.conditions)
    if named and against is None:
        pairs = list(combinations(named, 2))
    elif against is not None:
        other = _one_run(store, benchmark, against)
        pairs = [(run, other) for run in runs if run != other]
    elif len(options.conditions) == 1 or len({run.condition for run in runs}) == 1:
        pairs = system_pairs(runs, options.systems)
    elif (shared := _only_shared(runs, options)) is not None:
        pairs = system_pairs([run for run in runs if run.condition == shared], options.systems)
    else:
        pairs = condition_pairs(runs, options.conditions or card.conditions)
    if not pairs:
        raise InputError(store.shown, found=_unpaired(runs, options), expected=_PAIRS)
    return Comparisons(card, compare_runs(store, benchmark, pairs, options, metrics=metrics))


def _unpaired(runs: Sequence[Run], options: Options) -> str:
    """Why these runs make no pair."""
    shown = ", ".join(f"{run.system} / {run.condition}" for run in runs)
    if len(runs) < 2:
        return f"one run alone ({shown})" if shown else "no run"
    if options.conditions:
        return f"no two of these conditions of one system ({shown})"
    return f"no system under two conditions ({shown})"


def _named_runs(store: Store, benchmark: str, names: Sequence[str]) -> list[Run]:
    """The runs that are named as SYSTEM/CONDITION, where all names are such; else none."""
    runs = store.runs(benchmark)
    systems = {run.system for run in runs}
    of_name = {f"{run.system}/{run.condition}": run for run in runs}
    if not names or any(name in systems or name not in of_name for name in names):
        return []
    return [of_name[name] for name in names]


def _only_shared(runs: Sequence[Run], options: Options) -> str | None:
    """The one condition that all of several named systems have, where no condition is named."""
    named = set(options.systems)
    if options.conditions or len(named) < 2:
        return None
    shared = set.intersection(*({run.condition for run in runs if run.system == name} for name in named))
    return shared.pop() if len(shared) == 1 else None


def _one_run(store: Store, benchmark: str, names: tuple[str, str]) -> Run:
    found = chosen_runs(store, benchmark, names[:1], names[1:])
    if not found:
        raise InputError(
            store.shown, found=f"no run of {names[0]} under {names[1]}", expected="a run of both"
        )
    return found[0]


def system_pairs(runs: Sequence[Run], order: Sequence[str]) -> list[tuple[Run, Run]]:
    """All pairs of systems, in the given order."""
    rank = {system: place for place, system in enumerate(order)}
    ordered = sorted(runs, key=lambda run: (rank.get(run.system, len(rank)), run.system))
    return list(combinations(ordered, 2))


def compare_runs(
    store: Store,
    benchmark: str,
    pairs: Sequence[tuple[Run, Run]],
    options: Options | None = None,
    *,
    metrics: Sequence[str] = (),
) -> list[Comparison]:
    """Compares pairs of runs on every metric (and scorer) that both have; p adjusted by Holm per metric. Options
    say of which items, split by which facets, with which draws and seed.

    Raises `InputError` where a pair has no metric in common, and for a facet that is not known.
    """
    options = options or Options()
    card = store.card(benchmark)
    items = load_items(store, card, all_items=options.all_items)
    parts: list[tuple[dict[str, str], ItemTable]] = [({}, items)]
    if options.by:
        parts = [(facets, items.only(kept)) for facets, kept in facet_cells(items, options.by, store.shown)]
    found = [
        replace(one, facets=facets)
        for facets, part in parts
        for one in _on_items(store, card, part, pairs, options, metrics)
        if one.difference.n or not facets
    ]
    return _adjusted(found)


def _on_items(
    store: Store,
    card: BenchmarkCard,
    items: ItemTable,
    pairs: Sequence[tuple[Run, Run]],
    options: Options,
    metrics: Sequence[str],
) -> list[Comparison]:
    scored = {run.id: _scored(store, run, items, metrics) for pair in pairs for run in pair}
    found: list[Comparison] = []
    for first, second in pairs:
        common = sorted(scored[first.id].keys() & scored[second.id].keys())
        if not common and not options.by:
            raise InputError(
                store.shown,
                f"{first.system} / {first.condition} against {second.system} / {second.condition}",
                found="no metric that both are marked by",
                expected="runs that the same scorer has marked (proctor score)",
            )
        for key in common:
            pair = (scored[first.id][key], scored[second.id][key])
            found.append(
                _compare(card, items, key, (first, second), pair, draws=options.draws, seed=options.seed)
            )
    return found


def condition_pairs(runs: Sequence[Run], order: Sequence[str]) -> list[tuple[Run, Run]]:
    """All pairs of conditions of each system, conditions in the given order."""
    rank = {condition: place for place, condition in enumerate(order)}
    by_system: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (rank.get(run.condition, len(rank)), run.condition)):
        by_system.setdefault(run.system, []).append(run)
    return [pair for system in sorted(by_system) for pair in combinations(by_system[system], 2)]


def _scored(
    store: Store, run: Run, items: ItemTable, metrics: Sequence[str]
) -> dict[tuple[str, str], _Scored]:
    return {
        (series.metric, series.scorer): _Scored(
            series.scorer, series.values, load_labels(store, run, items, series.metric, series.scorer)
        )
        for series in load_series(store, run, items)
        if not metrics or series.metric in metrics
    }


def _compare(
    card: BenchmarkCard,
    items: ItemTable,
    key: tuple[str, str],
    runs: tuple[Run, Run],
    scored: tuple[_Scored, _Scored],
    *,
    draws: int,
    seed: int,
) -> Comparison:
    metric, scorer = key
    a, b = (~np.isnan(side.values) for side in scored)
    both = np.flatnonzero(a & b)
    declared = card.metric(metric)
    units = np.repeat(both, items.units(declared, both))
    difference = paired_difference(
        scored[0].values[units],
        scored[1].values[units],
        items.group[units],
        draws=draws,
        seed=seed,
        bounds=(declared.low, declared.high),
    )
    levels = declared.levels or (_RIGHT_OR_WRONG if metric == ACCURACY.name else ())
    table, other = _counts(metric, levels, scored, both)
    return Comparison(
        metric=metric,
        scorer=scorer,
        first=Side(runs[0].system, runs[0].condition),
        second=Side(runs[1].system, runs[1].condition),
        difference=difference,
        levels=levels,
        table=table,
        other_levels=other,
        only_first=int(np.sum(a & ~b)),
        only_second=int(np.sum(b & ~a)),
    )


def _counts(
    metric: str, levels: tuple[str, ...], scored: tuple[_Scored, _Scored], both: NDArray[np.intp]
) -> tuple[list[list[int]] | None, int]:
    if not levels:
        return None, 0
    named = [[_level(metric, side, int(place)) for place in both] for side in scored]
    inside = [
        (first, second) for first, second in zip(*named, strict=True) if first in levels and second in levels
    ]
    counts = cross_table([first for first, _ in inside], [second for _, second in inside], levels)
    return [[int(count) for count in row] for row in counts], len(both) - len(inside)


def _level(metric: str, side: _Scored, place: int) -> str:
    if metric == ACCURACY.name:
        return _RIGHT_OR_WRONG[0 if side.values[place] == 1 else 1]
    return side.labels.get(place, "")


def _adjusted(found: list[Comparison]) -> list[Comparison]:
    """Holm over all comparisons of one metric and scorer that have a p."""
    adjusted: dict[int, float] = {}
    for key in {(one.metric, one.scorer) for one in found}:
        places = [
            place
            for place, one in enumerate(found)
            if (one.metric, one.scorer) == key and one.difference.p is not None
        ]
        values = holm([p for place in places if (p := found[place].difference.p) is not None])
        adjusted |= {place: float(value) for place, value in zip(places, values, strict=True)}
    return [Comparison(**{**one.__dict__, "p_holm": adjusted.get(place)}) for place, one in enumerate(found)]

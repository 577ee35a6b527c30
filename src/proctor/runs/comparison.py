"""Two runs side by side: the same items under two conditions, or by two systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, FailedPolicy, InputError, Metric
from proctor.runs.results import Options, check_metrics
from proctor.runs.run_scores import (
    BOTH,
    RunScores,
    RunSums,
    both_ends,
    load_run_scores,
    load_run_sums,
    policies,
    policy_of,
)
from proctor.runs.schema import BenchmarkCard
from proctor.runs.store import ORACLE, Run, Store
from proctor.runs.table import BASELINES, ItemTable, chosen_runs, facet_cells, load_items, load_labels
from proctor.stats import Difference, cross_table, holm

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

    Where a side lacks scores, `policy` says how they are counted ("wrong", "exclude"); it is "both" where nothing is
    decided: then `difference` has no value, an interval that holds those of both readings, and the larger p of the two
    where both point the same way (else none), so that a run is better only where it is so under both. `if_wrong` and
    `if_excluded` are the two readings; where nothing lacks they are the same and `policy` is empty.
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
    policy: str
    if_wrong: Difference
    if_excluded: Difference
    declared: Metric
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

    @property
    def drawn(self) -> float | None:
        """Where a drawing puts it: the difference; of a range the reading in which all that lacks is wrong."""
        return self.if_wrong.value if self.policy == BOTH else self.difference.value

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
            "policy": self.policy,
            "difference_if_wrong": self.if_wrong.value,
            "p_if_wrong": self.if_wrong.p,
            "difference_if_excluded": self.if_excluded.value,
            "p_if_excluded": self.if_excluded.p,
        }


@dataclass(frozen=True)
class Comparisons:
    """Comparisons with the card that tells how their metrics are shown."""

    card: BenchmarkCard
    comparisons: list[Comparison]


def compare(
    store: Store,
    benchmark: str,
    options: Options = Options(),
    *,
    against: tuple[str, str] | None = None,
    metrics: Sequence[str] = (),
) -> Comparisons:
    """Conditions of each system against each other; or, with several systems and one condition, systems;
    or every chosen run against one (`against`: its system and condition).

    Where several systems are named and no condition, and they share one alone, systems are compared under that one:
    a guess that was also made without the media, as the baselines of the results, is no other condition to look at.
    Where systems are named as SYSTEM/CONDITION, these very runs are compared. Where nothing is named and no system has
    two conditions, the systems that are no baselines are compared.

    `options` choose systems and conditions (all, where none are named), items, the facets to split by, draws and
    seed. Raises
    `InputError` where that leaves nothing to compare.
    """
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
        pairs = condition_pairs(runs, options.conditions or card.conditions) or _alike(runs, options)
    if not pairs:
        raise InputError(store.shown, found=_unpaired(runs, options), expected=_PAIRS)
    found = compare_runs(store, benchmark, pairs, options, metrics=metrics)
    return Comparisons(card.with_metrics([one.declared for one in found]), found)


def _alike(runs: Sequence[Run], options: Options) -> list[tuple[Run, Run]]:
    """All pairs of contestants under the one condition that they share, where nobody named systems or conditions."""
    contestants = [run for run in runs if run.system not in BASELINES and not run.settings.get(ORACLE, False)]
    shared = {run.condition for run in contestants}
    return system_pairs(contestants, ()) if len(shared) == 1 and not (options.systems or options.conditions) else []


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
        raise InputError(store.shown, found=f"no run of {names[0]} under {names[1]}", expected="a run of both")
    return found[0]


def system_pairs(runs: Sequence[Run], order: Sequence[str]) -> list[tuple[Run, Run]]:
    """All pairs of systems, in the given order."""
    rank = {system: position for position, system in enumerate(order)}
    ordered = sorted(runs, key=lambda run: (rank.get(run.system, len(rank)), run.system))
    return list(combinations(ordered, 2))


def compare_runs(
    store: Store,
    benchmark: str,
    pairs: Sequence[tuple[Run, Run]],
    options: Options = Options(),
    *,
    metrics: Sequence[str] = (),
) -> list[Comparison]:
    """Compares pairs of runs on every metric (and scorer) that both have; p adjusted by Holm per metric. Options
    say of which items, split by which facets, under which policy for what a run lacks, with which draws and seed.

    Raises `InputError` where a pair has no metric in common, and for a facet or a metric that is not known.
    """
    card = store.card(benchmark)
    items = load_items(store, card, all_items=options.all_items)
    over: dict[str, Metric] = {}
    if metrics:
        runs = list({run.id: run for pair in pairs for run in pair}.values())
        many = load_run_sums(store, runs, items, card, metrics)
        over = {one.metric.name: one.metric for some in many.values() for one in some}
        known = {one.metric.name for run in runs for one in load_run_scores(store, run, items, card)}
        check_metrics(store, metrics, known, items, over)
    parts: list[tuple[dict[str, str], ItemTable]] = [({}, items)]
    if options.by:
        parts = [(facets, items.only(kept)) for facets, kept in facet_cells(items, options.by, store.shown)]
    found = [
        replace(one, facets=facets)
        for facets, part in parts
        for one in _on_items(store, card, part, pairs, options, metrics, among=items)
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
    *,
    among: ItemTable,
) -> list[Comparison]:
    runs = list({run.id: run for pair in pairs for run in pair}.values())
    many = load_run_sums(store, runs, items, card, metrics, among=among)
    scored: dict[int, dict[tuple[str, str], RunScores]] = {
        run.id: {
            (one.metric.name, one.scorer): one
            for one in (*load_run_scores(store, run, items, card), *many[run.id])
            if not metrics or isinstance(one, RunSums) or one.metric.name in metrics
        }
        for run in runs
    }
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
            levels = [_Levels(store, run, items, scored[run.id][key]) for run in (first, second)]
            found.append(_compare(items, levels, policies(options.failed, card), options))
    return found


def condition_pairs(runs: Sequence[Run], order: Sequence[str]) -> list[tuple[Run, Run]]:
    """All pairs of conditions of each system, conditions in the given order."""
    rank = {condition: position for position, condition in enumerate(order)}
    by_system: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (rank.get(run.condition, len(rank)), run.condition)):
        by_system.setdefault(run.system, []).append(run)
    return [pair for system in sorted(by_system) for pair in combinations(by_system[system], 2)]


@dataclass(frozen=True)
class _Levels:
    """The scores of one side, and their levels in words."""

    store: Store
    run: Run
    items: ItemTable
    marked: RunScores

    def of(self, values: NDArray[np.float64], both: NDArray[np.intp]) -> list[str]:
        """The levels of these items."""
        if self.marked.metric.name == ACCURACY.name:
            return [_RIGHT_OR_WRONG[0 if values[row] == 1 else 1] for row in both]
        labels = load_labels(self.store, self.run, self.items, self.marked.metric.name, self.marked.scorer)
        return [labels.get(int(row), "") for row in both]

    @property
    def side(self) -> Side:
        return Side(self.run.system, self.run.condition)


def _compare(
    items: ItemTable, sides: Sequence[_Levels], chosen: tuple[FailedPolicy, ...], options: Options
) -> Comparison:
    first, second = (side.marked for side in sides)
    metric = first.metric
    policy = policy_of(not (first.settled and second.settled), chosen)

    excluded = first.difference(second, FailedPolicy.EXCLUDE, items, options.plan(metric))
    wrong = first.difference(second, FailedPolicy.WRONG, items, options.plan(metric)) if policy else excluded
    difference = {BOTH: _either(wrong, excluded), FailedPolicy.WRONG.value: wrong}.get(policy, excluded)
    shown = FailedPolicy.WRONG if policy == FailedPolicy.WRONG else FailedPolicy.EXCLUDE
    values = [side.marked.values(shown) for side in sides]
    a, b = (~np.isnan(one) for one in values)
    levels = metric.levels or (_RIGHT_OR_WRONG if metric.name == ACCURACY.name else ())
    table, other = None, 0
    if levels:
        named = [side.of(own, np.flatnonzero(a & b)) for side, own in zip(sides, values, strict=True)]
        inside = [pair for pair in zip(*named, strict=True) if set(pair) <= set(levels)]
        table = cross_table([one for one, _ in inside], [one for _, one in inside], levels).tolist()
        other = len(named[0]) - len(inside)
    return Comparison(
        metric=metric.name,
        scorer=first.scorer,
        first=sides[0].side,
        second=sides[1].side,
        difference=difference,
        levels=levels,
        table=table,
        other_levels=other,
        only_first=int(np.sum(a & ~b)),
        only_second=int(np.sum(b & ~a)),
        policy=policy,
        if_wrong=wrong,
        if_excluded=excluded,
        declared=metric,
    )


def _either(wrong: Difference, excluded: Difference) -> Difference:
    """What holds under both readings: no value, an interval that holds both, the larger p where they agree."""
    low, high = both_ends(wrong.ci_low, excluded.ci_low, wrong.ci_high, excluded.ci_high)
    agree = (wrong.value or 0) * (excluded.value or 0) > 0
    p = max(wrong.p, excluded.p) if agree and wrong.p is not None and excluded.p is not None else None
    return replace(wrong, value=None, ci_low=low, ci_high=high, p=p)


def _adjusted(found: list[Comparison]) -> list[Comparison]:
    """Holm over all comparisons of one metric and scorer that have a p."""
    p_holm: dict[int, float] = {}
    for key in {(one.metric, one.scorer) for one in found}:
        own = [
            (k, p)
            for k, one in enumerate(found)
            if (one.metric, one.scorer) == key and (p := one.difference.p) is not None
        ]
        p_holm |= dict(zip([k for k, _ in own], holm([p for _, p in own]).tolist(), strict=True))
    return [replace(one, p_holm=p_holm.get(k)) for k, one in enumerate(found)]

"""Pairs of runs compared: two conditions of one system, or two systems, on the same items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, FailedPolicy, InputError, Metric
from proctor.judges import JUDGE_FLAGS
from proctor.results.arrays import ItemTable, load_items, load_labels
from proctor.results.consistency import RepetitionNoise, repetition_noise
from proctor.results.facets import facet_cells, named_facets
from proctor.results.families import BLIND, Families, PairTest, both_readings
from proctor.results.interactions import FacetInteraction, interactions_of
from proctor.results.margins import CompareExtras, MarginRecord, asked_margin, margin_of
from proctor.results.results import Options, check_metrics, items_outside
from proctor.results.run_pairs import chosen_pairs
from proctor.results.run_scores import BOTH, RunScores, load_run_scores, policies
from proctor.results.run_sums import load_run_sums
from proctor.runs import BenchmarkCard, Run, Store
from proctor.stats import Difference, Estimate, MarginTest, Resampling, can_decide, cross_table, mean_interval

_RIGHT_OR_WRONG = ("correct", "incorrect")


@dataclass(frozen=True)
class Side:
    """One of the two runs compared."""

    system: str
    condition: str

    def __str__(self) -> str:
        return f"{self.system} / {self.condition}"

    @classmethod
    def of(cls, run: Run) -> Side:
        return cls(run.system, run.condition)


@dataclass(frozen=True)
class Comparison:
    """The difference of two runs on the items that both have a score for.

    `difference` is first minus second; `table` counts items by outcome (rows: first, columns: second, both in the order
    of `levels`). Not in the table are `other_levels` items with another outcome on a side (`other_outcomes`), and
    `counted_wrong` items without an outcome on a side, where they count as wrong by the policy. `only_first` and `only_second` count items with a score on one side only, which are left out. `p_holm`
    is adjusted for the comparisons that `family` names, `family_size` in number: of two systems under one condition for all
    pairs of systems there, of a condition and text-only for all such comparisons, whatever was asked for, so that a pair
    has the same p wherever it stands; for the comparisons of the call otherwise. `facets` name the part of the items, where
    they are split.

    Where a side lacks scores, `policy` says how they count ("wrong", "exclude"). It is "both" where no policy is chosen:
    then `difference` has no value, an interval that covers both readings, and the larger p unless they have different
    signs (then None), so that a run is better only if it is so under both. `if_wrong` and `if_excluded` are the two readings;
    where nothing is lacking they are equal and `policy` is empty. `level` is that of the interval, which excludes 0 if and
    only if p ≤ 1 − level.
    """

    metric: str
    scorer: str
    first: Side
    second: Side
    difference: Difference
    levels: tuple[str, ...]
    table: list[list[int]] | None
    other_levels: int
    other_outcomes: tuple[str, ...]
    counted_wrong: int
    only_first: int
    only_second: int
    policy: str
    if_wrong: Difference
    if_excluded: Difference
    declared: Metric
    p_holm: float | None = None
    family: str = ""
    family_size: int = 1
    facets: dict[str, str] = field(default_factory=dict)
    level: float = 0.95
    recovery: Estimate | None = None
    noise: RepetitionNoise | None = None
    """The noise between repetitions, where a side has several."""
    margin: MarginTest | None = None

    @property
    def decides(self) -> bool:
        """Whether any outcome with this many groups could be significant."""
        return can_decide(self.difference.groups, self.level)

    @property
    def recovered(self) -> tuple[int, int] | None:
        """Of the items that were wrong under `text-only`, how many were right under the other condition, and their number.
        None unless exactly one side is `text-only` and the levels are right and wrong. `recovery` is the share."""
        if self.recovery is None:
            return None
        return round((self.recovery.value or 0) * self.recovery.n), self.recovery.n

    @property
    def undecided(self) -> bool:
        """Whether both readings were tested, and point different ways."""
        tested = self.if_wrong.p is not None and self.if_excluded.p is not None
        return tested and self.difference.p is None

    @property
    def drawn(self) -> float | None:
        """The value for a chart: the difference, or with two readings the one in which lacking items are wrong."""
        return self.if_wrong.value if self.policy == BOTH else self.difference.value

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        difference, recovered = self.difference, self.recovered
        return {
            "metric": self.metric,
            "scorer": self.scorer,
            "first": asdict(self.first),
            "second": asdict(self.second),
            "facets": self.facets,
            "n": difference.n,
            "groups": difference.groups,
            "scored_only_first": self.only_first,
            "scored_only_second": self.only_second,
            "difference": difference.value,
            "ci_low": difference.ci_low,
            "ci_high": difference.ci_high,
            "p": difference.p,
            "p_holm": self.p_holm,
            "adjusted_for": self.family,
            "decides": self.decides,
            "levels": list(self.levels),
            "table": self.table,
            "other_levels": self.other_levels,
            "counted_wrong": self.counted_wrong,
            "recovered": None if recovered is None else recovered[0],
            "wrong_without_media": None if recovered is None else recovered[1],
            "recovery_low": None if self.recovery is None else self.recovery.ci_low,
            "recovery_high": None if self.recovery is None else self.recovery.ci_high,
            "recovery_groups": None if self.recovery is None else self.recovery.groups,
            "policy": self.policy,
            "difference_if_wrong": self.if_wrong.value,
            "p_if_wrong": self.if_wrong.p,
            "difference_if_excluded": self.if_excluded.value,
            "p_if_excluded": self.if_excluded.p,
            **({} if self.margin is None else _margin_json(self.margin)),
        }


def _margin_json(test: MarginTest) -> dict[str, Any]:
    return {"margin": test.margin.width, "margin_finding": test.finding, "p_margin": test.p, "margin_alpha": test.alpha}


@dataclass(frozen=True)
class Comparisons:
    """Comparisons, and the card that declares their metrics. `outside` items are in no part, where they are split `by`
    facets: they have no value of one. The pairs in `without` have no metric by the same scorer. `margin` was recorded before
    the comparisons were computed. `interactions` compare the parts, if asked for."""

    card: BenchmarkCard
    comparisons: list[Comparison]
    by: tuple[str, ...] = ()
    outside: int = 0
    without: tuple[tuple[Side, Side], ...] = ()
    margin: MarginRecord | None = None
    interactions: tuple[FacetInteraction, ...] = ()


def compare(
    store: Store,
    benchmark: str,
    options: Options = Options(),
    *,
    against: tuple[str, str] | None = None,
    metrics: Sequence[str] = (),
    asked: CompareExtras = CompareExtras(),
) -> Comparisons:
    """Compares the conditions of each system; or systems, where there is one condition; or every chosen run with the run
    `against` (system, condition).

    Several named systems without a named condition are compared under the only condition that they share, if there is
    exactly one. Names like SYSTEM/CONDITION compare these runs. If nothing is named and no system has two conditions,
    the systems that are no baselines are compared.

    Flags of a judge (`JUDGE_FLAGS`) are no scores of a system: they are compared only if `metrics` names them. `options`
    choose systems and conditions (none named: all), items, facets to split by, draws and seed; `asked` is what is asked beside.
    Raises `InputError` where nothing is left to compare, for a margin that is no number above 0, for equivalence without a
    margin, and for an interaction without facets.
    """
    card = store.card(benchmark)
    pairs = chosen_pairs(store, card, options, against)
    options = replace(options, by=named_facets(store, card, options.by, all_items=options.all_items))
    record = asked_margin(store, benchmark, pairs, options, metrics, asked)
    every = compare_runs(store, benchmark, pairs, options, metrics=metrics, margin=record)
    found = every if metrics else [one for one in every if one.metric not in JUDGE_FLAGS] or every
    outside = items_outside(store, benchmark, options.by, all_items=options.all_items)
    compared = {(comparison.first, comparison.second) for comparison in found}
    without = [(Side.of(one), Side.of(other)) for one, other in pairs]
    without = [pair for pair in without if pair not in compared]
    return Comparisons(
        card.with_metrics([comparison.declared for comparison in found]),
        found,
        options.by,
        outside,
        () if options.by else tuple(without),
        record,
        _interactions(store, card, pairs, options, found) if asked.interaction else (),
    )


def _interactions(
    store: Store,
    card: BenchmarkCard,
    pairs: Sequence[tuple[Run, Run]],
    options: Options,
    compared: Sequence[Comparison],
) -> tuple[FacetInteraction, ...]:
    """The interactions of each pair in each metric that was compared and has a score for each item."""
    items = load_items(store, card, all_items=options.all_items)
    runs = {run.id: run for pair in pairs for run in pair}
    scored = {number: _by_metric(load_run_scores(store, run, items, card)) for number, run in runs.items()}
    cells, chosen = facet_cells(items, options.by, store.shown), policies(options.failed, card)
    asked = {(one.first, one.second, one.metric, one.scorer) for one in compared}
    found: list[FacetInteraction] = []
    for first, second in pairs:
        sides = (first.system, first.condition), (second.system, second.condition)
        for key in sorted(scored[first.id].keys() & scored[second.id].keys()):
            if (Side.of(first), Side.of(second), *key) in asked:
                both = scored[first.id][key], scored[second.id][key]
                found += interactions_of(*both, sides, items, cells, chosen, options.level)
    return tuple(found)


def compare_runs(
    store: Store,
    benchmark: str,
    pairs: Sequence[tuple[Run, Run]],
    options: Options = Options(),
    *,
    metrics: Sequence[str] = (),
    alone: bool = False,
    margin: MarginRecord | None = None,
) -> list[Comparison]:
    """Compares pairs of runs on every metric and scorer that both have, with p adjusted by Holm per metric and scorer for
    the family of each pair (see `Comparison`). `options` choose items, facets to split by, the policy for lacking scores,
    draws and seed. With `alone`, p is adjusted for these pairs only, and no other run is read.

    Pairs without a metric by the same scorer are left out. Raises `InputError` if all are, and for an unknown facet or
    metric.
    """
    card = store.card(benchmark)
    items = load_items(store, card, all_items=options.all_items)
    runs = list({run.id: run for pair in pairs for run in pair}.values())
    families = Families([] if alone else store.runs(benchmark), card, pairs, options)
    scores = {run.id: load_run_scores(store, run, items, card) for run in [*runs, *families.others(runs)]}
    if metrics:
        over = load_run_sums(store, runs, items, card, metrics).values()
        own = [scores[run.id] for run in runs]
        check_metrics(store, metrics, {*_metrics(own)}, items, _metrics(over))
    parts: list[tuple[dict[str, str], NDArray[np.bool_]]] = [({}, np.ones(len(items), dtype=np.bool_))]
    if options.by:
        parts = facet_cells(items, options.by, store.shown)
    found: list[Comparison] = []
    for facets, kept in parts:
        part = items.only(kept) if options.by else items
        sums = load_run_sums(store, runs, part, card, metrics, among=items)
        scored = {run.id: _by_metric([*_among(scores[run.id], kept, metrics), *sums[run.id]]) for run in runs}
        compared = _on_items(store, card, part, pairs, options, scored, margin)
        found += [replace(one, facets=facets) for one in compared if one.difference.n or not facets]
    by_name = {(run.system, run.condition): run for run in runs}
    adjusted = families.adjusted([_pair_test(one, by_name) for one in found], scores, items)
    return [
        replace(one, **vars(own) | ({"p_holm": None} if one.undecided else {}))
        for one, own in zip(found, adjusted, strict=True)
    ]


def _metrics(scores: Iterable[Sequence[RunScores]]) -> dict[str, Metric]:
    """The metrics of the scores of runs, by name."""
    return {one.metric.name: one.metric for some in scores for one in some}


def _pair_test(comparison: Comparison, runs: Mapping[tuple[str, str], Run]) -> PairTest:
    """The test that enters a family; an undecided one counts, and is never significant."""
    first, second = comparison.first, comparison.second
    p = 1.0 if comparison.undecided else comparison.difference.p
    sides = runs[first.system, first.condition], runs[second.system, second.condition]
    return PairTest(*sides, comparison.metric, comparison.scorer, p)


def _by_metric(scores: Sequence[RunScores]) -> dict[tuple[str, str], RunScores]:
    return {(one.metric.name, one.scorer): one for one in scores}


_Scored = dict[int, dict[tuple[str, str], RunScores]]
"""By run number, by metric and scorer."""


def _among(scores: Sequence[RunScores], kept: NDArray[np.bool_], metrics: Sequence[str]) -> Iterator[RunScores]:
    """The scores by these metrics (none: all) that may be given to some of the kept items."""
    for one in scores:
        if (not metrics or one.metric.name in metrics) and np.any(one.scorable[kept]):
            yield one.among(kept)


def _on_items(
    store: Store,
    card: BenchmarkCard,
    items: ItemTable,
    pairs: Sequence[tuple[Run, Run]],
    options: Options,
    scored: _Scored,
    margin: MarginRecord | None = None,
) -> list[Comparison]:
    found: list[Comparison] = []
    for first, second in pairs:
        for key in sorted(scored[first.id].keys() & scored[second.id].keys()):
            sides = [_ScoredRun(store, run, items, scored[run.id][key]) for run in (first, second)]
            one = _compare(items, sides, policies(options.failed, card), options)
            found.append(one if margin is None else _with_margin(one, margin, items, sides, options, card))
    if pairs and not found and not options.by:
        first, second = pairs[0]
        raise InputError(
            store.shown,
            f"{Side.of(first)} against {Side.of(second)}",
            found="no metric that both are scored by",
            expected="runs that the same scorer has scored (proctor score)",
        )
    return found


@dataclass(frozen=True)
class _ScoredRun:
    """The scores of one side."""

    store: Store
    run: Run
    items: ItemTable
    scored: RunScores

    def levels(self, values: NDArray[np.float64], both: NDArray[np.intp]) -> list[str]:
        """The named levels of the scores of these items."""
        if self.scored.metric.name == ACCURACY.name:
            return [_RIGHT_OR_WRONG[0 if values[row] == 1 else 1] for row in both]
        labels = load_labels(self.store, self.run, self.items, self.scored.metric.name, self.scored.scorer)
        return [labels.get(int(row), "") for row in both]


def _compare(
    items: ItemTable, sides: Sequence[_ScoredRun], chosen: tuple[FailedPolicy, ...], options: Options
) -> Comparison:
    first, second = (side.scored for side in sides)
    metric = first.metric
    policy, difference, wrong, excluded = both_readings(first, second, items, chosen, options.plan(metric))
    shown = FailedPolicy.WRONG if policy == FailedPolicy.WRONG else FailedPolicy.EXCLUDE
    values = [side.scored.values(shown) for side in sides]
    a, b = (~np.isnan(value) for value in values)
    levels = metric.levels or (_RIGHT_OR_WRONG if metric.name == ACCURACY.name else ())
    repeated = bool(first.repeated or second.repeated)
    levels = () if repeated else levels  # a mean over repetitions has no level
    crossed = _crossed(items, sides, values, levels, options.plan(metric)) if levels else {}
    return Comparison(
        metric=metric.name,
        scorer=first.scorer,
        first=Side.of(sides[0].run),
        second=Side.of(sides[1].run),
        difference=difference,
        levels=levels,
        **{"table": None, "other_levels": 0, "other_outcomes": (), "counted_wrong": 0, "recovery": None, **crossed},
        only_first=int(np.sum(a & ~b)),
        only_second=int(np.sum(b & ~a)),
        policy=policy,
        if_wrong=wrong,
        if_excluded=excluded,
        declared=metric,
        level=options.level,
        noise=repetition_noise(first, second, level=options.level) if repeated else None,
    )


def _crossed(
    items: ItemTable,
    sides: Sequence[_ScoredRun],
    values: Sequence[NDArray[np.float64]],
    levels: tuple[str, ...],
    plan: Resampling,
) -> dict[str, Any]:
    """The fields of a comparison that count pairs of levels."""
    first, second = (side.scored for side in sides)
    both = np.flatnonzero(~np.isnan(values[0]) & ~np.isnan(values[1]))
    pairs = list(zip(*(side.levels(own, both) for side, own in zip(sides, values, strict=True)), strict=True))
    inside = [pair for pair in pairs if set(pair) <= set(levels)]
    recovery = None
    if levels == _RIGHT_OR_WRONG:
        recovery = _recovery([side.run.condition for side in sides], pairs, items.group[both], plan)
    lacks = (first.lacking | second.lacking)[both]
    outside = [(set(pair) - set(levels), lack) for pair, lack in zip(pairs, lacks, strict=True)]
    others = [names for names, lack in outside if names and not lack]
    return {
        "table": cross_table([one for one, _ in inside], [one for _, one in inside], levels).tolist(),
        "other_levels": len(others),
        "other_outcomes": tuple(sorted(set().union(*others))),
        "counted_wrong": len(pairs) - len(inside) - len(others),
        "recovery": recovery,
    }


def _with_margin(
    one: Comparison,
    record: MarginRecord,
    items: ItemTable,
    sides: Sequence[_ScoredRun],
    options: Options,
    card: BenchmarkCard,
) -> Comparison:
    """The comparison with what it shows about the margin: under both readings, if no policy is chosen."""
    first, second = (side.scored for side in sides)
    plan, chosen = options.plan(first.metric), policies(options.failed, card)
    if not record.applies(first.metric):
        return one

    def difference(level: float) -> Difference:
        return both_readings(first, second, items, chosen, replace(plan, level=level))[1]

    return replace(one, margin=margin_of(record, first.metric, plan, difference))


def _recovery(
    conditions: Sequence[str], pairs: Sequence[tuple[str, ...]], groups: NDArray[np.int64], plan: Resampling
) -> Estimate | None:
    """Of the items that are wrong under `text-only`, the share that is right under the other condition; None if it is
    not one of two conditions. `pairs` are the outcomes under both."""
    if (conditions[0] == BLIND) == (conditions[1] == BLIND):
        return None
    right, wrong = _RIGHT_OR_WRONG
    blind = conditions.index(BLIND)
    rows = [row for row, pair in enumerate(pairs) if pair[blind] == wrong]
    return mean_interval([float(pairs[row][1 - blind] == right) for row in rows], groups[rows], plan.within(0, 1))

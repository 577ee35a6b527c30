"""The leaderboard of one condition: systems ranked on the items that the metric marks, all of them for everybody."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import FailedPolicy, InputError, Metric, one_of
from proctor.runs.results import Options, PartResults, check_metrics
from proctor.runs.run_scores import (
    BOTH,
    Reader,
    RunScores,
    RunSums,
    load_run_scores,
    load_run_sums,
    policies,
    policy_of,
    readings,
)
from proctor.runs.schema import BenchmarkCard
from proctor.runs.store import ORACLE, Run, Store
from proctor.runs.table import CODE, FacetSlices, ItemTable, chosen_runs, load_items
from proctor.stats import Rank

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class LeaderboardRow:
    """One system. `rank` is 1 + the number of systems significantly better (ties share it, and a lower score never
    has the better rank), None where it can't be known (see `leaderboard`) and for a `disqualified` one; `rank_low` to
    `rank_high` is its simultaneous confidence interval. `place_low` to `place_high` is how its place spreads over
    samples, and `p_best` how often it leads there: no confidence interval (see `proctor.stats.Rank`). `missing` items
    were not asked, `unsupported` ones are of a format that a baseline does not answer; `lacking` ones have no score for
    whatever reason. `oracle_baseline` marks an oracle baseline, which uses the reference answers: it is shown, and has
    neither a rank nor a part in the tests of others.

    `policy` says how lacking items count: "wrong", "exclude", or "both" where nothing is decided: then there is no
    `value` but the range from `if_wrong` to `if_excluded`, and an interval that holds those of both; empty where
    nothing lacks. `doubtful` answers have no value (late, refused, unreadable) and do a metric over many items less
    harm than wrong ones would."""

    system: str
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    place_low: int | None
    place_high: int | None
    p_best: float | None
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    groups: int
    missing: int
    oracle_baseline: bool
    disqualified: bool = False
    lacking: int = 0
    unsupported: int = 0
    policy: str = ""
    if_wrong: float | None = None
    if_excluded: float | None = None
    doubtful: int = 0

    @property
    def drawn(self) -> float | None:
        """Where a drawing puts it (see `Result.drawn`)."""
        return self.if_wrong if self.policy == BOTH else self.value

    @property
    def undefined(self) -> bool:
        """Whether the metric has no value on what the system said, which therefore has no rank."""
        shown = (self.if_wrong, self.if_excluded) if self.policy == BOTH else (self.value,)
        return self.n > 0 and None in shown


@dataclass(frozen=True)
class Leaderboard:
    """Ranked rows first, then those that can't be ranked; each part best first (a range by its worse end). `items` are
    those that every ranked system is ranked on; `left_out` items have no score from any system (the scorer marks none
    of them)."""

    metric: Metric
    scorer: str
    condition: str
    rows: list[LeaderboardRow]
    items: int
    left_out: int


@dataclass(frozen=True)
class _Entry:
    run: Run
    marked: RunScores
    policy: str
    disqualified: bool

    @property
    def oracle_baseline(self) -> bool:
        return bool(self.run.settings.get(ORACLE, False))

    def complete_on(self, common: Mask) -> bool:
        """Whether each of these items has a value under the policy; both readings count as one that has none."""
        reading = FailedPolicy.WRONG if self.policy == FailedPolicy.WRONG else FailedPolicy.EXCLUDE
        return bool(np.all(~np.isnan(self.marked.values(reading)[common])))

    @property
    def doubtful(self) -> int:
        """How many answers without a value do the metric less harm than wrong ones."""
        return int(np.sum(self.marked.doubtful))

    def undecided_on(self, common: Mask) -> bool:
        """Whether it has a rank only if that is the same with what it lacks, or with what is doubtful, at its worst."""
        if self.policy == BOTH:
            return self.settled_on(common)
        return bool(self.doubtful) and self.complete_on(common)

    def settled_on(self, common: Mask) -> bool:
        """Whether only a policy is wanting: no item waits for a judge, and none is unsupported."""
        return bool(np.all(~np.isnan(self.marked.values(FailedPolicy.WRONG)[common])))


def leaderboard(
    store: Store,
    benchmark: str,
    *,
    condition: str,
    metric: str | None = None,
    scorer: str | None = None,
    options: Options = Options(),
) -> Leaderboard:
    """Ranks the systems of one condition by a metric (the headline, if none is named).

    All are ranked on the same items: no system's gaps take an item from another. Disqualified systems and oracle
    baselines (which use the reference answers) enter no test and no adjustment. Lacking items (failed, not asked, no
    verdict) are wrong under the policy `wrong`; under `exclude` a system with any has a score and no rank. Where
    nothing is decided, such a system has a rank only if these items can't change any: if all ranks are the same whether
    they have the worst score or the best. The same holds for answers without a value (late, refused, unreadable) where
    a metric over many items does them less harm than wrong ones: precision, F1, Matthews' correlation
    (`LeaderboardRow.doubtful`). An answer that waits
    for a judge, and an item that a baseline does not support, leave a system without a rank under any policy.

    A metric over many items is one, too (see `load_run_sums`). A system on whose answers it is not defined (one that
    always says the same, or never names the class) has no rank, and the others are ranked without it.

    Raises `InputError` where several scorers give the metric, or it has several parts, and none is named, and for an
    unknown condition or metric.
    """
    card = store.card(benchmark)
    items = load_items(store, card, all_items=options.all_items)
    chosen = policies(options.failed, card)
    scored = _scored(store, chosen_runs(store, benchmark, options.systems, (condition,)), items, card, metric)
    declared = scored[0][1].metric if scored else card.metric(metric or card.headline)
    entries = [
        _Entry(run, one, policy_of(not one.settled, chosen), run.system in card.disqualified)
        for run, one in scored
        if scorer is None or one.scorer == scorer
    ]
    scorers = sorted({entry.marked.scorer for entry in entries})
    if len(scorers) > 1:
        raise InputError(store.shown, found=f"{declared.name} by {', '.join(scorers)}", expected="one scorer, named")
    scorable = items.scorable(declared, CODE if scorer is None else scorer)
    if any(isinstance(entry.marked, RunSums) for entry in entries):
        scorable = entries[0].marked.scorable
    contests = [entry for entry in entries if not entry.disqualified and not entry.oracle_baseline]
    known = [~np.isnan(one.marked.values(FailedPolicy.WRONG)) for one in contests]
    common = np.logical_or.reduce([np.zeros_like(scorable), *known]) & scorable
    board = _Board(items, declared, common, chosen, options)
    decided = [one for one in contests if one.complete_on(common) and not one.doubtful and board.defined(one)]
    undecided = [one for one in contests if one.undecided_on(common) and board.defined(one)]
    ranked = [*decided, *board.rankable(decided, undecided)]
    unranked = [entry for entry in entries if entry not in ranked]
    return Leaderboard(
        metric=declared,
        scorer=scorers[0] if scorers else "",
        condition=condition,
        rows=[*board.rows(ranked), *board.unranked_rows(unranked)],
        items=int(np.sum(common)) if ranked else 0,
        left_out=int(np.sum(scorable & ~common)) if ranked else 0,
    )


def _scored(
    store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard, metric: str | None
) -> list[tuple[Run, RunScores]]:
    """The scores of runs by one metric, the headline where none is named."""
    wanted = metric or card.headline
    many = load_run_sums(store, runs, items, card, (wanted,))
    single = {run.id: load_run_scores(store, run, items, card) for run in runs}
    found: list[tuple[Run, RunScores]] = [(run, one) for run in runs for one in many[run.id]]
    if parts := sorted({one.metric.name for _, one in found}):
        if wanted not in parts and len(parts) > 1:
            raise InputError(store.shown, f"metric {wanted}", found=f"{len(parts)} parts", expected=one_of(parts))
        return [(run, one) for run, one in found if one.metric.name == (wanted if wanted in parts else parts[0])]
    if metric:
        known = {one.metric.name for own in single.values() for one in own}
        check_metrics(store, (metric,), known | {one.name for one in card.metrics}, items, ())
    return [(run, one) for run in runs for one in single[run.id] if one.metric.name == wanted]


@dataclass(frozen=True)
class _Board:
    """What the rows are made with: the items that count for all, and how intervals are drawn."""

    items: ItemTable
    metric: Metric
    common: Mask
    policies: tuple[FailedPolicy, ...]
    options: Options

    def defined(self, entry: _Entry) -> bool:
        """Whether the metric has a value on these items, also with what is open at its worst and at its best."""
        if not isinstance(entry.marked, RunSums):
            return True
        one = replace(entry.marked, scorable=entry.marked.scorable & self.common).decided(entry.policy)
        plan, slices = replace(self.options.plan(self.metric), draws=1), FacetSlices.of(self.items, (), "")
        ends = (one.filled(end) for end in (self.metric.low, self.metric.high))
        return all(end.estimates(FailedPolicy.EXCLUDE, self.items, slices, plan)[0].value is not None for end in ends)

    def rows(self, entries: Sequence[_Entry]) -> list[LeaderboardRow]:
        """The ranked rows, best first."""
        by_name = {entry.run.system: entry for entry in entries}
        worst = {name: entry.marked.filled(self.metric.worst) for name, entry in by_name.items()}
        return [self.row(by_name[rank.name], rank) for rank in self._ranks(worst)]

    def unranked_rows(self, entries: Sequence[_Entry]) -> list[LeaderboardRow]:
        """The other rows, best first; those without a score come last."""
        sign = -1 if self.metric.higher_is_better else 1
        rows = (self.row(entry, None) for entry in entries)
        return sorted(rows, key=lambda row: math.inf if row.drawn is None else sign * row.drawn)

    def rankable(self, decided: Sequence[_Entry], undecided: Sequence[_Entry]) -> list[_Entry]:
        """The systems whose lacking and doubtful items can't change a rank; who has most of them is given up first."""
        left = sorted(undecided, key=lambda entry: int(np.sum(entry.marked.lacking | entry.marked.doubtful)))
        if not left:
            return []
        runs = {one.run.system: one.marked for one in decided}
        runs |= {one.run.system: one.marked.decided(one.policy) for one in left}
        ranks = type(left[0].marked).reader(runs, self.items, self.common, self.options.plan(self.metric))
        certain = {one.run.system: self.metric.worst for one in decided}
        while left and not self._ranks_hold(ranks, certain, [one.run.system for one in left]):
            left.pop()
        return left

    def _ranks_hold(self, ranks: Reader, certain: dict[str, float], undecided: Sequence[str]) -> bool:
        """Whether all ranks are the same with every undecided system's lacking items at their worst, at their best, and
        with each system's alone at the other end."""
        first, *others = readings(undecided, self.metric)
        expected = ranks(certain | first)
        return all(ranks(certain | fill) == expected for fill in others)

    def row(self, entry: _Entry, rank: Rank | None) -> LeaderboardRow:
        """One system's row; without a rank where it can't be known."""
        one = next(iter(self.results(entry.marked).rows(entry.run)))
        shown = (
            "value",
            "ci_low",
            "ci_high",
            "n",
            "groups",
            "missing",
            "unsupported",
            "policy",
            "if_wrong",
            "if_excluded",
        )
        ranks = ("rank", "rank_low", "rank_high", "place_low", "place_high", "p_best")
        found: dict[str, Any] = {name: getattr(one, name) for name in shown}
        found |= {name: None if rank is None else getattr(rank, name) for name in ranks}
        return LeaderboardRow(
            system=one.system,
            oracle_baseline=entry.oracle_baseline,
            disqualified=entry.disqualified,
            lacking=one.failed + one.missing + one.unresolved + one.unmarked + one.unsupported,
            doubtful=entry.doubtful,
            **found,
        )

    def results(self, marked: RunScores) -> PartResults:
        """The same numbers as in `results`."""
        nothing = np.zeros_like(self.common)
        slices = FacetSlices.of(self.items, (), "")
        return PartResults(marked, self.items, nothing, slices, self.policies, replace(self.options, two_level=False))

    def _ranks(self, runs: dict[str, RunScores]) -> list[Rank]:
        if not runs:
            return []
        plan = self.options.plan(self.metric)
        return type(next(iter(runs.values()))).ranks(runs, self.items, self.common, plan)

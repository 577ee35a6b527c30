"""The leaderboard of one condition: all systems ranked on the same items, who has no rank, and in which order the rows
stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, FailedPolicy, InputError, Metric, one_of
from proctor.results.arrays import ItemTable, Series, load_items, load_repetitions
from proctor.results.facets import FacetSlices
from proctor.results.results import Options, PartResults, check_metrics
from proctor.results.run_scores import (
    BOTH,
    Reader,
    RunScores,
    load_run_scores,
    over_repetitions,
    policies,
    policy_of,
    readings,
    run_scores,
)
from proctor.results.run_sums import RunSums, load_run_sums
from proctor.runs import CODE, ORACLE, BenchmarkCard, Run, Store, chosen_runs, repeats_of
from proctor.stats import Rank

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class LeaderboardRow:
    """One system. `rank` is 1 + the number of significantly better systems (ties share it, and a lower score never has the
    better rank); None where it is unknown (see `leaderboard`) and for `disqualified` systems. `rank_low` to `rank_high`
    is its simultaneous confidence interval. `resampled_rank_low` to `resampled_rank_high` is the spread of its rank over samples, and
    `p_best` the share of samples in which it is first: no confidence interval (see `proctor.stats.Rank`). `missing`
    items were not asked, `failed` ones ended with an infrastructure error, `unresolved` ones have no verdict by the judge,
    `unscored` ones wait for it, `unsupported` ones are not supported by the system; `lacking` ones are all
    of these. An `oracle_baseline` uses the reference answers: it is shown without a rank and enters no test.

    `policy` says how lacking items count: "wrong", "exclude", or "both" where no policy is chosen: then there is no
    `value` but the range from `if_wrong` to `if_excluded`, and an interval that covers both. It is empty where nothing is
    lacking. `doubtful` answers have no value (late, refused, unreadable), and lower a metric over many items less than
    wrong ones would."""

    system: str
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    resampled_rank_low: int | None
    resampled_rank_high: int | None
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
    failed: int = 0
    unresolved: int = 0
    unscored: int = 0
    answered: int = 0

    @property
    def drawn(self) -> float | None:
        """The value for a chart (see `Result.drawn`)."""
        return self.if_wrong if self.policy == BOTH else self.value

    @property
    def scored(self) -> bool:
        """Whether any item has a score (by a chosen policy, lacking ones that count as wrong have one)."""
        wrong = self.failed + self.missing + self.unresolved if self.policy == FailedPolicy.WRONG else 0
        return self.answered - self.unresolved - self.unscored + wrong > 0

    @property
    def undefined(self) -> bool:
        """Whether the metric is undefined on the system's answers, which therefore has no rank."""
        shown = (self.if_wrong, self.if_excluded) if self.policy == BOTH else (self.value,)
        return self.scored and None in shown


@dataclass(frozen=True)
class Leaderboard:
    """Ranked rows first, then the others, each best first (a range by its worse end). `items` counts those that all ranked
    systems are ranked on; `left_out` items have no score from any system."""

    metric: Metric
    scorer: str
    condition: str
    rows: list[LeaderboardRow]
    items: int
    left_out: int


@dataclass(frozen=True)
class _Entry:
    run: Run
    scored: RunScores
    policy: str
    disqualified: bool

    @property
    def oracle_baseline(self) -> bool:
        return bool(self.run.settings.get(ORACLE, False))

    @property
    def contests(self) -> bool:
        """Whether it may have a rank."""
        return not self.disqualified and not self.oracle_baseline

    def complete_on(self, common: Mask) -> bool:
        """Whether each of these items has a value under the policy; under "both", a value without any policy."""
        reading = FailedPolicy.WRONG if self.policy == FailedPolicy.WRONG else FailedPolicy.EXCLUDE
        return bool(np.all(~np.isnan(self.scored.values(reading)[common])))

    @property
    def doubtful(self) -> int:
        """The number of doubtful answers (see `LeaderboardRow`)."""
        return int(np.sum(self.scored.doubtful))

    def undecided_on(self, common: Mask) -> bool:
        """Whether its rank depends on lacking or doubtful items, so that all readings must agree. A run that lacks all of
        them has nothing to be ranked by."""
        if self.policy == BOTH:
            return self.settled_on(common) and not bool(np.all(self.scored.lacking[common]))
        return bool(self.doubtful) and self.complete_on(common)

    def settled_on(self, common: Mask) -> bool:
        """Whether a policy would give every item a value: none waits for a judge, none is unsupported."""
        return bool(np.all(~np.isnan(self.scored.values(FailedPolicy.WRONG)[common])))


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

    All are ranked on the same items: the gaps of one system take no item from another. Disqualified systems and oracle
    baselines enter no test and no adjustment. Lacking items (failed, not asked, no verdict) are wrong under the policy
    `wrong`; under `exclude` a system with lacking items has a score and no rank. Without a policy such a system has a
    rank only if all ranks are the same whether these items have the worst or the best score. The same holds for answers
    without a value (late, refused, unreadable) where a metric over many items penalises them less than wrong ones:
    precision, F1, Matthews' correlation (`LeaderboardRow.doubtful`). An answer that waits for a judge, and an item that the
    system does not support, leave a system without a rank under any policy.

    The metric may be one over many items (see `load_run_sums`). A system on whose answers it is undefined (always the
    same answer, or never the class) has no rank, and the others are ranked without it. A system that the scorer has not
    scored stands below, without a score.

    Raises `InputError` if several scorers give the metric, or it has several parts, and none is named, and for an unknown
    condition or metric.
    """
    card = store.card(benchmark)
    items = load_items(store, card, all_items=options.all_items)
    chosen = policies(options.failed, card)
    runs = chosen_runs(store, benchmark, options.systems, (condition,))
    scored = _scored(store, runs, items, card, metric)
    declared = scored[0][1].metric if scored else card.metric(metric or card.headline)

    def entry_of(run: Run, one: RunScores) -> _Entry:
        return _Entry(run, one, policy_of(not one.settled, chosen), run.system in card.disqualified)

    entries = [entry_of(run, one) for run, one in scored if scorer is None or one.scorer == scorer]
    by = _only_scorer(store, entries, declared)
    over_items = any(isinstance(entry.scored, RunSums) for entry in entries)
    scorable = entries[0].scored.scorable if over_items else items.scorable(declared, by or scorer or CODE)
    common = _scored_by_any(entries, scorable)
    if entries and not over_items:
        entries += [entry_of(run, one) for run, one in _others(store, runs, entries, items, declared)]
    board = _Board(items, declared, common, chosen, options)
    ranked = board.ranked([entry for entry in entries if entry.contests]) if np.any(common) else []
    unranked = [entry for entry in entries if entry not in ranked]
    return Leaderboard(
        metric=declared,
        scorer=by,
        condition=condition,
        rows=[*board.rows(ranked), *board.unranked_rows(unranked)],
        items=int(np.sum(common)) if ranked else 0,
        left_out=int(np.sum(scorable & ~common)) if ranked else 0,
    )


def _only_scorer(store: Store, entries: Sequence[_Entry], metric: Metric) -> str:
    """The scorer of all entries; empty without entries."""
    scorers = sorted({entry.scored.scorer for entry in entries})
    if len(scorers) > 1:
        raise InputError(store.shown, found=f"{metric.name} by {', '.join(scorers)}", expected="one scorer, named")
    return scorers[0] if scorers else ""


def _scored_by_any(entries: Sequence[_Entry], scorable: Mask) -> Mask:
    """The scorable items with a value of any system that may have a rank, lacking ones being wrong."""
    known = [~np.isnan(entry.scored.values(FailedPolicy.WRONG)) for entry in entries if entry.contests]
    common: Mask = np.logical_or.reduce([np.zeros_like(scorable), *known]) & scorable
    return common


def _scored(
    store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard, metric: str | None
) -> list[tuple[Run, RunScores]]:
    """The scores of runs by one metric (None: the headline)."""
    wanted = metric or card.headline
    many = load_run_sums(store, runs, items, card, (wanted,))
    single = {run.id: load_run_scores(store, run, items, card) for run in runs}
    found: list[tuple[Run, RunScores]] = [(run, run_sums) for run in runs for run_sums in many[run.id]]
    if parts := sorted({one.metric.name for _, one in found}):
        if wanted not in parts and len(parts) > 1:
            raise InputError(store.shown, f"metric {wanted}", found=f"{len(parts)} parts", expected=one_of(parts))
        return [(run, one) for run, one in found if one.metric.name == (wanted if wanted in parts else parts[0])]
    if metric:
        known = {scores.metric.name for own in single.values() for scores in own}
        check_metrics(store, (metric,), known | {one.name for one in card.metrics}, items, ())
    return [(run, scores) for run in runs for scores in single[run.id] if scores.metric.name == wanted]


def _open_count(entry: _Entry) -> int:
    return int(np.sum(entry.scored.lacking | entry.scored.doubtful))


def _unscored(store: Store, run: Run, items: ItemTable, metric: Metric, scorer: str) -> RunScores:
    """A run without any score of a metric by this scorer; of accuracy it may have code's, which complete those of a judge."""
    code = (ACCURACY.name, CODE) if metric.name == ACCURACY.name else None
    nothing, scorable, parts = np.zeros(len(items), dtype=np.bool_), items.scorable(metric, scorer), []
    for each in load_repetitions(store, run, items):
        known = (series.values for series in each.series if (series.metric, series.scorer) == code)
        own = Series(metric.name, scorer, next(known, np.full(len(items), np.nan)))
        parts.append(run_scores(metric, own, scorable, each.outcomes, nothing))
    return over_repetitions(parts, repeats_of(run.settings))


def _others(
    store: Store, runs: Sequence[Run], entries: Sequence[_Entry], items: ItemTable, metric: Metric
) -> list[tuple[Run, RunScores]]:
    """The runs that the scorer of these entries has not scored, as far as they were asked any item that it can score."""
    there, scorer = {entry.run.id for entry in entries}, entries[0].scored.scorer
    found = [(run, _unscored(store, run, items, metric, scorer)) for run in runs if run.id not in there]
    return [(run, one) for run, one in found if np.any(one.outcomes.asked & one.scorable)]


@dataclass(frozen=True)
class _Board:
    """What all rows share: the items, the metric, and how intervals are drawn."""

    items: ItemTable
    metric: Metric
    common: Mask
    policies: tuple[FailedPolicy, ...]
    options: Options

    def defined(self, entry: _Entry) -> bool:
        """Whether the metric has a value on these items, with lacking items at their worst and at their best."""
        if not isinstance(entry.scored, RunSums):
            return True
        one = replace(entry.scored, scorable=entry.scored.scorable & self.common).decided(entry.policy)
        plan, slices = replace(self.options.plan(self.metric), draws=1), FacetSlices.of(self.items, (), "")
        ends = (one.filled(end) for end in (self.metric.low, self.metric.high))
        return all(end.estimates(FailedPolicy.EXCLUDE, self.items, slices, plan)[0].value is not None for end in ends)

    def rows(self, entries: Sequence[_Entry]) -> list[LeaderboardRow]:
        """The ranked rows, best first."""
        by_name = {entry.run.system: entry for entry in entries}
        worst = {name: entry.scored.filled(self.metric.worst) for name, entry in by_name.items()}
        return [self.row(by_name[rank.name], rank) for rank in self._ranks(worst)]

    def unranked_rows(self, entries: Sequence[_Entry]) -> list[LeaderboardRow]:
        """The other rows, best first; those without a score come last."""
        sign = -1 if self.metric.higher_is_better else 1
        rows = (self.row(entry, None) for entry in entries)
        return sorted(rows, key=lambda row: math.inf if row.drawn is None else sign * row.drawn)

    def ranked(self, contests: Sequence[_Entry]) -> list[_Entry]:
        """The systems with a rank: those with a value of all items, and those whose other items can't change a rank."""
        complete = [entry for entry in contests if entry.complete_on(self.common) and not entry.doubtful]
        undecided = [entry for entry in contests if entry.undecided_on(self.common)]
        decided = list(filter(self.defined, complete))
        return [*decided, *self.rankable(decided, list(filter(self.defined, undecided)))]

    def rankable(self, decided: Sequence[_Entry], undecided: Sequence[_Entry]) -> list[_Entry]:
        """The systems whose lacking and doubtful items can't change a rank; systems with most of them are dropped first,
        those with equally many together. None, if a single one of several is left without a complete system beside it."""
        left = list(undecided)
        if not left:
            return []
        runs = {entry.run.system: entry.scored for entry in decided}
        runs |= {entry.run.system: entry.scored.decided(entry.policy) for entry in left}
        ranks = type(left[0].scored).reader(runs, self.items, self.common, self.options.plan(self.metric))
        certain = {entry.run.system: self.metric.worst for entry in decided}
        while left and not self._ranks_hold(ranks, certain, [entry.run.system for entry in left]):
            most = max(map(_open_count, left))
            left = [entry for entry in left if _open_count(entry) < most]
        alone = len(left) == 1 and not decided and len(undecided) > 1  # of itself a rank says nothing
        return [] if alone else left

    def _ranks_hold(self, ranks: Reader, certain: dict[str, float], undecided: Sequence[str]) -> bool:
        """Whether all ranks agree over all `readings` of the undecided systems."""
        first, *others = readings(undecided, self.metric)
        expected = ranks(certain | first)
        return all(ranks(certain | fill) == expected for fill in others)

    def row(self, entry: _Entry, rank: Rank | None) -> LeaderboardRow:
        one = next(iter(self.results(entry.scored).rows(entry.run)))
        ends = ("policy", "if_wrong", "if_excluded")
        counts = ("missing", "failed", "unresolved", "unscored", "unsupported")
        shown = ("value", "ci_low", "ci_high", "n", "groups", *counts, *ends)
        ranks = ("rank", "rank_low", "rank_high", "resampled_rank_low", "resampled_rank_high", "p_best")
        found: dict[str, Any] = {name: getattr(one, name) for name in (*shown, "answered")}
        found |= {name: None if rank is None else getattr(rank, name) for name in ranks}
        return LeaderboardRow(
            system=one.system,
            oracle_baseline=entry.oracle_baseline,
            disqualified=entry.disqualified,
            lacking=sum(getattr(one, name) for name in counts),
            doubtful=entry.doubtful,
            **found,
        )

    def results(self, scored: RunScores) -> PartResults:
        """The same numbers as in `results`."""
        slices = FacetSlices.of(self.items, (), "")
        return PartResults(scored, self.items, (), slices, self.policies, replace(self.options, two_level=False))

    def _ranks(self, runs: dict[str, RunScores]) -> list[Rank]:
        if not runs:
            return []
        plan = self.options.plan(self.metric)
        return type(next(iter(runs.values()))).ranks(runs, self.items, self.common, plan)

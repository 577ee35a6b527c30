"""The scores of a run, what it lacks, and its value under a policy; also of metrics over many items.

A run lacks a score where asking failed (an infrastructure error), where an item was not asked, and where a judge gave
no verdict. With any of these it is *incomplete*: its score depends on the policy, and a verdict about it holds only
where it is the same under every policy in question (`policies`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from proctor import stats
from proctor.core import ACCURACY, FailedPolicy, Metric, Status
from proctor.judges import UNRESOLVED
from proctor.results.arrays import (
    STATUS_CODES,
    Ints,
    ItemTable,
    Outcomes,
    Series,
    load_repeated_values,
    load_repetitions,
)
from proctor.results.facets import FacetSlices
from proctor.runs import CODE, BenchmarkCard, Run, Store, refuse_out_of_range, repeats_of

if TYPE_CHECKING:
    from proctor.stats import Difference, Estimate, Rank, Resampling

BOTH = "both"
"""The policy of a range: no policy is chosen."""

FAILED_POLICIES: dict[FailedPolicy, str] = {
    FailedPolicy.WRONG: "items that failed, were not asked or have no verdict count as wrong",
    FailedPolicy.EXCLUDE: "items that failed, were not asked or have no verdict are left out of the run's own score",
}

_AHEAD = 2  # runs read in advance
NO_REPETITION, NO_ANSWER = -1, -2

T = TypeVar("T")
Mask = NDArray[np.bool_]

Reader = Callable[[Mapping[str, float]], dict[str, int]]
"""Ranks by system, from the value of all lacking items by system."""


def policies(chosen: FailedPolicy | None, card: BenchmarkCard) -> tuple[FailedPolicy, ...]:
    """The policies under which scores are computed: the chosen one, else the benchmark's, else both.

    With both, the score of an incomplete run is a range, and a verdict must be the same under both.
    """
    one = chosen or card.failed
    return tuple(FailedPolicy) if one is None else (FailedPolicy(one),)


@dataclass(frozen=True)
class RunScores:
    """One metric by one scorer in one run, and why items have no score. All arrays have one entry per item.

    `scorable` are the items that the metric applies to. Each has a score in `scores` or is in exactly one of the masks:
    `failed` (an infrastructure error), `not_asked`, `unresolved` (no verdict by the judge), `waiting` (for the judge) and
    `unsupported` (the system does not support it). The last two are neither right nor wrong under any policy.
    """

    metric: Metric
    scorer: str
    scores: NDArray[np.float64]
    scorable: Mask
    failed: Mask
    not_asked: Mask
    unresolved: Mask
    waiting: Mask
    unsupported: Mask
    outcomes: Outcomes
    repeated: tuple[RunScores, ...] = field(default=(), kw_only=True)
    """Each repetition that was asked for, if there are several: then `scores` are means over those that have one, and an
    item is in a mask if any of its repetitions is."""

    @property
    def times(self) -> int:
        """How many answers to an item there are, or were asked for."""
        return max(1, len(self.repeated))

    @property
    def lacking(self) -> Mask:
        """The items whose value depends on the policy. The metric `unresolved` is no score of the system and has no worst
        value: there no item is."""
        if self.metric.name == UNRESOLVED.name:
            return np.zeros_like(self.failed)
        return self.failed | self.not_asked | self.unresolved

    @property
    def doubtful(self) -> Mask:
        """Answers that make a rank uncertain under any policy; none for a metric with a score for each answer."""
        return np.zeros_like(self.failed)

    @property
    def settled(self) -> bool:
        """Whether nothing depends on the policy."""
        return not np.any(self.lacking)

    @property
    def shares_of_hits(self) -> bool:
        """Whether the score of an item is a share of its repetitions, each of which is right or wrong."""
        ends = (self.metric.low, self.metric.high)
        parts = [one.scores[one.scorable & ~np.isnan(one.scores)] for one in self.repeated]
        return bool(parts) and all(bool(np.isin(one, ends).all()) for one in parts)

    def values(self, policy: FailedPolicy) -> NDArray[np.float64]:
        """The scores under a policy; NaN without a score."""
        values = np.where(self.scorable, self.scores, np.nan)
        if policy is FailedPolicy.WRONG:
            lacking = self.lacking
            values[lacking] = self._filled(self.metric.worst)[lacking]
        return values

    def _filled(self, value: float) -> NDArray[np.float64]:
        """The scores with one value for what is lacking: of an item with several repetitions, for those that are."""
        if not self.repeated:
            return np.where(self.lacking, value, self.scores)
        return _mean_of([np.where(one.lacking, value, one.scores) for one in self.repeated])

    def filled(self, value: float) -> Self:
        """A copy with one value for all lacking items."""
        return replace(self, scores=self._filled(value), repeated=())

    def among(self, kept: Mask) -> Self:
        """The same on a subset of the items."""
        masks = ("scorable", "failed", "not_asked", "unresolved", "waiting", "unsupported")
        own: dict[str, Any] = {name: getattr(self, name)[kept] for name in masks}
        own["repeated"] = tuple(one.among(kept) for one in self.repeated)
        return replace(self, scores=self.scores[kept], outcomes=self.outcomes.among(kept), **own)

    def decided(self, policy: str) -> Self:
        """A copy in which items that are wrong by the policy are no longer lacking."""
        if policy != FailedPolicy.WRONG:
            return self
        nothing = np.zeros_like(self.failed)
        return replace(self.filled(self.metric.worst), failed=nothing, not_asked=nothing, unresolved=nothing)

    def estimates(
        self, policy: FailedPolicy, items: ItemTable, slices: FacetSlices, plan: Resampling
    ) -> list[Estimate]:
        """The metric's mean on the items of each slice."""
        values, plan = self.values(policy), replace(plan, shares=self.shares_of_hits)
        pairs = ~np.isnan(values)[slices.items]
        where = slices.items[pairs]
        times = items.units(self.metric, where)
        where = np.repeat(where, times)
        codes = np.repeat(slices.codes[pairs], times)
        return stats.slice_means(values[where], items.group[where], codes, len(slices.facets), plan)

    def difference(self, other: Self, policy: FailedPolicy, items: ItemTable, plan: Resampling) -> Difference:
        """The paired difference to another run, on the items that both have a value for."""
        a, b = self.values(policy), other.values(policy)
        both = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
        units = np.repeat(both, items.units(self.metric, both))
        return stats.paired_difference(a[units], b[units], items.group[units], plan)

    @classmethod
    def ranks(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> list[Rank]:
        """The ranks of runs (by system), all with a value for each `common` item."""
        metric = next(iter(runs.values())).metric
        where = np.flatnonzero(common)
        where = np.repeat(where, items.units(metric, where))
        values = np.stack([run.scores[where] for run in runs.values()])
        return stats.rank_systems(
            values, list(runs), items.group[where], higher_is_better=metric.higher_is_better, plan=plan
        )

    @classmethod
    def reader(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> Reader:
        """A function from values of lacking items, by system, to the ranks of these systems. The values are the metric's
        lowest or highest."""
        del plan  # tests draw nothing
        metric = next(iter(runs.values())).metric
        where = np.flatnonzero(common)
        where = np.repeat(where, items.units(metric, where))
        row: dict[tuple[str, float], int] = {}
        rows: list[NDArray[np.float64]] = []
        for name, one in runs.items():
            for value in (metric.low, metric.high):
                if (name, metric.low) not in row or np.any(one.lacking[where]):
                    rows.append(one.filled(value).scores[where])
                row[name, value] = len(rows) - 1
        known = stats.RankReadings(np.array(rows), items.group[where], higher_is_better=metric.higher_is_better)

        def ranks(reading: Mapping[str, float]) -> dict[str, int]:
            return dict(zip(reading, known.of([row[item] for item in reading.items()]), strict=True))

        return ranks


def run_scores(metric: Metric, series: Series, scorable: Mask, outcomes: Outcomes, unresolved: Mask) -> RunScores:
    """A series of a run with its lacking items; `unresolved` are the answers without a verdict by its judge."""
    without = scorable & ~series.scored
    answered = outcomes.answered & without
    return RunScores(
        metric=metric,
        scorer=series.scorer,
        scores=series.values,
        scorable=scorable,
        failed=outcomes.where(Status.FAILED) & without,
        not_asked=~outcomes.asked & ~outcomes.unsupported & without,
        unresolved=answered & unresolved,
        waiting=answered & ~unresolved,
        unsupported=outcomes.unsupported & without,
        outcomes=outcomes,
    )


def over_repetitions(parts: Sequence[RunScores], asked: int) -> RunScores:
    """The scores of a run over its repetitions (`parts`, the first one first): of each item the mean. What was asked
    once stays as it is."""
    first = parts[0]
    if len(parts) == 1:
        return first
    more = [replace(one, not_asked=np.zeros_like(one.not_asked)) for one in parts[asked:]]
    every = (*parts[:asked], *more)

    def anywhere(name: str) -> Mask:
        found: Mask = np.logical_or.reduce([getattr(one, name) for one in every])
        return found

    failed = np.logical_or.reduce([one.outcomes.where(Status.FAILED) for one in every])
    status = np.where(failed, STATUS_CODES[Status.FAILED.value], first.outcomes.status)
    return replace(
        first,
        scores=_mean_of([np.where(one.scorable, one.scores, np.nan) for one in every]),
        failed=anywhere("failed"),
        not_asked=anywhere("not_asked"),
        unresolved=anywhere("unresolved"),
        waiting=anywhere("waiting"),
        outcomes=replace(first.outcomes, status=status),
        repeated=every,
    )


def _mean_of(rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The mean of each column over the rows that have a value; NaN without any."""
    values = np.stack(rows)
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    means: NDArray[np.float64] = np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0)
    return means


def policy_of(lacking: bool | np.bool_, chosen: Sequence[FailedPolicy]) -> str:
    """How lacking items count in a number: the policy, `BOTH`, or "" where none is lacking."""
    return "" if not lacking else BOTH if len(chosen) > 1 else chosen[0].value


def both_ends(*ends: float | None) -> tuple[float | None, float | None]:
    """The interval that covers several intervals, given all their ends; (None, None) if an end is missing."""
    known = [end for end in ends if end is not None]
    return (min(known), max(known)) if len(known) == len(ends) else (None, None)


def readings(names: Sequence[str], metric: Metric) -> list[dict[str, float]]:
    """The values of lacking items by run, in every reading under which a rank must hold: the worst (or best) score in all
    runs, and the same with the opposite score in a single run."""
    best = metric.high if metric.higher_is_better else metric.low
    found = []
    for usual, opposite in ((metric.worst, best), (best, metric.worst)):
        everyone = dict.fromkeys(names, usual)
        found += [everyone, *(everyone | {name: opposite} for name in names if len(names) > 1)]
    return found


def load_run_scores(
    store: Store, run: Run, items: ItemTable, card: BenchmarkCard, *, unscored: bool = False
) -> list[RunScores]:
    """The scores of a run by every metric and scorer, with lacking items.

    With `unscored` answers of a format that has no score in the run (all failed, or waiting for a judge) are listed under
    the first metric that applies to it, so that they are not overlooked.
    """
    repetitions = load_repetitions(store, run, items)
    outcomes = repetitions[0].outcomes
    kinds = dict.fromkeys((one.metric, one.scorer) for each in repetitions for one in each.series)
    unresolved = [_unresolved(one.series) for one in repetitions]
    nothing = np.zeros(len(items), dtype=np.bool_)
    found = []
    for name, scorer in kinds:
        metric, none = card.metric(name), Series(name, scorer, np.full(len(items), np.nan))
        scorable, each_series = items.scorable(metric, scorer), [_of(each.series, none) for each in repetitions]
        for one in each_series if metric in card.metrics else ():
            if np.any(one.scored):
                ends = float(np.nanmin(one.values)), float(np.nanmax(one.values))
                refuse_out_of_range(store, card.name, metric, scorer, *ends)
        parts = [
            run_scores(metric, one, scorable, each.outcomes, open_ones.get(scorer, nothing))
            for one, each, open_ones in zip(each_series, repetitions, unresolved, strict=True)
        ]
        found.append(over_repetitions(parts, repeats_of(run.settings)))
    for metric in card.metrics if unscored else ():
        for scorer in (CODE, "") if metric.name == ACCURACY.name else ("",):
            spoken_for = np.logical_or.reduce([nothing, *(part.scorable for part in found)])
            waiting = items.scorable(metric, scorer) & ~spoken_for
            if np.any(waiting & outcomes.asked):
                empty = Series(metric.name, scorer, np.full(len(items), np.nan))
                parts = [run_scores(metric, empty, waiting, each.outcomes, nothing) for each in repetitions]
                found.append(over_repetitions(parts, repeats_of(run.settings)))
    return found


def _of(series: Sequence[Series], none: Series) -> Series:
    """The series of the same metric and scorer as `none`, else `none`."""
    same = (found for found in series if (found.metric, found.scorer) == (none.metric, none.scorer))
    return next(same, none)


def repeated_answers(store: Store, run: Run, items: ItemTable, parts: Sequence[RunScores]) -> Ints | None:
    """The code of each answer of a run (items × repetitions), from its scores (`parts`): equal codes are equal values;
    `NO_ANSWER` for what is no readable answer, `NO_REPETITION` where none was asked, or asking failed. None for a run
    without repetitions."""
    repeated = next((part.repeated for part in parts if part.repeated), ())
    if not repeated:
        return None
    codes = np.full((len(items), len(repeated)), NO_REPETITION, dtype=np.int64)
    for number, one in enumerate(repeated):
        codes[one.outcomes.answered, number] = NO_ANSWER
    for code, (_, rows, numbers) in enumerate(load_repeated_values(store, run, items)):
        codes[rows, numbers] = code
    return codes


def each_run_scores(
    store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard, *, unscored: bool = False
) -> Iterator[tuple[Run, list[RunScores]]]:
    """Each run with its `load_run_scores`."""
    yield from read_ahead(runs, partial(load_run_scores, store, items=items, card=card, unscored=unscored))


def read_ahead(runs: Sequence[Run], read: Callable[[Run], T]) -> Iterator[tuple[Run, T]]:
    """Each run with what `read` gives for it. Threads read the next runs in advance."""
    with ThreadPoolExecutor(_AHEAD) as readers:
        reading = deque(readers.submit(read, run) for run in runs[:_AHEAD])
        for run, following in zip_longest(runs, runs[_AHEAD:]):
            found = reading.popleft().result()
            if following is not None:
                reading.append(readers.submit(read, following))
            yield run, found


def _unresolved(series: Sequence[Series]) -> dict[str, Mask]:
    """By judge, the answers that it left without a verdict."""
    return {one.scorer: one.values == 1 for one in series if one.metric == UNRESOLVED.name}


def load_accuracy(store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard) -> dict[int, RunScores]:
    """The accuracy of each answer of several runs (by run number), with one judge for the answers that code can't compare:
    the judge with the most scores, of equals the one with the most models, then the first by name.

    A run without scores by this judge has code's scores alone, and its free text is `waiting`. If no judge has scored any
    of the runs, only answers that code can compare are scorable.
    """
    repetitions = {run.id: load_repetitions(store, run, items) for run in runs}
    of_run = {
        run: {one.scorer: one for each in reversed(found) for one in each.series if one.metric == ACCURACY.name}
        for run, found in repetitions.items()
    }
    scores: Counter[str] = Counter()
    for by_scorer in of_run.values():
        scores.update({name: int(one.scored.sum()) for name, one in by_scorer.items() if name != CODE})
    judge = min(scores, key=lambda name: (-scores[name], -name.count(","), name), default=CODE)
    metric = card.metric(ACCURACY.name)
    nothing, none = (np.zeros(len(items), dtype=np.bool_), Series(ACCURACY.name, CODE, np.full(len(items), np.nan)))
    scorable = items.scorable(metric, judge)
    found = {}
    for run in runs:
        own = of_run[run.id].get(judge) or of_run[run.id].get(CODE, none)
        empty = replace(own, values=none.values)
        parts = [
            run_scores(
                metric, _of(each.series, empty), scorable, each.outcomes, _unresolved(each.series).get(judge, nothing)
            )
            for each in repetitions[run.id]
        ]
        found[run.id] = over_repetitions(parts, repeats_of(run.settings))
    return found


@dataclass(frozen=True)
class Lacking:
    """The numbers of questions of a board without a score. The run's file has no answer to `missing` ones, which are wrong;
    `failed` ones ended with an infrastructure error; `unresolved` ones have no verdict by the judge, `unscored` ones wait
    for it; `unsupported` ones are not supported by the system; `untimed` answers have no latency, where it
    counts."""

    missing: int = 0
    not_asked: int = 0
    failed: int = 0
    unresolved: int = 0
    unscored: int = 0
    unsupported: int = 0
    untimed: int = 0

    @property
    def incomplete(self) -> bool:
        """Whether its score depends on the policy."""
        return bool(self.not_asked or self.failed or self.unresolved)

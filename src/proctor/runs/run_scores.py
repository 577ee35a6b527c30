"""The scores of a run, what it lacks, and what it is worth under a policy: the one module that decides it.

A run lacks a score where asking failed (an infrastructure error), where an item was not asked, and where a judge gave
no verdict. With any of these it is *incomplete*: its score depends on the policy, and a verdict about it holds only
where it is the same under every policy in question (`policies`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, FailedPolicy, InputError, Metric, Status, one_of
from proctor.judges import UNRESOLVED
from proctor.runs.schema import BenchmarkCard, Ruling
from proctor.runs.scorer_records import refuse_out_of_range
from proctor.runs.store import Run, Store
from proctor.runs.table import (
    BASELINES,
    CODE,
    FacetSlices,
    ItemTable,
    Outcomes,
    Series,
    chosen_runs,
    load_outcomes,
    load_series,
    load_timed,
)
from proctor.stats import (
    Difference,
    Estimate,
    Rank,
    RankReadings,
    Resampling,
    paired_difference,
    rank_systems,
    slice_means,
)

BOTH = "both"
"""The policy of a number that is a range."""

FAILED_POLICIES: dict[FailedPolicy, str] = {
    FailedPolicy.WRONG: "items that failed, were not asked or have no verdict count as wrong",
    FailedPolicy.EXCLUDE: "items that failed, were not asked or have no verdict are left out of the run's own score",
}

_AHEAD = 2  # runs that are read while another is worked on

Mask = NDArray[np.bool_]

Reader = Callable[[Mapping[str, float]], dict[str, int]]
"""From what everything that a run lacks is worth, by system, to the ranks."""


def policies(chosen: FailedPolicy | None, card: BenchmarkCard) -> tuple[FailedPolicy, ...]:
    """The policies under which scores are computed: the chosen one, else the benchmark's own, else both.

    Where there are two, the score of an incomplete run is a range, and a verdict must be the same under both.
    """
    one = chosen or card.failed
    return tuple(FailedPolicy) if one is None else (FailedPolicy(one),)


@dataclass(frozen=True)
class RunScores:
    """One metric by one scorer in one run, and why items have no score. All arrays have one entry an item.

    `scorable` are the items that the metric marks. Each of them has a score in `scores` or is in exactly one of the
    masks: `failed` (an infrastructure error), `not_asked`, `unresolved` (the judge was asked and gave no verdict),
    `waiting` (the judge is still to be asked) and `unsupported` (a baseline does not answer its format);
    the last two are neither right nor wrong under any policy.
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

    @property
    def lacking(self) -> Mask:
        """The items whose value is a matter of the policy. Whether a judge came to a verdict (`unresolved`) is no score
        of the system: it has no worst value, so that no item is."""
        if self.metric.name == UNRESOLVED.name:
            return np.zeros_like(self.failed)
        return self.failed | self.not_asked | self.unresolved

    @property
    def doubtful(self) -> Mask:
        """The answers on which a rank must not rest, though no policy is in question: none of a metric that gives each
        answer a score of its own."""
        return np.zeros_like(self.failed)

    @property
    def settled(self) -> bool:
        """Whether nothing is a matter of the policy."""
        return not np.any(self.lacking)

    def values(self, policy: FailedPolicy) -> NDArray[np.float64]:
        """The scores under a policy; NaN where an item has none."""
        values = np.where(self.scorable, self.scores, np.nan)
        if policy is FailedPolicy.WRONG:
            values[self.lacking] = self.metric.worst
        return values

    def filled(self, value: float) -> Self:
        """The same with one value for all that it lacks."""
        return replace(self, scores=np.where(self.lacking, value, self.scores))

    def decided(self, policy: str) -> Self:
        """The same where a policy decides about what it lacks: what is wrong by it is no longer lacking."""
        if policy != FailedPolicy.WRONG:
            return self
        nothing = np.zeros_like(self.failed)
        return replace(self.filled(self.metric.worst), failed=nothing, not_asked=nothing, unresolved=nothing)

    def estimates(
        self, policy: FailedPolicy, items: ItemTable, slices: FacetSlices, plan: Resampling
    ) -> list[Estimate]:
        """What it is worth on the items of each slice."""
        values = self.values(policy)
        pairs = ~np.isnan(values)[slices.items]
        where = slices.items[pairs]
        times = items.units(self.metric, where)
        where = np.repeat(where, times)
        codes = np.repeat(slices.codes[pairs], times)
        return slice_means(values[where], items.group[where], codes, len(slices.facets), plan)

    def difference(self, other: Self, policy: FailedPolicy, items: ItemTable, plan: Resampling) -> Difference:
        """How far it is ahead of another run on the items that both have a value for."""
        a, b = self.values(policy), other.values(policy)
        both = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
        units = np.repeat(both, items.units(self.metric, both))
        return paired_difference(a[units], b[units], items.group[units], plan)

    @classmethod
    def ranks(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> list[Rank]:
        """The ranks of runs, by their systems, that have a value for all of these items."""
        metric = next(iter(runs.values())).metric
        where = np.flatnonzero(common)
        where = np.repeat(where, items.units(metric, where))
        values = np.stack([one.scores[where] for one in runs.values()])
        return rank_systems(values, list(runs), items.group[where], higher_is_better=metric.higher_is_better, plan=plan)

    @classmethod
    def reader(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> Reader:
        """Gives the ranks (see `ranks`) of some of these runs, by their systems, if what each lacks is worth so much:
        its metric's lowest or highest value."""
        del plan  # tests draw nothing
        metric = next(iter(runs.values())).metric
        where = np.flatnonzero(common)
        where = np.repeat(where, items.units(metric, where))
        place: dict[tuple[str, float], int] = {}
        rows: list[NDArray[np.float64]] = []
        for name, one in runs.items():
            for value in (metric.low, metric.high):
                if (name, metric.low) not in place or np.any(one.lacking[where]):
                    rows.append(one.filled(value).scores[where])
                place[name, value] = len(rows) - 1
        known = RankReadings(np.array(rows), items.group[where], higher_is_better=metric.higher_is_better)

        def ranks(reading: Mapping[str, float]) -> dict[str, int]:
            return dict(zip(reading, known.of([place[one] for one in reading.items()]), strict=True))

        return ranks


def run_scores(
    metric: Metric, series: Series, scorable: Mask, outcomes: Outcomes, unresolved: Mask, *, baseline: bool = False
) -> RunScores:
    """A series of a run with what it lacks; `unresolved` are the answers that its judge gave no verdict on.

    A `baseline` is asked all that it supports, so that what it was not asked is unsupported.
    """
    without = scorable & ~series.marked
    answered, not_asked = outcomes.answered & without, ~outcomes.asked & without
    nothing = np.zeros_like(without)
    return RunScores(
        metric=metric,
        scorer=series.scorer,
        scores=series.values,
        scorable=scorable,
        failed=outcomes.where(Status.FAILED) & without,
        not_asked=nothing if baseline else not_asked,
        unresolved=answered & unresolved,
        waiting=answered & ~unresolved,
        unsupported=not_asked if baseline else nothing,
        outcomes=outcomes,
    )


def policy_of(lacking: bool | np.bool_, chosen: Sequence[FailedPolicy]) -> str:
    """What is said of a number about how items count that lack a score: the policy, `BOTH`, or nothing."""
    return "" if not lacking else BOTH if len(chosen) > 1 else chosen[0].value


def both_ends(*ends: float | None) -> tuple[float | None, float | None]:
    """An interval that holds several intervals, from all their ends; none where one of them has none."""
    known = [end for end in ends if end is not None]
    return (min(known), max(known)) if len(known) == len(ends) else (None, None)


def readings(names: Sequence[str], metric: Metric) -> list[dict[str, float]]:
    """By name what stands in for the items that a run lacks, in every reading that a rank has to hold under: the worst
    score or the best in all runs, and the other one in a single run."""
    best = metric.high if metric.higher_is_better else metric.low
    found = []
    for most, least in ((metric.worst, best), (best, metric.worst)):
        everyone = dict.fromkeys(names, most)
        found += [everyone, *(everyone | {name: least} for name in names if len(names) > 1)]
    return found


def load_run_scores(
    store: Store, run: Run, items: ItemTable, card: BenchmarkCard, *, unscored: bool = False
) -> list[RunScores]:
    """Every metric and scorer of a run, with what it lacks.

    With `unscored` also what nobody has scored: answers of a format (all failed, or waiting for a judge) that no score
    of the run speaks of are shown under the first metric that marks it, or nobody would miss them.
    """
    outcomes, series = load_outcomes(store, run, items), load_series(store, run, items)
    unresolved = _unresolved(series)
    nothing, baseline = np.zeros(len(items), dtype=np.bool_), run.system in BASELINES
    found = []
    for one in series:
        metric = card.metric(one.metric)
        if metric in card.metrics and np.any(one.marked):
            ends = float(np.nanmin(one.values)), float(np.nanmax(one.values))
            refuse_out_of_range(store, card.name, metric, one.scorer, *ends)
        open_ones = unresolved.get(one.scorer, nothing)
        found.append(
            run_scores(metric, one, items.scorable(metric, one.scorer), outcomes, open_ones, baseline=baseline)
        )
    for metric in card.metrics if unscored else ():
        for scorer in (CODE, "") if metric.name == ACCURACY.name else ("",):
            spoken_for = np.logical_or.reduce([nothing, *(part.scorable for part in found)])
            waiting = items.scorable(metric, scorer) & ~spoken_for
            if np.any(waiting & outcomes.asked):
                empty = Series(metric.name, scorer, np.full(len(items), np.nan))
                found.append(run_scores(metric, empty, waiting, outcomes, nothing, baseline=baseline))
    return found


def each_run_scores(
    store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard, *, unscored: bool = False
) -> Iterator[tuple[Run, list[RunScores]]]:
    """Each run with its `load_run_scores`. The next ones are read in threads meanwhile: a database works beside
    Python."""
    read = partial(load_run_scores, store, items=items, card=card, unscored=unscored)
    with ThreadPoolExecutor(_AHEAD) as readers:
        reading = deque(readers.submit(read, run) for run in runs[:_AHEAD])
        for run, following in zip_longest(runs, runs[_AHEAD:]):
            parts = reading.popleft().result()
            if following is not None:
                reading.append(readers.submit(read, following))
            yield run, parts


def _unresolved(series: Sequence[Series]) -> dict[str, Mask]:
    """The answers that each judge left without a verdict, of the judges that left any."""
    return {one.scorer: one.values == 1 for one in series if one.metric == UNRESOLVED.name}


def load_accuracy(store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard) -> dict[int, RunScores]:
    """Whether each answer is right, of several runs (by their number) and all by one judge, where one has marked what
    code can't: that with the most marks, of equals the one with the most models, then the first by name.

    A run that it has not marked has code's marks alone, and its free text `waiting`. Where no judge has marked any of
    the runs, only what code can compare is scorable.
    """
    series = {run.id: load_series(store, run, items) for run in runs}
    of_run = {run: {one.scorer: one for one in found if one.metric == ACCURACY.name} for run, found in series.items()}
    marks: Counter[str] = Counter()
    for by_scorer in of_run.values():
        marks.update({name: int(one.marked.sum()) for name, one in by_scorer.items() if name != CODE})
    judge = min(marks, key=lambda name: (-marks[name], -name.count(","), name), default=CODE)
    metric = card.metric(ACCURACY.name)
    nothing, none = (np.zeros(len(items), dtype=np.bool_), Series(ACCURACY.name, CODE, np.full(len(items), np.nan)))
    scorable = items.scorable(metric, judge)
    found = {}
    for run in runs:
        own = of_run[run.id].get(judge) or of_run[run.id].get(CODE, none)
        open_ones = _unresolved(series[run.id]).get(judge, nothing)
        outcomes = load_outcomes(store, run, items)
        found[run.id] = run_scores(metric, own, scorable, outcomes, open_ones, baseline=run.system in BASELINES)
    return found


DEFAULT_BASELINES = ("random", "majority")
"""Where no baseline is named, these, as far as the store has them under `text-only`."""

NO_BASELINES = "none"
"""Named instead of a baseline: there is none."""

_BLIND = "text-only"

Latency = Literal["required", "optional"]


@dataclass(frozen=True)
class Contest:
    """Who is ranked, and how what they lack counts.

    `systems` are those with a run under `condition` (all but Proctor's own baselines, where none are named).
    `baselines` are reference systems: they enter no test, no adjustment and no pairwise comparison; one that has no run
    under the condition is taken from `text-only`. `failed` is the policy for what a run lacks, None for the benchmark's
    own (`policies`). `latency` "required" counts an answer without a latency as late, so as wrong; None means so where
    the questions have a time limit and somebody's latencies are known, since a file without them would be in time by
    saying nothing.
    """

    condition: str = "video"
    systems: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    all_items: bool = False
    failed: FailedPolicy | None = None
    latency: Latency | None = None


@dataclass(frozen=True)
class Lacking:
    """What a run lacks on the questions of a board. To `missing` ones its file has no answer, which is wrong;
    `not_asked` were not asked; `failed` ended with an infrastructure error; `unresolved` have no verdict from the
    judge, which was asked, `unmarked` wait for it; `unsupported` are of a format that a baseline does not answer;
    `untimed` have no latency, where it is judged."""

    missing: int = 0
    not_asked: int = 0
    failed: int = 0
    unresolved: int = 0
    unmarked: int = 0
    unsupported: int = 0
    untimed: int = 0

    @property
    def incomplete(self) -> bool:
        """Whether its score depends on the policy."""
        return bool(self.not_asked or self.failed or self.unresolved)


@dataclass(frozen=True)
class Entry:
    """One system's marks under a policy: `right` is 1, 0, or NaN where an item has none. `missing`, `unsupported` and
    `untimed` are as in `Lacking`; `timed` says that untimed answers are wrong."""

    run: Run
    right: NDArray[np.float64]
    marked: RunScores
    missing: Mask
    unsupported: Mask
    untimed: Mask
    baseline: bool
    timed: bool = False

    @property
    def name(self) -> str:
        """The system."""
        return self.run.system

    @property
    def scorer(self) -> str:
        """Who gave the marks that code can't give, or "code"."""
        return self.marked.scorer

    def under(self, policy: FailedPolicy) -> Entry:
        """The same under another policy."""
        right = self.marked.values(policy)
        if self.timed:
            right[self.untimed & ~np.isnan(right)] = ACCURACY.worst
        # A contestant that does not answer a format has chosen so; a baseline is shown on what it answers.
        here = self.unsupported & self.marked.scorable
        right[here] = np.nan if self.baseline else ACCURACY.worst
        return replace(self, right=right)

    def filled(self, value: float) -> NDArray[np.float64]:
        """The marks with one value for all that it lacks."""
        return np.where(self.marked.lacking, value, self.right)

    def supported(self) -> Entry:
        """The same without the items whose format the system does not answer."""
        return replace(self, right=np.where(self.unsupported, np.nan, self.right))

    def lacking(self, here: Mask) -> Lacking:
        """What it lacks there."""
        own = self.unsupported & here if self.baseline else np.zeros_like(here)
        return Lacking(
            missing=int(np.sum(self.missing & here & ~self.marked.not_asked & ~self.unsupported & ~own)),
            not_asked=int(np.sum((self.marked.not_asked | self.marked.unsupported) & here & ~own)),
            failed=int(np.sum(self.marked.failed & here)),
            unresolved=int(np.sum(self.marked.unresolved & here)),
            unmarked=int(np.sum(self.marked.waiting & here)),
            unsupported=int(np.sum(own)),
            untimed=int(np.sum(self.untimed & here)),
        )


def chosen_baselines(runs: Sequence[Run], named: Sequence[str]) -> tuple[str, ...]:
    """The names of the baselines: those named, none for `NO_BASELINES`, else the default ones that are there."""
    if tuple(named) == (NO_BASELINES,):
        return ()
    blind = {run.system for run in runs if run.condition == _BLIND}
    return tuple(named) or tuple(name for name in DEFAULT_BASELINES if name in blind)


def ranked_entries(store: Store, card: BenchmarkCard, items: ItemTable, contest: Contest) -> list[Entry]:
    """The chosen systems and the baselines, by name, under the first policy (see `rank_runs`)."""
    all_runs = chosen_runs(store, card.name)
    runs = {(run.system, run.condition): run for run in all_runs}
    wanted = chosen_baselines(all_runs, contest.baselines)
    known = sorted({system for system, _ in runs})
    for name in (*contest.systems, *wanted):
        if name not in known:
            raise InputError(store.shown, found=f"no run of {name!r}", expected=one_of(known, name))
    chosen = {
        system: run
        for (system, under), run in runs.items()
        if under == contest.condition
        and (system in contest.systems if contest.systems else system not in BASELINES)
        and system not in card.disqualified
    }
    for name in wanted:
        run = runs.get((name, contest.condition)) or runs.get((name, _BLIND))
        if run is None:
            expected = f"one under {contest.condition} or {_BLIND}"
            raise InputError(store.shown, found=f"no such run of the baseline {name}", expected=expected)
        chosen[name] = run
    if not set(chosen) - set(wanted):
        found = f"no run under {contest.condition}"
        raise InputError(store.shown, found=found, expected="a system to rank")
    accuracy = load_accuracy(store, list(chosen.values()), items, card)
    entries = [
        _entry(store, run, items, accuracy[run.id], baseline=system in wanted) for system, run in sorted(chosen.items())
    ]
    timed = _latency_counts(entries, contest.latency)
    policy = policies(contest.failed, card)[0]
    return [replace(one, timed=timed and not one.baseline).under(policy) for one in entries]


def disqualified(store: Store, card: BenchmarkCard, contest: Contest) -> tuple[Ruling, ...]:
    """The decisions on systems that the board would have, by name."""
    asked = {run.system for run in chosen_runs(store, card.name) if run.condition == contest.condition}
    named = asked & set(contest.systems) if contest.systems else asked
    return tuple(card.disqualified[name] for name in sorted(named & card.disqualified.keys()))


def _entry(store: Store, run: Run, items: ItemTable, marked: RunScores, *, baseline: bool) -> Entry:
    outcomes = marked.outcomes
    never = np.bincount(items.format, outcomes.asked, minlength=len(items.formats)) == 0
    unsupported = never[items.format] if outcomes.asked.any() else np.zeros(len(items), dtype=np.bool_)
    judged = run.settings.get("budget_s") is not None
    untimed = outcomes.answered & outcomes.submitted & ~load_timed(store, run, items)
    return Entry(
        run=run,
        right=marked.scores,
        marked=marked,
        missing=~(outcomes.asked & outcomes.submitted),
        unsupported=unsupported | marked.unsupported,
        untimed=untimed if judged else np.zeros_like(untimed),
        baseline=baseline,
    )


def _latency_counts(entries: Sequence[Entry], chosen: Latency | None) -> bool:
    """Whether answers without a latency are late: as chosen, else where some contestant's latencies are known."""
    if chosen is not None:
        return chosen == "required"
    limited = [one for one in entries if not one.baseline and one.run.settings.get("budget_s") is not None]
    return any(not np.all(one.untimed | one.missing) for one in limited)

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
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor import stats
from proctor.core import ACCURACY, FailedPolicy, InputError, Metric, Status
from proctor.judges import UNRESOLVED
from proctor.results.arrays import STATUS_CODES, Ints, ItemTable, Outcomes, Series, load_outcomes, load_repetitions
from proctor.results.facets import FacetSlices
from proctor.runs import CODE, BenchmarkCard, Run, Store, refuse_out_of_range

if TYPE_CHECKING:
    from proctor.core import Item
    from proctor.metrics import ItemSums, MetricOverItems
    from proctor.stats import Difference, Estimate, Floats, Rank, Resampling

BOTH = "both"
"""The policy of a range: no policy is chosen."""

FAILED_POLICIES: dict[FailedPolicy, str] = {
    FailedPolicy.WRONG: "items that failed, were not asked or have no verdict count as wrong",
    FailedPolicy.EXCLUDE: "items that failed, were not asked or have no verdict are left out of the run's own score",
}

_AHEAD = 2  # runs read in advance

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
    """Each repetition, if there are several: then `scores` are means over those that have one, and an item is in a mask if
    any of its repetitions is (a later one that was not asked is not missing: it is not there)."""

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


def over_repetitions(parts: Sequence[RunScores]) -> RunScores:
    """The scores of a run over its repetitions (`parts`, the first one first): of each item the mean. What was asked
    once stays as it is."""
    first = parts[0]
    if len(parts) == 1:
        return first
    later = [replace(one, not_asked=np.zeros_like(one.not_asked)) for one in parts[1:]]
    every = (first, *later)

    def anywhere(name: str) -> Mask:
        found: Mask = np.logical_or.reduce([getattr(one, name) for one in every])
        return found

    failed = np.logical_or.reduce([one.outcomes.where(Status.FAILED) for one in every])
    status = np.where(failed, STATUS_CODES[Status.FAILED.value], first.outcomes.status)
    return replace(
        first,
        scores=_mean_of([np.where(one.scorable, one.scores, np.nan) for one in every]),
        failed=anywhere("failed"),
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
    outcomes, series = repetitions[0].outcomes, repetitions[0].series
    unresolved = [_unresolved(one.series) for one in repetitions]
    nothing = np.zeros(len(items), dtype=np.bool_)
    found = []
    for one in series:
        metric = card.metric(one.metric)
        if metric in card.metrics and np.any(one.scored):
            ends = float(np.nanmin(one.values)), float(np.nanmax(one.values))
            refuse_out_of_range(store, card.name, metric, one.scorer, *ends)
        scorable, none = items.scorable(metric, one.scorer), Series(one.metric, one.scorer, np.full(len(items), np.nan))
        parts = [
            run_scores(metric, _of(each.series, one, none), scorable, each.outcomes, open_ones.get(one.scorer, nothing))
            for each, open_ones in zip(repetitions, unresolved, strict=True)
        ]
        found.append(over_repetitions(parts))
    for metric in card.metrics if unscored else ():
        for scorer in (CODE, "") if metric.name == ACCURACY.name else ("",):
            spoken_for = np.logical_or.reduce([nothing, *(part.scorable for part in found)])
            waiting = items.scorable(metric, scorer) & ~spoken_for
            if np.any(waiting & outcomes.asked):
                empty = Series(metric.name, scorer, np.full(len(items), np.nan))
                found.append(run_scores(metric, empty, waiting, outcomes, nothing))
    return found


def _of(series: Sequence[Series], one: Series, none: Series) -> Series:
    """The series of the same metric and scorer, else `none`."""
    same = (found for found in series if (found.metric, found.scorer) == (one.metric, one.scorer))
    return next(same, none)


def each_run_scores(
    store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard, *, unscored: bool = False
) -> Iterator[tuple[Run, list[RunScores]]]:
    """Each run with its `load_run_scores`. Threads read the next runs in advance."""
    read = partial(load_run_scores, store, items=items, card=card, unscored=unscored)
    with ThreadPoolExecutor(_AHEAD) as readers:
        reading = deque(readers.submit(read, run) for run in runs[:_AHEAD])
        for run, following in zip_longest(runs, runs[_AHEAD:]):
            parts = reading.popleft().result()
            if following is not None:
                reading.append(readers.submit(read, following))
            yield run, parts


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
    series = {run: found[0].series for run, found in repetitions.items()}
    of_run = {run: {one.scorer: one for one in found if one.metric == ACCURACY.name} for run, found in series.items()}
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
        parts = [
            run_scores(
                metric,
                _of(each.series, own, none),
                scorable,
                each.outcomes,
                _unresolved(each.series).get(judge, nothing),
            )
            for each in repetitions[run.id]
        ]
        found[run.id] = over_repetitions(parts)
    return found


_FEW_DRAWS = 100  # where only ranks are needed, which use no draws


@dataclass(frozen=True, eq=False)
class _Answers:
    """The items of a table, all items that they are `among`, the metrics of other packages that are asked for, and a cache
    of sums."""

    items: Sequence[Item]
    among: Sequence[Item]
    more: Sequence[MetricOverItems]
    sums: dict[tuple[tuple[int, ...], bytes, bytes], list[ItemSums]]

    def of(self, parsed: Sequence[Sequence[JsonValue]], rows: Ints, wrong: Sequence[Mask] = ()) -> list[ItemSums]:
        """The sums over these rows of one run, or of several runs stacked. `parsed` are the answered values by run (None: not
        readable), `wrong` the answers of each run that count as completely wrong."""
        from proctor.metrics import item_sums

        bad = (
            np.concatenate([one[rows] for one in wrong]) if wrong else np.zeros(len(rows) * len(parsed), dtype=np.bool_)
        )
        key = tuple(id(one) for one in parsed), rows.tobytes(), bad.tobytes()
        if key not in self.sums:
            asked = [self.items[row] for row in rows] * len(parsed)
            values = [one[row] for one in parsed for row in rows]
            self.sums[key] = item_sums(asked, values, bad.tolist(), among=self.among, more=self.more)
        return self.sums[key]


@dataclass(frozen=True, eq=False)
class RunSums(RunScores):
    """A metric over many items, or a part of one, in one run. `scores` only score which items have an answer (0); the
    statistic is computed from the answered values `parsed`. Answers in `wrong` count as completely wrong."""

    answers: _Answers
    parsed: Sequence[JsonValue]
    key: str
    wrong: Mask

    @property
    def doubtful(self) -> Mask:
        """The answers without a value, if the metric penalises them less than wrong ones."""
        from proctor.metrics import SILENCE_HELPS

        helped = [*SILENCE_HELPS, *(one.metric for one in self.answers.more if one.silence_helps)]
        if self.key.partition(":")[0] not in {metric.name for metric in helped}:
            return super().doubtful
        silent = np.array([one is None for one in self.parsed], dtype=np.bool_)
        return silent & self.scorable & ~np.isnan(self.scores)

    def filled(self, value: float) -> Self:
        """A copy in which lacking items equal the reference; or, if the value is the worst, lacking and doubtful items are
        completely wrong."""
        if value == self.metric.worst:
            return replace(super().filled(0.0), wrong=self.wrong | self.lacking | self.doubtful)
        parsed = [
            one if not lacks or item.reference is None else item.reference.answer
            for one, lacks, item in zip(self.parsed, self.lacking, self.answers.items, strict=True)
        ]
        return replace(super().filled(0.0), parsed=parsed, wrong=self.wrong & ~self.lacking)

    def decided(self, policy: str) -> Self:
        """As of `RunScores`; doubtful answers stay doubtful."""
        return replace(super().decided(policy), wrong=self.wrong)

    def estimates(
        self, policy: FailedPolicy, items: ItemTable, slices: FacetSlices, plan: Resampling
    ) -> list[Estimate]:
        """The metric on the items of each slice; None where it is undefined."""
        there, found = ~np.isnan(self.values(policy)), []
        for code in range(len(slices.facets)):
            rows = np.sort(slices.items[(slices.codes == code) & there[slices.items]])
            groups = items.group[rows]
            one = _sums([self], rows)
            nothing = stats.Estimate(None, None, None, len(rows), len(np.unique(groups)))
            found.append(nothing if one is None else one.estimate(groups, plan).estimate)
        return found

    def difference(self, other: Self, policy: FailedPolicy, items: ItemTable, plan: Resampling) -> Difference:
        """The difference to another run on the items that both have an answer to (for a mean over answered items: that both
        answered)."""
        rows = np.flatnonzero(~np.isnan(self.values(policy)) & ~np.isnan(other.values(policy)))
        groups, one = items.group[rows], _sums([self, other], rows)
        if one is None:
            return stats.Difference(None, None, None, None, len(rows), len(np.unique(groups)), 0, 0, 0)
        (first, second), (here, there) = np.split(one.columns, 2), np.split(one.there, 2)
        first, second, groups = first[here & there], second[here & there], groups[here & there]
        if one.statistic is None:
            return stats.paired_difference(first, second, groups, plan)
        return stats.sums_difference(first, second, groups, one.statistic, one.outcomes, plan)

    @classmethod
    def ranks(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> list[Rank]:
        """The ranks of runs (by system), all with an answer to each `common` item."""
        everyone, rows = list(runs.values()), np.flatnonzero(common)
        one = _sums(everyone, rows)
        if one is None:
            raise InputError(everyone[0].metric.name, found="no value on these items", expected="one to rank by")
        columns, statistic = np.nan_to_num(one.columns), one.statistic
        if statistic is None:  # a mean over the items that have a value
            columns, statistic = np.stack([columns, one.there], axis=1), _mean
        tables, better = np.split(columns, len(everyone)), one.metric.higher_is_better
        some = np.logical_or.reduce(np.split(one.there, len(everyone)))
        return stats.rank_sums(
            [table[some] for table in tables],
            *(list(runs), items.group[rows[some]], statistic, one.outcomes),
            higher_is_better=better,
            plan=plan,
        )

    @classmethod
    def reader(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> Reader:
        """As of `RunScores`; each reading is ranked from scratch."""
        quick = replace(plan, draws=_FEW_DRAWS)

        def ranks(reading: Mapping[str, float]) -> dict[str, int]:
            filled = {name: runs[name].filled(value) for name, value in reading.items()}
            return {rank.name: rank.rank for rank in cls.ranks(filled, items, common, quick)}

        return ranks


def _sums(runs: Sequence[RunSums], rows: Ints) -> ItemSums | None:
    """The sums of the runs' metric over these rows of each run; None where it has no value on them."""
    found = runs[0].answers.of([run.parsed for run in runs], rows, [run.wrong for run in runs])
    return next((item_sums for item_sums in found if item_sums.named.name == runs[0].key), None)


def _mean(sums: Floats) -> Floats:
    return stats.ratio(sums[:, 0], sums[:, 1])


def corpus_names(items: ItemTable) -> list[str]:
    """The built-in metrics over many items that apply to the formats of these items, and all of other packages."""
    from proctor.metrics import CORPUS_METRICS, OVER_ITEMS

    kinds = {items.formats[code] for code in np.unique(items.format)}
    fitting = [metric.name for metric in CORPUS_METRICS if kinds & set(metric.formats)]
    return [*fitting, *(name for name in OVER_ITEMS.names() if not OVER_ITEMS.is_own(name))]


def load_run_sums(
    store: Store,
    runs: Sequence[Run],
    items: ItemTable,
    card: BenchmarkCard,
    metrics: Sequence[str],
    *,
    among: ItemTable | None = None,
) -> dict[int, list[RunSums]]:
    """The named metrics over many items by run number: whole metrics ("class_f1": all its parts) or parts
    ("class_f1:clip"). Names that the benchmark declares are left to it; without other names no answer is read. Each
    format is a part where items of several formats have the metric, and so is each scale. If `items` is a subset, `among`
    is the whole table, which determines the names of parts."""
    found: dict[int, list[RunSums]] = {run.id: [] for run in runs}
    wanted = set(metrics) - {metric.name for metric in card.metrics}
    asked, more = _over_items(wanted)
    if not asked:
        return found
    by_id = {item.id: item for item in store.items(card.name)}
    everything = [by_id[name] for name in (among or items).ids]
    answers = _Answers([by_id[name] for name in items.ids], everything, more, {})
    there = {item.answer.kind for item in everything if item.has_answer}
    kinds = sorted(there & {kind for metric in asked for kind in metric.formats})
    of_kind = _rows_of(kinds, answers.items, np.array(items.formats)[items.format])
    for run in runs:
        parsed, outcomes = _parsed(store, run, items), load_outcomes(store, run, items)
        for kind, scorable in of_kind.items():
            for item_sums in answers.of([parsed], np.flatnonzero(scorable)):
                others = set(item_sums.metric.formats) & set(kinds) - {kind}
                part = ", ".join(filter(None, (kind, item_sums.part))) if others else item_sums.part
                shown = replace(item_sums, part=part).named
                if wanted & {item_sums.metric.name, shown.name}:
                    found[run.id].append(_run_sums(item_sums, shown, scorable, outcomes, answers, parsed))
    return found


def _over_items(names: set[str]) -> tuple[list[Metric], Sequence[MetricOverItems]]:
    """The metrics over many items that these names, or the names of parts, are of; and those of other packages."""
    if not names:
        return [], ()
    from proctor.metrics import CORPUS_METRICS, installed_over_items

    whole = {name.partition(":")[0] for name in names}
    more = installed_over_items(whole)
    return [*(one for one in CORPUS_METRICS if one.name in whole), *(one.metric for one in more)], more


def _rows_of(kinds: Sequence[str], items: Sequence[Item], format_of: NDArray[Any]) -> dict[str, NDArray[np.bool_]]:
    """The items with a reference answer by kind of format."""
    referred = np.array([item.has_answer for item in items], dtype=np.bool_)
    return {kind: referred & (format_of == kind) for kind in kinds}


def _parsed(store: Store, run: Run, items: ItemTable) -> list[JsonValue]:
    """The parsed answers of a run in the order of the items; None without one."""
    known = store.answers(run)
    answered = {name: answer.parsed for name, answer in known.items() if answer.status is Status.ANSWERED}
    return [answered.get(name) for name in items.ids]


def _run_sums(
    sums: ItemSums,
    shown: Metric,
    scorable: NDArray[np.bool_],
    outcomes: Outcomes,
    answers: _Answers,
    parsed: Sequence[JsonValue],
) -> RunSums:
    """A run's sums of a metric on the scorable items, under the name that is shown."""
    given = Series("", CODE, np.where(outcomes.answered, 0.0, np.nan))
    own_rows = scorable
    if sums.statistic is not None:  # a mean leaves out items without a value in this run
        own_rows = np.isin(np.arange(len(scorable)), np.flatnonzero(scorable)[sums.there])
    base = run_scores(shown, given, own_rows, outcomes, np.zeros_like(scorable))
    own: Any = vars(base) | {"answers": answers, "parsed": parsed, "key": sums.named.name}
    return RunSums(**own, wrong=base.lacking)

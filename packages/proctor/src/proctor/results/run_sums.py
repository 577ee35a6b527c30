"""Metrics over many items (corpus metrics, such as balanced accuracy) in runs: their sums over items, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor import stats
from proctor.core import FailedPolicy, InputError, Metric, Status
from proctor.results.arrays import Ints, ItemTable, Outcomes, Series, load_outcomes
from proctor.results.facets import FacetSlices
from proctor.results.run_scores import Mask, Reader, RunScores, run_scores
from proctor.runs import CODE, BenchmarkCard, Run, Store

if TYPE_CHECKING:
    from proctor.core import Item
    from proctor.metrics import ItemSums, MetricOverItems
    from proctor.stats import Difference, Estimate, Floats, Rank, Resampling


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
    there = {item.answer.kind for item in everything if item.reference is not None}
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
    """The items with a reference by kind of format."""
    referred = np.array([item.reference is not None for item in items], dtype=np.bool_)
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

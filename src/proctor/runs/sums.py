"""Metrics over many items (`proctor.metrics.item_sums`) of stored runs: in results, comparisons and ranks as metrics of
single items are, but computed from the answers when somebody names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import JsonValue

from proctor.core import FailedPolicy, InputError, Item, Status
from proctor.runs.run_scores import Mask, Reader, RunScores, run_scores
from proctor.runs.schema import BenchmarkCard
from proctor.runs.store import Run, Store
from proctor.runs.table import BASELINES, CODE, FacetSlices, Ints, ItemTable, Series, load_outcomes
from proctor.stats import (
    Difference,
    Estimate,
    Floats,
    Rank,
    Resampling,
    paired_difference,
    rank_sums,
    ratio,
    sums_difference,
)

if TYPE_CHECKING:
    from proctor.metrics import ItemSums

_FEW = 100  # draws where only ranks are asked for, which need none


@dataclass(frozen=True, eq=False)
class _Answers:
    """The items of a table, `among` which others there are, and the values that runs said (None: no readable
    answer)."""

    items: Sequence[Item]
    among: Sequence[Item]
    sums: dict[tuple[tuple[int, ...], bytes, bytes], list[ItemSums]]

    def of(self, said: Sequence[Sequence[JsonValue]], rows: Ints, wrong: Sequence[Mask] = ()) -> list[ItemSums]:
        """What is summed up over these rows of one run, or of several under each other; `wrong` are each run's answers
        that are read as wrong as can be."""
        from proctor.metrics import item_sums

        bad = np.concatenate([one[rows] for one in wrong]) if wrong else np.zeros(len(rows) * len(said), dtype=np.bool_)
        key = tuple(id(one) for one in said), rows.tobytes(), bad.tobytes()
        if key not in self.sums:
            asked = [self.items[row] for row in rows] * len(said)
            values = [one[row] for one in said for row in rows]
            self.sums[key] = item_sums(asked, values, bad.tolist(), among=self.among)
        return self.sums[key]


@dataclass(frozen=True, eq=False)
class RunSums(RunScores):
    """A metric over many items, or a part of one, in one run. `scores` say only which items have an answer (0); the
    statistic is computed from what was `said`. `wrong` are read as wrong as can be, whatever was said."""

    answers: _Answers
    said: Sequence[JsonValue]
    key: str
    wrong: Mask

    @property
    def doubtful(self) -> Mask:
        """The answers without a value, where the metric does them less harm than wrong ones."""
        from proctor.metrics import SILENCE_HELPS

        if self.key.partition(":")[0] not in {one.name for one in SILENCE_HELPS}:
            return super().doubtful
        silent = np.array([one is None for one in self.said], dtype=np.bool_)
        return silent & self.scorable & ~np.isnan(self.scores)

    def filled(self, value: float) -> Self:
        """The same with the reference for all that it lacks; or where the value is the worst, with all that it lacks and
        all that is doubtful read as wrong as can be."""
        if value == self.metric.worst:
            return replace(super().filled(0.0), wrong=self.wrong | self.lacking | self.doubtful)
        said = [
            one if not lacks or item.reference is None else item.reference.answer
            for one, lacks, item in zip(self.said, self.lacking, self.answers.items, strict=True)
        ]
        return replace(super().filled(0.0), said=said, wrong=self.wrong & ~self.lacking)

    def decided(self, policy: str) -> Self:
        """As of `RunScores`; what is doubtful stays so."""
        return replace(super().decided(policy), wrong=self.wrong)

    def estimates(
        self, policy: FailedPolicy, items: ItemTable, slices: FacetSlices, plan: Resampling
    ) -> list[Estimate]:
        """What it is worth on the items of each slice; None where it is not defined there."""
        there, found = ~np.isnan(self.values(policy)), []
        for code in range(len(slices.facets)):
            rows = np.sort(slices.items[(slices.codes == code) & there[slices.items]])
            groups = items.group[rows]
            one = _sums([self], rows)
            nothing = Estimate(None, None, None, len(rows), len(np.unique(groups)))
            found.append(nothing if one is None else one.estimate(groups, plan).estimate)
        return found

    def difference(self, other: Self, policy: FailedPolicy, items: ItemTable, plan: Resampling) -> Difference:
        """How far it is ahead of another run, on the items that both have an answer to (of the mean over answered ones:
        that both answered)."""
        rows = np.flatnonzero(~np.isnan(self.values(policy)) & ~np.isnan(other.values(policy)))
        groups, one = items.group[rows], _sums([self, other], rows)
        if one is None:
            return Difference(None, None, None, None, len(rows), len(np.unique(groups)), 0, 0, 0)
        (first, second), (here, there) = np.split(one.columns, 2), np.split(one.there, 2)
        first, second, groups = first[here & there], second[here & there], groups[here & there]
        if one.statistic is None:
            return paired_difference(first, second, groups, plan)
        return sums_difference(first, second, groups, one.statistic, one.outcomes, plan)

    @classmethod
    def ranks(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> list[Rank]:
        """The ranks of runs, by their systems, that have an answer to all of these items."""
        everyone, rows = list(runs.values()), np.flatnonzero(common)
        one = _sums(everyone, rows)
        if one is None:
            raise InputError(everyone[0].metric.name, found="no value on these items", expected="one to rank by")
        columns, statistic = np.nan_to_num(one.columns), one.statistic
        if statistic is None:  # a mean over the items that have a value
            columns, statistic = np.stack([columns, one.there], axis=1), _mean
        tables, better = np.split(columns, len(everyone)), one.metric.higher_is_better
        some = np.logical_or.reduce(np.split(one.there, len(everyone)))
        return rank_sums(
            [table[some] for table in tables],
            *(list(runs), items.group[rows[some]], statistic, one.outcomes),
            higher_is_better=better,
            plan=plan,
        )

    @classmethod
    def reader(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> Reader:
        """As of `RunScores`; every reading is ranked again."""
        quick = replace(plan, draws=_FEW)

        def ranks(reading: Mapping[str, float]) -> dict[str, int]:
            filled = {name: runs[name].filled(value) for name, value in reading.items()}
            return {one.name: one.rank for one in cls.ranks(filled, items, common, quick)}

        return ranks


def _sums(runs: Sequence[RunSums], rows: Ints) -> ItemSums | None:
    """What the metric of these runs sums up over these rows of each; None where it has no value on them."""
    found = runs[0].answers.of([one.said for one in runs], rows, [one.wrong for one in runs])
    return next((one for one in found if one.named.name == runs[0].key), None)


def _mean(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 1])


def corpus_names(items: ItemTable) -> list[str]:
    """The metrics over many items that the formats of these items have."""
    from proctor.metrics import CORPUS_METRICS

    kinds = {items.formats[code] for code in np.unique(items.format)}
    return [one.name for one in CORPUS_METRICS if kinds & set(one.formats)]


def load_run_sums(
    store: Store,
    runs: Sequence[Run],
    items: ItemTable,
    card: BenchmarkCard,
    metrics: Sequence[str],
    *,
    among: ItemTable | None = None,
) -> dict[int, list[RunSums]]:
    """By the run's number, the metrics over many items that are named, a metric by itself ("class_f1": all its parts)
    or a part of it ("class_f1:clip"). None where none is named: then no answer is read. A name that the benchmark
    declares stays its own; where items of several formats have a metric, each format is a part, and each scale of
    several. `among` are all items, where these are some of them: parts have the names that they have there."""
    found: dict[int, list[RunSums]] = {run.id: [] for run in runs}
    if not (wanted := set(metrics) - {one.name for one in card.metrics}):
        return found
    from proctor.metrics import CORPUS_METRICS

    if not (asked := [one for one in CORPUS_METRICS if one.name in {name.partition(":")[0] for name in wanted}]):
        return found
    by_id = {item.id: item for item in store.items(card.name)}
    everything = [by_id[name] for name in (among or items).ids]
    answers = _Answers([by_id[name] for name in items.ids], everything, {})
    referred = np.array([item.reference is not None for item in answers.items], dtype=np.bool_)
    format_of = np.array(items.formats)[items.format]
    there = {item.answer.kind for item in everything if item.reference is not None}
    kinds = sorted(there & {kind for one in asked for kind in one.formats})
    for run in runs:
        known, outcomes = store.answers(run), load_outcomes(store, run, items)
        said = [
            known[name].parsed if name in known and known[name].status is Status.ANSWERED else None
            for name in items.ids
        ]
        given = Series("", CODE, np.where(outcomes.answered, 0.0, np.nan))
        for kind in kinds:
            scorable = referred & (format_of == kind)
            rows = np.flatnonzero(scorable)
            for one in answers.of([said], rows):
                others = set(one.metric.formats) & set(kinds) - {kind}
                shown = replace(one, part=", ".join(filter(None, (kind, one.part)))) if others else one
                if wanted & {one.metric.name, shown.named.name}:
                    nothing, baseline, own_rows = np.zeros_like(scorable), run.system in BASELINES, scorable
                    if one.statistic is not None:  # of a mean those are left out that have no value in this run
                        own_rows = np.isin(np.arange(len(scorable)), rows[one.there])
                    base = run_scores(shown.named, given, own_rows, outcomes, nothing, baseline=baseline)
                    own: Any = vars(base) | {"answers": answers, "said": said, "key": one.named.name}
                    found[run.id].append(RunSums(**own, wrong=base.lacking))
    return found

"""Metrics over many items (`proctor.metrics.item_sums`) of stored runs: in results, comparisons and ranks as metrics of
single items are, but computed from the answers when somebody names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

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
    """The items of a table, and the values that runs said (None: no readable answer, as wrong as can be)."""

    items: Sequence[Item]
    sums: dict[tuple[tuple[int, ...], bytes], list[ItemSums]]

    def of(self, said: Sequence[Sequence[JsonValue]], rows: Ints) -> list[ItemSums]:
        """What is summed up over these rows of one run, or of several under each other."""
        from proctor.metrics import item_sums

        key = tuple(id(one) for one in said), rows.tobytes()
        if key not in self.sums:
            asked = [self.items[row] for row in rows] * len(said)
            self.sums[key] = item_sums(asked, [one[row] for one in said for row in rows])
        return self.sums[key]


@dataclass(frozen=True, eq=False)
class RunSums(RunScores):
    """A metric over many items, or a part of one, in one run. `scores` say only which items have an answer (0); the
    statistic is computed from what was `said`."""

    answers: _Answers
    said: Sequence[JsonValue]
    key: str

    def filled(self, value: float) -> Self:
        """The same with the reference for all that it lacks, or nothing where the value is the worst."""
        said = [
            one
            if not lacks
            else None
            if value == self.metric.worst or item.reference is None
            else item.reference.answer
            for one, lacks, item in zip(self.said, self.lacking, self.answers.items, strict=True)
        ]
        return replace(super().filled(0.0), said=said)

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
        first, second = np.split(one.columns, 2)
        if one.statistic is not None:
            return sums_difference(first, second, groups, one.statistic, one.outcomes, plan)
        both = ~np.isnan(first) & ~np.isnan(second)
        return paired_difference(first[both], second[both], groups[both], plan)

    @classmethod
    def ranks(cls, runs: Mapping[str, Self], items: ItemTable, common: Mask, plan: Resampling) -> list[Rank]:
        """The ranks of runs, by their systems, that have an answer to all of these items."""
        everyone, rows = list(runs.values()), np.flatnonzero(common)
        one = _sums(everyone, rows)
        if one is None:
            raise InputError(everyone[0].metric.name, found="no value on these items", expected="one to rank by")
        columns, statistic = one.columns, one.statistic
        if statistic is None:  # a mean over the items that have a value
            columns, statistic = np.stack([np.nan_to_num(columns), ~np.isnan(columns)], axis=1), _mean
        tables, better = np.split(columns, len(everyone)), one.metric.higher_is_better
        return rank_sums(
            tables, list(runs), items.group[rows], statistic, one.outcomes, higher_is_better=better, plan=plan
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
    found = runs[0].answers.of([one.said for one in runs], rows)
    return next((one for one in found if one.named.name == runs[0].key), None)


def _mean(sums: Floats) -> Floats:
    return ratio(sums[:, 0], sums[:, 1])


def corpus_names(items: ItemTable) -> list[str]:
    """The metrics over many items that the formats of these items have."""
    from proctor.metrics import CORPUS_METRICS

    kinds = {items.formats[code] for code in np.unique(items.format)}
    return [one.name for one in CORPUS_METRICS if kinds & set(one.formats)]


def load_run_sums(
    store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard, metrics: Sequence[str]
) -> dict[int, list[RunSums]]:
    """By the run's number, the metrics over many items that are named, a metric by itself ("class_f1": all its parts)
    or a part of it ("class_f1:clip"). None where none is named: then no answer is read. A name that the benchmark
    declares stays its own; where items of several formats have a metric, each format is a part."""
    found: dict[int, list[RunSums]] = {run.id: [] for run in runs}
    if not (wanted := set(metrics) - {one.name for one in card.metrics}):
        return found
    from proctor.metrics import CORPUS_METRICS

    if not (asked := [one for one in CORPUS_METRICS if one.name in {name.partition(":")[0] for name in wanted}]):
        return found
    by_id = {item.id: item for item in store.items(card.name)}
    answers = _Answers([by_id[name] for name in items.ids], {})
    referred = np.array([item.reference is not None for item in answers.items], dtype=np.bool_)
    format_of = np.array(items.formats)[items.format]
    kinds = sorted(set(format_of[referred].tolist()) & {kind for one in asked for kind in one.formats})
    for run in runs:
        known, outcomes = store.answers(run), load_outcomes(store, run, items)
        said = [
            known[name].parsed if name in known and known[name].status is Status.ANSWERED else None
            for name in items.ids
        ]
        given = Series("", CODE, np.where(outcomes.answered, 0.0, np.nan))
        for kind in kinds:
            scorable = referred & (format_of == kind)
            for one in answers.of([said], np.flatnonzero(scorable)):
                others = set(one.metric.formats) & set(kinds) - {kind}
                shown = replace(one, part=", ".join(filter(None, (kind, one.part)))) if others else one
                if wanted & {one.metric.name, shown.named.name}:
                    nothing, baseline = np.zeros_like(scorable), run.system in BASELINES
                    base = run_scores(shown.named, given, scorable, outcomes, nothing, baseline=baseline)
                    found[run.id].append(RunSums(**vars(base), answers=answers, said=said, key=one.named.name))
    return found

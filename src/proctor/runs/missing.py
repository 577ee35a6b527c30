"""What a run lacks, and what its scores are under a policy: the one place that decides it.

A run lacks a score where asking failed (an infrastructure error), where an item was not asked, and where a judge gave
no verdict. With any of these it is *incomplete*: its score depends on the policy, and a verdict about it holds only
where it is the same under every policy in question (`policies`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, FailedPolicy, Metric, Status
from proctor.judges import UNRESOLVED
from proctor.runs.baselines import FLOOR
from proctor.runs.cards import BenchmarkCard
from proctor.runs.store import Run, Store
from proctor.runs.table import (
    CODE,
    ItemTable,
    Outcomes,
    Series,
    load_accuracy,
    load_outcomes,
    load_raw_series,
    load_series,
)

FAILED_POLICIES: dict[FailedPolicy, str] = {
    FailedPolicy.WRONG: "items that failed, were not asked or have no verdict count as wrong",
    FailedPolicy.EXCLUDE: "items that failed, were not asked or have no verdict are left out of the run's own score",
}

Mask = NDArray[np.bool_]


def policies(chosen: FailedPolicy | None, card: BenchmarkCard) -> tuple[FailedPolicy, ...]:
    """The policies under which scores are computed: the chosen one, else the benchmark's own, else both.

    Where there are two, the score of an incomplete run is a range, and a verdict must be the same under both.
    """
    one = chosen or card.failed
    return tuple(FailedPolicy) if one is None else (FailedPolicy(one),)


@dataclass(frozen=True)
class Marked:
    """One metric by one scorer in one run, and why items have no score. All arrays have one entry an item.

    `markable` are the items that the metric marks. Each of them has a score in `scores` or is in exactly one of the
    masks: `failed` (an infrastructure error), `not_asked`, `unresolved` (the judge was asked and gave no verdict),
    `waiting` (the judge is still to be asked) and `unsupported` (a baseline does not answer its format);
    the last two are neither right nor wrong under any policy.
    """

    metric: Metric
    scorer: str
    scores: NDArray[np.float64]
    markable: Mask
    failed: Mask
    not_asked: Mask
    unresolved: Mask
    waiting: Mask
    unsupported: Mask

    @property
    def lacking(self) -> Mask:
        """The items whose value is a matter of the policy."""
        return self.failed | self.not_asked | self.unresolved

    @property
    def complete(self) -> bool:
        """Whether every item that the metric marks has a score."""
        return not bool(np.any(self.lacking | self.waiting | self.unsupported))

    def values(self, policy: FailedPolicy) -> NDArray[np.float64]:
        """The scores under a policy; NaN where an item has none.

        Whether a judge came to a verdict (`unresolved`) is no score of the system: it has no worst value.
        """
        values = np.where(self.markable, self.scores, np.nan)
        if policy is FailedPolicy.WRONG and self.metric.name != UNRESOLVED.name:
            values[self.lacking] = self.metric.worst
        return values


def marked(
    metric: Metric, series: Series, markable: Mask, outcomes: Outcomes, unresolved: Mask, *, baseline: bool = False
) -> Marked:
    """A series of a run with what it lacks; `unresolved` are the answers that its judge gave no verdict on.

    A `baseline` of the floor is asked all that it supports, so that what it was not asked is unsupported.
    """
    without = markable & ~series.marked
    answered, not_asked = outcomes.answered & without, ~outcomes.asked & without
    nothing = np.zeros_like(without)
    return Marked(
        metric=metric,
        scorer=series.scorer,
        scores=series.values,
        markable=markable,
        failed=outcomes.where(Status.FAILED) & without,
        not_asked=nothing if baseline else not_asked,
        unresolved=answered & unresolved,
        waiting=answered & ~unresolved,
        unsupported=not_asked if baseline else nothing,
    )


def unresolved_by_scorer(series: Sequence[Series]) -> dict[str, Mask]:
    """The answers that each judge left without a verdict, of the judges that left any."""
    return {one.scorer: one.values == 1 for one in series if one.metric == UNRESOLVED.name}


def load_marked(store: Store, run: Run, items: ItemTable, card: BenchmarkCard) -> list[Marked]:
    """Every metric and scorer of a run, with what it lacks."""
    outcomes, found = load_outcomes(store, run, items), load_series(store, run, items)
    unresolved = unresolved_by_scorer(found)
    nothing = np.zeros(len(items.ids), dtype=np.bool_)
    return [
        marked(
            card.metric(one.metric),
            one,
            items.markable(card.metric(one.metric), one.scorer),
            outcomes,
            unresolved.get(one.scorer, nothing),
            baseline=run.system in FLOOR,
        )
        for one in found
    ]


def load_marked_accuracy(store: Store, runs: Sequence[Run], items: ItemTable, card: BenchmarkCard) -> dict[int, Marked]:
    """Whether each answer is right, of several runs (by their number) and all by the same judge (`load_accuracy`).

    Where no judge has marked any of the runs, only what code can compare is markable. Else a run that the judge has
    not marked has its free text `waiting`.
    """
    chosen = load_accuracy(store, runs, items)
    judge = next((one.scorer for one in chosen.values() if one.scorer != CODE), CODE)
    metric = card.metric(ACCURACY.name)
    markable = items.markable(metric, judge)
    nothing = np.zeros(len(items.ids), dtype=np.bool_)
    found = {}
    for run in runs:
        unresolved = unresolved_by_scorer(load_raw_series(store, run, items))
        outcomes = load_outcomes(store, run, items)
        found[run.id] = marked(
            metric, chosen[run.id], markable, outcomes, unresolved.get(judge, nothing), baseline=run.system in FLOOR
        )
    return found

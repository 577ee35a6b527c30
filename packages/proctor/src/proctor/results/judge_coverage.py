"""Which scorer has scored which run, and what is without a verdict, by cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import func, select

from proctor.core import ACCURACY, Metric
from proctor.judges import JUDGE_FLAGS, UNRESOLVED
from proctor.results.arrays import load_items, load_outcomes, load_raw_series
from proctor.runs import CODE, Run, Store, driver_rows, schema


@dataclass(frozen=True)
class ScorerCoverage:
    """How far one scorer has come with one metric and run. `answers` are the run's first answers that the metric applies to
    and that did not fail; `scored` of them have a score. `unresolved` are those that a judge left without a verdict, by
    cause; the rest (`waiting`) has no score and no cause: it was not asked yet, or the call failed, of which a store keeps
    no reason."""

    metric: Metric
    scorer: str
    run: Run
    answers: int
    scored: int
    unresolved: Mapping[str, int] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """The answers without a score and without a cause."""
        return max(0, self.answers - self.scored - sum(self.unresolved.values()))


def scorer_coverage(store: Store, benchmark: str, runs: Sequence[Run]) -> list[ScorerCoverage]:
    """The coverage of each metric by each scorer that gave it, or left an answer without a verdict, in any of these runs: by
    metric in the benchmark's order, scorer and run. Flags of judges are no metrics; runs without an answer to score by a
    metric are left out."""
    card = store.card(benchmark)
    items = load_items(store, card, all_items=True)
    series = {run.id: {(one.metric, one.scorer): one for one in load_raw_series(store, run, items)} for run in runs}
    keys = {key for some in series.values() for key in some if key[0] not in JUDGE_FLAGS}
    silent = {scorer for some in series.values() for name, scorer in some if name == UNRESOLVED.name}
    keys |= {(name, scorer) for scorer in silent for name in card.gives.get(scorer, ()) if name not in JUDGE_FLAGS}
    open_ones = _unresolved(store, runs)
    order = {metric.name: row for row, metric in enumerate(card.metrics)}
    found = []
    for name, scorer in sorted(keys, key=lambda key: (order.get(key[0], len(order)), key)):
        metric = card.metric(name)
        scorable = items.scorable(metric, scorer)
        if name == ACCURACY.name and scorer != CODE:  # a judge is asked about what code can't compare
            scorable = scorable & ~items.scorable(metric, CODE)
        for run in runs:
            there = scorable & load_outcomes(store, run, items).answered
            if not there.any():
                continue
            own = series[run.id].get((name, scorer))
            scored = 0 if own is None else int(np.count_nonzero(own.scored & there))
            causes = open_ones.get((run.id, scorer), {})
            found.append(ScorerCoverage(metric, scorer, run, int(np.count_nonzero(there)), scored, causes))
    return found


def _unresolved(store: Store, runs: Sequence[Run]) -> dict[tuple[int, str], dict[str, int]]:
    """By run and judge, how many first answers it left without a verdict, by cause."""
    table = schema.scores
    own = table.c.run.in_([run.id for run in runs]), table.c.metric == UNRESOLVED.name, table.c.value == 1
    query = select(table.c.run, table.c.scorer, table.c.label, func.count()).where(*own, table.c.repetition == 0)
    found: dict[tuple[int, str], dict[str, int]] = {}
    with store.reading() as connection:
        for run, scorer, label, count in driver_rows(
            connection, query.group_by(table.c.run, table.c.scorer, table.c.label)
        ):
            found.setdefault((run, scorer), {})[label] = count
    return found

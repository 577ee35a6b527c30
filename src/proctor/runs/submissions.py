"""Benchmarks whose organisers take scores of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.core import Item, Status
from proctor.runs.judgements import judgements_of
from proctor.runs.store import Run, Store


@dataclass(frozen=True)
class ScoredAnswer:
    """An answer of a system with one scorer's scores by dimension."""

    item: Item
    system: str
    text: str
    values: Mapping[str, float]


def scored_answers(store: Store, benchmark: str, runs: Sequence[Run], scorer: str) -> list[ScoredAnswer]:
    """Every answer of these runs that is there, with the scorer's scores (none, where it gave none), by item and
    system."""
    said = {(one.item, one.system): one.values for one in judgements_of(store, benchmark, runs, scorer)}
    answers = {run.system: store.answers(run) for run in runs}
    return [
        ScoredAnswer(item, system, own[item.id].text, said.get((item.id, system), {}))
        for item in store.items(benchmark)
        for system, own in sorted(answers.items())
        if item.id in own and own[item.id].status is not Status.FAILED
    ]

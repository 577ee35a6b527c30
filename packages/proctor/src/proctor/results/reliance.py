"""Reliance on the evidence: what a system loses when the evidence is hidden, beyond what it loses when as much elsewhere is.

It is the paired difference accuracy(`occlude-elsewhere`) − accuracy(`occlude-evidence`) over the items that have a score
under both, so that black as such, and items without evidence or without room elsewhere, count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proctor.core import ACCURACY, FailedPolicy
from proctor.results.arrays import ItemTable, load_items
from proctor.results.comparison import Comparison, compare_runs
from proctor.results.results import CONTROL, HIDDEN, Options, Results
from proctor.results.run_scores import RunScores, load_run_scores
from proctor.runs import BenchmarkCard, Run, Store, chosen_runs


@dataclass(frozen=True)
class Reliance:
    """The reliance of one system by one scorer of accuracy, from −1 to 1: 0 says that it does as well without the evidence.

    `comparison` is that of its runs under `occlude-elsewhere` (first) and `occlude-evidence` (second), with interval and
    test over groups; `elsewhere` and `evidence` are the accuracies on its items. They are None where lacking scores leave a
    range. `unsupported` items were not asked under one or both conditions.
    """

    comparison: Comparison
    elsewhere: float | None
    evidence: float | None
    unsupported: int

    @property
    def system(self) -> str:
        """The system."""
        return self.comparison.first.system

    @property
    def scorer(self) -> str:
        """Who scored accuracy."""
        return self.comparison.scorer

    def to_json(self) -> dict[str, Any]:
        """The figures as plain data; `difference` is the reliance."""
        kept = ("difference", "ci_low", "ci_high", "p", "p_holm", "adjusted_for", "decides", "n", "groups", "policy")
        plain = self.comparison.to_json()
        more = {"difference_if_wrong", "difference_if_excluded", "scored_only_first", "scored_only_second"}
        return {
            "elsewhere": self.elsewhere,
            "evidence": self.evidence,
            **{name: value for name, value in plain.items() if name in {*kept, *more}},
            "unsupported": self.unsupported,
            "level": self.comparison.level,
        }


def reliances(store: Store, benchmark: str, runs: Sequence[Run], options: Options = Options()) -> tuple[Reliance, ...]:
    """The reliance of each system that has runs under both conditions among these, by each scorer of accuracy, in the order of
    the runs. p is adjusted by Holm for the systems. Empty where no system has both, or none is scored."""
    under = {(run.system, run.condition): run for run in runs}
    systems = dict.fromkeys(run.system for run in runs)
    pairs = [(under[name, CONTROL], under[name, HIDDEN]) for name in systems if _has_both(under, name)]
    card = store.card(benchmark)
    items = load_items(store, card, all_items=options.all_items)
    scored = {run.id: _accuracies(store, run, items, card) for pair in pairs for run in pair}
    pairs = [(first, second) for first, second in pairs if scored[first.id].keys() & scored[second.id].keys()]
    if not pairs:
        return ()
    found = []
    for one in compare_runs(store, benchmark, pairs, replace(options, by=()), metrics=(ACCURACY.name,)):
        sides = [scored[under[one.first.system, name].id][one.scorer] for name in (CONTROL, HIDDEN)]
        found.append(_reliance(one, sides))
    return tuple(found)


def _has_both(under: dict[tuple[str, str], Run], system: str) -> bool:
    return (system, CONTROL) in under and (system, HIDDEN) in under


def _accuracies(store: Store, run: Run, items: ItemTable, card: BenchmarkCard) -> dict[str, RunScores]:
    return {one.scorer: one for one in load_run_scores(store, run, items, card) if one.metric.name == ACCURACY.name}


def _reliance(comparison: Comparison, sides: Sequence[RunScores]) -> Reliance:
    unsupported = int(np.sum((sides[0].unsupported | sides[1].unsupported) & sides[0].scorable))
    if comparison.difference.value is None:
        return Reliance(comparison, None, None, unsupported)
    policy = FailedPolicy.WRONG if comparison.policy == FailedPolicy.WRONG else FailedPolicy.EXCLUDE
    values = [side.values(policy) for side in sides]
    both = ~np.isnan(values[0]) & ~np.isnan(values[1])
    means = [float(value[both].mean()) if both.any() else None for value in values]
    return Reliance(comparison, means[0], means[1], unsupported)


def with_reliance(store: Store, benchmark: str, found: Results) -> Results:
    """The results with the reliance of their systems; unchanged where they are split by facets, or restricted to other
    metrics."""
    options = found.options
    if options.by or (options.metrics and ACCURACY.name not in options.metrics):
        return found
    runs = chosen_runs(store, benchmark, options.systems, options.conditions)
    return replace(found, reliance=reliances(store, benchmark, runs, options))

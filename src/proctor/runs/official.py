"""A benchmark's own summary of the runs in a store."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from proctor.core import BenchmarkReader, FailedPolicy, OfficialFigure, Status
from proctor.runs.missing import load_marked_accuracy, policies
from proctor.runs.results import Options, chosen_runs
from proctor.runs.store import Store
from proctor.runs.table import load_items, load_outcomes


@dataclass(frozen=True)
class OfficialSummary:
    """One run's summary under one policy for what it lacks: under "wrong" `lacking` questions (failed, not asked, no
    verdict) count as wrong. `left_out` questions have no mark: those that lack one under "exclude", and those that wait
    for a judge. `marked_by` is the judge behind the marks that code can't give, or "code"."""

    system: str
    condition: str
    figures: list[OfficialFigure]
    left_out: int
    marked_by: str
    policy: str = ""
    lacking: int = 0

    def to_json(self) -> list[dict[str, Any]]:
        """One object a figure, as programs read it."""
        run: dict[str, Any] = {"system": self.system, "condition": self.condition}
        run |= {"left_out": self.left_out, "marked_by": self.marked_by}
        run |= {"policy": self.policy, "lacking": self.lacking}
        return [run | asdict(figure) for figure in self.figures]


def official_summaries(
    store: Store, benchmark: str, reader: BenchmarkReader, *, official: bool, options: Options | None = None
) -> list[OfficialSummary]:
    """The summary of every chosen run, from the marks that the store keeps; of a run that lacks some and where nothing
    is decided, one under each policy. Of `options` count systems, conditions, `failed`, draws and seed."""
    options = options or Options()
    card = store.card(benchmark)
    items = load_items(store, card)
    found = []
    runs = chosen_runs(store, benchmark, options.systems, options.conditions)
    accuracy = load_marked_accuracy(store, runs, items, card)
    for run in runs:
        own = accuracy[run.id]
        lacking = int(own.lacking.sum())
        late = load_outcomes(store, run, items).where(Status.TIMED_OUT)
        for policy in policies(options.failed, card) if lacking else (FailedPolicy.EXCLUDE,):
            right = own.values(policy)
            there = np.flatnonzero(~np.isnan(right))
            figures = reader.figures(
                [items.groups[items.group[place]] for place in there],
                [items.tags[items.tags_code[place]] for place in there],
                right[there].tolist(),
                int(late.sum()),
                official=official,
                draws=options.draws,
                seed=options.seed,
            )
            found.append(
                OfficialSummary(
                    run.system,
                    run.condition,
                    figures,
                    left_out=len(items.ids) - len(there),
                    marked_by=own.scorer,
                    policy=policy.value if lacking else "",
                    lacking=lacking,
                )
            )
    return found

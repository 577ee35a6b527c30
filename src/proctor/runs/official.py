"""A benchmark's own summary of the runs in a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from proctor.core import HasOfficialFigures, OfficialFigure, Status
from proctor.runs.results import chosen_runs
from proctor.runs.store import Store
from proctor.runs.table import load_accuracy, load_items, load_outcomes

__all__ = ["OfficialSummary", "official_summaries"]


@dataclass(frozen=True)
class OfficialSummary:
    """One run's summary; `left_out` questions have no mark yet (failed, or for a judge to give); `marked_by` is the
    judge behind the marks that code can't give, or "code"."""

    system: str
    condition: str
    figures: list[OfficialFigure]
    left_out: int
    marked_by: str

    def to_json(self) -> list[dict[str, Any]]:
        """One object a figure, as programs read it."""
        run: dict[str, Any] = {"system": self.system, "condition": self.condition}
        run |= {"left_out": self.left_out, "marked_by": self.marked_by}
        return [run | asdict(figure) for figure in self.figures]


def official_summaries(
    store: Store,
    benchmark: str,
    reader: HasOfficialFigures,
    *,
    official: bool,
    systems: Sequence[str] = (),
    conditions: Sequence[str] = (),
    draws: int = 2000,
    seed: int = 0,
) -> list[OfficialSummary]:
    """The summary of every chosen run, from the marks that the store keeps."""
    items = load_items(store, store.card(benchmark))
    found = []
    runs = chosen_runs(store, benchmark, systems, conditions)
    accuracy = load_accuracy(store, runs, items)
    for run in runs:
        right = accuracy[run.id].values
        marked = np.flatnonzero(~np.isnan(right))
        late = load_outcomes(store, run, items).where(Status.TIMED_OUT)
        figures = reader.figures(
            [items.groups[items.group[place]] for place in marked],
            [items.tags[items.tags_code[place]] for place in marked],
            right[marked].tolist(),
            int(late.sum()),
            official=official,
            draws=draws,
            seed=seed,
        )
        left_out = len(items.ids) - len(marked)
        found.append(OfficialSummary(run.system, run.condition, figures, left_out, accuracy[run.id].scorer))
    return found

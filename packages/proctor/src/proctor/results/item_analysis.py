"""Items by the systems that answered them: difficulty, discrimination, and which keys to look at again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from proctor.core import ACCURACY, FailedPolicy
from proctor.results.arrays import load_items
from proctor.results.run_scores import load_run_scores
from proctor.runs import BASELINES, ORACLE, Store, chosen_runs
from proctor.stats import FEWEST_SYSTEMS, ItemAnalysis, Resampling, item_analysis


@dataclass(frozen=True)
class StoredItemAnalysis:
    """The analysis of the items that all `systems` (under one `condition`, baselines aside) have an accuracy for; missing answers are
    left out with their items. `items` are their ids, in the order of `found`."""

    condition: str
    systems: tuple[str, ...]
    items: tuple[str, ...]
    found: ItemAnalysis

    def rows(self) -> list[dict[str, Any]]:
        """A row for each item, suspects first and flagged."""
        suspects = self.found.suspects()
        others = [number for number in range(len(self.items)) if number not in set(suspects)]
        found = self.found
        return [
            {
                "item": self.items[number],
                "suspect": number in suspects,
                "difficulty": float(found.difficulty[number]),
                "discrimination": None
                if np.isnan(found.discrimination[number])
                else float(found.discrimination[number]),
                "missed_by_better_half": float(found.missed_by_good[number]),
                "right_in_poorer_half": float(found.right_by_poor[number]),
            }
            for number in [*suspects, *others]
        ]

    def to_json(self) -> dict[str, Any]:
        """The analysis as plain data."""
        return {
            "condition": self.condition,
            "systems": list(self.systems),
            "mean_discrimination": asdict(self.found.mean_discrimination),
            "negative": asdict(self.found.negative),
            "items": self.rows(),
        }


def analyse_items(
    store: Store, benchmark: str, *, condition: str = "video", all_items: bool = False, plan: Resampling = Resampling()
) -> StoredItemAnalysis | None:
    """The analysis of the items under a condition; None with fewer than four systems that are no baselines, or fewer than two items
    that all have a score for."""
    card = store.card(benchmark)
    items = load_items(store, card, all_items=all_items)
    scores = {}
    for run in chosen_runs(store, benchmark):
        if run.condition != condition or run.system in BASELINES or run.settings.get(ORACLE, False):
            continue
        for one in load_run_scores(store, run, items, card):
            if one.metric.name == ACCURACY.name:
                scores[run.system] = one.values(FailedPolicy.EXCLUDE)
    if len(scores) < FEWEST_SYSTEMS:
        return None
    matrix = np.stack(list(scores.values()))
    rows = np.flatnonzero(~np.isnan(matrix).any(axis=0))
    if len(rows) < 2:
        return None
    ids = tuple(items.ids[row] for row in rows)
    return StoredItemAnalysis(condition, tuple(scores), ids, item_analysis(matrix[:, rows], items.group[rows], plan))

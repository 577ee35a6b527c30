"""The variance of a pilot's differences, read from a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proctor.core import FailedPolicy, InputError, Metric
from proctor.results.arrays import load_items
from proctor.results.consistency import difference_noise
from proctor.results.run_scores import load_run_scores
from proctor.runs import Store, chosen_runs
from proctor.stats import VarianceParts, variance_parts


@dataclass(frozen=True)
class Pilot:
    """The variance parts of two runs' differences, with the metric and what they come from. `repetitions` are the most
    answers to an item in each run."""

    parts: VarianceParts
    metric: Metric
    first: str
    second: str
    condition: str
    items: int
    groups: int
    repetitions: tuple[int, int]

    @property
    def items_per_group(self) -> float:
        """The mean number of items of a group."""
        return self.items / self.groups


def read_pilot(
    store: Store,
    benchmark: str,
    systems: Sequence[str],
    *,
    condition: str = "video",
    metric: str = "",
    scorer: str = "",
    sd_repetition: float = 0.0,
) -> Pilot:
    """The pilot of two systems under a condition, by a metric with a score for each item (by default the headline). Only items
    that both have a score for count. The variance between repetitions is that of the pilot; of one without, it can be given
    (`sd_repetition`, the standard deviation of a difference of single answers, in points or the metric's unit) and is else a part of the items'. Raises `InputError` unless there are
    two systems with a run each and the metric, and for a variance that the pilot knows, or that is above its own."""
    if len(systems) != 2:
        raise InputError("systems", found=", ".join(systems) or "none", expected="two, whose difference is planned for")
    card = store.card(benchmark)
    name, items = metric or card.headline or "accuracy", load_items(store, card)
    runs = {run.system: run for run in chosen_runs(store, benchmark, systems, (condition,))}
    sides = []
    for system in systems:
        if system not in runs:
            raise InputError(
                store.shown, found=f"no run of {system} under {condition}", expected="a pilot of both systems"
            )
        every = [one for one in load_run_scores(store, runs[system], items, card) if one.metric.name == name]
        kept = [one for one in every if not scorer or one.scorer == scorer]
        if len(kept) != 1:
            found = f"{len(kept)} scorers of {name} in the run of {system}"
            raise InputError(store.shown, found=found, expected="one (--metric, --scorer)")
        sides.append(kept[0])
    first, second = sides
    apart = first.values(FailedPolicy.EXCLUDE) - second.values(FailedPolicy.EXCLUDE)
    rows = np.flatnonzero(~np.isnan(apart))
    groups = items.group[rows]
    noise = difference_noise(first, second, ~np.isnan(apart))
    if sd_repetition and noise is not None:
        raise InputError("sd_repetition", found="a pilot with repetitions", expected="0: the pilot says how they vary")
    repetition = (sd_repetition / (100.0 if first.metric.percent else 1.0)) ** 2
    between, added = noise or (repetition, repetition)
    if repetition > variance_parts(apart[rows], groups).item:
        raise InputError("sd_repetition", found="more than the pilot's items vary", expected="less")
    parts = variance_parts(apart[rows], groups, between, added)
    repetitions = max(1, len(first.repeated)), max(1, len(second.repeated))
    number = len(np.unique(groups))
    return Pilot(parts, first.metric, systems[0], systems[1], condition, len(rows), number, repetitions)

"""What the sections draw on: a store's numbers, computed once, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from proctor.core import ACCURACY, FailedPolicy, Item, Metric
from proctor.metrics.chance import chance_level
from proctor.runs import BenchmarkCard, Options, Result, Run, Store, chosen_runs, results
from proctor.runs.missing import policies
from proctor.runs.results import natural
from proctor.runs.table import CODE, ItemTable, load_items

__all__ = ["BASELINE", "Key", "Source"]

BASELINE = "text-only"
"""The condition that others are held against: without the media, what is left is guessing."""

_MOST_VALUES = 24  # a tag with more values than this is a name, not a facet


@dataclass(frozen=True, order=True)
class Key:
    """A metric with the scorer that gave it."""

    metric: str
    scorer: str


class Source:
    """One benchmark in one store, under one set of options; `baselines` are marked in the ranking (see `rank_runs`)."""

    def __init__(self, store: Store, benchmark: str, options: Options, baselines: Sequence[str] = ()) -> None:
        self.baselines = tuple(baselines)
        self.store = store
        self.benchmark = benchmark
        self.options = options
        self.card: BenchmarkCard = store.card(benchmark)
        self.runs: list[Run] = chosen_runs(store, benchmark, options.systems, options.conditions)
        self.table: ItemTable = load_items(store, self.card, all_items=options.all_items)

    @cached_property
    def policies(self) -> tuple[FailedPolicy, ...]:
        """The policies for what runs lack: one, or both where nothing is decided."""
        return policies(self.options.failed, self.card)

    @cached_property
    def items(self) -> list[Item]:
        """The items that count, in the benchmark's order."""
        by_id = {item.id: item for item in self.everything}
        return [by_id[name] for name in self.table.ids]

    @cached_property
    def everything(self) -> list[Item]:
        """All items of the benchmark, also those that do not count."""
        return self.store.items(self.benchmark)

    @cached_property
    def overall(self) -> list[Result]:
        """Every number, not split by any facet."""
        return results(self.store, self.benchmark, replace(self.options, by=())).rows

    @cached_property
    def conditions(self) -> list[str]:
        """The conditions that were run, in the benchmark's order."""
        there = {run.condition for run in self.runs}
        known = [name for name in self.card.conditions if name in there]
        return known + sorted(there - set(known))

    @cached_property
    def systems(self) -> list[str]:
        """The systems, best first by the headline under the first condition."""
        metric = self.metric(self.card.headline)
        found = {
            row.system: row.drawn
            for row in reversed(self.overall)
            if row.metric == metric.name and row.condition == self.conditions[0] and row.drawn is not None
        }
        sign = -1.0 if metric.higher_is_better else 1.0
        there = {run.system for run in self.runs}
        return sorted(there, key=lambda name: (name not in found, sign * found.get(name, 0.0), name))

    @cached_property
    def keys(self) -> list[Key]:
        """Metrics and scorers, in the benchmark's order, the headline first."""
        order = {metric.name: place for place, metric in enumerate(self.card.metrics)}
        there = {Key(row.metric, row.scorer) for row in self.overall}
        return sorted(
            there,
            key=lambda key: (
                key.metric != self.card.headline,
                order.get(key.metric, len(order)),
                not key.scorer,  # what waits for a judge comes after what is marked
                key,
            ),
        )

    @cached_property
    def leading(self) -> list[Key]:
        """The metrics that are drawn: the headline, and for each answer format that it does not mark the
        first metric that does. The others stand in tables."""
        formats = {item.answer.kind for item in self.items}
        chosen: list[str] = []
        for key in self.keys:
            covered = {kind for kind in formats for name in chosen if self.metric(name).marks(kind)}
            if key.metric not in chosen and any(
                self.metric(key.metric).marks(kind) for kind in formats - covered
            ):
                chosen.append(key.metric)
        return [key for key in self.keys if key.metric in chosen]

    @cached_property
    def facets(self) -> list[str]:
        """What scores are split by: the benchmark's facets, derived flags, and the answer format."""
        names = dict.fromkeys((*self.card.facets, *self.table.flags))
        if len(set(self.table.formats)) > 1:
            names["format"] = None
        known = set(self.table.facet_names())
        return [name for name in names if name in known and 2 <= len(self.values(name)) <= _MOST_VALUES]

    def values(self, facet: str) -> list[str]:
        """A facet's values in their natural order."""
        return sorted({value for values in self.table.facet(facet) for value in values}, key=natural)

    def by(self, facet: str) -> list[Result]:
        """Every number, split by one facet."""
        return results(self.store, self.benchmark, replace(self.options, by=(facet,))).rows

    def metric(self, name: str) -> Metric:
        """A metric's declaration."""
        return self.card.metric(name)

    def label(self, key: Key) -> str:
        """A metric's label; with its scorer where several scorers gave it."""
        label = self.metric(key.metric).label
        several = sum(other.metric == key.metric for other in self.keys) > 1
        if not key.scorer:
            return f"{label}, not marked yet"
        return f"{label}, marked by {key.scorer}" if several else label

    def chance(self, key: Key, facet: str = "", value: str = "") -> float | None:
        """What blind guessing reaches on all items, or on those with one value of a facet."""
        items = self.items
        if facet:
            items = [
                item for item, values in zip(items, self.table.facet(facet), strict=True) if value in values
            ]
        by_code = key == Key(ACCURACY.name, CODE)  # of the formats that code compares, free text is none
        return chance_level(ACCURACY if by_code else self.metric(key.metric), items)

    def accuracy_by_lot(self, facet: str, value: str) -> float | None:
        """What guessing reaches of the accuracy by code, as `chance` has it."""
        return self.chance(Key(ACCURACY.name, CODE), facet, value)

    def axis(self, key: Key) -> tuple[float, float]:
        """The range on which a metric is drawn: its bounds, widened where a value lies outside."""
        metric = self.metric(key.metric)
        shown = [
            number
            for row in self.overall
            if Key(row.metric, row.scorer) == key
            for number in (row.drawn, row.ci_low, row.ci_high)
            if number is not None
        ]
        return min([metric.low, *shown]), max([metric.high, *shown])

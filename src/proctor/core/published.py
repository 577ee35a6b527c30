"""Figures that others published: shown beside one's own for orientation, and always as published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from proctor.core.metric import Metric

__all__ = ["PublishedCrossing", "PublishedRow", "PublishedTable"]


@dataclass(frozen=True)
class PublishedRow:
    """One system with its values by the metric's name; one that was not published is absent. `condition` is what it
    saw, where that was said, and `facets` of which items alone the values are.

    >>> PublishedRow("a team", {"accuracy": 0.63}).values["accuracy"]
    0.63
    """

    system: str
    values: dict[str, float]
    condition: str = ""
    facets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedCrossing:
    """One system's items counted by their outcome under two `conditions`: the first in the rows, the second in the
    columns, both in the order of `levels`.

    >>> PublishedCrossing("A1", "a model", "accuracy", ("text-only", "video"), ("right", "wrong"), ((97, 8), (68, 76))).name
    'A1'
    """

    name: str
    system: str
    metric: str
    conditions: tuple[str, str]
    levels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PublishedTable:
    """Rows in the published order; `metrics` are the columns, `source` says where they stand, `note` what a reader
    should know before holding anything against them.

    >>> from proctor.core import ACCURACY
    >>> table = PublishedTable("A paper, table 2", "", (ACCURACY,), (PublishedRow("a team", {"accuracy": 0.63}),))
    >>> table.of("accuracy")
    [('a team', 0.63)]
    """

    source: str
    note: str
    metrics: tuple[Metric, ...]
    rows: tuple[PublishedRow, ...]
    crossings: tuple[PublishedCrossing, ...] = ()

    def of(self, metric: str) -> list[tuple[str, float]]:
        """The systems that have a value of this metric over all items, with it."""
        return [(row.system, row.values[metric]) for row in self.split(metric)]

    def split(self, metric: str, by: Sequence[str] = ()) -> list[PublishedRow]:
        """The rows that have a value of this metric, split by just these facets."""
        return [row for row in self.rows if metric in row.values and set(row.facets) == set(by)]

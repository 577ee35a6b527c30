"""Figures that others published: shown beside one's own for orientation, and always as published."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.core.metric import Metric

__all__ = ["PublishedRow", "PublishedTable"]


@dataclass(frozen=True)
class PublishedRow:
    """One system with its values by the metric's name; one that was not published is absent.

    >>> PublishedRow("a team", {"accuracy": 0.63}).values["accuracy"]
    0.63
    """

    system: str
    values: dict[str, float]


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

    def of(self, metric: str) -> list[tuple[str, float]]:
        """The systems that have a value of this metric, with it."""
        return [(row.system, row.values[metric]) for row in self.rows if metric in row.values]

"""What a metric is called, where it lies and which way is better; and the figures that others published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric from which the CLI, tables, docs and figures are made.

    `low` and `high` bound the value of one item; `percent` says that means are shown in per cent;
    `chance` is the mean that blind guessing reaches where that is one number for all items; `formats`
    are the kinds of answer that it marks (none named: all), so that a failed answer, which has no
    score, is still known to be missing from it; `levels` are the labels of its scores, best first, where
    it has a few named ones. Where the value of an item is a share of several units (pairs of neighbours in an
    order), `per` is the tag that says of how many: a mean over items is then the share of all their units.
    `languages` are the values of the tag `language` whose items it marks (none named: all).
    """

    name: str
    label: str
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    percent: bool = False
    chance: float | None = None
    formats: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    per: str = ""
    languages: tuple[str, ...] = ()

    @property
    def worst(self) -> float:
        """The value of a wrong answer."""
        return self.low if self.higher_is_better else self.high

    def marks(self, kind: str, language: object = None) -> bool:
        """Whether answers of this format kind, to an item in this language, are marked by it."""
        return (not self.formats or kind in self.formats) and (
            not self.languages or language is None or language in self.languages
        )

    def show(self, value: float) -> str:
        """The value as people read it.

        >>> ACCURACY.show(0.6626)
        '66.3 %'
        """
        return f"{100 * value:.1f} %" if self.percent else f"{value:.2f}"


class MetricOptions(TypedDict, total=False):
    """What may be declared of a metric beside its function (see `Metric`): `name` is the function's and `label` made
    from it, where none are given.

    >>> MetricOptions(percent=True, formats=("free_text",))
    {'percent': True, 'formats': ('free_text',)}
    """

    name: str
    label: str
    low: float
    high: float
    higher_is_better: bool
    percent: bool
    chance: float
    formats: Sequence[str]


ACCURACY = Metric(
    "accuracy",
    "Accuracy",
    percent=True,
    formats=("choice", "ordering", "binary", "count", "percentage", "classes", "timestamps", "pattern"),
)


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

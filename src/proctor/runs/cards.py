"""A benchmark's card: its protocol without its items, as a store keeps it beside the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import Benchmark, Excerpt, FailedPolicy, Item, Metric, PublishedTable, RatingScheme
from proctor.metrics import chance_level


class Ruling(BaseModel):
    """A person's decision that a system is disqualified: why and since when (UTC, ISO 8601). One that was taken back
    keeps why and when that was."""

    model_config = ConfigDict(frozen=True)

    system: str
    reason: str
    since: str
    lifted: str = ""
    lifted_because: str = ""

    def __str__(self) -> str:
        """As tables say it.

        >>> str(Ruling(system="team-a", reason="it addressed the judge", since="2026-08-01T10:00:00+00:00"))
        'team-a since 2026-08-01 (it addressed the judge)'
        """
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.system} since {self.since[:10]}{why}"


class BenchmarkCard(BaseModel):
    """What results and reports need to know of a benchmark besides its items."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str
    metrics: tuple[Metric, ...]
    headline: str
    facets: tuple[str, ...]
    conditions: tuple[str, ...]
    only: dict[str, JsonValue]
    seeds: dict[str, int]
    notes: tuple[str, ...]
    simulated: bool
    buckets: tuple[str, ...] = ()
    relevance: str = ""
    published: PublishedTable | None = None
    failed: FailedPolicy | None = None
    excerpts: dict[str, Excerpt] = {}
    rating: RatingScheme | None = None
    chance: dict[str, float] = {}  # by metric what random guessing reaches on the items that count, where it is known

    folders: dict[str, str] = {}
    """Where the files lay on this machine at the last run or import: `data`, `media`; and the `track`."""

    rulings: tuple[Ruling, ...] = ()  # who was disqualified, by a person; also what was taken back

    @property
    def disqualified(self) -> dict[str, Ruling]:
        """The systems that are disqualified, each with the decision."""
        return {one.system: one for one in self.rulings if not one.lifted}

    def metric(self, name: str) -> Metric:
        """The declaration of a metric; one of an unknown scorer is shown plainly."""
        known = {metric.name: metric for metric in self.metrics}
        return known.get(name, Metric(name, name))

    def counts(self, item: Item) -> bool:
        """Whether an item counts (see `Benchmark.only`)."""
        return all(item.tags.get(tag) == value for tag, value in self.only.items())

    def with_metrics(self, metrics: Sequence[Metric]) -> BenchmarkCard:
        """The card with further metrics. A name that it has already stays as it is, but that it marks the formats
        of both: a judge gives the accuracy of answers that code can't compare."""
        given = {metric.name: metric for metric in metrics}
        known = tuple(_widened(metric, given.pop(metric.name, metric)) for metric in self.metrics)
        return self.model_copy(update={"metrics": (*known, *given.values())})


def _widened(metric: Metric, other: Metric) -> Metric:
    if not metric.formats or not other.formats:
        return replace(metric, formats=())
    more = tuple(kind for kind in other.formats if kind not in metric.formats)
    return replace(metric, formats=metric.formats + more)


def card_of(benchmark: Benchmark) -> BenchmarkCard:
    """The card of a benchmark."""
    counted = benchmark.counted()
    known = {metric.name for metric in benchmark.metrics}
    more = [metric for scorer in benchmark.scorers for metric in scorer.metrics if metric.name not in known]
    metrics = (*benchmark.metrics, *more)
    levels = {metric.name: chance_level(metric, counted) for metric in metrics}
    return BenchmarkCard(
        name=benchmark.name,
        title=benchmark.title,
        metrics=metrics,
        headline=benchmark.headline,
        facets=benchmark.facets,
        conditions=benchmark.conditions,
        only=benchmark.only,
        seeds=benchmark.seeds,
        notes=benchmark.notes,
        simulated=benchmark.simulated,
        buckets=benchmark.buckets,
        relevance=benchmark.relevance,
        published=benchmark.published,
        failed=benchmark.failed,
        excerpts=dict(benchmark.excerpts),
        rating=benchmark.rating,
        chance={name: level for name, level in levels.items() if level is not None},
    )

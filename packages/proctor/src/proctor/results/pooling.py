"""Federated results: institutions that keep their cases send sums by group, which give the same results as all cases
together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, JsonValue, model_validator

from proctor.core import FailedPolicy, FrozenModel, InputError, Metric, is_database, read_model, write_whole
from proctor.results.arrays import ItemTable, load_items
from proctor.results.run_scores import RunScores, load_run_scores
from proctor.runs import Store, chosen_runs
from proctor.stats import Estimate, GroupSums, Heterogeneity, Pair, Resampling, can_decide, heterogeneity, site_variance

Count = Annotated[int, Field(ge=0)]


class MetricSums(FrozenModel):
    """The sums of one metric by one scorer under one condition (fields as in `GroupSums`). Lacking items count as wrong;
    `lacking` gives their number by system. `left_out` are systems with an item without a value (it waits for a judge)."""

    condition: str
    metric: str
    scorer: str
    low: float | None
    high: float | None
    systems: Annotated[tuple[str, ...], Field(min_length=1)]
    counts: tuple[Annotated[int, Field(ge=1)], ...]
    totals: tuple[tuple[float, ...], ...]
    products: tuple[tuple[float, ...], ...]
    above: tuple[tuple[Count, ...], ...]
    below: tuple[tuple[Count, ...], ...]
    lacking: dict[str, Count] = Field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fit(self) -> MetricSums:
        many = len(self.systems)
        if len(set(self.systems)) != many:
            raise ValueError("each system once is expected")
        if len(self.totals) != len(self.counts) or any(len(row) != many for row in self.totals):
            raise ValueError("as many totals as groups and systems are expected")
        for table in (self.products, self.above, self.below):
            if len(table) != many or any(len(row) != many for row in table):
                raise ValueError("a number for each two systems is expected")
        return self

    @property
    def name(self) -> tuple[str, str, str]:
        """The key by which sums are pooled."""
        return self.condition, self.metric, self.scorer

    def sums(self, systems: Sequence[str]) -> GroupSums:
        """The sums of these systems, in this order."""
        rows = [self.systems.index(system) for system in systems]
        square = np.ix_(rows, rows)
        return GroupSums(
            np.array(self.counts, dtype=np.float64),
            np.array(self.totals, dtype=np.float64).reshape(len(self.counts), len(self.systems))[:, rows],
            np.array(self.products, dtype=np.float64)[square],
            np.array(self.above, dtype=np.int64)[square],
            np.array(self.below, dtype=np.int64)[square],
        )


class SumsFile(FrozenModel):
    """The file of one institution, without answers, items and names of groups."""

    kind: Literal["proctor group sums 1"] = "proctor group sums 1"
    benchmark: str
    fingerprint: str
    metrics: tuple[MetricSums, ...]


def group_sums(
    store: Store,
    benchmark: str,
    systems: Sequence[str] = (),
    conditions: Sequence[str] = (),
    *,
    all_items: bool = False,
) -> SumsFile:
    """The sums of every metric and scorer under each condition, over the items that count (or all). Raises `InputError` for
    unknown names."""
    card = store.card(benchmark)
    items = load_items(store, card, all_items=all_items)
    found: dict[tuple[str, str, str], dict[str, RunScores]] = {}
    for run in chosen_runs(store, benchmark, systems, conditions):
        for score in load_run_scores(store, run, items, card):
            found.setdefault((run.condition, score.metric.name, score.scorer), {})[run.system] = score
    parts = [_metric_sums(name, runs, items) for name, runs in sorted(found.items())]
    return SumsFile(
        benchmark=benchmark, fingerprint=store.fingerprint(benchmark), metrics=tuple(part for part in parts if part)
    )


def _metric_sums(name: tuple[str, str, str], runs: Mapping[str, RunScores], items: ItemTable) -> MetricSums | None:
    metric: Metric = next(iter(runs.values())).metric
    scorable = np.logical_or.reduce([run.scorable for run in runs.values()])
    indices = np.flatnonzero(scorable)
    values = {system: one.values(FailedPolicy.WRONG)[indices] for system, one in sorted(runs.items())}
    whole = [system for system, row in values.items() if not np.isnan(row).any()]
    if not whole or not len(indices):
        return None
    units = items.units(metric, indices)
    matrix = np.stack([np.repeat(values[system], units) for system in whole])
    sums = GroupSums.of(matrix, np.repeat(items.group[indices], units), (metric.low, metric.high))
    return MetricSums(
        condition=name[0],
        metric=name[1],
        scorer=name[2],
        low=metric.low if math.isfinite(metric.low) else None,
        high=metric.high if math.isfinite(metric.high) else None,
        systems=tuple(whole),
        counts=tuple(sums.counts.astype(np.int64).tolist()),
        totals=tuple(map(tuple, sums.totals.tolist())),
        products=tuple(map(tuple, sums.products.tolist())),
        above=tuple(map(tuple, sums.above.tolist())),
        below=tuple(map(tuple, sums.below.tolist())),
        lacking={one: int(np.sum(runs[one].lacking & scorable)) for one in whole},
        left_out=tuple(value for value in values if value not in whole),
    )


def write_sums(found: SumsFile, out: Path) -> int:
    """Writes the sums as JSON; returns the number of metrics. Raises `InputError` if there are none, or `out` can't be
    written."""
    if not found.metrics:
        raise InputError(found.benchmark, found="no scores", expected="some: proctor score")
    write_whole(out, found.model_dump_json(indent=1) + "\n")
    return len(found.metrics)


@dataclass(frozen=True)
class PooledMetric:
    """One metric over all institutions: the mean of each system, and all pairs of systems. `lacking` counts the lacking
    items of each system, which are wrong; `left_out` are systems that are not complete at every institution: all, if the
    metric is not in every file. `spread` says of each pair how much its difference varies between sites; None with one site, or
    where the difference does not vary within one (fewer than two groups)."""

    condition: str
    metric: str
    scorer: str
    institutions: int
    systems: tuple[str, ...]
    means: tuple[Estimate, ...]
    pairs: tuple[Pair, ...]
    lacking: Mapping[str, int]
    left_out: tuple[str, ...]
    spread: tuple[Heterogeneity | None, ...] = ()

    @property
    def title(self) -> str:
        """The metric, its scorer and the condition, in words."""
        return _title(self.condition, self.metric, self.scorer)

    def rows(self) -> list[dict[str, JsonValue]]:
        """One row per system."""
        return [
            {"system": system, **asdict(one), "lacking": self.lacking[system]}
            for system, one in zip(self.systems, self.means, strict=True)
        ]

    def to_json(self) -> dict[str, JsonValue]:
        """The fields as plain data."""
        pairs: list[JsonValue] = [
            {
                "first": self.systems[pair.first],
                "second": self.systems[pair.second],
                **asdict(pair.difference),
                "p_holm": pair.p_holm,
                "decides": can_decide(pair.difference.groups),
                "between_sites": None if spread is None else asdict(spread),
            }
            for pair, spread in zip(self.pairs, self.spread, strict=True)
        ]
        about = {"condition": self.condition, "metric": self.metric, "scorer": self.scorer}
        return {
            **about,
            "institutions": self.institutions,
            "means": list(self.rows()),
            "pairs": pairs,
            "left_out": list(self.left_out),
        }


def pool_sums(files: Sequence[Path], plan: Resampling = Resampling()) -> tuple[str, list[PooledMetric]]:
    """The benchmark, and every metric over the groups of all files; a metric that a file lacks has no figures.

    Means, intervals, differences and p equal those of the items together (lacking items are wrong), if no group is in two
    files. Raises `InputError` for another kind of file, another benchmark, two files of the same items, different bounds
    of a metric, and if no metric is in all files.
    """
    expected = "sums of groups (proctor export --format sums)"
    for file in files:
        if file.is_file() and is_database(file):
            raise InputError(file, found="a store", expected=expected)
    read = [(file, read_model(file, SumsFile, expected)) for file in files]
    if not read:
        raise InputError("files", found="none", expected="sums of one institution or more")
    seen: dict[str, Path] = {}
    for file, one in read:
        if one.benchmark != read[0][1].benchmark:
            raise InputError(file, found=f"sums of {one.benchmark}", expected=f"{read[0][1].benchmark}, as the others")
        if one.fingerprint in seen:
            found = f"the same items as {seen[one.fingerprint].name}"
            raise InputError(file, found=found, expected="each item in one file")
        seen[one.fingerprint] = file
    by_name = [{part.name: part for part in one.metrics} for _, one in read]
    parts = {name: [one[name] for one in by_name if name in one] for name in dict.fromkeys(chain(*by_name))}
    if not any(len(own) == len(read) for own in parts.values()):
        known = ", ".join(f"{_title(*name)} in {len(own)}" for name, own in parts.items())
        expected = "the same metric, by the same scorer under the same condition"
        raise InputError("files", found=f"no metric in all {len(read)}: {known or 'none'}", expected=expected)
    return read[0][1].benchmark, [_pooled(own, len(read), plan) for own in parts.values()]


def _title(condition: str, metric: str, scorer: str) -> str:
    return f"{metric} by {scorer} under {condition}"


def _check_bounds(parts: Sequence[MetricSums]) -> None:
    """Raises `InputError` for different bounds of a metric."""
    first = parts[0]
    for part in parts:
        if (part.low, part.high) != (first.low, first.high):
            found = f"bounds {part.low} to {part.high}, and {first.low} to {first.high}"
            raise InputError(f"metric {part.metric}", found=found, expected="the same bounds in all files")


def _pooled(parts: Sequence[MetricSums], files: int, plan: Resampling) -> PooledMetric:
    first, whole = parts[0], len(parts) == files
    if whole:
        _check_bounds(parts)
    common = [name for name in first.systems if whole and all(name in part.systems for part in parts)]
    every = dict.fromkeys(name for part in parts for name in (*part.systems, *part.left_out))
    low, high = -math.inf if first.low is None else first.low, math.inf if first.high is None else first.high
    own = plan.within(low, high)
    sums = GroupSums.joined([part.sums(common) for part in parts]) if common else None
    return PooledMetric(
        *first.name,
        institutions=len(parts),
        systems=tuple(common),
        means=tuple(sums.means(own)) if sums else (),
        pairs=(pairs := tuple(sums.pairs(own)) if sums else ()),
        lacking={name: sum(part.lacking.get(name, 0) for part in parts) for name in common},
        left_out=tuple(name for name in every if name not in common),
        spread=tuple(_spread([part.sums(common) for part in parts], pair) for pair in pairs),
    )


def _spread(sites: Sequence[GroupSums], pair: Pair) -> Heterogeneity | None:
    """How the difference of a pair varies between sites."""
    apart = [site.totals[:, pair.first] - site.totals[:, pair.second] for site in sites]
    variances = [site_variance(one, site.counts) for one, site in zip(apart, sites, strict=True)]
    known = [variance for variance in variances if variance is not None]
    if len(sites) < 2 or len(known) < len(sites):
        return None
    return heterogeneity([float(one.sum() / site.counts.sum()) for one, site in zip(apart, sites, strict=True)], known)

"""Ratings and scores side by side, in the cells that results are given for: dataset × language × dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from proctor.audits.ratings import Key, MetricScores, RatingsTable
from proctor.core import InputError
from proctor.stats import Floats, Kind, Options, Resamples, Sampled, average, carrying_groups, group_codes

ALL = "ALL"
"""The name of all datasets together."""

KINDS: tuple[Kind, ...] = ("kendall", "pearson", "spearman")


@dataclass(frozen=True, slots=True)
class CorrelationSettings:
    """How intervals are drawn (see `Resampling`); `draws` of 0 leaves them out."""

    draws: int = 2000
    level: float = 0.95
    seed: int = 0

    @property
    def options(self) -> Options:
        """The options as the statistics take them."""
        return Options(draws=max(1, self.draws), level=self.level, seed=self.seed)


@dataclass(frozen=True, slots=True)
class Cell:
    """The ratings of one dataset (or all), language and dimension, one entry per rating."""

    dataset: str
    language: str
    dimension: str
    values: Floats
    keys: tuple[Key, ...]
    groups: tuple[str, ...]
    raters: tuple[str, ...]
    datasets: tuple[str, ...]

    def part(self, places: Sequence[int]) -> Cell:
        """The ratings at these places alone."""
        return replace(
            self,
            values=self.values[list(places)],
            keys=tuple(self.keys[k] for k in places),
            groups=tuple(self.groups[k] for k in places),
            raters=tuple(self.raters[k] for k in places),
            datasets=tuple(self.datasets[k] for k in places),
        )

    def rater_mean(self) -> Cell:
        """One entry per answer: the mean of its ratings; its rater is ''."""
        first: dict[Key, int] = {}
        for place, key in enumerate(self.keys):
            first.setdefault(key, place)
        number = {key: k for k, key in enumerate(first)}
        code = np.array([number[key] for key in self.keys], dtype=np.int64)
        means = np.bincount(code, self.values) / np.bincount(code)
        alone = self.part(list(first.values()))
        return replace(alone, values=means, raters=("",) * len(first))


@dataclass(frozen=True, slots=True)
class Measured:
    """The correlations of one cell: kendall, pearson, spearman and, last, their mean; or why there are none.
    `note` says why they have no interval where too few groups carry the variation."""

    kinds: tuple[Sampled, ...]
    mean: Sampled
    reason: str
    note: str = ""


@dataclass
class Frame:
    """All cells of a table, and per dataset and language the bootstrap samples that its cells share.

    Correlations over one dataset draw that dataset's groups; those over all draw from all, whichever
    dataset they are in. All dimensions, and all metrics, get the same samples.
    """

    table: RatingsTable
    settings: CorrelationSettings
    cells: list[Cell] = field(init=False)
    _samples: dict[tuple[str, str], Resamples] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        datasets = self.table.datasets
        self.cells = [
            self._cell(dataset, language, dimension)
            for language, dimension in self.table.dimensions
            for dataset in (ALL, *(datasets if len(datasets) > 1 else ()))
        ]

    def _cell(self, dataset: str, language: str, dimension: str) -> Cell:
        inside = [
            one
            for one in self.table.ratings
            if (one.language, one.dimension) == (language, dimension) and dataset in (ALL, one.dataset)
        ]
        return Cell(
            dataset,
            language,
            dimension,
            np.array([one.value for one in inside], dtype=np.float64),
            tuple(one.key for one in inside),
            tuple(one.cluster for one in inside),
            tuple(one.rater for one in inside),
            tuple(one.dataset for one in inside),
        )

    def samples(self, cell: Cell) -> Resamples:
        """The bootstrap samples of a cell's dataset and language."""
        name = (cell.dataset, cell.language)
        if name not in self._samples:
            groups = [
                one.cluster
                for one in self.table.ratings
                if one.language == cell.language and cell.dataset in (ALL, one.dataset)
            ]
            drawing = self.settings.draws > 0
            self._samples[name] = Resamples(groups, drawing=drawing, **self.settings.options)
        return self._samples[name]

    def measure(self, cell: Cell, scores: Floats, reason: str = "") -> Measured:
        """The correlations of a cell's ratings with scores, one per rating."""
        samples = self.samples(cell)
        values = np.full(len(scores), 0.0) if reason else scores
        kinds = tuple(samples.correlation(kind, values, cell.values, cell.groups) for kind in KINDS)
        mean = average(kinds)
        if not mean.defined:
            return Measured(kinds, mean, reason or _why(scores, cell.values))
        return Measured(kinds, mean, "", thin_note(cell, scores) if mean.thin else "")


def paired(cell: Cell, metric: MetricScores) -> tuple[Floats, str]:
    """The metric's score for every rating of a cell, and why there are none where it opted out.

    Raises `InputError` for a rated answer that it neither scored nor opted out of.
    """
    found = [_score(metric, key) for key in cell.keys]
    out = [place for place, one in enumerate(found) if one is None]
    if not out:
        return np.array(found, dtype=np.float64), ""
    without = sorted({cell.datasets[place] for place in out})
    whole = len(out) == len(found)
    where = "" if whole else f" in {', '.join(without)}" if any(without) else " in part"
    return np.zeros(len(found)), f"opted out{where}"


def _score(metric: MetricScores, key: Key) -> float | None:
    if key not in metric.scores:
        raise InputError(None, f"metric {metric.name!r}", found="nothing", expected=f"a score of {key}")
    return metric.scores[key]


def thin_note(cell: Cell, scores: Floats) -> str:
    """Which side hardly varies, and in how many groups it does."""
    code = group_codes(cell.groups, len(cell.groups))
    counts = [carrying_groups(values, code) for values in (scores, cell.values)]
    what = "scores" if counts[0] <= counts[1] else "ratings"
    return f"no interval: the {what} vary in {min(counts)} of {len(set(cell.groups))} groups only"


def _why(scores: Floats, ratings: Floats) -> str:
    """Why these have no correlation."""
    if len(scores) < 2:
        return "fewer than two ratings"
    what, values = ("scores", scores) if np.ptp(scores) == 0 else ("ratings", ratings)
    return f"all {what} are {values[0]:g}"

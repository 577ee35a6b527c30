"""How well one metric agrees with the raters: by item, by rater and by system, beside the raters' own agreement and the
effect of length.

Results are given by cell: dataset × language × dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from proctor.audits.ratings import ALL, Key, MetricScores, Rating, RatingsTable
from proctor.core import InputError, count_of
from proctor.metrics.text import tokens
from proctor.stats import (
    Contrast,
    Estimate,
    Floats,
    Kind,
    Resamples,
    Resampling,
    Sampled,
    average,
    carrying_groups,
    contrast,
    group_codes,
    krippendorff_alpha,
)

KINDS: tuple[Kind, ...] = ("kendall", "pearson", "spearman")


@dataclass(frozen=True, slots=True)
class CorrelationSettings:
    """How intervals are drawn (see `Resampling`); with `draws` 0 there are none."""

    draws: int = 2000
    level: float = 0.95
    seed: int = 0

    @property
    def plan(self) -> Resampling:
        """The same as a `Resampling`."""
        return Resampling(draws=max(1, self.draws), level=self.level, seed=self.seed)


@dataclass(frozen=True)
class CellName:
    """One dataset (or `ALL`), one language, one dimension."""

    dataset: str
    language: str
    dimension: str

    @property
    def where(self) -> tuple[str, str, str]:
        return self.dataset, self.language, self.dimension


@dataclass(frozen=True)
class RatingCell(CellName):
    """The ratings of one cell. All arrays have one entry per rating."""

    ratings: tuple[Rating, ...]

    @cached_property
    def values(self) -> Floats:
        return np.array([rating.value for rating in self.ratings], dtype=np.float64)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return tuple(rating.key for rating in self.ratings)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The resampling unit of each rating."""
        return tuple(rating.cluster for rating in self.ratings)

    @cached_property
    def raters(self) -> tuple[str, ...]:
        return tuple(rating.rater for rating in self.ratings)

    def part(self, rows: Sequence[int]) -> RatingCell:
        return replace(self, ratings=tuple(self.ratings[row] for row in rows))

    def rater_mean(self) -> RatingCell:
        """One entry per answer: the mean of its ratings, by the rater ''."""
        number = {key: k for k, key in enumerate(dict.fromkeys(self.keys))}
        code = np.array([number[key] for key in self.keys], dtype=np.int64)
        means = np.bincount(code, self.values) / np.bincount(code)
        first = {rating.key: rating for rating in reversed(self.ratings)}
        return replace(
            self, ratings=tuple(replace(first[key], rater="", value=float(means[k])) for key, k in number.items())
        )


@dataclass(frozen=True, slots=True)
class Correlations:
    """Kendall's, Pearson's and Spearman's correlation of one cell, and their `mean`; or the `reason` why there are none.
    `note` explains a missing interval: too few groups vary."""

    kinds: tuple[Sampled, ...]
    mean: Sampled
    reason: str
    note: str = ""

    @property
    def estimates(self) -> tuple[Estimate, Estimate, Estimate, Estimate]:
        """The three correlations and their mean, with intervals."""
        kendall, pearson, spearman = (kind.estimate() for kind in self.kinds)
        return kendall, pearson, spearman, self.mean.estimate()


@dataclass
class RatingCells:
    """All cells of a table, and the bootstrap samples that the cells of a dataset and language share.

    Correlations over one dataset resample its groups, those over all datasets all groups. All dimensions and all metrics
    get the same samples.
    """

    table: RatingsTable
    settings: CorrelationSettings
    cells: list[RatingCell] = field(init=False)
    _samples: dict[tuple[str, str], Resamples] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        datasets = self.table.datasets
        self.cells = [
            RatingCell(
                dataset,
                language,
                dimension,
                tuple(rating for rating in self.table.of(dataset, language) if rating.dimension == dimension),
            )
            for language, dimension in self.table.dimensions
            for dataset in (ALL, *(datasets if len(datasets) > 1 else ()))
        ]

    def samples(self, cell: RatingCell) -> Resamples:
        """The bootstrap samples of a cell's dataset and language."""
        name = (cell.dataset, cell.language)
        if name not in self._samples:
            self._samples[name] = self.samples_of(self.table.of(*name))
        return self._samples[name]

    def samples_of(self, ratings: Sequence[Rating]) -> Resamples:
        """The bootstrap samples of the groups of these ratings. They do not depend on the names of items and groups."""
        groups, contents = [rating.cluster for rating in ratings], [rating.content for rating in ratings]
        return Resamples(groups, contents=contents, drawing=self.settings.draws > 0, plan=self.settings.plan)

    def measure(self, cell: RatingCell, scores: Floats, reason: str = "") -> Correlations:
        """The correlations of a cell's ratings with scores (one per rating); none where there is a `reason`."""
        samples = self.samples(cell)
        values = np.full(len(scores), 0.0) if reason else scores
        kinds = tuple(samples.correlation(kind, values, cell.values, cell.groups) for kind in KINDS)
        mean = average(kinds)
        if not mean.defined:
            return Correlations(kinds, mean, reason or _why(scores, cell.values))
        return Correlations(kinds, mean, "", _thin_note(cell, scores) if mean.thin else "")


def paired(cell: RatingCell, metric: MetricScores) -> tuple[Floats, str]:
    """The metric's score for every rating of a cell; or zeros, and the reason, where it opted out.

    Raises `InputError` for a rated answer that it neither scored nor opted out of.
    """
    found = []
    for key in cell.keys:
        if key not in metric.scores:
            raise InputError(f"metric {metric.name!r}", found="nothing", expected=f"a score of {key}")
        found.append(metric.scores[key])
    out = {rating.dataset for rating, one in zip(cell.ratings, found, strict=True) if one is None}
    if not out:
        return np.array(found, dtype=np.float64), ""
    nowhere = all(one is None for one in found)
    where = "" if nowhere else f" in {', '.join(sorted(out))}" if any(out) else " in part"
    return np.zeros(len(found)), f"opted out{where}"


def _thin_note(cell: RatingCell, scores: Floats) -> str:
    """Why there is no interval: which side varies in too few groups."""
    code = group_codes(cell.groups, len(cell.groups))
    counts = [carrying_groups(values, code) for values in (scores, cell.values)]
    what = "scores" if counts[0] <= counts[1] else "ratings"
    return f"no interval: the {what} vary in {min(counts)} of {count_of(len(set(cell.groups)), 'group')} only"


def _why(scores: Floats, ratings: Floats) -> str:
    """Why there is no correlation."""
    if len(scores) < 2:
        return "fewer than two ratings"
    what, values = ("scores", scores) if np.ptp(scores) == 0 else ("ratings", ratings)
    return f"all {what} are {values[0]:g}"


@dataclass(frozen=True)
class LengthBias(CellName):
    """Spearman's ρ of the length of answers (in words; in characters where a script has no spaces) with the metric's
    `scores` and with the `ratings`. `excess` is their difference: above 0 the metric prefers length more than the raters
    do. `partial` is the partial correlation of scores and ratings given length; None, with the reason, where one of the
    three is constant.
    """

    scores: Estimate
    ratings: Estimate
    excess: Contrast
    partial: float | None
    reason: str


def lengths(table: RatingsTable) -> dict[tuple[str, str], int]:
    """The length of every answer by item and system.

    >>> from proctor.audits import Rating
    >>> lengths(RatingsTable((Rating("e1", "Chronic eczema.", "s1", "overall", "r1", 1.0),)))
    {('e1', 's1'): 2}
    """
    return {(rating.item, rating.system): len(tokens(rating.candidate)) for rating in table.ratings}


def _length_bias(
    cells: RatingCells, cell: RatingCell, scores: Floats, agreement: Sampled, known: dict[tuple[str, str], int]
) -> LengthBias:
    """The length bias in one cell; `agreement` is ρ of its scores and ratings, `known` the lengths of the answers."""
    length = np.array([known[key[:2]] for key in cell.keys], dtype=np.float64)
    samples = cells.samples(cell)
    with_scores, with_ratings = (
        samples.correlation("spearman", length, values, cell.groups) for values in (scores, cell.values)
    )
    columns = (("lengths", length), ("scores", scores), ("ratings", cell.values))
    flat = [what for what, values in columns if not len(values) or np.ptp(values) == 0]
    return LengthBias(
        *cell.where,
        with_scores.estimate(),
        with_ratings.estimate(),
        contrast(with_scores, with_ratings),
        None if flat else _partial(agreement.observed, with_scores.observed, with_ratings.observed),
        f"all {flat[0]} are the same" if flat else "",
    )


def _partial(between: float, first: float, second: float) -> float | None:
    """The partial correlation (r − r₁ r₂) / √((1 − r₁²)(1 − r₂²)); None where length determines one side."""
    room = (1 - first**2) * (1 - second**2)
    return (between - first * second) / math.sqrt(room) if room > 1e-12 else None


@dataclass(frozen=True)
class Agreement(CellName):
    """Kendall's τ-b, Pearson's r, Spearman's ρ and their mean between a metric's scores and ratings.

    Several raters of an answer count as several pairs. `rater` is one rater, "mean" (each answer's mean rating), or ''
    for all. Estimates count ratings (`n`) and `groups`. Without a correlation the values are None and `reason` says why;
    `note` explains a missing interval: too few groups vary.
    """

    rater: str
    kendall: Estimate
    pearson: Estimate
    spearman: Estimate
    mean: Estimate
    answers: int
    raters: int
    reason: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The mean over a language's dimensions of the mean correlation on all datasets; None, with the reason, where a
    dimension has no correlation."""

    language: str
    mean: Estimate
    dimensions: int
    reason: str
    note: str = ""


@dataclass(frozen=True)
class SystemLevel(CellName):
    """The correlation of the systems' mean scores with their mean ratings. `systems` holds (name, mean score, mean
    rating, number of ratings). There is no interval: systems are too few."""

    systems: tuple[tuple[str, float, float, int], ...]
    kendall: float | None
    pearson: float | None
    spearman: float | None
    reason: str


@dataclass(frozen=True)
class Ceiling(CellName):
    """The agreement of two raters of the same answers, measured as in `Agreement`, and Krippendorff's α (ordinal) of all
    raters of the cell. It is no upper limit for a metric: see `perfect`."""

    first: str
    second: str
    kendall: Estimate
    pearson: Estimate
    spearman: Estimate
    mean: Estimate
    alpha: Estimate
    reason: str

    @property
    def perfect(self) -> float | None:
        """Pearson's r of a perfect metric with one of the raters: √r of the two raters (Spearman 1904, American Journal
        of Psychology 15:72).

        A perfect metric gives each answer the mean over infinitely many raters, whose errors are independent and alike.
        0 where r is below 0, None without r. With the mean of k raters it is √(k r / (1 + (k − 1) r)). The formula holds
        for Pearson's r; rank correlations are about as large.
        """
        r = self.pearson.value
        return None if r is None else math.sqrt(max(r, 0.0))


@dataclass(frozen=True)
class Audit:
    """All results of one metric's scores and the ratings."""

    metric: str
    settings: CorrelationSettings
    agreements: tuple[Agreement, ...]
    aggregates: tuple[Aggregate, ...]
    by_rater: tuple[Agreement, ...]
    by_system: tuple[SystemLevel, ...]
    ceilings: tuple[Ceiling, ...]
    by_length: tuple[LengthBias, ...]
    notes: tuple[str, ...]


def audit(table: RatingsTable, metric: MetricScores, settings: CorrelationSettings | None = None) -> Audit:
    """Compares a metric with ratings.

    Agreement is given for each dataset, and for all together, × language × dimension; by rater, and between raters,
    where a cell has two or more of them. Raises `InputError` where the metric has no score for a rated answer.

    >>> from proctor.audits import Rating
    >>> rows = [(f"e{k}", value) for k, value in enumerate([0.0, 0.5, 1.0, 1.0])]
    >>> table = RatingsTable(tuple(Rating(e, "…", "s1", "overall", "r1", value) for e, value in rows))
    >>> metric = MetricScores("mine", {(e, "s1", "overall"): k / 4 for k, (e, _) in enumerate(rows)})
    >>> round(audit(table, metric, CorrelationSettings(draws=100)).agreements[0].kendall.value, 3)
    0.913
    """
    cells = RatingCells(table, settings or CorrelationSettings())
    pairs = [(cell, *paired(cell, metric)) for cell in cells.cells]
    measured = [cells.measure(cell, scores, reason) for cell, scores, reason in pairs]
    aggregates = []
    for language in dict.fromkeys(cell.language for cell in cells.cells):
        mean, count, reason, note = aggregated(cells.cells, measured, language)
        aggregates.append(Aggregate(language, mean.estimate(), count, reason, note))
    known = lengths(table)
    several = [(cell, scores) for cell, scores, reason in pairs if not reason and len(set(cell.raters)) > 1]
    return Audit(
        metric=metric.name,
        settings=cells.settings,
        agreements=tuple(_agreement(cell, one) for cell, one in zip(cells.cells, measured, strict=True)),
        aggregates=tuple(aggregates),
        by_rater=tuple(row for cell, scores in several for row in _by_rater(cells, cell, scores)),
        by_system=tuple(_by_system(cell, scores, reason) for cell, scores, reason in pairs),
        ceilings=tuple(row for cell in cells.cells if len(set(cell.raters)) > 1 for row in _ceilings(cells, cell)),
        by_length=tuple(
            _length_bias(cells, cell, scores, one.kinds[KINDS.index("spearman")], known)
            for (cell, scores, reason), one in zip(pairs, measured, strict=True)
            if not reason
        ),
        notes=metric.notes,
    )


def aggregated(
    cells: Sequence[RatingCell], measured: Sequence[Correlations], language: str
) -> tuple[Sampled, int, str, str]:
    """The mean over a language's dimensions on all datasets, the number of dimensions, the reason of a missing mean, and
    the note on a missing interval."""
    both = zip(cells, measured, strict=True)
    inside = [(cell, one) for cell, one in both if (cell.dataset, cell.language) == (ALL, language)]
    reasons = [f"{cell.dimension}: {one.reason}" for cell, one in inside if one.reason]
    notes = [f"{cell.dimension}: {one.note}" for cell, one in inside if one.note and not reasons]
    return average([one.mean for _, one in inside]), len(inside), "; ".join(reasons), "; ".join(notes)


def _agreement(cell: RatingCell, measured: Correlations, rater: str = "") -> Agreement:
    counts = len(set(cell.keys)), len(set(cell.raters) - {""})
    return Agreement(*cell.where, rater, *measured.estimates, *counts, measured.reason, measured.note)


def _by_rater(cells: RatingCells, cell: RatingCell, scores: Floats) -> list[Agreement]:
    rows = []
    for rater in sorted(set(cell.raters)):
        mine = [row for row, one in enumerate(cell.raters) if one == rater]
        own = cell.part(mine)
        rows.append(_agreement(own, cells.measure(own, scores[mine]), rater))
    if len(set(cell.keys)) < len(cell.keys):
        mean = cell.rater_mean()
        by_key = dict(zip(cell.keys, scores, strict=True))
        rows.append(_agreement(mean, cells.measure(mean, np.array([by_key[key] for key in mean.keys])), "mean"))
    return rows


def _by_system(cell: RatingCell, scores: Floats, reason: str) -> SystemLevel:
    if reason:
        return SystemLevel(*cell.where, (), None, None, None, reason)
    names = sorted({system for _, system, _ in cell.keys})
    code = np.array([names.index(system) for _, system, _ in cell.keys], dtype=np.int64)
    count = np.bincount(code)
    means = [np.bincount(code, values) / count for values in (scores, cell.values)]
    rows = tuple(
        (name, float(score), float(rating), int(n)) for name, score, rating, n in zip(names, *means, count, strict=True)
    )
    if len(names) < 3:
        return SystemLevel(*cell.where, rows, None, None, None, "fewer than three systems")
    alone = Resamples(names, drawing=False)
    found = [alone.correlation(kind, means[0], means[1], names).estimate().value for kind in KINDS]
    same = "" if None not in found else "all systems have the same mean"
    return SystemLevel(*cell.where, rows, found[0], found[1], found[2], same)


def _ceilings(cells: RatingCells, cell: RatingCell) -> list[Ceiling]:
    by_rater: dict[str, dict[Key, int]] = {}
    for row, (rater, key) in enumerate(zip(cell.raters, cell.keys, strict=True)):
        by_rater.setdefault(rater, {})[key] = row
    alpha = krippendorff_alpha(cell.values, cell.keys, cell.groups, plan=cells.settings.plan)
    rows = []
    for first, second in combinations(sorted(by_rater), 2):
        shared = [key for key in by_rater[first] if key in by_rater[second]]
        if shared:
            one = cell.part([by_rater[first][key] for key in shared])
            measured = cells.measure(one, cell.values[[by_rater[second][key] for key in shared]])
            reason = measured.reason.replace("scores", "ratings")
            rows.append(Ceiling(*cell.where, first, second, *measured.estimates, alpha, reason))
    return rows

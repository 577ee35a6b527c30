"""How far one metric agrees with the raters: by item, by rater, by system, and beside the raters themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from proctor.audits.frames import ALL, KINDS, Cell, CorrelationSettings, Frame, Measured, paired
from proctor.audits.length import LengthBias, length_bias, lengths
from proctor.audits.ratings import MetricScores, RatingsTable
from proctor.stats import Estimate, Floats, Resamples, Sampled, average, krippendorff_alpha


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's τ-b, Pearson's r, Spearman's ρ and their mean between a metric's scores and ratings.

    Several raters of an answer count as several pairs. `rater` names one rater, or is "mean" (each
    answer's mean rating), or '' for all. Estimates count `n` ratings and `groups`; `answers` and
    `raters` count those. Where there is no correlation the values are None and `reason` says why; `note` says
    why they have no interval where too few groups carry the variation.
    """

    dataset: str
    language: str
    dimension: str
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
    """The mean over a language's dimensions of the mean correlation on all datasets; None, with the reason,
    where one of them has none."""

    language: str
    mean: Estimate
    dimensions: int
    reason: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class SystemLevel:
    """Do the metric's means rank the systems as the ratings' means do? `systems` holds (name, mean score,
    mean rating, number of ratings). Correlations over so few systems have no interval worth showing."""

    dataset: str
    language: str
    dimension: str
    systems: tuple[tuple[str, float, float, int], ...]
    kendall: float | None
    pearson: float | None
    spearman: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How far two raters of the same answers agree, as `Agreement` measures it, and Krippendorff's α (ordinal)
    of all raters of the cell. It is no upper limit of a metric: see `perfect`."""

    dataset: str
    language: str
    dimension: str
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
        """Pearson's r that a perfect metric would have with one of the raters: √r of the two (Spearman 1904,
        American Journal of Psychology 15:72).

        Perfect is to give each answer the mean of what infinitely many raters would give it. Raters are taken to err
        alike and independently; 0 where r is below 0, None where there is none. Against the mean of k such raters it
        is √(k r / (1 + (k − 1) r)). It holds for Pearson's r alone; that of ranks is about as large.
        """
        r = self.pearson.value
        return None if r is None else math.sqrt(max(r, 0.0))


@dataclass(frozen=True)
class Audit:
    """Everything that one metric's scores and the ratings say of each other."""

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
    """Holds a metric against ratings.

    Agreement is given for each dataset, and for all together, × language × dimension. Raters are told
    apart, and the ceiling given, where a cell has two or more of them. Raises `InputError` where the
    metric has no score for a rated answer.

    >>> from proctor.audits import Rating
    >>> rows = [(f"e{k}", value) for k, value in enumerate([0.0, 0.5, 1.0, 1.0])]
    >>> table = RatingsTable(tuple(Rating(e, "…", "s1", "overall", "r1", value) for e, value in rows))
    >>> metric = MetricScores("mine", {(e, "s1", "overall"): k / 4 for k, (e, _) in enumerate(rows)})
    >>> round(audit(table, metric, CorrelationSettings(draws=100)).agreements[0].kendall.value, 3)
    0.913
    """
    frame = Frame(table, settings or CorrelationSettings())
    pairs = [(cell, *paired(cell, metric)) for cell in frame.cells]
    measured = [frame.measure(cell, scores, reason) for cell, scores, reason in pairs]
    aggregates = []
    for language in dict.fromkeys(cell.language for cell in frame.cells):
        mean, count, reason, note = aggregated(frame.cells, measured, language)
        aggregates.append(Aggregate(language, mean.estimate(), count, reason, note))
    known = lengths(table)
    several = [(cell, scores) for cell, scores, reason in pairs if not reason and len(set(cell.raters)) > 1]
    return Audit(
        metric=metric.name,
        settings=frame.settings,
        agreements=tuple(_agreement(cell, one) for cell, one in zip(frame.cells, measured, strict=True)),
        aggregates=tuple(aggregates),
        by_rater=tuple(row for cell, scores in several for row in _by_rater(frame, cell, scores)),
        by_system=tuple(_by_system(cell, scores, reason) for cell, scores, reason in pairs),
        ceilings=tuple(row for cell in frame.cells if len(set(cell.raters)) > 1 for row in _ceilings(frame, cell)),
        by_length=tuple(
            length_bias(frame, cell, scores, one.kinds[KINDS.index("spearman")], known)
            for (cell, scores, reason), one in zip(pairs, measured, strict=True)
            if not reason
        ),
        notes=metric.notes,
    )


def aggregated(cells: Sequence[Cell], measured: Sequence[Measured], language: str) -> tuple[Sampled, int, str, str]:
    """The mean over a language's dimensions on all datasets, their number, why there is none, and why it has no
    interval where too few groups carry the variation of one of them."""
    inside = [
        (cell, one)
        for cell, one in zip(cells, measured, strict=True)
        if (cell.dataset, cell.language) == (ALL, language)
    ]
    reasons = [f"{cell.dimension}: {one.reason}" for cell, one in inside if one.reason]
    notes = [f"{cell.dimension}: {one.note}" for cell, one in inside if one.note and not reasons]
    return average([one.mean for _, one in inside]), len(inside), "; ".join(reasons), "; ".join(notes)


def _agreement(cell: Cell, measured: Measured, rater: str = "") -> Agreement:
    kendall, pearson, spearman = (one.estimate() for one in measured.kinds)
    return Agreement(
        cell.dataset,
        cell.language,
        cell.dimension,
        rater,
        kendall,
        pearson,
        spearman,
        measured.mean.estimate(),
        len(set(cell.keys)),
        len(set(cell.raters) - {""}),
        measured.reason,
        measured.note,
    )


def _by_rater(frame: Frame, cell: Cell, scores: Floats) -> list[Agreement]:
    rows = []
    for rater in sorted(set(cell.raters)):
        places = [place for place, one in enumerate(cell.raters) if one == rater]
        own = cell.part(places)
        rows.append(_agreement(own, frame.measure(own, scores[places]), rater))
    if len(set(cell.keys)) < len(cell.keys):
        mean = cell.rater_mean()
        by_key = dict(zip(cell.keys, scores, strict=True))
        rows.append(_agreement(mean, frame.measure(mean, np.array([by_key[key] for key in mean.keys])), "mean"))
    return rows


def _by_system(cell: Cell, scores: Floats, reason: str) -> SystemLevel:
    where = (cell.dataset, cell.language, cell.dimension)
    if reason:
        return SystemLevel(*where, (), None, None, None, reason)
    names = sorted({system for _, system, _ in cell.keys})
    code = np.array([names.index(system) for _, system, _ in cell.keys], dtype=np.int64)
    count = np.bincount(code)
    means = [np.bincount(code, values) / count for values in (scores, cell.values)]
    rows = tuple(
        (name, float(score), float(rating), int(n)) for name, score, rating, n in zip(names, *means, count, strict=True)
    )
    if len(names) < 3:
        return SystemLevel(*where, rows, None, None, None, "fewer than three systems")
    alone = Resamples(names, drawing=False)
    found = [alone.correlation(kind, means[0], means[1], names).estimate().value for kind in KINDS]
    same = "" if None not in found else "all systems have the same mean"
    return SystemLevel(*where, rows, found[0], found[1], found[2], same)


def _ceilings(frame: Frame, cell: Cell) -> list[Ceiling]:
    by_rater: dict[str, dict[tuple[str, str, str], int]] = {}
    for place, (rater, key) in enumerate(zip(cell.raters, cell.keys, strict=True)):
        by_rater.setdefault(rater, {})[key] = place
    alpha = krippendorff_alpha(cell.values, cell.keys, cell.groups, **frame.settings.options)
    rows = []
    for first, second in combinations(sorted(by_rater), 2):
        shared = [key for key in by_rater[first] if key in by_rater[second]]
        if not shared:
            continue
        one = cell.part([by_rater[first][key] for key in shared])
        other = cell.values[[by_rater[second][key] for key in shared]]
        measured = frame.measure(one, other)
        kendall, pearson, spearman = (kind.estimate() for kind in measured.kinds)
        reason = measured.reason.replace("scores", "ratings")
        rows.append(
            Ceiling(
                cell.dataset,
                cell.language,
                cell.dimension,
                first,
                second,
                kendall,
                pearson,
                spearman,
                measured.mean.estimate(),
                alpha,
                reason,
            )
        )
    return rows

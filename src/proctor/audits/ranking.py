"""Several metrics against the same ratings: which one agrees better, and is the lead real?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from proctor.audits.agreement import KINDS, Correlations, CorrelationSettings, RatingCells, aggregated, paired
from proctor.audits.ratings import ALL, MetricScores, RatingsTable
from proctor.core import InputError
from proctor.stats import Contrast, Estimate, Sampled, contrast, holm, ordered_ranks, tie_groups


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """`first` less `second` in their mean correlation, with a clustered interval and p; `p_holm` is p adjusted
    for all pairs of the board."""

    first: str
    second: str
    difference: Contrast
    p_holm: float | None


@dataclass(frozen=True, slots=True)
class RankedMetric:
    """A metric on a board: `rank` is 1 + the number of metrics that are significantly better, and never better than
    that of a metric with a higher correlation. None, with the reason, where it has no correlation.
    Metrics that share a number in `ties` can't be told apart (see `tie_groups`). `note` says why there is no interval,
    and no p, where too few groups carry the variation. `kendall`, `pearson` and
    `spearman` are given on boards of one dimension."""

    metric: str
    mean: Estimate
    kendall: float | None
    pearson: float | None
    spearman: float | None
    rank: int | None
    ties: tuple[int, ...]
    reason: str
    note: str = ""


@dataclass(frozen=True)
class MetricRanking:
    """The metrics on all datasets of a language, best first, and every pair of them. `dimension` is '' for the
    mean over all dimensions."""

    language: str
    dimension: str
    metrics: tuple[RankedMetric, ...]
    comparisons: tuple[MetricComparison, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A metric on one board; `kinds` (in the order of `KINDS`) only where it is of one dimension."""

    metric: str
    sampled: Sampled
    reason: str
    note: str
    kinds: tuple[float | None, ...] = (None,) * len(KINDS)

    def ranked(self, rank: int | None, ties: Sequence[int]) -> RankedMetric:
        kendall, pearson, spearman = self.kinds
        mean = self.sampled.estimate()
        return RankedMetric(self.metric, mean, kendall, pearson, spearman, rank, tuple(ties), self.reason, self.note)


def compare(
    table: RatingsTable,
    metrics: Sequence[MetricScores],
    settings: CorrelationSettings | None = None,
    *,
    alpha: float = 0.05,
) -> tuple[MetricRanking, ...]:
    """Ranks metrics per language: by the mean over its dimensions, and by each dimension.

    A metric is significantly better where its mean correlation is higher and the paired clustered test
    (see `contrast`), adjusted by Holm over all pairs of the board, gives p ≤ `alpha`. All metrics get
    the same samples. Raises `InputError` for a name given twice and for a missing score.
    """
    names = [metric.name for metric in metrics]
    if len(set(names)) != len(names):
        raise InputError("metrics", found=", ".join(names), expected="each name once")
    every = RatingCells(table, settings or CorrelationSettings())
    cells = [cell for cell in every.cells if cell.dataset == ALL]
    measured = [[every.measure(cell, *paired(cell, metric)) for cell in cells] for metric in metrics]
    boards = []
    for language in dict.fromkeys(cell.language for cell in cells):
        overall = []
        for name, row in zip(names, measured, strict=True):
            mean, _, reason, note = aggregated(cells, row, language)
            overall.append(_Entry(name, mean, reason, note))
        boards.append(_board(language, "", overall, alpha))
        for k, cell in enumerate(cells):
            if cell.language == language:
                entries = [_entry(name, row[k]) for name, row in zip(names, measured, strict=True)]
                boards.append(_board(language, cell.dimension, entries, alpha))
    return tuple(boards)


def _entry(name: str, measured: Correlations) -> _Entry:
    kinds = tuple(one.observed if one.defined else None for one in measured.kinds)
    return _Entry(name, measured.mean, measured.reason, measured.note, kinds)


def _board(language: str, dimension: str, entries: Sequence[_Entry], alpha: float) -> MetricRanking:
    ordered = sorted(
        entries,
        key=lambda one: (not one.sampled.defined, -one.sampled.observed if one.sampled.defined else 0.0, one.metric),
    )
    pairs = list(combinations(ordered, 2))
    differences = [contrast(one.sampled, other.sampled) for one, other in pairs]
    known = [k for k, one in enumerate(differences) if one.p is not None]
    adjusted = dict(zip(known, holm([differences[k].p or 0.0 for k in known]).tolist(), strict=True))
    comparisons = tuple(
        MetricComparison(one.metric, other.metric, apart, adjusted.get(k))
        for k, ((one, other), apart) in enumerate(zip(pairs, differences, strict=True))
    )
    # The first of a pair is never below the second, since they are ordered.
    told = [pair for k, pair in enumerate(combinations(range(len(ordered)), 2)) if adjusted.get(k, 1) <= alpha]
    groups = tie_groups(sum(entry.sampled.defined for entry in ordered), told)
    counts = np.ones(len(ordered))
    for _, lower in told:
        counts[lower] += 1
    defined = [entry for entry in ordered if entry.sampled.defined]  # they stand first
    ranks = ordered_ranks(counts[: len(defined)], np.array([entry.sampled.observed for entry in defined]))
    ranked = tuple(
        entry.ranked(
            int(ranks[row]) if entry.sampled.defined else None,
            [number for number, group in enumerate(groups, start=1) if row in group],
        )
        for row, entry in enumerate(ordered)
    )
    return MetricRanking(language, dimension, ranked, comparisons)

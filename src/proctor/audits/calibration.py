"""What a score means: the rating to expect at it, and the scores that each rating gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proctor.audits.frames import Cell, CorrelationSettings
from proctor.stats import Estimate, Floats, Ints, slice_means

_MOST_BINS = 8
_MOST_LEVELS = 8


@dataclass(frozen=True, slots=True)
class ScoreBin:
    """The ratings whose answers got scores from `low` to `high` (both met): the mean score, and the mean
    rating with its clustered interval (see `slice_means`)."""

    low: float
    high: float
    score: float
    rating: Estimate


@dataclass(frozen=True, slots=True)
class RatedLevel:
    """The scores of what was rated from `low` to `high` (the same where ratings have few values): their mean,
    quartiles, and the ends of their middle 90 % (`least`, `most`), over `n` ratings."""

    low: float
    high: float
    n: int
    mean: float
    least: float
    q1: float
    median: float
    q3: float
    most: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """One cell's bins of scores and levels of ratings, lowest first; none of either where `reason` says why."""

    dataset: str
    language: str
    dimension: str
    bins: tuple[ScoreBin, ...]
    levels: tuple[RatedLevel, ...]
    reason: str


def calibration(cell: Cell, scores: Floats, reason: str, settings: CorrelationSettings) -> Calibration:
    """Up to eight bins of about as many ratings each, equal scores in one bin; and the levels of ratings, or
    up to eight bins of them where they have more values. `reason` is why there are no scores, if there are none.
    """
    where = (cell.dataset, cell.language, cell.dimension)
    if reason:
        return Calibration(*where, (), (), reason)
    return Calibration(*where, _bins(cell, scores, settings), _levels(cell, scores), "")


def _bins(cell: Cell, scores: Floats, settings: CorrelationSettings) -> tuple[ScoreBin, ...]:
    code, count = _parts(scores, _MOST_BINS)
    means = slice_means(cell.values, cell.groups, code, count, **settings.options)
    found = []
    for place, mean in enumerate(means):
        inside = scores[code == place]
        plain = Estimate(mean.value, None, None, mean.n, mean.groups)
        shown = mean if settings.draws else plain
        found.append(ScoreBin(float(inside.min()), float(inside.max()), float(inside.mean()), shown))
    return tuple(found)


def _levels(cell: Cell, scores: Floats) -> tuple[RatedLevel, ...]:
    different = np.unique(cell.values)
    if len(different) <= _MOST_LEVELS:
        code, count = np.searchsorted(different, cell.values), len(different)
    else:
        code, count = _parts(cell.values, _MOST_LEVELS)
    found = []
    for place in range(count):
        rated, scored = cell.values[code == place], scores[code == place]
        ends = [float(one) for one in np.quantile(scored, (0.05, 0.25, 0.5, 0.75, 0.95))]
        found.append(RatedLevel(float(rated.min()), float(rated.max()), len(rated), float(scored.mean()), *ends))
    return tuple(found)


def _parts(values: Floats, most: int) -> tuple[Ints, int]:
    """For each value the number of its part, and how many parts there are: about as many values in each, equal
    values together, none empty."""
    edges = np.unique(np.quantile(values, np.arange(1, most) / most))
    code = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]
    return code.astype(np.int64), int(code.max()) + 1

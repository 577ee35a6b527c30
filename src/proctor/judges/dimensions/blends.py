"""Mixtures of metrics and judges, learned from rated answers in folds that part no encounter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proctor.audits import ALL, CorrelationSettings, Key, MetricScores, RatingCell, RatingCells, RatingsTable, paired
from proctor.judges.dimensions.fitted import agreement
from proctor.stats import Floats, Ints

Folds = Mapping[tuple[str, str], int]
"""The fold of each encounter, by language and encounter."""


@dataclass(frozen=True)
class BlendMember:
    """What may stand in a mixture: for each fold the scores of every answer by what was learned without that fold's
    ratings. The scores of the fold itself are out of fold, and so are, by what was learned without two folds, those that
    a mixture learns from: else it would learn from scores that have seen the ratings it is examined on."""

    name: str
    leaving: tuple[MetricScores, ...]

    @classmethod
    def fixed(cls, metric: MetricScores, folds: int) -> BlendMember:
        """A metric that learned nothing from these ratings."""
        return cls(metric.name, (metric,) * folds)


Weights = Callable[[Floats, Floats], Floats]
"""From standardised scores (answers × members) and ratings to the members' weights."""


def equal_weights(scores: Floats, ratings: Floats) -> Floats:
    """One for each: nothing is learned but means and spreads of scores."""
    del ratings
    return np.ones(scores.shape[1])


def stacked_weights(scores: Floats, ratings: Floats) -> Floats:
    """Least squares on the ratings without negative weights (Breiman 1996, Machine Learning 24:49).

    >>> stacked_weights(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, 0.0])).round(6).tolist()
    [0.5, 0.0]
    """
    from scipy.optimize import nnls

    return np.asarray(nnls(scores, ratings - ratings.mean())[0], dtype=np.float64)


def best_alone(scores: Floats, ratings: Floats) -> Floats:
    """The member that agrees most with the ratings, and no other; the first among equals."""
    found = [agreement(column.tolist(), ratings.tolist()) for column in scores.T]
    chosen = max(range(len(found)), key=lambda place: -2.0 if found[place] is None else float(found[place] or 0.0))
    return np.asarray(np.eye(len(found))[chosen], dtype=np.float64)


def blended(
    name: str, table: RatingsTable, members: Sequence[BlendMember], folds: Folds, weights: Weights
) -> MetricScores:
    """The scores of a mixture, each answer's by weights learned without its fold, for each language's dimension apart.

    Scores are standardised by the training answers', and the mixture by its own there, so that folds are on one scale.
    A member that opted out of a dimension is none of it; where all did, the mixture opts out.
    """
    frame = RatingCells(table, CorrelationSettings(draws=0))
    found: dict[Key, float | None] = {}
    for cell in frame.cells:
        if cell.dataset != ALL:
            continue
        fold = np.array([folds[cell.language, group] for group in cell.groups], dtype=np.int64)
        mixed = np.zeros(len(fold))
        known = False
        for number in np.unique(fold):
            columns = _columns(cell, members, int(number))
            known = known or bool(columns)
            if columns:
                mixed[fold == number] = _one_fold(np.stack(columns, axis=1), cell.values, fold == number, weights)
        found |= dict(zip(cell.keys, mixed.tolist(), strict=True)) if known else dict.fromkeys(cell.keys)
    return MetricScores(name, found)


def _columns(cell: RatingCell, members: Sequence[BlendMember], fold: int) -> list[Floats]:
    pairs = [paired(cell, one.leaving[fold]) for one in members]
    return [scores for scores, opted_out in pairs if not opted_out]


def _one_fold(scores: Floats, ratings: Floats, outside: Ints | np.ndarray, weights: Weights) -> Floats:
    """The mixture's scores of the answers outside, learned from the others."""
    inside = ~outside
    centre, spread = scores[inside].mean(axis=0), scores[inside].std(axis=0)
    alike = (scores - centre) / np.where(spread > 1e-12, spread, np.inf)
    mixed = alike @ weights(alike[inside], ratings[inside])
    own = float(mixed[inside].std())
    return np.asarray(mixed[outside] / own if own > 1e-12 else np.zeros(int(outside.sum())), dtype=np.float64)

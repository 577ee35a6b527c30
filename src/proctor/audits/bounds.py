"""Bounds on agreement: what scores would reach that know part of the ratings. They say where there is room, and are no
metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.audits.agreement import CorrelationSettings, RatingCell, RatingCells, paired
from proctor.audits.ratings import ALL, Key, MetricScores, RatingsTable
from proctor.core import generator
from proctor.stats import Floats

ORDER = "perfect order, equal ratings in random order"
OTHERS = "the same answer's ratings on the other dimensions"
SIBLINGS = "the mean rating of the other answers to the question"
TRUE_BETWEEN = "the true mean of each group, the judge's order within it"
TRUE_WITHIN = "the judge's mean of each group, the true order within it"

_DRAWS = 10
_RIDGE = 1e-6


def bounds(
    table: RatingsTable, judge: Sequence[MetricScores] = (), *, seed: int = 0
) -> dict[str, tuple[MetricScores, ...]]:
    """The scores of oracles on each answer's dimension, as `leads` takes them; with `judge` (its draws) also what it
    would be with the true means of groups, or the true order within them.

    The perfect order is that of the ratings, with equal ones in random order (10 draws): no score without ties does
    better. The ratings on other dimensions predict by least squares, fitted without the answer's group; languages with
    one dimension have none, and the cell's mean stands for what is not there. A judge's scores are put on the mean and
    spread of the ratings first. Where an answer was rated twice, its mean rating counts.

    >>> from proctor.audits import Rating
    >>> table = RatingsTable(tuple(Rating(e, "…", s, "overall", "r", v) for e, s, v in [("a", "x", 1), ("a", "y", 0), ("b", "x", 1)]))
    >>> list(bounds(table)[SIBLINGS][0].scores.values())
    [0.0, 1.0, 0.6666666666666666]
    """
    frame = RatingCells(table, CorrelationSettings(draws=0))
    cells = [cell.rater_mean() for cell in frame.cells if cell.dataset == ALL]
    found: dict[str, list[dict[Key, float | None]]] = {ORDER: [{} for _ in range(_DRAWS)], OTHERS: [{}], SIBLINGS: [{}]}
    for cell in cells:
        for draw in range(_DRAWS):
            found[ORDER][draw] |= _scores(cell, _random_ties(cell, seed, draw))
        siblings = [one for one in cells if one.language == cell.language and one.dimension != cell.dimension]
        found[OTHERS][0] |= _scores(cell, _from_others(cell, siblings))
        found[SIBLINGS][0] |= _scores(cell, _without_own(cell))
    for name in (TRUE_BETWEEN, TRUE_WITHIN) if judge else ():
        found[name] = [
            {
                key: value
                for cell in cells
                for key, value in _scores(cell, _half_true(cell, one, name == TRUE_BETWEEN)).items()
            }
            for one in judge
        ]
    return {name: tuple(MetricScores(name, one) for one in draws) for name, draws in found.items()}


def _scores(cell: RatingCell, values: Floats | None) -> dict[Key, float | None]:
    return dict.fromkeys(cell.keys) if values is None else dict(zip(cell.keys, values.tolist(), strict=True))


def _random_ties(cell: RatingCell, seed: int, draw: int) -> Floats:
    """The ratings, each moved by next to nothing."""
    shuffled = generator(seed, "bounds", *cell.where, str(draw)).permutation(len(cell.values))
    return np.asarray(cell.values + np.ptp(cell.values) * 1e-6 * shuffled / len(shuffled), dtype=np.float64)


def _from_others(cell: RatingCell, others: Sequence[RatingCell]) -> Floats | None:
    """What least squares on the same answer's other ratings predict, fitted on other groups."""
    if not others:
        return None
    groups = np.array(cell.groups)
    columns = []
    for one in others:
        known = {key[:2]: value for key, value in zip(one.keys, one.values.tolist(), strict=True)}
        columns.append(np.array([known.get(key[:2], float(one.values.mean())) for key in cell.keys]))
    design = np.stack(columns, axis=1)
    predicted = np.zeros(len(groups))
    for group in np.unique(groups):
        out = groups == group
        given, rated = design[~out] - design[~out].mean(axis=0), cell.values[~out] - cell.values[~out].mean()
        products = given.T @ given + _RIDGE * np.eye(design.shape[1])  # a rating that never varies adds nothing
        # From the middle of all, not of those it was fitted on: that is the lower the higher the group's own ratings.
        predicted[out] = (design[out] - design.mean(axis=0)) @ np.linalg.solve(products, given.T @ rated)
    return predicted


def _by_group(cell: RatingCell, values: Floats) -> tuple[Floats, Floats]:
    """Of each answer the sum of its group's values, and their number."""
    code = np.unique(np.array(cell.groups), return_inverse=True)[1]
    return np.asarray(np.bincount(code, values)[code], dtype=np.float64), np.bincount(code)[code].astype(np.float64)


def _without_own(cell: RatingCell) -> Floats:
    total, count = _by_group(cell, cell.values)
    alone = count == 1
    others = (total - cell.values) / np.where(alone, 1.0, count - 1)
    return np.where(alone, cell.values.mean(), others)


def _half_true(cell: RatingCell, judge: MetricScores, between: bool) -> Floats | None:
    """The judge's scores with the true means of groups, or with the true differences within them."""
    scores, out = paired(cell, judge)
    if out:
        return None
    spread = float(scores.std()) or 1.0
    scaled = cell.values.mean() + cell.values.std() * (scores - scores.mean()) / spread
    (of_judge, count), (of_raters, _) = _by_group(cell, scaled), _by_group(cell, cell.values)
    apart = (of_raters - of_judge) / count
    return scaled + apart if between else cell.values - apart

"""Item analysis: difficulty and discrimination of items by the systems that answered them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proctor.core import InputError
from proctor.stats.bootstrap import Estimate, Resampling
from proctor.stats.clusters import Floats, Groups
from proctor.stats.means import Matrix, mean_interval

FEWEST_SYSTEMS = 4
"""Systems without which a correlation over systems is not computed."""


@dataclass(frozen=True, slots=True)
class ItemAnalysis:
    """Per item (in the order given): `difficulty`, the mean score over systems (high: easy); `discrimination`, the corrected
    item-total correlation over systems, NaN if all systems score the same; `missed_by_good` and `right_by_poor`, the mean
    score lacking in the better half of the systems and gained in the poorer half (by the score on all other items; the middle
    one of an odd number is in neither).

    `mean_discrimination` is that of the items where it is known and `negative` the share of them below 0, both with intervals over
    groups. A single item has no interval: systems are no sample of anything.

    >>> item_analysis([[1, 1], [1, 0], [0, 1], [0, 0]], ["a", "b"]).difficulty.tolist()
    [0.5, 0.5]
    """

    difficulty: Floats
    discrimination: Floats
    missed_by_good: Floats
    right_by_poor: Floats
    mean_discrimination: Estimate
    negative: Estimate

    def suspects(self) -> list[int]:
        """Items that the better half misses more often than the poorer half: a wrong key is the first thing to look for. Most
        suspicious first (the largest gap, then the lowest discrimination)."""
        gap = self.missed_by_good - (1 - self.right_by_poor)
        order = np.lexsort((np.nan_to_num(self.discrimination), -gap))
        return [int(item) for item in order if gap[item] > 1e-9 and self.discrimination[item] < 0]


def item_analysis(matrix: Matrix, groups: Groups, plan: Resampling = Resampling()) -> ItemAnalysis:
    """The analysis of `matrix` (systems × items, scores from 0 to 1, none missing). The total that an item is correlated with, and by
    which systems are ordered, leaves the item out: the corrected item-total correlation (Henrysson 1963, Psychometrika 28:211).

    Raises `InputError` for fewer than four systems or two items, and for scores out of range.

    >>> found = item_analysis([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 1]], list("abcd"))
    >>> found.difficulty.tolist(), found.suspects()  # the last item is right where all others are wrong
    ([0.75, 0.5, 0.25, 0.5], [3])
    >>> found.discrimination.round(3).tolist()
    [0.333, 0.0, 0.333, -0.894]
    """
    scores = np.asarray(matrix, dtype=np.float64)
    if scores.ndim != 2 or len(scores) < FEWEST_SYSTEMS or scores.shape[1] < 2:
        found = " × ".join(map(str, scores.shape))
        raise InputError("scores", found=found, expected=f"{FEWEST_SYSTEMS} systems and two items or more")
    if not np.all((scores >= 0) & (scores <= 1)):
        raise InputError("scores", found="a score out of range or missing", expected="numbers from 0 to 1")
    rest = scores.sum(axis=1, keepdims=True) - scores
    discrimination = _correlations(scores, rest)
    half = len(scores) // 2
    order = np.argsort(rest, axis=0, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=0)
    known = ~np.isnan(discrimination)
    own = [group for group, there in zip(groups, known, strict=True) if there]
    return ItemAnalysis(
        difficulty=scores.mean(axis=0),
        discrimination=discrimination,
        missed_by_good=1 - ordered[-half:].mean(axis=0),
        right_by_poor=ordered[:half].mean(axis=0),
        mean_discrimination=mean_interval(discrimination[known], own, plan.within(-1, 1)),
        negative=mean_interval((discrimination[known] < 0) * 1.0, own, plan.within(0, 1)),
    )


def _correlations(a: Floats, b: Floats) -> Floats:
    """Pearson's correlation of each column; NaN if one side is constant."""
    one, other = a - a.mean(axis=0), b - b.mean(axis=0)
    size = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    found: Floats = np.divide((one * other).sum(axis=0), size, out=np.full(a.shape[1], np.nan), where=size > 1e-12)
    return found

"""How far scores agree with ratings, as one number to choose by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from proctor.stats import Resamples

__all__ = ["agreement"]

_KINDS: tuple[Literal["kendall", "pearson", "spearman"], ...] = ("kendall", "pearson", "spearman")


def agreement(scores: Sequence[float], ratings: Sequence[float]) -> float | None:
    """The task's figure: the mean of Kendall's, Pearson's and Spearman's correlation, −1 to 1; None where it
    isn't defined (fewer than two pairs, or all scores or all ratings the same).

    >>> agreement([0.1, 0.2, 0.3], [0.0, 0.5, 1.0]), agreement([0.5, 0.5], [0, 1])
    (1.0, None)
    """
    each = [str(place) for place in range(len(scores))]
    samples = Resamples(each, drawing=False)
    found = [samples.correlation(kind, list(scores), list(ratings), each) for kind in _KINDS]
    return sum(one.whole for one in found) / len(found) if all(one.defined for one in found) else None

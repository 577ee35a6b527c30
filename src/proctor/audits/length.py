"""Does a metric like long answers, and more than the raters do?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from proctor.audits.frames import Cell, Frame
from proctor.audits.ratings import RatingsTable
from proctor.metrics.text import tokens
from proctor.stats import Contrast, Estimate, Floats, Sampled, contrast


@dataclass(frozen=True, slots=True)
class LengthBias:
    """How the length of an answer (in words; in characters where a script has no spaces) goes with the
    metric's scores and with the ratings, by Spearman's ρ; `excess` is the first less the second: above 0
    the metric likes length more than the raters do. `partial` is ρ of scores and ratings with length held
    fixed; what is left of an agreement that is more than length. None, with the reason, where one of
    these is constant.
    """

    dataset: str
    language: str
    dimension: str
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
    return {(one.item, one.system): len(tokens(one.candidate)) for one in table.ratings}


def length_bias(
    frame: Frame, cell: Cell, scores: Floats, agreement: Sampled, known: dict[tuple[str, str], int]
) -> LengthBias:
    """The bias in one cell, whose ratings have these scores and go with them by `agreement` (Spearman's ρ);
    `known` are the lengths of the answers."""
    length = np.array([known[key[:2]] for key in cell.keys], dtype=np.float64)
    samples = frame.samples(cell)
    with_scores, with_ratings = (
        samples.correlation("spearman", length, values, cell.groups) for values in (scores, cell.values)
    )
    flat = [
        what
        for what, values in (("lengths", length), ("scores", scores), ("ratings", cell.values))
        if not len(values) or np.ptp(values) == 0
    ]
    return LengthBias(
        cell.dataset,
        cell.language,
        cell.dimension,
        with_scores.estimate(),
        with_ratings.estimate(),
        contrast(with_scores, with_ratings),
        None if flat else _partial(agreement.whole, with_scores.whole, with_ratings.whole),
        f"all {flat[0]} are the same" if flat else "",
    )


def _partial(between: float, first: float, second: float) -> float | None:
    """The partial correlation (r − r₁ r₂) / √((1 − r₁²)(1 − r₂²)); None where length says everything."""
    room = (1 - first**2) * (1 - second**2)
    return (between - first * second) / math.sqrt(room) if room > 1e-12 else None

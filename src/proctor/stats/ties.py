"""Who can't be told apart from whom: ranks that follow the scores, their confidence intervals, and sets of equals."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from proctor.core import InputError
from proctor.stats.clusters import Floats, Ints
from proctor.stats.multiplicity import holm


def tie_groups(count: int, different: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The largest sets of 0 … `count` − 1 in which no two are `different`, by their first members.

    Everyone is in at least one; who is in two stands between them. "Not different" is no equality: of
    three, the outer two may differ while neither differs from the middle one (insert and absorb: Piepho
    2004, Journal of Computational and Graphical Statistics 13:456). Raises `InputError` for a pair that
    is not of two numbers in the range.

    >>> tie_groups(3, [(0, 2)])
    [(0, 1), (1, 2)]
    >>> tie_groups(2, [])
    [(0, 1)]
    """
    sets = [frozenset(range(count))] if count else []
    for first, second in different:
        if first == second or not (0 <= first < count and 0 <= second < count):
            raise InputError(None, "pair", found=f"{first}, {second}", expected=f"two of 0 to {count - 1}")
        split: set[frozenset[int]] = set()
        for one in sets:
            both = {first, second} <= one
            split |= {one - {first}, one - {second}} if both else {one}
        sets = [one for one in split if not any(one < other for other in split)]
    return sorted(tuple(sorted(one)) for one in sets)


def ordered_ranks(counts: Floats, scores: Floats) -> Floats:
    """Ranks that follow the scores: each system's is the highest of the `counts` of all that score at least as much.

    Counts are 1 + the number of significantly better systems. Counting alone would put an erratic system, which few
    beat because its results vary, before a better and steadier one; so no lower score ever has the better rank, and
    equal scores share theirs. Leading axes (buckets, samples) are kept.

    >>> ordered_ranks(np.array([1.0, 1.0, 2.0]), np.array([0.78, 0.46, 0.58])).tolist()
    [1.0, 2.0, 2.0]
    """
    rounded = np.round(scores, 12)  # a crumb of rounding decides no rank
    above = rounded[..., None, :] >= rounded[..., :, None]
    found: Floats = np.where(above, counts[..., None, :], 0.0).max(axis=-1, initial=0.0)
    return found


def rank_intervals(p_values: Floats, signs: Floats, count: int, level: float = 0.95) -> tuple[Ints, Ints]:
    """The lowest and highest rank of each of `count` systems, with a simultaneous confidence of `level`.

    `p_values` are the two-sided p of the pairs in the order of `np.triu_indices(count, 1)`, unadjusted; `signs` say
    who is ahead (1 the first, −1 the second). Each pair stands for two one-sided hypotheses (a is no better than b,
    b is no better than a); Holm over all of them rejects none that is true with probability `level`. A system is then
    ranked below those shown to be better and above those shown to be worse, and the intervals of all systems hold
    their true ranks at once; where true scores are equal, every rank that they share (Mogstad, Romano, Shaikh and
    Wilhelm 2024, Review of Economic Studies 91:476; Klein, Wright and Wieczorek 2020, Journal of the Royal Statistical
    Society C 69:589). A bootstrap of ranks does not: it repeats the luck of the sample where systems are close.

    >>> low, high = rank_intervals(np.array([0.5, 0.001, 0.001]), np.array([1.0, 1.0, 1.0]), 3)
    >>> low.tolist(), high.tolist()
    ([1, 1, 3], [2, 2, 3])
    """
    first, second = np.triu_indices(count, 1)
    one_sided = np.concatenate([np.asarray(p_values) / 2, np.ones(len(first))])
    shown = np.where(holm(one_sided)[: len(first)] <= 1 - level + 1e-12, np.sign(signs), 0.0)
    better = np.bincount(first[shown < 0], minlength=count) + np.bincount(second[shown > 0], minlength=count)
    worse = np.bincount(first[shown > 0], minlength=count) + np.bincount(second[shown < 0], minlength=count)
    return 1 + better, count - worse

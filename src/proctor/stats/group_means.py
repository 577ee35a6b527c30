"""The mean of the groups' means: every video counts alike, however many questions it has."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, generator
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes, summed
from proctor.stats.ends import percentile_ends
from proctor.stats.estimate import Estimate
from proctor.stats.intervals import slice_means
from proctor.stats.options import Options, Resampling


def group_mean_slices(
    values: Values, groups: Groups, inside: NDArray[np.bool_], **options: Unpack[Options]
) -> list[Estimate]:
    """For every slice the mean over its groups of each group's mean there, with an interval.

    `inside` (items × slices) says which slices an item is in. Options as in `mean_interval`. As it stands,
    the interval is that of `mean_interval` for the groups' means, one value a group. With `two_level` and
    the method "percentile" it is the plain two-level bootstrap (Davison and Hinkley 1997, section 3.8):
    groups are drawn, then in each as many items as it has; values have to be 0 or 1, since then a drawn
    group's total is binomial and nothing else need be drawn.

    Edges: no item: value None; one group: no interval. Raises `InputError` for shapes that differ, and for
    two levels with other values or another method.

    >>> right, videos = [1, 1, 1, 0], ["a", "a", "a", "b"]
    >>> group_mean_slices(right, videos, np.ones((4, 1), dtype=bool))[0].value
    0.5
    """
    plan = Resampling(**options)
    numbers = finite(values)
    code = group_codes(groups, len(numbers))
    if inside.ndim != 2 or len(inside) != len(numbers):
        raise InputError(None, "inside", found=str(inside.shape), expected=f"{len(numbers)} items × slices")
    n_slices = inside.shape[1]
    item, slice_ = np.nonzero(inside)
    n_groups = int(code.max()) + 1 if len(code) else 0
    cell = slice_ * n_groups + code[item]
    count = summed(cell, np.ones(len(cell)), n_slices * n_groups)
    total = summed(cell, numbers[item], n_slices * n_groups)
    used = np.flatnonzero(count)
    if plan.two_level:
        found = _two_level(count.reshape(n_slices, -1), total.reshape(n_slices, -1), plan)
    else:
        slices, of_group = np.divmod(used, max(1, n_groups))
        found = slice_means(total[used] / count[used], of_group, slices, n_slices, **options)
    sizes = inside.sum(axis=0)
    return [
        Estimate(one.value, one.ci_low, one.ci_high, int(size), one.groups)
        for one, size in zip(found, sizes, strict=True)
    ]


def _two_level(count: Floats, total: Floats, plan: Resampling) -> list[Estimate]:
    if plan.method != "percentile":
        raise InputError(None, "method", found=repr(plan.method), expected="'percentile' with two levels")
    if np.any(total > count) or np.any(total < 0) or np.any(total % 1):
        raise InputError(None, "values", found="others", expected="0 or 1 with two levels")
    rng = generator(plan.seed, "two-level group means")
    result = []
    for size, right in zip(count, total, strict=True):
        here = size > 0
        n = int(here.sum())
        if n < 2:
            value = float(right[here][0] / size[here][0]) if n else None
            result.append(Estimate(value, None, None, 0, n))
            continue
        drawn = _drawn_means(size[here].astype(np.int64), right[here], plan.draws, rng)
        low, high = percentile_ends(np.sort(drawn)[:, None], plan.level)
        mean = float(np.mean(right[here] / size[here]))
        result.append(Estimate(mean, float(low[0]), float(high[0]), 0, n))
    return result


def _drawn_means(size: Ints, right: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """The mean over drawn groups of what drawing their items gives.

    A group that is drawn k times gives k independent binomials of n, whose sum is one binomial of k·n.
    """
    n = len(size)
    picks = rng.integers(0, n, size=(draws, n)) + np.arange(draws)[:, None] * n
    times = np.bincount(picks.ravel(), minlength=draws * n).reshape(draws, n)
    totals: NDArray[Any] = rng.binomial(times * size, right / size)
    means: Floats = (totals / size).sum(axis=1) / n
    return means

"""How far two or more raters of the same items agree: counts of pairs of labels, and agreement beyond chance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.bootstrap import CHUNK, Estimate, Resampling, ratio, sums_interval
from proctor.stats.clusters import Floats, Ints, Values, finite, group_codes
from proctor.stats.correlation import Resamples

Scale = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(
    values: Values,
    items: Sequence[Hashable] | NDArray[Any],
    groups: Sequence[str],
    scale: Scale = "ordinal",
    plan: Resampling = Resampling(),
) -> Estimate:
    """Krippendorff's α of ratings: 1 is full agreement, 0 is that of chance, below 0 is worse than chance.

    One entry per rating: its value, the item rated and the item's group. Items with one rating say nothing
    and are left out; `n` counts the items left, `groups` their groups. α = 1 − observed / expected
    disagreement (Krippendorff 2019, Content Analysis, chapter 12): the squared difference δ² of every two
    ratings of an item, weighted by 1 / (ratings − 1), against that of every two ratings at all. δ² is 1
    for values that differ ("nominal"), (v − w)² ("interval"), or that of their mid-ranks among all
    ratings ("ordinal"). The interval is that of `correlation`, over samples of groups.

    Edges: None where no item has two ratings, or all are the same (nothing could have differed).
    Raises `InputError` for values that are not finite, for lengths that differ and for another scale.

    >>> krippendorff_alpha([1, 1, 2, 2, 3, 3], list("aabbcc"), list("aabbcc"), plan=Resampling(draws=50)).value
    1.0
    >>> krippendorff_alpha([1, 2], ["a", "a"], ["a", "a"], "nominal", plan=Resampling(draws=50)).value
    0.0
    """
    if scale not in ("nominal", "ordinal", "interval"):
        raise InputError(None, "scale", found=repr(scale), expected="'nominal', 'ordinal' or 'interval'")
    numbers, code = finite(values), group_codes(items, len(values))
    if len(groups) != len(numbers):
        raise InputError(None, "groups", found=f"{len(groups)} labels", expected=f"{len(numbers)}")
    times = np.bincount(code, minlength=1)
    kept = np.flatnonzero(times[code] > 1) if len(code) else np.zeros(0, dtype=np.int64)
    if not kept.size:
        return Estimate(None, None, None, 0, 0)
    labels = [groups[position] for position in kept.tolist()]
    samples = Resamples(labels, plan=plan)
    unit, count = samples.units(labels), int((times > 1).sum())
    alphas = _alphas(numbers[kept], code[kept], unit, samples.weights, scale)
    return samples.sampled(alphas, unit, n=count, groups=len(set(labels))).estimate()


def _alphas(values: Floats, item: Ints, unit: Ints, weights: Floats, scale: Scale) -> Floats:
    """α under every row of weights (of units); NaN where it isn't defined."""
    levels, level = np.unique(values, return_inverse=True)
    raters = np.bincount(item)[item].astype(np.float64)
    first, second = _pairs(item)
    margins = np.zeros((weights.shape[1], len(levels)))
    np.add.at(margins, (unit, level), 1.0)
    step = max(1, CHUNK // max(len(first), len(levels)))
    parts = []
    for start in range(0, len(weights), step):
        some = weights[start : start + step]
        counts = some @ margins
        n = counts.sum(axis=1)
        if scale == "nominal":
            apart = np.broadcast_to(level[first] != level[second], (len(some), len(first)))
            expected = n**2 - (counts**2).sum(axis=1)
        else:
            points = np.cumsum(counts, axis=1) - counts / 2 if scale == "ordinal" else levels[None, :]
            points = np.broadcast_to(points, counts.shape)
            apart = (points[:, level[first]] - points[:, level[second]]) ** 2
            expected = 2 * (n * (counts * points**2).sum(axis=1) - (counts * points).sum(axis=1) ** 2)
        observed = (some[:, unit[first]] * apart * (2 / (raters[first] - 1))).sum(axis=1)
        known = expected > 1e-12 * np.maximum(n, 1) ** 2
        ratio = np.divide((n - 1) * observed, expected, out=np.full(len(some), np.nan), where=known)
        parts.append(1 - ratio)
    return np.concatenate(parts)


def _pairs(item: Ints) -> tuple[Ints, Ints]:
    """The places of every two ratings of one item."""
    order = np.argsort(item, kind="stable")
    first, second = [], []
    for places in np.split(order, np.flatnonzero(np.diff(item[order])) + 1):
        one, other = np.triu_indices(len(places), 1)
        first.append(places[one])
        second.append(places[other])
    return np.concatenate(first).astype(np.int64), np.concatenate(second).astype(np.int64)


def cohen_kappa(
    a_labels: Sequence[Hashable],
    b_labels: Sequence[Hashable],
    levels: Sequence[Hashable],
    groups: Sequence[str],
    plan: Resampling = Resampling(),
) -> Estimate:
    """Cohen's κ of two raters of the same items, for labels without order: 1 is full agreement, 0 that of chance.

    Labels are paired by position, with each item's group. κ = (p_o − p_e) / (1 − p_e), p_o the share of items with the
    same label and p_e that share by chance, of each rater's own shares (Cohen 1960, Educational and Psychological
    Measurement 20:37). The interval is that of `sums_interval`, over samples of groups.

    Edges: None where there is no item, or both raters give one label alone and the same (p_e is 1). Raises `InputError`
    as `cross_table`, and for lengths that differ.

    >>> cohen_kappa("yyyynn", "yyynny", "yn", list("aabbcc"), Resampling(draws=50)).value
    0.25
    """
    place = {level: number for number, level in enumerate(levels)}
    cross_table(a_labels, b_labels, levels)  # checks them
    k = len(place)
    columns = np.zeros((len(a_labels), k * k))
    for row, (a, b) in enumerate(zip(a_labels, b_labels, strict=True)):
        columns[row, place[a] * k + place[b]] = 1

    def kappa(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), k, k)
        n = tables.sum(axis=(1, 2))
        same = np.trace(tables, axis1=1, axis2=2) * n
        by_chance = (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1)
        return ratio(same - by_chance, n**2 - by_chance)

    return sums_interval(columns, list(groups), kappa, plan=plan.within(-1, 1))


def cross_table(
    a_labels: Sequence[Hashable], b_labels: Sequence[Hashable], levels: Sequence[Hashable]
) -> NDArray[np.int64]:
    """Counts of every pair of labels: rows are a's levels, columns b's, in the order of `levels`.

    Labels are paired by position. Raises `InputError` for lengths that differ, a level given twice, and
    a label that is no level.

    >>> cross_table([1, 1, 0], [1, 0, 0], levels=[1, 0]).tolist()
    [[1, 1], [0, 1]]
    """
    if len(a_labels) != len(b_labels):
        raise InputError(None, "labels", found=f"{len(a_labels)} and {len(b_labels)}", expected="pairs")
    position = {level: number for number, level in enumerate(levels)}
    if len(position) != len(levels):
        raise InputError(None, "levels", found=str(list(levels)), expected="each level once")
    table = np.zeros((len(levels), len(levels)), dtype=np.int64)
    for number, pair in enumerate(zip(a_labels, b_labels, strict=True)):
        for label in pair:
            if label not in position:
                expected = "one of " + ", ".join(str(level) for level in levels)
                raise InputError(None, f"label of item {number}", found=repr(label), expected=expected)
        table[position[pair[0]], position[pair[1]]] += 1
    return table

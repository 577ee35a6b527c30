"""Inter-rater agreement: percent agreement, chance-corrected coefficients, and the cross table of two raters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, count_of
from proctor.stats.bootstrap import Estimate, Resampling, ratio, sums_interval
from proctor.stats.clusters import Floats, Ints, Values, finite, group_codes
from proctor.stats.means import mean_interval

Scale = Literal["nominal", "ordinal", "interval"]

_ROUNDING = 1e-12


def krippendorff_alpha(
    values: Values,
    items: Sequence[Hashable] | NDArray[Any],
    groups: Sequence[str],
    scale: Scale = "ordinal",
    plan: Resampling = Resampling(),
) -> Estimate:
    """Krippendorff's α of ratings: 1 is full agreement, 0 is chance agreement, below 0 is worse than chance.

    One entry per rating: its value, the rated item and the item's group. Items with a single rating are excluded; `n`
    counts the remaining items, `groups` their groups. α = 1 − observed / expected disagreement (Krippendorff 2019,
    Content Analysis, chapter 12). Observed disagreement is the mean squared difference δ² over pairs of ratings of the
    same item, weighted by 1 / (ratings − 1); expected disagreement is that over all pairs of ratings. δ² is 1 for
    different values ("nominal"), (v − w)² ("interval"), or the squared difference of mid-ranks among all ratings
    ("ordinal"). The interval is that of `sums_interval`, as for κ.

    Edges: None if no item has two ratings, or if all ratings are equal (α is undefined); no interval if fewer than
    three groups contain a value other than the most frequent one, since many resamples would contain none.
    Raises `InputError` for values that are not finite, unequal lengths, ratings of one item in two groups, and an unknown
    scale.

    >>> krippendorff_alpha([1, 1, 2, 2, 3, 3], list("aabbcc"), list("aabbcc"), plan=Resampling(draws=50)).value
    1.0
    >>> krippendorff_alpha([1, 2], ["a", "a"], ["a", "a"], "nominal", plan=Resampling(draws=50)).value
    0.0
    """
    if scale not in ("nominal", "ordinal", "interval"):
        raise InputError("scale", found=repr(scale), expected="'nominal', 'ordinal' or 'interval'")
    numbers, code = finite(values), group_codes(items, len(values))
    if len(groups) != len(numbers):
        raise InputError("groups", found=count_of(len(groups), "label"), expected=f"{len(numbers)}")
    times = np.bincount(code, minlength=1)
    kept = np.flatnonzero(times[code] > 1) if len(code) else np.zeros(0, dtype=np.int64)
    if not kept.size:
        return Estimate(None, None, None, 0, 0)
    item = np.unique(code[kept], return_inverse=True)[1].reshape(-1)
    of_rating = group_codes([groups[position] for position in kept.tolist()], len(kept))
    group = np.zeros(int(item.max()) + 1, dtype=np.int64)
    group[item] = of_rating
    if (group[item] != of_rating).any():
        raise InputError("groups", found="ratings of one item in two groups", expected="one group for each item")
    columns, alpha = _alpha_of_sums(numbers[kept], item, scale)
    estimate = sums_interval(columns, group, alpha, plan=plan.within(-1, 1))
    return _without_thin_interval(estimate, np.unique(numbers[kept], return_inverse=True)[1].reshape(-1), of_rating)


def _without_thin_interval(estimate: Estimate, label: Ints, group: Ints) -> Estimate:
    """The estimate, without its interval if fewer than three groups contain a label other than the most frequent one.

    Then more than 5 % of the resamples would contain only that label, and agreement beyond chance is undefined there.
    """
    others = group[label != np.argmax(np.bincount(label))] if len(label) else group
    return estimate if len(np.unique(others)) > 2 else replace(estimate, ci_low=None, ci_high=None)


def _alpha_of_sums(values: Floats, item: Ints, scale: Scale) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Columns per item, and α as a function of their sums: the frequencies of the values, and the pairs of ratings that
    differ, weighted by 2 / (ratings − 1)."""
    levels, level = np.unique(values, return_inverse=True)
    level = level.reshape(-1)
    n_items, k = int(item.max()) + 1, len(levels)
    counts = np.zeros((n_items, k))
    np.add.at(counts, (item, level), 1.0)
    first, second = _pairs(item)
    low, high = np.minimum(level[first], level[second]), np.maximum(level[first], level[second])
    weight = 2 / (counts.sum(axis=1)[item[first]] - 1)
    differ = low < high
    kinds, kind = np.unique(low[differ] * k + high[differ], return_inverse=True)
    pairs = np.zeros((n_items, len(kinds)))
    np.add.at(pairs, (item[first[differ]], kind.reshape(-1)), weight[differ])
    below, above = kinds // k, kinds % k

    def alpha(sums: Floats) -> Floats:
        counts, pairs = sums[:, :k], sums[:, k:]
        n = counts.sum(axis=1)
        if scale == "nominal":
            observed, expected = pairs.sum(axis=1), n**2 - (counts**2).sum(axis=1)
        else:
            points = (
                np.cumsum(counts, axis=1) - counts / 2 if scale == "ordinal" else np.broadcast_to(levels, counts.shape)
            )
            observed = (pairs * (points[:, above] - points[:, below]) ** 2).sum(axis=1)
            expected = 2 * (n * (counts * points**2).sum(axis=1) - (counts * points).sum(axis=1) ** 2)
        return 1 - ratio((n - 1) * observed, np.where(expected > _ROUNDING * np.maximum(n, 1) ** 2, expected, 0.0))

    return np.concatenate([counts, pairs], axis=1), alpha


def _pairs(item: Ints) -> tuple[Ints, Ints]:
    """The indices of all pairs of ratings of the same item."""
    order = np.argsort(item, kind="stable")
    first, second = [], []
    for positions in np.split(order, np.flatnonzero(np.diff(item[order])) + 1):
        row, column = np.triu_indices(len(positions), 1)
        first.append(positions[row])
        second.append(positions[column])
    return np.concatenate(first).astype(np.int64), np.concatenate(second).astype(np.int64)


def cohen_kappa(
    a_labels: Sequence[Hashable],
    b_labels: Sequence[Hashable],
    levels: Sequence[Hashable],
    groups: Sequence[str],
    plan: Resampling = Resampling(),
) -> Estimate:
    """Cohen's κ of two raters of the same items, for nominal labels: 1 is full agreement, 0 is chance agreement.

    Labels are paired by position; `groups` has the group of each item. κ = (p_o − p_e) / (1 − p_e), where p_o is the
    share of items with equal labels and p_e the share expected by chance from each rater's label frequencies (Cohen
    1960, Educational and Psychological Measurement 20:37). The interval is that of `sums_interval`.

    Edges: None without items, or if both raters use one and the same label only (p_e is 1); no interval if fewer than
    three groups contain a label other than the most frequent one. Raises `InputError` as `cross_table` does.

    >>> cohen_kappa("yyyynn", "yyynny", "yn", list("aabbcc"), Resampling(draws=50)).value
    0.25
    """
    position = {level: number for number, level in enumerate(levels)}
    cross_table(a_labels, b_labels, levels)  # validates the labels
    k = len(position)
    cells = np.array([position[a] * k + position[b] for a, b in zip(a_labels, b_labels, strict=True)], dtype=np.int64)

    def kappa(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), k, k)
        n = tables.sum(axis=(1, 2))
        agreeing = np.trace(tables, axis1=1, axis2=2) * n
        by_chance = (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1)
        return ratio(agreeing - by_chance, n**2 - by_chance)

    estimate = sums_interval(np.eye(k * k)[cells], list(groups), kappa, plan=plan.within(-1, 1))
    labels = np.stack([cells // k, cells % k], axis=1).ravel()
    return _without_thin_interval(estimate, labels, np.repeat(group_codes(groups, len(groups)), 2))


def percent_agreement(
    labels: Sequence[Hashable],
    levels: Sequence[Hashable],
    items: Sequence[Hashable],
    groups: Sequence[Hashable],
    plan: Resampling = Resampling(),
) -> Estimate:
    """Percent agreement as a share, 0 to 1: the mean over items of the share of their pairs of ratings that agree.

    One entry per rating: its label (one of `levels`), the rated item and the item's group. A missing rating has no
    entry, so items may have different numbers of ratings, by different raters. An item with r ratings, r_k of them
    with label k, contributes Σ r_k (r_k − 1) / (r (r − 1)); all items have equal weight (Fleiss 1971, Psychological
    Bulletin 76:378, for equal r). Items with a single rating are excluded; `n` counts the remaining items, `groups`
    their groups. The interval is that of `mean_interval`.

    Edges: None if no item has two ratings. Raises `InputError` for unequal lengths, a label that is not in `levels`, a
    duplicate level, and an item in two groups.

    >>> percent_agreement("yynyyn", "yn", list("aaabbc"), list("aaabbc"), Resampling(draws=50)).value
    0.6666666666666666
    """
    counts, code = _label_counts(labels, levels, items, groups)
    several = counts.sum(axis=1) > 1
    return mean_interval(_pairs_agreeing(counts[several]), code[several], plan.within(0, 1))


def fleiss_kappa(
    labels: Sequence[Hashable],
    levels: Sequence[Hashable],
    items: Sequence[Hashable],
    groups: Sequence[Hashable],
    plan: Resampling = Resampling(),
) -> Estimate:
    """Fleiss' κ of two or more raters, for nominal labels: 1 is full agreement, 0 is chance agreement, −1 the minimum.

    Ratings as in `percent_agreement`. κ = (p_a − p_e) / (1 − p_e), where p_a is the percent agreement and
    p_e = Σ π_k², π_k being the mean over items of the share of their ratings with label k (Fleiss 1971, Psychological
    Bulletin 76:378). Items have equal weight in both means, whatever their number of ratings (Gwet 2014, Handbook of
    Inter-Rater Reliability, 4th edition, chapter 2). Unlike there, items with a single rating are excluded from π_k
    too: with them κ has no lower bound. For two raters it equals Scott's π. The interval is that of `sums_interval`.

    Edges: None if no item has two ratings, or if all labels are equal (κ is undefined); no interval if fewer than
    three groups contain a label other than the most frequent one. Raises `InputError` as `percent_agreement` does.

    >>> fleiss_kappa("yyynnnynnn", "yn", list("aabbccddee"), list("aabbccddee"), Resampling(draws=50)).value
    0.16666666666666663
    """
    counts, code = _label_counts(labels, levels, items, groups)
    several = counts.sum(axis=1) > 1
    counts, code = counts[several], code[several]
    agreeing = _pairs_agreeing(counts)  # disagreement has a column of its own, so that few groups with any are seen
    columns = np.column_stack([agreeing, 1 - agreeing, counts / counts.sum(axis=1, keepdims=True)])

    def kappa(sums: Floats) -> Floats:
        n = sums[:, 2:].sum(axis=1)
        by_chance = ratio((sums[:, 2:] ** 2).sum(axis=1), n)
        left = n - by_chance
        return ratio(sums[:, 0] - by_chance, np.where(left > _ROUNDING * n, left, 0.0))

    estimate = sums_interval(columns, code, kappa, plan=plan.within(-1, 1))
    rows, label = np.nonzero(counts)
    times = counts[rows, label].astype(np.int64)
    return _without_thin_interval(estimate, np.repeat(label, times), np.repeat(code[rows], times))


def gwet_ac1(
    labels: Sequence[Hashable],
    levels: Sequence[Hashable],
    items: Sequence[Hashable],
    groups: Sequence[Hashable],
    plan: Resampling = Resampling(),
) -> Estimate:
    """Gwet's AC1 of two or more raters, for nominal labels: 1 is full agreement, 0 is chance agreement.

    Unlike Cohen's and Fleiss' κ, AC1 stays high if raters agree and nearly all labels are equal. Ratings as in
    `percent_agreement`. AC1 = (p_a − p_e) / (1 − p_e), where p_a is the percent agreement and
    p_e = Σ π_k (1 − π_k) / (q − 1) for q levels, including unused ones. π_k is the mean over all items, including those
    with a single rating, of the share of their ratings with label k (Gwet 2008, British Journal of Mathematical and
    Statistical Psychology 61:29; missing ratings: Gwet 2014, Handbook of Inter-Rater Reliability, 4th edition, chapter
    2). The minimum is −1 / (q − 1). `n` counts the items with two or more ratings, `groups` their groups. The interval
    is that of `sums_interval`; there is none if fewer than three groups have such an item.

    Edges: None if no item has two ratings. Raises `InputError` as `percent_agreement` does, and for fewer than two
    levels.

    >>> gwet_ac1("yyynnnynnn", "yn", list("aabbccddee"), list("aabbccddee"), Resampling(draws=50)).value
    0.23076923076923075
    """
    q = len(levels)
    if q < 2:
        raise InputError("levels", found=str(list(levels)), expected="two or more")
    counts, code = _label_counts(labels, levels, items, groups)
    ratings = counts.sum(axis=1, keepdims=True)
    several = ratings[:, 0] > 1
    agreeing = np.where(several, _pairs_agreeing(counts), 0.0)
    columns = np.column_stack([agreeing, several - agreeing, counts / ratings])

    def ac1(sums: Floats) -> Floats:
        n = sums[:, 2:].sum(axis=1)
        by_chance = ratio(n - ratio((sums[:, 2:] ** 2).sum(axis=1), n), n * (q - 1))
        return (ratio(sums[:, 0], sums[:, 0] + sums[:, 1]) - by_chance) / (1 - by_chance)

    estimate = sums_interval(columns, code, ac1, plan=plan.within(-1 / (q - 1), 1))
    n, n_groups = int(several.sum()), len(np.unique(code[several]))
    if n_groups < 3:
        return Estimate(estimate.value, None, None, n, n_groups)
    return replace(estimate, n=n, groups=n_groups)


def _label_counts(
    labels: Sequence[Hashable], levels: Sequence[Hashable], items: Sequence[Hashable], groups: Sequence[Hashable]
) -> tuple[Floats, Ints]:
    """The number of ratings per item (row) and level (column), and the group of each item."""
    position = _positions(levels)
    item, group = group_codes(items, len(labels)), group_codes(groups, len(labels))
    n = int(item.max(initial=-1)) + 1
    counts, code = np.zeros((n, len(position))), np.full(n, -1, dtype=np.int64)
    for number, label in enumerate(labels):
        row = item[number]
        if code[row] not in (-1, group[number]):
            found = f"a second group, {str(groups[number])!r}"
            raise InputError(f"item {items[number]}", found=found, expected="one group")
        code[row] = group[number]
        counts[row, _position(label, position, f"label of rating {number}")] += 1
    return counts, code


def _pairs_agreeing(counts: Floats) -> Floats:
    """The share of each item's pairs of ratings that agree; NaN for items with a single rating."""
    ratings = counts.sum(axis=1)
    return ratio((counts * (counts - 1)).sum(axis=1), ratings * (ratings - 1))


def cross_table(
    a_labels: Sequence[Hashable], b_labels: Sequence[Hashable], levels: Sequence[Hashable]
) -> NDArray[np.int64]:
    """The contingency table of two raters: rows are the labels of a, columns those of b, in the order of `levels`.

    Labels are paired by position. Raises `InputError` for unequal lengths, a duplicate level, and a label that is not
    in `levels`.

    >>> cross_table([1, 1, 0], [1, 0, 0], levels=[1, 0]).tolist()
    [[1, 1], [0, 1]]
    """
    if len(a_labels) != len(b_labels):
        raise InputError("labels", found=f"{len(a_labels)} and {len(b_labels)}", expected="pairs")
    position = _positions(levels)
    table = np.zeros((len(levels), len(levels)), dtype=np.int64)
    for number, pair in enumerate(zip(a_labels, b_labels, strict=True)):
        row, column = (_position(label, position, f"label of item {number}") for label in pair)
        table[row, column] += 1
    return table


def _positions(levels: Sequence[Hashable]) -> dict[Hashable, int]:
    position = {level: number for number, level in enumerate(levels)}
    if len(position) != len(levels):
        raise InputError("levels", found=str(list(levels)), expected="each level once")
    return position


def _position(label: Hashable, positions: dict[Hashable, int], location: str) -> int:
    if label not in positions:
        expected = "one of " + ", ".join(str(level) for level in positions)
        raise InputError(location, found=repr(label), expected=expected)
    return positions[label]

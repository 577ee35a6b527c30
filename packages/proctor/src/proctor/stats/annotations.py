"""Agreement of two annotators on boxes and on times of events, matched one to one; tolerances from their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from proctor.core import InputError
from proctor.core.formats import matching
from proctor.stats.bootstrap import Estimate, Resampling, sums_interval, weights
from proctor.stats.clusters import Floats, Groups, finite, group_codes
from proctor.stats.shares import Share

Extents = Sequence[Sequence[float]]
"""Boxes as (left, top, right, bottom), or intervals as (start, end)."""

Entry = TypeVar("Entry")

MOST_LOCATED = 500
"""The maximum number of boxes of one annotator in one frame."""

FEWEST_DIFFERENCES = 20
"""The fewest differences between annotators for a tolerance."""

FEWEST_GROUPS = 5
"""The fewest groups (videos) that the differences for a tolerance come from."""

_SLACK = 1e-9  # tolerance for rounding errors, in seconds or as a share of overlap


def box_agreement(
    first: Sequence[Extents],
    second: Sequence[Extents],
    groups: Groups,
    *,
    least: float = 0.5,
    plan: Resampling = Resampling(),
) -> Estimate:
    """F1 of two annotators' boxes, 0 to 1: 2 · matched pairs / all boxes of both. It is symmetric in the annotators.

    One entry per frame and class: the boxes drawn by the first and by the second annotator, and the group of the entry.
    Boxes of an entry are matched one to one by a maximum matching, where their intersection over union is at least
    `least` (0.5: Everingham et al. 2010, International Journal of Computer Vision 88:303). Counts are summed over all
    entries, so all boxes have equal weight. For more than two annotators, give one entry for each pair of them. F1 is
    the limit of Cohen's κ as the share of background grows (Hripcsak and Rothschild 2005, Journal of the American
    Medical Informatics Association 12:296). `n` counts what either annotator marked (a pair once), `groups` the groups
    with any of it. The interval is that of a `Share`. Time intervals are matched in the same way.

    Edges: None without boxes. Raises `InputError` for unequal lengths, `least` not in (0, 1], ends that are not finite
    or lie before their starts, and more than 500 boxes of one annotator in one entry.

    >>> first, second = [[(0, 0, 4, 4), (5, 5, 9, 9)], []], [[(0, 0, 4, 3)], []]
    >>> box_agreement(first, second, ["video 1", "video 1"]).value
    0.6666666666666666
    """
    if not 0 < least <= 1:
        raise InputError("least", found=str(least), expected="an overlap above 0, up to 1")
    for annotator in (first, second):
        for position, boxes in enumerate(annotator):
            _check_extents(boxes, position)
    entries = _entries(first, second)
    pairs = [matching(a, b, least - _SLACK) for a, b in entries]
    return _f1(pairs, [len(a) + len(b) for a, b in entries], groups, plan)


def time_agreement(
    first: Sequence[Sequence[float]],
    second: Sequence[Sequence[float]],
    groups: Groups,
    *,
    tolerance: float,
    plan: Resampling = Resampling(),
) -> Estimate:
    """F1 of two annotators' events, 0 to 1, matched within `tolerance` seconds. It is symmetric in the annotators.

    One entry per video and kind of event: the times marked by the first and by the second annotator, in any order, and
    the group of the entry. Events of an entry are matched one to one in temporal order, as many as possible, where they
    are at most `tolerance` apart. F1, the treatment of more than two annotators and of entries without events, and the
    interval are those of `box_agreement`.

    Edges: None without events. Raises `InputError` for unequal lengths, a negative tolerance, and times that are not
    finite.

    >>> time_agreement([[10.0, 62.5]], [[11.0, 70.0, 61.0]], ["video 1"], tolerance=2).value
    0.8
    """
    if not 0 <= tolerance < np.inf:
        raise InputError("tolerance", found=str(tolerance), expected="seconds, 0 or more")
    entries = _entries(first, second)
    pairs = [times_paired(a, b, tolerance) for a, b in entries]
    return _f1(pairs, [len(a) + len(b) for a, b in entries], groups, plan)


def _entries(first: Sequence[Entry], second: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    if len(first) != len(second):
        raise InputError("entries", found=f"{len(first)} and {len(second)}", expected="pairs")
    return list(zip(first, second, strict=True))


def _f1(pairs: Sequence[int], of: Sequence[int], groups: Groups, plan: Resampling) -> Estimate:
    code = group_codes(groups, len(pairs))
    columns = np.stack([np.array(pairs, dtype=np.float64), np.array(of, dtype=np.float64)], axis=1)
    return sums_interval(columns, code, Share((1, 0), (-1, 1), f1=True), plan=plan.within(0, 1))


def _check_extents(boxes: Extents, position: int) -> None:
    if len(boxes) > MOST_LOCATED:
        raise InputError(f"entry {position}", found=f"{len(boxes)} boxes", expected=f"at most {MOST_LOCATED}")
    for box in boxes:
        ends = finite(box, f"entry {position}, end")
        low, high = np.split(ends, [len(ends) // 2])
        if len(low) != len(high) or not len(low) or (low > high).any():
            expected = "lower ends, then upper ends that are not below them"
            raise InputError(f"entry {position}", found=str(list(box)), expected=expected)


def times_paired(first: Sequence[float], second: Sequence[float], tolerance: float) -> int:
    """The maximum number of one-to-one pairs of times that are at most `tolerance` apart, in any order.

    Raises `InputError` for times that are not finite.

    >>> times_paired([1.0, 5.0], [5.5, 1.9, 9.0], 1.0)
    2
    """
    # Greedy matching in temporal order is optimal: the earliest possible pair never prevents another one.
    a_times, b_times = (np.sort(finite(times, "time")).tolist() for times in (first, second))
    a = b = pairs = 0
    while a < len(a_times) and b < len(b_times):
        if abs(a_times[a] - b_times[b]) <= tolerance + _SLACK:
            pairs, a, b = pairs + 1, a + 1, b + 1
        elif a_times[a] < b_times[b]:
            a += 1
        else:
            b += 1
    return pairs


@dataclass(frozen=True, slots=True)
class AnnotationTolerance:
    """A tolerance from the differences between annotators (`annotation_tolerance`). `apart` is what the absolute differences
    stay within, and `tolerance` the same for one annotator's error. Values are None with too few differences.

    >>> annotation_tolerance([0.5, -1.0], ["a", "b"]).tolerance.value is None
    True
    """

    tolerance: Estimate
    apart: Estimate


def annotation_tolerance(
    differences: Sequence[float], groups: Groups, *, quantile: float = 0.95, plan: Resampling = Resampling()
) -> AnnotationTolerance:
    """How far an answer may be from an annotated value, estimated from two annotators who marked the same independently.

    `differences` are first minus second, one for each value that both marked (of more annotators: one for each pair of
    them), and `groups` are the videos. `apart` is the quantile of the absolute differences, at position (n + 1) · quantile
    of their order, so that a new pair of annotations lies within it with this probability. Both annotators err, and the
    reference is one of them: if their errors are independent and normal with the same variance, a difference has twice
    the variance of one error, so `tolerance` is `apart` / √2. An exact answer is then right with probability `quantile`,
    and a third annotator of the same quality with 83 % for a quantile of 0.95.

    Intervals are percentiles over bootstrap samples of whole groups. Values and intervals are None with fewer than 20
    differences, fewer than 1 / (1 − quantile), or fewer than 5 groups. The names and the order of groups do not matter.
    Raises `InputError` for unequal lengths, differences that are not finite, and a quantile outside 0.5 to 0.99.

    >>> found = annotation_tolerance([1.0, -2.0, 0.5, -0.5] * 6, list("abcdef") * 4)
    >>> found.apart.value, round(found.tolerance.value, 3), found.tolerance.n, found.tolerance.groups
    (2.0, 1.414, 24, 6)
    """
    if not 0.5 <= quantile <= 0.99:
        raise InputError("quantile", found=str(quantile), expected="a share from 0.5 to 0.99")
    sizes = np.abs(finite(differences, "difference"))
    code = group_codes(groups, len(sizes))
    some = [np.sort(sizes[code == one]) for one in np.unique(code)]
    n, n_groups = len(sizes), len(some)
    if n < max(FEWEST_DIFFERENCES, 1 / (1 - quantile)) or n_groups < FEWEST_GROUPS:
        unknown = Estimate(None, None, None, n, n_groups)
        return AnnotationTolerance(unknown, unknown)
    some.sort(key=lambda one: one.tolist())
    values, of_group = np.concatenate(some), np.repeat(np.arange(n_groups), [len(one) for one in some])
    drawn = [
        _quantile(np.repeat(values, row[of_group].astype(np.int64)), quantile)
        for rows in weights(n_groups, plan.draws, plan.seed)
        for row in rows
    ]
    tail = (1 - plan.level) / 2
    ends = np.quantile(drawn, (tail, 1 - tail))
    value = _quantile(sizes, quantile)
    apart = Estimate(value, float(ends[0]), float(ends[1]), n, n_groups)
    one = float(np.sqrt(0.5))
    return AnnotationTolerance(Estimate(value * one, float(ends[0]) * one, float(ends[1]) * one, n, n_groups), apart)


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share, method="weibull"))

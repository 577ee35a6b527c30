"""The timestamps of pictures as a file gives them: whether they tell the order, and what is corrected."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError

_MAX_BEHIND = 8  # successive pictures whose timestamps do not increase
MOST_HELD = 16
"""Pictures that decoders hold back at most, to show others before them."""


def tell_the_order(given: NDArray[np.int64], at_keys: NDArray[np.bool_], *, reordered: bool) -> bool:
    """Whether the timestamps of packets, in the order of decoding, can be those of pictures that a decoder shows in
    ascending order: where it reorders none, they ascend; else each keyframe's group lies after all before it, and none
    has a position among the others that is more than 16 pictures (of two fields each) from its position in decoding."""
    if np.all(np.diff(given) > 0):
        return True
    begin = np.flatnonzero(at_keys[1:]) + 1
    before = np.maximum.accumulate(given)[begin - 1]
    from_there = np.minimum.accumulate(given[::-1])[::-1][begin]
    moved = np.abs(np.argsort(np.argsort(given)) - np.arange(len(given)))
    return reordered and bool(np.all(before < from_there)) and int(moved.max()) <= 2 * MOST_HELD


def is_ascending(stamps: Sequence[int | None]) -> bool:
    """Whether each is known and later than the one before."""
    known = [stamp for stamp in stamps if stamp is not None]
    return len(known) == len(stamps) and all(first < second for first, second in pairwise(known))


def check_order(path: Path, given: Sequence[int | None], base: Fraction) -> None:
    """Raises `InputError` where time goes back for more than a few pictures, as in joined recordings."""
    latest, behind = None, 0
    for number, stamp in enumerate(given, start=1):
        if stamp is None or latest is None or stamp > latest:
            latest, behind = latest if stamp is None else stamp, 0
            continue
        behind += 1
        if behind > _MAX_BEHIND:
            back = given[number - behind] or 0
            found = f"timestamps that go back to {float(back * base):.3f} s after {float(latest * base):.3f} s"
            expected = "times that go on (joined recordings: encode them as one)"
            raise InputError(path, f"picture {number - behind + 1}", found=found, expected=expected)


def corrected(given: Sequence[int | None], usual: Fraction | None) -> tuple[NDArray[np.int64], int]:
    """Ascending timestamps for those of a decoder, and the factor by which their ticks are finer (more than 1 only where
    there is no room). As few as possible are changed: a repeated timestamp comes a tick later each time; one that is
    missing or not in order is interpolated between its neighbours, before the first and after the last in the median
    step of the others (`usual` ticks where there is only one)."""
    positions: list[int] = []
    told: list[tuple[int, int]] = []
    for position in _in_order(given):
        stamp = given[position] or 0
        again = told[-1][1] + position - positions[-1] if told and stamp == told[-1][0] else 0
        positions.append(position)
        told.append((stamp, again))
    steps = np.diff([stamp for stamp, _ in told]) / np.diff(positions)
    step = float(np.median(steps[steps > 0])) if np.any(steps > 0) else float(usual or 1)
    finer = 1
    while True:
        known = [stamp * finer + again for stamp, again in told]
        before = known[0] - (positions[0] + 1) * step * finer
        after = known[-1] + (len(given) - positions[-1]) * step * finer
        between = np.interp(np.arange(len(given)), [-1, *positions, len(given)], [before, *known, after])
        stamps = np.floor(between).astype(np.int64)
        if np.all(np.diff(stamps) > 0):
            return stamps, finer
        finer *= 10


def _in_order(given: Sequence[int | None]) -> list[int]:
    """The positions of timestamps that do not go back: of those that are not before any earlier one, or of the longest such
    sequence if that leaves out fewer."""
    going_on: list[int] = []
    ends: list[int] = []  # by length of a sequence, the smallest timestamp at which one can end, and its position
    last: list[int] = []
    before: dict[int, int | None] = {}
    for position, stamp in enumerate(given):
        if stamp is None:
            continue
        if not going_on or stamp >= (given[going_on[-1]] or 0):
            going_on.append(position)
        length = bisect_right(ends, stamp)
        before[position] = last[length - 1] if length else None
        ends[length : length + 1], last[length : length + 1] = [stamp], [position]
    if len(ends) <= len(going_on):
        return going_on
    longest: list[int] = []
    at: int | None = last[-1]
    while at is not None:
        longest.append(at)
        at = before[at]
    return longest[::-1]


def decoding_times(shown: Sequence[int]) -> list[int]:
    """Decoding times for packets in the order of decoding, given when they are shown: the same times sorted, shifted so
    that none is late. For files that do not store all decoding times (Matroska)."""
    ordered = sorted(shown)
    most = max((due - pts for due, pts in zip(ordered, shown, strict=True)), default=0)
    return [due - most for due in ordered]

"""What of a medium is hidden, and where as much could be hidden elsewhere: intervals of time, and rectangles over time.

All of it is arithmetic: times are seconds of the file, `starts` those at which a video's pictures begin. A picture is
hidden if it is on display at any time of a window, so intervals grow to whole pictures.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from proctor.core import Evidence, Region

Interval = tuple[float, float]
Rectangle = tuple[float, float, float, float]
"""Left, top, right and bottom, in fractions of the picture."""

NOISE_S = 1e-6  # as the clock of videos: a time this much before a picture's start shows it
_ROUNDED_S = 1e-4  # to which evidence is often rounded
_DRAWS = 40  # before every position at an edge is tried
_AREA = 1e-9  # rectangles that share less do not overlap
_GAP = 0.005  # of the picture's sides, between evidence and what is hidden elsewhere: boxes are rounded to pixels

WHOLE = Region(x=0.0, y=0.0, width=1.0, height=1.0)


@dataclass(frozen=True)
class Stretch:
    """Rectangles that are hidden from `start` to `end`; of a still image both are 0."""

    start: float
    end: float
    boxes: tuple[Rectangle, ...]


@dataclass(frozen=True)
class Hidden:
    """What is hidden of a medium: whole `windows` of time, and `stretches` with boxes, which lie outside of all windows.
    Both are disjoint and ascending."""

    windows: tuple[Interval, ...] = ()
    stretches: tuple[Stretch, ...] = ()

    @property
    def times(self) -> tuple[Interval, ...]:
        """When anything is hidden."""
        return united([*self.windows, *((one.start, one.end) for one in self.stretches)])

    def at(self, time: float | None) -> tuple[Region, ...]:
        """What is hidden of the picture at a time, or of a still image (None)."""
        if time is None:
            return tuple(_region(box) for one in self.stretches for box in one.boxes)
        if within(time, self.windows):
            return (WHOLE,)
        row = bisect_right(self.stretches, time + NOISE_S, key=lambda one: one.start) - 1
        if row < 0 or time >= self.stretches[row].end - NOISE_S:
            return ()
        return tuple(_region(box) for box in self.stretches[row].boxes)


def within(time: float, intervals: Sequence[Interval]) -> bool:
    """Whether a picture shown at this time is of one of these intervals, which are disjoint and ascending; their ends are
    exclusive."""
    row = bisect_right(intervals, time + NOISE_S, key=lambda one: one[0]) - 1
    return row >= 0 and time < intervals[row][1] - NOISE_S


def united(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The union: disjoint and ascending; intervals that touch become one.

    >>> united([(5, 6), (1, 3), (2, 5)])
    ((1, 6),)
    """
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1] + NOISE_S:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return tuple(found)


def without(span: Interval, intervals: Iterable[Interval]) -> list[Interval]:
    """What is left of a span.

    >>> without((0, 10), [(2, 3), (8, 12)])
    [(0, 2), (3, 8)]
    """
    left, at = [], span[0]
    for start, end in united(intervals):
        if min(start, span[1]) > at + NOISE_S:
            left.append((at, min(start, span[1])))
        at = max(at, end)
    return [*left, *([(at, span[1])] if span[1] > at + NOISE_S else [])]


def evident(evidence: Evidence, medium: int, span: Interval | None, starts: Sequence[float] = ()) -> Hidden:
    """What the evidence covers of a medium that is shown in `span`; of a still image the span is None."""
    boxes = [box for box in evidence.boxes if box.medium == medium]
    if span is None:
        here = tuple((box.x, box.y, box.x + box.width, box.y + box.height) for box in boxes)
        return Hidden(stretches=(Stretch(0.0, 0.0, here),) if here else ())
    given = [(one.start, one.end) for one in evidence.windows if one.medium == medium]
    windows = united(_whole_pictures(one, span, starts) for one in given if _meets(one, span))
    timed = [
        (_whole_pictures((box.start, box.end), span, starts), (box.x, box.y, box.x + box.width, box.y + box.height))
        for box in boxes
        if box.start is not None and box.end is not None and _meets((box.start, box.end), span)
    ]
    return Hidden(windows, tuple(_stretches(timed, windows)))


def _meets(one: Interval, span: Interval) -> bool:
    return one[0] < span[1] - NOISE_S and one[1] > span[0] + NOISE_S


def _whole_pictures(one: Interval, span: Interval, starts: Sequence[float]) -> Interval:
    """The interval, grown to the pictures that are on display in it, within the span."""
    start, end = max(one[0], span[0]), min(one[1], span[1])
    if not starts:
        return start, end
    first = max(bisect_right(starts, start + _ROUNDED_S) - 1, 0)
    after = max(bisect_left(starts, end - _ROUNDED_S), first + 1)
    return max(starts[first], span[0]), starts[after] if after < len(starts) else span[1]


def _stretches(timed: Sequence[tuple[Interval, Rectangle]], windows: Sequence[Interval]) -> Iterable[Stretch]:
    """The rectangles between two times at which one comes or goes, where no window is."""
    edges = sorted({edge for interval, _ in timed for edge in interval} | {edge for one in windows for edge in one})
    ordered = sorted(timed)
    going: list[tuple[float, Rectangle]] = []
    row = 0
    for start, end in pairwise(edges):
        while row < len(ordered) and ordered[row][0][0] <= start:
            going.append((ordered[row][0][1], ordered[row][1]))
            row += 1
        going = [one for one in going if one[0] > start]
        if going and end - start > NOISE_S and not within(start, windows):
            yield Stretch(start, end, tuple(dict.fromkeys(box for _, box in going)))


def elsewhere(
    hidden: Hidden, span: Interval | None, starts: Sequence[float], draw: np.random.Generator
) -> Hidden | None:
    """As much elsewhere: for each window one as long, at a time without evidence; for each group of boxes that
    overlap the same group, moved to where no evidence is at that time. None if no free position was found.

    The union of the boxes of a stretch keeps its area. A group keeps its distance to the evidence from one stretch to the
    next, as long as that position is free, so that it moves as the evidence does.
    """
    windows = () if span is None else _windows_elsewhere(hidden, span, starts, draw)
    if windows is None:
        return None
    stretches: list[Stretch] = []
    shifts: list[tuple[float, float]] = []
    for one in hidden.stretches:
        shifted = _boxes_elsewhere(one.boxes, shifts, draw)
        if shifted is None:
            return None
        boxes, shifts = shifted
        stretches.append(Stretch(one.start, one.end, boxes))
    return Hidden(windows, tuple(stretches))


def _windows_elsewhere(
    hidden: Hidden, span: Interval, starts: Sequence[float], draw: np.random.Generator
) -> tuple[Interval, ...] | None:
    """Windows of the same lengths, the longest first, each at the start of a picture, at times at which nothing is
    hidden."""
    taken = list(hidden.times)
    found: list[Interval] = []
    for length in sorted((end - start for start, end in hidden.windows), reverse=True):
        gaps = [(a, b - length) for a, b in without(span, taken) if b - a >= length - NOISE_S]
        start = _start_in(gaps, starts, draw)
        if start is None:
            return None
        found.append((start, start + length))
        taken.append(_whole_pictures(found[-1], span, starts))
    return tuple(sorted(found))


def _start_in(gaps: Sequence[Interval], starts: Sequence[float], draw: np.random.Generator) -> float | None:
    """One of the starts in the gaps, whose ends are inclusive; without pictures any time in them."""
    if starts:
        fit = [
            time
            for a, b in gaps
            for time in starts[bisect_left(starts, a - NOISE_S) : bisect_right(starts, b + NOISE_S)]
        ]
        return fit[int(draw.integers(len(fit)))] if fit else None
    if not gaps:
        return None
    rooms = np.array([max(b - a, NOISE_S) for a, b in gaps])
    a, b = gaps[int(draw.choice(len(gaps), p=rooms / rooms.sum()))]
    return a + float(draw.random()) * max(0.0, b - a)


def _boxes_elsewhere(
    boxes: Sequence[Rectangle], shifts: Sequence[tuple[float, float]], draw: np.random.Generator
) -> tuple[tuple[Rectangle, ...], list[tuple[float, float]]] | None:
    """The groups of boxes at free positions, the largest first, and how far each was moved."""
    taken = [_grown(box) for box in boxes]
    groups = sorted(overlapping(boxes), key=lambda group: -_extent(group))
    found: list[Rectangle] = []
    moved: list[tuple[float, float]] = []
    for group in groups:
        shift = _free_shift(group, taken, [one for one in shifts if one not in moved], draw)
        if shift is None:
            return None
        moved.append(shift)
        shifted = [_shifted(box, shift) for box in group]
        found += shifted
        taken += [_grown(box) for box in shifted]
    return tuple(found), moved


def overlapping(boxes: Sequence[Rectangle]) -> list[list[Rectangle]]:
    """The boxes in groups: two that overlap are in one.

    >>> [len(group) for group in overlapping([(0, 0, 2, 2), (5, 5, 6, 6), (1, 1, 3, 3)])]
    [2, 1]
    """
    groups: list[list[Rectangle]] = []
    for box in boxes:
        near = [group for group in groups if any(shared_area(box, other) > _AREA for other in group)]
        joined = [box, *(one for group in near for one in group)]
        groups = [joined, *(group for group in groups if group not in near)]
    return sorted(groups, key=min)


def _free_shift(
    group: Sequence[Rectangle],
    taken: Sequence[Rectangle],
    known: Sequence[tuple[float, float]],
    draw: np.random.Generator,
) -> tuple[float, float] | None:
    """How far a group can be moved: as one was before, else drawn, else to any position at the edge of what is taken (if
    there is a free position, there is one there)."""

    def free(shift: tuple[float, float]) -> bool:
        shifted = [_shifted(box, shift) for box in group]
        return all(_inside(box) and not any(shared_area(box, one) > _AREA for one in taken) for box in shifted)

    for shift in known:
        if free(shift):
            return shift
    left, top = min(box[0] for box in group), min(box[1] for box in group)
    room = 1 - (max(box[2] for box in group) - left), 1 - (max(box[3] for box in group) - top)
    if min(room) < 0:
        return None
    for across, down in draw.random((_DRAWS, 2)):
        shift = (float(across) * room[0] - left, float(down) * room[1] - top)
        if free(shift):
            return shift
    at_edges = _shifts_to_edges(group, taken, (left, top), room)
    order = draw.permutation(len(at_edges))
    return next((at_edges[k] for k in order if free(at_edges[k])), None)


def _shifts_to_edges(
    group: Sequence[Rectangle], taken: Sequence[Rectangle], corner: tuple[float, float], room: tuple[float, float]
) -> list[tuple[float, float]]:
    """The shifts by which the group touches the picture's edge, or what is taken, both across and down."""
    both: list[list[float]] = []
    for axis in (0, 1):
        found = {-corner[axis], room[axis] - corner[axis]}
        for one, box in product(taken, group):
            found |= {one[axis + 2] - box[axis], one[axis] - box[axis + 2]}
        both.append(sorted(found))
    return list(product(both[0], both[1]))


def shared_area(a: Rectangle, b: Rectangle) -> float:
    """The area of the intersection of two rectangles."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _shifted(box: Rectangle, shift: tuple[float, float]) -> Rectangle:
    return box[0] + shift[0], box[1] + shift[1], box[2] + shift[0], box[3] + shift[1]


def _grown(box: Rectangle) -> Rectangle:
    return box[0] - _GAP, box[1] - _GAP, box[2] + _GAP, box[3] + _GAP


def _inside(box: Rectangle) -> bool:
    return box[0] >= -NOISE_S and box[1] >= -NOISE_S and box[2] <= 1 + NOISE_S and box[3] <= 1 + NOISE_S


def _extent(group: Sequence[Rectangle]) -> float:
    return (max(box[2] for box in group) - min(box[0] for box in group)) * (
        max(box[3] for box in group) - min(box[1] for box in group)
    )


def _region(box: Rectangle) -> Region:
    left, top = min(max(box[0], 0.0), 1.0), min(max(box[1], 0.0), 1.0)
    return Region(x=left, y=top, width=min(box[2], 1.0) - left, height=min(box[3], 1.0) - top)

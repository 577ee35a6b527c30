"""Where as much is hidden elsewhere: the same area and the same length, and never on the evidence."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from proctor.core import Evidence, EvidenceBox, EvidenceWindow, generator
from proctor.media.occlusion import (
    WHOLE,
    Hidden,
    Interval,
    Rectangle,
    elsewhere,
    evident,
    overlapping,
    shared_area,
    united,
    within,
    without,
)

SPAN = (0.0, 20.0)
TENTHS = [k / 10 for k in range(200)]


def area(boxes: tuple[Rectangle, ...]) -> float:
    """The area of a union of rectangles, on the grid of their own edges: independent of the code under test."""
    across = sorted({edge for box in boxes for edge in (box[0], box[2])})
    down = sorted({edge for box in boxes for edge in (box[1], box[3])})
    total = 0.0
    for left, right in itertools.pairwise(across):
        for top, bottom in itertools.pairwise(down):
            x, y = (left + right) / 2, (top + bottom) / 2
            if any(box[0] < x < box[2] and box[1] < y < box[3] for box in boxes):
                total += (right - left) * (bottom - top)
    return total


def length(intervals: tuple[Interval, ...]) -> float:
    return sum(end - start for start, end in intervals)


def test_the_oracle_counts_what_is_shared_once() -> None:
    assert area(((0.0, 0.0, 0.5, 0.5), (0.25, 0.25, 0.75, 0.75))) == pytest.approx(0.25 + 0.25 - 0.0625)


def test_unions_and_what_is_left() -> None:
    assert united([(1, 2), (2, 3), (5, 6), (5.5, 5.7)]) == ((1, 3), (5, 6))
    assert without((0, 10), [(-1, 1), (4, 5), (9, 12), (15, 16)]) == [(1, 4), (5, 9)]
    assert without((0, 10), [(0, 10)]) == []
    assert without((3, 4), []) == [(3, 4)]


def test_a_window_grows_to_whole_pictures() -> None:
    """Pictures begin every half second: of 3.2 to 4.2 s the one from 3.0 on is on display too, and the one from 4.0."""
    evidence = Evidence(windows=(EvidenceWindow(start=3.2, end=4.2),))
    starts = [k / 2 for k in range(40)]
    assert evident(evidence, 0, SPAN, starts).windows == ((3.0, 4.5),)
    exact = Evidence(windows=(EvidenceWindow(start=3.0, end=4.0),))
    assert evident(exact, 0, SPAN, starts).windows == ((3.0, 4.0),)
    rounded = Evidence(windows=(EvidenceWindow(start=0.0333, end=0.0667),))
    thirtieths = [k / 30 for k in range(60)]
    (window,) = evident(rounded, 0, (0.0, 2.0), thirtieths).windows
    assert window == pytest.approx((1 / 30, 2 / 30))


def test_a_window_at_the_ends_of_what_is_shown() -> None:
    evidence = Evidence(windows=(EvidenceWindow(start=0, end=2), EvidenceWindow(start=19.95, end=30)))
    assert evident(evidence, 0, (1.0, 20.0), [1.0, *TENTHS[11:]]).windows == ((1.0, 2.0), (19.9, 20.0))


def test_boxes_are_hidden_while_they_are_there_and_windows_take_precedence() -> None:
    sides: list[dict[str, Any]] = [{"x": x, "y": 0.1, "width": 0.2, "height": 0.2} for x in (0.1, 0.6)]
    first, second = sides
    evidence = Evidence(
        windows=(EvidenceWindow(start=4, end=5),),
        boxes=(EvidenceBox(**first, start=2, end=6), EvidenceBox(**second, start=3, end=4)),
    )
    hidden = evident(evidence, 0, SPAN, TENTHS)
    assert [(one.start, one.end, len(one.boxes)) for one in hidden.stretches] == [(2, 3, 1), (3, 4, 2), (5, 6, 1)]
    assert list(hidden.times) == [(2.0, 6.0)]
    assert hidden.at(4.5) == (WHOLE,)
    assert [len(hidden.at(time)) for time in (1.99, 2.0, 3.5, 5.95, 6.0)] == [0, 1, 2, 1, 0]


def test_groups_of_boxes() -> None:
    chain = [(0.0, 0.0, 0.2, 0.2), (0.3, 0.3, 0.5, 0.5), (0.15, 0.15, 0.35, 0.35)]
    assert [sorted(group) for group in overlapping([*chain, (0.8, 0.8, 0.9, 0.9)])] == [
        sorted(chain),
        [(0.8, 0.8, 0.9, 0.9)],
    ]
    assert len(overlapping([(0.0, 0.0, 0.5, 0.5), (0.5, 0.0, 1.0, 0.5)])) == 2  # they touch


def drawn(seed: int) -> Evidence:
    """Random boxes and windows: some overlap, some move, some are on the edge."""
    draw = generator(seed, "fuzzed evidence")
    boxes = []
    for _ in range(int(draw.integers(0, 7))):
        width, height = draw.uniform(0.03, 0.3, 2)
        x, y = draw.uniform(0, 1 - width), draw.choice([0.0, 1 - height, draw.uniform(0, 1 - height)])
        start = draw.uniform(0, 17)
        boxes.append(EvidenceBox(x=x, y=y, width=width, height=height, start=start, end=start + draw.uniform(0.1, 3)))
    windows = []
    for _ in range(int(draw.integers(0 if boxes else 1, 3))):
        start = draw.uniform(0, 17)
        windows.append(EvidenceWindow(start=start, end=start + draw.uniform(0.05, 3)))
    return Evidence(windows=tuple(windows), boxes=tuple(boxes))


def check_elsewhere(hidden: Hidden, other: Hidden, starts: list[float]) -> None:
    assert length(other.windows) == pytest.approx(length(hidden.windows))
    assert sorted(b - a for a, b in other.windows) == pytest.approx(sorted(b - a for a, b in hidden.windows))
    for start, end in other.windows:
        assert SPAN[0] <= start
        assert end <= SPAN[1] + 1e-6
        assert all(min(end, b) - max(start, a) <= 1e-6 for a, b in hidden.times)
    assert all(b <= c + 1e-6 for (_, b), (c, _) in zip(other.windows, other.windows[1:], strict=False))
    assert [(one.start, one.end) for one in other.stretches] == [(one.start, one.end) for one in hidden.stretches]
    for one, moved in zip(hidden.stretches, other.stretches, strict=True):
        assert area(moved.boxes) == pytest.approx(area(one.boxes))
        assert max(shared_area(a, b) for a in one.boxes for b in moved.boxes) <= 1e-9
        assert min(min(box) for box in moved.boxes) >= -1e-6
        assert max(max(box) for box in moved.boxes) <= 1 + 1e-6
    for time in starts:  # picture by picture: what is hidden is never evidence
        if within(time, other.windows):
            assert not within(time, hidden.times)


def test_elsewhere_has_the_same_area_and_length_and_never_overlaps() -> None:
    found = 0
    for seed in range(300):
        starts = TENTHS if seed % 3 else []
        hidden = evident(drawn(seed), 0, SPAN, starts)
        other = elsewhere(hidden, SPAN, starts, generator(seed, "place"))
        if other is None:
            continue
        found += 1
        check_elsewhere(hidden, other, starts)
        assert other == elsewhere(hidden, SPAN, starts, generator(seed, "place"))  # the same draw, the same position
    assert found >= 260


def test_pictures_of_uneven_length() -> None:
    for seed in range(100):
        steps = generator(seed, "steps").uniform(0.02, 0.5, 200)
        starts = [0.0, *(float(time) for time in np.cumsum(steps) if time < SPAN[1])]
        hidden = evident(drawn(seed), 0, SPAN, starts)
        other = elsewhere(hidden, SPAN, starts, generator(seed, "place"))
        if other is not None:
            check_elsewhere(hidden, other, starts)


def test_where_no_place_is_free_there_is_none() -> None:
    draw = generator(0, "place")
    long = evident(Evidence(windows=(EvidenceWindow(start=0, end=10.5),)), 0, SPAN, TENTHS)
    assert elsewhere(long, SPAN, TENTHS, draw) is None
    big = EvidenceBox(x=0.1, y=0.0, width=0.6, height=1.0, start=1, end=2)
    assert elsewhere(evident(Evidence(boxes=(big,)), 0, SPAN, TENTHS), SPAN, TENTHS, draw) is None
    other_box = EvidenceBox(x=0, y=0, width=0.1, height=0.1, start=10.5, end=20)
    both = Evidence(windows=(EvidenceWindow(start=0, end=10),), boxes=(other_box,))
    assert elsewhere(evident(both, 0, SPAN, TENTHS), SPAN, TENTHS, draw) is None  # a box is there all the rest


def test_the_only_free_place_is_found() -> None:
    """A box takes all but a strip of the picture that is as wide as itself, less than a hundredth of a side."""
    corner = evident(Evidence(boxes=(EvidenceBox(x=0, y=0, width=0.497, height=0.9),)), 0, None)
    for seed in range(20):
        other = elsewhere(corner, None, [], generator(seed, "place"))
        assert other is not None
        ((box,),) = [one.boxes for one in other.stretches]
        assert 0.502 - 1e-9 <= box[0] <= 0.503 + 1e-9


def test_a_picture_of_which_most_is_evidence() -> None:
    quarters = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5)]
    evidence = Evidence(boxes=tuple(EvidenceBox(x=x, y=y, width=0.5, height=0.5) for x, y in quarters))
    assert elsewhere(evident(evidence, 0, None), None, [], generator(0, "place")) is None


def test_a_box_that_moves_is_followed() -> None:
    """The black box elsewhere keeps its distance to the evidence, as long as that position is free."""
    boxes = tuple(
        EvidenceBox(x=0.3 + k * 0.01, y=0.4, width=0.1, height=0.1, start=k / 10, end=(k + 1) / 10) for k in range(10)
    )
    hidden = evident(Evidence(boxes=boxes), 0, SPAN, TENTHS)
    shifts = set()
    other = elsewhere(hidden, SPAN, TENTHS, generator(3, "place"))
    assert other is not None
    for one, moved in zip(hidden.stretches, other.stretches, strict=True):
        shifts.add((round(moved.boxes[0][0] - one.boxes[0][0], 9), round(moved.boxes[0][1] - one.boxes[0][1], 9)))
    assert len(shifts) <= 2

"""From pictures in their order to lives of objects: when each came, where it rested, when it was hidden, when it left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from proctor.systems.classical_vision.detection import Detection, Picture

__all__ = ["Life", "Story", "follow"]

# Distances are in heights of the picture, times in seconds.
_PACE = 1.7  # nothing is carried faster (per second)
_RETURN = 0.16  # something hidden reappears within this distance
_EDGE = 0.015  # a box this close to the edge touches it
_REST = 0.14  # slower than this (per second) lies still: the camera drifts at about a third of it
_PLACES_APART = 0.25
_GAP = 1.2  # unseen for longer is hidden
_BRIEF = 0.4  # what is seen for less is an error of the segmentation


@dataclass
class Life:
    """One object: every time at which it was seen, with the region."""

    class_name: str
    seen: list[tuple[float, Detection]]
    aspect: float
    left: bool = False

    @property
    def first(self) -> float:
        """When it was seen first."""
        return self.seen[0][0]

    @property
    def last(self) -> float:
        """When it was seen last."""
        return self.seen[-1][0]

    def at(self, time: float, within: float) -> Detection | None:
        """The region at a time, if it was seen within so many seconds of it."""
        moment, region = min(self.seen, key=lambda entry: abs(entry[0] - time))
        return region if abs(moment - time) <= within else None

    @property
    def was_hidden(self) -> bool:
        """Whether it was unseen for a while and then seen again."""
        return any(b[0] - a[0] > _GAP for a, b in pairwise(self.seen))

    @property
    def was_moved(self) -> bool:
        """Whether it rested at two places."""
        rests = [
            (b[1].x * self.aspect, b[1].y)
            for a, b in pairwise(self.seen)
            if _distance(a[1], b[1], self.aspect) < _REST * (b[0] - a[0])
        ]
        return bool(rests) and max(math.dist(rests[0], rest) for rest in rests) > _PLACES_APART

    def next_place(self, time: float) -> tuple[float, float]:
        """Where it would be at `time` if it went on as in its last two sightings (fractions)."""
        (before, a), (last, b) = self.seen[-2:] if len(self.seen) > 1 else (self.seen[-1],) * 2
        share = (time - last) / (last - before) if last > before else 0.0
        return b.x + share * (b.x - a.x), b.y + share * (b.y - a.y)


@dataclass(frozen=True)
class Story:
    """All lives, in order of their first sighting; the clip's start and end, and the time between pictures."""

    lives: tuple[Life, ...]
    start: float
    end: float
    step: float

    def of(self, class_name: str) -> list[Life]:
        """The lives of one class."""
        return [life for life in self.lives if life.class_name == class_name]

    def gone(self, class_name: str | None = None) -> list[Life]:
        """What was carried out of view, of one class or of all, in order of that."""
        lives = [life for life in self.lives if life.left and class_name in {None, life.class_name}]
        return sorted(lives, key=lambda life: life.last)

    def in_view(self, time: float) -> list[tuple[Life, Detection]]:
        """What is seen at a time."""
        shown = [(life, life.at(time, 0.75 * self.step)) for life in self.lives]
        return [(life, region) for life, region in shown if region is not None]


@dataclass
class _Follower:
    """Lives of one class while the pictures go by."""

    class_name: str
    aspect: float
    lives: list[Life] = field(default_factory=list)

    def take(self, time: float, regions: Sequence[Detection], step: float) -> None:
        """Gives each region to the life that it continues, or starts a new one."""
        from scipy.optimize import linear_sum_assignment

        going = [life for life in self.lives if not self._over(life, time, step)]
        fresh = list(regions)
        if going and regions:
            costs = np.array([[self._cost(life, region, time, step) for region in regions] for life in going])
            rows, columns = linear_sum_assignment(costs)
            for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
                if costs[row, column] < 1:
                    going[row].seen.append((time, regions[column]))
                    fresh.remove(regions[column])
        self.lives += [Life(self.class_name, [(time, region)], self.aspect) for region in fresh]

    def _cost(self, life: Life, region: Detection, time: float, step: float) -> float:
        """Below 1 where the region may continue the life."""
        away = _distance(life.seen[-1][1], region, self.aspect)
        unseen = time - life.last
        reach = _PACE * step if unseen < 1.5 * step else _RETURN
        return away / max(reach, 0.05) + 0.1 * (unseen > 1.5 * step) if away < max(reach, 0.05) else 1e3

    def _over(self, life: Life, time: float, step: float) -> bool:
        """Whether a life ended for good: unseen since it was at the edge, or on its way over it."""
        if not life.left and time - life.last > 1.5 * step:
            left, top, right, bottom = life.seen[-1][1].box
            x, y = life.next_place(life.last + 1.4 * step)
            outside = not (0 < x < 1 and 0 < y < 1)
            life.left = outside or min(left * self.aspect, top, (1 - right) * self.aspect, 1 - bottom) < _EDGE
        return life.left


def follow(times: Sequence[float], pictures: Sequence[Picture]) -> Story:
    """The story of pictures in the order in which they are shown, at these times (ascending)."""
    if not pictures:
        return Story((), 0.0, 0.0, 1.0)
    step = (times[-1] - times[0]) / max(1, len(times) - 1) or 1.0
    names = sorted({region.class_name for picture in pictures for region in picture.detections})
    followers = {name: _Follower(name, pictures[0].aspect) for name in names}
    for time, picture in zip(times, pictures, strict=True):
        for name, follower in followers.items():
            follower.take(time, [found for found in picture.detections if found.class_name == name], step)
    lives = [
        life for follower in followers.values() for life in follower.lives if life.last - life.first >= _BRIEF
    ]
    for life in lives:
        life.left = life.left or life.last < times[-1] - 2.5 * step
    lives.sort(key=lambda life: (life.first, life.class_name))
    return Story(tuple(lives), times[0], times[-1] + step, step)


def _distance(a: Detection, b: Detection, aspect: float) -> float:
    return math.hypot((a.x - b.x) * aspect, a.y - b.y)

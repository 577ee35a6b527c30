"""Find objects of known colours in frames, and follow them over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from proctor.media import open_picture
from proctor.systems import shortest_path

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Look:
    """The colour of a class, as inclusive ranges of hue in degrees, saturation and value 0–1.

    `area` is the smallest region, as a share of the frame's height squared; `join` is the largest gap (share of the
    height) between parts of one region.
    """

    hue: tuple[float, float]
    saturation: tuple[float, float]
    value: tuple[float, float]
    area: float
    join: float


LOOKS: dict[str, Look] = {
    "clip": Look(hue=(190, 232), saturation=(0.16, 0.56), value=(0.34, 1.0), area=0.0010, join=0.02),
    "gallstone": Look(hue=(28, 54), saturation=(0.62, 1.0), value=(0.2, 1.0), area=0.0022, join=0.025),
    "needle": Look(hue=(258, 312), saturation=(0.4, 1.0), value=(0.2, 1.0), area=0.0009, join=0.03),
    "specimen bag": Look(hue=(124, 170), saturation=(0.26, 1.0), value=(0.16, 1.0), area=0.0075, join=0.04),
    "sponge": Look(hue=(0, 360), saturation=(0.0, 0.14), value=(0.47, 1.0), area=0.0070, join=0.045),
}
"""The colours of the classes: blue-silver, ochre, violet (the needle's suture), green, white."""


@dataclass(frozen=True)
class Detection:
    """One region: its class, its centre, size and box (left, top, right, bottom) as fractions of the frame."""

    class_name: str
    x: float
    y: float
    area: float
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class SeenPicture:
    """The detections in one frame; `blank` if it is black."""

    detections: tuple[Detection, ...]
    blank: bool
    aspect: float


def detect(jpeg: bytes) -> SeenPicture:
    """Decodes a JPEG and finds the regions of every class in `LOOKS`."""

    rgb = open_picture(jpeg)
    hue, saturation, value = (np.asarray(band) for band in rgb.convert("HSV").split())
    aspect = rgb.width / rgb.height
    if int(value.max()) < 24:
        return SeenPicture((), True, aspect)
    found: list[Detection] = []
    white = np.zeros(value.shape, dtype=bool)
    for name in sorted(LOOKS, key=lambda name: -LOOKS[name].area):
        look = LOOKS[name]
        mask = _within(hue, look.hue, 360) & _within(saturation, look.saturation, 1) & _within(value, look.value, 1)
        regions, kept = _regions(name, look, mask & ~white)
        found += regions
        if name == "sponge" and regions:
            white = _grown(kept, round(0.03 * value.shape[0]))  # its blue thread is no clip
    return SeenPicture(tuple(found), False, aspect)


def _within(band: NDArray[np.uint8], bounds: tuple[float, float], full: float) -> Mask:
    low, high = (bound / full * 255 for bound in bounds)
    return np.asarray((band >= math.ceil(low)) & (band <= math.floor(high)))  # integers: ten times as fast


def _grown(mask: Mask, by: int) -> Mask:
    from scipy import ndimage

    size = 2 * max(1, by) + 1
    return np.asarray(ndimage.maximum_filter(mask.view(np.uint8), size=size) > 0)


def _regions(name: str, look: Look, mask: Mask) -> tuple[list[Detection], Mask]:
    """The connected regions that are large enough, and their pixels; thin lines of light are removed."""
    from scipy import ndimage

    height, width = mask.shape
    least = look.area * height * height
    if int(mask.sum()) < least:
        return [], mask
    if look.area > 0.005:
        eroded = ndimage.minimum_filter(mask.view(np.uint8), size=3, mode="constant")
        mask = np.asarray(ndimage.maximum_filter(eroded, size=3, mode="constant").view(np.bool_))
    labels, _ = ndimage.label(_grown(mask, round(look.join * height / 2)))
    labels[~mask] = 0
    kept = np.zeros_like(mask)
    found = []
    for label, window in enumerate(ndimage.find_objects(labels), start=1):
        inside = labels[window] == label
        area = int(inside.sum())
        if area < least:
            continue
        kept[window] |= inside
        rows, columns = np.nonzero(inside)
        top, left = window[0].start, window[1].start
        box = (left / width, top / height, window[1].stop / width, window[0].stop / height)
        found.append(
            Detection(
                name,
                (left + float(columns.mean()) + 0.5) / width,
                (top + float(rows.mean()) + 0.5) / height,
                area / height**2,
                box,
            )
        )
    return found, kept


LONE = 0.5
"""The cost of an object in one frame only, and the highest cost of one that moved, in heights."""


def in_order(pictures: Sequence[SeenPicture]) -> list[int] | None:
    """The indices of the frames in order of time: the shortest path by how far objects move. It begins at the end with
    fewer objects, since objects are brought in; with equal numbers, at the frame given earlier. None if the frames show
    no differences."""
    apart = np.array([[moved(picture, other) for other in pictures] for picture in pictures])
    if not apart.any():
        return None
    path = shortest_path(apart)
    fewer = len(pictures[path[-1]].detections) < len(pictures[path[0]].detections)
    return path[::-1] if fewer else path


def moved(seen_picture: SeenPicture, other: SeenPicture) -> float:
    """The distance of two frames: the least sum, over all matchings of objects of a class, of how far each has moved (in
    heights of the frame, at most `LONE`), plus `LONE` for each object in one frame only."""
    from scipy.optimize import linear_sum_assignment

    total = 0.0
    for name in {seen.class_name for seen in (*seen_picture.detections, *other.detections)}:
        here, there = _positions(seen_picture, name), _positions(other, name)
        total += LONE * abs(len(here) - len(there))
        if len(here) and len(there):
            far = np.minimum(np.linalg.norm(here[:, None] - there[None, :], axis=2), LONE)
            rows, columns = linear_sum_assignment(far)
            total += float(far[rows, columns].sum())
    return total


def _positions(picture: SeenPicture, name: str) -> NDArray[np.float64]:
    found: list[Detection] = [seen for seen in picture.detections if seen.class_name == name]
    return np.array([(seen.x * picture.aspect, seen.y) for seen in found], dtype=np.float64)


# Distances are in heights of the frame, times in seconds.
_PACE = 1.7  # the highest speed of an object (per second)
_RETURN = 0.16  # a hidden object reappears within this distance
_EDGE = 0.015  # a box this close to the edge touches it
_REST = 0.14  # slower objects (per second) are at rest: the camera drifts at about a third of it
_POSITIONS_APART = 0.25
_GAP = 1.2  # an object that is unseen for longer is hidden
_BRIEF = 0.4  # shorter detections are errors of segmentation


@dataclass
class Life:
    """One object: all times at which it was seen, with its region."""

    class_name: str
    seen: list[tuple[float, Detection]]
    aspect: float
    left: bool = False

    @property
    def first(self) -> float:
        return self.seen[0][0]

    @property
    def last(self) -> float:
        return self.seen[-1][0]

    def at(self, time: float, within: float) -> Detection | None:
        """The region nearest to a time, if within this many seconds."""
        moment, region = min(self.seen, key=lambda entry: abs(entry[0] - time))
        return region if abs(moment - time) <= within else None

    @property
    def was_hidden(self) -> bool:
        """Whether it was unseen for a while and then reappeared."""
        return any(b[0] - a[0] > _GAP for a, b in pairwise(self.seen))

    @property
    def was_moved(self) -> bool:
        """Whether it rested at two positions."""
        rests = [
            (b[1].x * self.aspect, b[1].y)
            for a, b in pairwise(self.seen)
            if _distance(a[1], b[1], self.aspect) < _REST * (b[0] - a[0])
        ]
        return bool(rests) and max(math.dist(rests[0], rest) for rest in rests) > _POSITIONS_APART

    def next_position(self, time: float) -> tuple[float, float]:
        """Its position at `time` (fractions), extrapolated from its last two sightings."""
        (before, a), (last, b) = self.seen[-2:] if len(self.seen) > 1 else (self.seen[-1],) * 2
        share = (time - last) / (last - before) if last > before else 0.0
        return b.x + share * (b.x - a.x), b.y + share * (b.y - a.y)


@dataclass(frozen=True)
class Story:
    """All lives, in order of their first sighting; the clip's start and end, and the time between frames."""

    lives: tuple[Life, ...]
    start: float
    end: float
    step: float

    def of(self, class_name: str) -> list[Life]:
        return [life for life in self.lives if life.class_name == class_name]

    def gone(self, class_name: str | None = None) -> list[Life]:
        """The lives that left the view, of one class or all, in order of leaving."""
        lives = [life for life in self.lives if life.left and class_name in {None, life.class_name}]
        return sorted(lives, key=lambda life: life.last)

    def in_view(self, time: float) -> list[tuple[Life, Detection]]:
        shown = [(life, life.at(time, 0.75 * self.step)) for life in self.lives]
        return [(life, region) for life, region in shown if region is not None]


@dataclass
class _Follower:
    """The lives of one class while frames are processed in order."""

    class_name: str
    aspect: float
    lives: list[Life] = field(default_factory=list)

    def take(self, time: float, regions: Sequence[Detection], step: float) -> None:
        """Assigns each region to the life that it continues, or to a new one."""
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
        """Whether a life has ended: it was last seen at the edge, or moving across it."""
        if not life.left and time - life.last > 1.5 * step:
            left, top, right, bottom = life.seen[-1][1].box
            x, y = life.next_position(life.last + 1.4 * step)
            outside = not (0 < x < 1 and 0 < y < 1)
            life.left = outside or min(left * self.aspect, top, (1 - right) * self.aspect, 1 - bottom) < _EDGE
        return life.left


def follow(times: Sequence[float], pictures: Sequence[SeenPicture]) -> Story:
    """The story of frames at these times (ascending)."""
    if not pictures:
        return Story((), 0.0, 0.0, 1.0)
    step = (times[-1] - times[0]) / max(1, len(times) - 1) or 1.0
    names = sorted({region.class_name for picture in pictures for region in picture.detections})
    followers = {name: _Follower(name, pictures[0].aspect) for name in names}
    for time, picture in zip(times, pictures, strict=True):
        for name, follower in followers.items():
            follower.take(time, [found for found in picture.detections if found.class_name == name], step)
    lives = [life for follower in followers.values() for life in follower.lives if life.last - life.first >= _BRIEF]
    for life in lives:
        life.left = life.left or life.last < times[-1] - 2.5 * step
    lives.sort(key=lambda life: (life.first, life.class_name))
    return Story(tuple(lives), times[0], times[-1] + step, step)


def _distance(a: Detection, b: Detection, aspect: float) -> float:
    return math.hypot((a.x - b.x) * aspect, a.y - b.y)

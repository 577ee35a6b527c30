"""Measures of one body in a picture. Each is None where a joint that it needs is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from proctor.tasks.clinicalskillqa.pose.keypoints import Person, PersonBox, Point


@dataclass(frozen=True, slots=True)
class Threshold:
    """A measure at `yes` or beyond is a yes, at `no` or beyond on the other side a no; between them it can't be
    decided. Which side is which follows from the two numbers."""

    yes: float
    no: float
    unit: str
    why: str

    def decide(self, value: float | None) -> bool | None:
        """None where there is no value, or where it lies between.

        >>> THRESHOLDS["leaning"].decide(40.0), THRESHOLDS["leaning"].decide(25.0), THRESHOLDS["leaning"].decide(5.0)
        (True, None, False)
        >>> THRESHOLDS["hand_at"].decide(0.05), THRESHOLDS["hand_at"].decide(0.9)
        (True, False)
        """
        if value is None:
            return None
        sign = 1 if self.yes > self.no else -1
        if sign * value >= sign * self.yes:
            return True
        return False if sign * value <= sign * self.no else None


THRESHOLDS: dict[str, Threshold] = {
    "kneeling": Threshold(
        0.35,
        0.55,
        "trunks from knee down to ankle",
        "Standing or sitting on a chair, the shank hangs down: about 0.85 of a trunk. On the knees it lies on the "
        "ground or behind them.",
    ),
    "leaning": Threshold(
        30.0,
        20.0,
        "degrees of the trunk from the vertical",
        "An upright trunk sways less than 20° in the picture; over a manikin it is bent by 30° and more.",
    ),
    "shortened": Threshold(
        0.7,
        0.85,
        "height of the trunk, in trunks by the longest segments",
        "A trunk that leans towards or away from the camera looks short; 0.7 is a bend of 45°.",
    ),
    "straight": Threshold(
        155.0,
        140.0,
        "degrees at the elbow",
        "Compressions are taught with locked elbows; what is seen of 180° loses some to perspective and jitter.",
    ),
    "vertical": Threshold(
        25.0,
        40.0,
        "degrees of the line from shoulder to wrist from the vertical",
        "The shoulders are to stand above the hands; cameras look from the side and from above.",
    ),
    "stretched": Threshold(
        55.0,
        40.0,
        "degrees of the line from shoulder to wrist from the vertical",
        "An arm that reaches out is neither hanging nor pressing down.",
    ),
    "hand_at": Threshold(
        0.10,
        0.35,
        "trunks from the hand to the place",
        "A hand is about 0.37 trunks long: its middle within a quarter of that touches, a whole hand away does not.",
    ),
    "reach": Threshold(
        0.35,
        0.8,
        "trunks from the hand to the device",
        "Who is about to take a thing has a hand within a hand's length of it; an upper arm away, it is not meant.",
    ),
    "lying": Threshold(
        65.0, 50.0, "degrees of the trunk from the vertical", "The manikin lies on its back; a rescuer bends by less."
    ),
    "flat": Threshold(
        0.5,
        0.65,
        "height over width of head, trunk and legs",
        "A lying body is at least twice as wide as high; one that kneels and leans has its thighs upright.",
    ),
    "nearer": Threshold(
        0.3,
        0.3,
        "trunks by which the nearest is nearer than the next",
        "Less than a hand's breadth of difference is within what a joint jitters.",
    ),
}
"""By measure. The numbers follow from the proportions of the body and from how resuscitation is taught (arms straight,
shoulders above the hands); they were set on drawn figures, not fitted to any benchmark's recordings."""

SEGMENTS: dict[tuple[str, str], float] = {
    ("shoulder", "elbow"): 0.186,
    ("elbow", "wrist"): 0.146,
    ("hip", "knee"): 0.245,
    ("knee", "ankle"): 0.246,
    ("shoulder", "hip"): 0.288,
}
"""Lengths of segments as shares of the body's height (Drillis and Contini 1966, Technical Report 1166.03, New York
University). They tell a person's scale from whatever segments are seen."""


Side = Literal["left", "right"]

_TRUNK = SEGMENTS["shoulder", "hip"]
_HAND = 0.37  # from the wrist to the middle of the hand, in forearms
_FACE = ("nose", "left_eye", "right_eye", "left_ear", "right_ear")
_NECK = 0.4  # from the shoulders to the middle of the head, in trunks
_CHEST = 0.3  # from the shoulders to the middle of the chest, in trunks
_HALF_CHEST, _HALF_HEAD = 0.25, 0.25


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: the elbow's angle and the line's from shoulder to wrist from the vertical, in degrees."""

    elbow: float | None
    tilt: float | None
    hand: Point | None


class Body:
    """The measures of one person."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.shoulders = self._middle("shoulder")
        self.hips = self._middle("hip")

    @property
    def trunk(self) -> float | None:
        """Pixels from shoulders to hips, as the segments that are seen tell them by a body's proportions: perspective
        only shortens, so the longest tells it best; of three or more the second, since one joint may be misplaced.
        """
        found = []
        for (start, end), share in SEGMENTS.items():
            for side in ("left", "right"):
                a, b = self.person.point(f"{side}_{start}"), self.person.point(f"{side}_{end}")
                if a is not None and b is not None:
                    found.append(_between(a, b) * _TRUNK / share)
        longest = sorted(found, reverse=True)
        return (longest[1] if len(longest) > 2 else longest[0] if longest else 0.0) or None

    @property
    def lean(self) -> float | None:
        """Degrees of the line from hips to shoulders from the vertical, 0 (upright) to 180."""
        if self.shoulders is None or self.hips is None:
            return None
        return _tilt(self.shoulders, self.hips)

    @property
    def rise(self) -> float | None:
        """How far the shoulders are above the hips, in trunks; 1 is an upright trunk seen from the side."""
        if self.shoulders is None or self.hips is None or self.trunk is None:
            return None
        return (self.hips.y - self.shoulders.y) / self.trunk

    @property
    def shanks(self) -> list[float]:
        """How far each ankle that is seen is below its knee, in trunks."""
        found = []
        for side in ("left", "right"):
            knee, ankle = self.person.point(f"{side}_knee"), self.person.point(f"{side}_ankle")
            if knee is not None and ankle is not None and self.trunk is not None:
                found.append((ankle.y - knee.y) / self.trunk)
        return found

    @property
    def flatness(self) -> float | None:
        """Height over width of all that is seen of head, trunk and legs; None without shoulders and hips."""
        if self.shoulders is None or self.hips is None:
            return None
        box = self.outline
        return (box.bottom - box.top) / (box.right - box.left) if box.right > box.left else math.inf

    @property
    def outline(self) -> PersonBox:
        """Around all that is seen of head, trunk and legs; the arms may point anywhere. The whole box where
        nothing of them is seen."""
        names = [name for name in self.person.keypoints if not name.endswith(("elbow", "wrist"))]
        seen = [point for name in names if (point := self.person.point(name)) is not None]
        if not seen:
            return self.person.box
        across, down = [point.x for point in seen], [point.y for point in seen]
        return PersonBox(min(across), min(down), max(across), max(down))

    @property
    def arms(self) -> dict[Side, Arm]:
        """Both arms, with what is known of each."""
        return {"left": self._arm("left"), "right": self._arm("right")}

    @property
    def middle(self) -> Point:
        """Of shoulders and hips, else of what is seen of them, else of the box."""
        known = [point for point in (self.shoulders, self.hips) if point is not None]
        return _mean(known) if known else self.person.box.centre

    @property
    def chest(self) -> PersonBox | None:
        """Of somebody who lies: a square below the shoulders; None without shoulders and hips."""
        middle = self._along(_CHEST)
        return None if middle is None or self.trunk is None else _around(middle, _HALF_CHEST * self.trunk)

    @property
    def head(self) -> PersonBox | None:
        """A square around what is seen of the face, else where it is by the trunk's line."""
        face = [point for name in _FACE if (point := self.person.point(name)) is not None]
        middle = _mean(face) if face else self._along(-_NECK)
        return None if middle is None or self.trunk is None else _around(middle, _HALF_HEAD * self.trunk)

    def _along(self, share: float) -> Point | None:
        """A point on the line from shoulders (0) to hips, in trunks."""
        start, end = self.shoulders, self.hips
        if start is None or end is None:
            return None
        length = _between(start, end) or 1.0
        step = share * (self.trunk or length) / length
        return Point(start.x + step * (end.x - start.x), start.y + step * (end.y - start.y))

    def _middle(self, joint: str) -> Point | None:
        """Between left and right, or the one that is seen: from the side they lie one behind the other."""
        both = [self.person.point(f"{side}_{joint}") for side in ("left", "right")]
        known = [point for point in both if point is not None]
        return _mean(known) if known else None

    def _arm(self, side: Side) -> Arm:
        shoulder, elbow, wrist = (self.person.point(f"{side}_{joint}") for joint in ("shoulder", "elbow", "wrist"))
        bend = _angle(shoulder, elbow, wrist) if shoulder and elbow and wrist else None
        tilt = _tilt(shoulder, wrist) if shoulder and wrist else None
        hand = wrist
        if wrist is not None and elbow is not None:
            hand = Point(wrist.x + _HAND * (wrist.x - elbow.x), wrist.y + _HAND * (wrist.y - elbow.y))
        return Arm(bend, tilt, hand)


def _tilt(upper: Point, lower: Point) -> float | None:
    """Degrees from the vertical of the line from `lower` up to `upper`: 0 straight up, 180 straight down."""
    if (upper.x, upper.y) == (lower.x, lower.y):
        return None
    return math.degrees(math.atan2(abs(upper.x - lower.x), lower.y - upper.y))


def _angle(first: Point, corner: Point, last: Point) -> float | None:
    """Degrees between the lines from the corner to both others; 180 is straight."""
    a, b = (first.x - corner.x, first.y - corner.y), (last.x - corner.x, last.y - corner.y)
    length = math.hypot(*a) * math.hypot(*b)
    if not length:
        return None
    return math.degrees(math.acos(max(-1.0, min(1.0, (a[0] * b[0] + a[1] * b[1]) / length))))


def _between(a: Point, b: Point) -> float:
    return math.hypot(a.x - b.x, a.y - b.y)


def _mean(points: Sequence[Point]) -> Point:
    return Point(sum(point.x for point in points) / len(points), sum(point.y for point in points) / len(points))


def _around(point: Point, half: float) -> PersonBox:
    return PersonBox(point.x - half, point.y - half, point.x + half, point.y + half)

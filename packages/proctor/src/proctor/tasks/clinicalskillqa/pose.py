"""What people in a picture do, by the measures of their bodies: yes, no, or unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from typing import Any, Literal

from pydantic import ValidationError

from proctor.core import InputError, Region
from proctor.tasks.clinicalskillqa.keypoints import MARKS, Person, PersonBox, Point, Pose


@dataclass(frozen=True, slots=True)
class Threshold:
    """A measure at `yes` or beyond means yes, at `no` or beyond on the other side no; between them it is undecided.
    `yes` may be the larger or the smaller number."""

    yes: float
    no: float
    unit: str
    why: str

    def decide(self, value: float | None) -> bool | None:
        """None for a missing value, or one between the thresholds.

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


def _data() -> Any:
    import yaml

    return yaml.safe_load(files(__package__).joinpath("pose.yaml").read_text(encoding="utf-8"))


_DATA = _data()

THRESHOLDS = {name: Threshold(**threshold) for name, threshold in _DATA["thresholds"].items()}
"""By measure, with their reasons."""

WORDS: dict[str, tuple[str, str, str]] = {name: tuple(words) for name, words in _DATA["words"].items()}
"""For each predicate the words for yes, for no, and its name."""

SEGMENTS: dict[tuple[str, str], float] = {
    ("shoulder", "elbow"): 0.186,
    ("elbow", "wrist"): 0.146,
    ("hip", "knee"): 0.245,
    ("knee", "ankle"): 0.246,
    ("shoulder", "hip"): 0.288,
}
"""Lengths of segments as shares of the body's height (Drillis and Contini 1966, Technical Report 1166.03, New York
University), from which any visible segment gives a person's scale."""


Side = Literal["left", "right"]

_TRUNK = SEGMENTS["shoulder", "hip"]
_HAND = 0.37  # from the wrist to the middle of the hand, in forearms
_FACE = ("nose", "left_eye", "right_eye", "left_ear", "right_ear")
_NECK = 0.4  # from the shoulders to the middle of the head, in trunks
_CHEST = 0.3  # from the shoulders to the middle of the chest, in trunks
_HALF_CHEST, _HALF_HEAD = 0.25, 0.25


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: the elbow's angle, and the tilt of the line from shoulder to wrist from the vertical, in degrees."""

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
        """Pixels from shoulders to hips, estimated from the visible segments by a body's proportions. Perspective only
        shortens, so the longest estimate is best; of three or more the second, since one joint may be misplaced."""
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
        """Tilt of the line from hips to shoulders in degrees from the vertical, 0 (upright) to 180."""
        if self.shoulders is None or self.hips is None:
            return None
        return _tilt(self.shoulders, self.hips)

    @property
    def rise(self) -> float | None:
        """Height of the shoulders above the hips in trunks; 1 is an upright trunk seen from the side."""
        if self.shoulders is None or self.hips is None or self.trunk is None:
            return None
        return (self.hips.y - self.shoulders.y) / self.trunk

    @property
    def shanks(self) -> list[float]:
        """For each visible shank the height of the knee above the ankle, in trunks."""
        found = []
        for side in ("left", "right"):
            knee, ankle = self.person.point(f"{side}_knee"), self.person.point(f"{side}_ankle")
            if knee is not None and ankle is not None and self.trunk is not None:
                found.append((ankle.y - knee.y) / self.trunk)
        return found

    @property
    def flatness(self) -> float | None:
        """Height over width of the outline; None without shoulders and hips."""
        if self.shoulders is None or self.hips is None:
            return None
        box = self.outline
        return (box.bottom - box.top) / (box.right - box.left) if box.right > box.left else math.inf

    @property
    def outline(self) -> PersonBox:
        """The box around the visible joints of head, trunk and legs, without the arms; the person's box where none is
        visible."""
        names = [name for name in self.person.keypoints if not name.endswith(("elbow", "wrist"))]
        seen = [point for name in names if (point := self.person.point(name)) is not None]
        if not seen:
            return self.person.box
        across, down = [point.x for point in seen], [point.y for point in seen]
        return PersonBox(min(across), min(down), max(across), max(down))

    @property
    def arms(self) -> dict[Side, Arm]:
        return {"left": self._arm("left"), "right": self._arm("right")}

    @property
    def middle(self) -> Point:
        """The middle of the visible ones of shoulders and hips, else of the box."""
        known = [point for point in (self.shoulders, self.hips) if point is not None]
        return _mean(known) if known else self.person.box.centre

    @property
    def chest(self) -> PersonBox | None:
        """The chest of a lying person: a square below the shoulders; None without shoulders and hips."""
        middle = self._along(_CHEST)
        return None if middle is None or self.trunk is None else _square(middle, _HALF_CHEST * self.trunk)

    @property
    def head(self) -> PersonBox | None:
        """A square around the visible face, else at the end of the trunk's line."""
        face = [point for name in _FACE if (point := self.person.point(name)) is not None]
        middle = _mean(face) if face else self._along(-_NECK)
        return None if middle is None or self.trunk is None else _square(middle, _HALF_HEAD * self.trunk)

    def _along(self, share: float) -> Point | None:
        """The point on the line from shoulders to hips at this distance from the shoulders, in trunks."""
        start, end = self.shoulders, self.hips
        if start is None or end is None:
            return None
        length = _between(start, end) or 1.0
        step = share * (self.trunk or length) / length
        return Point(start.x + step * (end.x - start.x), start.y + step * (end.y - start.y))

    def _middle(self, joint: str) -> Point | None:
        """The middle of left and right, or the visible one: from the side one hides the other."""
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
    """The angle in degrees between the line from `lower` to `upper` and the vertical: 0 straight up, 180 straight down."""
    if (upper.x, upper.y) == (lower.x, lower.y):
        return None
    return math.degrees(math.atan2(abs(upper.x - lower.x), lower.y - upper.y))


def _angle(first: Point, corner: Point, last: Point) -> float | None:
    """The angle in degrees at the corner; 180 is straight."""
    a, b = (first.x - corner.x, first.y - corner.y), (last.x - corner.x, last.y - corner.y)
    length = math.hypot(*a) * math.hypot(*b)
    if not length:
        return None
    return math.degrees(math.acos(max(-1.0, min(1.0, (a[0] * b[0] + a[1] * b[1]) / length))))


def _between(a: Point, b: Point) -> float:
    return math.hypot(a.x - b.x, a.y - b.y)


def _mean(points: Sequence[Point]) -> Point:
    return Point(sum(point.x for point in points) / len(points), sum(point.y for point in points) / len(points))


def _square(point: Point, half: float) -> PersonBox:
    return PersonBox(point.x - half, point.y - half, point.x + half, point.y + half)


@dataclass(frozen=True)
class BodyPositions:
    """Where the manikin and the device are, in pixels (None: unknown). `by` is how the manikin was found, `lying` the
    detection that was taken for it."""

    by: Literal["", "a lying body", "marked"] = ""
    head: PersonBox | None = None
    chest: PersonBox | None = None
    body: PersonBox | None = None
    device: PersonBox | None = None
    lying: Person | None = None


@dataclass(frozen=True)
class PersonFacts:
    """One rescuer, numbered from left to right, with the decision on every predicate of `PREDICATES`."""

    number: int
    holds: Mapping[str, bool | None]


@dataclass(frozen=True)
class PictureFacts:
    """One picture: the rescuers (without the manikin), how the manikin was found ("" if it was not), and the number of
    the rescuer nearest to it (None: unknown)."""

    rescuers: tuple[PersonFacts, ...]
    manikin: str
    nearest: int | None


def facts_of(pose: Pose, marked: Mapping[str, Region] | None = None) -> PictureFacts:
    """The facts that `pose` decides. `marked` are regions (head, chest, device) in fractions of the picture, the same in
    all pictures; the pose's own marks take precedence."""
    positions = positions_of(pose, marked or {})
    rescuers = sorted(
        (person for person in pose.people if person is not positions.lying), key=lambda person: person.box.centre.x
    )
    bodies = [Body(person) for person in rescuers]
    found = tuple(
        PersonFacts(number, {name: decide(body, positions) for name, decide in PREDICATES.items()})
        for number, body in enumerate(bodies, start=1)
    )
    return PictureFacts(found, positions.by, _nearest(bodies, positions))


def positions_of(pose: Pose, marked: Mapping[str, Region]) -> BodyPositions:
    """The marked regions, else those of the lying body: of several the nearest to a mark, else the lowest.

    A body is lying if its trunk is far from vertical and its outline is wider than high. A body seen from its feet or
    head looks upright and is not found; mark its regions instead.
    """
    boxes = {name: _pixels(region, pose) for name, region in marked.items()} | dict(pose.marked)
    head, chest, device = (boxes.get(name) for name in ("head", "chest", "device"))
    lying = _lying(pose.people, chest or head)
    if head is not None or chest is not None:
        both = _around([head, chest]) if head is not None and chest is not None else None
        return BodyPositions("marked", head, chest, both, device, lying)
    if lying is None:
        return BodyPositions(device=device)
    body = Body(lying)
    around = _around([box for box in (body.outline, body.head, body.chest) if box is not None])
    return BodyPositions("a lying body", body.head, body.chest, around, device, lying)


def _lying(people: Iterable[Person], near: PersonBox | None) -> Person | None:
    flat = [person for person in people if _lies(Body(person))]
    if not flat:
        return None
    if near is None:
        return max(flat, key=lambda person: person.box.centre.y)
    return min(flat, key=lambda person: near.distance(person.box.centre))


def _lies(body: Body) -> bool:
    lean = body.lean
    slope = None if lean is None else min(lean, 180 - lean)
    return _all([_decided("lying", slope), _decided("flat", body.flatness)]) is True


def _pressing(body: Body, _: BodyPositions) -> bool | None:
    """Decided by all visible arms: from the side one hides the other."""
    seen = [arm for arm in body.arms.values() if arm.elbow is not None or arm.tilt is not None]
    return _all(
        [_decided(name, value) for arm in seen for name, value in (("straight", arm.elbow), ("vertical", arm.tilt))]
    )


def _stretching(body: Body, _: BodyPositions) -> bool | None:
    arms = body.arms.values()
    return _any([_all([_decided("straight", arm.elbow), _decided("stretched", arm.tilt)]) for arm in arms])


def _off(body: Body, positions: BodyPositions) -> bool | None:
    """Off the whole manikin; a hand at any known part of it is enough for a no."""
    known = [position for position in (positions.body, positions.head, positions.chest) if position is not None]
    touching = [_hand_at(body, position, "hand_at") for position in known]
    if True in touching:
        return False
    return True if positions.body is not None and _hand_at(body, positions.body, "hand_at") is False else None


PREDICATES: dict[str, Callable[[Body, BodyPositions], bool | None]] = {
    "kneeling": lambda body, _: _any([_decided("kneeling", drop) for drop in body.shanks]),
    # sideways in the picture, or towards the camera and away, which shortens the trunk
    "leaning_over": lambda body, _: _any([_decided("leaning", body.lean), _decided("shortened", body.rise)]),
    "arms_straight_and_vertical": _pressing,
    "arm_stretched_out": _stretching,
    "hands_on_chest": lambda body, positions: _hand_at(body, positions.chest, "hand_at"),
    "hands_at_head": lambda body, positions: _hand_at(body, positions.head, "hand_at"),
    "reaching_for_device": lambda body, positions: _hand_at(body, positions.device, "reach"),
    "hands_off": _off,
}
"""The predicates of each rescuer. One hand is enough for "on the chest", "at the head" and "for the device"; a no requires
both hands to be visible."""


def _hand_at(body: Body, location: PersonBox | None, threshold: str) -> bool | None:
    scale = body.trunk
    if location is None or scale is None:
        return None
    hands = [arm.hand for arm in body.arms.values()]
    return _any([_decided(threshold, None if hand is None else location.distance(hand) / scale) for hand in hands])


def _nearest(bodies: Sequence[Body], positions: BodyPositions) -> int | None:
    position = positions.chest or positions.body or positions.head
    if position is None or not bodies:
        return None
    if len(bodies) == 1:
        return 1
    scales = [body.trunk for body in bodies if body.trunk is not None]
    if not scales:
        return None
    point = position.centre
    far = [_between(body.middle, point) for body in bodies]
    first, second = sorted(range(len(far)), key=far.__getitem__)[:2]
    ahead = (far[second] - far[first]) / median(scales)
    return first + 1 if ahead > THRESHOLDS["nearer"].yes else None


def _decided(threshold: str, value: float | None) -> bool | None:
    return THRESHOLDS[threshold].decide(value)


def _any(parts: Sequence[bool | None]) -> bool | None:
    """Three-valued "or"; unknown for no parts."""
    if True in parts:
        return True
    return None if not parts or None in parts else False


def _all(parts: Sequence[bool | None]) -> bool | None:
    """Three-valued "and"; unknown for no parts."""
    if False in parts:
        return False
    return None if not parts or None in parts else True


def _pixels(region: Region, pose: Pose) -> PersonBox:
    left, top = region.x * pose.width, region.y * pose.height
    return PersonBox(left, top, left + region.width * pose.width, top + region.height * pose.height)


def _around(boxes: Sequence[PersonBox]) -> PersonBox:
    return PersonBox(
        min(box.left for box in boxes),
        min(box.top for box in boxes),
        max(box.right for box in boxes),
        max(box.bottom for box in boxes),
    )


_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six")


def sentences(facts: PictureFacts, *, unknown: bool = True) -> list[str]:
    """One sentence on who is there, one or two on each person from left to right, and one on who is nearest to the
    manikin. Undecided predicates are stated as unknown, or left out (`unknown=False`).

    >>> sentences(PictureFacts((), "", None))
    ['No person is seen. The manikin is not found.']
    """
    count = len(facts.rescuers)
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    seen = f"{number} {'person is' if count < 2 else 'people are'} seen"
    if facts.manikin == "a lying body":
        lines = [f"{seen}, and the manikin, by the looks of it a lying body."]
    elif facts.manikin:
        lines = [f"{seen}. Where the manikin lies is marked."]
    else:
        lines = [f"{seen}. The manikin is not found."]
    for person in facts.rescuers:
        lines += _person(person, count, unknown=unknown)
    if facts.manikin and count > 1 and (facts.nearest is not None or unknown):
        who = f"is person {facts.nearest}" if facts.nearest is not None else "can't be decided"
        lines.append(f"Nearest to the manikin {who}.")
    return lines


def _person(person: PersonFacts, count: int, *, unknown: bool) -> list[str]:
    name = f"Person {person.number} of {count} from the left" if count > 1 else "The person"
    words = [WORDS[key][0] for key, holds in person.holds.items() if holds is True]
    words += [WORDS[key][1] for key, holds in person.holds.items() if holds is False]
    open_ = [WORDS[key][2] for key, holds in person.holds.items() if holds is None]
    found = [f"{name} {', '.join(words)}."] if words else []
    if unknown and open_:
        found.append(f"Unknown of {name[0].lower()}{name[1:]}: {', '.join(open_)}.")
    return found


def marked_region(text: str, what: str) -> Region:
    """A region as written by a user: `x,y,width,height` in fractions of the picture. Raises `InputError`.

    >>> marked_region("0.25,0.5,0.1,0.2", "chest").height
    0.2
    """
    try:
        x, y, width, height = (float(part) for part in text.split(","))
        return Region(x=x, y=y, width=width, height=height)
    except (ValueError, ValidationError) as error:
        expected = "four fractions of the picture, like 0.25,0.5,0.1,0.2"
        raise InputError(what, found=repr(text), expected=expected) from error


def marked_regions(given: Mapping[str, str | None]) -> dict[str, Region]:
    """The given regions of head, chest and device, read by `marked_region`."""
    return {name: marked_region(text, name) for name in MARKS if (text := given.get(name))}

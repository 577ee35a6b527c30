"""What people in a picture do, as far as their joints decide it: yes, no, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from proctor.core import Region
from proctor.tasks.clinicalskillqa.pose.geometry import THRESHOLDS, Body
from proctor.tasks.clinicalskillqa.pose.keypoints import Person, PersonBox, Pose


@dataclass(frozen=True)
class Places:
    """Where the manikin and the device are, in pixels; None is unknown. `by` says how the manikin was found, `lying`
    is the detection that was taken for it."""

    by: Literal["", "a lying body", "marked"] = ""
    head: PersonBox | None = None
    chest: PersonBox | None = None
    body: PersonBox | None = None
    device: PersonBox | None = None
    lying: Person | None = None


@dataclass(frozen=True)
class PersonFacts:
    """One rescuer: the number counts from left to right, `holds` has every predicate of `PREDICATES`."""

    number: int
    holds: Mapping[str, bool | None]


@dataclass(frozen=True)
class PictureFacts:
    """One picture: the rescuers (the manikin apart), how the manikin was found ("" where it was not), and the number
    of the rescuer nearest to it (None: unknown)."""

    rescuers: tuple[PersonFacts, ...]
    manikin: str
    nearest: int | None


def facts_of(pose: Pose, marked: Mapping[str, Region] | None = None) -> PictureFacts:
    """What `pose` decides. `marked` are places in fractions of the picture (head, chest, device) that are the same in
    all pictures; those that the pose itself has come first."""
    places = places_of(pose, marked or {})
    rescuers = sorted(
        (person for person in pose.people if person is not places.lying), key=lambda person: person.box.centre.x
    )
    bodies = [Body(person) for person in rescuers]
    found = tuple(
        PersonFacts(number, {name: decide(body, places) for name, decide in PREDICATES.items()})
        for number, body in enumerate(bodies, start=1)
    )
    return PictureFacts(found, places.by, _nearest(bodies, places))


def places_of(pose: Pose, marked: Mapping[str, Region]) -> Places:
    """Places as marked, else by the body that lies: of several the one nearest to what is marked, else the lowest.

    A body lies where its trunk is far from vertical and all of it wide rather than high. One that is seen from its
    feet or head looks upright, and is not found: then mark its places.
    """
    boxes = {name: _pixels(region, pose) for name, region in marked.items()} | dict(pose.marked)
    head, chest, device = (boxes.get(name) for name in ("head", "chest", "device"))
    lying = _lying(pose.people, chest or head)
    if head is not None or chest is not None:
        both = _around([head, chest]) if head is not None and chest is not None else None
        return Places("marked", head, chest, both, device, lying)
    if lying is None:
        return Places(device=device)
    body = Body(lying)
    around = _around([box for box in (body.outline, body.head, body.chest) if box is not None])
    return Places("a lying body", body.head, body.chest, around, device, lying)


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


def _kneeling(body: Body, places: Places) -> bool | None:
    del places
    return _any([_decided("kneeling", drop) for drop in body.shanks])


def _leaning(body: Body, places: Places) -> bool | None:
    """Sideways in the picture, or towards the camera and away, which shortens the trunk."""
    del places
    return _any([_decided("leaning", body.lean), _decided("shortened", body.rise)])


def _pressing(body: Body, places: Places) -> bool | None:
    """Of all arms that are seen: from the side one hides the other."""
    del places
    seen = [arm for arm in body.arms.values() if arm.elbow is not None or arm.tilt is not None]
    return _all(
        [_decided(name, value) for arm in seen for name, value in (("straight", arm.elbow), ("vertical", arm.tilt))]
    )


def _stretching(body: Body, places: Places) -> bool | None:
    del places
    arms = body.arms.values()
    return _any([_all([_decided("straight", arm.elbow), _decided("stretched", arm.tilt)]) for arm in arms])


def _on_chest(body: Body, places: Places) -> bool | None:
    return _hand_at(body, places.chest, "hand_at")


def _at_head(body: Body, places: Places) -> bool | None:
    return _hand_at(body, places.head, "hand_at")


def _at_device(body: Body, places: Places) -> bool | None:
    return _hand_at(body, places.device, "reach")


def _off(body: Body, places: Places) -> bool | None:
    """Of the whole manikin; a hand at a part of it that is known is enough for a no."""
    known = [place for place in (places.body, places.head, places.chest) if place is not None]
    touching = [_hand_at(body, place, "hand_at") for place in known]
    if True in touching:
        return False
    return True if places.body is not None and _hand_at(body, places.body, "hand_at") is False else None


PREDICATES: dict[str, Callable[[Body, Places], bool | None]] = {
    "kneeling": _kneeling,
    "leaning_over": _leaning,
    "arms_straight_and_vertical": _pressing,
    "arm_stretched_out": _stretching,
    "hands_on_chest": _on_chest,
    "hands_at_head": _at_head,
    "reaching_for_device": _at_device,
    "hands_off": _off,
}
"""What is decided of each rescuer, by name. One hand is enough for "on the chest", "at the head" and "for the device";
a no needs both hands to be seen."""


def _hand_at(body: Body, place: PersonBox | None, threshold: str) -> bool | None:
    scale = body.trunk
    if place is None or scale is None:
        return None
    hands = [arm.hand for arm in body.arms.values()]
    return _any([_decided(threshold, None if hand is None else place.distance(hand) / scale) for hand in hands])


def _nearest(bodies: Sequence[Body], places: Places) -> int | None:
    place = places.chest or places.body or places.head
    if place is None or not bodies:
        return None
    if len(bodies) == 1:
        return 1
    scales = [body.trunk for body in bodies if body.trunk is not None]
    if not scales:
        return None
    point = place.centre
    far = [((body.middle.x - point.x) ** 2 + (body.middle.y - point.y) ** 2) ** 0.5 for body in bodies]
    first, second = sorted(range(len(far)), key=far.__getitem__)[:2]
    ahead = (far[second] - far[first]) / median(scales)
    return first + 1 if ahead > THRESHOLDS["nearer"].yes else None


def _decided(threshold: str, value: float | None) -> bool | None:
    return THRESHOLDS[threshold].decide(value)


def _any(parts: Sequence[bool | None]) -> bool | None:
    """Yes where one is, no where all are no; unknown where there is none."""
    if True in parts:
        return True
    return None if not parts or None in parts else False


def _all(parts: Sequence[bool | None]) -> bool | None:
    """No where one is, yes where all are yes; unknown where there is none."""
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


WORDS: Mapping[str, tuple[str, str, str]] = {
    "kneeling": ("kneels", "does not kneel", "kneeling"),
    "leaning_over": ("leans over", "is upright", "leaning over"),
    "arms_straight_and_vertical": (
        "has the arms straight and vertical",
        "does not have the arms straight and vertical",
        "arms straight and vertical",
    ),
    "arm_stretched_out": ("stretches an arm out", "stretches no arm out", "an arm stretched out"),
    "hands_on_chest": ("has a hand on the manikin's chest", "has no hand on the manikin's chest", "hands on the chest"),
    "hands_at_head": ("has a hand at the manikin's head", "has no hand at the manikin's head", "hands at the head"),
    "reaching_for_device": ("reaches for the device", "does not reach for the device", "reaching for a device"),
    "hands_off": ("keeps the hands off the manikin", "has hands on the manikin", "hands off"),
}
"""Of each predicate: how a yes is said, how a no, and what it is called."""

_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six")


def sentences(facts: PictureFacts, *, unknown: bool = True) -> list[str]:
    """One sentence on who is there, one or two for each person from left to right, one on who is nearest to the
    manikin. What can't be decided is said to be unknown, or left out (`unknown=False`).

    >>> sentences(PictureFacts((), "", None))
    ['No person is seen. The manikin is not found.']
    """
    count = len(facts.rescuers)
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    seen = f"{number} {'person is' if count < 2 else 'people are'} seen"
    if facts.manikin == "a lying body":
        said = [f"{seen}, and the manikin, by the looks of it a lying body."]
    elif facts.manikin:
        said = [f"{seen}. Where the manikin lies is marked."]
    else:
        said = [f"{seen}. The manikin is not found."]
    for person in facts.rescuers:
        said += _person(person, count, unknown=unknown)
    if facts.manikin and count > 1 and (facts.nearest is not None or unknown):
        who = f"is person {facts.nearest}" if facts.nearest is not None else "can't be decided"
        said.append(f"Nearest to the manikin {who}.")
    return said


def _person(person: PersonFacts, count: int, *, unknown: bool) -> list[str]:
    name = f"Person {person.number} of {count} from the left" if count > 1 else "The person"
    said = [WORDS[key][0] for key, holds in person.holds.items() if holds is True]
    said += [WORDS[key][1] for key, holds in person.holds.items() if holds is False]
    open_ = [WORDS[key][2] for key, holds in person.holds.items() if holds is None]
    found = [f"{name} {', '.join(said)}."] if said else []
    if unknown and open_:
        found.append(f"Unknown of {name[0].lower()}{name[1:]}: {', '.join(open_)}.")
    return found

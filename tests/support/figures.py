"""Drawn people: joints in pixels, with a trunk of 100, as a keypoint network or an annotator would give them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from proctor.tasks.clinicalskillqa.keypoints import KEYPOINTS, Person, PersonBox, Point, Pose

Joints = dict[str, tuple[float, float]]

FLOOR = 400.0
TRUNK, UPPER, FORE, LEG = 100.0, 64.6, 50.7, 85.2  # by the proportions of a body


def person(joints: Mapping[str, tuple[float, float]], confidence: float = 0.9, score: float = 0.9) -> Person:
    """With these joints and no other."""
    assert set(joints) <= set(KEYPOINTS)
    xs, ys = [x for x, _ in joints.values()], [y for _, y in joints.values()]
    box = PersonBox(min(xs) - 5, min(ys) - 5, max(xs) + 5, max(ys) + 5)
    return Person(box, score, {name: Point(x, y, confidence) for name, (x, y) in joints.items()})


def pose(*people: Joints, width: int = 800, height: int = 500, marked: Mapping[str, PersonBox] | None = None) -> Pose:
    """A picture of these people."""
    return Pose(width, height, tuple(person(joints) for joints in people), dict(marked or {}))


def without(joints: Joints, names: Iterable[str]) -> Joints:
    """Less those whose names end so."""
    return {name: location for name, location in joints.items() if not name.endswith(tuple(names))}


def manikin(shoulders: float = 314.0, y: float = 380.0) -> Joints:
    """On its back, the head to the left, seen from the side: chest at 30 to the right of the shoulders, head at 40
    to the left."""
    return {
        "nose": (shoulders - 40, y - 8),
        "left_ear": (shoulders - 40, y + 8),
        "left_shoulder": (shoulders, y),
        "left_hip": (shoulders + TRUNK, y),
        "left_knee": (shoulders + TRUNK + LEG, y - 5),
        "left_ankle": (shoulders + TRUNK + 2 * LEG, y),
    }


def standing(x: float = 600.0, arms: float = 0.0) -> Joints:
    """Upright, both arms straight at this many degrees from hanging (90 is stretched out to the left)."""
    hip = FLOOR - 2 * LEG
    body = {"nose": (x, hip - 140), **_trunk(x, hip, 0.0)}
    body |= {f"{side}_knee": (x, FLOOR - LEG) for side in ("left", "right")}
    body |= {f"{side}_ankle": (x, FLOOR) for side in ("left", "right")}
    return body | _arms(x, hip - TRUNK, -arms, 0.0)


def kneeler(
    x: float = 280.0, lean: float = 40.0, arms: float = 0.0, bend: float = 0.0, knee: float | None = None
) -> Joints:
    """On the knees, hips at x, the trunk leaning to the right, the arms at this many degrees from hanging (positive to
    the right), the elbows bent by this many."""
    hip = FLOOR - LEG
    ground = x if knee is None else knee
    shoulder = x + TRUNK * math.sin(math.radians(lean)), hip - TRUNK * math.cos(math.radians(lean))
    body = {"nose": (shoulder[0] + 20, shoulder[1] - 35), **_trunk(x, hip, lean)}
    body |= {f"{side}_knee": (ground, FLOOR) for side in ("left", "right")}
    body |= {f"{side}_ankle": (ground - LEG, FLOOR + 4) for side in ("left", "right")}
    return body | _arms(*shoulder, arms, bend)


def _trunk(x: float, hip: float, lean: float) -> Joints:
    shoulder = x + TRUNK * math.sin(math.radians(lean)), hip - TRUNK * math.cos(math.radians(lean))
    return {f"{side}_shoulder": shoulder for side in ("left", "right")} | {
        f"{side}_hip": (x, hip) for side in ("left", "right")
    }


def _arms(x: float, y: float, swing: float, bend: float) -> Joints:
    upper, fore = math.radians(swing), math.radians(swing + bend)
    elbow = x + UPPER * math.sin(upper), y + UPPER * math.cos(upper)
    wrist = elbow[0] + FORE * math.sin(fore), elbow[1] + FORE * math.cos(fore)
    return {f"{side}_elbow": elbow for side in ("left", "right")} | {
        f"{side}_wrist": wrist for side in ("left", "right")
    }

"""People in a picture as the joints that were found of them: COCO's seventeen, missing ones absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["KEYPOINTS", "SEEN", "Box", "Person", "Point", "Pose"]

KEYPOINTS = (
    "nose",
    "left_eye",
    "right_eye",
    "left_ear",
    "right_ear",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
)
"""COCO's names, in COCO's order; left and right are the person's own."""

SEEN = 0.5
"""The least confidence with which a joint counts as found: half, as networks of this kind are drawn by their
makers. Below it the joint is missing, and what needs it is unknown."""


@dataclass(frozen=True, slots=True)
class Point:
    """A joint in pixels of the picture, origin at the top left; `confidence` from 0 to 1. It may lie outside of
    the picture, where a network guesses what is cut off."""

    x: float
    y: float
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels of the picture, origin at the top left."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def centre(self) -> Point:
        """Its middle."""
        return Point((self.left + self.right) / 2, (self.top + self.bottom) / 2)

    def distance(self, point: Point) -> float:
        """Pixels from a point to the nearest edge; 0 inside.

        >>> Box(0, 0, 10, 10).distance(Point(13, 14)), Box(0, 0, 10, 10).distance(Point(5, 5))
        (5.0, 0.0)
        """
        across = max(self.left - point.x, 0.0, point.x - self.right)
        down = max(self.top - point.y, 0.0, point.y - self.bottom)
        return float((across**2 + down**2) ** 0.5)


@dataclass(frozen=True, slots=True)
class Person:
    """One detected person (or manikin: a network does not tell them apart)."""

    box: Box
    score: float
    keypoints: Mapping[str, Point]

    def point(self, name: str) -> Point | None:
        """A joint by its COCO name; None where it was not found with a confidence of at least `SEEN`."""
        found = self.keypoints.get(name)
        return found if found is not None and found.confidence >= SEEN else None


@dataclass(frozen=True)
class Pose:
    """What was found in one picture of `width` × `height` pixels. `marked` are places that were marked by name:
    the manikin's "head" and "chest", a "device"; no network finds those."""

    width: int
    height: int
    people: tuple[Person, ...]
    marked: Mapping[str, Box] = field(default_factory=dict)

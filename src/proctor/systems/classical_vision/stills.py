"""Still pictures in order: what moves little from one to the next belongs together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from proctor.systems.classical_vision.detection import Detection, Picture
from proctor.systems.seriation import shortest_path

__all__ = ["in_order", "moved"]

LONE = 0.5
"""What an object costs that is in one picture alone, and the most that one costs which has moved, in heights."""


def in_order(pictures: Sequence[Picture]) -> list[int] | None:
    """The places of the pictures, first to last: the shortest path by how far objects move. It begins with the end
    that has fewer objects, as they are brought in; where both have as many, with the one given earlier. None where
    no object tells one picture from another."""
    apart = np.array([[moved(one, other) for other in pictures] for one in pictures])
    if not apart.any():
        return None
    path = shortest_path(apart)
    fewer = len(pictures[path[-1]].detections) < len(pictures[path[0]].detections)
    return path[::-1] if fewer else path


def moved(one: Picture, other: Picture) -> float:
    """The least sum, over all ways to take the objects of a class for the same, of how far each has moved (in
    heights of the picture, at most `LONE`) and of `LONE` for each that is in one picture alone."""
    total = 0.0
    for name in {seen.class_name for seen in (*one.detections, *other.detections)}:
        here, there = _places(one, name), _places(other, name)
        total += LONE * abs(len(here) - len(there))
        if len(here) and len(there):
            far = np.minimum(np.linalg.norm(here[:, None] - there[None, :], axis=2), LONE)
            rows, columns = linear_sum_assignment(far)
            total += float(far[rows, columns].sum())
    return total


def _places(picture: Picture, name: str) -> NDArray[np.float64]:
    found: list[Detection] = [seen for seen in picture.detections if seen.class_name == name]
    return np.array([(seen.x * picture.aspect, seen.y) for seen in found], dtype=np.float64)

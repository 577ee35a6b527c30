"""How unlike two pictures look, and how much there is in one."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

__all__ = ["Look", "busyness", "look", "unlikeness"]

Look = NDArray[np.float64]

_SIDE = 32


def look(jpeg: bytes) -> Look:
    """A picture as 32 × 32 points of colour, 0 to 1, in any shape of picture."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        opened.draft("RGB", (4 * _SIDE, 4 * _SIDE))
        small = opened.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float64) / 255


def unlikeness(looks: list[Look]) -> NDArray[np.float64]:
    """n × n, symmetric, from 0: the mean over points of the distance between their colours."""
    points = np.stack([one.reshape(-1, 3) for one in looks])
    apart = np.linalg.norm(points[:, None] - points[None, :], axis=3)
    unlike: NDArray[np.float64] = apart.mean(axis=2)
    return unlike


def busyness(one: Look) -> float:
    """The mean step from point to point, from 0 (one colour everywhere)."""
    across = np.linalg.norm(np.diff(one, axis=1), axis=2).mean()
    down = np.linalg.norm(np.diff(one, axis=0), axis=2).mean()
    return float(across + down) / 2

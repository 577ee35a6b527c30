"""How far things move from one picture to another, and what moving does not explain."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Motion", "moved"]

Table = NDArray[np.float64]
Motion = tuple[Table, Table]

_SIDE = 160


def moved(jpegs: Sequence[bytes]) -> Motion:
    """Two tables, n × n, symmetric, from 0: the mean length of the optical flow from picture to picture, in widths; and
    the mean difference in brightness (0 to 1) that is left once one is moved by the flow onto the other.

    Dense flow by inverse search (Kroeger and others 2016, ECCV) on pictures of 160 points width; of both ways round
    the mean. Pictures of another shape are stretched to that of the first.
    """
    import cv2

    greys = _greys(jpegs)
    far, left = np.zeros((len(greys), len(greys))), np.zeros((len(greys), len(greys)))
    finder = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    for one, other in permutations(range(len(greys)), 2):
        here, there = greys[one], greys[other]
        high, wide = here.shape
        flow = finder.calc(here, there, np.zeros((high, wide, 2), np.float32))
        rows, columns = np.mgrid[:high, :wide].astype(np.float32)
        back = cv2.remap(
            there,
            columns + flow[..., 0],
            rows + flow[..., 1],
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        far[one, other] = float(np.hypot(flow[..., 0], flow[..., 1]).mean()) / wide
        left[one, other] = float(np.abs(back.astype(np.float64) - here).mean()) / 255
    return (far + far.T) / 2, (left + left.T) / 2


def _greys(jpegs: Sequence[bytes]) -> list[NDArray[np.uint8]]:
    from PIL import Image

    greys: list[NDArray[np.uint8]] = []
    size = (0, 0)
    for jpeg in jpegs:
        with Image.open(io.BytesIO(jpeg)) as opened:
            opened.draft("L", (2 * _SIDE, 2 * _SIDE))
            if size == (0, 0):
                size = _SIDE, max(16, round(_SIDE * opened.height / opened.width))
            greys.append(np.asarray(opened.convert("L").resize(size, Image.Resampling.BOX), dtype=np.uint8))
    return greys

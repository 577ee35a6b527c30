"""How far things move from one picture to another, and what moving does not explain."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Motion", "moved"]

Table = NDArray[np.float64]
Motion = tuple[Table, Table]

_SIDE = 128


def moved(jpegs: Sequence[bytes]) -> Motion:
    """Two tables, n × n, symmetric, from 0: the mean length of the optical flow from picture to picture, in widths; and
    the mean difference in brightness (0 to 1) that is left once one is moved by the flow onto the other.

    Dense flow by inverse search (Kroeger and others 2016, ECCV) on pictures of 128 points width, once for each pair:
    from the picture whose points come first as bytes, so that the order in which pictures are given changes nothing.
    Pictures of another shape are stretched to that of the first.
    """
    import cv2

    greys = _greys(jpegs)
    far, left = np.zeros((len(greys), len(greys))), np.zeros((len(greys), len(greys)))
    finder = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    high, wide = greys[0].shape if greys else (0, 0)
    rows, columns = np.mgrid[:high, :wide].astype(np.float32)
    ranked = sorted(range(len(greys)), key=lambda place: greys[place].tobytes())
    for one, other in combinations(ranked, 2):
        here, there = greys[one], greys[other]
        flow = finder.calc(here, there, np.zeros((high, wide, 2), np.float32))
        back = cv2.remap(
            there,
            columns + flow[..., 0],
            rows + flow[..., 1],
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        far[one, other] = float(np.hypot(flow[..., 0], flow[..., 1]).mean()) / wide
        left[one, other] = float(cv2.absdiff(back, here).mean()) / 255
    return far + far.T, left + left.T


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

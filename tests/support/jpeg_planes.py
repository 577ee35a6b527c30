"""A JPEG's own three planes, and the blocks in which an encoder works: nothing is interpolated in them."""

from __future__ import annotations

import io

import av
import numpy as np
from numpy.typing import NDArray

Planes = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]
Mask = NDArray[np.bool_]

BLOCK = 8
"""Samples on a side of a block; one of colour lies under 16 pixels, as colour has half the resolution both ways."""


def planes_of(jpeg: bytes) -> Planes:
    """Brightness (one sample for a pixel) and two of colour (one for two by two), as FFmpeg decodes them."""
    with av.open(io.BytesIO(jpeg), "r", format="mjpeg") as container:
        (frame,) = list(container.decode(video=0))
    assert frame.format.name == "yuvj420p"
    found = [
        np.frombuffer(bytes(plane), dtype=np.uint8).reshape(-1, plane.line_size)[: plane.height, : plane.width]
        for plane in frame.planes
    ]
    return found[0], found[1], found[2]


def touched(hidden: Mask, side: int) -> Mask:
    """The pixels in a block of this many pixels a side of which a pixel is hidden."""
    high, wide = hidden.shape
    padded = np.pad(hidden, ((0, -high % side), (0, -wide % side)))
    blocks = padded.reshape(padded.shape[0] // side, side, -1, side).any(axis=(1, 3))
    return blocks.repeat(side, axis=0).repeat(side, axis=1)[:high, :wide]


def covered(hidden: Mask, side: int) -> Mask:
    """The pixels in a block of which all pixels (of the picture) are hidden."""
    return ~touched(~hidden, side)


def assert_same_but_for(hidden: Mask, before: bytes, after: bytes) -> None:
    """In no block without a hidden pixel is any sample another one, and blocks that are hidden as a whole are black."""
    for number, (one, other) in enumerate(zip(planes_of(before), planes_of(after), strict=True)):
        side, step = (BLOCK, 1) if number == 0 else (2 * BLOCK, 2)
        free, black = ~touched(hidden, side)[::step, ::step], covered(hidden, side)[::step, ::step]
        assert (one[free] == other[free]).all()
        assert (other[black] == (0 if number == 0 else 128)).all()

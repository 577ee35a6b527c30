"""Still pictures: a view that shows them, and drawn ones of a moving bar."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from proctor.core import Frame
from proctor.testing import PictureView


class Shown(PictureView):
    """A view of still pictures."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        super().__init__(frames, "video")


def picture(step: int, spots: int = 0) -> bytes:
    """A bright bar that moves to the right with every step, and some spots below it."""
    points = np.zeros((64, 96, 3), dtype=np.uint8)
    points[8:30, 6 * step : 6 * step + 40] = (200, 120, 40)
    for spot in range(spots):
        points[44:56, 4 + 14 * spot : 10 + 14 * spot] = (40, 200, 220)
    out = io.BytesIO()
    Image.fromarray(points).save(out, "JPEG", quality=95)
    return out.getvalue()

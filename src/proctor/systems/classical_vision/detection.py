"""What one picture shows: regions of known colour, cleaned and measured."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOOKS", "Detection", "Look", "Picture", "detect"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Look:
    """How the pixels of a class look, as ranges (both ends included) of hue in degrees, saturation and value 0–1.

    `area` is the least size of a region, as a share of the picture's height squared; `join` is over which
    gap (share of the height) pieces still belong together.
    """

    hue: tuple[float, float]
    saturation: tuple[float, float]
    value: tuple[float, float]
    area: float
    join: float


LOOKS: dict[str, Look] = {
    "clip": Look(hue=(190, 232), saturation=(0.16, 0.56), value=(0.34, 1.0), area=0.0010, join=0.02),
    "gallstone": Look(hue=(28, 54), saturation=(0.62, 1.0), value=(0.2, 1.0), area=0.0022, join=0.025),
    "needle": Look(hue=(258, 312), saturation=(0.4, 1.0), value=(0.2, 1.0), area=0.0009, join=0.03),
    "specimen bag": Look(hue=(124, 170), saturation=(0.26, 1.0), value=(0.16, 1.0), area=0.0075, join=0.04),
    "sponge": Look(hue=(0, 360), saturation=(0.0, 0.14), value=(0.47, 1.0), area=0.0070, join=0.045),
}
"""The published table of looks: blue-silver, ochre, violet (the needle's suture), green, white."""


@dataclass(frozen=True)
class Detection:
    """One region: its class, its centre, size and box (left, top, right, bottom) as fractions of the picture."""

    class_name: str
    x: float
    y: float
    area: float
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Picture:
    """What was found in one picture; `blank` where nothing at all can be seen."""

    detections: tuple[Detection, ...]
    blank: bool
    aspect: float


def detect(jpeg: bytes) -> Picture:
    """Decodes a JPEG and finds the regions of every class in `LOOKS`."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as image:
        rgb = image.convert("RGB")
    hue, saturation, value = (np.asarray(band) for band in rgb.convert("HSV").split())
    aspect = rgb.width / rgb.height
    if int(value.max()) < 24:
        return Picture((), True, aspect)
    found: list[Detection] = []
    white = np.zeros(value.shape, dtype=bool)
    for name in sorted(LOOKS, key=lambda name: -LOOKS[name].area):
        look = LOOKS[name]
        mask = (
            _within(hue, look.hue, 360)
            & _within(saturation, look.saturation, 1)
            & _within(value, look.value, 1)
        )
        regions, kept = _regions(name, look, mask & ~white)
        found += regions
        if name == "sponge" and regions:
            white = _grown(kept, round(0.03 * value.shape[0]))  # its blue thread is no clip
    return Picture(tuple(found), False, aspect)


def _within(band: NDArray[np.uint8], bounds: tuple[float, float], full: float) -> Mask:
    low, high = (bound / full * 255 for bound in bounds)
    return np.asarray((band >= low) & (band <= high))


def _grown(mask: Mask, by: int) -> Mask:
    from scipy import ndimage

    size = 2 * max(1, by) + 1
    return np.asarray(ndimage.maximum_filter(mask.view(np.uint8), size=size) > 0)


def _regions(name: str, look: Look, mask: Mask) -> tuple[list[Detection], Mask]:
    """The connected regions that are large enough, and their pixels. Thin lines of light are no sponge."""
    from scipy import ndimage

    height, width = mask.shape
    least = look.area * height * height
    if int(mask.sum()) < least:
        return [], mask
    if look.area > 0.005:
        mask = np.asarray(ndimage.binary_opening(mask, np.ones((3, 3), dtype=bool)))
    labels, _ = ndimage.label(_grown(mask, round(look.join * height / 2)))
    labels[~mask] = 0
    kept = np.zeros_like(mask)
    found = []
    for label, window in enumerate(ndimage.find_objects(labels), start=1):
        inside = labels[window] == label
        area = int(inside.sum())
        if area < least:
            continue
        kept[window] |= inside
        rows, columns = np.nonzero(inside)
        top, left = window[0].start, window[1].start
        box = (left / width, top / height, window[1].stop / width, window[0].stop / height)
        found.append(
            Detection(
                name,
                (left + float(columns.mean()) + 0.5) / width,
                (top + float(rows.mean()) + 0.5) / height,
                area / height**2,
                box,
            )
        )
    return found, kept

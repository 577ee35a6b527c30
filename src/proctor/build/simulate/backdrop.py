"""The tissue behind everything: a seeded canvas, larger than the picture, over which the camera drifts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter
from scipy import ndimage

__all__ = ["FINE", "smooth_noise", "tissue"]

Floats = NDArray[np.float32]

FINE = 2
"""The canvas has this many pixels per pixel of the picture, so that drift is smoother than one pixel."""

_DARK = np.array([96, 22, 24], dtype=np.float32)
_LIGHT = np.array([206, 98, 88], dtype=np.float32)
_FAT = np.array([226, 168, 128], dtype=np.float32)
_ORGAN = np.array([112, 42, 38], dtype=np.float32)


def smooth_noise(shape: tuple[int, int], cell: float, rng: np.random.Generator) -> Floats:
    """Noise from 0 to 1 of this (height, width) that changes over about `cell` pixels.

    Random numbers on a coarse grid, interpolated by cubic convolution (Keys 1981, a = −1/2) as two products
    of matrices, one for the rows and one for the columns.
    """
    down, across = (_weights(side, cell) for side in shape)
    coarse = rng.uniform(0, 1, (down.shape[1], across.shape[1])).astype(np.float32)
    return np.clip(down @ coarse @ across.T, 0, 1)


def _weights(side: int, cell: float) -> Floats:
    """How much each point of the coarse grid counts at each of `side` pixels."""
    places = np.arange(side) / cell + 1
    grid = np.arange(int(places[-1]) + 3)
    far = np.abs(places[:, None] - grid[None, :])
    near = (1.5 * far - 2.5) * far**2 + 1
    beyond = ((-0.5 * far + 2.5) * far - 4) * far + 2
    return np.where(far < 1, near, np.where(far < 2, beyond, 0)).astype(np.float32)


def tissue(shape: tuple[int, int], pixels_per_unit: float, rng: np.random.Generator) -> Floats:
    """A canvas (height, width, 3), 0–255: peritoneum with folds, fat, vessels and wet highlights.

    `pixels_per_unit` is the scale of the canvas against a picture 216 pixels high.
    """
    unit = pixels_per_unit
    folds = sum(
        weight * smooth_noise(shape, cell * unit, rng)
        for cell, weight in ((110, 0.55), (46, 0.29), (20, 0.12), (8, 0.04))
    )
    height = np.asarray(folds, dtype=np.float32)
    colour = _DARK + (_LIGHT - _DARK) * np.clip((height - 0.22) / 0.55, 0, 1)[..., None]
    lobules = smooth_noise(shape, 8 * unit, rng)
    fat = np.clip((smooth_noise(shape, 70 * unit, rng) - 0.63) * 6, 0, 1) * (0.55 + 0.4 * lobules)
    colour += (_FAT - colour) * (0.8 * fat)[..., None]
    colour *= 1 - 0.6 * _vessels(shape, unit, rng)[..., None] * np.array([0.4, 1, 0.9], dtype=np.float32)
    organ = _organ(shape, unit, rng)
    colour += (_ORGAN * (0.8 + 0.4 * height[..., None]) - colour) * organ[..., None]
    relief = (height * 46 + lobules * fat * 5) * (1 - 0.7 * organ) + organ * 7
    down, across = np.gradient(ndimage.gaussian_filter(relief * unit, 1.4 * unit))
    light = np.clip(1 - 0.5 * across - 0.7 * down, 0.45, 1.45).astype(np.float32)
    colour *= light[..., None]
    gleam = smooth_noise(shape, 4 * unit, rng) * np.clip(light - 1.1, 0, 1) * 3
    shine = np.clip(gleam - 0.3, 0, 0.7)[..., None]
    colour += (np.array([255, 226, 216], dtype=np.float32) - colour) * shine
    return np.asarray(np.clip(colour, 0, 255), dtype=np.float32)


def _organ(shape: tuple[int, int], unit: float, rng: np.random.Generator) -> Floats:
    """Where a smooth dark lobe, as of a liver, reaches in from one edge: 0–1."""
    down, across = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float32)
    turn = float(rng.uniform(0, 2 * np.pi))
    middle = np.hypot(*shape) / 2
    depth = (across - shape[1] / 2) * np.cos(turn) + (down - shape[0] / 2) * np.sin(turn)
    wobble = (smooth_noise(shape, 80 * unit, rng) - 0.5) * 60 * unit
    return np.asarray(np.clip((depth + wobble - 0.28 * middle) / (3 * unit) + 0.5, 0, 1), dtype=np.float32)


def _vessels(shape: tuple[int, int], unit: float, rng: np.random.Generator) -> Floats:
    """Branching dark lines, 0–1."""
    image = Image.new("L", (shape[1], shape[0]))
    pen = ImageDraw.Draw(image)
    starts = [
        (float(rng.uniform(0, shape[1])), float(rng.uniform(0, shape[0])), 3.6 * unit) for _ in range(5)
    ]
    for _ in range(16):
        if not starts:
            break
        x, y, width = starts.pop(0)
        heading = float(rng.uniform(0, 2 * np.pi))
        path = [(x, y)]
        for _ in range(int(rng.integers(10, 22))):
            heading += float(rng.normal(0, 0.28))
            x, y = x + 9 * unit * float(np.cos(heading)), y + 9 * unit * float(np.sin(heading))
            path.append((x, y))
            if width > 1.6 * unit and rng.random() < 0.1:
                starts.append((x, y, width * 0.6))
        pen.line(path, fill=200, width=max(1, round(width)), joint="curve")
    blurred = image.filter(ImageFilter.GaussianBlur(1.1 * unit))
    return np.asarray(blurred, dtype=np.float32) / np.float32(255)

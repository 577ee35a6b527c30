"""The pictures, clips and sounds of a sight test: drawn, so that the right answer to each question is known.

Digits are drawn with the font that Pillow brings along. Nothing here depends on a file of the machine.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

COLOURS = {"red": (214, 30, 30), "green": (20, 150, 50), "blue": (30, 70, 220), "yellow": (245, 205, 20)}
"""The colours of discs by their names."""

CORNERS = {
    "at the top left": (0.22, 0.25),
    "at the top right": (0.78, 0.25),
    "at the bottom left": (0.22, 0.75),
    "at the bottom right": (0.78, 0.75),
}
"""Where a disc is, as shares of width and height."""

WAYS = {"to the left": (-1, 0), "to the right": (1, 0), "up": (0, -1), "down": (0, 1)}
"""The ways in which a disc moves."""

RUNGS = (64, 48, 36, 27, 20, 15, 11, 8)
"""The heights of digits on an acuity ladder, in pixels, largest first: each is about three quarters of the one before."""

STILL, FRAME, SMALL = (512, 384), (512, 288), (96, 72)
"""Sizes of still pictures, of frames, and of the small picture that nothing has to shrink, in pixels."""

_INK = (16, 16, 16)
_PAPER = (238, 238, 234)
_RATE = 16_000


def number(value: int, size: tuple[int, int] = STILL, height: float = 0, paper: tuple[int, int, int] = _PAPER) -> Image:
    """A number in the middle of a picture, its digits `height` pixels high (0: a third of the picture)."""
    picture = _sheet(size, paper)
    _write(picture, str(value), (size[0] / 2, size[1] / 2), height or size[1] / 3)
    return picture


def small_number(value: int, height: float) -> Image:
    """A number on the small picture, drawn in four times the size and made smaller: fine digits as a camera gives them, which
    are easier to read than those of a font in that size."""
    from PIL.Image import Resampling

    width, down = SMALL
    return number(value, (4 * width, 4 * down), 4 * height).resize(SMALL, Resampling.BOX)


def rungs_in(height: int) -> tuple[int, ...]:
    """The rungs that fit into a picture of this height, the smallest always among them.

    >>> rungs_in(384) == RUNGS, rungs_in(144)
    (True, (36, 27, 20, 15, 11, 8))
    """
    return next((RUNGS[k:] for k in range(len(RUNGS)) if sum(RUNGS[k:]) * 1.2 <= height), RUNGS[-1:])


def ladder(values: Sequence[int], size: tuple[int, int]) -> Image:
    """One number in each line, from large to small: the digits are as high as the rungs that fit (`rungs_in`)."""
    picture, heights = _sheet(size), rungs_in(size[1])
    gap = (size[1] - sum(heights)) / (len(heights) + 1)
    top = gap
    for value, height in zip(values, heights, strict=True):
        _write(picture, str(value), (size[0] / 2, top + height / 2), height)
        top += height + gap
    return picture


def disc(colour: str, at: tuple[float, float] = (0.5, 0.5), size: tuple[int, int] = STILL) -> Image:
    """One disc; `at` is its centre as shares of width and height."""
    return discs([(colour, at, 0.17)], size)


def discs(given: Sequence[tuple[str, tuple[float, float], float]], size: tuple[int, int] = STILL) -> Image:
    """Several discs: colour, centre and radius (a share of the height) of each."""
    from PIL.ImageDraw import Draw

    picture = _sheet(size)
    draw = Draw(picture)
    for colour, (x, y), radius in given:
        across, down, wide = x * size[0], y * size[1], radius * size[1]
        draw.ellipse((across - wide, down - wide, across + wide, down + wide), fill=COLOURS[colour])
    return picture


def moving(way: str, steps: int, size: tuple[int, int] = FRAME) -> list[Image]:
    """A disc that moves from one side to the other, in this many pictures."""
    across, down = WAYS[way]
    shares = np.linspace(-0.3, 0.3, steps)
    return [disc("blue", (0.5 + across * float(at), 0.5 + down * float(at)), size) for at in shares]


def tones(count: int) -> bytes:
    """A WAV with this many tones of 0.4 s, with 0.4 s of silence before each and after the last."""
    quiet = np.zeros(int(0.4 * _RATE))
    at = np.arange(len(quiet)) / _RATE
    tone = 0.5 * np.sin(2 * np.pi * 440 * at) * np.minimum(1, np.minimum(at, at[::-1]) / 0.02)
    samples = np.concatenate([*(part for _ in range(count) for part in (quiet, tone)), quiet])
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
    return out.getvalue()


def jpeg(picture: Image) -> bytes:
    """The picture as a JPEG of high quality, to be made into a video."""
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=95)
    return out.getvalue()


def _sheet(size: tuple[int, int], paper: tuple[int, int, int] = _PAPER) -> Image:
    from PIL import Image

    return Image.new("RGB", size, paper)


def _write(picture: Image, text: str, middle: tuple[float, float], height: float) -> None:
    from PIL.ImageDraw import Draw

    font = _font(round(height, 1))
    left, top, right, bottom = font.getbbox(text)
    corner = middle[0] - (left + right) / 2, middle[1] - (top + bottom) / 2
    Draw(picture).text(corner, text, fill=_INK, font=font)


@lru_cache(maxsize=64)
def _font(height: float) -> FreeTypeFont | ImageFont:
    """The font in the size in which digits are `height` pixels high."""
    from PIL.ImageFont import load_default

    _, top, _, bottom = load_default(100.0).getbbox("8")
    return load_default(100.0 * height / (bottom - top))

"""Pictures of a moving scene at two a second, with or without a line of text laid over them."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from PIL.ImageFont import load_default

from proctor.media.decode import SampledPicture
from proctor.tasks.simulated.pictures import tissue

Pixels = NDArray[np.uint8]
LABELS = (
    "PATIENT 4711", "Liver, sagittal", "Depth 12 cm", "12:45:03 2024-03-01", "Dr. Miller", "University Hospital",
    "MI 1.2 TIS 0.4", "Gallbladder", "Smith John", "Probe C5-1",
)  # fmt: skip


def moving_tissue(
    seed: int, seconds: float = 6.0, size: tuple[int, int] = (480, 270), fps: float = 2.0
) -> list[Pixels]:
    """A made tissue under a camera that drifts, recompressed as a video's pictures are."""
    rng = np.random.default_rng(seed)
    width, height = size
    canvas = tissue((height + 160, width + 160), height / 216, rng)
    at, pictures = np.array([80.0, 80.0]), []
    for _ in range(round(seconds * fps)):
        at = np.clip(at + rng.normal(0, 9, 2), 0, 159)
        top, left = at.astype(int)
        pictures.append(recompressed(canvas[top : top + height, left : left + width].astype(np.uint8)))
    return pictures


@dataclass(frozen=True)
class LaidText:
    """A line of text: its height as a share of the picture's, how many levels of grey it differs from what lies below,
    its position (left and top, as shares of what is free), and from when to when."""

    text: str
    height: float
    contrast: float
    position: tuple[float, float]
    start: float
    end: float


def with_text(pictures: list[Pixels], laid: LaidText, fps: float = 2.0) -> tuple[list[Pixels], tuple[float, ...]]:
    """The pictures with the text, and its box: left, top, right, bottom as shares of the picture."""
    height, width = pictures[0].shape[:2]
    font = load_default(max(6, round(laid.height * height)))
    _, _, right, bottom = ImageDraw.Draw(Image.new("L", (8, 8))).textbbox((1, 1), laid.text, font=font)
    mask = Image.new("L", (int(right) + 2, int(bottom) + 2))
    ImageDraw.Draw(mask).text((1, 1), laid.text, fill=255, font=font)
    share = np.asarray(mask)[:, : width - 2, None] / 255
    high, wide = share.shape[:2]
    left, top = round(laid.position[0] * (width - wide)), round(laid.position[1] * (height - high))
    shown = list(pictures)
    level: float | None = None
    for k in range(round(laid.start * fps), min(len(pictures), round(laid.end * fps))):
        picture = pictures[k].astype(float)
        part = picture[top : top + high, left : left + wide]
        if level is None:
            level = part.mean() + (laid.contrast if part.mean() < 128 else -laid.contrast)
        part[:] = part * (1 - share) + np.clip(level, 0, 255) * share
        shown[k] = recompressed(picture.round().astype(np.uint8))
    return shown, (left / width, top / height, (left + wide) / width, (top + high) / height)


def recompressed(pixels: Pixels, quality: int = 75) -> Pixels:
    """As a codec leaves them."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=quality)
    with Image.open(out) as opened:
        return np.asarray(opened)


def sampled_at(pictures: list[Pixels], fps: float = 2.0) -> list[SampledPicture]:
    """With their times."""
    return [SampledPicture(k / fps, one) for k, one in enumerate(pictures)]

"""Made pictures of what an endoscope sees when it is not in a body: walls, drapes, skin, lamps, screens, a trocar, a
dark room; and of tissue as other cameras show it, so that colour alone does not tell the two apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from proctor.tasks.simulated.pictures import smooth_noise, tissue
from tests.support.labelled_pictures import recompressed

Pixels = NDArray[np.uint8]
_PAINTS = [
    (205, 210, 208),
    (96, 148, 170),
    (70, 128, 110),
    (150, 152, 158),
    (188, 170, 140),
    (60, 66, 80),
    (176, 96, 92),
]
_SKIN = [(232, 186, 160), (190, 138, 108), (120, 78, 58)]
ROOMS = ("room", "drape", "face", "lamp", "screen", "trocar", "dark", "red drape")


def room(kind: str, size: tuple[int, int], rng: np.random.Generator) -> Pixels:
    """One made picture (width, height) of a kind of `ROOMS`."""
    width, height = size
    if kind in {"drape", "red drape"}:
        return _drape(size, rng, (150, 52, 48) if kind == "red drape" else None)
    image = Image.new("RGB", size, _paint(rng))
    pen = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(5, 16))):
        x, y = int(rng.integers(-width // 4, width)), int(rng.integers(-height // 4, height))
        wide, high = rng.integers(width // 16, width // 2), rng.integers(height // 16, height // 2)
        pen.rectangle((int(x), int(y), int(x + wide), int(y + high)), fill=_paint(rng), outline=_paint(rng))
    if kind == "face":
        _face(pen, size, rng)
    if kind == "lamp":
        for _ in range(int(rng.integers(2, 6))):
            x, y, r = (int(rng.integers(*ends)) for ends in ((0, width), (0, height), (height // 12, height // 4)))
            pen.ellipse((x - r, y - r, x + r, y + r), fill=(255, 255, int(rng.integers(225, 256))))
    if kind == "screen":
        for k in range(6):
            pen.text((width // 8, height // 8 + k * height // 9), f"HR {rng.integers(50, 99)}", fill=(90, 230, 120))
    picture = np.asarray(image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.4, 2.5)))), dtype=np.float32)
    if kind == "trocar":
        down, across = np.mgrid[0:height, 0:width]
        far = np.hypot(across - width * rng.uniform(0.4, 0.6), down - height * rng.uniform(0.4, 0.6)) / height
        hole = rng.uniform(0.15, 0.3)
        inner = tissue((height, width), height / 216, rng) * 0.7
        steel = np.repeat(170 * np.abs(np.sin(far * 40))[..., None], 3, axis=2)
        picture = np.where((far < hole)[..., None], inner, steel * np.exp(-2 * far)[..., None]).astype(np.float32)
    shade = 0.75 + 0.5 * smooth_noise((height, width), width / 2, rng)[..., None]
    return _shot(picture * shade * (0.12 if kind == "dark" else 1.0), rng)


def body(size: tuple[int, int], rng: np.random.Generator) -> Pixels:
    """One made picture of tissue, with the endoscope's fall-off, another white balance and brightness each time, and
    often an instrument of steel or a white swab."""
    width, height = size
    picture = tissue((height, width), height / 216 * rng.uniform(0.7, 1.5), rng)
    image = Image.fromarray(picture.astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(0, 3))):
        x, y = int(rng.integers(0, width)), int(rng.integers(height // 3, height))
        pen.line((x, y, int(x + rng.normal(0, width / 3)), height + 40), fill=(140, 142, 146), width=int(height / 14))
    if rng.random() < 0.3:
        x, y = int(rng.integers(0, width - 40)), int(rng.integers(0, height - 30))
        pen.rectangle((x, y, x + width // 4, y + height // 4), fill=(222, 218, 210))
    down, across = np.mgrid[0:height, 0:width].astype(np.float32)
    far = np.hypot((across - width / 2) / width, (down - height / 2) / width) / 0.57
    return _shot(np.asarray(image, dtype=np.float32) * (1.15 - 0.6 * far**2.2)[..., None], rng)


@dataclass(frozen=True)
class LabelledLooks:
    """Pictures of several made videos: each video has its own camera, one kind of room (or several), one body."""

    pictures: list[Pixels]
    outside: NDArray[np.bool_]
    groups: list[str]


def made_videos(count: int, per_video: int, seed: int, size: tuple[int, int] = (160, 90)) -> LabelledLooks:
    """`count` videos with about as many pictures of a body as of rooms; rooms of a video are of two kinds."""
    rng = np.random.default_rng(seed)
    pictures, outside, groups = [], [], []
    for number in range(count):
        kinds = [ROOMS[int(k)] for k in rng.choice(len(ROOMS), 2, replace=False)]
        balance = rng.uniform(0.85, 1.15, 3)
        for k in range(per_video):
            out = k % 2 == 0
            one = room(kinds[k // 2 % 2], size, rng) if out else body(size, rng)
            pictures.append(np.clip(one * balance, 0, 255).astype(np.uint8))
            outside.append(out)
            groups.append(f"v{seed}-{number}")
    return LabelledLooks(pictures, np.array(outside), groups)


def _paint(rng: np.random.Generator) -> tuple[int, int, int]:
    red, green, blue = np.clip(
        np.array(_PAINTS[int(rng.integers(len(_PAINTS)))]) + rng.normal(0, 14, 3), 0, 255
    ).astype(int)
    return int(red), int(green), int(blue)


def _face(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    width, height = size
    for _ in range(int(rng.integers(1, 4))):
        x, y, r = rng.integers(0, width), rng.integers(0, height), int(rng.integers(height // 6, height // 2))
        skin = _SKIN[int(rng.integers(len(_SKIN)))]
        pen.ellipse((int(x - 0.75 * r), int(y - r), int(x + 0.75 * r), int(y + r)), fill=skin)
        for side in (-0.3, 0.3):
            pen.ellipse(
                (int(x + side * r - 3), int(y - 0.2 * r), int(x + side * r + 3), int(y - 0.2 * r + 5)),
                fill=(40, 30, 30),
            )


def _drape(size: tuple[int, int], rng: np.random.Generator, paint: tuple[int, int, int] | None) -> Pixels:
    width, height = size
    folds = smooth_noise((height, width), width / 6, rng) + 0.4 * smooth_noise((height, width), width / 20, rng)
    colour = np.array(paint or ((70, 128, 150) if rng.random() < 0.5 else (66, 120, 100)), dtype=np.float32)
    weave = 1 + 0.05 * np.sin(np.arange(width) * 1.3)[None, :, None]
    return _shot(colour * (0.5 + 0.7 * folds[..., None]) * weave, rng)


def _shot(picture: NDArray[Any], rng: np.random.Generator) -> Pixels:
    """As a camera gives it: gain, colour cast, noise, compression."""
    cast = rng.uniform(0.7, 1.2) * rng.uniform(0.92, 1.08, 3)
    noisy = picture * cast + rng.normal(0, 3.0, picture.shape)
    return recompressed(np.clip(noisy, 0, 255).astype(np.uint8))

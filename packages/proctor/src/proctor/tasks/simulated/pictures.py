"""Render frames of simulated procedures: sprites from shapes and noise, and scenes from their state."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter
from scipy import ndimage

from proctor.core import generator
from proctor.tasks.simulated.script import Cover, LocatedObject, Scene, Script, Tool
from proctor.tracks import AnnotatedBox

Floats = NDArray[np.float32]

FINE = 2
"""Pixels of the canvas per pixel of the frame, so that drift is smoother than one pixel."""

_DARK = np.array([96, 22, 24], dtype=np.float32)
_LIGHT = np.array([206, 98, 88], dtype=np.float32)
_FAT = np.array([226, 168, 128], dtype=np.float32)
_ORGAN = np.array([112, 42, 38], dtype=np.float32)


def smooth_noise(shape: tuple[int, int], cell: float, rng: np.random.Generator) -> Floats:
    """Noise from 0 to 1 of shape (height, width) that varies over about `cell` pixels.

    Random numbers on a coarse grid, interpolated by cubic convolution (Keys 1981, a = −1/2) as a matrix product for
    the rows and one for the columns.
    """
    down, across = (_weights(side, cell) for side in shape)
    coarse = rng.uniform(0, 1, (down.shape[1], across.shape[1])).astype(np.float32)
    return np.clip(down @ coarse @ across.T, 0, 1)


def _weights(side: int, cell: float) -> Floats:
    """The weight of each point of the coarse grid at each of `side` pixels."""
    positions = np.arange(side) / cell + 1
    grid = np.arange(int(positions[-1]) + 3)
    far = np.abs(positions[:, None] - grid[None, :])
    near = (1.5 * far - 2.5) * far**2 + 1
    beyond = ((-0.5 * far + 2.5) * far - 4) * far + 2
    return np.where(far < 1, near, np.where(far < 2, beyond, 0)).astype(np.float32)


def tissue(shape: tuple[int, int], pixels_per_unit: float, rng: np.random.Generator) -> Floats:
    """A canvas (height, width, 3), 0–255: peritoneum with folds, fat, vessels and wet highlights.

    `pixels_per_unit` is the scale of the canvas relative to a frame 216 pixels high.
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
    """The mask (0–1) of a smooth dark lobe, as of a liver, at one edge."""
    down, across = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float32)
    turn = float(rng.uniform(0, 2 * np.pi))
    middle = np.hypot(*shape) / 2
    depth = (across - shape[1] / 2) * np.cos(turn) + (down - shape[0] / 2) * np.sin(turn)
    wobble = (smooth_noise(shape, 80 * unit, rng) - 0.5) * 60 * unit
    return np.asarray(np.clip((depth + wobble - 0.28 * middle) / (3 * unit) + 0.5, 0, 1), dtype=np.float32)


def _vessels(shape: tuple[int, int], unit: float, rng: np.random.Generator) -> Floats:
    image = Image.new("L", (shape[1], shape[0]))
    pen = ImageDraw.Draw(image)
    starts = [(float(rng.uniform(0, shape[1])), float(rng.uniform(0, shape[0])), 3.6 * unit) for _ in range(5)]
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


_FINE = 6  # shapes are drawn this many times larger and then reduced, for smooth edges


@dataclass(frozen=True)
class Sprite:
    """An image to lay over the scene: colour 0–255 (height, width, 3), opacity and shadow 0–1 (height, width)."""

    colour: Floats
    opacity: Floats
    shadow: Floats

    @property
    def solid(self) -> NDArray[np.bool_]:
        """The pixels with an opacity above ½."""
        return np.asarray(self.opacity > 0.5)

    @property
    def area(self) -> int:
        """The number of solid pixels."""
        return int(self.solid.sum())


@dataclass(frozen=True)
class ObjectClass:
    """A class of foreign objects.

    `phrase` is its name in questions: phrases are equally long and describe the appearance, so that none stands out.
    `size` is its larger extent in pixels of a frame 216 pixels high.
    """

    name: str
    phrase: str
    size: float
    draw: Callable[[int, np.random.Generator], Image.Image]


def sprite(kind: ObjectClass, pixels_per_unit: float, rng: np.random.Generator) -> Sprite:
    """The sprite of one instance, with shape, marks and angle from `rng`."""
    size = kind.size * pixels_per_unit * float(rng.uniform(0.94, 1.06))
    fine = max(24, round(size * _FINE))
    drawn = kind.draw(fine, rng)
    side = math.ceil(fine * 1.5)
    canvas = Image.new("RGBA", (side, side))
    canvas.paste(drawn, ((side - fine) // 2, (side - fine) // 2))
    turned = canvas.rotate(float(rng.uniform(-35, 35)), Image.Resampling.BILINEAR)
    small = max(8, round(side / _FINE))
    pixels = np.asarray(turned.resize((small, small), Image.Resampling.BOX), dtype=np.float32)
    flat = Image.fromarray(pixels[..., 3].astype(np.uint8))
    shadow = np.asarray(flat.filter(ImageFilter.GaussianBlur(2.2 * pixels_per_unit)), dtype=np.float32)
    return Sprite(pixels[..., :3], pixels[..., 3] / np.float32(255), shadow / np.float32(255))


def _blob(
    size: int, rng: np.random.Generator, *, radii: tuple[float, float], rough: float
) -> list[tuple[float, float]]:
    """The outline of an irregular ellipse in the middle of a square."""
    angles = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    wobble = sum(
        rng.normal(0, rough / order) * np.cos(order * angles + rng.uniform(0, 2 * np.pi)) for order in (2, 3, 4, 5)
    )
    across = size * radii[0] * (1 + wobble) * np.cos(angles)
    down = size * radii[1] * (1 + wobble) * np.sin(angles)
    return [(size / 2 + float(x), size / 2 + float(y)) for x, y in zip(across, down, strict=True)]


def _mottled(image: Image.Image, rng: np.random.Generator, *, grain: int, strength: float) -> Image.Image:
    """Multiplies the colours by smooth noise, so that no surface is flat."""
    cells = max(3, image.width // grain)
    noise = Image.fromarray(rng.uniform(0, 255, (cells, cells)).astype(np.uint8))
    field = np.asarray(noise.resize(image.size, Image.Resampling.BICUBIC), dtype=np.float32) / 255
    pixels = np.asarray(image, dtype=np.float32).copy()
    pixels[..., :3] *= (1 - strength + 2 * strength * field)[..., None]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _sponge(size: int, rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGBA", (size, size))
    pen = ImageDraw.Draw(image)
    corners = [
        (0.08, 0.2),
        (0.5, 0.16),
        (0.93, 0.22),
        (0.95, 0.55),
        (0.9, 0.82),
        (0.45, 0.85),
        (0.07, 0.8),
        (0.04, 0.5),
    ]
    outline = [(size * (x + float(rng.normal(0, 0.015))), size * (y + float(rng.normal(0, 0.02)))) for x, y in corners]
    pen.polygon(outline, fill=(236, 236, 229, 255))
    weave = max(3, size // 22)
    for offset in range(0, size, weave):
        pen.line([(offset, 0), (offset, size)], fill=(214, 214, 208, 255), width=max(1, weave // 3))
        pen.line([(0, offset), (size, offset)], fill=(221, 221, 214, 255), width=max(1, weave // 3))
    thread = size * float(rng.uniform(0.4, 0.6))
    pen.line(
        [(0, thread), (size * 0.35, thread + size * 0.04), (size * 0.7, thread - size * 0.03), (size, thread)],
        fill=(38, 92, 190, 255),
        width=size // 13,
    )
    mask = Image.new("L", (size, size))
    ImageDraw.Draw(mask).polygon(outline, fill=255)
    image.putalpha(mask)
    return _mottled(image, rng, grain=size // 4, strength=0.07)


def _clip(size: int, rng: np.random.Generator) -> Image.Image:
    """A silvery clip: two legs from one bend, cold in its shine where tissue is warm."""
    image = Image.new("RGBA", (size, size))
    pen = ImageDraw.Draw(image)
    spread = size * float(rng.uniform(0.17, 0.22))
    bend = (size * 0.12, size * 0.5)
    for side in (-1, 1):
        leg = [bend, (size * 0.3, size * 0.5 + side * spread), (size * 0.92, size * 0.5 + side * spread * 1.15)]
        pen.line(leg, fill=(96, 134, 178, 255), width=size // 4, joint="curve")
    for side in (-1, 1):
        leg = [bend, (size * 0.3, size * 0.5 + side * spread), (size * 0.9, size * 0.5 + side * spread * 1.15)]
        pen.line(leg, fill=(158, 198, 242, 255), width=size // 6, joint="curve")
        shine = [(size * 0.4, leg[1][1] - size * 0.03), (size * 0.8, leg[2][1] - size * 0.03)]
        pen.line(shine, fill=(214, 232, 250, 255), width=max(1, size // 20))
    return image


def _needle(size: int, rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGBA", (size, size))
    pen = ImageDraw.Draw(image)
    box = (size * 0.08, size * 0.08, size * 0.74, size * 0.74)
    pen.arc(box, 150, 350, fill=(120, 124, 134, 255), width=size // 10)
    pen.arc(box, 152, 348, fill=(222, 226, 232, 255), width=size // 18)
    start = (size * 0.735, size * 0.36)
    swing = float(rng.uniform(0.05, 0.1))
    positions = np.linspace(0, 1, 24)
    tail = [
        (
            start[0] + size * (-0.42 * p + swing * math.sin(p * 7.5) + 0.12 * math.sin(p * 3.1)),
            start[1] + size * (0.56 * p),
        )
        for p in positions.tolist()
    ]
    pen.line(tail, fill=(104, 36, 150, 255), width=size // 8, joint="curve")
    pen.line(tail, fill=(150, 70, 214, 255), width=size // 12, joint="curve")
    return image


def _bag(size: int, rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGBA", (size, size))
    pen = ImageDraw.Draw(image)
    pouch = [(x, size * 0.06 + y * 0.94) for x, y in _blob(size, rng, radii=(0.43, 0.46), rough=0.03)]
    pen.polygon(pouch, fill=(58, 172, 108, 205))
    for _ in range(5):
        x = size * float(rng.uniform(0.3, 0.7))
        fold = [(x, size * 0.3), (x + size * float(rng.normal(0, 0.05)), size * 0.8)]
        pen.line(fill=(38, 134, 82, 214), xy=fold, width=size // 26)
    pen.ellipse((size * 0.16, size * 0.06, size * 0.84, size * 0.32), fill=(30, 104, 66, 226))
    pen.ellipse((size * 0.16, size * 0.06, size * 0.84, size * 0.32), outline=(116, 226, 160, 255), width=size // 18)
    glint = [(size * 0.3, size * 0.45), (size * 0.27, size * 0.66)]
    pen.line(glint, fill=(196, 244, 214, 235), width=size // 22)
    return _mottled(image, rng, grain=size // 4, strength=0.08)


def _gallstone(size: int, rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGBA", (size, size))
    outline = _blob(size, rng, radii=(0.45, 0.42), rough=0.06)
    ImageDraw.Draw(image).polygon(outline, fill=(186, 138, 30, 255))
    image = _mottled(image, rng, grain=max(2, size // 6), strength=0.22)
    pixels = np.asarray(image, dtype=np.float32).copy()
    down, across = np.mgrid[0:size, 0:size].astype(np.float32) / size
    distance = np.hypot(across - 0.4, down - 0.36)
    pixels[..., :3] *= np.clip(1.22 - 0.95 * distance, 0.45, 1.25)[..., None]
    shine = np.exp(-((distance / 0.07) ** 2))[..., None]
    pixels[..., :3] = pixels[..., :3] * (1 - 0.6 * shine) + 250 * 0.6 * shine
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


CLASSES: tuple[ObjectClass, ...] = (
    ObjectClass("clip", "silvery metal clip", size=25, draw=_clip),
    ObjectClass("gallstone", "brownish gallstone", size=26, draw=_gallstone),
    ObjectClass("needle", "thin curved needle", size=42, draw=_needle),
    ObjectClass("specimen bag", "green specimen bag", size=52, draw=_bag),
    ObjectClass("sponge", "white gauze sponge", size=50, draw=_sponge),
)
"""All classes, in alphabetical order."""


_MARGIN = 30  # units by which the canvas is larger than the frame, on each side
_COVER_WIDTH, _COVER_LENGTH = 80, 190


@dataclass(frozen=True)
class RenderedPicture:
    """`pixels` (height, width, 3) uint8 and `owner` (height, width): the index of the instance in each pixel (see
    `Renderer.instances`), or -1."""

    pixels: NDArray[np.uint8]
    owner: NDArray[np.int16]


class Renderer:
    """Renders the frames of one video."""

    def __init__(self, script: Script, size: tuple[int, int], seed: int) -> None:
        self.width, self.height = size
        self.unit = self.height / 216
        self.scene = Scene(script, size, seed)
        inserted = [event for event in script.events if event.kind == "inserted"]
        kinds = {kind.name: kind for kind in CLASSES}
        self.instances = {event.instance: index for index, event in enumerate(inserted)}
        self.sprites: dict[str, Sprite] = {
            event.instance: sprite(
                kinds[event.class_name], self.unit, generator(seed, "simulate", script.video, "sprite", event.instance)
            )
            for event in inserted
        }
        rng = generator(seed, "simulate", script.video, "backdrop")
        margin = round(_MARGIN * self.unit)
        shape = (FINE * (self.height + 2 * margin), FINE * (self.width + 2 * margin))
        self._canvas = _packed(tissue(shape, FINE * self.unit, rng))
        self._origin = margin
        self._wave = float(rng.uniform(0, math.tau))
        self._light = self._falloff()
        self._noise = rng.normal(0, 1.6, (4, self.height, self.width)).astype(np.float32)
        self._covers = {name: _cover_sprite(name, self.unit, rng) for name in ("tissue", "retractor")}

    def picture(self, time: float) -> RenderedPicture:
        """The frame at `time` seconds."""
        state = self.scene.at(time)
        frame = self._background(state.camera, time)
        owner = np.full((self.height, self.width), -1, dtype=np.int16)
        for positioned in state.objects:
            if not positioned.held:
                self._object(frame, owner, positioned)
        for cover in state.covers:
            self._cover(frame, owner, cover)
        for positioned in state.objects:
            if positioned.held:
                self._object(frame, owner, positioned)
        for tool in state.tools:
            _draw_tool(frame, owner, tool, self.unit)
        frame *= self._light
        noise = self._noise[round(time * 1000) // 7 % len(self._noise)]
        for channel in range(3):  # one at a time, here and below: several times as fast as three side by side
            frame[..., channel] += noise
        return RenderedPicture(np.clip(frame, 0, 255, out=frame).astype(np.uint8), owner)

    def extent(self, located: LocatedObject, margin: float) -> AnnotatedBox:
        """The box in pixels, with a margin in units, around an object in the frame, whether it is covered or not."""
        rows, columns = (np.flatnonzero(self.sprites[located.instance].solid.any(axis=axis)) for axis in (1, 0))
        height, width = self.sprites[located.instance].opacity.shape
        left, top = round(located.x - width / 2) + columns[0], round(located.y - height / 2) + rows[0]
        across, down = columns[-1] + 1 - columns[0], rows[-1] + 1 - rows[0]
        return _around(left, top, across, down, margin * self.unit)

    def cover_extent(self, cover: Cover, margin: float) -> AnnotatedBox:
        """The same around a cover, to the edge of the frame from which it comes."""
        half = self._covers[cover.material].opacity.shape[1] / 2
        top, bottom = (0.0, cover.y) if cover.from_above else (cover.y, float(self.height))
        return _around(cover.x - half, top, 2 * half, max(1.0, bottom - top), margin * self.unit)

    def _background(self, camera: tuple[float, float], time: float) -> Floats:
        """The part of the canvas in the camera's view, with a slow wave (breathing)."""
        columns = np.arange(self.width)
        wave = 1.3 * self.unit * np.sin(math.tau * (columns / (150 * self.unit) + time / 4) + self._wave)
        across = np.rint(FINE * (columns + self._origin + camera[0])).astype(np.intp)
        down = np.rint(FINE * (np.arange(self.height)[:, None] + self._origin + camera[1] + wave)).astype(np.intp)
        rows, width = self._canvas.shape
        np.clip(across, 0, width - 1, out=across)
        np.clip(down, 0, rows - 1, out=down)
        seen = self._canvas.take(down * width + across).view(np.uint8).reshape(self.height, self.width, 4)
        frame = np.empty((self.height, self.width, 3), dtype=np.float32)
        for channel in range(3):
            frame[..., channel] = seen[..., channel]
        return frame

    def _falloff(self) -> Floats:
        """The light of the laparoscope: bright in the centre, dim in the corners."""
        down, across = np.mgrid[0 : self.height, 0 : self.width].astype(np.float32)
        far = np.hypot((across - self.width / 2) / self.width, (down - self.height / 2) / self.width) / 0.57
        return np.repeat(np.asarray(1.12 - 0.58 * far**2.4, dtype=np.float32)[..., None], 3, axis=2)

    def _object(self, frame: Floats, owner: NDArray[np.int16], positioned: LocatedObject) -> None:
        drawn = self.sprites[positioned.instance]
        lift = (5 if positioned.held else 2) * self.unit
        _lay(frame, owner, drawn, (positioned.x, positioned.y), index=self.instances[positioned.instance], lift=lift)

    def _cover(self, frame: Floats, owner: NDArray[np.int16], cover: Cover) -> None:
        drawn = self._covers[cover.material]
        if cover.from_above:
            drawn = Sprite(drawn.colour[::-1], drawn.opacity[::-1], drawn.shadow[::-1])
        half = drawn.opacity.shape[0] / 2
        centre = (cover.x, cover.y - half if cover.from_above else cover.y + half)
        _lay(frame, owner, drawn, centre, index=-1, lift=4 * self.unit)


def _around(left: float, top: float, width: float, height: float, margin: float) -> AnnotatedBox:
    return AnnotatedBox(x=left - margin, y=top - margin, width=width + 2 * margin, height=height + 2 * margin)


def _packed(colour: Floats) -> NDArray[np.uint32]:
    """A canvas with one number per pixel, for faster lookup."""
    height, width = colour.shape[:2]
    padded = np.zeros((height, width, 4), dtype=np.uint8)
    padded[..., :3] = colour
    return padded.view(np.uint32)[..., 0]


def _lay(
    frame: Floats, owner: NDArray[np.int16], drawn: Sprite, centre: tuple[float, float], *, index: int, lift: float
) -> None:
    height, width = drawn.opacity.shape
    left, top = round(centre[0] - width / 2), round(centre[1] - height / 2)
    shadow = _overlap(frame.shape, drawn.shadow.shape, (left + round(lift), top + round(lift)))
    if shadow is not None:
        there, here = shadow
        frame[there] *= (1 - 0.5 * drawn.shadow[here])[..., None]
    body = _overlap(frame.shape, drawn.opacity.shape, (left, top))
    if body is not None:
        there, here = body
        opacity = drawn.opacity[here][..., None]
        frame[there] += (drawn.colour[here] - frame[there]) * opacity
        owner[there][drawn.opacity[here] > 0.5] = index


Window = tuple[slice, slice]


def _overlap(frame: tuple[int, ...], piece: tuple[int, ...], corner: tuple[int, int]) -> tuple[Window, Window] | None:
    """The windows in frame and piece where a piece with its corner at (left, top) overlaps the frame."""
    left, top = corner
    x0, x1 = max(0, left), min(frame[1], left + piece[1])
    y0, y1 = max(0, top), min(frame[0], top + piece[0])
    if x0 >= x1 or y0 >= y1:
        return None
    return (slice(y0, y1), slice(x0, x1)), (slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))


def _cover_sprite(material: str, unit: float, rng: np.random.Generator) -> Sprite:
    """A cover that points upwards: a fold of pale tissue, or the dark blade of a retractor."""
    width, length = round(_COVER_WIDTH * unit), round(_COVER_LENGTH * unit)
    mask = Image.new("L", (width, length))
    pen = ImageDraw.Draw(mask)
    if material == "tissue":
        pen.polygon(_fold_outline(width, length, rng), fill=255)
    else:
        box = (round(3 * unit), round(2 * unit), width - round(3 * unit), length + round(12 * unit))
        pen.rounded_rectangle(box, radius=round(12 * unit), fill=255)
    opacity = np.asarray(mask.filter(ImageFilter.GaussianBlur(0.8 * unit)), dtype=np.float32) / np.float32(255)
    across = np.abs(np.linspace(-1, 1, width, dtype=np.float32))[None, :, None]
    if material == "tissue":
        grain = tissue((length, width), 1.4 * unit, rng)
        colour = (0.55 * grain + 0.45 * np.array([206, 120, 104], dtype=np.float32)) * (1.12 - 0.45 * across**2)
    else:
        brushed = smooth_noise((length, width), 3 * unit, rng).mean(axis=0, keepdims=True)[..., None]
        colour = np.array([74, 76, 82], dtype=np.float32) * (0.85 + 0.3 * brushed) * (1.25 - 0.5 * across)
        colour = np.broadcast_to(colour, (length, width, 3)).copy()
        colour[::, ::] += 26 * np.exp(-(((across - 0.35) / 0.08) ** 2))
    shadow = mask.filter(ImageFilter.GaussianBlur(3 * unit))
    return Sprite(
        np.asarray(np.clip(colour, 0, 255), dtype=np.float32),
        opacity,
        np.asarray(shadow, dtype=np.float32) / np.float32(255),
    )


def _fold_outline(width: int, length: int, rng: np.random.Generator) -> list[tuple[float, float]]:
    """A fold that widens downwards, with an uneven border."""
    positions = np.linspace(-1, 1, 61)
    half = width / 2 * 0.96
    waves = sum(rng.normal(0, 0.022) * np.cos(order * np.pi * positions + rng.uniform(0, 6)) for order in (2, 3, 5, 7))
    rim = 0.03 * length + 0.22 * length * np.abs(positions) ** 3.2 + 0.5 * length * np.asarray(waves)
    top = [(width / 2 + half * float(x), max(1.0, float(y))) for x, y in zip(positions, rim, strict=True)]
    return [*top, (float(width), float(length)), (0.0, float(length))]


# Half the width and the brightness of an instrument along its axis, in units behind the tip.
_ALONG = np.array([-1.0, 0.0, 4.0, 16.0, 17.0, 24.0, 25.0, 26.5, 27.5, 4000.0], dtype=np.float32)
_HALF = np.array([0.0, 1.3, 2.0, 2.8, 4.6, 4.6, 5.2, 5.2, 6.2, 7.5], dtype=np.float32)
_SHINE = np.array([140, 140, 132, 120, 104, 108, 150, 150, 34, 34], dtype=np.float32)


def _draw_tool(frame: Floats, owner: NDArray[np.int16], tool: Tool, unit: float) -> None:
    """A grasper: two jaws, a metal wrist and a dark insulated shaft, shaded as a cylinder."""
    length = math.dist(tool.tip, tool.pivot)
    axis = ((tool.pivot[0] - tool.tip[0]) / length, (tool.pivot[1] - tool.tip[1]) / length)
    reach = 12 * unit
    xs = sorted((tool.tip[0], tool.pivot[0]))
    ys = sorted((tool.tip[1], tool.pivot[1]))
    x0, x1 = max(0, int(xs[0] - reach)), min(frame.shape[1], int(xs[1] + reach))
    y0, y1 = max(0, int(ys[0] - reach)), min(frame.shape[0], int(ys[1] + reach))
    if x0 >= x1 or y0 >= y1:
        return
    down = (np.arange(y0, y1, dtype=np.float32)[:, None] - tool.tip[1]) / unit
    across = (np.arange(x0, x1, dtype=np.float32)[None, :] - tool.tip[0]) / unit
    along = across * axis[0] + down * axis[1]
    beside = down * axis[0] - across * axis[1]
    half = np.interp(along, _ALONG, _HALF, left=0.0).astype(np.float32)
    spread = (1.6 + 5.5 * tool.opening) * np.clip(1 - along / 17, 0, 1)
    beside = np.where(along < 17, np.abs(beside) - spread, beside)
    opacity = np.clip((half - np.abs(beside)) * unit + 0.5, 0, 1) * (half > 0)
    around = np.clip(beside / np.maximum(half, 0.1), -1, 1)
    shine = np.interp(along, _ALONG, _SHINE).astype(np.float32) * (1.0 - 0.55 * around**2)
    shine += 62 * np.exp(-(((around + 0.35) / 0.16) ** 2))
    window = (slice(y0, y1), slice(x0, x1))
    colour = shine[..., None] * np.array([1.0, 0.99, 1.0], dtype=np.float32)
    frame[window] += (colour - frame[window]) * opacity[..., None]
    owner[window][opacity > 0.5] = -1

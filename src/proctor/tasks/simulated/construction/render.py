"""From the state of a scene to a picture, and to the map of which pixel shows which instance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from proctor.core import generator
from proctor.tasks.simulated.construction.looks import FINE, Sprite, class_named, smooth_noise, sprite, tissue
from proctor.tasks.simulated.construction.scene import Cover, PlacedObject, Scene, Tool
from proctor.tasks.simulated.construction.script import Script

Floats = NDArray[np.float32]

_MARGIN = 30  # units by which the canvas is larger than the picture, on each side
_COVER_WIDTH, _COVER_LENGTH = 80, 190


@dataclass(frozen=True)
class RenderedPicture:
    """`pixels` (height, width, 3) uint8 and `owner` (height, width): the index of the instance that a pixel
    shows (as in `Renderer.instances`), or -1 for anything else."""

    pixels: NDArray[np.uint8]
    owner: NDArray[np.int16]


class Renderer:
    """Draws one video's scene; everything that stays the same is drawn once, here."""

    def __init__(self, script: Script, size: tuple[int, int], seed: int) -> None:
        self.width, self.height = size
        self.unit = self.height / 216
        self.scene = Scene(script, size, seed)
        inserted = [event for event in script.events if event.kind == "inserted"]
        self.instances = {event.instance: index for index, event in enumerate(inserted)}
        self.sprites: dict[str, Sprite] = {
            event.instance: sprite(
                class_named(event.class_name),
                self.unit,
                generator(seed, "simulate", script.video, "sprite", event.instance),
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
        self._noise = rng.normal(0, 1.6, (4, self.height, self.width, 1)).astype(np.float32)
        self._covers = {name: _cover_sprite(name, self.unit, rng) for name in ("tissue", "retractor")}

    def picture(self, time: float) -> RenderedPicture:
        """The picture at `time` seconds."""
        state = self.scene.at(time)
        frame = self._background(state.camera, time)
        owner = np.full((self.height, self.width), -1, dtype=np.int16)
        for placed in state.objects:
            if not placed.held:
                self._object(frame, owner, placed)
        for cover in state.covers:
            self._cover(frame, owner, cover)
        for placed in state.objects:
            if placed.held:
                self._object(frame, owner, placed)
        for tool in state.tools:
            _draw_tool(frame, owner, tool, self.unit)
        frame *= self._light
        frame += self._noise[round(time * 1000) // 7 % len(self._noise)]
        return RenderedPicture(np.clip(frame, 0, 255).astype(np.uint8), owner)

    def _background(self, camera: tuple[float, float], time: float) -> Floats:
        """The piece of the canvas that the camera sees, with a slow wave (breathing) running through it."""
        columns = np.arange(self.width)
        wave = 1.3 * self.unit * np.sin(math.tau * (columns / (150 * self.unit) + time / 4) + self._wave)
        across = np.rint(FINE * (columns + self._origin + camera[0])).astype(np.intp)
        down = np.rint(FINE * (np.arange(self.height)[:, None] + self._origin + camera[1] + wave)).astype(np.intp)
        rows, width = self._canvas.shape
        np.clip(across, 0, width - 1, out=across)
        np.clip(down, 0, rows - 1, out=down)
        seen = self._canvas[down, across].view(np.uint8).reshape(self.height, self.width, 4)
        return np.asarray(seen[..., :3], dtype=np.float32)

    def _falloff(self) -> Floats:
        """The light of the laparoscope: bright in the middle, dim in the corners."""
        down, across = np.mgrid[0 : self.height, 0 : self.width].astype(np.float32)
        far = np.hypot((across - self.width / 2) / self.width, (down - self.height / 2) / self.width) / 0.57
        return np.asarray(1.12 - 0.58 * far**2.4, dtype=np.float32)[..., None]

    def _object(self, frame: Floats, owner: NDArray[np.int16], placed: PlacedObject) -> None:
        drawn = self.sprites[placed.instance]
        lift = (5 if placed.held else 2) * self.unit
        _lay(frame, owner, drawn, (placed.x, placed.y), index=self.instances[placed.instance], lift=lift)

    def _cover(self, frame: Floats, owner: NDArray[np.int16], cover: Cover) -> None:
        drawn = self._covers[cover.material]
        if cover.from_above:
            drawn = Sprite(drawn.colour[::-1], drawn.opacity[::-1], drawn.shadow[::-1])
        half = drawn.opacity.shape[0] / 2
        centre = (cover.x, cover.y - half if cover.from_above else cover.y + half)
        _lay(frame, owner, drawn, centre, index=-1, lift=4 * self.unit)


def _packed(colour: Floats) -> NDArray[np.uint32]:
    """A canvas with one number a pixel, which is looked up three times as fast as three."""
    height, width = colour.shape[:2]
    padded = np.zeros((height, width, 4), dtype=np.uint8)
    padded[..., :3] = colour
    return padded.view(np.uint32)[..., 0]


def _lay(
    frame: Floats, owner: NDArray[np.int16], drawn: Sprite, centre: tuple[float, float], *, index: int, lift: float
) -> None:
    """Lays a sprite over the frame, its shadow first, and writes down whose pixels these are now."""
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
    """Where a piece with its corner at (left, top) lies inside the frame: the same window in both."""
    left, top = corner
    x0, x1 = max(0, left), min(frame[1], left + piece[1])
    y0, y1 = max(0, top), min(frame[0], top + piece[0])
    if x0 >= x1 or y0 >= y1:
        return None
    return (slice(y0, y1), slice(x0, x1)), (slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))


def _cover_sprite(material: str, unit: float, rng: np.random.Generator) -> Sprite:
    """A tongue that points upwards: a fold of pale tissue, or the dark blade of a retractor."""
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
    places = np.linspace(-1, 1, 61)
    half = width / 2 * 0.96
    waves = sum(rng.normal(0, 0.022) * np.cos(order * np.pi * places + rng.uniform(0, 6)) for order in (2, 3, 5, 7))
    rim = 0.03 * length + 0.22 * length * np.abs(places) ** 3.2 + 0.5 * length * np.asarray(waves)
    top = [(width / 2 + half * float(x), max(1.0, float(y))) for x, y in zip(places, rim, strict=True)]
    return [*top, (float(width), float(length)), (0.0, float(length))]


# An instrument along its axis, in units behind the tip: half its width, and how bright it is there.
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

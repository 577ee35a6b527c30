"""From a decoded picture to the JPEG that a system gets."""

from __future__ import annotations

import io
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import InputError, Region
from proctor.media.sampling import MediaSettings

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

_SMALLEST_TEXT = 10
_TEXT_SHARE = 0.06  # of the picture's height
_FRAME_HEADERS = {0xC0, 0xC1, 0xC2}  # baseline, extended, progressive: what an encoder writes


class FrameEncoder:
    """From decoded pictures to JPEGs, all cut and scaled in one way. For one thread at a time."""

    def __init__(self, region: Region | None, settings: MediaSettings) -> None:
        from av.video.reformatter import VideoReformatter

        self._region = region
        self._settings = settings
        self._scaler, self._painter = VideoReformatter(), VideoReformatter()

    def jpeg(self, frame: VideoFrame, aspect: Fraction, text: str = "") -> bytes:
        """The picture upright, as a player shows it, then as `encode`. `aspect` is width over height of one
        pixel as stored."""
        from PIL.Image import Transpose, fromarray

        turn = frame.rotation % 360  # scaling forgets it
        if self._region is None and frame.format.is_planar and not frame.format.is_rgb:
            # In the decoder's own planes: three times as fast as scaling the finished picture.
            size = fitted(frame.width, frame.height, self._settings.max_side, aspect)
            if size != (frame.width, frame.height):
                frame, aspect = self._scaled(frame, size), Fraction(1)
        turns = {90: Transpose.ROTATE_90, 180: Transpose.ROTATE_180, 270: Transpose.ROTATE_270}
        picture = fromarray(self._painter.reformat(frame, format="rgb24").to_ndarray())
        if turn in turns:
            picture = picture.transpose(turns[turn])
            aspect = 1 / aspect if turn % 180 else aspect
        return encode(picture, self._region, self._settings, aspect, text)

    def _scaled(self, frame: VideoFrame, size: tuple[int, int]) -> VideoFrame:
        return self._scaler.reformat(frame, *size, interpolation="BICUBIC")


def upright(frame: VideoFrame, aspect: Fraction, region: Region | None, max_side: int | None) -> Image:
    """One decoded picture as it is to be shown, cut and scaled, but not encoded."""
    from PIL.Image import Transpose, fromarray

    turns = {90: Transpose.ROTATE_90, 180: Transpose.ROTATE_180, 270: Transpose.ROTATE_270}
    turn = frame.rotation % 360
    picture = fromarray(frame.to_ndarray(format="rgb24"))
    if turn in turns:
        picture = picture.transpose(turns[turn])
        aspect = 1 / aspect if turn % 180 else aspect
    return _cut_and_scaled(picture, region, max_side, aspect)


def read_image(path: Path) -> Image:
    """A still image, upright, in RGB. Raises `InputError` where it can't be read, and for more than
    eight bits a channel, which only its maker knows how to show."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            if opened.mode.startswith(("I", "F")):
                raise InputError(path, found=f"an image of mode {opened.mode}", expected="8 bits a channel")
            return ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(path, found=f"an unreadable image ({type(error).__name__})") from error


def encode(
    picture: Image, region: Region | None, settings: MediaSettings, aspect: Fraction = Fraction(1), text: str = ""
) -> bytes:
    """Cuts to the region, squares the pixels (`aspect`: width over height of one), scales down to the
    longest side, paints the text at the lower left and encodes. Never enlarges."""
    picture = _cut_and_scaled(picture, region, settings.max_side, aspect)
    if text:
        paint(picture, text)
    return _jpeg(picture, settings.quality)


def _cut_and_scaled(picture: Image, region: Region | None, max_side: int | None, aspect: Fraction) -> Image:
    from PIL.Image import Resampling

    if region is not None:
        picture = picture.crop(_box(region, *picture.size))
    size = fitted(*picture.size, max_side, aspect)
    return picture if size == picture.size else picture.resize(size, Resampling.BICUBIC)


def paint(picture: Image, text: str) -> None:
    """Writes a short text at the lower left, white on black, so that it can be read on any picture."""
    from PIL.ImageDraw import Draw

    size = max(_SMALLEST_TEXT, round(_TEXT_SHARE * picture.height))
    draw, font = Draw(picture), _font(size)
    margin = size // 4
    _, _, right, bottom = draw.textbbox((0, 0), text, font=font)
    high = round(bottom) + 2 * margin
    draw.rectangle((0, picture.height - high, round(right) + 2 * margin, picture.height), fill="black")
    draw.text((margin, picture.height - high + margin), text, fill="white", font=font)


@lru_cache(maxsize=8)
def _font(size: int) -> FreeTypeFont | ImageFont:
    from PIL.ImageFont import load_default

    return load_default(size)


def blackened(jpeg: bytes) -> bytes:
    """A black picture of the same size."""
    return _black(*_size(jpeg))


def _size(jpeg: bytes) -> tuple[int, int]:
    """Width and height by the header alone; opening the picture costs ten times as much."""
    place = 2
    while jpeg[place + 1] not in _FRAME_HEADERS:
        place += 2 + int.from_bytes(jpeg[place + 2 : place + 4])
    return int.from_bytes(jpeg[place + 7 : place + 9]), int.from_bytes(jpeg[place + 5 : place + 7])


@lru_cache(maxsize=64)
def _black(width: int, height: int) -> bytes:
    from PIL import Image

    return _jpeg(Image.new("RGB", (width, height)), MediaSettings().quality)


def _jpeg(picture: Image, quality: int) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality)
    return out.getvalue()


def _box(region: Region, width: int, height: int) -> tuple[int, int, int, int]:
    left = min(round(region.x * width), width - 1)
    top = min(round(region.y * height), height - 1)
    right = min(max(round((region.x + region.width) * width), left + 1), width)
    bottom = min(max(round((region.y + region.height) * height), top + 1), height)
    return left, top, right, bottom


def fitted(width: int, height: int, max_side: int | None, aspect: Fraction) -> tuple[int, int]:
    """The size to scale to: pixels made square by shrinking the longer direction, then the longest side."""
    wide, high = width * min(aspect, Fraction(1)), height / max(aspect, Fraction(1))
    scale = Fraction(1) if max_side is None else min(Fraction(1), max_side / max(wide, high))
    return max(1, round(wide * scale)), max(1, round(high * scale))

"""From a decoded picture to the JPEG that a system gets."""

from __future__ import annotations

import io
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import InputError, Region
from proctor.media.settings import MediaSettings

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from PIL.Image import Image

__all__ = ["blackened", "encode", "encode_frame", "read_image"]


def encode_frame(
    frame: VideoFrame, aspect: Fraction, region: Region | None, settings: MediaSettings
) -> bytes:
    """The decoded picture upright, as a player shows it, then as `encode`. `aspect` is width over height of
    one pixel as stored."""
    from PIL.Image import Transpose, fromarray

    turns = {90: Transpose.ROTATE_90, 180: Transpose.ROTATE_180, 270: Transpose.ROTATE_270}
    picture = fromarray(frame.to_ndarray(format="rgb24"))
    turn = frame.rotation % 360
    if turn in turns:
        picture = picture.transpose(turns[turn])
        aspect = 1 / aspect if turn % 180 else aspect
    return encode(picture, region, settings, aspect)


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
    picture: Image, region: Region | None, settings: MediaSettings, aspect: Fraction = Fraction(1)
) -> bytes:
    """Cuts to the region, squares the pixels (`aspect`: width over height of one), scales down to the
    longest side and encodes. Never enlarges."""
    from PIL.Image import Resampling

    if region is not None:
        picture = picture.crop(_box(region, *picture.size))
    size = _fitted(*picture.size, settings.max_side, aspect)
    if size != picture.size:
        picture = picture.resize(size, Resampling.BICUBIC)
    return _jpeg(picture, settings.quality)


def blackened(jpeg: bytes) -> bytes:
    """A black picture of the same size."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        return _black(*opened.size)


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


def _fitted(width: int, height: int, max_side: int | None, aspect: Fraction) -> tuple[int, int]:
    """The size to scale to: pixels made square by shrinking the longer direction, then the longest side."""
    wide, high = width * min(aspect, Fraction(1)), height / max(aspect, Fraction(1))
    scale = Fraction(1) if max_side is None else min(Fraction(1), max_side / max(wide, high))
    return max(1, round(wide * scale)), max(1, round(high * scale))

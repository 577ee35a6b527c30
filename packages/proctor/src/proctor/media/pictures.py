"""The way from a decoded picture to the JPEG that a system gets."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from proctor.core import InputError, Region, Scan
from proctor.media.sampling import MediaSettings, fitted
from proctor.media.scans import scan_kind, scan_picture

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.reformatter import VideoReformatter
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

    from proctor.media.container import Display


_SMALLEST_TEXT = 10
_TEXT_SHARE = 0.06  # of the picture's height
_FRAME_HEADERS = {0xC0, 0xC1, 0xC2}  # baseline, extended, progressive: what an encoder writes


class Finish(NamedTuple):
    """What is painted on a scaled picture before it is encoded: a short text at the lower left, and black in `hides`."""

    text: str = ""
    hides: tuple[Region, ...] = ()


PLAIN = Finish()


class FrameEncoder:
    """Encodes decoded pictures as JPEGs, all cropped and scaled in one way. Not for several threads at once."""

    def __init__(self, region: Region | None, settings: MediaSettings) -> None:
        from av.video.reformatter import VideoReformatter

        self._region = region
        self._settings = settings
        self._scaler, self._painter = VideoReformatter(), VideoReformatter()

    def jpeg(self, frame: VideoFrame, display: Display, finish: Finish = PLAIN) -> bytes:
        """The picture as a player shows it, then as `encode`."""
        from proctor.media.container import has_alpha

        form = frame.format
        in_planes = form.is_planar and not form.is_rgb and not has_alpha(form)
        if self._region is None and in_planes and not any(display.cropping) and not display.turn.degrees:
            # In the decoder's own planes: three times as fast as scaling the finished picture.
            size = fitted(frame.width, frame.height, self._settings.max_side, display.aspect)
            if size != (frame.width, frame.height):
                frame = self._scaler.reformat(frame, *size, interpolation="BICUBIC")
                display = display._replace(aspect=Fraction(1))
        picture, aspect = _displayed(frame, display, self._painter)
        return encode(picture, self._region, self._settings, aspect, finish)


def upright(frame: VideoFrame, display: Display, region: Region | None, max_side: int | None) -> Image:
    """One decoded picture as a player shows it, cropped and scaled, but not encoded."""
    from av.video.reformatter import VideoReformatter

    picture, aspect = _displayed(frame, display, VideoReformatter())
    return _cropped_and_scaled(picture, region, max_side, aspect)


def _displayed(frame: VideoFrame, display: Display, painter: VideoReformatter) -> tuple[Image, Fraction]:
    """The picture in RGB, on white where it is transparent, cropped and turned; and its pixels' width over height then."""
    from PIL.Image import Resampling, Transpose, fromarray

    from proctor.media.container import has_alpha

    transparent = has_alpha(frame.format)
    pixels = painter.reformat(frame, format="rgba" if transparent else "rgb24").to_ndarray()
    picture = _on_white(fromarray(pixels)) if transparent else fromarray(pixels)
    top, bottom, left, right = display.cropping
    if any(display.cropping):
        picture = picture.crop((left, top, picture.width - right, picture.height - bottom))
    for step in display.turn.steps:
        picture = picture.transpose(Transpose[step])
    if display.turn.degrees:
        picture = picture.rotate(-display.turn.degrees, Resampling.BILINEAR, fillcolor="black")
    return picture, 1 / display.aspect if display.turn.sideways else display.aspect


def read_image(path: Path, scan: Scan | None = None) -> Image:
    """A still image, upright, in RGB, on white where it is transparent; of a medical file the picture that `scan` names.
    Raises `InputError` where it can't be read, and for other files with more than eight bits a channel, whose display
    range is unknown."""
    from PIL import Image, ImageOps

    kind = scan_kind(path)
    if kind is not None:
        return scan_picture(path, kind, scan)
    if scan is not None:
        raise InputError(path, found="a window, frame or slice for another kind of file", expected="DICOM or NIfTI")
    try:
        with Image.open(path) as opened:
            if opened.mode.startswith(("I", "F")):
                raise InputError(path, found=f"an image of mode {opened.mode}", expected="8 bits a channel")
            picture = ImageOps.exif_transpose(opened)
            return _on_white(picture) if picture.has_transparency_data else picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(path, found=f"an unreadable image ({type(error).__name__})") from error


def _on_white(picture: Image) -> Image:
    """As a page shows it: what is hidden has colours, too, often black under black letters."""
    from PIL import Image

    whole = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")


@dataclass(frozen=True, slots=True)
class StillFacts:
    """Of a still image: whether something is transparent, and whether the file holds more than the one image shown."""

    transparent: bool = False
    animated: bool = False


def still_facts(path: Path) -> StillFacts:
    """By the header alone. Nothing of a file that can't be read, which is an error when it is shown."""
    from PIL import Image

    try:
        with Image.open(path) as opened:
            animated = opened.format != "MPO" and getattr(opened, "is_animated", False)  # MPO: a preview, a second eye
            return StillFacts(opened.has_transparency_data, bool(animated))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return StillFacts()


def open_picture(content: bytes, file: str | Path | None = None, location: str = "", *, draft: int = 0) -> Image:
    """The picture in an image file's bytes, in RGB, on white where it is transparent. With `draft`, it may be reduced to that many pixels a side. Raises
    `InputError`, with the file and the location in it, for what can't be read."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as opened:
            if draft:
                opened.draft("RGB", (draft, draft))
            return _on_white(opened) if opened.has_transparency_data else opened.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        found = f"an unreadable image ({type(error).__name__})"
        raise InputError(file, location, found=found, expected="an image") from error


def encode(
    picture: Image,
    region: Region | None,
    settings: MediaSettings,
    aspect: Fraction = Fraction(1),
    finish: Finish = PLAIN,
) -> bytes:
    """Crops to the region, makes the pixels square (`aspect`: width over height of one), scales down to the longest
    side, paints the text and the black of `finish`, and encodes. Never enlarges.

    What is hidden is black before there is a JPEG: the bytes depend on no pixel below it, and blocks that it does not
    touch are those of the picture without it.
    """
    picture = _cropped_and_scaled(picture, region, settings.max_side, aspect)
    if finish.text:
        paint(picture, finish.text)
    for hidden in finish.hides:
        picture.paste((0, 0, 0), touched_pixels(hidden, *picture.size))
    return _jpeg(picture, settings.quality)


def _cropped_and_scaled(picture: Image, region: Region | None, max_side: int | None, aspect: Fraction) -> Image:
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
    position = 2
    while jpeg[position + 1] not in _FRAME_HEADERS:
        position += 2 + int.from_bytes(jpeg[position + 2 : position + 4])
    return int.from_bytes(jpeg[position + 7 : position + 9]), int.from_bytes(jpeg[position + 5 : position + 7])


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


_ROUNDED_PX = 0.01
"""An edge this little beyond a pixel's is that pixel's: fractions of pictures are often rounded."""


def touched_pixels(region: Region, width: int, height: int) -> tuple[int, int, int, int]:
    """All pixels that a hidden region touches: left, top, right and bottom.

    >>> touched_pixels(Region(x=0.25, y=0.11, width=0.5, height=0.2), 100, 10)
    (25, 1, 75, 4)
    """
    left = min(math.floor(region.x * width + _ROUNDED_PX), width - 1)
    top = min(math.floor(region.y * height + _ROUNDED_PX), height - 1)
    right = min(max(math.ceil((region.x + region.width) * width - _ROUNDED_PX), left + 1), width)
    bottom = min(max(math.ceil((region.y + region.height) * height - _ROUNDED_PX), top + 1), height)
    return left, top, right, bottom

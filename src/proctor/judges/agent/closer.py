"""A closer look at a picture: a part of it, enlarged, with more contrast or sharper edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.core import Frame
from proctor.judges.dimensions.case import Case
from proctor.media import MediaSettings, encode, locate, read_image

_LEAST_SHARE, _SIDE = 0.05, 768
_QUALITY = MediaSettings(max_side=_SIDE, quality=90)


class CloserLook(BaseModel):
    """A part of a picture, its edges as fractions of width and height from the upper left corner."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    picture: int = Field(ge=1, description="The picture's number.")
    left: float = Field(default=0.0, ge=0, le=1)
    top: float = Field(default=0.0, ge=0, le=1)
    right: float = Field(default=1.0, ge=0, le=1)
    bottom: float = Field(default=1.0, ge=0, le=1)
    enhance: Literal["none", "contrast", "sharpness"] = "none"

    @model_validator(mode="after")
    def _has_a_size(self) -> Self:
        if min(self.right - self.left, self.bottom - self.top) < _LEAST_SHARE:
            raise ValueError(f"right and bottom are expected to lie {_LEAST_SHARE:g} or more behind left and top")
        return self


@dataclass(frozen=True)
class Magnifier:
    """Looks closer at the pictures of a case that can be read; `places` are theirs among the case's images."""

    case: Case
    places: tuple[int, ...]

    def look(self, asked: CloserLook) -> Frame:
        """The part, enlarged or scaled down to 768 pixels at its longest side. Raises `InputError` for a file that can't
        be read any more, and `IndexError` for a picture that there is not."""
        from PIL import ImageFilter, ImageOps
        from PIL.Image import Resampling

        place = self.places[asked.picture - 1]
        root, name = self.case.image_root, self.case.images[place]
        if root is None:
            raise IndexError(place)
        scan = self.case.scans[place] if self.case.scans else None
        picture = read_image(locate(root, name), scan)
        wide, high = picture.size
        left, top = int(asked.left * wide), int(asked.top * high)
        part = picture.crop(
            (left, top, max(left + 1, round(asked.right * wide)), max(top + 1, round(asked.bottom * high)))
        )
        scale = _SIDE / max(part.size)
        if scale > 1:
            part = part.resize(
                (max(1, round(part.width * scale)), max(1, round(part.height * scale))), Resampling.BICUBIC
            )
        if asked.enhance == "contrast":
            part = ImageOps.autocontrast(part, cutoff=1)
        if asked.enhance == "sharpness":
            part = part.filter(ImageFilter.UnsharpMask(radius=3, percent=150))
        return Frame(encode(part, None, _QUALITY), None, f"A closer look at picture {asked.picture}")

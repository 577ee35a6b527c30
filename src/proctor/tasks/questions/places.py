"""The places that a reference names, drawn into the frames of a preview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

from proctor.core import Frame, Item
from proctor.core.formats import BoxesFormat, PointFormat, extents

_RED, _LEAST = (255, 40, 40), 3.0  # a point without a tolerance is a circle of this radius


def with_places(frames: Sequence[Frame], item: Item) -> list[Frame]:
    """The frames with the boxes or points of the reference in red, where the question is about a place; else as they
    are."""
    answer, reference = item.answer, item.reference
    if not isinstance(answer, BoxesFormat | PointFormat) or reference is None:
        return [*frames]
    values = (reference.answer, *reference.accepted)
    shapes = [place for value in values for place in (extents(value) if _nested(value) else extents([value]))]
    return [replace(frame, jpeg=_drawn(frame.jpeg, shapes, answer)) for frame in frames]


def _nested(value: Any) -> bool:
    return bool(value) and isinstance(value[0], list | tuple)


def _drawn(jpeg: bytes, shapes: Sequence[Sequence[float]], answer: BoxesFormat | PointFormat) -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.open(BytesIO(jpeg)).convert("RGB")
    draw, scale = ImageDraw.Draw(picture), (picture.width / answer.width, picture.height / answer.height)
    for shape in shapes:
        ends = [one * scale[place % 2] for place, one in enumerate(shape)]
        if len(ends) == 4:
            draw.rectangle(ends, outline=_RED, width=2)
        else:
            far = max(_LEAST, answer.tolerance * scale[0]) if isinstance(answer, PointFormat) else _LEAST
            draw.ellipse([ends[0] - far, ends[1] - far, ends[0] + far, ends[1] + far], outline=_RED, width=2)
    out = BytesIO()
    picture.save(out, "JPEG")
    return out.getvalue()

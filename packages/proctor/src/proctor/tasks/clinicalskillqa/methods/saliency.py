"""Salient regions of a picture, and the picture with those regions enlarged beside it.

A map combines saliency (spectral residual: Hou and Zhang 2007, CVPR) and the difference from the other pictures of the
same camera; two regions are taken from it, or those of head and chest where joints are known.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import Region, need_extra
from proctor.media import open_picture
from proctor.tasks.clinicalskillqa.keypoints import PersonBox, Pose
from proctor.tasks.clinicalskillqa.pose import Body, positions_of

Map = NDArray[np.float64]

COLOURS = {"red": (230, 50, 50), "blue": (60, 120, 255), "green": (40, 180, 70), "yellow": (240, 200, 30)}
"""The colours of the frames around enlarged regions, by their names in prompts, in order of use."""

_SIDE = 96  # of the map's longer side, fine enough to locate regions
_MIN_SHARE = 0.25  # of the picture's longer side that an enlarged region shows
_MAX_SHARE = 0.45  # an inset has half the side, so a larger region would hardly be enlarged
_ASPECT = 4 / 3
_QUALITY = 90
_STILL = 4.0  # levels of 255: smaller differences between pictures are noise
_BORDER = 3
_READABLE = 384  # minimum of the longer side in pixels; an inset's is half of it


@dataclass(frozen=True, slots=True)
class Detail:
    """A region of the picture to enlarge. `what` is "head and airway", "chest and hands" or "hands" where it
    follows from joints or marks, else "" (a salient region)."""

    region: Region
    what: str = ""


def saliency(jpegs: Sequence[bytes]) -> list[Map]:
    """One map for each picture, its longer side 96 points, from 0 to 1 (the maximum in this picture; all 0 where nothing
    is salient).

    The mean of the picture's saliency and of its difference from the median of all pictures. Where the sizes differ,
    there are fewer than three pictures, or nothing moves, it is the saliency alone. With a moving camera everything
    differs, and the second part is of little use.
    """
    need_extra("vision", "enlarging details", "cv2")
    pictures = [_grey(jpeg) for jpeg in jpegs]
    moving = _motion(pictures)
    maps = []
    for position, picture in enumerate(pictures):
        found = _scaled(_standing_out(picture))
        if moving is not None and moving[position].any():
            found = (found + _scaled(moving[position])) / 2
        maps.append(_scaled(found))
    return maps


def details_of(
    found: Map,
    aspect: float,
    pose: Pose | None = None,
    marked: Mapping[str, Region] | None = None,
    *,
    both: bool = False,
) -> list[Detail]:
    """Up to two regions to enlarge in a picture, `aspect` times as wide as high; from left to right.

    Head and chest where `pose` or `marked` (in fractions of the picture) locate them; else the hands of the person with
    the highest score. The rest of the two are the densest windows of the map, apart from the other regions; fewer where
    nothing is salient. With `both`, two regions of the map are added to those of joints and marks, four in all.
    """
    details = [] if pose is None and not marked else _known(pose, marked or {}, aspect)
    left, count = _less(found, details), 2 + (len(details) if both else 0)
    while len(details) < count and left.max() > 0:
        details.append(Detail(_densest(left, aspect)))
        left = _less(left, details[-1:])
    return sorted(details, key=lambda detail: (detail.region.x, detail.region.y))


def enlarged(jpeg: bytes, details: Sequence[Detail], original: bytes | None = None) -> bytes:
    """One JPEG: the whole picture, with thin frames around the regions, and the regions enlarged beside it.

    The insets are below a picture that is wider than high, and to the right of any other, two in a row; the picture is
    not covered. They are cut from `original`, the same picture with more pixels, if given. Each has a frame in the
    colour of its region (`COLOURS`, in order). Without details, the picture is returned unchanged.
    """
    from PIL import Image, ImageDraw

    if not details:
        return jpeg
    picture = open_picture(jpeg, "picture")
    source = None if original is None or original == jpeg else open_picture(original)
    scale = max(1.0, _READABLE / max(picture.size))
    if scale > 1:
        size = round(picture.width * scale), round(picture.height * scale)
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    wide, high = picture.size
    lying = wide >= high
    inset = (wide // 2, round(wide / 2 / _ASPECT)) if lying else (round(high / 2 * _ASPECT), high // 2)
    rows = (min(len(details), len(COLOURS)) + 1) // 2
    size = (wide, high + rows * inset[1]) if lying else (wide + rows * inset[0], high)
    canvas = Image.new("RGB", size, "black")
    canvas.paste(picture, (0, 0))
    draw = ImageDraw.Draw(canvas)
    for number, (detail, colour) in enumerate(zip(details, COLOURS.values(), strict=False)):
        left, top, right, bottom = _pixels(detail.region, picture.size)
        position = (left, top, right, bottom) if source is None else _pixels(detail.region, source.size)
        cut = (source or picture).crop(position).resize(inset, Image.Resampling.LANCZOS)
        row, column = divmod(number, 2)
        corner = (column * inset[0], high + row * inset[1]) if lying else (wide + row * inset[0], column * inset[1])
        canvas.paste(cut, corner)
        edge = (corner[0], corner[1], corner[0] + inset[0] - 1, corner[1] + inset[1] - 1)
        draw.rectangle(edge, outline=colour, width=_BORDER)
        draw.rectangle((left, top, right - 1, bottom - 1), outline=colour, width=1)
    out = io.BytesIO()
    canvas.save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()


def _known(pose: Pose | None, marked: Mapping[str, Region], aspect: float) -> list[Detail]:
    """The known ones of head and chest; hands where the chest is unknown."""
    pose = pose or Pose(round(1000 * aspect), 1000, ())
    locations = positions_of(pose, marked)
    found = []
    if locations.head is not None:
        found.append(Detail(_window(locations.head, pose, aspect), "head and airway"))
    if locations.chest is not None:
        found.append(Detail(_window(locations.chest, pose, aspect), "chest and hands"))
    else:
        rescuers = (person for person in pose.people if person is not locations.lying)
        hands = next((box for person in rescuers if (box := _hands(Body(person))) is not None), None)
        if hands is not None:
            found.append(Detail(_window(hands, pose, aspect), "hands"))
    return found


def _hands(body: Body) -> PersonBox | None:
    hands = [arm.hand for arm in body.arms.values() if arm.hand is not None]
    if not hands:
        return None
    across, down = [hand.x for hand in hands], [hand.y for hand in hands]
    return PersonBox(min(across), min(down), max(across), max(down))


def _window(box: PersonBox, pose: Pose, aspect: float) -> Region:
    """A region of the insets' shape around a box enlarged by one half, within the picture."""
    wide = 1.5 * max(box.right - box.left, _ASPECT * (box.bottom - box.top)) / pose.width
    centre = box.centre
    return _positioned(centre.x / pose.width, centre.y / pose.height, wide, aspect)


def _positioned(x: float, y: float, wide: float, aspect: float) -> Region:
    """A region of the insets' shape around a point, of limited size, moved into the picture. All are fractions."""
    longer = max(aspect, 1.0) / aspect  # the longer side in widths
    wide = min(max(wide, _MIN_SHARE * longer), _MAX_SHARE * longer, 1.0, _ASPECT / aspect)
    high = wide * aspect / _ASPECT
    return Region(
        x=min(max(x - wide / 2, 0.0), 1 - wide), y=min(max(y - high / 2, 0.0), 1 - high), width=wide, height=high
    )


def _densest(found: Map, aspect: float) -> Region:
    """The smallest window around the densest point of the map, with more weight on its centre so that its edges do not
    cut a salient object; of equals the first from the top left."""
    import cv2

    rows, columns = found.shape
    least = _positioned(0.5, 0.5, 0.0, aspect)
    spread = least.width * columns / 3, least.height * rows / 3
    held = cv2.GaussianBlur(found, (0, 0), spread[0], sigmaY=spread[1], borderType=cv2.BORDER_CONSTANT)
    row, column = np.unravel_index(int(np.argmax(held.round(9))), held.shape)
    return _positioned((column + 0.5) / columns, (row + 0.5) / rows, 0.0, aspect)


def _less(found: Map, details: Sequence[Detail]) -> Map:
    """The map with these regions, and a margin of half a window around each, set to 0."""
    left = found.copy()
    rows, columns = found.shape
    for detail in details:
        region = detail.region
        top, bottom = (region.y - region.height / 2) * rows, (region.y + 1.5 * region.height) * rows
        start, end = (region.x - region.width / 2) * columns, (region.x + 1.5 * region.width) * columns
        left[max(0, round(top)) : round(bottom), max(0, round(start)) : round(end)] = 0.0
    return left


def _standing_out(picture: Map) -> Map:
    import cv2

    if picture.std() < 1.0:
        return np.zeros_like(picture)
    create: Any = vars(cv2.saliency)["StaticSaliencySpectralResidual_create"]  # not in the package's own types
    done, found = create().computeSaliency(picture.astype(np.uint8))
    if not done:
        return np.zeros_like(picture)
    return np.asarray(found, dtype=np.float64)


def _motion(pictures: Sequence[Map]) -> list[Map] | None:
    """The smoothed difference of each picture from the median of all; None where they can't be compared."""
    import cv2

    if len(pictures) < 3 or len({picture.shape for picture in pictures}) > 1:
        return None
    usual = np.median(np.stack(pictures), axis=0)
    apart = [np.abs(picture - usual) for picture in pictures]
    smooth = [cv2.GaussianBlur(np.where(one < _STILL, 0.0, one), (0, 0), 1.5) for one in apart]
    return [np.asarray(one, dtype=np.float64) for one in smooth]


def _scaled(found: Map) -> Map:
    most = float(found.max())
    return found / most if most > 0 else np.zeros_like(found)


def _grey(jpeg: bytes) -> Map:
    from PIL import Image

    picture = open_picture(jpeg, "picture").convert("L")
    scale = _SIDE / max(picture.size)
    size = max(8, round(picture.width * scale)), max(8, round(picture.height * scale))
    return np.asarray(picture.resize(size, Image.Resampling.BOX), dtype=np.float64)


def _pixels(region: Region, size: tuple[int, int]) -> tuple[int, int, int, int]:
    left, top = round(region.x * size[0]), round(region.y * size[1])
    return (left, top, left + max(1, round(region.width * size[0])), top + max(1, round(region.height * size[1])))

"""People in a picture as the joints that were found of them: COCO's seventeen, missing ones absent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import InputError, input_bytes, parse_model

KEYPOINTS = (
    "nose",
    "left_eye",
    "right_eye",
    "left_ear",
    "right_ear",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
)
"""COCO's names, in COCO's order; left and right are the person's own."""

SEEN = 0.5
"""The least confidence with which a joint counts as found: half, as networks of this kind are drawn by their
makers. Below it the joint is missing, and what needs it is unknown."""


@dataclass(frozen=True, slots=True)
class Point:
    """A joint in pixels of the picture, origin at the top left; `confidence` from 0 to 1. It may lie outside of
    the picture, where a network guesses what is cut off."""

    x: float
    y: float
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class PersonBox:
    """A rectangle in pixels of the picture, origin at the top left."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def centre(self) -> Point:
        """Its middle."""
        return Point((self.left + self.right) / 2, (self.top + self.bottom) / 2)

    def distance(self, point: Point) -> float:
        """Pixels from a point to the nearest edge; 0 inside.

        >>> PersonBox(0, 0, 10, 10).distance(Point(13, 14)), PersonBox(0, 0, 10, 10).distance(Point(5, 5))
        (5.0, 0.0)
        """
        across = max(self.left - point.x, 0.0, point.x - self.right)
        down = max(self.top - point.y, 0.0, point.y - self.bottom)
        return float((across**2 + down**2) ** 0.5)


@dataclass(frozen=True, slots=True)
class Person:
    """One detected person (or manikin: a network does not tell them apart)."""

    box: PersonBox
    score: float
    keypoints: Mapping[str, Point]

    def point(self, name: str) -> Point | None:
        """A joint by its COCO name; None where it was not found with a confidence of at least `SEEN`."""
        found = self.keypoints.get(name)
        return found if found is not None and found.confidence >= SEEN else None


@dataclass(frozen=True)
class Pose:
    """What was found in one picture of `width` × `height` pixels. `marked` are places that were marked by name:
    the manikin's "head" and "chest", a "device"; no network finds those."""

    width: int
    height: int
    people: tuple[Person, ...]
    marked: Mapping[str, PersonBox] = field(default_factory=dict)


MARKS = ("head", "chest", "device")
"""Categories whose boxes mark a place: the manikin's head and chest, and the device that is fetched or used."""

_NUMBERS = 3 * len(KEYPOINTS)


class _Native(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class _Image(_Native):
    id: int
    file_name: str = Field(min_length=1)
    width: int = Field(gt=0)
    height: int = Field(gt=0)


class _Category(_Native):
    id: int
    name: str
    keypoints: tuple[str, ...] | None = None


class _Annotation(_Native):
    image_id: int
    category_id: int
    bbox: Annotated[list[float], Field(min_length=4, max_length=4)] | None = None
    keypoints: list[float] | None = None
    score: float = Field(default=1.0, ge=0, le=1)


class _File(_Native):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category]


class KeypointFile:
    """People from `images`, `annotations` and `categories` as COCO has them.

    The category `person` names COCO's 17 keypoints; its annotations hold x, y, v for each: v = 0 is missing, 1 is
    labelled though hidden (confidence 0.5), 2 is visible (1). Boxes of the categories `head`, `chest` and `device`
    mark those places, once an image.

    Raises `InputError` for a file that can't be read or is not of this form, for other keypoints, an annotation of
    an unknown image or category, a name or a mark that comes twice.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        content = input_bytes(file, "a file of keypoints")
        native = parse_model(file, content, _File)
        self._sha256 = hashlib.sha256(content).hexdigest()
        self._poses = _by_name(file, native)

    @property
    def sees(self) -> bool:
        """It goes by the image's name."""
        return False

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The file by hash."""
        return {"pose": "keypoints", "pose_sha256": self._sha256}

    def look(self, jpeg: bytes, name: str) -> Pose:
        """The people of the image `name`, in pixels of the file's own image size; the picture is not looked at.

        An image is found by its whole `file_name`, else by the end of it, without the extension: `i001/A` finds
        `CPR/i001/A.jpg`. Raises `InputError` where no image of the file, or more than one, has this name.
        """
        del jpeg
        wanted = PurePosixPath(name)
        exact = self._poses.get(str(wanted))
        if exact is not None:
            return exact
        parts = wanted.with_suffix("").parts
        found = [known for known in self._poses if PurePosixPath(known).with_suffix("").parts[-len(parts) :] == parts]
        if len(found) != 1:
            shown = ", ".join(found[:3]) or "none with this name"
            raise InputError(self._file, f"image {name!r}", found=shown, expected="one image")
        return self._poses[found[0]]


def _by_name(file: Path, native: _File) -> dict[str, Pose]:
    categories = {one.id: one for one in native.categories}
    for one in native.categories:
        if one.name == "person" and tuple(one.keypoints or ()) != KEYPOINTS:
            found = ", ".join(one.keypoints or ()) or "no keypoints"
            raise InputError(file, "category 'person'", found=found[:120], expected="COCO's 17 keypoints")
    known = {image.id for image in native.images}
    by_image: dict[int, list[tuple[str, _Annotation]]] = {image.id: [] for image in native.images}
    for number, note in enumerate(native.annotations):
        if note.image_id not in known or note.category_id not in categories:
            raise InputError(
                file,
                f"annotations.{number}",
                found=f"image {note.image_id} of category {note.category_id}",
                expected="an image and a category of this file",
            )
        by_image[note.image_id].append((categories[note.category_id].name, note))
    poses: dict[str, Pose] = {}
    for image in native.images:
        name = str(PurePosixPath(image.file_name))
        if name in poses:
            raise InputError(file, f"image {name!r}", found="it twice", expected="each image once")
        poses[name] = _pose(file, image, by_image[image.id])
    return poses


def _pose(file: Path, image: _Image, notes: Iterable[tuple[str, _Annotation]]) -> Pose:
    people: list[Person] = []
    marked: dict[str, PersonBox] = {}
    for category, note in notes:
        place = f"image {image.file_name!r}, category {category!r}"
        if category == "person":
            people.append(_person(file, place, note))
        elif category in MARKS:
            if note.bbox is None or category in marked:
                found = "no box" if note.bbox is None else "a second box"
                raise InputError(file, place, found=found, expected="one box")
            marked[category] = _box(note.bbox)
    return Pose(image.width, image.height, tuple(people), marked)


def _person(file: Path, place: str, note: _Annotation) -> Person:
    numbers = note.keypoints or []
    if len(numbers) != _NUMBERS or any(flag not in {0, 1, 2} for flag in numbers[2::3]):
        raise InputError(
            file,
            place,
            found=f"{len(numbers)} numbers: {str(numbers)[:40]} …",
            expected=f"{_NUMBERS}: x, y and v (0, 1 or 2) of 17 keypoints",
        )
    points = {
        name: Point(x, y, 1.0 if flag == 2 else SEEN)
        for name, x, y, flag in zip(KEYPOINTS, numbers[0::3], numbers[1::3], numbers[2::3], strict=True)
        if flag
    }
    if note.bbox is not None:
        return Person(_box(note.bbox), note.score, points)
    if not points:
        raise InputError(file, place, found="neither box nor keypoints", expected="one of them")
    across, down = [point.x for point in points.values()], [point.y for point in points.values()]
    return Person(PersonBox(min(across), min(down), max(across), max(down)), note.score, points)


def _box(bbox: list[float]) -> PersonBox:
    left, top, wide, high = bbox
    return PersonBox(left, top, left + wide, top + high)

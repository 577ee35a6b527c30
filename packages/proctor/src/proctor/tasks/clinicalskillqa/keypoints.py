"""People in a picture by their joints (COCO's seventeen keypoints): from a file, or by an exported YOLOv8-pose network that
runs in a process with limits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import InputError, input_bytes, need_extra, parse_model, read_bytes
from proctor.media import open_picture
from proctor.models import Letterbox, NetworkProcess

KEYPOINTS = (
    "nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow",
    "right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle",
    "right_ankle",
)  # fmt: skip
"""COCO's names in COCO's order; left and right are the person's."""

SEEN = 0.5
"""The minimum confidence of a joint: one half, the default of such networks' authors. Other joints are missing, and what
depends on them is unknown."""


@dataclass(frozen=True, slots=True)
class Point:
    """A joint in pixels of the picture, origin at the top left; `confidence` from 0 to 1. It may lie outside of the
    picture, where a network extrapolates."""

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
    """A detected person, or manikin: a network does not distinguish them."""

    box: PersonBox
    score: float
    keypoints: Mapping[str, Point]

    def point(self, name: str) -> Point | None:
        """A joint by its COCO name; None unless its confidence is at least `SEEN`."""
        found = self.keypoints.get(name)
        return found if found is not None and found.confidence >= SEEN else None


@dataclass(frozen=True)
class Pose:
    """The people in one picture of `width` × `height` pixels, and regions `marked` by hand: the manikin's "head" and
    "chest", a "device"; no network finds those."""

    width: int
    height: int
    people: tuple[Person, ...]
    marked: Mapping[str, PersonBox] = field(default_factory=dict)


MARKS = ("head", "chest", "device")
"""Categories whose boxes mark a region: the manikin's head and chest, and the device."""

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
    """People from a file with COCO's `images`, `annotations` and `categories`.

    The category `person` has COCO's 17 keypoints; its annotations have x, y, v for each: v = 0 is missing, 1 is labelled
    but hidden (confidence 0.5), 2 is visible (1). Boxes of the categories `head`, `chest` and `device` mark those
    regions, at most one of each in an image.

    Raises `InputError` for a file that can't be read or has another form, for other keypoints, an annotation of an
    unknown image or category, and a repeated name or mark.
    """

    sees = False

    def __init__(self, file: Path) -> None:
        self._file = file
        content = input_bytes(file, "a file of keypoints")
        native = parse_model(file, content, _File)
        self._sha256 = hashlib.sha256(content).hexdigest()
        self._poses = _by_name(file, native)

    @property
    def settings(self) -> dict[str, JsonValue]:
        return {"pose": "keypoints", "pose_sha256": self._sha256}

    def look(self, jpeg: bytes, name: str) -> Pose:
        """The people of the image `name`, in pixels of the file's image size; the picture itself is ignored.

        An image is found by its whole `file_name`, else by the end of it without the extension: `i001/A` finds
        `CPR/i001/A.jpg`. Raises `InputError` unless exactly one image has this name.
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
    categories = {category.id: category for category in native.categories}
    for category in native.categories:
        if category.name == "person" and tuple(category.keypoints or ()) != KEYPOINTS:
            found = ", ".join(category.keypoints or ()) or "no keypoints"
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
        location = f"image {image.file_name!r}, category {category!r}"
        if category == "person":
            people.append(_person(file, location, note))
        elif category in MARKS:
            if note.bbox is None or category in marked:
                found = "no box" if note.bbox is None else "a second box"
                raise InputError(file, location, found=found, expected="one box")
            marked[category] = _box(note.bbox)
    return Pose(image.width, image.height, tuple(people), marked)


def _person(file: Path, location: str, note: _Annotation) -> Person:
    numbers = note.keypoints or []
    if len(numbers) != _NUMBERS or any(flag not in {0, 1, 2} for flag in numbers[2::3]):
        raise InputError(
            file,
            location,
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
        raise InputError(file, location, found="neither box nor keypoints", expected="one of them")
    across, down = [point.x for point in points.values()], [point.y for point in points.values()]
    return Person(PersonBox(min(across), min(down), max(across), max(down)), note.score, points)


def _box(bbox: list[float]) -> PersonBox:
    left, top, wide, high = bbox
    return PersonBox(left, top, left + wide, top + high)


Floats = NDArray[np.float32]

LEAST_SCORE = 0.25
"""The minimum score of a person; the authors' default for prediction."""

LEAST_OVERLAP = 0.7
"""Two boxes with a larger intersection over union are the same person; the authors' default."""

_ROWS = 5 + 3 * len(KEYPOINTS)
_USUAL_SIDE = 640
_LARGEST_SIDE = 4096  # exported networks have 640 to 1536
_EXPECTED = "an exported ONNX network"
_MAX_MB = 1000  # three times the largest network of this kind


class PoseNetwork:
    """A network by the path of its weights (`yolo export format=onnx`). Its input is one picture, its output `[1, 56, N]`:
    box (centre, size), score, and x, y, confidence of 17 joints for each of N candidates, in pixels of the input.

    Raises `ConfigurationError` where onnxruntime is not installed, `InputError` for a file that can't be read, is no
    network, has another layout (a detector without joints, several classes, other joints), or exceeds the limits of
    time or memory (`NetworkProcess`).
    """

    sees = True

    def __init__(self, weights: Path) -> None:
        try:
            content = read_bytes(weights, _MAX_MB)
        except OSError as error:
            raise InputError(weights, found=error.strerror or "", expected="the weights of a network") from error
        self._weights = weights
        self._sha256 = hashlib.sha256(content).hexdigest()
        self._process = NetworkProcess(weights, "pose", "pip install 'proctor-eval[pose]', or give a file of keypoints")
        need_extra("pose", "a network of keypoints", "cv2")
        self._side = _layout(weights, self._process.load(content))

    @property
    def settings(self) -> dict[str, JsonValue]:
        return {
            "pose": "network",
            "pose_sha256": self._sha256,
            "least_score": LEAST_SCORE,
            "least_overlap": LEAST_OVERLAP,
        }

    def look(self, jpeg: bytes, name: str = "") -> Pose:
        """The people in a picture, by falling score, in its own pixels. `name` is for error messages.

        Raises `InputError` where the network's output has another shape or exceeds its limits, and for a picture that
        can't be read.
        """
        picture = open_picture(jpeg, name)
        box = Letterbox.of(picture.size, self._side)
        raw = self._process.run(box.fitted(picture, self._side))[0]
        if raw.ndim != 3 or raw.shape[:2] != (1, _ROWS):
            raise InputError(self._weights, "output", found=_shape(raw.shape), expected=f"[1, {_ROWS}, candidates]")
        return Pose(picture.width, picture.height, people_of(raw[0], box))


def people_of(rows: Floats, box: Letterbox) -> tuple[Person, ...]:
    """The people in the network's 56 × N numbers: those above `LEAST_SCORE` after non-maximum suppression, by falling
    score."""
    import cv2

    sure = rows[:, rows[4] > LEAST_SCORE].astype(np.float64)
    if not sure.shape[1]:
        return ()
    corners = np.stack([sure[0] - sure[2] / 2, sure[1] - sure[3] / 2, sure[2], sure[3]], axis=1)
    kept = cv2.dnn.NMSBoxes(corners.tolist(), sure[4].tolist(), LEAST_SCORE, LEAST_OVERLAP)
    people = [_detected(sure[:, int(position)], box) for position in np.asarray(kept).ravel()]
    return tuple(sorted(people, key=lambda person: (-person.score, person.box.left)))


def _detected(column: NDArray[np.float64], box: Letterbox) -> Person:
    x, y, wide, high, score = (float(value) for value in column[:5])
    left, top = box.undone(x - wide / 2, y - high / 2)
    right, bottom = box.undone(x + wide / 2, y + high / 2)
    points = {}
    for name, (across, down, confidence) in zip(KEYPOINTS, column[5:].reshape(-1, 3).tolist(), strict=True):
        points[name] = Point(*box.undone(across, down), confidence)
    return Person(PersonBox(left, top, right, bottom), score, points)


def _layout(weights: Path, network: dict[str, Any]) -> tuple[int, int]:
    """The input's width and height. Raises `InputError` for another layout of input or output."""
    inputs, outputs = network["inputs"], network["outputs"]
    shape = list(inputs[0][2]) if len(inputs) == 1 else []
    single = shape[:1] == [1] or not isinstance(next(iter(shape), 0), int)
    if len(shape) != 4 or not single or shape[1] != 3 or inputs[0][1] != "tensor(float)":
        found = ", ".join(f"{kind} {_shape(size)}" for _, kind, size in inputs)
        raise InputError(
            weights, "input", found=found, expected="one tensor(float) [1, 3, height, width] (export without half)"
        )
    given = list(outputs[0])
    rows = given[1] if len(given) == 3 else None
    if len(given) != 3 or (isinstance(rows, int) and rows != _ROWS):
        expected = f"[1, {_ROWS}, candidates]: box, score of one class, {len(KEYPOINTS)} joints (YOLOv8-pose)"
        raise InputError(weights, "output", found=_shape(given), expected=expected)
    high, wide = (side if isinstance(side, int) and side > 0 else _USUAL_SIDE for side in shape[2:])
    if max(high, wide) > _LARGEST_SIDE:
        found, expected = f"pictures of {wide:,} × {high:,}", f"at most {_LARGEST_SIDE:,} pixels a side"
        raise InputError(weights, "input", found=found, expected=expected)
    return wide, high


def _shape(shape: Any) -> str:
    return f"[{', '.join(map(str, shape))}]"


PoseSource = KeypointFile | PoseNetwork
"""Finds the people in pictures. One with `sees` False uses the name only, and so knows what a view under another condition
may not show."""


def open_pose(path: Path) -> PoseSource:
    """A network (`.onnx`) or a file of keypoints (`.json`). Raises `InputError` for another suffix, and as `PoseNetwork`
    and `KeypointFile`."""
    if path.suffix.casefold() == ".onnx":
        return PoseNetwork(path)
    if path.suffix.casefold() == ".json":
        return KeypointFile(path)
    raise InputError(path, found=f"the extension {path.suffix!r}", expected=".onnx (a network) or .json (keypoints)")

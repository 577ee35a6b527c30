"""People by an exported YOLOv8-pose network, run by onnxruntime on the processor."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import ConfigurationError, InputError
from proctor.core.files import read_bytes
from proctor.media.pose.keypoints import KEYPOINTS, Box, Person, Point, Pose

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["LEAST_OVERLAP", "LEAST_SCORE", "Letterbox", "PoseNetwork", "people_of"]

Floats = NDArray[np.float32]

LEAST_SCORE = 0.25
"""Of a person, to count as found; the makers' own default when predicting."""

LEAST_OVERLAP = 0.7
"""Two boxes that overlap more (intersection over union) are the same person; the makers' own default."""

_ROWS = 5 + 3 * len(KEYPOINTS)
_USUAL_SIDE = 640
_GREY = 114
_MOST_MB = 1000  # the largest networks of this kind have a third of it


@dataclass(frozen=True, slots=True)
class Letterbox:
    """How a picture was fitted into the network's input: scaled alike both ways, centred, the rest grey."""

    scale: float
    left: int
    top: int

    @staticmethod
    def of(picture: tuple[int, int], inside: tuple[int, int]) -> Letterbox:
        """For a picture of width × height inside an input of width × height.

        >>> Letterbox.of((1280, 720), (640, 640))
        Letterbox(scale=0.5, left=0, top=140)
        """
        scale = min(inside[0] / picture[0], inside[1] / picture[1])
        wide, high = round(picture[0] * scale), round(picture[1] * scale)
        return Letterbox(scale, (inside[0] - wide) // 2, (inside[1] - high) // 2)

    def undone(self, x: float, y: float) -> tuple[float, float]:
        """From the input's pixels to the picture's.

        >>> Letterbox.of((1280, 720), (640, 640)).undone(320, 320)
        (640.0, 360.0)
        """
        return (x - self.left) / self.scale, (y - self.top) / self.scale


class PoseNetwork:
    """A network by the path of its weights (`yolo export format=onnx`): one picture in, `[1, 56, N]` out: box
    (centre, size), score, and x, y, confidence of 17 joints for each of N candidates, in pixels of the input.

    Raises `ConfigurationError` where onnxruntime is not installed, `InputError` for a file that can't be read, is
    no network, or has another layout (a detector without joints, several classes, other joints).
    """

    def __init__(self, weights: Path) -> None:
        try:
            content = read_bytes(weights, _MOST_MB)
        except OSError as error:
            raise InputError(
                weights, found=error.strerror or "", expected="the weights of a network"
            ) from error
        self._weights = weights
        self._sha256 = hashlib.sha256(content).hexdigest()
        self._session = _session(weights, content)
        self._input, self._side = _layout(weights, self._session)

    @property
    def sees(self) -> bool:
        """It looks at the picture."""
        return True

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The weights by hash, and the thresholds."""
        return {
            "pose": "network",
            "pose_sha256": self._sha256,
            "least_score": LEAST_SCORE,
            "least_overlap": LEAST_OVERLAP,
        }

    def look(self, jpeg: bytes, name: str = "") -> Pose:
        """The people in a picture, the surest first, in its own pixels. `name` is for messages alone.

        Raises `InputError` where the network gives something else than it promised, or the picture can't be read.
        """
        picture = _opened(jpeg, name)
        box = Letterbox.of(picture.size, self._side)
        output = self._session.run(None, {self._input: _fitted(picture, box, self._side)})[0]
        raw = np.asarray(output, dtype=np.float32)
        if raw.ndim != 3 or raw.shape[:2] != (1, _ROWS):
            raise InputError(
                self._weights, "output", found=_shape(raw.shape), expected=f"[1, {_ROWS}, candidates]"
            )
        return Pose(picture.width, picture.height, people_of(raw[0], box))


def people_of(rows: Floats, box: Letterbox) -> tuple[Person, ...]:
    """From the network's 56 × N numbers to people: those above `LEAST_SCORE`, one for each group of boxes that
    overlap (the surest of them), sorted by falling score."""
    import cv2

    sure = rows[:, rows[4] > LEAST_SCORE].astype(np.float64)
    if not sure.shape[1]:
        return ()
    corners = np.stack([sure[0] - sure[2] / 2, sure[1] - sure[3] / 2, sure[2], sure[3]], axis=1)
    kept = cv2.dnn.NMSBoxes(corners.tolist(), sure[4].tolist(), LEAST_SCORE, LEAST_OVERLAP)
    people = [_person(sure[:, int(place)], box) for place in np.asarray(kept).ravel()]
    return tuple(sorted(people, key=lambda person: (-person.score, person.box.left)))


def _person(column: NDArray[np.float64], box: Letterbox) -> Person:
    x, y, wide, high, score = (float(value) for value in column[:5])
    left, top = box.undone(x - wide / 2, y - high / 2)
    right, bottom = box.undone(x + wide / 2, y + high / 2)
    points = {}
    for name, (across, down, confidence) in zip(KEYPOINTS, column[5:].reshape(-1, 3).tolist(), strict=True):
        points[name] = Point(*box.undone(across, down), confidence)
    return Person(Box(left, top, right, bottom), score, points)


def _session(weights: Path, content: bytes) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigurationError(
            "pose: onnxruntime is not installed: pip install 'proctor-eval[pose]', or give a file of keypoints"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised, and said once
    kinds = onnxruntime.capi.onnxruntime_pybind11_state
    faults = (
        kinds.InvalidProtobuf,
        kinds.InvalidGraph,
        kinds.InvalidArgument,
        kinds.Fail,
        kinds.NotImplemented,
    )
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except faults as error:
        raise InputError(
            weights, found=f"no network that can be run ({error})"[:200], expected="an exported ONNX network"
        ) from error


def _layout(weights: Path, session: Any) -> tuple[str, tuple[int, int]]:
    """The input's name and its width and height; both layouts are checked as far as the file states them."""
    inputs, outputs = session.get_inputs(), session.get_outputs()
    shape = list(inputs[0].shape) if len(inputs) == 1 else []
    single = shape[:1] == [1] or not isinstance(next(iter(shape), 0), int)
    if len(shape) != 4 or not single or shape[1] != 3 or inputs[0].type != "tensor(float)":
        found = ", ".join(f"{one.type} {_shape(one.shape)}" for one in inputs)
        raise InputError(
            weights,
            "input",
            found=found,
            expected="one tensor(float) [1, 3, height, width] (export without half)",
        )
    given = list(outputs[0].shape)
    rows = given[1] if len(given) == 3 else None
    if len(given) != 3 or (isinstance(rows, int) and rows != _ROWS):
        expected = f"[1, {_ROWS}, candidates]: box, score of one class, {len(KEYPOINTS)} joints (YOLOv8-pose)"
        raise InputError(weights, "output", found=_shape(given), expected=expected)
    high, wide = (side if isinstance(side, int) and side > 0 else _USUAL_SIDE for side in shape[2:])
    return str(inputs[0].name), (wide, high)


def _shape(shape: Any) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _opened(jpeg: bytes, name: str) -> Image:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(jpeg)) as opened:
            return opened.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        found = f"an unreadable image ({type(error).__name__})"
        raise InputError(name or None, found=found, expected="an image") from error


def _fitted(picture: Image, box: Letterbox, side: tuple[int, int]) -> Floats:
    """1 × 3 × height × width, RGB from 0 to 1."""
    from PIL import Image

    canvas = Image.new("RGB", side, (_GREY, _GREY, _GREY))
    size = max(1, round(picture.width * box.scale)), max(1, round(picture.height * box.scale))
    canvas.paste(picture.resize(size, Image.Resampling.BILINEAR), (box.left, box.top))
    points = np.asarray(canvas, dtype=np.float32).transpose(2, 0, 1) / np.float32(255)
    return np.ascontiguousarray(points[None])

"""People by an exported YOLOv8-pose network, run by onnxruntime on the processor, in a bounded process of its own: a file
by anybody can hold a loop without end, or a tensor that fills the memory."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import math
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue, ValidationError

from proctor.core import ConfigurationError, InputError, Region, read_bytes
from proctor.tasks.clinicalskillqa.pose import network_process
from proctor.tasks.clinicalskillqa.pose.keypoints import KEYPOINTS, MARKS, KeypointFile, Person, PersonBox, Point, Pose

if TYPE_CHECKING:
    from PIL.Image import Image

Floats = NDArray[np.float32]

LEAST_SCORE = 0.25
"""Of a person, to count as found; the makers' own default when predicting."""

LEAST_OVERLAP = 0.7
"""Two boxes that overlap more (intersection over union) are the same person; the makers' own default."""

_ROWS = 5 + 3 * len(KEYPOINTS)
_USUAL_SIDE = 640
_LARGEST_SIDE = 4096  # exported networks have 640 to 1536
_EXPECTED = "an exported ONNX network"
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
    no network, has another layout (a detector without joints, several classes, other joints), or takes more time or
    memory than any such network (`network_process`).
    """

    def __init__(self, weights: Path) -> None:
        try:
            content = read_bytes(weights, _MOST_MB)
        except OSError as error:
            raise InputError(weights, found=error.strerror or "", expected="the weights of a network") from error
        self._weights = weights
        self._sha256 = hashlib.sha256(content).hexdigest()
        self._process = _Process(weights)
        self._side = _layout(weights, self._process.load(content))

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

        Raises `InputError` where the network gives something else than it promised, takes too much time or memory, or the
        picture can't be read.
        """
        picture = _opened(jpeg, name)
        box = Letterbox.of(picture.size, self._side)
        raw = self._process.run(_fitted(picture, box, self._side))
        if raw.ndim != 3 or raw.shape[:2] != (1, _ROWS):
            raise InputError(self._weights, "output", found=_shape(raw.shape), expected=f"[1, {_ROWS}, candidates]")
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
    return Person(PersonBox(left, top, right, bottom), score, points)


class _Process:
    """The program that runs the network (see `network_process`): started with it, ended with this object."""

    def __init__(self, weights: Path) -> None:
        if importlib.util.find_spec("onnxruntime") is None:
            raise ConfigurationError(
                "pose: onnxruntime is not installed: pip install 'proctor-eval[pose]', or give a file of keypoints"
            )
        self._weights = weights
        self._guard = threading.Lock()
        program = [sys.executable, network_process.__file__]
        child = subprocess.Popen(  # noqa: S603 - this interpreter, and a file of this package
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._into, self._from = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        self._end = weakref.finalize(self, _ended, child)

    def load(self, content: bytes) -> dict[str, Any]:
        """What the network says of its inputs and outputs."""
        with self._guard:
            said = self._asked(len(content).to_bytes(8), content)
        if "found" in said:
            self._end()
            found = f"no network that can be run ({said['found']})"[:200]
            raise InputError(self._weights, found=found, expected=_EXPECTED)
        return said

    def run(self, picture: Floats) -> Floats:
        """The first output for a picture of 1 × 3 × height × width."""
        high, wide = picture.shape[2:]
        with self._guard:
            said = self._asked(high.to_bytes(4) + wide.to_bytes(4), picture.astype("<f4").tobytes())
            if "found" in said:
                found = f"a network that fails on a picture ({said['found']})"[:200]
                raise InputError(self._weights, found=found, expected=_EXPECTED)
            shape = tuple(int(size) for size in said["shape"])
            raw = self._read(4 * math.prod(shape))
        return np.frombuffer(raw, dtype="<f4").reshape(shape)

    def _asked(self, *parts: bytes) -> dict[str, Any]:
        try:
            for part in parts:
                self._into.write(part)
            self._into.flush()
        except (BrokenPipeError, ValueError):
            raise self._stopped() from None
        line = self._from.readline()
        if not line.endswith(b"\n"):
            raise self._stopped()
        return dict(json.loads(line))

    def _read(self, size: int) -> bytes:
        raw = self._from.read(size)
        if len(raw) < size:
            raise self._stopped()
        return raw

    def _stopped(self) -> InputError:
        self._end()
        limits = f"{network_process.MOST_SECONDS} s of the processor or {network_process.MOST_BYTES // 2**30} GB"
        return InputError(
            self._weights, found=f"a network that takes more than {limits}, or ends its process", expected=_EXPECTED
        )


def _ended(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def _layout(weights: Path, said: dict[str, Any]) -> tuple[int, int]:
    """The input's width and height; both layouts are checked as far as the file states them."""
    inputs, outputs = said["inputs"], said["outputs"]
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


def _opened(jpeg: bytes, name: str) -> Image:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(jpeg)) as opened:
            return opened.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
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


class PoseSource(Protocol):
    """Finds the people in pictures. Where it does not look at the picture itself (`sees` is False) it goes by the
    name alone, and so knows what a view under another condition may not show."""

    @property
    def sees(self) -> bool:
        """Whether it looks at the picture."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What changes its findings, for the record."""

    def look(self, jpeg: bytes, name: str) -> Pose:
        """The people in a picture; `name` is the image's, like `i001/A`. Raises `InputError`."""


def open_pose(path: Path) -> PoseSource:
    """By the file's name: `.onnx` is a network, `.json` are keypoints. Raises `InputError` for another one, and what
    `PoseNetwork` and `KeypointFile` raise."""
    if path.suffix.casefold() == ".onnx":
        return PoseNetwork(path)
    if path.suffix.casefold() == ".json":
        return KeypointFile(path)
    raise InputError(path, found=f"the extension {path.suffix!r}", expected=".onnx (a network) or .json (keypoints)")


def marked_region(text: str, what: str) -> Region:
    """A place as a person writes it: `x,y,width,height` in fractions of the picture. Raises `InputError`.

    >>> marked_region("0.25,0.5,0.1,0.2", "chest").height
    0.2
    """
    try:
        x, y, width, height = (float(part) for part in text.split(","))
        return Region(x=x, y=y, width=width, height=height)
    except (ValueError, ValidationError) as error:
        expected = "four fractions of the picture, like 0.25,0.5,0.1,0.2"
        raise InputError(None, what, found=repr(text), expected=expected) from error


def marked_regions(given: Mapping[str, str | None]) -> dict[str, Region]:
    """Those of head, chest and device that are given, read by `marked_region`."""
    return {name: marked_region(text, name) for name in MARKS if (text := given.get(name))}

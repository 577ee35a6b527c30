"""An exported detector in ONNX, by the path of its file: RT-DETR and YOLOS as transformers exports them, and YOLO."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proctor.construction.annotation import AnnotatedBox
from proctor.construction.annotators.proposals import BoxDetection
from proctor.core import InputError, read_bytes
from proctor.models import Letterbox, NetworkProcess

if TYPE_CHECKING:
    from PIL.Image import Image

LEAST_SCORE = 0.05
"""Of a detection that is kept at all; which ones count is decided by `sure_score`."""

_MOST_MB = 1000
_USUAL_SIDE = 640
_LARGEST_SIDE = 4096
_EXPECTED = "[1, queries, classes] and [1, queries, 4] (DETR, YOLOS, RT-DETR), or [1, 4 + classes, candidates] (YOLO)"

Floats = NDArray[np.float32]


class DetectorNetwork:
    """A network that takes one picture of 1 × 3 × height × width (RGB from 0 to 1, fitted in with grey borders) and
    gives class scores and boxes, in one of two layouts: DETR's (logits, and centre and size as shares of the input; one
    more logit than classes is "nothing", and then scores are a softmax, else a sigmoid), or YOLO's (centre and size in
    pixels of the input, and a score from 0 to 1 for each class). `classes` are the names in the network's order.

    Raises `ConfigurationError` where onnxruntime is not installed, and `InputError` for a file that can't be read, is
    no network, or has another layout.
    """

    def __init__(self, weights: Path, classes: Sequence[str]) -> None:
        if not classes:
            raise InputError(weights, "classes", found="none", expected="the names in the network's order")
        try:
            content = read_bytes(weights, _MOST_MB)
        except OSError as error:
            raise InputError(weights, found=error.strerror or "", expected="the weights of a network") from error
        self._weights, self.classes = weights, tuple(classes)
        self.sha256 = hashlib.sha256(content).hexdigest()
        self._process = NetworkProcess(weights, "detector", "pip install 'proctor-eval[pose]'")
        self._side = self._input(self._process.load(content))

    def detections(self, video: str, frames: Iterable[tuple[int, Image]]) -> list[BoxDetection]:
        """What it finds in pictures of a video (with their seconds), in pixels of each, with `LEAST_SCORE` or more.

        Raises `InputError` where it gives something else than it promised, or takes too much time or memory."""
        found = []
        for second, picture in frames:
            letterbox = Letterbox.of(picture.size, self._side)
            scores, boxes = self._read(self._process.run(letterbox.fitted(picture.convert("RGB"), self._side)))
            found += located(video, second, (scores, boxes), self.classes, letterbox)
        return found

    def _input(self, said: dict[str, Any]) -> tuple[int, int]:
        inputs = said["inputs"]
        shape = list(inputs[0][2]) if len(inputs) == 1 else []
        if len(shape) != 4 or shape[1] != 3 or inputs[0][1] != "tensor(float)":
            found = ", ".join(f"{kind} {size}" for _, kind, size in inputs)
            expected = "one tensor(float) [1, 3, height, width] (export without half)"
            raise InputError(self._weights, "input", found=found, expected=expected)
        high, wide = (side if isinstance(side, int) and side > 0 else _USUAL_SIDE for side in shape[2:])
        if max(high, wide) > _LARGEST_SIDE:
            expected = f"at most {_LARGEST_SIDE} pixels a side"
            raise InputError(self._weights, "input", found=f"{wide} x {high}", expected=expected)
        return wide, high

    def _read(self, outputs: list[Floats]) -> tuple[Floats, Floats]:
        """Scores (queries × classes), and centres and sizes in pixels of the input (queries × 4)."""
        n, (wide, high) = len(self.classes), self._side
        if len(outputs) == 1 and outputs[0].ndim == 3 and outputs[0].shape[:2] == (1, 4 + n):
            return outputs[0][0, 4:].T, outputs[0][0, :4].T
        pair = outputs[:2]
        if len(pair) == 2 and all(one.ndim == 3 and one.shape[0] == 1 for one in pair):
            logits, boxes = sorted((one[0] for one in pair), key=lambda one: one.shape[1] == 4)
            if logits.shape[1] in {n, n + 1} and boxes.shape == (len(logits), 4):
                scale = np.array([wide, high, wide, high], dtype=np.float32)
                return probabilities(logits, n), boxes * scale
        shapes = ", ".join(str(list(one.shape)) for one in outputs)
        raise InputError(self._weights, "output", found=f"{shapes} for {n} classes", expected=_EXPECTED)


def probabilities(logits: Floats, classes: int) -> Floats:
    """Scores of the classes from logits (queries × classes, or one more for "nothing").

    >>> probabilities(np.array([[0.0, 0.0]], dtype=np.float32), 2).tolist()
    [[0.5, 0.5]]
    >>> probabilities(np.array([[0.0, 0.0, 0.0]], dtype=np.float32), 2).round(2).tolist()
    [[0.33000001311302185, 0.33000001311302185]]
    """
    if logits.shape[1] == classes:
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -80, 80))), dtype=np.float32)
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray((raised / raised.sum(axis=1, keepdims=True))[:, :classes], dtype=np.float32)


def located(
    video: str, second: int, found: tuple[Floats, Floats], classes: Sequence[str], letterbox: Letterbox
) -> list[BoxDetection]:
    """Detections in the picture's own pixels from scores and boxes (centres and sizes in pixels of the input): each
    query with its surest class; queries below `LEAST_SCORE`, not finite or without extent are left out."""
    scores, boxes = found
    detections = []
    for row, (x, y, wide, high) in zip(scores, boxes.tolist(), strict=True):
        best = int(np.argmax(row))
        score = float(row[best])
        if not (LEAST_SCORE <= score <= 1 and np.isfinite((x, y, wide, high)).all() and wide > 0 and high > 0):
            continue
        left, top = letterbox.undone(x - wide / 2, y - high / 2)
        box = AnnotatedBox(x=left, y=top, width=wide / letterbox.scale, height=high / letterbox.scale)
        detections.append(BoxDetection(video, second, classes[best], box, score))
    return detections

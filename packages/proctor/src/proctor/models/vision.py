"""Networks that look at pictures: encoders of pictures and texts, and ONNX networks in a process of their own."""

from __future__ import annotations

import importlib.util
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ChildEndedError, ChildProcess, ConfigurationError, InputError
from proctor.media import open_picture
from proctor.models import network_process

if TYPE_CHECKING:
    from PIL.Image import Image

Vectors = NDArray[np.float64]


class MultimodalEncoder:
    """A `transformers` model with a picture and a text encoder in one space (CLIP, SigLIP, DermLIP …), by path or id.
    Loaded at its first use, on the CPU.

    Every method raises `ConfigurationError` where it can't be loaded, or is no such model.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._loaded: tuple[Any, Any] | None = None
        self._lock = threading.Lock()  # several answers may want it first

    def see(self, jpegs: Sequence[bytes]) -> Vectors:
        """The vectors of pictures (pictures × dimensions), each of length 1."""
        import torch

        processor, model = self._load()
        pictures = [open_picture(jpeg) for jpeg in jpegs]
        with self._lock, torch.inference_mode():
            return _unit(model.get_image_features(**processor(images=pictures, return_tensors="pt")))

    def read(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts (texts × dimensions), each of length 1. Texts beyond the model's limit are cut."""
        import torch

        processor, model = self._load()
        with self._lock, torch.inference_mode():
            told = processor(text=list(texts), return_tensors="pt", padding="max_length", truncation=True)
            return _unit(model.get_text_features(**told))

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                try:
                    from transformers import AutoModel, AutoProcessor
                    from transformers.utils import logging

                    logging.disable_progress_bar()
                    processor = AutoProcessor.from_pretrained(self.where)
                    model = AutoModel.from_pretrained(self.where).eval()
                except (ImportError, OSError, ValueError, KeyError) as error:
                    reason = str(error).strip().partition("\n")[0]
                    raise ConfigurationError(f"the encoder {self.where!r} can't be loaded: {reason}") from error
                if not (hasattr(model, "get_image_features") and hasattr(model, "get_text_features")):
                    raise ConfigurationError(
                        f"the encoder {self.where!r} is a {type(model).__name__}: expected one of pictures and texts"
                    )
                self._loaded = processor, model
            return self._loaded


def _unit(features: Any) -> Vectors:
    """The vectors at length 1; newer versions of the library wrap them."""
    vectors = np.asarray(getattr(features, "pooler_output", features).float().numpy(), dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.where(lengths > 0, lengths, 1.0)
    return unit


Floats = NDArray[np.float32]

_GREY = 114
_PATIENCE_S = 600.0  # of wall time, since the limit of processor time does not stop a process that waits


@dataclass(frozen=True, slots=True)
class Letterbox:
    """How a picture is fitted into a network's input: scaled with its aspect ratio, centred, on grey."""

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

    def fitted(self, picture: Image, side: tuple[int, int]) -> Floats:
        """The picture as the input of width × height: 1 × 3 × height × width, RGB from 0 to 1."""
        from PIL import Image

        canvas = Image.new("RGB", side, (_GREY, _GREY, _GREY))
        size = max(1, round(picture.width * self.scale)), max(1, round(picture.height * self.scale))
        canvas.paste(picture.resize(size, Image.Resampling.BILINEAR), (self.left, self.top))
        points = np.asarray(canvas, dtype=np.float32).transpose(2, 0, 1) / np.float32(255)
        return np.ascontiguousarray(points[None])


class NetworkProcess:
    """The process that runs an ONNX network (see `network_process`), which ends with this object.

    Raises `ConfigurationError` with the purpose (`what`) and the `remedy` where onnxruntime is not installed."""

    def __init__(self, weights: Path, what: str, remedy: str) -> None:
        if importlib.util.find_spec("onnxruntime") is None:
            raise ConfigurationError(f"{what}: onnxruntime is not installed: {remedy}")
        self._weights = weights
        self._guard = threading.Lock()
        self._child = ChildProcess(network_process.__file__)

    def load(self, content: bytes) -> dict[str, Any]:
        """Loads a network; the description of its inputs and outputs."""
        with self._guard:
            reply, _ = self._ask(len(content).to_bytes(8), content)
        if "found" in reply:
            self._child.end()
            raise self._error(f"no network that can be run ({reply['found']})"[:200])
        return reply

    def run(self, picture: Floats) -> list[Floats]:
        """The outputs for a picture of 1 × 3 × height × width."""
        high, wide = picture.shape[2:]
        with self._guard:
            reply, raws = self._ask(high.to_bytes(4) + wide.to_bytes(4), picture.astype("<f4").tobytes())
        if "found" in reply:
            raise self._error(f"a network that fails on a picture ({reply['found']})"[:200])
        return [
            np.frombuffer(raw, dtype="<f4").reshape(shape) for raw, shape in zip(raws, reply["shapes"], strict=True)
        ]

    def _ask(self, *parts: bytes) -> tuple[dict[str, Any], list[bytes]]:
        """The reply, and the numbers of each output."""
        try:
            reply = self._child.ask(*parts, patience_s=_PATIENCE_S)
            return reply, [self._child.read(4 * math.prod(shape)) for shape in reply.get("shapes", [])]
        except ChildEndedError:
            limits = f"{network_process.MOST_SECONDS} s of the processor or {network_process.MOST_BYTES // 2**30} GB"
            raise self._error(f"a network that takes more than {limits}, or ends its process") from None

    def _error(self, found: str) -> InputError:
        return InputError(self._weights, found=found, expected="an exported ONNX network")

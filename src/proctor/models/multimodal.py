"""Encoders of pictures and texts in one space."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ConfigurationError

Vectors = NDArray[np.float64]


class MultimodalEncoder:
    """A model with a picture and a text encoder in one space (CLIP, SigLIP and their like, DermLIP among them), of the
    `transformers` library, by path or id. Loaded at the first use, on the processor.

    Every method raises `ConfigurationError` where it can't be loaded, or is no such model.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._loaded: tuple[Any, Any] | None = None
        self._lock = threading.Lock()  # several answers may want it first

    def see(self, jpegs: Sequence[bytes]) -> Vectors:
        """Pictures × the dimensions of the space, each of length 1."""
        import torch
        from PIL import Image

        processor, model = self._load()
        pictures = [Image.open(io.BytesIO(jpeg)).convert("RGB") for jpeg in jpegs]
        with self._lock, torch.inference_mode():
            return _unit(model.get_image_features(**processor(images=pictures, return_tensors="pt")))

    def read(self, texts: Sequence[str]) -> Vectors:
        """Texts × the dimensions of the space, each of length 1. Longer texts than it reads are cut by it."""
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

"""What frames look like, as vectors, and their places along the direction in which they differ most."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ConfigurationError
from proctor.systems.seriation.appearance import look

__all__ = ["APPEARANCE", "MultimodalEncoder", "appearance", "first_component"]

Vectors = NDArray[np.float64]

APPEARANCE = "appearance"
"""The name of the features that need no encoder: 32 × 32 points of colour, pictures alone, no text."""


def appearance(jpegs: Sequence[bytes]) -> Vectors:
    """Pictures × 3,072: the same points of colour as `seriation` compares."""
    return np.stack([look(jpeg).ravel() for jpeg in jpegs])


class MultimodalEncoder:
    """A model with a picture and a text encoder in one space (CLIP, SigLIP and their like), of the `transformers`
    library, by path or id. Loaded at the first use, on the processor."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._loaded: tuple[Any, Any] | None = None
        self._lock = threading.Lock()  # several answers may want it first

    def __call__(self, jpegs: Sequence[bytes], texts: Sequence[str]) -> Vectors:
        """Pictures × twice the dimensions of the space: of each its picture's vector and its text's, each of length 1.

        Longer texts than the encoder reads are cut by it. Raises `ConfigurationError` where it can't be loaded, or is
        no such model.
        """
        import torch
        from PIL import Image

        with self._lock:
            processor, model = self._load()
        pictures = [Image.open(io.BytesIO(jpeg)).convert("RGB") for jpeg in jpegs]
        with torch.inference_mode():
            seen = model.get_image_features(**processor(images=pictures, return_tensors="pt"))
            told = processor(text=list(texts), return_tensors="pt", padding="max_length", truncation=True)
            said = model.get_text_features(**told)
        return np.concatenate([_unit(_pooled(seen)), _unit(_pooled(said))], axis=1)

    def _load(self) -> tuple[Any, Any]:
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


def first_component(vectors: Vectors) -> NDArray[np.float64]:
    """The place of each vector (rows) along the first principal component: centred, in the vectors' own unit.

    Which end is positive says nothing. All 0 where the vectors do not differ.

    >>> first_component(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])).round(6).tolist() in ([-5, 0, 5], [5, 0, -5])
    True
    """
    centred = vectors - vectors.mean(axis=0)
    if not centred.any():
        return np.zeros(len(vectors))
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    places: NDArray[np.float64] = u[:, 0] * s[0]
    return places


def _pooled(features: Any) -> NDArray[np.float64]:
    """The vectors; newer versions of the library wrap them."""
    found = getattr(features, "pooler_output", features)
    return np.asarray(found.float().numpy(), dtype=np.float64)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.where(lengths > 0, lengths, 1.0)
    return unit

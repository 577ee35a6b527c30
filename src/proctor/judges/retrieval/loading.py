"""Encoders and cross-encoders that are loaded from a folder, without network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from proctor.core import ConfigurationError, InputError
from proctor.metrics.text import EMBEDDED_ENCODER, Encoder, default_encoder

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

T = TypeVar("T")

PairScorer = Callable[[str, Sequence[str]], NDArray[np.float32]]
"""From a query and texts to how well each of them goes with it; higher is better."""


@cache
def load_sentence_encoder(name: str = EMBEDDED_ENCODER) -> Encoder:
    """The embedded encoder, or the one of sentence-transformers in a folder of this name; on the processor.

    Raises `ConfigurationError` without the extra, and `InputError` for a folder that holds none.
    """
    if name == EMBEDDED_ENCODER:
        return default_encoder()

    def load(folder: str) -> SentenceTransformer:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(folder, device="cpu", local_files_only=True)

    model = _loaded(load, name, "a sentence encoder")

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        found = model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(found, dtype=np.float32)

    return encode


@cache
def load_pair_scorer(name: str) -> PairScorer:
    """The cross-encoder of sentence-transformers in a folder. Raises as `load_sentence_encoder`."""

    def load(folder: str) -> CrossEncoder:
        from sentence_transformers import CrossEncoder

        return CrossEncoder(folder, device="cpu", local_files_only=True)

    model = _loaded(load, name, "a cross-encoder")

    def score(query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        pairs = [(query, one) for one in texts]
        found = model.predict(pairs, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(found, dtype=np.float32).reshape(len(texts))

    return score


def _loaded(load: Callable[[str], T], name: str, what: str) -> T:
    if not Path(name).is_dir():
        raise InputError(name, found="no such folder", expected=f"{what} of sentence-transformers")
    try:
        return load(name)
    except ImportError as error:
        raise ConfigurationError(
            f"{what} needs the extra 'retrieval' (pip install 'proctor-eval[retrieval]'): {error}"
        ) from error
    except (OSError, ValueError, RuntimeError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())
    raise InputError(name, found=f"what can't be loaded ({reason})", expected=what)

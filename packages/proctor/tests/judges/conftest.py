"""What the tests of retrieval share: an encoder that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from proctor.judges import passage_index
from proctor.judges.dimensions import factories  # noqa: F401 - now: imported under a replacement, it would keep it


@pytest.fixture
def light_encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters counted instead of the real encoder, but where a test is about that."""
    if "real_encoder" not in request.fixturenames:
        monkeypatch.setattr(passage_index, "load_sentence_encoder", lambda _: _letters)


@pytest.fixture
def real_encoder() -> None:
    """Named by tests that load the embedded encoder."""


def _letters(texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    table = np.array(
        [[text.lower().count(one) for one in "abcdefghijklmnopqrstuvwxyz"] + [1] for text in texts], dtype=np.float32
    )
    return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True), dtype=np.float32)

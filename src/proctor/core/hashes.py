"""Hashes of content, the same on every machine and day, and the seeded draws that follow from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel, JsonValue

from proctor.core.item import Item

if TYPE_CHECKING:
    import numpy as np


def content_hash(value: JsonValue | BaseModel) -> str:
    """SHA-256 (hex) of a JSON value in canonical form: keys sorted, no spaces, UTF-8.

    >>> content_hash({"b": 1, "a": 2}) == content_hash({"a": 2, "b": 1})
    True
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(items: Iterable[Item]) -> str:
    """The fingerprint of a benchmark: a hash over its items, whatever their order.

    >>> fingerprint([])
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
    """
    digest = hashlib.sha256()
    for one in sorted(content_hash(item) for item in items):
        digest.update(one.encode())
    return digest.hexdigest()


def generator(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for one purpose, independent of who else draws and in which order.

    >>> float(generator(0, "shuffle", "q1").random()) == float(generator(0, "shuffle", "q1").random())
    True
    >>> float(generator(0, "shuffle", "q1").random()) == float(generator(0, "shuffle", "q2").random())
    False
    """
    import numpy as np

    digest = hashlib.sha256("\x1f".join((str(seed), *names)).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))

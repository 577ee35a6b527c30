"""Reproducible hashes of content, and random generators derived from names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel, JsonValue

if TYPE_CHECKING:
    import numpy as np

    from proctor.core.item import Item


def content_hash(value: JsonValue | BaseModel) -> str:
    """SHA-256 (hex) of a JSON value in canonical form: keys sorted, no spaces, UTF-8.

    >>> content_hash({"b": 1, "a": 2}) == content_hash({"a": 2, "b": 1})
    True
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(items: Iterable[Item]) -> str:
    """The fingerprint of a benchmark: a hash of its items, independent of their order.

    >>> fingerprint([])
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
    """
    digest = hashlib.sha256()
    for item_hash in sorted(content_hash(item) for item in items):
        digest.update(item_hash.encode())
    return digest.hexdigest()


def generator(seed: int, *names: str) -> np.random.Generator:
    """A random generator for one purpose, given by `names`; independent of all other draws and their order.

    >>> float(generator(0, "shuffle", "q1").random()) == float(generator(0, "shuffle", "q1").random())
    True
    >>> float(generator(0, "shuffle", "q1").random()) == float(generator(0, "shuffle", "q2").random())
    False
    """
    import numpy as np

    digest = hashlib.sha256("\x1f".join((str(seed), *names)).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))

"""Stable hashes of content: the same data give the same hash on every machine and day."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from pydantic import BaseModel, JsonValue

from proctor.core.item import Item

__all__ = ["content_hash", "fingerprint"]


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

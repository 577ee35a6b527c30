"""Reproducible hashes of content, random generators derived from names, and which repetition draws.

Of several answers to the same question, or judgements of the same answer, no two share a seed or a cached reply. Whoever
asks again (the engine an item, a pass of a judge an answer) says so by `repeating`; whoever draws, sends or keeps a
reply looks at `repetition`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
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


_SEEDS = 2**31  # providers take a 32-bit integer


@dataclass
class Repetition:
    """One repetition under way: its `number` from 0, and the `seed` that it was asked with, if one was derived."""

    number: int = 0
    seed: int | None = None


_CURRENT: ContextVar[Repetition | None] = ContextVar("proctor_repetition", default=None)


@contextmanager
def repeating(number: int) -> Iterator[Repetition]:
    """Everything that is asked within the block belongs to this repetition.

    >>> with repeating(2) as asked:
    ...     repetition(), repetition_seed(7) == asked.seed
    (2, True)
    >>> repetition()
    0
    """
    token = _CURRENT.set(asked := Repetition(number))
    try:
        yield asked
    finally:
        _CURRENT.reset(token)


def repetition() -> int:
    """The number of the repetition under way, from 0; 0 where nobody repeats."""
    current = _CURRENT.get()
    return 0 if current is None else current.number


def repetition_seed(seed: int) -> int:
    """The seed of the repetition under way: `seed` in the first one, in any other one derived from `seed` and its number,
    and noted there.

    >>> repetition_seed(7)
    7
    """
    current = _CURRENT.get()
    if current is None or not current.number:
        return seed
    current.seed = int(generator(seed, "repetition", str(current.number)).integers(_SEEDS))
    return current.seed


def repetition_names() -> tuple[str, ...]:
    """What the repetition under way adds to the names of a draw (`generator`): nothing in the first one.

    >>> repetition_names()
    ()
    >>> with repeating(2):
    ...     repetition_names()
    ('repetition 2',)
    """
    number = repetition()
    return (f"repetition {number}",) if number else ()

"""Randomness with a name: every draw comes from (seed, name), both of which a run records."""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["generator"]


def generator(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for one purpose, independent of who else draws and in which order.

    >>> float(generator(0, "shuffle", "q1").random()) == float(generator(0, "shuffle", "q1").random())
    True
    >>> float(generator(0, "shuffle", "q1").random()) == float(generator(0, "shuffle", "q2").random())
    False
    """
    digest = hashlib.sha256("\x1f".join((str(seed), *names)).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))

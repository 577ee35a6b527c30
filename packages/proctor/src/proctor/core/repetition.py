"""Which of several answers to the same question is asked for, and the seed that it is asked with.

Whoever asks again (the engine an item, a pass of a judge an answer) says so by `repeating`; whoever draws, sends or
keeps a reply looks here: no two repetitions share a seed or a cached reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from proctor.core.hashes import generator

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

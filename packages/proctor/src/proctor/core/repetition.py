"""Which of several answers of a system to an item is being made.

The engine says so around each question, and whatever draws while it is answered asks here: a model's client sends another
seed, and a baseline draws again. So no system needs to know of repetitions, and none can answer two of them from one draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Repetition:
    """The `number` of the answer, from 0, and the `seeds` that were sent to models for it, in order."""

    number: int = 0
    seeds: list[int] = field(default_factory=list)

    def seed(self, first: int) -> int:
        """The seed of this repetition, where that of the first one is `first`; it is recorded.

        >>> asked = Repetition(2)
        >>> asked.seed(7), asked.seeds
        (9, [9])
        """
        seed = first + self.number
        if seed not in self.seeds:
            self.seeds.append(seed)
        return seed


_FIRST = Repetition()
_CURRENT: ContextVar[Repetition] = ContextVar("repetition", default=_FIRST)


def current_repetition() -> Repetition:
    """The repetition that is being answered; outside of a run the first one.

    >>> current_repetition().number
    0
    """
    return _CURRENT.get()


@contextmanager
def as_repetition(number: int) -> Iterator[Repetition]:
    """Whatever is asked inside belongs to this repetition.

    >>> with as_repetition(3):
    ...     current_repetition().number
    3
    """
    token = _CURRENT.set(asked := Repetition(number))
    try:
        yield asked
    finally:
        _CURRENT.reset(token)

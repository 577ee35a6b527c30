"""The system: looks at the frames, strings the most alike ones together, and settles which end comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

from pydantic import JsonValue

from proctor.core import Answer, Frame, InputError, Item, System, View
from proctor.core.formats import OrderingFormat
from proctor.systems.random_guess import RandomGuess
from proctor.systems.seriation.appearance import busyness, look, unlikeness
from proctor.systems.seriation.path import MOST_EXACT, shortest_path
from proctor.systems.wording import reply

__all__ = ["VERSION", "Seriation", "Start", "build"]

VERSION = "1"
"""Changes whenever the same frames may give another answer."""

Start = Literal["given", "plainer", "busier"]


class Seriation:
    """The shortest path through the frames, by how unlike they look: what changes little follows each other.

    Unlikeness is the mean distance of colours over 32 × 32 points. The path is the shortest one for up to
    `MOST_EXACT` frames (Held and Karp), a good one beyond. Looks alone do not tell first from last, so the
    direction is a stated prior: `start="given"` begins with the end that is given earlier (no knowledge),
    `"plainer"` with the end that has less in it (things are brought in), `"busier"` with the other one. Neither
    motion between frames nor anything learned is used. Where it sees nothing, as many frames as there are not
    labels, or black ones, it answers by a seeded guess. `Answer.extra` says which: `{"evidence": "pixels",
    "length": …, "exact": …}` or `{"evidence": "guess", "because": …}`.
    """

    def __init__(self, *, seed: int = 0, start: Start = "given") -> None:
        if start not in get_args(Start):
            expected = f"one of {', '.join(get_args(Start))}"
            raise InputError(None, "start", found=repr(start), expected=expected)
        self._start: Start = start
        self._seed = seed
        self._guess = RandomGuess(seed)

    @property
    def name(self) -> str:
        """As on the command line."""
        return "seriation"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Version, the prior of the direction, and the seed of its guesses."""
        return {"version": VERSION, "start": self._start, "seed": self._seed}

    def supports(self, item: Item) -> bool:
        """Orderings alone."""
        return isinstance(item.answer, OrderingFormat)

    async def answer(self, item: Item, view: View) -> Answer:
        """Looks at every frame once; pictures are read off the event loop. Raises `ValueError` for another format."""
        if not isinstance(item.answer, OrderingFormat):
            raise ValueError(f"an answer of the format {item.answer.kind} has no order")
        frames = await view.frames()
        labels = [frame.label for frame in frames]
        if sorted(labels) != sorted(item.answer.labels):
            return self._guessed(item, view, "there is not one picture for each label")
        return await asyncio.to_thread(self._look, item, view, frames)

    def _look(self, item: Item, view: View, frames: Sequence[Frame]) -> Answer:
        looks = [look(frame.jpeg) for frame in frames]
        apart = unlikeness(looks)
        if not apart.any():
            return self._guessed(item, view, "all pictures look the same")
        path = shortest_path(apart)
        first, last = path[0], path[-1]
        turn = False  # the path already begins with the end that is given earlier
        if self._start != "given":
            turn = (busyness(looks[first]) > busyness(looks[last])) == (self._start == "plainer")
        order = path[::-1] if turn else path
        length = sum(float(apart[a, b]) for a, b in pairwise(order))
        return reply(
            item,
            [frames[place].label for place in order],
            evidence="pixels",
            length=round(length, 6),
            exact=len(frames) <= MOST_EXACT,
        )

    def _guessed(self, item: Item, view: View, because: str) -> Answer:
        return reply(item, self._guess.draw(item, view.span), evidence="guess", because=because)


def build(*, seed: int = 0, start: Start = "given") -> System:
    """Frames strung together by how alike they look; which end comes first is a stated prior.

    `start` is the end that comes first: the one `given` earlier, the `plainer` or the `busier` one.
    """
    return Seriation(seed=seed, start=start)

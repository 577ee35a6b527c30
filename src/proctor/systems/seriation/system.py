"""The system: looks at the frames, strings the most alike ones together, and settles which end comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import Answer, ConfigurationError, Frame, InputError, Item, System, View
from proctor.core.formats import OrderingFormat
from proctor.models import ModelClient
from proctor.systems.methods import method_options
from proctor.systems.prompted_order import Demonstrations
from proctor.systems.random_guess import RandomGuess
from proctor.systems.seriation.appearance import busyness, look, unlikeness
from proctor.systems.seriation.direction import Learned, Start, learned
from proctor.systems.seriation.motion import moved
from proctor.systems.seriation.path import MOST_EXACT, shortest_path
from proctor.systems.wording import reply

__all__ = ["VERSION", "Options", "Seriation", "build", "build_directed"]

VERSION = "3"
"""Changes whenever the same frames may give another answer."""


class Options(BaseModel):
    """`start` is the end that comes first (`given`, `plainer`, `busier`); `learn` a file or folder of solved instances
    that say so instead."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: Start | None = None
    learn: str | None = None


class Seriation:
    """The shortest path through the frames, by how unlike they are: what changes little follows each other.

    Three distances count alike, each in units of its own mean over all pairs: of colours over 32 × 32 points, of how
    far things move by optical flow, and of what is left once they are moved (see `unlikeness` and `moved`). The path is
    the shortest one for up to `MOST_EXACT` frames (Held and Karp), a good one beyond.

    None of these tells first from last: right up to reversal is what this system can be good at. The direction is a
    prior: `start="given"` begins with the end that is given earlier (no knowledge: both ends stay at chance),
    `"plainer"` with the end that has less in it (things are brought in), `"busier"` with the other one; `learned` takes
    it from solved instances, see `Learned`. Where it sees nothing, as many frames as there are not labels, or black
    ones, it answers by a seeded guess. `Answer.extra` says which: `{"evidence": "pixels", "length": …, "exact": …,
    "start": …}` (of the path, 1 being the mean of all pairs) or `{"evidence": "guess", "because": …}`.
    """

    def __init__(self, *, seed: int = 0, start: Start = "given", prior: Learned | None = None) -> None:
        if start not in get_args(Start):
            expected = f"one of {', '.join(get_args(Start))}"
            raise InputError(None, "start", found=repr(start), expected=expected)
        self._start: Start = start
        self._prior = prior
        self._seed = seed
        self._guess = RandomGuess(seed)

    @property
    def name(self) -> str:
        """As on the command line."""
        return "seriation" if self._start == "given" and self._prior is None else "seriation-directed"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Version, the prior of the direction (what was learned as votes), and the seed of its guesses."""
        votes = None if self._prior is None else [sum(self._prior.votes.values()), len(self._prior.votes)]
        start: JsonValue = self._start if votes is None else {"plainer_of_solved": [*votes]}
        return {"version": VERSION, "start": start, "seed": self._seed}

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
        unlike = unlikeness(looks)
        if not unlike.any():
            return self._guessed(item, view, "all pictures look the same")
        apart = _together(unlike, *moved([frame.jpeg for frame in frames]))
        path = shortest_path(apart)
        first, last = path[0], path[-1]
        start = self._start if self._prior is None else self._prior.start(item.id)
        turn = False  # the path already begins with the end that is given earlier
        if start != "given":
            turn = (busyness(looks[first]) > busyness(looks[last])) == (start == "plainer")
        order = path[::-1] if turn else path
        length = sum(float(apart[a, b]) for a, b in pairwise(order))
        return reply(
            item,
            [frames[place].label for place in order],
            evidence="pixels",
            length=round(length, 6),
            exact=len(frames) <= MOST_EXACT,
            start=start,
        )

    def _guessed(self, item: Item, view: View, because: str) -> Answer:
        return reply(item, self._guess.draw(item, view.span), evidence="guess", because=because)


def _together(*tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of tables of distances, each divided by its own mean over the pairs; one that is all 0 says nothing."""
    told = [table * (table.size - len(table)) / table.sum() for table in tables if table.any()]
    together: NDArray[np.float64] = np.mean(told, axis=0)
    return together


def build(*, seed: int = 0, start: Start = "given") -> System:
    """Frames strung together by how alike they are; which end comes first is not known.

    `start` is the end that comes first: the one `given` earlier, the `plainer` or the `busier` one.
    """
    return Seriation(seed=seed, start=start)


def build_directed(
    clients: Sequence[ModelClient], *, seed: int = 0, options: Mapping[str, JsonValue]
) -> System:
    """Frames strung together by how alike they are; a stated or learned prior says which end comes first (no model).

    Raises `ConfigurationError` where models are given, or not exactly one of `start` and `learn`.
    """
    name = "seriation-directed"
    if clients:
        raise ConfigurationError(f"{name}: found {len(clients)} models, expected none: it asks no model")
    chosen = method_options(name, Options, options)
    if (chosen.start is None) == (chosen.learn is None):
        raise ConfigurationError(f"{name}: expected one of the options start and learn")
    if chosen.learn is None:
        return Seriation(seed=seed, start=chosen.start or "given")
    solved = Demonstrations(Path(chosen.learn)).all()
    return Seriation(
        seed=seed,
        prior=learned(
            (one.id, one.frames[one.order[0]].jpeg, one.frames[one.order[-1]].jpeg) for one in solved
        ),
    )

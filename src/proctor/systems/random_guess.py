"""`random`: a valid answer by lot. What blind luck scores."""

from __future__ import annotations

import numpy as np
from pydantic import JsonValue

from proctor.core import Answer, Item, System, View, generator
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    FreeTextFormat,
    OrderingFormat,
    PatternFormat,
    PercentageFormat,
    RatingsFormat,
    TimestampsFormat,
    option_letters,
)
from proctor.systems.wording import reply

__all__ = ["DEFAULT_SPAN_S", "HIGHEST_COUNT", "RandomGuess", "build"]

DEFAULT_SPAN_S = (0.0, 600.0)
"""Where a view shows no video, times are drawn from its first ten minutes."""

HIGHEST_COUNT = 5
"""Counts are drawn from 0 to this, both included."""

_MOST_MOMENTS = 3  # where several times may be named, one to three are


class RandomGuess:
    """Every valid answer by lot; the draw belongs to (seed, item), so that an item gets the same
    answer whenever and in whichever order it is asked.

    Choice: each option alike. Ordering: each permutation alike. Binary: a fair coin. Count: 0 to
    `HIGHEST_COUNT` alike. Percentage: a whole number from 0 to 100. Classes: each class with
    probability 1/2. Timestamps: uniform over the view's span (`DEFAULT_SPAN_S` where it has none), one
    moment, or one to three where several may be named. Ratings: uniform from low to high. Free text
    and texts of a pattern can't be drawn by lot and are not supported.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @property
    def name(self) -> str:
        """As on the command line."""
        return "random"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The seed; nothing else changes the answers."""
        return {"seed": self._seed}

    def supports(self, item: Item) -> bool:
        """All formats but free text and patterns."""
        return not isinstance(item.answer, FreeTextFormat | PatternFormat)

    async def answer(self, item: Item, view: View) -> Answer:
        """Draws; of the view it only asks for the span, and no frame."""
        return reply(item, self.draw(item, view.span))

    def draw(self, item: Item, span: tuple[float, float] | None = None) -> JsonValue:
        """The item's value by lot. Raises `ValueError` for free text and for a choice of nothing."""
        rng = generator(self._seed, "random", item.id)
        form = item.answer
        if isinstance(form, ChoiceFormat):
            return str(rng.choice(option_letters(len(item.options))))
        if isinstance(form, OrderingFormat):
            return [str(label) for label in rng.permutation(list(form.labels))]
        if isinstance(form, ClassesFormat):
            return [name for name in sorted(form.classes) if rng.random() < 0.5]
        if isinstance(form, TimestampsFormat):
            return _moments(form, span or DEFAULT_SPAN_S, rng)
        if isinstance(form, RatingsFormat):
            return {name: float(rng.uniform(form.low, form.high)) for name in form.dimensions}
        return _number(form, rng)


def _moments(form: TimestampsFormat, span: tuple[float, float], rng: np.random.Generator) -> JsonValue:
    count = int(rng.integers(1, _MOST_MOMENTS + 1)) if form.several else 1
    return [float(moment) for moment in sorted(rng.uniform(*span, size=count))]


def _number(
    form: BinaryFormat | CountFormat | PercentageFormat | FreeTextFormat | PatternFormat,
    rng: np.random.Generator,
) -> JsonValue:
    if isinstance(form, BinaryFormat):
        return bool(rng.random() < 0.5)
    if isinstance(form, CountFormat):
        return int(rng.integers(HIGHEST_COUNT + 1))
    if isinstance(form, PercentageFormat):
        return float(rng.integers(101))
    raise ValueError(f"an answer of the format {form.kind} can't be drawn by lot")


def build(*, seed: int = 0) -> System:
    """A valid answer by lot: what blind luck scores."""
    return RandomGuess(seed)

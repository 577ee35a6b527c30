"""`longest-option` and `shortest-option`: a rule that reads no question and sees no video."""

from __future__ import annotations

from pydantic import JsonValue

from proctor.core import Answer, Item, System, View
from proctor.core.formats import ChoiceFormat, OrderingFormat, option_letters
from proctor.systems.random_guess import RandomGuess
from proctor.systems.wording import reply

__all__ = ["OptionLength", "build_longest", "build_shortest"]


class OptionLength:
    """The option with the most (or fewest) characters; of several as long, the first.

    Items of another format than choice have no options to measure: they are answered as `random`
    answers them under the same seed, and `extra["fallback"]` of such an answer is "random". Free text and orders are
    not supported: of orders alone, all that is left would be the row of `random` once more.
    """

    def __init__(self, *, longest: bool, seed: int = 0) -> None:
        self._longest = longest
        self._seed = seed
        self._otherwise = RandomGuess(seed)

    @property
    def name(self) -> str:
        """As on the command line."""
        return "longest-option" if self._longest else "shortest-option"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The seed, which matters only where there are no options."""
        return {"seed": self._seed}

    def supports(self, item: Item) -> bool:
        """All formats but free text and orders."""
        return not isinstance(item.answer, OrderingFormat) and self._otherwise.supports(item)

    async def answer(self, item: Item, view: View) -> Answer:
        """Counts characters; asks the view for nothing where there are options."""
        if isinstance(item.answer, ChoiceFormat):
            return reply(item, self._pick(item.options))
        return reply(item, self._otherwise.draw(item, view.span), fallback=self._otherwise.name)

    def _pick(self, options: tuple[str, ...]) -> str:
        sign = -1 if self._longest else 1
        place = min(range(len(options)), key=lambda index: sign * len(options[index]))
        return option_letters(len(options))[place]


def build_longest(*, seed: int = 0) -> System:
    """The option with the most characters; a rule that reads no question."""
    return OptionLength(longest=True, seed=seed)


def build_shortest(*, seed: int = 0) -> System:
    """The option with the fewest characters; a rule that reads no question."""
    return OptionLength(longest=False, seed=seed)

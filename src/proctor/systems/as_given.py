"""`as-given`: the frames in the order in which they are given. What a shuffle that leaks would reward."""

from __future__ import annotations

from pydantic import JsonValue

from proctor.core import Answer, Item, System, View
from proctor.core.formats import OrderingFormat
from proctor.systems.wording import reply

__all__ = ["AsGiven", "build"]


class AsGiven:
    """Answers with the labels in the order of the item, without a look at the frames. Orderings alone.

    On well-mixed instances it scores at chance: more says that the mixing leaks.
    """

    @property
    def name(self) -> str:
        """As on the command line."""
        return "as-given"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Nothing changes its answers."""
        return {}

    def supports(self, item: Item) -> bool:
        """Orderings alone."""
        return isinstance(item.answer, OrderingFormat)

    async def answer(self, item: Item, view: View) -> Answer:
        """The labels as they are; asks for no frame. Raises `ValueError` for another format."""
        del view
        if not isinstance(item.answer, OrderingFormat):
            raise ValueError(f"an answer of the format {item.answer.kind} has no order")
        return reply(item, list(item.answer.labels))


def build(*, seed: int = 0) -> System:
    """Frames in the order in which they are given; no look at them.

    It draws nothing, so the seed changes nothing.
    """
    del seed
    return AsGiven()

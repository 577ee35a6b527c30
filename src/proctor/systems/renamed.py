"""A system under a name that a person gave it."""

from __future__ import annotations

from pydantic import JsonValue

from proctor.core import Answer, Item, System, View

__all__ = ["Renamed"]


class Renamed:
    """`system`, kept and shown as `name`; everything else is its own."""

    def __init__(self, system: System, name: str) -> None:
        self._system = system
        self.name = name

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Those of the system, and what it calls itself."""
        return {**self._system.settings, "renamed_from": self._system.name}

    def supports(self, item: Item) -> bool:
        """As the system says."""
        return self._system.supports(item)

    async def answer(self, item: Item, view: View) -> Answer:
        """As the system answers."""
        return await self._system.answer(item, view)

"""Solved instances for the plan: their pictures are described once a run, as those of every item are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.core import Frame
from proctor.systems.prompted_order import Demonstration, Demonstrations

__all__ = ["Example", "Examples"]

Described = dict[str, dict[str, str]]
Describe = Callable[[Demonstration], Awaitable[Described]]


@dataclass(frozen=True)
class Example:
    """What the plan is told of a solved instance: each picture's description, the right order, and why."""

    id: str
    described: Mapping[str, Mapping[str, str]]
    order: Sequence[str]
    rationale: str


class Examples:
    """The first `shots` instances of a file or folder that are not the item itself (see `Demonstrations`).

    The descriptions of an instance are asked for by the item that needs them first and kept for all others.
    """

    def __init__(self, source: Path, shots: int) -> None:
        self._demonstrations = Demonstrations(source)
        self._shots = shots
        self._known: dict[str, Example] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @property
    def sha256(self) -> str:
        """Of ids, orders, rationales and names of pictures."""
        return self._demonstrations.sha256

    async def of(
        self, item: str, frames: Sequence[Frame], describe: Describe
    ) -> tuple[list[Example], Mapping[str, str]]:
        """Those to show for an item, and those that were passed over, with the reason."""
        picked = await asyncio.to_thread(self._demonstrations.pick, item, frames, self._shots)
        return [await self._example(one, describe) for one in picked.shown], picked.passed_over

    async def _example(self, one: Demonstration, describe: Describe) -> Example:
        async with self._locks.setdefault(one.id, asyncio.Lock()):
            if one.id not in self._known:
                described = await describe(one)
                self._known[one.id] = Example(one.id, described, one.order, one.rationale.strip())
        return self._known[one.id]

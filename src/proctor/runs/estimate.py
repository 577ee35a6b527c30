"""What a run would ask and send, before it is paid: calls, pictures, tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from proctor.core import Benchmark, Item, System, VideoClip
from proctor.media import CONDITIONS, MediaLibrary
from proctor.runs.plan import PlanOptions, chosen_items
from proctor.runs.store import Store

PICTURE_TOKENS = 300
"""About what models count for a picture of 512 pixels: between 85 and 800, by provider."""
_PROMPT_TOKENS = 150  # what stands around a question in the prompts that come along
_LETTERS = 4  # of English text in a token


@dataclass(frozen=True)
class RunEstimate:
    """One system under one condition: items that are answered `already`, `items` to ask, and about what they take.

    `pictures` is an upper bound; `tokens` are of the input. Both are 0 for systems that ask no model, and of a method
    with several calls an item they are those of one call.
    """

    system: str
    condition: str
    already: int
    items: int
    pictures: int
    tokens: int

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self)


def estimate_runs(
    store: Store | None,
    benchmark: Benchmark,
    systems: Sequence[System],
    conditions: Sequence[str],
    library: MediaLibrary,
    options: PlanOptions,
) -> list[RunEstimate]:
    """Nothing is asked and nothing written. Raises `InputError` for clips that do not lie within their video."""
    items = chosen_items(benchmark, options)
    pictures = {item.id: _pictures(item, library) for item in items} if _any_sees(conditions) else {}
    settled = _settled(store, benchmark.name)
    found = []
    for system in systems:
        asks = "model" in system.settings
        for condition in conditions:
            done = settled.get((system.name, condition), set())
            mine = [item for item in items if system.supports(item)]
            left = [item for item in mine if item.id not in done]
            shown = sum(pictures[item.id] for item in left) if CONDITIONS.get(condition).sees and asks else 0
            words = sum(_words(item) for item in left) if asks else 0
            found.append(
                RunEstimate(
                    system.name, condition, len(mine) - len(left), len(left), shown, words + shown * PICTURE_TOKENS
                )
            )
    return found


def _any_sees(conditions: Sequence[str]) -> bool:
    return any(CONDITIONS.get(name).sees for name in conditions)


def _settled(store: Store | None, benchmark: str) -> dict[tuple[str, str], set[str]]:
    if store is None or benchmark not in store.benchmark_names():
        return {}
    return {(run.system, run.condition): store.settled(run) for run in store.runs(benchmark)}


def _pictures(item: Item, library: MediaLibrary) -> int:
    """How many pictures the view of an item holds at most."""
    count = 0
    for medium in item.media:
        if isinstance(medium, VideoClip):
            start, end = library.span(medium)
            wanted = math.ceil((end - start) * library.settings.fps)
            count += min(library.settings.max_frames, max(1, wanted))
        else:
            count += 1
    return count


def _words(item: Item) -> int:
    text = [item.question, *item.options, item.answer.instruction(item.options)]
    return _PROMPT_TOKENS + sum(len(one) for one in text) // _LETTERS

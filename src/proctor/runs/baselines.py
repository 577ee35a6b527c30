"""What is reached without looking: the baselines beside every system, and the derived facet `guessable`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.core import Benchmark, NeedsReferences, Scorer
from proctor.media import MediaLibrary, view
from proctor.runs.engine import ask
from proctor.runs.plan import run_settings
from proctor.runs.store import Store
from proctor.systems import build_system

if TYPE_CHECKING:
    from proctor.audits.items import ItemAudit

FLOOR = ("random", "majority", "longest-option", "shortest-option", "text-similarity")
"""The embedded systems that never look; they run under `text-only`."""

_CONDITION = "text-only"


def skipped_floor(benchmark: Benchmark, *, seed: int = 0) -> dict[str, str]:
    """The baselines that answer none of the items, each with the reason."""
    items = benchmark.counted()
    known = any(item.reference is not None for item in items)
    skipped = {}
    for name in FLOOR:
        system = build_system(name, seed=seed)
        if not any(system.supports(item) for item in items):
            skipped[name] = "unsupported answer format"
        elif isinstance(system, NeedsReferences) and not known:
            system.learn(items)
            if not any(system.supports(item) for item in items):
                skipped[name] = "no references"
    return skipped


async def add_floor(store: Store, benchmark: Benchmark, scorers: Sequence[Scorer], *, seed: int = 0) -> list[str]:
    """Asks the baselines all items that count, as far as the store has not their answers yet.

    They take seconds and cost nothing. Returns the names of those that were asked. A run of that name
    with other settings (another seed) stays as it is; one that was cut short is completed. Two processes
    that do this at once write the same answers, of which the first ones stay.
    """
    library = MediaLibrary(None)
    known = {run.system: run for run in store.runs(benchmark.name) if run.condition == _CONDITION}
    added = []
    items = benchmark.counted()
    for name in FLOOR:
        system = build_system(name, seed=seed)
        settings = run_settings(system, library, _CONDITION, seed=seed)
        before = known.get(name)
        if before is not None and before.settings != settings:
            continue
        there = set() if before is None else store.settled(before)
        if isinstance(system, NeedsReferences):
            system.learn(items)  # without references it supports nothing, and is skipped
        mine = [item for item in items if system.supports(item) and item.id not in there]
        if not mine:
            continue
        answers = [await ask(system, item, lambda item: view(item, _CONDITION, library)) for item in mine]
        marks = [
            [score for scorer in scorers if scorer.applies(item) for score in await scorer.score(item, answer)]
            for item, answer in zip(mine, answers, strict=True)
        ]
        run = store.start_run(benchmark.name, name, _CONDITION, settings)
        await asyncio.to_thread(store.write, run, list(zip(answers, marks, strict=True)))
        added.append(name)
    return added


GUESSABLE = "guessable"


def audit_stored(
    store: Store, benchmark: str, *, all_items: bool = False, seed: int = 0, draws: int = 2000
) -> ItemAudit:
    """Audits the items of a benchmark that a store has answers to."""
    from proctor.audits.items import audit_items

    card = store.card(benchmark)
    items = [item for item in store.items(benchmark) if all_items or card.counts(item)]
    return audit_items(items, seed=seed, draws=draws)


def derive_guessable(store: Store, benchmark: str, audit: ItemAudit) -> None:
    """Gives the items an audit's flags as long as this store is open; nothing is written."""
    values = {item: "yes" if guessed else "no" for item, guessed in audit.guessable.items()}
    store.derived[benchmark, GUESSABLE] = values


def flag_guessable(store: Store, benchmark: str, audit: ItemAudit) -> int:
    """Keeps an audit's flags in the store, for `--by guessable`; returns how many items are flagged "yes"."""
    values = {item: "yes" if guessed else "no" for item, guessed in audit.guessable.items()}
    store.set_flags(benchmark, GUESSABLE, values)
    return sum(audit.guessable.values())

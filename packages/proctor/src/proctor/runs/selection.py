"""Which runs and items are meant: the names of baselines and of scorers by code, runs by systems and conditions, items by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.core import InputError, one_of
from proctor.runs.store import Run, Store

if TYPE_CHECKING:
    from proctor.core import Item

_MAX_LISTED = 5

CODE = "code"
"""The name of scorers without a model."""

BASELINES = ("random", "majority", "longest-option", "shortest-option", "text-similarity")
"""The built-in baselines; they run under `text-only`."""


def chosen_runs(store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()) -> list[Run]:
    """The runs of a benchmark, of these systems and conditions (none named: all). Raises `InputError` for unknown names."""
    runs = store.runs(benchmark)
    for what, names, known in (
        ("system", systems, {run.system for run in runs}),
        ("condition", conditions, {run.condition for run in runs}),
    ):
        for name in names:
            if name not in known:
                raise InputError(
                    store.shown, found=f"no run with the {what} {name!r}", expected=one_of(sorted(known), name)
                )
    return [
        run
        for run in runs
        if (not systems or run.system in systems) and (not conditions or run.condition in conditions)
    ]


def run_name(run: Run, runs: Sequence[Run], *, short: bool) -> str:
    """The name of a run among others: its system's, with the condition unless it is the system's only run and `short`."""
    once = sum(one.system == run.system for one in runs) == 1
    return run.system if short and once else f"{run.system} / {run.condition}"


def known_items(store: Store, benchmark: str, needed: Sequence[str] = ()) -> dict[str, Item]:
    """The items of a benchmark by id. Raises `InputError`, with the nearest id, if a `needed` one is missing."""
    items = {item.id: item for item in store.items(benchmark)}
    for name in needed:
        if name not in items:
            raise InputError(store.shown, f"item of {benchmark}", found=repr(name), expected=_ids(items, name))
    return items


def _ids(items: dict[str, Item], found: str) -> str:
    """Some known ids: those that contain the input, else the first ones."""
    alike = [name for name in items if found and found in name]
    shown = (alike or list(items))[:_MAX_LISTED]
    hint = "" if alike else one_of(items, found).partition("; ")[2]
    more = f" … ({len(items)} in all)" if len(items) > len(shown) else ""
    return f"one of {', '.join(shown)}{more}" + (f"; {hint}" if hint else "")

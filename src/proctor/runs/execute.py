"""A whole run: plan, ask, and let a judge mark what code can't."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from proctor.core import ProctorError
from proctor.runs.engine import Limits, Tally, ask_all
from proctor.runs.plan import Plan
from proctor.runs.store import Store

__all__ = ["Outcome", "execute", "left_failed"]


@dataclass(frozen=True)
class Outcome:
    """What became of a plan: the tally, and how many answers of its runs stay failed or unasked."""

    tally: Tally
    failed: int
    remaining: int


async def execute(
    store: Store,
    plan: Plan,
    limits: Limits,
    *,
    stop: asyncio.Event | None = None,
    on_change: Callable[[Tally], None] = lambda _: None,
) -> Outcome:
    """Asks what a plan has left to ask. Errors come out one by one, not as a group: a `ProctorError`
    as it is, a store that can't be written as an `InputError`."""
    try:
        tally = await ask_all(plan.jobs, store, limits=limits, stop=stop, on_change=on_change)
    except* ProctorError as errors:
        raise _first(errors) from None
    return Outcome(tally, left_failed(store, plan), tally.remaining)


def left_failed(store: Store, plan: Plan) -> int:
    """Failed answers in the plan's runs."""
    return sum(store.count_answers(run)[1] for run in plan.runs)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first

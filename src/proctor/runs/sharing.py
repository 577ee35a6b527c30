"""Which items a worker asks of runs that it shares with others: parts that nobody has, until all is settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from proctor.core import Item
from proctor.runs.claims import ItemClaims, OpenItems, outlasting

if TYPE_CHECKING:
    from proctor.runs.engine import Job, Tally

    Waiting = asyncio.Queue[tuple[Job, Item, float] | None]

_TOGETHER = 4  # items claimed at once, as many times as are asked at once: media are decoded once, near the worker
_LOOK_S, _LOOK_MOST_S = 0.25, 4.0  # between looks at what other workers have: longer and longer while nothing changes


async def share_out(
    jobs: Sequence[Job], waiting: Waiting, stop: asyncio.Event, tally: Tally, claims: ItemClaims
) -> None:
    """Takes parts of the jobs that nobody has, until all is settled: what another worker has is looked at again, since
    its claim may end. Workers begin at different places, so that they rarely want the same."""
    parts = [(job, part) for job in jobs for part in _in_parts(job.items, _TOGETHER * waiting.maxsize)]
    start = int(claims.worker, 16) % max(1, len(parts))
    parts = parts[start:] + parts[:start]
    rest = _LOOK_S
    while not stop.is_set():
        known = {job.run.id: await asyncio.to_thread(outlasting, partial(claims.look, job.run)) for job in jobs}
        opened = {number: one.free | one.busy for number, one in known.items()}
        parts = [(job, part) for job, part in parts if any(item.id in opened[job.run.id] for item in part)]
        if not parts:
            return
        if await _taken(parts, waiting, stop, tally, claims, known):
            rest = _LOOK_S
        else:
            await asyncio.sleep(rest)
            rest = min(2 * rest, _LOOK_MOST_S, max(_LOOK_S, claims.lease_s / 8))


async def _taken(
    parts: Sequence[tuple[Job, list[Item]]],
    waiting: Waiting,
    stop: asyncio.Event,
    tally: Tally,
    claims: ItemClaims,
    known: Mapping[int, OpenItems],
) -> bool:
    """Asks what is free of the parts, until somebody else took one first; whether there was any."""
    found = False
    for job, part in parts:
        free = {item.id: item for item in part if item.id in known[job.run.id].free}
        if stop.is_set() or not free:
            continue
        if not await asyncio.to_thread(job.has, part[0]):  # all of a part show the same media
            part.clear()
            continue
        mine = await asyncio.to_thread(outlasting, partial(claims.take, job.run, list(free)))
        tally.total += len(mine)
        for name in mine:
            await waiting.put((job, free[name], time.monotonic()))
        found = True
        if len(mine) < len(free):  # others are near: look again
            break
    return found


def _in_parts(items: Sequence[Item], size: int) -> list[list[Item]]:
    """Items of one video together, but not more than `size`."""
    parts: list[list[Item]] = []
    for item in items:
        fits = parts and len(parts[-1]) < size and sources_of(parts[-1][-1]) == sources_of(item)
        parts = parts if fits else [*parts, []]
        parts[-1].append(item)
    return parts


def sources_of(item: Item) -> tuple[str, ...]:
    """The names of an item's media."""
    return tuple(medium.source for medium in item.media)

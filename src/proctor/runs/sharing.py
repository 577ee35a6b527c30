"""Which items a worker asks of runs that it shares with others: parts that nobody has, until all is settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from proctor.core import Item, generator
from proctor.runs.claims import ItemClaims, outlasting

if TYPE_CHECKING:
    from proctor.runs.engine import Job, Tally

    Waiting = asyncio.Queue[tuple[Job, Item, float] | None]

_TOGETHER = 4  # items claimed at once, as many times as are asked at once: media are decoded once, near the worker
_LOOK_S, _LOOK_MOST_S = 0.25, 4.0  # between looks at what other workers have: longer and longer while nothing changes


async def share_out(
    jobs: Sequence[Job], waiting: Waiting, stop: asyncio.Event, tally: Tally, claims: ItemClaims
) -> None:
    """Takes parts of the jobs that nobody has, until all is settled: what another worker has is looked at again, since
    its claim may end. A worker looks at one run after the other, and begins each time at a place that is drawn from its
    name, so that workers rarely want the same."""
    left = {job.run.id: (job, _in_parts(job.items, _TOGETHER * waiting.maxsize)) for job in jobs}
    looks, without, rest, seed = 0, 0, _LOOK_S, int(claims.worker[:8], 16)
    while left and not stop.is_set():
        job, parts = list(left.values())[(seed + looks) % len(left)]
        draws = generator(seed, "look", str(looks))
        looks += 1
        known = await asyncio.to_thread(outlasting, partial(claims.look, job.run))
        opened = known.free | known.busy
        parts = [part for part in parts if any(item.id in opened for item in part)]
        if not parts:
            del left[job.run.id]
            continue
        left[job.run.id] = job, parts
        start = int(draws.integers(len(parts)))
        if await _taken(job, parts[start:] + parts[:start], waiting, stop, tally, claims, known.free):
            without, rest = 0, _LOOK_S
            continue
        without += 1
        if without >= len(left):  # nothing is free anywhere
            await asyncio.sleep(rest)
            without, rest = 0, min(2 * rest, _LOOK_MOST_S, max(_LOOK_S, claims.lease_s / 8))


async def _taken(
    job: Job,
    parts: Sequence[list[Item]],
    waiting: Waiting,
    stop: asyncio.Event,
    tally: Tally,
    claims: ItemClaims,
    free_ids: set[str],
) -> bool:
    """Asks what is free of the parts, until somebody else took one first; whether there was any."""
    found = False
    for part in parts:
        free = {item.id: item for item in part if item.id in free_ids}
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
        if not parts or len(parts[-1]) == size or sources_of(parts[-1][-1]) != sources_of(item):
            parts.append([])
        parts[-1].append(item)
    return parts


def sources_of(item: Item) -> tuple[str, ...]:
    """The names of an item's media."""
    return tuple(medium.source for medium in item.media)

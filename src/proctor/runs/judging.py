"""Letting a judge mark the answers of runs: votes are kept, so a second pass pays for nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.core import Answer, ConfigurationError, Item, MachineryError, Score, Scorer, Status
from proctor.runs.store import Run, Store

__all__ = ["JudgeTally", "judge_all"]

_WRITE_EVERY = 64


@dataclass
class JudgeTally:
    """What has happened so far; `unmarked` answers got no verdict and stay without a score."""

    total: int = 0
    marked: int = 0
    unmarked: int = 0
    last_reason: str = ""


async def judge_all(
    store: Store,
    runs: Sequence[Run],
    scorer: Scorer,
    *,
    all_items: bool = False,
    concurrency: int = 8,
    give_up_after: int = 50,
    stop: asyncio.Event | None = None,
    on_change: Callable[[JudgeTally], None] = lambda _: None,
) -> JudgeTally:
    """Marks every answer to an item that counts (or to all) that the judge applies to and has not marked,
    failed ones left out.

    An answer whose verdict fails for good stays unmarked and is counted. After `give_up_after` of
    those in a row the rest is left for the next call. Raises `ConfigurationError` at once.
    """
    tally = JudgeTally()
    stop = stop or asyncio.Event()
    work = [(run, item, answer) for run in runs for item, answer in _unmarked(store, run, scorer, all_items)]
    tally.total = len(work)
    left = iter(work)
    done: list[tuple[Run, Score]] = []
    in_a_row = 0

    async def worker() -> None:
        nonlocal in_a_row
        for run, item, answer in left:
            if stop.is_set():
                return
            try:
                scores = await scorer.score(item, answer)
            except MachineryError as error:
                tally.unmarked += 1
                tally.last_reason = str(error)
                in_a_row += 1
                if in_a_row >= give_up_after:
                    stop.set()
            else:
                in_a_row = 0
                tally.marked += 1
                done.extend((run, score) for score in scores)
                if len(done) >= _WRITE_EVERY:
                    _flush(store, done)
            on_change(tally)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(concurrency):
                tasks.create_task(worker())
    except* ConfigurationError as errors:
        raise errors.exceptions[0] from None
    finally:
        _flush(store, done)
    return tally


def _unmarked(store: Store, run: Run, scorer: Scorer, all_items: bool) -> list[tuple[Item, Answer]]:
    answers = store.answers(run)
    marked = store.marked(run, scorer.name)
    card = store.card(run.benchmark)
    return [
        (item, answers[item.id])
        for item in store.items(run.benchmark)
        if all_items or card.counts(item)
        if item.id in answers
        and item.id not in marked
        and answers[item.id].status is not Status.FAILED
        and scorer.applies(item)
    ]


def _flush(store: Store, done: list[tuple[Run, Score]]) -> None:
    runs = {run.id: run for run, _ in done}
    for number, run in runs.items():
        store.add_scores(run, [score for owner, score in done if owner.id == number])
    done.clear()

"""Letting a judge mark the answers of runs: votes are kept, so a second pass pays for nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.core import (
    Answer,
    ConfigurationError,
    Item,
    MachineryError,
    Score,
    Scorer,
    Status,
    Usage,
    Vote,
    VoteBook,
)
from proctor.judges import AWAITING_VOTES, UNRESOLVED
from proctor.runs.store import Run, Store
from proctor.runs.table import load_items, load_labels

__all__ = ["JudgeTally", "PaidVotes", "judge_all"]

_WRITE_EVERY = 64


class PaidVotes:
    """A book of votes that adds up what its new votes have cost."""

    def __init__(self, votes: VoteBook) -> None:
        self._votes = votes
        self.count = 0
        self.usage = Usage()

    def get(self, key: str) -> Vote | None:
        """A vote by its key (see `VoteBook`)."""
        return self._votes.get(key)

    def put(self, vote: Vote) -> None:
        """Keeps a vote (see `VoteBook`), which somebody has just paid."""
        self._votes.put(vote)
        self.count += 1
        self.usage += vote.usage


@dataclass
class JudgeTally:
    """What has happened so far: of `total` answers, `marked` ones have a score; `unresolved` ones were judged by a
    panel that came to no majority; `unmarked` ones got no verdict. `awaiting` of the first two lack a judge's
    vote, and are asked again by another pass."""

    total: int = 0
    marked: int = 0
    unresolved: int = 0
    unmarked: int = 0
    awaiting: int = 0
    last_reason: str = ""

    @property
    def done(self) -> int:
        """How many answers have been judged, with whatever end."""
        return self.marked + self.unresolved + self.unmarked

    @property
    def left(self) -> int:
        """How many another pass would ask again."""
        return self.total - self.marked - self.unresolved + self.awaiting

    def count(self, scores: Sequence[Score]) -> None:
        """Counts the scores of one answer."""
        panel = next((score for score in scores if score.metric == UNRESOLVED.name), None)
        if panel is not None and panel.value == 1:
            self.unresolved += 1
        else:
            self.marked += 1
        self.awaiting += panel is not None and panel.label in AWAITING_VOTES


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
    failed ones left out; and those of a panel that lack a judge's vote.

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
                tally.count(scores)
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
    card = store.card(run.benchmark)
    marked = store.marked(run, scorer.name) - _awaiting(store, run, scorer)
    return [
        (item, answers[item.id])
        for item in store.items(run.benchmark)
        if all_items or card.counts(item)
        if item.id in answers
        and item.id not in marked
        and answers[item.id].status is not Status.FAILED
        and scorer.applies(item)
    ]


def _awaiting(store: Store, run: Run, scorer: Scorer) -> set[str]:
    """The items that lack a vote of a panel."""
    if UNRESOLVED not in scorer.metrics:
        return set()
    table = load_items(store, store.card(run.benchmark), all_items=True)
    labels = load_labels(store, run, table, UNRESOLVED.name, scorer.name)
    return {table.ids[place] for place, label in labels.items() if label in AWAITING_VOTES}


def _flush(store: Store, done: list[tuple[Run, Score]]) -> None:
    runs = {run.id: run for run, _ in done}
    for number, run in runs.items():
        store.add_scores(run, [score for owner, score in done if owner.id == number])
    done.clear()

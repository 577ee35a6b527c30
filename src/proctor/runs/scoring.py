"""Scores of stored answers: by code, by judges whose judgements are kept, and recorded ones with their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from proctor.core import (
    ACCURACY,
    HUMAN,
    Answer,
    Benchmark,
    InfrastructureError,
    InputError,
    Item,
    Judgement,
    JudgementCache,
    ProctorError,
    RecordedAnswers,
    RefusalError,
    Score,
    Scorer,
    Status,
    SystemFaultError,
    Usage,
    content_hash,
)
from proctor.judges import AWAITING_VOTES, NO_VERDICT, RESOLVED, TIE, UNRESOLVED, PartialScoresError, WithFallback
from proctor.runs.engine import scores_of
from proctor.runs.settings import refuse_other_metrics
from proctor.runs.store import Run, Store
from proctor.runs.table import load_items, load_labels


async def score_answers(store: Store, runs: Sequence[Run], scorer: Scorer, *, all_items: bool = False) -> int:
    """Scores every answer to an item that counts (or to all) that the scorer applies to; returns how many.

    A score that is there already is replaced: the function may have changed. Raises `InputError` where the store knows
    a metric of that name with another range or direction.
    """
    scored = 0
    for run in runs:
        refuse_other_metrics(store, run.benchmark, scorer.metrics, scorer.name)
        pairs = [pair for pair in _answered(store, run, all_items=all_items) if scorer.applies(pair[0])]
        found: list[Score] = []
        for item, answer in pairs:
            found += await scorer.score(item, answer)
        store.declare_metrics(run.benchmark, scorer.metrics)
        await asyncio.to_thread(store.add_scores, run, found)
        scored += len(pairs)
    return scored


_WRITE_EVERY = 64


@runtime_checkable
class SeesAnswers(Protocol):
    """A scorer that is shown all answers before it scores the first one."""

    async def see(self, answers: Sequence[tuple[Item, Answer]]) -> None:
        """Those of all runs, also the ones that have a score already."""


@dataclass(frozen=True)
class JudgeLimits:
    """How many answers are judged at once, after how many infrastructure errors in a row the rest is left, and how many
    answers are judged at `most` (None: all). `shard` (k, n): only those to the items of part k of n (1 to n), so that n
    processes share the answers of a store; an item's part follows from its id alone."""

    concurrency: int = 8
    give_up_after: int = 50
    most: int | None = None
    shard: tuple[int, int] | None = None

    def takes(self, item: Item) -> bool:
        """Whether answers to the item are in the shard."""
        return self.shard is None or int(content_hash(item.id), 16) % self.shard[1] == self.shard[0] - 1


class PaidVotes:
    """A book of votes that adds up what its new judgements have cost."""

    def __init__(self, votes: JudgementCache) -> None:
        self._votes = votes
        self.count = 0
        self.usage = Usage()

    def get(self, key: str) -> Judgement | None:
        """A vote by its key (see `JudgementCache`)."""
        return self._votes.get(key)

    def put(self, vote: Judgement) -> None:
        """Keeps a vote (see `JudgementCache`), which somebody has just paid."""
        self._votes.put(vote)
        self.count += 1
        self.usage += vote.usage


@dataclass
class JudgeTally:
    """What has happened so far: of `total` answers, `marked` ones have a score; `unresolved` ones were judged by a
    panel that came to no majority; `unmarked` ones got no verdict, and are recorded as unresolved. `awaiting` of the
    first two lack a judge's vote, and are asked again by another pass."""

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
    limits: JudgeLimits | None = None,
    *,
    all_items: bool = False,
    stop: asyncio.Event | None = None,
    on_change: Callable[[JudgeTally], None] = lambda _: None,
) -> JudgeTally:
    """Marks every answer to an item that counts (or to all) that the judge applies to and has not marked,
    failed ones left out; and those that it left unresolved before, as far as another pass may settle them.

    An answer without a verdict (a refusal, no reply of the form, none at all) is recorded as unresolved, so that it is
    shown and asked again, and never leaves a denominator in silence. After `give_up_after` infrastructure errors in a
    row the rest is left for the next call, and so is what is beyond `most`, or in another shard. Raises what the judge raises beside that.
    """
    tally, limits = JudgeTally(), limits or JudgeLimits()
    stop = stop or asyncio.Event()
    open_before = {run.id: _awaiting(store, run, scorer) for run in runs}
    work = []
    for run in runs:
        marked = store.marked(run, scorer.name) - open_before[run.id]
        own = [pair for pair in _answered(store, run, all_items=all_items) if limits.takes(pair[0])]
        work += [(run, *pair) for pair in own if pair[0].id not in marked and scorer.applies(pair[0])]
    if isinstance(scorer, SeesAnswers) and work:
        await scorer.see([pair for run in runs for pair in _answered(store, run, all_items=all_items, failed=True)])
    tally.total = len(work)
    work = work[: limits.most]
    left = iter(work)
    done: list[tuple[Run, Score]] = []
    in_a_row = 0

    async def worker() -> None:
        nonlocal in_a_row
        for run, item, answer in left:
            if stop.is_set():
                return
            scores, broken = await judged(scorer, item, answer, item.id in open_before[run.id], tally)
            done.extend((run, score) for score in scores)
            in_a_row = in_a_row + 1 if broken else 0
            if in_a_row >= limits.give_up_after:
                stop.set()
            if len(done) >= _WRITE_EVERY:
                _flush(store, done, scorer)
            on_change(tally)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(limits.concurrency):
                tasks.create_task(worker())
    except* ProctorError as errors:
        raise errors.exceptions[0] from None
    finally:
        _flush(store, done, scorer)
    return tally


async def judged(
    scorer: Scorer, item: Item, answer: Answer, open_before: bool, tally: JudgeTally
) -> tuple[list[Score], bool]:
    """What is to be recorded of one answer, and whether the infrastructure broke."""
    try:
        scores = await scorer.score(item, answer)
    except (PartialScoresError, InfrastructureError, RefusalError, SystemFaultError) as error:
        tally.unmarked += 1
        tally.last_reason = str(error)
        came = error.scores if isinstance(error, PartialScoresError) else ()
        state = [] if open_before else [_state(item, scorer, NO_VERDICT)]
        return [*came, *state], type(error) is InfrastructureError
    tally.count(scores)
    if open_before and all(one.metric != UNRESOLVED.name for one in scores):
        scores = [*scores, _state(item, scorer, RESOLVED)]
    return scores, False


def _state(item: Item, scorer: Scorer, how: str) -> Score:
    """That an answer has no verdict, or has one now."""
    value = float(how == NO_VERDICT)
    return Score(item_id=item.id, metric=UNRESOLVED.name, value=value, scorer=scorer.name, label=how)


def _answered(store: Store, run: Run, *, all_items: bool, failed: bool = False) -> list[tuple[Item, Answer]]:
    """The answers of a run to items that count (or to all), without the failed ones or with them."""
    answers, card = store.answers(run), store.card(run.benchmark)
    return [
        (item, answers[item.id])
        for item in store.items(run.benchmark)
        if item.id in answers
        and (all_items or card.counts(item))
        and (failed or answers[item.id].status is not Status.FAILED)
    ]


def _awaiting(store: Store, run: Run, scorer: Scorer) -> set[str]:
    """The items that are to be asked again: those without a verdict, those that lack a vote of a panel, and, where
    another judge stands in, those on which a panel is tied."""
    table = load_items(store, store.card(run.benchmark), all_items=True)
    labels = load_labels(store, run, table, UNRESOLVED.name, scorer.name)
    again = AWAITING_VOTES | {TIE} if isinstance(scorer, WithFallback) else AWAITING_VOTES
    return {table.ids[place] for place, label in labels.items() if label in again}


def _flush(store: Store, done: list[tuple[Run, Score]], scorer: Scorer) -> None:
    runs = {run.id: run for run, _ in done}
    if any(score.metric == UNRESOLVED.name for _, score in done):
        formats = tuple(dict.fromkeys(kind for metric in scorer.metrics for kind in metric.formats))
        if any(metric.name == ACCURACY.name for metric in scorer.metrics):
            formats = UNRESOLVED.formats  # a panel's accuracy is completed by code's, its verdicts are on free text
        for name in {run.benchmark for run in runs.values()}:
            store.declare_metrics(name, [replace(UNRESOLVED, formats=formats)])
    for number, run in runs.items():
        store.add_scores(run, [score for owner, score in done if owner.id == number])
    done.clear()


async def import_answers(
    store: Store,
    benchmark: Benchmark,
    recorded: RecordedAnswers,
    *,
    name: str,
    condition: str,
    scorers: Sequence[Scorer],
) -> Run:
    """Keeps recorded answers as the run of system `name` under `condition`, marked by `scorers`.

    Importing the same answers again changes nothing; a name that already has other answers is an
    `InputError`, and nothing is written.
    """
    store.add_benchmark(benchmark)
    items = {item.id: item for item in benchmark.items}
    marked: dict[str, list[Score]] = {answer.item_id: [] for answer in recorded.answers}
    for answer in recorded.answers:
        if answer.status is not Status.FAILED:
            marked[answer.item_id] += await scores_of(scorers, items[answer.item_id], answer)
    return _kept(store, benchmark.name, recorded, marked, (name, condition))


async def import_systems(
    store: Store, benchmark: Benchmark, recorded: Sequence[RecordedAnswers], *, condition: str
) -> list[Run]:
    """Keeps the answers of several systems, each under its own name, with the scores that came with them.

    They may be a part of those that a system has, rated by further people. Raises `InputError` where one of these names
    has another answer already, or a person has rated one otherwise; then nothing is written.
    """
    store.add_benchmark(benchmark)
    for one in recorded:
        _refuse_others(store, benchmark.name, one, (one.system, condition), part=True)
    return [
        _kept(
            store, benchmark.name, one, {given.item_id: [] for given in one.answers}, (one.system, condition), part=True
        )
        for one in recorded
    ]


def _kept(
    store: Store,
    benchmark: str,
    recorded: RecordedAnswers,
    marked: Mapping[str, list[Score]],
    name: tuple[str, str],
    *,
    part: bool = False,
) -> Run:
    """The run of a system under a condition (`name`) with these answers, their recorded scores and those in `marked`."""
    for score in recorded.scores:
        marked[score.item_id].append(score)
    _refuse_others(store, benchmark, recorded, name, part=part)
    settings = recorded.settings | {"notes": list(recorded.notes)}
    run = store.start_run(benchmark, *name, settings)
    with store.owning([run]):
        _refuse_others(store, benchmark, recorded, name, part=part)
        store.put_votes(recorded.votes)
        store.write(run, [(answer, marked[answer.item_id]) for answer in recorded.answers])
    return run


def _refuse_others(
    store: Store, benchmark: str, recorded: RecordedAnswers, name: tuple[str, str], *, part: bool = False
) -> None:
    """Raises `InputError` where the run has answers already, and any of them is another one (or, unless these are a
    `part`, is not among them), and where it has another rating by the same person."""
    runs = {(run.system, run.condition): run for run in store.runs(benchmark)}
    if name not in runs:
        return
    before, given = store.answers(runs[name]), {answer.item_id: answer for answer in recorded.answers}
    if part:
        before = {item: answer for item, answer in before.items() if item in given}
    if before not in ({}, given):
        other = f"a new name: --name {_free(name[0], {system for system, _ in runs})}"
        raise InputError(
            store.shown,
            f"run of {name[0]} under {name[1]}",
            found="other answers already",
            expected=f"the same answers, or {'another --store' if part else other}",
        )
    rows = store.score_rows(runs[name])
    rated = {(row.item_id, row.metric, row.scorer): row.value for row in rows if row.scorer.startswith(HUMAN)}
    for score in recorded.scores:
        value = rated.get((score.item_id, score.metric, score.scorer), score.value)
        if value != score.value:
            place = f"the rating of {score.item_id}, {name[0]}, {score.metric} by {score.scorer.removeprefix(HUMAN)}"
            expected = f"{value:g}, as {store.shown} has it already, or another --store"
            raise InputError(place, found=f"{score.value:g}", expected=expected)


def _free(name: str, taken: set[str]) -> str:
    """The name with the first number from 2 that is not taken."""
    return next(new for number in range(2, len(taken) + 3) if (new := f"{name}-{number}") not in taken)

"""Several workers on the same runs: orders, claims on items by a lease, and which items a worker asks.

An order says how runs are asked, so that a worker needs nothing but the store. Its texts (prompts, lists of media) are
kept as parcels under the hash of their content.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, JsonValue, ValidationError
from sqlalchemy import ARRAY, Connection, Integer, delete, func, literal, or_, select, true, tuple_, update

from proctor.core import Answer, FrozenModel, InputError, Item, Status, first_problem, generator
from proctor.runs import schema
from proctor.runs.bulk_sql import in_parts, whole_numbers
from proctor.runs.database import StoreAwayError, clock, clock_of, outlasting
from proctor.runs.leases import LEASE_S, LONGEST_S, Lease
from proctor.runs.run_leases import ITEMS, RESTING, refuse_owned
from proctor.runs.store import Run, Store

if TYPE_CHECKING:
    from proctor.runs.controls import PausedRuns
    from proctor.runs.engine import Job
    from proctor.runs.tally import Tally

    Waiting = asyncio.Queue[tuple[Job, Item, float] | None]

_LONGEST = 50_000_000


class Order(FrozenModel):
    """How runs of a benchmark are made, as far as it does not depend on the machine.

    `systems` are names, `options` those of the run; `prompt` is the name and the hash of the prompt of models, `media`
    the hash of the list of media ("" where none is shown), `left_out` the items with broken media, `scorers` those that
    come with the benchmark's files, each with its metric.
    """

    form: Literal[1] = 1
    benchmark: str
    systems: tuple[str, ...]
    options: dict[str, JsonValue]
    prompt: tuple[str, str] | None = None
    media: str = ""
    left_out: tuple[str, ...] = ()
    scorers: tuple[tuple[str, str], ...] = Field(default=())


@dataclass(frozen=True)
class OpenOrder:
    """An order and its runs that lack answers. `key` is its hash."""

    key: str
    order: Order
    runs: tuple[Run, ...]


def text_hash(text: str) -> str:
    """The key of a parcel: SHA-256 of its text."""
    return hashlib.sha256(text.encode()).hexdigest()


def put_order(store: Store, order: Order, parcels: Iterable[str], runs: Iterable[tuple[Run, int]]) -> None:
    """Stores an order for these runs (each with its number of answers) and the texts that it names. It replaces a former
    order of the same run."""
    body = order.model_dump_json()
    texts = {text_hash(text): text for text in (body, *parcels)}
    kept, table = store.upsert(schema.parcels), schema.orders
    located = store.upsert(table)
    new = {"parcel": located.excluded.parcel, "answers": located.excluded.answers}
    rows = [{"run": run.id, "parcel": text_hash(body), "answers": count} for run, count in runs]
    with store.writing() as connection:
        connection.execute(
            kept.on_conflict_do_nothing(index_elements=["sha256"]),
            [{"sha256": key, "body": text} for key, text in texts.items()],
        )
        connection.execute(located.on_conflict_do_update(index_elements=["run"], set_=new), rows)


def open_orders(store: Store) -> list[OpenOrder]:
    """The orders with a run that lacks answers, oldest run first. Raises `InputError` for one that can't be read."""
    runs = {run.id: run for name in store.benchmark_names() for run in store.runs(name)}
    found = dict[str, list[Run]]()
    with store.reading() as connection:
        rows = connection.execute(select(schema.orders).order_by(schema.orders.c.run)).all()
    for row in rows:
        if row.run in runs and store.count_answers(runs[row.run])[0] < row.answers:
            found.setdefault(row.parcel, []).append(runs[row.run])
    return [OpenOrder(key, _read(store, key), tuple(own)) for key, own in found.items()]


def read_parcel(store: Store, key: str) -> str:
    """A text by its hash. Raises `InputError` where it is missing or does not match."""
    with store.reading() as connection:
        body = connection.scalar(select(schema.parcels.c.body).where(schema.parcels.c.sha256 == key))
    if body is None or len(body) > _LONGEST or text_hash(body) != key:
        found = "nothing" if body is None else "another text"
        raise InputError(store.shown, f"parcel {key[:12]}", found=found, expected="the text with this hash")
    return str(body)


def _read(store: Store, key: str) -> Order:
    try:
        return Order.model_validate_json(read_parcel(store, key))
    except ValidationError as error:
        found, expected = str(first_problem(error)), "an order that this version reads: update Proctor"
        raise InputError(store.shown, f"order {key[:12]}", found=found, expected=expected) from error


_REST_S = LONGEST_S  # all workers leave a failed item alone this long, or until somebody runs without --share


@dataclass(frozen=True)
class OpenItems:
    """Items of a run without an answer: free ones, and those that a worker has claimed (`busy`). Items that failed
    recently are neither."""

    free: set[str]
    busy: set[str]


class ItemClaims(Lease):
    """One worker's claims on items of shared runs. They are never `lost` all at once: what became of each is seen when its
    answer is written."""

    def __init__(self, store: Store, lease_s: float = LEASE_S) -> None:
        super().__init__(lease_s)
        self.worker = secrets.token_hex(16)
        self.stale = 0
        """Answers dropped because their claim had gone to another worker."""
        self._store = store
        self._held: set[tuple[int, str, int]] = set()
        self._queued: set[tuple[int, str, int]] = set()  # taken and not yet done, whether or not the claim still holds

    @contextmanager
    def sharing(self, runs: Sequence[Run]) -> Iterator[ItemClaims]:
        """Gives these claims, and allows them on items of the runs; releases the remaining ones at the end. Raises `RunTakenError` where a
        process owns one of the runs alone."""
        with self._store.writing() as connection:
            refuse_owned(connection, [run.id for run in runs], self._store.shown)
        try:
            yield self
        finally:
            with suppress(StoreAwayError), self._store.writing() as connection:  # a claim ends by itself
                connection.execute(delete(schema.claims).where(ITEMS.of(self.worker)))

    def look(self, run: Run, repetition: int = 0) -> OpenItems:
        """The items without an answer of this repetition at this moment."""
        table, answers = schema.claims, schema.answers
        with self._store.reading() as connection:
            done = schema.repetition_of(answers, run.id, repetition) & (answers.c.status != Status.FAILED.value)
            live = schema.repetition_of(table, run.id, repetition) & ITEMS.in_force(clock_of(self._store.dialect))
            settled = set(whole_numbers(connection, answers.c.item, done).tolist())
            busy = set(whole_numbers(connection, table.c.item, live & (table.c.worker != RESTING)).tolist())
            resting = set(whole_numbers(connection, table.c.item, live & (table.c.worker == RESTING)).tolist())
        names, taken = self._store.item_numbers(run.benchmark), settled | busy | resting
        free = {name for name, number in names.items() if number not in taken}
        busy -= settled
        own = {item for number, item, k in self._queued.copy() if (number, k) == (run.id, repetition)} & free
        others = {name for name, number in names.items() if number in busy} if busy else set()
        return OpenItems(free - own, others | own)

    def take(self, run: Run, items: Sequence[str], repetition: int = 0) -> list[str]:
        """Claims the items that are free and have no settled answer of this repetition, and returns them. Raises `RunTakenError` where a
        process owns the run alone."""
        with self._lock:
            with nullcontext() if self._held else self._renewing():  # the oldest claim says how fresh all are
                mine = self._take(run, items, repetition)
            self._held |= {(run.id, item, repetition) for item in mine}
            self._queued |= {(run.id, item, repetition) for item in mine}
        return mine

    def done(self, run: Run, item: str, repetition: int = 0) -> None:
        """An item that this worker took is not under way any more: it may be taken again."""
        self._queued.discard((run.id, item, repetition))

    def give_back(self, run: Run, item: str, repetition: int = 0) -> bool:
        """Ends the claim on an item, which any worker may take then. Returns True: this worker has it no longer."""
        number, table = self._store.item_numbers(run.benchmark)[item], schema.claims
        with self._lock, self._store.writing() as connection:
            own = schema.repetition_of(table, run.id, repetition), table.c.item == number, ITEMS.of(self.worker)
            connection.execute(delete(table).where(*own))
            self._held.discard((run.id, item, repetition))
        return True

    def _take(self, run: Run, items: Sequence[str], repetition: int) -> list[str]:
        ids, table, answers = self._store.item_numbers(run.benchmark), schema.claims, schema.answers
        names = {ids[item]: item for item in items}
        now, numbers = clock_of(self._store.dialect), self._listed(sorted(names))  # sorted, against deadlocks
        with self._store.writing() as connection:
            refuse_owned(connection, [run.id], self._store.shown, share=True)
            columns = ["run", "item", "repetition", "worker", "until"]
            mine_until = literal(self.worker), now + self.lease_s
            wanted = select(literal(run.id), numbers.c.value, literal(repetition), *mine_until).where(true())
            new = self._store.upsert(table).from_select(columns, wanted)
            statement = new.on_conflict_do_update(
                index_elements=list(table.primary_key.columns),
                set_={"worker": new.excluded.worker, "until": new.excluded.until},
                # Its own claims, too: one that was made and not confirmed is made again.
                where=or_(~ITEMS.in_force(now), ITEMS.of(self.worker)),
            )
            mine = set(connection.scalars(statement.returning(table.c.item)))
            # Claim first, then look: an answer that came in between is seen here.
            answered = schema.repetition_of(answers, run.id, repetition), answers.c.status != Status.FAILED.value
            done = select(answers.c.item).where(*answered)
            own = self._listed(sorted(mine))
            settled = set(connection.scalars(done.where(answers.c.item.in_(select(own.c.value)))))
            if settled:
                own_run = schema.repetition_of(table, run.id, repetition)
                connection.execute(delete(table).where(own_run, table.c.item.in_(sorted(settled))))
        return [name for number, name in names.items() if number in mine - settled]

    def _listed(self, numbers: Sequence[int]) -> Any:
        """Numbers as a table with the column `value`, so that the statement is compiled once, whatever their count."""
        if self._store.dialect == "postgresql":
            return func.unnest(literal(list(numbers), ARRAY(Integer))).table_valued("value").render_derived()
        return func.json_each(json.dumps(numbers)).table_valued("value")

    def _renew(self) -> None:
        table, items = schema.claims, schema.items
        with self._store.writing() as connection:
            until, returned = clock(connection) + self.lease_s, [table.c.run, table.c.item, table.c.repetition]
            rows = ITEMS.renew(connection, self.worker, until, returning=returned)
            numbers = {row.item for row in rows}
            names = select(items.c.id, items.c.item).where(items.c.id.in_(numbers))
            by_number = {row.id: row.item for row in connection.execute(names)} if numbers else {}
        self._held = {(row.run, by_number[row.item], row.repetition) for row in rows}

    def check(self, connection: Connection) -> None:
        """Nothing: claims are on single items, and each answer is checked (`kept`)."""

    def holds(self, run: Run, item: str, repetition: int = 0) -> bool:
        """Whether this worker still has the claim on an item's repetition: it may have expired while the database was away. Blocks
        where the claims must be renewed first (see `fresh`)."""
        self.confirm()
        return (run.id, item, repetition) in self._held

    def kept(self, connection: Connection, answers: Sequence[tuple[Run, Answer]]) -> list[bool]:
        """Which of these answers may be written in this transaction: those whose claim this worker still has. The claim
        ends; the other items belong to another worker by now."""
        table, indices = schema.claims, dict[tuple[int, bool], list[tuple[int, int]]]()
        keys = [(self._store.item_numbers(run.benchmark)[one.item_id], one.repetition) for run, one in answers]
        for (run, answer), key in zip(answers, keys, strict=True):
            indices.setdefault((run.id, answer.status is Status.FAILED), []).append(key)
        rest = {"worker": RESTING, "until": clock(connection) + _REST_S}
        mine = set[tuple[int, int, int]]()
        for (run_id, failed), some in indices.items():
            for part in in_parts(sorted(some)):
                claimed = tuple_(table.c.item, table.c.repetition).in_(part)
                own = (table.c.run == run_id, claimed, ITEMS.of(self.worker))
                ended = update(table).where(*own).values(rest) if failed else delete(table).where(*own)
                gone = connection.execute(ended.returning(table.c.item, table.c.repetition))
                mine |= {(run_id, row.item, row.repetition) for row in gone}
        found = [(run.id, *key) in mine for (run, _), key in zip(answers, keys, strict=True)]
        self.stale += found.count(False)
        return found


_TOGETHER = 4  # items per claim, as a multiple of the concurrency: items of one video stay with one worker
_LOOK_S, _LOOK_MAX_S = 0.25, 4.0  # seconds between checks of other workers' items; the wait grows while nothing changes


async def share_out(
    jobs: Sequence[Job], waiting: Waiting, stop: asyncio.Event, tally: Tally, claims: ItemClaims, held: PausedRuns
) -> None:
    """Claims free parts of the jobs and queues their items, until every item has an answer. Items of other workers are
    checked again, since their claims may expire. The worker goes through the runs in turn, and begins at a position drawn
    from its name, so that workers rarely want the same items. Paused runs are left alone (`held`). It looks for a free item of a later repetition only where
    no earlier one has any."""
    left = {_job_key(job): (job, _in_parts(job.items, _TOGETHER * waiting.maxsize)) for job in jobs}
    looks, turn, without, rest, seed = 0, 0, 0, _LOOK_S, int(claims.worker[:8], 16)
    while left and not stop.is_set():
        if without >= len(left):  # nothing is free anywhere
            await asyncio.sleep(rest)
            without, rest = 0, min(2 * rest, _LOOK_MAX_S, max(_LOOK_S, claims.lease_s / 8))
            continue
        job, parts = _in_turn(list(left.values()), seed + turn)[without]
        if job.run.id in held.paused:
            without += 1
            continue
        draws = generator(seed, "look", str(looks))
        looks += 1
        known = await asyncio.to_thread(outlasting, partial(claims.look, job.run, job.repetition))
        opened = known.free | known.busy
        parts = [part for part in parts if any(item.id in opened for item in part)]
        if not parts:
            del left[_job_key(job)]
            continue
        left[_job_key(job)] = job, parts
        start = int(draws.integers(len(parts)))
        if await _taken(job, parts[start:] + parts[:start], waiting, stop, tally, claims, known.free):
            turn, without, rest = turn + 1, 0, _LOOK_S
        else:
            without += 1


def _job_key(job: Job) -> tuple[int, int]:
    return job.run.id, job.repetition


def _in_turn(left: Sequence[tuple[Job, list[list[Item]]]], turn: int) -> list[tuple[Job, list[list[Item]]]]:
    """The jobs with their parts: repetition by repetition, and within each beginning with another run each turn."""
    start = turn % len(left)
    return sorted((*left[start:], *left[:start]), key=lambda one: one[0].repetition)


async def _taken(
    job: Job,
    parts: Sequence[list[Item]],
    waiting: Waiting,
    stop: asyncio.Event,
    tally: Tally,
    claims: ItemClaims,
    free_ids: set[str],
) -> bool:
    """Queues the free items of the parts until another worker was faster; whether there was any."""
    found = False
    for part in parts:
        free = {item.id: item for item in part if item.id in free_ids}
        if stop.is_set() or not free:
            continue
        if not await asyncio.to_thread(job.has, part[0]):  # the items of a part share their media
            part.clear()
            continue
        mine = await asyncio.to_thread(outlasting, partial(claims.take, job.run, list(free), job.repetition))
        tally.total += len(mine)
        for name in mine:
            await waiting.put((job, free[name], time.monotonic()))
        found = True
        if len(mine) < len(free):  # another worker took some of these: look again
            break
    return found


def _in_parts(items: Sequence[Item], size: int) -> list[list[Item]]:
    """Runs of at most `size` items of the same media."""
    parts: list[list[Item]] = []
    for item in items:
        if not parts or len(parts[-1]) == size or _sources(parts[-1][-1]) != _sources(item):
            parts.append([])
        parts[-1].append(item)
    return parts


def _sources(item: Item) -> tuple[str, ...]:
    return tuple(medium.source for medium in item.media)

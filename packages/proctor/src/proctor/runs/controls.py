"""Controls of runs from any shell and machine that reaches the store: pausing, resuming, asking single items again, and what a
session of a run wanted; and how the engine keeps a pause.

They stand in tables of their own, which are made when they are first needed: a store without them has none of it, and
reading one changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy import Connection, delete, func, insert, select, tuple_, update

from proctor.core import InputError, Status, count_of
from proctor.runs import schema
from proctor.runs.bulk_sql import in_parts
from proctor.runs.database import StoreAwayError, outlasting
from proctor.runs.store import Run, Store
from proctor.runs.tables import StoredTables, id_column, time_column

if TYPE_CHECKING:
    from proctor.core import Item
    from proctor.runs.engine import Job
    from proctor.runs.tally import Tally

    Waiting = asyncio.Queue[tuple[Job, Item, float] | None]

_metadata = sa.MetaData()

_sessions = sa.Table(
    "run_sessions",  # of each run, what its newest session wanted and how it ended
    _metadata,
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("wanted", sa.Integer, nullable=False),
    time_column("begun"),
    sa.Column("ended", sa.Text, nullable=False),
)

_pauses = sa.Table(
    "run_pauses",
    _metadata,
    sa.Column("run", sa.Integer, primary_key=True),
    time_column("since"),
    sa.Column("reason", sa.Text, nullable=False),
)

_requeued = sa.Table(
    "requeued",  # answers that a person had asked again; the rows stay
    _metadata,
    id_column(),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("item", sa.Integer, nullable=False),
    sa.Column("repetition", sa.Integer, nullable=False),
    sa.Column("status", sa.String(12), nullable=False),
    time_column("at"),
    sa.Column("reason", sa.Text, nullable=False),
)

CONTROLS = StoredTables("controls of runs", "run_controls", 1, (_sessions, _pauses, _requeued))
"""The tables of the controls."""


@dataclass(frozen=True)
class Session:
    """The newest session of a run: how many answers the run has once nothing is left to ask, when it began (UTC), and why
    it ended: "" while it goes on, and if it was killed."""

    wanted: int
    begun: str
    ended: str


@dataclass(frozen=True)
class Pause:
    """Since when a run is paused (UTC), and why."""

    since: str
    reason: str


def now() -> str:
    """The time, UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def begin_session(store: Store, expected: Iterable[tuple[Run, int]]) -> None:
    """Records that a session of these runs begins, each with the number of answers that it wants."""
    rows = [{"run": run.id, "wanted": wanted, "begun": now(), "ended": ""} for run, wanted in expected]
    if not rows:
        return
    make_tables(store, CONTROLS)
    located = store.upsert(_sessions)
    new = {name: located.excluded[name] for name in ("wanted", "begun", "ended")}
    with store.writing() as connection:
        connection.execute(located.on_conflict_do_update(index_elements=["run"], set_=new), rows)


def end_session(store: Store, runs: Sequence[Run], why: str) -> None:
    """Records why the session of these runs ended."""
    with store.writing() as connection:
        own = _sessions.c.run.in_([run.id for run in runs])
        connection.execute(update(_sessions).where(own).values(ended=why))


def sessions(connection: Connection, shown: str) -> dict[int, Session]:
    """The newest session of each run, as far as there is one."""
    if not CONTROLS.known(connection, shown):
        return {}
    return {row.run: Session(row.wanted, row.begun, row.ended) for row in connection.execute(select(_sessions))}


def pauses(connection: Connection, shown: str) -> dict[int, Pause]:
    """The paused runs."""
    if not CONTROLS.known(connection, shown):
        return {}
    return {row.run: Pause(row.since, row.reason) for row in connection.execute(select(_pauses))}


def requeued_counts(connection: Connection, shown: str) -> dict[int, int]:
    """How many answers of each run were asked again by a person."""
    if not CONTROLS.known(connection, shown):
        return {}
    query = select(_requeued.c.run, func.count()).group_by(_requeued.c.run)
    return {int(row[0]): int(row[1]) for row in connection.execute(query)}


def requeued_notes(store: Store, runs: Sequence[Run]) -> tuple[str, ...]:
    """A line for each run of which a person had answers asked again: its figures come of a second try."""
    with store.reading() as connection:
        counts = requeued_counts(connection, store.shown)
    return tuple(
        f"{run.system} / {run.condition}: {count_of(counts[run.id], 'answer')} asked again by a person (proctor status)"
        for run in runs
        if counts.get(run.id)
    )


def pause_runs(store: Store, runs: Sequence[Run], reason: str = "") -> list[Run]:
    """Pauses runs: every process at work on them asks no further item of them, within a second, and goes on when they are
    resumed; answers under way come in. Returns those that were not paused before."""
    make_tables(store, CONTROLS)
    rows = [{"run": run.id, "since": now(), "reason": " ".join(reason.split())} for run in runs]
    keep = store.upsert(_pauses).on_conflict_do_nothing(index_elements=["run"]).returning(_pauses.c.run)
    with store.writing() as connection:
        new = {connection.scalar(keep.values(row)) for row in rows}
    return [run for run in runs if run.id in new]


def resume_runs(store: Store, runs: Sequence[Run]) -> list[Run]:
    """Resumes paused runs. Returns those that were paused."""
    make_tables(store, CONTROLS)
    with store.writing() as connection:
        own = _pauses.c.run.in_([run.id for run in runs])
        gone = set(connection.scalars(delete(_pauses).where(own).returning(_pauses.c.run)))
    return [run for run in runs if run.id in gone]


def requeue(store: Store, runs: Sequence[Run], items: Sequence[str], reason: str) -> int:
    """Has the answers of runs to these items asked again, in all repetitions: they count as failed from now on, without
    scores, and their cost stays. Returns their number. Which answers, their former status, when and why stays on record.

    Workers of a shared run ask them at once, another run asks them when its command is called again. Raises `InputError`
    for an unknown item, an empty reason, and where nothing is answered.
    """
    why = " ".join(reason.split())
    if not why:
        raise InputError("--reason is empty. Say why, in a sentence.")
    make_tables(store, CONTROLS)
    table, count = schema.answers, 0
    with store.writing() as connection:
        for run in runs:
            numbers = _numbers(store, run.benchmark, items)
            for part in in_parts(sorted(numbers)):
                own = table.c.run == run.id, table.c.item.in_(part), table.c.status != Status.FAILED.value
                columns = table.c.item, table.c.repetition, table.c.status
                found = connection.execute(select(*columns).where(*own).with_for_update()).all()
                if not found:
                    continue
                values = {"status": Status.FAILED.value, "reason": f"asked again by a person: {why}"[:500]}
                connection.execute(update(table).where(*own).values(values))
                keys = [(row.item, row.repetition) for row in found]
                for scores in (schema.scores, schema.judge_scores):
                    scored = tuple_(scores.c.item, scores.c.repetition).in_(keys)
                    connection.execute(delete(scores).where(scores.c.run == run.id, scored))
                record = {"run": run.id, "at": now(), "reason": why}
                connection.execute(insert(_requeued), [dict(row._mapping) | record for row in found])  # noqa: SLF001
                count += len(found)
    if not count:
        raise InputError(store.shown, found="no answer to these items that is not failed", expected="at least one")
    return count


def forget_runs(connection: Connection, shown: str, run_ids: Sequence[int]) -> None:
    """Deletes what the controls know of runs that are deleted."""
    if CONTROLS.known(connection, shown):
        for table in (_sessions, _pauses, _requeued):
            connection.execute(delete(table).where(table.c.run.in_(run_ids)))


def make_tables(store: Store, tables: StoredTables) -> None:
    """Makes tables that stand beside a store's own, where they are missing."""
    with store.reading() as connection:
        known = tables.known(connection, store.shown)
    if not known:
        with store.writing() as connection:
            tables.create(connection, store.shown)


def _numbers(store: Store, benchmark: str, items: Sequence[str]) -> list[int]:
    ids = store.item_numbers(benchmark)
    unknown = next((item for item in items if item not in ids), None)
    if unknown is not None:
        raise InputError(store.shown, f"item of {benchmark}", found=repr(unknown), expected="the id of an item")
    return [ids[item] for item in items]


LOOK_S = 1.0
"""The seconds between looks for runs that were paused or resumed."""

_REST_S = 0.25


class PausedRuns:
    """Which of these runs are `paused`, by number, and the items of theirs that were queued before and are set `aside`."""

    def __init__(self, store: Store, runs: Sequence[Run], tally: Tally, on_change: Callable[[Tally], None]) -> None:
        self._store, self._runs = store, {run.id: run for run in runs}
        self._tally, self._on_change = tally, on_change
        self.paused: frozenset[int] = frozenset()
        self.aside: list[tuple[Job, Item]] = []

    async def begin(self) -> None:
        """Looks once, before anything is asked."""
        self._note(await asyncio.to_thread(outlasting, self._look))

    async def watch(self) -> None:
        """Looks repeatedly. A database that can't be reached is reported by those who write to it."""
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(StoreAwayError):
                self._note(await asyncio.to_thread(self._look))

    def _look(self) -> frozenset[int]:
        with self._store.reading() as connection:
            return frozenset(pauses(connection, self._store.shown).keys() & self._runs.keys())

    def _note(self, found: frozenset[int]) -> None:
        if found != self.paused:
            self.paused = found
            names = (self._runs[number] for number in sorted(found))
            self._tally.paused = tuple(f"{run.system} / {run.condition}" for run in names)
            self._on_change(self._tally)


async def feed(jobs: Sequence[Job], waiting: Waiting, stop: asyncio.Event, tally: Tally, held: PausedRuns) -> None:
    """Queues the items of the jobs in order, those of a paused run once it is resumed, until `stop` is set."""
    tally.total += sum(len(job.items) for job in jobs)
    left = [(job, deque(job.items)) for job in jobs if job.items]
    while left and not stop.is_set():
        entry = next((one for one in left if one[0].run.id not in held.paused), None)
        if entry is None:
            await asyncio.sleep(_REST_S)
            continue
        job, items = entry
        await waiting.put((job, items.popleft(), time.monotonic()))
        if not items:
            left.remove(entry)
        if not left:
            await waiting.join()  # of a run that was paused meanwhile, queued items come back
            left, held.aside = [(own, deque([item])) for own, item in held.aside], []


def rejected_items(store: Store, run: Run, repetition: int = 0) -> set[str]:
    """The items whose answer of a repetition failed and that the server would reject again, if it has answered others of
    the run."""
    table, items = schema.answers, schema.items
    own, failed = table.c.run == run.id, table.c.status == Status.FAILED.value
    answered = select(table.c.item).where(own, table.c.status == Status.ANSWERED.value).limit(1)
    mine = schema.repetition_of(table, run.id, repetition)
    query = select(items.c.item, table.c.extra).join(table, table.c.item == items.c.id).where(mine, failed)
    with store.reading() as connection:
        if connection.execute(answered).first() is None:
            return set()
        return {row.item for row in connection.execute(query) if json.loads(row.extra).get(schema.REJECTED)}


def reopen_errors(
    store: Store,
    run: Run,
    items: Sequence[str],
    check: Callable[[Connection], None] = lambda _: None,
    *,
    repetition: int | None = None,
) -> None:
    """Turns a run's errors on these items (in one repetition, or in all) into failed answers without scores, so that the
    next run asks them again. `check` raises in the same transaction where the caller may no longer write."""
    ids, table = store.item_numbers(run.benchmark), schema.answers
    with store.writing() as connection:
        check(connection)
        for part in in_parts(sorted(ids[item] for item in items)):
            own = [table.c.run == run.id, table.c.item.in_(part), table.c.status == Status.ERROR.value]
            own += [] if repetition is None else [table.c.repetition == repetition]
            reopened = update(table).where(*own).values(status=Status.FAILED.value)
            keys = [tuple(row) for row in connection.execute(reopened.returning(table.c.item, table.c.repetition))]
            for scores in (schema.scores, schema.judge_scores):
                scored = tuple_(scores.c.item, scores.c.repetition).in_(keys)
                connection.execute(delete(scores).where(scores.c.run == run.id, scored))

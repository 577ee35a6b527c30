"""Leases of whole runs (see `proctor.runs.leases`): one process asks a run.

An owner's token is random and stands in the run's row, with its process as a hint: where that can be looked up, a run is
free as soon as its owner is gone, and nobody takes it from one that runs. Host names and process numbers alone decide
nothing.
"""

from __future__ import annotations

import os
import secrets
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection, RowMapping, delete, select, update

from proctor.core import Answer, InputError
from proctor.runs import leases, schema
from proctor.runs.database import clock
from proctor.runs.leases import Lease, LeasedRows, holds_at

if TYPE_CHECKING:
    from proctor.runs.store import Run, Store

RUNS = LeasedRows(schema.runs.c.owner, schema.runs.c.owned_until)
"""The leases on whole runs. Nobody owns a run whose owner is ""."""

_FREE = {"owner": "", "owned_until": 0.0}

ITEMS = LeasedRows(schema.claims.c.worker, schema.claims.c.until)
"""The leases on items of shared runs (`proctor.runs.item_leases`). A process that wants a whole run looks at them."""

RESTING = "failed"
"""Stored instead of a worker where an item failed recently."""


_OWNED = ("id", "system", "condition", "owner", "owned_until")  # settings are long


class RunTakenError(InputError):
    """The run has another owner: a living process, or another task in this one."""


class RunLostError(InputError):
    """The run was taken over by another process while this one did not renew its lease."""


@dataclass(frozen=True)
class Process:
    """A process. `location` says where its `pid` has a meaning: the boot of a machine and a PID namespace, "" where it can't
    be known. `started` (kernel ticks) tells it from a later process with the same number."""

    location: str
    pid: int
    started: str
    host: str


def this_process() -> Process:
    """The process that asks."""
    pid = os.getpid()
    return Process(_location(pid), pid, _status(pid)[1], socket.gethostname())


def state_of(process: Process) -> Literal["gone", "running", "unknown"]:
    """What can be said of a process from here. A stopped one, or one of another machine or container, is "unknown"."""
    here = this_process()
    if not here.location or process.location != here.location:
        return "unknown"
    if not Path("/proc").is_dir():
        return "unknown" if _exists(process.pid) else "gone"
    state, started = _status(process.pid)
    if started != process.started or state in {"", "Z", "X"}:
        return "gone"
    return "unknown" if state in {"T", "t"} else "running"


def _location(pid: int) -> str:
    proc = Path("/proc")
    if not proc.is_dir():  # no Linux, so no PID namespaces either
        return f"{socket.gethostname()}/{uuid.getnode():x}"
    try:
        if (proc / "self").readlink() != Path(str(pid)):  # the numbers in /proc are those of another namespace
            return ""
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(proc / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _status(pid: int) -> tuple[str, str]:
    """The state of a process (as in ps) and its start; ("", "") without such a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", ""
    return fields[0], fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_tokens: set[str] = set()
"""The tokens of the owners in this process."""


@contextmanager
def owner() -> Iterator[str]:
    """A new owner within the block, as it stands in the rows of its runs: its token, and its process as a hint."""
    token, here = secrets.token_hex(16), this_process()
    _tokens.add(token)
    try:
        yield f"{token} {here.location or '-'} {here.pid} {here.started or '-'} {here.host}"
    finally:
        _tokens.discard(token)


def _read(owner: str) -> tuple[str, Process]:
    """The token and the process of an owner, as `owner` writes them."""
    token, location, pid, started, host = owner.split(" ", 4)
    return token, Process(location.removeprefix("-"), int(pid), started.removeprefix("-"), host)


def at_work(row: RowMapping, now: float) -> bool:
    """Whether a run has a living owner. `now` is the database's time."""
    if not row["owner"]:
        return False
    token, process = _read(row["owner"])
    here = this_process()
    if process == here and (here.location or token in _tokens):
        return token in _tokens
    state = state_of(process)
    return state == "running" or (state == "unknown" and holds_at(row["owned_until"], now))


def worker_named(row: RowMapping) -> str:
    """The process that owns a run, for people."""
    process = _read(row["owner"])[1]
    return f"process {process.pid} on {process.host}"


def runs_at_work(store: Store, benchmark: str) -> set[int]:
    """The numbers of a benchmark's runs that somebody asks now: a process that owns the run, or workers that share it."""
    table, claims = schema.runs, schema.claims
    columns = [table.c[name] for name in _OWNED]
    of_benchmark = table.c.benchmark == schema.benchmarks.c.id, schema.benchmarks.c.name == benchmark
    with store.reading() as connection:
        now = clock(connection)
        rows = connection.execute(select(*columns).where(*of_benchmark)).mappings().all()
        working = claims.c.worker != RESTING, ITEMS.in_force(now)
        shared = set(connection.scalars(select(claims.c.run).where(*working).distinct()))
    return {int(row["id"]) for row in rows if row["id"] in shared or at_work(row, now)}


def claim(connection: Connection, run_ids: Sequence[int], shown: str, owner: str = "") -> None:
    """Makes `owner` the owner of the runs ("": only within this transaction). Safe to repeat. Raises `RunTakenError` if
    another living owner or workers have one of them."""
    refuse_owned(connection, run_ids, shown, owner=owner)
    table = schema.runs
    mine = {"owner": owner, "owned_until": clock(connection) + leases.LEASE_S} if owner else _FREE
    connection.execute(update(table).where(table.c.id.in_(run_ids)).values(mine))
    # Own first, then look for workers: they check the owner under a lock.
    held = shared_run(connection, run_ids)
    if held is not None:
        row = connection.execute(select(table).where(table.c.id == held)).mappings().one()
        raise _taken(row, shown, "workers at work on it (--share)")
    connection.execute(delete(schema.claims).where(schema.claims.c.run.in_(run_ids)))


def shared_run(connection: Connection, run_ids: Sequence[int]) -> int | None:
    """One of the runs that workers are at work on, if any."""
    table, now = schema.claims, clock(connection)
    live = table.c.run.in_(run_ids), table.c.worker != RESTING, ITEMS.in_force(now)
    return connection.scalar(select(table.c.run).where(*live).limit(1))


def refuse_owned(
    connection: Connection, run_ids: Sequence[int], shown: str, *, owner: str = "", share: bool = False
) -> None:
    """Raises `RunTakenError` if a run has another living owner than `owner`; a silent one loses it. Nobody else takes the
    runs until the transaction ends; with `share`, other workers may look meanwhile."""
    table = schema.runs
    query = select(*(table.c[name] for name in _OWNED)).where(table.c.id.in_(run_ids)).order_by(table.c.id)
    rows = connection.execute(query.with_for_update(read=share, key_share=not share)).mappings().all()
    now = clock(connection)  # after the lock: it may have been waited for
    for row in rows:
        if at_work(row, now) and row["owner"] != owner:
            mine = _read(row["owner"])[1] == this_process()
            who = "another one in this process" if mine else worker_named(row)
            raise _taken(row, shown, f"{who} at work on it")
    silent = [row["id"] for row in rows if row["owner"] not in {"", owner}]
    if silent:
        connection.execute(update(table).where(table.c.id.in_(silent)).values(_FREE))


def _taken(row: RowMapping, shown: str, found: str) -> RunTakenError:
    location = f"run of {row['system']} under {row['condition']}"
    return RunTakenError(shown, location, found=found, expected="one process a run: wait for it, or stop it")


class RunLease(Lease):
    """One owner's lease on runs (`Store.owning`). Once a run has gone to another owner, `lost` says so, and nothing of
    this owner is written for that run any more."""

    def __init__(self, store: Store, runs: Sequence[Run], owner: str) -> None:
        super().__init__(leases.LEASE_S)
        self._store, self._owner = store, owner
        self._runs = {run.id: run for run in runs}

    def take(self) -> None:
        """Becomes the owner of the runs. Raises `RunTakenError`."""
        with self._renewing(), self._store.writing() as connection:
            claim(connection, list(self._runs), self._store.shown, self._owner)

    def _renew(self) -> None:
        table = schema.runs
        with self._store.writing() as connection:
            until, own = clock(connection) + self.lease_s, table.c.id.in_(list(self._runs))
            rows = RUNS.renew(connection, self._owner, until, own, returning=[table.c.id])
        self._note_lost({row.id for row in rows})

    def holds(self, run: Run, item: str, repetition: int = 0) -> bool:
        """Whether this owner may ask an item of the run. Blocks where the lease must be renewed first (see `fresh`)."""
        del run, item, repetition
        self.confirm()
        return self.lost is None

    def give_back(self, run: Run, item: str, repetition: int = 0) -> bool:
        """Whether an item is this owner's no longer: never, since the lease is on whole runs."""
        del run, item, repetition
        return False

    def done(self, run: Run, item: str, repetition: int = 0) -> None:
        """An item is not under way any more, which does not matter here: the lease is on whole runs."""

    def kept(self, connection: Connection, answers: Sequence[tuple[Run, Answer]]) -> list[bool]:
        """Which of these answers may be written in this transaction: those of runs that this owner still has. Nobody takes
        these until the transaction ends."""
        wanted = {run.id for run, _ in answers}
        mine = self._mine(connection, wanted)
        self._note_lost(mine | (self._runs.keys() - wanted))
        return [run.id in mine for run, _ in answers]

    def check(self, connection: Connection) -> None:
        """Raises `RunLostError` unless this owner still has all of the runs, which nobody takes until the transaction
        ends."""
        self._note_lost(self._mine(connection, self._runs))
        if self.lost is not None:
            raise self.lost

    def release(self) -> None:
        """Ends the lease on the runs that this owner still has."""
        table = schema.runs
        with self._store.writing() as connection:
            own = table.c.id.in_(list(self._runs)), RUNS.of(self._owner)
            connection.execute(update(table).where(*own).values(_FREE))

    def _mine(self, connection: Connection, run_ids: Iterable[int]) -> set[int]:
        """Which of the runs this owner still has. Nobody takes these until the transaction ends."""
        table = schema.runs
        own = select(table.c.id).where(table.c.id.in_(list(run_ids)), RUNS.of(self._owner))
        return set(connection.scalars(own.order_by(table.c.id).with_for_update(read=True)))

    def _note_lost(self, mine: set[int]) -> None:
        gone = next((run for number, run in self._runs.items() if number not in mine), None)
        if gone is not None and self.lost is None:
            found = "that another process took it over while this one gave no sign of life"
            expected = "one process a run: answers on disk stay, and that process asks the others"
            location = f"run of {gone.system} under {gone.condition}"
            self.lost = RunLostError(self._store.shown, location, found=found, expected=expected)

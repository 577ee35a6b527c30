"""How runs stand at this moment, as any process that reaches the store sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sqlalchemy import Connection, case, func, select

from proctor.core import Status
from proctor.runs import schema
from proctor.runs.controls import Pause, Session, pauses, requeued_counts, sessions
from proctor.runs.database import clock
from proctor.runs.run_leases import ITEMS, RESTING, at_work, worker_named
from proctor.runs.store import Run, Store

State = Literal["running", "paused", "waiting", "complete", "stopped", "recorded"]

BUSY: frozenset[State] = frozenset({"running", "waiting"})
"""States in which answers come in, or are waited for."""


@dataclass(frozen=True)
class RunStatus:
    """How a run stands.

    `wanted` is how many answers its newest session wants, of all repetitions (None: no session is recorded, as of imported
    answers), `answered` those that are settled, `failed` those that will be asked again, `cost_usd` what all of them cost
    (None if unknown for all), `unpriced` how many have an unknown cost. `by` names who is at work, as far as it is known;
    `why` says why a session ended, or why the run is paused (`since`, UTC). `requeued` answers were asked again by a person.

    States: "running" (somebody is at work), "paused", "waiting" (for `proctor worker`), "complete", "stopped" (the same
    command goes on), "recorded" (no session is known).
    """

    benchmark: str
    system: str
    condition: str
    state: State
    wanted: int | None
    answered: int
    failed: int
    cost_usd: float | None
    unpriced: int
    by: str = ""
    why: str = ""
    since: str = ""
    begun: str = ""
    requeued: int = 0

    @property
    def left(self) -> int | None:
        """How many answers are missing, failed ones included; None where nothing says how many are wanted."""
        return None if self.wanted is None else max(0, self.wanted - self.answered)

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data, with `left`."""
        return asdict(self) | {"left": self.left}


def run_statuses(store: Store, benchmarks: Sequence[str] = ()) -> list[RunStatus]:
    """How all runs of these benchmarks (none named: of all) stand, from one state of the store, in the order of benchmarks,
    systems and conditions. Reads no answer's text."""
    runs = [run for name in benchmarks or store.benchmark_names() for run in store.runs(name)]
    with store.reading() as connection:
        table, now = schema.runs, clock(connection)
        rows = {row["id"]: row for row in connection.execute(select(table)).mappings()}
        counts, workers = _counts(connection), _workers(connection, now)
        ordered = set(connection.scalars(select(schema.orders.c.run)))
        known = sessions(connection, store.shown), pauses(connection, store.shown)
        requeued = requeued_counts(connection, store.shown)
        owned = {number: worker_named(row) for number, row in rows.items() if at_work(row, now)}
    return [
        _status(
            run,
            counts.get(run.id, _NOTHING),
            (known[0].get(run.id), known[1].get(run.id)),
            owned.get(run.id) or workers.get(run.id, ""),
            ordered=run.id in ordered,
            requeued=requeued.get(run.id, 0),
        )
        for run in runs
    ]


@dataclass(frozen=True)
class _Counts:
    answered: int = 0
    failed: int = 0
    cost_usd: float | None = None
    unpriced: int = 0


_NOTHING = _Counts()


def _counts(connection: Connection) -> dict[int, _Counts]:
    table = schema.answers
    failed = func.sum(case((table.c.status == Status.FAILED.value, 1), else_=0))
    unpriced = func.sum(case(((table.c.requests > 0) & table.c.cost_usd.is_(None), 1), else_=0))
    query = select(table.c.run, func.count(), failed, func.sum(table.c.cost_usd), unpriced).group_by(table.c.run)
    return {
        int(run): _Counts(int(every) - int(lost), int(lost), None if cost is None else float(cost), int(without))
        for run, every, lost, cost, without in connection.execute(query)
    }


def _workers(connection: Connection, now: float) -> dict[int, str]:
    """How many workers are at work on each shared run."""
    table = schema.claims
    query = select(table.c.run, func.count(table.c.worker.distinct()))
    live = query.where(table.c.worker != RESTING, ITEMS.in_force(now)).group_by(table.c.run)
    return {run: f"{count} worker{'s' if count > 1 else ''}" for run, count in connection.execute(live)}


def _status(
    run: Run, counts: _Counts, known: tuple[Session | None, Pause | None], by: str, *, ordered: bool, requeued: int
) -> RunStatus:
    session, pause = known
    return RunStatus(
        run.benchmark,
        run.system,
        run.condition,
        _state(session, pause, counts, by, ordered=ordered),
        None if session is None else session.wanted,
        counts.answered,
        counts.failed,
        counts.cost_usd,
        counts.unpriced,
        by=by,
        since="" if pause is None else pause.since,
        begun="" if session is None else session.begun,
        requeued=requeued,
        why=_why(session, pause, by),
    )


def _state(session: Session | None, pause: Pause | None, counts: _Counts, by: str, *, ordered: bool) -> State:
    if pause is not None:
        return "paused"
    if by:
        return "running"
    if session is None:
        return "waiting" if ordered else "recorded"
    if counts.answered >= session.wanted:
        return "complete"
    return "waiting" if ordered else "stopped"


def _why(session: Session | None, pause: Pause | None, by: str) -> str:
    """Why nothing goes on; a session without an end and without anybody at work was killed."""
    if pause is not None:
        return pause.reason
    if by or session is None or session.ended == "done":
        return ""
    return session.ended or "its process is gone"

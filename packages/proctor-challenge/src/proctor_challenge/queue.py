"""The queue: workers lease submissions and renew their leases while they work (see `proctor.runs.leases`). The token of
a lease is its number (`fence`): it grows with each lease, so that a worker with an older one can't write. The time `now`
of every call is that of the database (`Challenge.clock`).

A lease that is not renewed ends. A submission that was leased or running is then queued again, once; after that it is
`lost`, which costs its team nothing. A submission that only has to be scored is leased again as it is, once; after that
it is an error of the scorer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, case, exists, or_, select, update
from sqlalchemy.exc import InterfaceError, OperationalError

from proctor.runs import LEASE_S, Lease, LeasedRows, StoreAwayError
from proctor_challenge.challenge import Challenge
from proctor_challenge.schema import submissions, teams
from proctor_challenge.settings import Kind
from proctor_challenge.states import HOLDING, SubmissionState
from proctor_challenge.submissions import StaleError, changed_state, log_event, move, submission_row
from proctor_web import utc_text

SUBMISSIONS = LeasedRows(submissions.c.fence, submissions.c.lease_until)
"""The leases on submissions. `lease_until` is null where nobody has one."""

OUTAGES = (OperationalError, InterfaceError)
"""The errors of a database that can't be used for now."""

RECEIVED_S = 900.0
"""A submission whose check did not end in this time is cancelled: the check was interrupted."""

KINDS: tuple[Kind, ...] = ("file", "image")
_S = SubmissionState
_HELD = (_S.LEASED, _S.RUNNING, _S.SCORING)


@dataclass(frozen=True)
class Leased:
    """A submission that a worker has leased. `scoring` says that all its answers are there and only have to be
    scored."""

    submission: int
    team: int
    team_name: str
    phase: str
    number: int
    kind: Kind
    upload: str
    suffix: str
    image_digest: str
    seed: int
    worker: str
    fence: int
    scoring: bool

    @property
    def system(self) -> str:
        """The name of its run in the store of answers."""
        return f"{self.team_name}#{self.number}"


def claim(
    connection: Connection,
    worker: str,
    now: datetime,
    lease_s: float,
    *,
    kinds: Sequence[Kind] = KINDS,
    in_order: Sequence[str] = (),
) -> Leased | None:
    """Leases the submission that has waited longest; None for an empty queue. It is one statement, so that each of many
    workers gets another submission, in PostgreSQL without waiting for each other.

    In the phases `in_order`, a submission waits until the earlier ones of its team are done.
    """
    table, other = submissions.c, submissions.alias()
    waits = or_(other.c.state == _S.QUEUED.value, (other.c.state == _S.SCORING.value) & other.c.lease_until.is_(None))
    earlier = submissions.alias()
    same = (earlier.c.team == other.c.team, earlier.c.phase == other.c.phase, earlier.c.id < other.c.id)
    blocked = other.c.phase.in_(in_order) & exists().where(*same, earlier.c.state.in_((_S.RECEIVED, *HOLDING)))
    first = select(other.c.id).where(waits, other.c.kind.in_(kinds), ~blocked).order_by(other.c.id).limit(1)
    state = case((table.state == _S.SCORING.value, _S.SCORING.value), else_=_S.LEASED.value)
    leased = {"state": state, "worker": worker, "fence": table.fence + 1, "lease_until": now.timestamp() + lease_s}
    statement = (
        update(submissions)
        .where(table.id == first.with_for_update(of=other, skip_locked=True).scalar_subquery())
        .values(leased | {"reason": "", "changed": utc_text(now)})
        .returning(*table)
    )
    row = connection.execute(statement).mappings().first()
    if row is None:
        return None
    before = _S.SCORING if row["state"] == _S.SCORING.value else _S.QUEUED
    log_event(connection, row["id"], before, _S(row["state"]), now, worker=worker, fence=row["fence"])
    return _leased(connection, row)


def _leased(connection: Connection, row: RowMapping) -> Leased:
    name = connection.execute(select(teams.c.name).where(teams.c.id == row["team"])).scalar_one()
    kept = ("team", "phase", "number", "kind", "upload", "suffix", "image_digest", "seed", "worker", "fence")
    scoring = row["state"] == _S.SCORING.value
    return Leased(row["id"], team_name=name, scoring=scoring, **{field: row[field] for field in kept})


def beat(
    connection: Connection, leased: Leased, now: datetime, lease_s: float, progress: dict[str, int] | None = None
) -> None:
    """Renews a lease, and records the number of questions by status. Raises `StaleError` when the lease has ended or
    the submission was cancelled: the worker must stop."""
    more = {} if progress is None else {"progress": progress}
    until, returned = now.timestamp() + lease_s, [submissions.c.id]
    if not SUBMISSIONS.renew(connection, leased.fence, until, *_leased_as(leased), returning=returned, **more):
        raise StaleError(f"submission {leased.submission}: the lease {leased.fence} has ended")


def _leased_as(leased: Leased) -> tuple[ColumnElement[bool], ...]:
    """The conditions that a submission is still leased; a `scoring` one may have been given back."""
    table = submissions.c
    return table.id == leased.submission, table.state.in_(_HELD), table.lease_until.is_not(None)


class SubmissionLease(Lease):
    """A worker's lease on a submission, which is `lost` when it has ended or the submission was cancelled."""

    def __init__(self, challenge: Challenge, leased: Leased, lease_s: float = LEASE_S) -> None:
        super().__init__(lease_s)
        self._challenge, self._leased = challenge, leased
        self._counts: dict[str, int] | None = None

    def report(self, counts: dict[str, int]) -> None:
        """Keeps the number of questions by status for the next beat."""
        self._counts = counts

    def _renew(self) -> None:
        try:
            with self._challenge.writing() as connection:
                beat(connection, self._leased, self._challenge.clock(connection), self.lease_s, self._counts)
        except StaleError as error:
            self.lost = error
        except OUTAGES as error:
            found = " ".join(str(error.orig).split())[:200]
            raise StoreAwayError("the challenge", found=found, expected="a database that can be reached") from error


def advance(
    connection: Connection, leased: Leased, after: SubmissionState, now: datetime, *, reason: str = "", **more: Any
) -> RowMapping:
    """Moves a leased submission to the next state. A repeated call changes nothing, for commits that were not
    confirmed. Raises `StaleError` when the lease has ended. At `scoring` all answers are there, so earlier requeues no
    longer count."""
    row = submission_row(connection, leased.submission)
    if (row["state"], row["fence"]) == (after.value, leased.fence):
        return row
    more |= {"requeued": 0} if after is _S.SCORING else {}
    return move(connection, leased.submission, after, now=now, fence=leased.fence, reason=reason, **more)


def held_by(connection: Connection, worker: str) -> Leased | None:
    """The submission that a worker has leased, to be called after a commit that was not confirmed."""
    mine = (submissions.c.worker == worker, submissions.c.state.in_(_HELD))
    row = connection.execute(select(submissions).where(*mine).limit(1)).mappings().first()
    return None if row is None else _leased(connection, row)


def give_back(connection: Connection, leased: Leased, now: datetime, *, counted: bool = True) -> SubmissionState:
    """Ends the lease of a worker that can't continue, through no fault of the submission; returns the new state. It
    counts as a lost lease (`counted`) unless the worker was stopped."""
    held = (SUBMISSIONS.of(leased.fence), *_leased_as(leased))
    row = connection.execute(select(submissions).where(*held).with_for_update()).mappings().first()
    if row is None:
        raise StaleError(f"submission {leased.submission}: the lease {leased.fence} has ended")
    return _ended(connection, row, now, counted=counted)


def expire(connection: Connection, now: datetime) -> list[int]:
    """Ends expired leases and interrupted checks; returns the ids of the submissions. Workers call it before they
    claim."""
    table = submissions.c
    in_force = SUBMISSIONS.in_force(now.timestamp())
    silent = table.state.in_(_HELD) & table.lease_until.is_not(None) & ~in_force
    checked = timedelta(seconds=RECEIVED_S)  # what lies further ahead was written before the clock was set back
    begun = table.changed.between(utc_text(now - checked), utc_text(now + checked))
    unsettled = (table.state == _S.RECEIVED.value) & ~begun
    query = select(submissions).where(or_(silent, unsettled))
    # One order for all processes prevents deadlocks over the rows of quotas.
    ordered = query.order_by(table.team, table.phase, table.id).with_for_update(skip_locked=True)
    rows = connection.execute(ordered).mappings().all()
    for row in rows:
        if row["state"] == _S.RECEIVED.value:
            changed_state(connection, row, _S.CANCELLED, now=now, reason="interrupted")
        else:
            _ended(connection, row, now)
    return [row["id"] for row in rows]


def _ended(connection: Connection, row: RowMapping, now: datetime, *, counted: bool = True) -> SubmissionState:
    """Moves a submission whose lease ended to its next state."""
    requeued = row["requeued"] + int(counted)
    again = requeued <= 1
    if row["state"] != _S.SCORING.value:
        after, reason = (_S.QUEUED, "requeued") if again else (_S.LOST, "lost")
        changed_state(connection, row, after, now=now, reason=reason, requeued=requeued, progress=None)
        return after
    if not again:
        changed_state(connection, row, _S.SCORER_FAULT, now=now, reason="scorer_fault")
        return _S.SCORER_FAULT
    same = (submissions.c.id == row["id"], SUBMISSIONS.of(row["fence"]))
    values = {"lease_until": None, "worker": "", "requeued": requeued, "changed": utc_text(now)}
    connection.execute(update(submissions).where(*same).values(values))
    log_event(connection, row["id"], _S.SCORING, _S.SCORING, now, worker=row["worker"], fence=row["fence"])
    return _S.SCORING

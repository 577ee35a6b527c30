"""The queue: workers lease submissions and renew their leases while they work. A worker whose lease has gone to another
one can't write. The time `now` of every call is that of the database (`Challenge.clock`).

A lease that is not renewed ends. A submission that was leased or running is then queued again, once; after that it is
`lost`, which costs its team nothing. A submission that only has to be scored is leased again as it is, once; after that
it is a fault of the scorer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, case, exists, or_, select, update

from proctor.challenges.schema import submissions, teams
from proctor.challenges.settings import Kind
from proctor.challenges.states import HOLDING, SubmissionState
from proctor.challenges.submissions import StaleError, changed_state, log_event, move, submission_row
from proctor.web import utc_text

LEASE_S = 60.0
"""The seconds that a lease lasts without being renewed; workers renew it four times as often."""

LONGEST_S = 10 * LEASE_S
"""A lease that ends later than this does not hold: it was written by another clock."""

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
    leased = {"state": state, "worker": worker, "fence": table.fence + 1, "lease_until": _until(now, lease_s)}
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
    mine = (submissions.c.id == leased.submission, submissions.c.fence == leased.fence, submissions.c.state.in_(_HELD))
    values: dict[str, Any] = {"lease_until": _until(now, lease_s)}
    if progress is not None:
        values["progress"] = progress
    renewed = update(submissions).where(*mine, submissions.c.lease_until.is_not(None)).values(values)
    if connection.execute(renewed.returning(submissions.c.id)).first() is None:
        raise StaleError(f"submission {leased.submission}: the lease {leased.fence} has ended")


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
    table = submissions.c
    held = (table.id == leased.submission, table.fence == leased.fence, table.state.in_(_HELD))
    renewable = table.lease_until.is_not(None)  # a submission that is `scoring` may have been given back before
    row = connection.execute(select(submissions).where(*held, renewable).with_for_update()).mappings().first()
    if row is None:
        raise StaleError(f"submission {leased.submission}: the lease {leased.fence} has ended")
    return _ended(connection, row, now, counted=counted)


def expire(connection: Connection, now: datetime) -> list[int]:
    """Ends expired leases and interrupted checks; returns the ids of the submissions. Workers call it before they
    claim."""
    table = submissions.c
    # What lies too far ahead was written before the clock was set back.
    held = table.lease_until.between(utc_text(now), _until(now, LONGEST_S))
    silent = table.state.in_(_HELD) & table.lease_until.is_not(None) & ~held
    begun = table.changed.between(_until(now, -RECEIVED_S), _until(now, RECEIVED_S))
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
    same = (submissions.c.id == row["id"], submissions.c.fence == row["fence"])
    values = {"lease_until": None, "worker": "", "requeued": requeued, "changed": utc_text(now)}
    connection.execute(update(submissions).where(*same).values(values))
    log_event(connection, row["id"], _S.SCORING, _S.SCORING, now, worker=row["worker"], fence=row["fence"])
    return _S.SCORING


def _until(now: datetime, lease_s: float) -> str:
    return utc_text(now + timedelta(seconds=lease_s))

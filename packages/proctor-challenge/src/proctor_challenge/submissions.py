"""Submissions: whether they are in time, the same file twice, quotas, and the moves between states.

A move is one guarded UPDATE of the submission, with the counters of its team and an entry of `events` in the same
transaction. The counters of `quotas` always equal the sum over a team's submissions. Against its quota also those of
its members' former teams count (`team_charges`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, case, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from proctor.core import ProctorError, kept_text
from proctor_challenge.admission import Admission
from proctor_challenge.challenge import Challenge
from proctor_challenge.schema import account_charges, events, quotas, submissions, team_charges, teams
from proctor_challenge.settings import Kind, Phase
from proctor_challenge.states import HOLDING, RULES, PhaseState, SubmissionState, may_follow, phase_state
from proctor_web import record_change, utc_text

REASONS = MappingProxyType(
    {
        "not_open": "The phase is not open.",
        "not_accepted": "The phase does not accept this kind of submission.",
        "withdrawn": "The team was withdrawn.",
        "left": "You are no longer a member of this team.",
        "quota_scored": "The team has as many results as the phase allows; submissions in progress are included.",
        "quota_attempted": "The team has as many attempts as the phase allows; waiting submissions are included.",
        "quota_day": "The team has as many attempts in 24 hours as the phase allows.",
        "too_many": "The team has submitted too often in 24 hours; a refused file counts five times.",
        "checking": "The team's last upload is still being checked. Wait for its result.",
        "gate": "The team has not passed the previous phase.",
        "identical": "The team has submitted this file in this phase before.",
        "invalid": "The submission is invalid and does not count. Its problems are listed.",
        "interrupted": "The check was interrupted. Submit again; this submission does not count.",
        "cancelled": "Cancelled by the team.",
        "organiser": "Cancelled by an organiser.",
        "requeued": "The machine that worked on it no longer responds. The submission waits for another one.",
        "lost": "The machines that worked on it failed twice. The submission does not count; submit again.",
        "crashed": "The container ended and could not be started again.",
        "timed_out": "The container was not ready in time.",
        "load": "The image could not be loaded.",
        "scorer_fault": "Scoring failed. It is repeated once the fault is fixed, and costs nothing until then.",
        "rerun": "Scored again with a new version of the scorer.",
    }
)
"""The reasons that a team sees for the state of a submission, by the key in `reason`, which pages translate."""

DAILY = 100
"""The maximum number of uploads of a team in a phase within 24 hours (or twice its attempts, if that is more), so that
invalid uploads can't fill the disk."""

REFUSED_COST = 5
"""How many uploads of that number one with an invalid file costs: checking it took time that others waited for."""

_DAY = timedelta(days=1)
_S = SubmissionState
_WAITING = (_S.QUEUED, _S.LEASED)
_LEASED = (_S.LEASED, _S.RUNNING, _S.SCORING)


class HandInError(ProctorError):
    """A team may not submit now; `reason` is a key of `REASONS`."""

    def __init__(self, reason: str, more: str = "") -> None:
        super().__init__(f"{REASONS[reason]} {more}")
        self.reason = reason


class IdenticalError(HandInError):
    """The team has submitted the same bytes in this phase before: as `number`, which is now in `state`."""

    def __init__(self, number: int, state: str) -> None:
        super().__init__("identical", f"It is number {number} ({state}); --again submits it again, for another result.")
        self.number, self.state = number, state


class StaleError(ProctorError):
    """A submission is not in the state that the caller expects: it was moved, or its lease has ended."""


@dataclass(frozen=True)
class HandIn:
    """What a team submits. `upload` is the SHA-256 of the bytes, `suffix` the suffix of the file's name (".json"), for
    readers that depend on it; `passed` says whether the team passed the phase's gate, if it has one. With `once`, bytes
    that the team has submitted before are not taken."""

    team: int
    account: int
    phase: str
    kind: Kind
    upload: str
    size: int
    name: str
    suffix: str = ""
    description: str = ""
    passed: bool = True
    once: bool = False


def hand_in(connection: Connection, challenge: Challenge, entry: HandIn) -> int:
    """Records a submission as `received`; returns its id. Nothing is counted until `settle`, after its check. Whether it
    is in time is decided here, by the database's clock. Raises `HandInError` when the team may not submit, and
    `IdenticalError`."""
    now, phase = challenge.clock(connection), challenge.phase(entry.phase)
    if phase_state(connection, phase, now) is not PhaseState.OPEN:
        raise HandInError("not_open")
    if entry.kind not in phase.accepts:
        raise HandInError("not_accepted")
    if phase.gate is not None and not entry.passed:
        raise HandInError("gate")
    number = _locked_quota(connection, entry.team, entry.phase)["submitted"]
    if reason := _refusal(connection, entry.team, phase, now):
        raise HandInError(reason)
    if entry.once:
        _check_new(connection, entry)
    if uploads_left(connection, challenge, entry.team, entry.phase) <= 0:
        raise HandInError("too_many")
    values = {
        "team": entry.team,
        "account": entry.account,
        "phase": entry.phase,
        "number": number,
        "kind": entry.kind,
        "name": kept_text(entry.name)[:200],
        "suffix": kept_text(entry.suffix)[:16],
        "description": kept_text(entry.description)[:20_000],
        "upload": entry.upload,
        "bytes": entry.size,
        "seed": challenge.draw(),
        "state": _S.RECEIVED.value,
        "fault": RULES[_S.RECEIVED].fault.value,
        "submitted": utc_text(now),
        "changed": utc_text(now),
    }
    made = int(connection.execute(insert(submissions).values(values).returning(submissions.c.id)).scalar_one())
    log_event(connection, made, "", _S.RECEIVED, now)
    return made


def _check_new(connection: Connection, entry: HandIn) -> None:
    """Raises `IdenticalError` if the team has a submission of the same bytes that may have a result."""
    table = submissions.c
    same = (table.team == entry.team, table.phase == entry.phase, table.upload == entry.upload)
    ended = table.state.in_((_S.REFUSED.value, _S.CANCELLED.value, _S.LOST.value))
    query = select(table.number, table.state).where(*same, ~ended).order_by(table.id.desc()).limit(1)
    if (before := connection.execute(query).first()) is not None:
        raise IdenticalError(before.number, before.state)


def uploads_left(connection: Connection, challenge: Challenge, team: int, phase: str) -> int:
    """How many uploads of a team in a phase are accepted within 24 hours from now back, if none of them is refused."""
    rule, used = challenge.phase(phase).quota, _used(connection, team, phase, challenge.clock(connection))
    return max(DAILY, 2 * rule.attempted) - used["handed_in"] - (REFUSED_COST - 1) * used["invalid"]


def is_checked(connection: Connection, team: int, since: datetime, *, but: int = 0) -> bool:
    """Whether an upload of a team waits for its check or is being checked, in any phase and by any process: it was
    received or renewed (`renew_check`) `since` a time. The submission `but` is left out."""
    table = submissions.c
    waits = (table.team == team, table.state == _S.RECEIVED.value, table.changed > utc_text(since), table.id != but)
    return connection.execute(select(table.id).where(*waits).limit(1)).first() is not None


def renew_check(connection: Connection, challenge: Challenge, submission: int) -> None:
    """Notes that a received submission still waits for its check, or is being checked, so that it does not expire."""
    mine = (submissions.c.id == submission, submissions.c.state == _S.RECEIVED.value)
    connection.execute(update(submissions).where(*mine).values(changed=utc_text(challenge.clock(connection))))


def settle(
    connection: Connection,
    challenge: Challenge,
    submission: int,
    problems: Sequence[str] = (),
    admitted: Admission | None = None,
) -> str:
    """Ends the check of a received submission: `refused` for problems or an exhausted quota, else `queued`, with what its
    team is told of the answers that will be wrong (`admitted`). Returns the reason of a refusal, or "". Of 200 concurrent
    submissions for a quota of ten, ten are queued."""
    row = submission_row(connection, submission, locked=True)  # before the quota, as in all moves: no deadlocks
    _locked_quota(connection, row["team"], row["phase"], submitted=0)
    phase, now = challenge.phase(row["phase"]), challenge.clock(connection)
    reason = "invalid" if problems else _refusal(connection, row["team"], phase, now)
    log: dict[str, Any] = {}
    if problems:
        log = {"log": {"problems": _kept_lines(problems)}}
    elif admitted is not None and admitted.wrong:
        log = {"log": {"wrong": {"count": admitted.count, "lines": _kept_lines(admitted.wrong)}}}
    after = _S.REFUSED if reason else _S.QUEUED
    move(connection, submission, after, now=now, reason=reason, **log)
    return reason


def _kept_lines(lines: Sequence[str]) -> list[str]:
    return [kept_text(line)[:1000] for line in lines[:100]]


def cancel(connection: Connection, challenge: Challenge, submission: int, *, organiser: bool = False) -> None:
    """Cancels a submission. Raises `StaleError` when it is being scored or has ended. A running one keeps its attempt,
    and its worker stops at the next beat."""
    reason = "organiser" if organiser else "cancelled"
    move(connection, submission, _S.CANCELLED, now=challenge.clock(connection), reason=reason)


def move(
    connection: Connection,
    submission: int,
    after: SubmissionState,
    *,
    now: datetime,
    fence: int | None = None,
    reason: str = "",
    **more: Any,
) -> RowMapping:
    """Moves a submission to another state, with its counters and an entry of `events`; returns the new row. `more` are
    further columns (`log`, `progress`, `image_digest`, …). Workers pass their `fence`. Raises `StaleError`, and changes
    nothing, when the state can't follow or the fence is outdated."""
    row = submission_row(connection, submission)
    before = SubmissionState(row["state"])
    if not may_follow(before, after) or (fence is not None and fence != row["fence"]):
        raise StaleError(f"submission {submission} is {before} under lease {row['fence']}: it can't be {after} now")
    return changed_state(connection, row, after, now=now, reason=reason, **more)


def changed_state(
    connection: Connection, row: RowMapping, after: SubmissionState, *, now: datetime, reason: str = "", **more: Any
) -> RowMapping:
    """Moves a row that was read in this transaction. Raises `StaleError` when it has changed since."""
    rule = RULES[after]
    kept = after is _S.CANCELLED  # an attempt that was begun stays
    counters = {"attempted": row["attempted"] if kept else rule.attempted, "scored": rule.scored}
    values = {"state": after.value, "fault": rule.fault.value, "reason": reason, "changed": utc_text(now), **counters}
    if after not in _LEASED:
        values |= {"lease_until": None, "worker": ""}
    same = (submissions.c.id == row["id"], submissions.c.state == row["state"], submissions.c.fence == row["fence"])
    statement = update(submissions).where(*same).values(values | more).returning(*submissions.c)
    new = connection.execute(statement).mappings().first()
    if new is None:
        raise StaleError(f"submission {row['id']} was moved by somebody else: it can't be {after} now")
    changes = {name: value - row[name] for name, value in counters.items()}
    _count(connection, row, changes | {"holding": int(after in HOLDING) - int(row["state"] in HOLDING)})
    log_event(connection, row["id"], row["state"], after, now, worker=row["worker"], fence=new["fence"], reason=reason)
    return new


def disqualify(
    connection: Connection, challenge: Challenge, account: int | None, submission: int, why: str, *, undo: bool = False
) -> None:
    """Removes a submission from the boards, with a reason that its team sees. It still counts for the quota. `undo`
    reinstates it."""
    submission_row(connection, submission)
    kept = None if undo else kept_text(why)[:1000]
    connection.execute(update(submissions).where(submissions.c.id == submission).values(disqualified=kept))
    action = "reinstate" if undo else "disqualify"
    record_change(connection, challenge.now(), account, action, f"submission {submission}", {"why": kept})


def submission_row(connection: Connection, submission: int, *, locked: bool = False) -> RowMapping:
    """The row of a submission, optionally `locked` for this transaction. Raises `StaleError` for an unknown one."""
    query = select(submissions).where(submissions.c.id == submission)
    row = connection.execute(query.with_for_update() if locked else query).mappings().first()
    if row is None:
        raise StaleError(f"there is no submission {submission}")
    return row


def submissions_of(connection: Connection, team: int, phase: str = "") -> list[RowMapping]:
    """A team's submissions, newest first."""
    query = select(submissions).where(submissions.c.team == team).order_by(submissions.c.id.desc())
    return list(connection.execute(query.where(submissions.c.phase == phase) if phase else query).mappings())


@dataclass(frozen=True)
class QuotaLeft:
    """A team's remaining quota in a phase: results, attempts, and attempts within 24 hours (None: unlimited)."""

    scored: int
    attempted: int
    today: int | None

    @property
    def any(self) -> bool:
        """Whether a submission would be accepted now."""
        return min(self.scored, self.attempted) > 0 and self.today != 0


def quota_left(connection: Connection, challenge: Challenge, team: int, phase: str) -> QuotaLeft:
    """The quota that remains if all submissions in progress get a result."""
    rule, used = challenge.phase(phase).quota, _used(connection, team, phase, challenge.clock(connection))
    today = None if rule.per_day is None else max(0, rule.per_day - used["today"])
    return QuotaLeft(max(0, rule.scored - used["results"]), max(0, rule.attempted - used["attempts"]), today)


def _refusal(connection: Connection, team: int, phase: Phase, now: datetime) -> str:
    """The reason why a team can't queue another submission; "" if it can. Call it with the quota's row locked."""
    withdrawn = connection.execute(select(teams.c.withdrawn).where(teams.c.id == team)).scalar_one()
    used, quota = _used(connection, team, phase.name, now), phase.quota
    found = {
        "withdrawn": withdrawn is not None,
        "quota_scored": used["results"] >= quota.scored,
        "quota_attempted": used["attempts"] >= quota.attempted,
        "quota_day": quota.per_day is not None and used["today"] >= quota.per_day,
    }
    return next((reason for reason, holds in found.items() if holds), "")


def quota_exceeded_by(connection: Connection, account: int, team: int, phase: Phase, now: datetime) -> bool:
    """Whether a team would exceed the quota of a phase with the submissions of an account's former teams. They are
    counted under lock, so that the team queues no other meanwhile."""
    _locked_quota(connection, team, phase.name, submitted=0)
    before = _used(connection, team, phase.name, now)
    after = _used(connection, team, phase.name, now, joining=account)
    limits = {"results": phase.quota.scored, "attempts": phase.quota.attempted}
    return any(after[name] > max(limit, before[name]) for name, limit in limits.items())


def _used(
    connection: Connection, team: int, phase: str, now: datetime, *, joining: int | None = None
) -> dict[str, int]:
    """What a team has used, with what its members brought, and with what the account `joining` would bring. Submissions
    in progress count as `results`, waiting ones as `attempts`."""
    table = submissions.c
    brought = select(team_charges.c.submission).where(team_charges.c.team == team)
    more = select(account_charges.c.submission).where(account_charges.c.account == joining)
    charged = or_(table.team == team, table.id.in_(brought), table.id.in_(more))
    checked = and_(table.team != team, table.state == _S.RECEIVED.value)  # its former team may still queue it
    recent, holds = table.submitted > utc_text(now - _DAY), or_(table.state.in_(HOLDING), checked)
    counts = {
        "results": or_(table.scored > 0, holds),
        "attempts": or_(table.attempted > 0, table.state.in_(_WAITING), checked),
        "today": and_(recent, or_(table.attempted > 0, holds)),
        "handed_in": recent,
        "invalid": and_(recent, table.state == _S.REFUSED.value, table.reason == "invalid"),
    }
    sums = [func.coalesce(func.sum(case((which, 1), else_=0)), 0).label(name) for name, which in counts.items()]
    found = connection.execute(select(*sums).where(charged, table.phase == phase)).mappings().one()
    return {name: int(found[name]) for name in counts}


def _locked_quota(connection: Connection, team: int, phase: str, *, submitted: int = 1) -> RowMapping:
    """The counters of a team in a phase, created if missing, and locked until this transaction ends, so that no other
    process queues a submission of the team: in PostgreSQL the UPDATE locks the row, and later statements see what
    others committed."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = {"team": team, "phase": phase, "submitted": 0, "holding": 0, "attempted": 0, "scored": 0}
    connection.execute(dialect.insert(quotas).values(new).on_conflict_do_nothing())
    statement = update(quotas).where(quotas.c.team == team, quotas.c.phase == phase)
    statement = statement.values(submitted=quotas.c.submitted + submitted).returning(*quotas.c)
    return connection.execute(statement).mappings().one()


def _count(connection: Connection, row: RowMapping, changes: dict[str, int]) -> None:
    values = {name: quotas.c[name] + change for name, change in changes.items() if change}
    if values:
        mine = (quotas.c.team == row["team"], quotas.c.phase == row["phase"])
        connection.execute(update(quotas).where(*mine).values(values))


def log_event(
    connection: Connection,
    submission: int,
    before: str,
    after: SubmissionState,
    now: datetime,
    *,
    worker: str = "",
    fence: int = 0,
    reason: str = "",
) -> None:
    """Adds an entry to `events`."""
    entry = {"submission": submission, "at": utc_text(now), "before": before, "after": after.value}
    connection.execute(insert(events).values(**entry, worker=worker, fence=fence, reason=reason))

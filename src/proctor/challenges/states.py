"""The states of a submission: which follows which, whose fault the last ones are, and what each does to the quota.

A submission is counted twice: `attempted` once something of it started, `scored` once it has a result.
 When a phase takes submissions: it was opened by an organiser, who had it checked, and its dates allow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from sqlalchemy import Connection, insert, select

from proctor.challenges.schema import openings
from proctor.challenges.settings import ChallengeSettings, Phase
from proctor.web import utc_text


class SubmissionState(StrEnum):
    """Where a submission is.

    `received`: its bytes are here; `refused` by validation; `queued`; `leased` by a worker; `running`; `scoring`;
    `scored`. `timed_out`: the whole took too long, or it was never ready (single late questions are answers with that
    status of a scored submission). `crashed`: the container ended and could not be started again. `lost`: its worker
    was not heard of twice. `scorer_fault`: marking failed; it is marked again by the next version of the scorer. A
    worker that is lost while it marks loses no answers: the state stays `scoring`, for another one.
    `cancelled` by the team or an organiser.
    """

    RECEIVED = "received"
    REFUSED = "refused"
    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    SCORING = "scoring"
    SCORED = "scored"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    LOST = "lost"
    SCORER_FAULT = "scorer_fault"
    CANCELLED = "cancelled"


class Blame(StrEnum):
    """Whose fault a state is: what the platform or the organiser does wrong costs a team nothing."""

    NOBODY = "nobody"
    PARTICIPANT = "participant"
    PLATFORM = "platform"
    ORGANISER = "organiser"


@dataclass(frozen=True, slots=True)
class StateRule:
    """What follows a state (`next`), whose fault it is, and what it adds to the two counters in all (not on top of the
    state before)."""

    next: frozenset[SubmissionState]
    fault: Blame = Blame.NOBODY
    attempted: int = 0
    scored: int = 0

    @property
    def final(self) -> bool:
        """Whether nothing follows by itself."""
        return not self.next


def _rule(*following: SubmissionState, fault: Blame = Blame.NOBODY, attempted: int = 0, scored: int = 0) -> StateRule:
    return StateRule(frozenset(following), fault, attempted, scored)


_S = SubmissionState
RULES = MappingProxyType(
    {
        _S.RECEIVED: _rule(_S.REFUSED, _S.QUEUED, _S.CANCELLED),
        _S.REFUSED: _rule(fault=Blame.PARTICIPANT),
        _S.QUEUED: _rule(_S.LEASED, _S.CANCELLED),
        _S.LEASED: _rule(_S.RUNNING, _S.SCORING, _S.QUEUED, _S.LOST, _S.CANCELLED),
        _S.RUNNING: _rule(_S.SCORING, _S.TIMED_OUT, _S.CRASHED, _S.QUEUED, _S.LOST, _S.CANCELLED, attempted=1),
        _S.SCORING: _rule(_S.SCORED, _S.SCORER_FAULT, attempted=1),
        _S.SCORED: _rule(_S.SCORING, attempted=1, scored=1),  # again, by a new version of the scorer
        _S.TIMED_OUT: _rule(fault=Blame.PARTICIPANT, attempted=1),
        _S.CRASHED: _rule(fault=Blame.PARTICIPANT, attempted=1),
        _S.LOST: _rule(fault=Blame.PLATFORM),
        _S.SCORER_FAULT: _rule(_S.SCORING, fault=Blame.ORGANISER),
        _S.CANCELLED: _rule(),
    }
)
"""By state. `cancelled` keeps the attempt of a submission that was running. A requeue gives the attempt back."""

HOLDING = (SubmissionState.QUEUED, SubmissionState.LEASED, SubmissionState.RUNNING, SubmissionState.SCORING)
"""The states that hold a place of the quota, so that no more are taken in than can be scored."""


def may_follow(before: SubmissionState, after: SubmissionState) -> bool:
    """Whether one state may follow the other.

    >>> may_follow(SubmissionState.QUEUED, SubmissionState.LEASED), may_follow(SubmissionState.REFUSED, SubmissionState.QUEUED)
    (True, False)
    """
    return after in RULES[before].next


class PhaseState(StrEnum):
    """`unopened`: nobody has opened it (`proctor challenge open`); `waiting` for its first day; `open`; `closed` by an
    organiser, or since its last day is over."""

    UNOPENED = "unopened"
    WAITING = "waiting"
    OPEN = "open"
    CLOSED = "closed"


def phase_state(connection: Connection, phase: Phase, now: datetime) -> PhaseState:
    """Where a phase is."""
    said = opening_of(connection, phase.name)
    if said is None:
        return PhaseState.UNOPENED
    if said["state"] == PhaseState.CLOSED or (phase.closes is not None and now >= phase.closes):
        return PhaseState.CLOSED
    return PhaseState.OPEN if phase.is_open(now) else PhaseState.WAITING


def phase_states(connection: Connection, settings: ChallengeSettings, now: datetime) -> dict[str, PhaseState]:
    """Where each phase is, in their order."""
    return {one.name: phase_state(connection, one, now) for one in settings.phases}


def opening_of(connection: Connection, phase: str) -> dict[str, object] | None:
    """What was last said of a phase: open or closed, when, with which commitment, and what was checked before."""
    newest = select(openings).where(openings.c.phase == phase).order_by(openings.c.id.desc()).limit(1)
    row = connection.execute(newest).mappings().first()
    return None if row is None else dict(row)


def was_open(connection: Connection, phase: Phase, now: datetime) -> bool:
    """Whether a phase has ever taken submissions: an organiser had opened it at a moment when its first day had come.
    What it hands out is secret until then, also where it was closed before."""
    said = select(openings.c.state, openings.c.at).where(openings.c.phase == phase.name).order_by(openings.c.id)
    rows = connection.execute(said).all()
    ends = [*(datetime.fromisoformat(row.at) for row in rows[1:]), now + datetime.resolution]
    return any(
        row.state == PhaseState.OPEN and (phase.opens is None or phase.opens < end)
        for row, end in zip(rows, ends, strict=False)
    )


def set_phase(
    connection: Connection, phase: str, state: PhaseState, now: datetime, *, commitment: str = "", checks: Sequence[str]
) -> None:
    """Opens or closes a phase. Raises `ValueError` for another state."""
    if state not in {PhaseState.OPEN, PhaseState.CLOSED}:
        raise ValueError(state)
    row = {"phase": phase, "state": state.value, "commitment": commitment, "checks": [*checks]}
    connection.execute(insert(openings).values(row | {"at": utc_text(now)}))

"""The states of submissions and of phases: which may follow which, and whose fault each is.

A submission is counted twice: `attempted` once something of it started, `scored` once it has a result. A phase takes
submissions when an organiser has opened it and its dates allow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from sqlalchemy import Connection, insert, select

from proctor_challenge.schema import openings
from proctor_challenge.settings import Phase
from proctor_web import utc_text


class SubmissionState(StrEnum):
    """The state of a submission.

    `received`: uploaded; `refused` by the check; `queued`; `leased` by a worker; `running`; `scoring`; `scored`;
    `timed_out`: the container was never ready, or gave too many late answers in a row; `crashed`: the container could
    not be restarted; `lost`: its workers died twice; `scorer_fault`: scoring failed, and is repeated by the next
    version of the scorer; `cancelled` by the team or an organiser. When a worker dies while it scores, the state stays
    `scoring` for another worker, since all answers are there.
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
    """Whose fault a state is. The platform's and the organiser's faults cost a team nothing."""

    NOBODY = "nobody"
    PARTICIPANT = "participant"
    PLATFORM = "platform"
    ORGANISER = "organiser"


@dataclass(frozen=True, slots=True)
class StateRule:
    """The states that may follow (`next`), whose fault the state is, and the values of the two counters in it."""

    next: frozenset[SubmissionState]
    fault: Blame = Blame.NOBODY
    attempted: int = 0
    scored: int = 0

    @property
    def final(self) -> bool:
        """Whether no state follows."""
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
        _S.SCORED: _rule(_S.SCORING, attempted=1, scored=1),  # rescored by a new version of the scorer
        _S.TIMED_OUT: _rule(fault=Blame.PARTICIPANT, attempted=1),
        _S.CRASHED: _rule(fault=Blame.PARTICIPANT, attempted=1),
        _S.LOST: _rule(fault=Blame.PLATFORM),
        _S.SCORER_FAULT: _rule(_S.SCORING, fault=Blame.ORGANISER),
        _S.CANCELLED: _rule(),
    }
)
"""The rule of each state. `cancelled` keeps the attempt of a submission that was running; requeueing gives it back."""

HOLDING = (SubmissionState.QUEUED, SubmissionState.LEASED, SubmissionState.RUNNING, SubmissionState.SCORING)
"""The states that reserve a result of the quota, so that no more submissions are accepted than can be scored."""


def may_follow(before: SubmissionState, after: SubmissionState) -> bool:
    """Whether one state may follow the other.

    >>> may_follow(SubmissionState.QUEUED, SubmissionState.LEASED), may_follow(SubmissionState.REFUSED, SubmissionState.QUEUED)
    (True, False)
    """
    return after in RULES[before].next


class PhaseState(StrEnum):
    """`unopened`: never opened (`proctor challenge phase open`); `waiting` for its opening date; `open`; `closed` by an
    organiser, or after its closing date."""

    UNOPENED = "unopened"
    WAITING = "waiting"
    OPEN = "open"
    CLOSED = "closed"


def phase_state(connection: Connection, phase: Phase, now: datetime) -> PhaseState:
    """The state of a phase."""
    opening = opening_of(connection, phase.name)
    if opening is None:
        return PhaseState.UNOPENED
    if opening["state"] == PhaseState.CLOSED or (phase.closes is not None and now >= phase.closes):
        return PhaseState.CLOSED
    return PhaseState.OPEN if phase.is_open(now) else PhaseState.WAITING


def opening_of(connection: Connection, phase: str) -> dict[str, object] | None:
    """The last opening or closing of a phase: state, time, commitment and checks; None if it was never opened."""
    newest = select(openings).where(openings.c.phase == phase).order_by(openings.c.id.desc()).limit(1)
    row = connection.execute(newest).mappings().first()
    return None if row is None else dict(row)


def was_open(connection: Connection, phase: Phase, now: datetime) -> bool:
    """Whether a phase has ever taken submissions: it was opened at some time after its opening date. Its public files
    are secret until then."""
    query = select(openings.c.state, openings.c.at).where(openings.c.phase == phase.name).order_by(openings.c.id)
    rows = connection.execute(query).all()
    ends = [*(datetime.fromisoformat(row.at) for row in rows[1:]), now + datetime.resolution]
    return any(
        row.state == PhaseState.OPEN and (phase.opens is None or phase.opens < end)
        for row, end in zip(rows, ends, strict=False)
    )


def set_phase(
    connection: Connection, phase: str, state: PhaseState, now: datetime, *, commitment: str = "", checks: Sequence[str]
) -> None:
    """Opens or closes a phase. Raises `ValueError` for any other state."""
    if state not in {PhaseState.OPEN, PhaseState.CLOSED}:
        raise ValueError(state)
    row = {"phase": phase, "state": state.value, "commitment": commitment, "checks": [*checks]}
    connection.execute(insert(openings).values(row | {"at": utc_text(now)}))

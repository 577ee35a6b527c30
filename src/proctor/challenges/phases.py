"""When a phase takes submissions: it was opened by an organiser, who had it checked, and its dates allow it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, insert, select

from proctor.challenges.schema import openings
from proctor.challenges.settings import ChallengeSettings, Phase
from proctor.web import utc_text


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

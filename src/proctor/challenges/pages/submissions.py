"""A team's own submissions: where each one is and why, what was wrong, what is known of its run. Organisers see all."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection, RowMapping, select

from proctor.challenges.pages.access import Number, Participant, challenge_of
from proctor.challenges.schema import events, submissions, teams
from proctor.challenges.states import RULES, SubmissionState
from proctor.challenges.submissions import StaleError, cancel, quota_left, submissions_of
from proctor.challenges.teams import team_of
from proctor.web import Visitor, current, page

router = APIRouter()

_S = SubmissionState
_CANCELLABLE = {name for name, rule in RULES.items() if _S.CANCELLED in rule.next}


@router.get("/submissions")
def own(request: Request, entrant: Participant) -> Response:
    """All of the team's submissions, and what is left in each phase."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        team = entrant.team
        mine = [] if team is None else submissions_of(connection, team["id"])
        left = {} if team is None else {
            one.name: quota_left(connection, challenge, team["id"], one.name) for one in challenge.settings.phases
        }  # fmt: skip
    return page(request, "submissions", mine=mine, left=left, phases=challenge.settings.phases, team=team)


def visible(connection: Connection, visitor: Visitor, number: int) -> RowMapping:
    """A submission with its team's name, where it is the visitor's team's or an organiser asks; else 404."""
    query = select(submissions, teams.c.name.label("team_name")).join(teams, teams.c.id == submissions.c.team)
    row = connection.execute(query.where(submissions.c.id == number)).mappings().first()
    team = team_of(connection, visitor.account) if visitor.role == "participant" else None
    if row is None or not (visitor.role == "organiser" or (team is not None and team["id"] == row["team"])):
        raise HTTPException(404)
    return row


@router.get("/submission/{number}")
def one(request: Request, number: Number, visitor: Annotated[Visitor, Depends(current)]) -> Response:
    """One submission."""
    return _shown(request, number, visitor, "submission")


@router.get("/submission/{number}/state")
def state(request: Request, number: Number, visitor: Annotated[Visitor, Depends(current)]) -> Response:
    """What changes while one waits: a fragment."""
    return _shown(request, number, visitor, "submission_state")


@router.post("/submission/{number}/cancel")
def call_off(request: Request, number: Number, visitor: Annotated[Visitor, Depends(current)]) -> Response:
    """Cancels it, unless it is being marked or has ended."""
    challenge = challenge_of(request)
    try:
        with challenge.writing() as connection:
            visible(connection, visitor, number)
            cancel(connection, challenge, number, organiser=visitor.role == "organiser")
    except StaleError:
        raise HTTPException(409) from None
    return RedirectResponse(f"/submission/{number}", 303)


def _shown(request: Request, number: int, visitor: Visitor, template: str) -> Response:
    with challenge_of(request).reading() as connection:
        row = visible(connection, visitor, number)
        query = select(events).where(events.c.submission == number).order_by(events.c.id)
        steps = connection.execute(query).mappings().all()
    where = SubmissionState(row["state"])
    return page(
        request,
        template,
        row=row,
        steps=steps,
        final=RULES[where].final or where is _S.SCORED,
        cancellable=where in _CANCELLABLE,
        log=row["log"] or {},
        progress=row["progress"] or {},
    )

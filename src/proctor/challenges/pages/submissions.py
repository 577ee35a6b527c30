"""A team's own submissions: where each one is and why, what was wrong, what is known of its run. Organisers see all."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from sqlalchemy import Connection, RowMapping, select

from proctor.challenges.challenge import Challenge
from proctor.challenges.marking import Figures
from proctor.challenges.pages.access import Audience, Number, Participant, challenge_of
from proctor.challenges.publishing import may_see, shown_figures
from proctor.challenges.receipts import SignedReceipt, public_key, receipt_of
from proctor.challenges.schema import events, results, submissions, teams
from proctor.challenges.states import RULES, SubmissionState
from proctor.challenges.submissions import StaleError, cancel, quota_left, submissions_of
from proctor.challenges.teams import team_of
from proctor.core import InputError
from proctor.web import Visitor, current, page

router = APIRouter()

_S = SubmissionState
_EXACT = 4  # digits for organisers
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
        figures = {one["id"]: own_figures(connection, challenge, one, "participant") for one in mine}
    return page(
        request, "submissions", figures=figures, mine=mine, left=left, phases=challenge.settings.phases, team=team
    )


def visible(connection: Connection, visitor: Visitor, number: int) -> RowMapping:
    """A submission with its team's name, where it is the visitor's team's or an organiser asks; else 404."""
    query = select(submissions, teams.c.name.label("team_name")).join(teams, teams.c.id == submissions.c.team)
    row = connection.execute(query.where(submissions.c.id == number)).mappings().first()
    team = team_of(connection, visitor.account) if visitor.role == "participant" else None
    if row is None or not (visitor.role == "organiser" or (team is not None and team["id"] == row["team"])):
        raise HTTPException(404)
    return row


@router.get("/receipt-key.txt")
def receipt_key(request: Request) -> Response:
    """The key by which `proctor challenge verify` checks receipts."""
    try:
        return PlainTextResponse(public_key(challenge_of(request).folder) + "\n")
    except InputError:
        raise HTTPException(404) from None


@router.get("/submission/{number}/receipt")
def receipt(request: Request, number: Number, visitor: Annotated[Visitor, Depends(current)]) -> Response:
    """The signed receipt of a result, for those who see the result."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        row = visible(connection, visitor, number)
        found = signed_receipt(connection, challenge, row, _audience(visitor))
    if found is None:
        raise HTTPException(404)
    file = f"receipt-{row['phase']}-{row['team']}-{row['number']}.json"
    headers = {"content-disposition": f'attachment; filename="{file}"'}
    return Response(found.text(), media_type="application/json", headers=headers)


def signed_receipt(
    connection: Connection, challenge: Challenge, row: RowMapping, audience: Audience
) -> SignedReceipt | None:
    """The receipt of a submission; None where there is none, or the result is not shown."""
    if own_figures(connection, challenge, row, audience) is None:
        return None
    try:
        return receipt_of(connection, row["id"], public_key(challenge.folder))
    except InputError:
        return None


def own_figures(
    connection: Connection, challenge: Challenge, row: RowMapping, audience: Audience
) -> dict[str, Any] | None:
    """What is told of a submission's result to its team, or all of it to an organiser: None where there is none, where
    the phase shows results to organisers alone, and where the ladder holds it back."""
    phase = challenge.settings.phase(row["phase"])
    newest = select(results).where(results.c.submission == row["id"]).order_by(results.c.scorer.desc()).limit(1)
    found = connection.execute(newest).mappings().first()
    if found is None or row["state"] != _S.SCORED:
        return None
    figures = Figures.model_validate(found["figures"])
    if audience == "organiser":
        return figures.model_dump(mode="json") | {"scorer": found["scorer"], "digits": _EXACT}
    policy, now = phase.results, challenge.now()
    if not may_see(policy.boards, audience, early=policy.shown_from is not None and now < policy.shown_from):
        return None
    shown = shown_figures(figures, phase)
    return None if shown is None else shown | {"scorer": found["scorer"], "digits": policy.digits}


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
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        row = visible(connection, visitor, number)
        told = own_figures(connection, challenge, row, _audience(visitor))
        signed = signed_receipt(connection, challenge, row, _audience(visitor)) is not None
        query = select(events).where(events.c.submission == number).order_by(events.c.id)
        steps = connection.execute(query).mappings().all()
    where = SubmissionState(row["state"])
    return page(
        request,
        template,
        row=row,
        steps=steps,
        figures=told,
        signed=signed,
        final=RULES[where].final or where is _S.SCORED,
        cancellable=where in _CANCELLABLE,
        log=row["log"] or {},
        progress=row["progress"] or {},
    )


def _audience(visitor: Visitor) -> Audience:
    return "organiser" if visitor.role == "organiser" else "participant"

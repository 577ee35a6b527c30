"""An organiser's view: the queue, teams, all submissions, who is disqualified, and what a phase has given away."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection, RowMapping, func, select

from proctor.challenges.pages.access import KnownPhase, Line, Number, Organiser, challenge_of
from proctor.challenges.phases import PhaseState, opening_of, phase_state, set_phase
from proctor.challenges.schema import boards, members, submissions, teams
from proctor.challenges.states import HOLDING, SubmissionState
from proctor.challenges.submissions import StaleError, disqualify
from proctor.challenges.teams import all_teams, set_eligible, withdraw_team
from proctor.web import page, record_change

router = APIRouter()

_ROWS = 100


@router.get("/organise/")
def overview(request: Request, visitor: Organiser) -> Response:
    """Every phase with its submissions by state, and what is in the queue."""
    del visitor
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        counted = _counts(connection)
        found = [
            {
                "phase": one,
                "state": phase_state(connection, one, challenge.now()),
                "opening": opening_of(connection, one.name),
                "counts": counted.get(one.name, {}),
                "board": _newest_board(connection, one.name),
            }
            for one in challenge.settings.phases
        ]
        queue = _rows(connection, submissions.c.state.in_(HOLDING), newest=False)
        waiting = connection.execute(select(func.count()).where(submissions.c.state.in_(HOLDING))).scalar_one()
    return page(request, "organise", phases=found, queue=queue, waiting=waiting, states=[*SubmissionState])


@router.post("/organise/phase/{name}/close")
def close(request: Request, phase: KnownPhase, visitor: Organiser) -> Response:
    """Ends a phase at once; `proctor challenge open` opens it, which has to check the sealed part."""
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        if phase_state(connection, phase, challenge.now()) in {PhaseState.UNOPENED, PhaseState.CLOSED}:
            raise HTTPException(409)
        set_phase(connection, phase.name, PhaseState.CLOSED, challenge.now(), checks=())
        record_change(connection, challenge.now(), visitor.account, "close phase", f"phase {phase.name}")
    return RedirectResponse("/organise/", 303)


@router.get("/organise/teams")
def team_list(request: Request, visitor: Organiser) -> Response:
    """All teams."""
    del visitor
    with challenge_of(request).reading() as connection:
        found = all_teams(connection)
        sizes = _by_team(connection, members.c.team)
        handed = _by_team(connection, submissions.c.team)
    return page(request, "organise_teams", teams=found, sizes=sizes, handed=handed)


@router.post("/organise/teams/{number}/withdraw")
def withdraw(request: Request, number: Number, visitor: Organiser) -> Response:
    """Takes a team out."""
    return _ruled(request, number, visitor.account, withdrawn=True)


@router.post("/organise/teams/{number}/readmit")
def readmit(request: Request, number: Number, visitor: Organiser) -> Response:
    """Takes that back."""
    return _ruled(request, number, visitor.account, withdrawn=False)


@router.post("/organise/teams/{number}/eligible")
def rule_eligible(request: Request, number: Number, visitor: Organiser, eligible: Line = "") -> Response:
    """Says whether a team may be given awards."""
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        _team(connection, number)
        set_eligible(connection, challenge, visitor.account, number, eligible=eligible == "yes")
    return RedirectResponse("/organise/teams", 303)


@router.get("/organise/submissions")
def submission_list(
    request: Request,
    visitor: Organiser,
    phase: Annotated[str, Query(max_length=80, pattern=r"^[\w.-]*$")] = "",
    state: Annotated[str, Query(max_length=20, pattern="^[a-z_]*$")] = "",
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """The newest submissions of all teams, of a phase and in a state where these are given."""
    del visitor
    challenge = challenge_of(request)
    wanted = [submissions.c.phase == phase] if phase else []
    wanted += [submissions.c.state == state] if state else []
    wanted += [submissions.c.id < before] if before is not None else []
    with challenge.reading() as connection:
        found = _rows(connection, *wanted)
    names = [one.name for one in challenge.settings.phases]
    shown = {"phase": phase, "state": state, "older": found[_ROWS - 1]["id"] if len(found) > _ROWS else None}
    return page(
        request, "organise_submissions", rows=found[:_ROWS], shown=shown, phases=names, states=[*SubmissionState]
    )


@router.post("/submission/{number}/disqualify")
def take_off(request: Request, number: Number, visitor: Organiser, why: Line) -> Response:
    """Takes a submission off the boards that are made from now on, with the reason, which its team is told."""
    if not why.strip():
        raise HTTPException(422)
    return _judged(request, number, visitor.account, why.strip(), undo=False)


@router.post("/submission/{number}/reinstate")
def put_back(request: Request, number: Number, visitor: Organiser) -> Response:
    """Takes that back."""
    return _judged(request, number, visitor.account, "", undo=True)


def _judged(request: Request, number: int, account: int, why: str, *, undo: bool) -> Response:
    challenge = challenge_of(request)
    try:
        with challenge.writing() as connection:
            disqualify(connection, challenge, account, number, why, undo=undo)
    except StaleError:
        raise HTTPException(404) from None
    return RedirectResponse(f"/submission/{number}", 303)


def _ruled(request: Request, number: int, account: int, *, withdrawn: bool) -> Response:
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        _team(connection, number)
        withdraw_team(connection, challenge, account, number, undo=not withdrawn)
    return RedirectResponse("/organise/teams", 303)


def _team(connection: Connection, number: int) -> None:
    if connection.execute(select(teams.c.id).where(teams.c.id == number)).first() is None:
        raise HTTPException(404)


def _rows(connection: Connection, *wanted: Any, newest: bool = True) -> list[RowMapping]:
    query = select(submissions, teams.c.name.label("team_name")).join(teams, teams.c.id == submissions.c.team)
    order = submissions.c.id.desc() if newest else submissions.c.id
    return list(connection.execute(query.where(*wanted).order_by(order).limit(_ROWS + 1)).mappings())


def _counts(connection: Connection) -> dict[str, dict[str, int]]:
    query = select(submissions.c.phase, submissions.c.state, func.count()).group_by(
        submissions.c.phase, submissions.c.state
    )
    found: dict[str, dict[str, int]] = {}
    for phase, state, count in connection.execute(query):
        found.setdefault(phase, {})[state] = count
    return found


def _by_team(connection: Connection, column: Any) -> dict[int, int]:
    return {int(team): int(count) for team, count in connection.execute(select(column, func.count()).group_by(column))}


def _newest_board(connection: Connection, phase: str) -> RowMapping | None:
    query = select(boards.c.at, boards.c.scorer).where(boards.c.phase == phase).order_by(boards.c.id.desc()).limit(1)
    return connection.execute(query).mappings().first()

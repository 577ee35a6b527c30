"""The organisers' pages: the queue, all teams and submissions, and rulings on them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from proctor.core import InputError
from proctor_challenge.descriptions import all_descriptions, rule_on_description
from proctor_challenge.membership import TeamError, assign_member, end_membership, is_member, members_of
from proctor_challenge.pages.access import KnownPhase, Line, Number, Organiser, challenge_of
from proctor_challenge.schema import boards, members, submissions, teams
from proctor_challenge.states import HOLDING, PhaseState, SubmissionState, opening_of, phase_state, set_phase
from proctor_challenge.submissions import StaleError, disqualify
from proctor_challenge.teams import all_teams, set_eligible, withdraw_team
from proctor_web import account_names, confirm, page, record_change

router = APIRouter()

_ROWS = 100


@router.get("/organise/")
def overview(request: Request, _: Organiser) -> Response:
    """Every phase with its submissions by state, and the queue."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        counts = _counts(connection)
        phases = [
            {
                "phase": phase,
                "state": phase_state(connection, phase, challenge.now()),
                "opening": opening_of(connection, phase.name),
                "counts": counts.get(phase.name, {}),
                "board": _newest_board(connection, phase.name),
            }
            for phase in challenge.settings.phases
        ]
        queue = _rows(connection, submissions.c.state.in_(HOLDING), newest=False)
        waiting = connection.execute(select(func.count()).where(submissions.c.state.in_(HOLDING))).scalar_one()
    return page(request, "organise", phases=phases, queue=queue, waiting=waiting, states=[*SubmissionState])


@router.post("/organise/phase/{name}/close")
def close(request: Request, phase: KnownPhase, organiser: Organiser, sure: Line = "") -> Response:
    """Closes a phase at once, after asking. Only `proctor challenge phase open` can open it, since that checks the sealed
    part."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        if phase_state(connection, phase, challenge.now()) in {PhaseState.UNOPENED, PhaseState.CLOSED}:
            raise HTTPException(409)
    if sure != "yes":
        held = (submissions.c.phase == phase.name) & submissions.c.state.in_(HOLDING)
        return confirm(
            request, "organise.close", "/organise/", name=phase.title or phase.name, count=_count(request, held)
        )
    with challenge.writing() as connection:
        if phase_state(connection, phase, challenge.now()) in {PhaseState.UNOPENED, PhaseState.CLOSED}:
            raise HTTPException(409)
        set_phase(connection, phase.name, PhaseState.CLOSED, challenge.now(), checks=())
        record_change(connection, challenge.now(), organiser.account, "close phase", f"phase {phase.name}")
    return RedirectResponse("/organise/", 303)


@router.get("/organise/teams")
def team_list(request: Request, _: Organiser) -> Response:
    """All teams."""
    with challenge_of(request).reading() as connection:
        found = all_teams(connection)
        sizes = _by_team(connection, members.c.team)
        handed = _by_team(connection, submissions.c.team)
    return page(request, "organise_teams", teams=found, sizes=sizes, handed=handed)


@router.post("/organise/teams/{number}/withdraw")
def withdraw(request: Request, number: Number, organiser: Organiser, sure: Line = "") -> Response:
    """Withdraws a team, after asking."""
    if sure != "yes":
        return _ask_of_team(request, number, "organise.withdraw", "/organise/teams")
    return _withdraw(request, number, organiser.account)


@router.post("/organise/teams/{number}/disqualify")
def disqualify_team(request: Request, number: Number, organiser: Organiser, why: Line, sure: Line = "") -> Response:
    """Withdraws a team for a reason, which it sees, after asking."""
    if not why.strip():
        raise HTTPException(422)
    if sure != "yes":
        return _ask_of_team(request, number, "organise.disqualify", f"/organise/teams/{number}", why.strip())
    return _withdraw(request, number, organiser.account, why=why.strip())


@router.post("/organise/teams/{number}/readmit")
def readmit(request: Request, number: Number, organiser: Organiser) -> Response:
    """Readmits a team that was withdrawn."""
    return _withdraw(request, number, organiser.account, undo=True)


@router.get("/organise/teams/{number}")
def team_members(request: Request, number: Number, _: Organiser) -> Response:
    """A team with its members."""
    return _team_page(request, number)


@router.post("/organise/teams/{number}/members")
def add_to_team(request: Request, number: Number, organiser: Organiser, name: Line) -> Response:
    """Adds an account to a team; moves it there from another one."""
    challenge = challenge_of(request)
    try:
        with challenge.writing() as connection:
            _check_team(connection, number)
            assign_member(connection, challenge, organiser.account, name, number)
    except TeamError as error:
        return _team_page(request, number, fault="organise.problem." + error.reason, entered=name)
    except InputError:
        return _team_page(request, number, fault="organise.problem.name", entered=name)
    return RedirectResponse(f"/organise/teams/{number}", 303)


@router.post("/organise/teams/{number}/members/{account}/remove")
def remove_from_team(request: Request, number: Number, account: Number, organiser: Organiser) -> Response:
    """Removes an account from a team."""
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        if not is_member(connection, account, number):
            raise HTTPException(404)
        end_membership(connection, challenge, organiser.account, account)
    return RedirectResponse(f"/organise/teams/{number}", 303)


def _team_page(request: Request, number: int, *, fault: str = "", entered: str = "") -> Response:
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        _check_team(connection, number)
        team = connection.execute(select(teams).where(teams.c.id == number)).mappings().one()
        ids = members_of(connection, number)
        named = dict(zip(ids, account_names(connection, ids), strict=True))
        texts = all_descriptions(connection, challenge.settings.phases, number)
    most, status = challenge.settings.teams.members, 422 if fault else 200
    return page(
        request,
        "organise_team",
        status=status,
        team=team,
        members=named,
        descriptions=texts,
        max_members=most,
        fault=fault,
        entered=entered,
    )


def _ask_of_team(request: Request, number: int, what: str, back: str, why: str = "") -> Response:
    with challenge_of(request).reading() as connection:
        _check_team(connection, number)
        name = connection.execute(select(teams.c.name).where(teams.c.id == number)).scalar_one()
    ranked = (submissions.c.team == number) & submissions.c.disqualified.is_(None)
    fields = {"why": why} if why else {}
    return confirm(request, what, back, fields, name=name, count=_count(request, ranked))


def _count(request: Request, condition: ColumnElement[bool]) -> int:
    with challenge_of(request).reading() as connection:
        return int(connection.execute(select(func.count()).select_from(submissions).where(condition)).scalar_one())


def _withdraw(request: Request, number: int, account: int, *, why: str = "", undo: bool = False) -> Response:
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        _check_team(connection, number)
        withdraw_team(connection, challenge, account, number, why=why, undo=undo)
    return RedirectResponse("/organise/teams", 303)


@router.post("/organise/teams/{number}/eligible")
def change_eligible(request: Request, number: Number, organiser: Organiser, eligible: Line = "") -> Response:
    """Rules whether a team is eligible for awards."""
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        _check_team(connection, number)
        set_eligible(connection, challenge, organiser.account, number, eligible=eligible == "yes")
    return RedirectResponse("/organise/teams", 303)


@router.get("/organise/submissions")
def submission_list(
    request: Request,
    _: Organiser,
    phase: Annotated[str, Query(max_length=80, pattern=r"^[\w.-]*$")] = "",
    state: Annotated[str, Query(max_length=20, pattern="^[a-z_]*$")] = "",
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """The newest submissions of all teams, filtered by phase and state."""
    challenge = challenge_of(request)
    wanted = [submissions.c.phase == phase] if phase else []
    wanted += [submissions.c.state == state] if state else []
    wanted += [submissions.c.id < before] if before is not None else []
    with challenge.reading() as connection:
        rows = _rows(connection, *wanted)
    shown = {"phase": phase, "state": state, "older": rows[_ROWS - 1]["id"] if len(rows) > _ROWS else None}
    phases = [one.name for one in challenge.settings.phases]
    states = [*SubmissionState]
    return page(request, "organise_submissions", rows=rows[:_ROWS], shown=shown, phases=phases, states=states)


@router.post("/submission/{number}/disqualify")
def disqualify_submission(
    request: Request, number: Number, organiser: Organiser, why: Line, sure: Line = ""
) -> Response:
    """Removes a submission from the boards, after asking. Its team sees the reason."""
    if not why.strip():
        raise HTTPException(422)
    if sure != "yes":
        with challenge_of(request).reading() as connection:
            name = connection.execute(select(submissions.c.name).where(submissions.c.id == number)).scalar()
        if name is None:
            raise HTTPException(404)
        fields = {"why": why.strip()}
        return confirm(request, "organise.disqualify", f"/submission/{number}", fields, name=name, count=1)
    return _disqualify(request, number, organiser.account, why.strip(), undo=False)


@router.post("/submission/{number}/reinstate")
def reinstate_submission(request: Request, number: Number, organiser: Organiser) -> Response:
    """Reinstates a submission that was disqualified."""
    return _disqualify(request, number, organiser.account, "", undo=True)


def _disqualify(request: Request, number: int, account: int, why: str, *, undo: bool) -> Response:
    challenge = challenge_of(request)
    try:
        with challenge.writing() as connection:
            disqualify(connection, challenge, account, number, why, undo=undo)
    except StaleError:
        raise HTTPException(404) from None
    return RedirectResponse(f"/submission/{number}", 303)


@router.post("/organise/teams/{number}/description/{name}/{ruling}")
def judge_description(
    request: Request,
    number: Number,
    phase: KnownPhase,
    ruling: Literal["reject", "accept"],
    organiser: Organiser,
    why: Line = "",
) -> Response:
    """Rules whether a team's description of its method suffices. Its team sees the reason why not."""
    challenge = challenge_of(request)
    if ruling == "reject" and not why.strip():
        raise HTTPException(422)
    reason = why.strip() if ruling == "reject" else ""
    try:
        with challenge.writing() as connection:
            rule_on_description(connection, challenge, organiser.account, phase.name, number, reason)
    except InputError:
        raise HTTPException(404) from None
    return RedirectResponse(f"/organise/teams/{number}", 303)


def _check_team(connection: Connection, number: int) -> None:
    if connection.execute(select(teams.c.id).where(teams.c.id == number)).first() is None:
        raise HTTPException(404)


def _rows(connection: Connection, *wanted: Any, newest: bool = True) -> list[RowMapping]:
    query = select(submissions, teams.c.name.label("team_name")).join(teams, teams.c.id == submissions.c.team)
    order = submissions.c.id.desc() if newest else submissions.c.id
    return list(connection.execute(query.where(*wanted).order_by(order).limit(_ROWS + 1)).mappings())


def _counts(connection: Connection) -> dict[str, dict[str, int]]:
    """The number of submissions by phase and state."""
    keys = submissions.c.phase, submissions.c.state
    found: dict[str, dict[str, int]] = {}
    for phase, state, count in connection.execute(select(*keys, func.count()).group_by(*keys)):
        found.setdefault(phase, {})[state] = count
    return found


def _by_team(connection: Connection, column: Any) -> dict[int, int]:
    return {int(team): int(count) for team, count in connection.execute(select(column, func.count()).group_by(column))}


def _newest_board(connection: Connection, phase: str) -> RowMapping | None:
    query = select(boards.c.at, boards.c.scorer).where(boards.c.phase == phase).order_by(boards.c.id.desc()).limit(1)
    return connection.execute(query).mappings().first()

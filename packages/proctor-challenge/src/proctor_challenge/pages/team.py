"""A team's pages: registering or joining a team, its members, and its submissions with results and receipts."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from sqlalchemy import Connection, RowMapping, select

from proctor.core import InputError, input_text
from proctor_challenge.board_pages import Visitor, may_see, shown_figures
from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Challenge
from proctor_challenge.membership import TeamError, end_membership, join_team, members_of, new_join_secret, team_of
from proctor_challenge.pages.access import Line, LoggedIn, Number, Participant, Viewer, challenge_of
from proctor_challenge.receipts import SignedReceipt, public_key, receipt_of
from proctor_challenge.schema import events, results, submissions, teams
from proctor_challenge.states import RULES, SubmissionState
from proctor_challenge.submissions import StaleError, quota_left, submissions_of
from proctor_challenge.teams import TeamEntry, register_team, withdraw_team
from proctor_challenge.uploads import cancel_upload
from proctor_web import account_names, page

router = APIRouter()

_S = SubmissionState
_DIGITS = 4  # for organisers
_CANCELLABLE = {name for name, rule in RULES.items() if _S.CANCELLED in rule.next}


@router.get("/terms")
def terms(request: Request) -> Response:
    """The terms that teams agree to."""
    challenge = challenge_of(request)
    if not challenge.settings.terms:
        raise HTTPException(404)
    return page(request, "terms", text=input_text(challenge.folder / challenge.settings.terms, "the terms"))


@router.get("/team")
def team_page(request: Request, viewer: Participant) -> Response:
    """The team, or the forms to register or join one."""
    return _team_page(request, viewer)


@router.post("/team")
def register(
    request: Request,
    viewer: Participant,
    name: Line,
    institution: Line,
    country: Line,
    terms: Line = "",
    eligible: Line = "",
    listed: Line = "",
) -> Response:
    """Registers a team. The response shows the secret by which others join, once."""
    challenge = challenge_of(request)
    entry = TeamEntry(name, institution, country.strip().upper(), terms, eligible == "yes", listed == "yes")
    if not terms and challenge.settings.terms:
        return _team_page(request, viewer, fault="team.agree", entry=entry, status=422)
    try:
        with challenge.writing() as connection:
            _, secret = register_team(connection, challenge, viewer.account, entry)
    except TeamError as error:
        return _team_page(request, viewer, fault="team.problem." + error.reason, entry=entry, status=422)
    return _team_page(request, viewer, secret=secret)


@router.post("/team/join")
def join(request: Request, viewer: Participant, secret: Line) -> Response:
    """Joins the team that has this secret."""
    challenge = challenge_of(request)
    try:
        with challenge.writing() as connection:
            join_team(connection, challenge, viewer.account, secret.strip())
    except TeamError as error:
        return _team_page(request, viewer, fault="team.problem." + error.reason, status=422)
    return RedirectResponse("/team", 303)


@router.post("/team/secret")
def replace_secret(request: Request, viewer: Participant) -> Response:
    """Replaces the team's secret."""
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        secret = new_join_secret(connection, challenge, viewer.account, viewer.own_team())
    return _team_page(request, viewer, secret=secret)


@router.post("/team/withdraw")
def withdraw(request: Request, viewer: Participant, sure: Line = "") -> Response:
    """Withdraws the team from the challenge; an organiser can readmit it."""
    team = viewer.own_team()
    if sure != "yes":
        return _team_page(request, viewer, fault="team.sure", status=422)
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        withdraw_team(connection, challenge, viewer.account, team)
    return RedirectResponse("/team", 303)


@router.post("/team/leave")
def leave(request: Request, viewer: Participant, sure: Line = "") -> Response:
    """Leaves the team, which keeps its submissions."""
    viewer.own_team()
    if sure != "yes":
        return _team_page(request, viewer, fault="team.quit_sure", status=422)
    challenge = challenge_of(request)
    try:
        with challenge.writing() as connection:
            end_membership(connection, challenge, viewer.account, viewer.account)
    except TeamError:  # an organiser was faster
        raise HTTPException(404) from None
    return RedirectResponse("/team", 303)


def _team_page(
    request: Request,
    viewer: Viewer,
    *,
    secret: str = "",
    fault: str = "",
    entry: TeamEntry | None = None,
    status: int = 200,
) -> Response:
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        team = team_of(connection, viewer.account)
        names = [] if team is None else account_names(connection, members_of(connection, team["id"]))
    return page(
        request,
        "team",
        status=status,
        team=team,
        members=names,
        max_members=challenge.settings.teams.members,
        excluded=challenge.settings.teams.excluded_countries,
        terms=challenge.terms if challenge.settings.terms else "",
        no_terms="" if challenge.settings.terms else challenge.terms,
        entry=entry or TeamEntry("", "", "", ""),
        message={"secret": secret, "fault": fault},
    )


@router.get("/submissions")
def submission_list(request: Request, viewer: Participant) -> Response:
    """All of the team's submissions, and the remaining quota of each phase."""
    challenge = challenge_of(request)
    phases, team = challenge.settings.phases, viewer.team_id
    with challenge.reading() as connection:
        mine = [] if team is None else submissions_of(connection, team)
        names = [] if team is None else [phase.name for phase in phases]
        left = {name: quota_left(connection, challenge, viewer.own_team(), name) for name in names}
        figures = {row["id"]: own_figures(connection, challenge, row, "participant") for row in mine}
    return page(request, "submissions", figures=figures, mine=mine, left=left, phases=phases, team=viewer.team)


@router.get("/submission/{number}")
def submission_page(request: Request, number: Number, viewer: LoggedIn) -> Response:
    """One submission."""
    return _submission(request, number, viewer, "submission")


@router.get("/submission/{number}/state")
def submission_state(request: Request, number: Number, viewer: LoggedIn) -> Response:
    """The part of that page that changes while the submission is in progress."""
    return _submission(request, number, viewer, "submission_state")


def _submission(request: Request, number: int, viewer: Viewer, template: str) -> Response:
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        row = _visible(connection, viewer, number)
        figures = own_figures(connection, challenge, row, viewer.audience)
        signed = _signed_receipt(connection, challenge, row, viewer.audience) is not None
        query = select(events).where(events.c.submission == number).order_by(events.c.id)
        steps = connection.execute(query).mappings().all()
    state = SubmissionState(row["state"])
    return page(
        request,
        template,
        row=row,
        steps=steps,
        figures=figures,
        signed=signed,
        final=RULES[state].final or state is _S.SCORED,
        cancellable=state in _CANCELLABLE,
        log=row["log"] or {},
        problems=[parsed_problem(one) for one in (row["log"] or {}).get("problems", [])],
        wrong=[parsed_problem(one) for one in (row["log"] or {}).get("wrong", {}).get("lines", [])],
        progress=row["progress"] or {},
    )


_PROBLEM = re.compile(r"(?:error|wrong): (?P<rule>[a-z-]+): (?P<location>.+?): (?P<text>found .+)", re.DOTALL)
_RULES = {
    *("entry", "duplicate", "unknown", "missing", "format", "too-long", "late", "no-latency", "no-answer"),
    *("no-rationale", "empty-order", "missing-label", "repeated-label", "unknown-label"),
}


def parsed_problem(line: str) -> dict[str, str]:
    """A line of `proctor check` for a page, which has a text for each `rule` ("" for another line).

    >>> parsed_problem("error: missing: q7: found no answer, expected an answer to every question")
    {'rule': 'missing', 'location': 'q7', 'text': 'found no answer, expected an answer to every question'}
    >>> parsed_problem("submission.json: found no value, expected JSON")["rule"]
    ''
    """
    found = _PROBLEM.fullmatch(line)
    if found is None or found["rule"] not in _RULES:
        return {"rule": "", "location": "", "text": line}
    return found.groupdict() | {"rule": found["rule"].replace("-", "_")}


@router.post("/submission/{number}/cancel")
def cancel_submission(request: Request, number: Number, viewer: LoggedIn) -> Response:
    """Cancels a submission, unless it is being scored or has ended."""
    challenge = challenge_of(request)
    try:
        with challenge.reading() as connection:
            _visible(connection, viewer, number)
        cancel_upload(challenge, number, organiser=viewer.audience == "organiser")
    except StaleError:
        raise HTTPException(409) from None
    return RedirectResponse(f"/submission/{number}", 303)


@router.get("/receipt-key.txt")
def receipt_key(request: Request) -> Response:
    """The public key with which `proctor check receipt` checks receipts."""
    try:
        return PlainTextResponse(public_key(challenge_of(request).folder) + "\n")
    except InputError:
        raise HTTPException(404) from None


@router.get("/submission/{number}/receipt")
def receipt(request: Request, number: Number, viewer: LoggedIn) -> Response:
    """The signed receipt of a result, for those who may see the result."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        row = _visible(connection, viewer, number)
        found = _signed_receipt(connection, challenge, row, viewer.audience)
    if found is None:
        raise HTTPException(404)
    file = f"receipt-{row['phase']}-{row['team']}-{row['number']}.json"
    headers = {"content-disposition": f'attachment; filename="{file}"'}
    return Response(found.text(), media_type="application/json", headers=headers)


def _visible(connection: Connection, viewer: Viewer, number: int) -> RowMapping:
    """A submission with its team's name, for its team and organisers; responds with 404 to others."""
    query = select(submissions, teams.c.name.label("team_name")).join(teams, teams.c.id == submissions.c.team)
    row = connection.execute(query.where(submissions.c.id == number)).mappings().first()
    if row is None or not (viewer.audience == "organiser" or viewer.team_id == row["team"]):
        raise HTTPException(404)
    return row


def _signed_receipt(
    connection: Connection, challenge: Challenge, row: RowMapping, audience: Visitor
) -> SignedReceipt | None:
    """The receipt of a submission; None when there is none, or when the result is not shown."""
    if own_figures(connection, challenge, row, audience) is None:
        return None
    try:
        return receipt_of(connection, row["id"], public_key(challenge.folder))
    except InputError:
        return None


def own_figures(
    connection: Connection, challenge: Challenge, row: RowMapping, audience: Visitor
) -> dict[str, Any] | None:
    """The result of a submission as its team or an organiser sees it. None for its team when there is no result, when
    the phase shows results to organisers only, and when the ladder holds the result back."""
    phase = challenge.settings.phase(row["phase"])
    newest = select(results).where(results.c.submission == row["id"]).order_by(results.c.scorer.desc()).limit(1)
    found = connection.execute(newest).mappings().first()
    if found is None or row["state"] != _S.SCORED:
        return None
    figures = Figures.model_validate(found["figures"])
    if audience == "organiser":
        return figures.model_dump(mode="json") | {"scorer": found["scorer"], "digits": _DIGITS}
    if not may_see(phase.results, audience, challenge.now()):
        return None
    shown = shown_figures(figures, phase)
    return None if shown is None else shown | {"scorer": found["scorer"], "digits": phase.results.digits}

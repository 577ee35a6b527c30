"""A participant's team: registering one, joining by its secret, and what members may change."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from proctor.challenges.pages.access import Line, Participant, SiteParticipant, challenge_of
from proctor.challenges.teams import (
    TeamEntry,
    join_team,
    members_of,
    new_join_secret,
    register_team,
    team_of,
    withdraw_team,
)
from proctor.core import InputError, input_text
from proctor.web import account_names, page

router = APIRouter()


@router.get("/terms")
def terms(request: Request) -> Response:
    """The terms that teams agree to."""
    challenge = challenge_of(request)
    if not challenge.settings.terms:
        raise HTTPException(404)
    return page(request, "terms", text=input_text(challenge.folder / challenge.settings.terms, "the terms"))


@router.get("/team")
def team_page(request: Request, entrant: Participant) -> Response:
    """The team, or how to come into one."""
    return _page(request, entrant)


@router.post("/team")
def register(
    request: Request,
    entrant: Participant,
    name: Line,
    institution: Line,
    country: Line,
    terms: Line = "",
    eligible: Line = "",
    listed: Line = "",
) -> Response:
    """Registers a team, and shows the secret by which others join, once."""
    challenge = challenge_of(request)
    said = TeamEntry(name, institution, country.strip().upper(), terms, eligible == "yes", listed == "yes")
    if not terms and challenge.settings.terms:
        return _page(request, entrant, fault="team.agree", said=said, status=422)
    try:
        with challenge.writing() as connection:
            _, secret = register_team(connection, challenge, entrant.account, said)
    except InputError as error:
        return _page(request, entrant, problem=str(error), said=said, status=422)
    return _page(request, entrant, secret=secret)


@router.post("/team/join")
def join(request: Request, entrant: Participant, secret: Line) -> Response:
    """Joins the team whose secret it is."""
    challenge = challenge_of(request)
    try:
        with challenge.writing() as connection:
            join_team(connection, challenge, entrant.account, secret.strip())
    except InputError as error:
        return _page(request, entrant, problem=str(error), status=422)
    return RedirectResponse("/team", 303)


@router.post("/team/secret")
def another_secret(request: Request, entrant: Participant) -> Response:
    """Another secret; the former one ends."""
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        secret = new_join_secret(connection, challenge, entrant.account, entrant.team_id)
    return _page(request, entrant, secret=secret)


@router.post("/team/withdraw")
def withdraw(request: Request, entrant: Participant, sure: Line = "") -> Response:
    """Takes the team out of the challenge; an organiser can take that back."""
    team = entrant.team_id
    if sure != "yes":
        return _page(request, entrant, fault="team.sure", status=422)
    challenge = challenge_of(request)
    with challenge.writing() as connection:
        withdraw_team(connection, challenge, entrant.account, team)
    return RedirectResponse("/team", 303)


def _page(
    request: Request,
    entrant: SiteParticipant,
    *,
    secret: str = "",
    fault: str = "",
    problem: str = "",
    said: TeamEntry | None = None,
    status: int = 200,
) -> Response:
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        team = team_of(connection, entrant.account)
        names = [] if team is None else account_names(connection, members_of(connection, team["id"]))
    return page(
        request,
        "team",
        status=status,
        team=team,
        members=names,
        most=challenge.settings.teams.members,
        excluded=challenge.settings.teams.excluded_countries,
        terms=challenge.terms if challenge.settings.terms else "",
        no_terms="" if challenge.settings.terms else challenge.terms,
        said=said or TeamEntry("", "", "", ""),
        told={"secret": secret, "fault": fault, "problem": problem},
    )

"""People and the trail, for organisers: what `proctor users` does, in the browser."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, HTTPException, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection, RowMapping, select

from proctor.core import InputError
from proctor.web.access import require
from proctor.web.accounts import Changed, add_account, disable, enable, invite, set_role
from proctor.web.pages import page
from proctor.web.people import people_of
from proctor.web.schema import accounts, trail
from proctor.web.sessions import Visitor, site_of

router = APIRouter(prefix="/organise")

organiser = require("organiser")
Organiser = Annotated[Visitor, Depends(organiser)]
AccountId = Annotated[int, Path(ge=1, le=2**31 - 1)]
Text = Annotated[str, Form(max_length=200)]

_ENTRIES = 100


@router.get("/people", dependencies=[Depends(organiser)])
def people(request: Request) -> Response:
    """Everybody, and a form for one more."""
    return _people(request)


@router.post("/people")
def add(request: Request, visitor: Organiser, name: Text, role: Text, language: Text) -> Response:
    """Makes an account, and shows the link for its owner, once."""
    site = site_of(request)
    changed = Changed(visitor.account, site.now())
    if role not in site.roles:
        raise HTTPException(422)
    try:
        with site.writing() as connection:
            account = add_account(connection, name, role, language, changed)
            token = invite(connection, account, changed)
    except InputError as error:
        return _people(request, fault=str(error), status=422)
    return _people(request, invited=account["name"], link=_link(request, token))


@router.post("/people/{account}/invite")
def invite_again(request: Request, visitor: Organiser, account: AccountId) -> Response:
    """Shows a new link; the former one ends."""
    site = site_of(request)
    with site.writing() as connection:
        row = _account(connection, account)
        token = invite(connection, row, Changed(visitor.account, site.now()))
    return _people(request, invited=row["name"], link=_link(request, token))


@router.post("/people/{account}/role")
def give_role(request: Request, visitor: Organiser, account: AccountId, role: Text) -> Response:
    """Another role, from the next login on."""
    site = site_of(request)
    if role not in site.roles:
        raise HTTPException(422)
    with site.writing() as connection:
        row = _anothers(connection, account, visitor)
        set_role(connection, row, role, Changed(visitor.account, site.now()))
    return RedirectResponse("/organise/people", 303)


@router.post("/people/{account}/{change}")
def shut_out(
    request: Request, visitor: Organiser, account: AccountId, change: Annotated[str, Path(pattern="^(disable|enable)$")]
) -> Response:
    """Shuts somebody out at once, or lets them in again."""
    site = site_of(request)
    with site.writing() as connection:
        row = _anothers(connection, account, visitor)
        (disable if change == "disable" else enable)(connection, row, Changed(visitor.account, site.now()))
    return RedirectResponse("/organise/people", 303)


@router.get("/trail", dependencies=[Depends(organiser)])
def show_trail(request: Request, before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None) -> Response:
    """The newest entries, or those before one."""
    query = select(trail, accounts.c.name).join(accounts, accounts.c.id == trail.c.account, isouter=True)
    if before is not None:
        query = query.where(trail.c.id < before)
    with site_of(request).reading() as connection:
        entries = connection.execute(query.order_by(trail.c.id.desc()).limit(_ENTRIES + 1)).mappings().all()
    shown = entries[:_ENTRIES]
    older = shown[-1]["id"] if len(entries) > _ENTRIES else None
    return page(request, "trail", entries=shown, older=older)


def _people(request: Request, *, invited: str = "", link: str = "", fault: str = "", status: int = 200) -> Response:
    site = site_of(request)
    with site.reading() as connection:
        found = people_of(connection, site.now())
    told = {"invited": invited, "link": link, "fault": fault}
    return page(request, "people", status=status, people=found, told=told, roles=site.roles, newcomer=site.newcomer)


def _account(connection: Connection, number: int) -> RowMapping:
    row = connection.execute(select(accounts).where(accounts.c.id == number)).mappings().first()
    if row is None:
        raise HTTPException(404)
    return row


def _anothers(connection: Connection, number: int, visitor: Visitor) -> RowMapping:
    """Nobody takes the right to organise from themselves, so that one organiser is always left."""
    if number == visitor.account:
        raise HTTPException(409)
    return _account(connection, number)


def _link(request: Request, token: str) -> str:
    return f"{site_of(request).address or str(request.base_url).rstrip('/')}/invitation/{token}"

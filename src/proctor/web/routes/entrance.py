"""Logging in and out, invitations, the language, and the first page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import update

from proctor.web.access import current
from proctor.web.accounts import hashed, invited, password_fault, take_up
from proctor.web.logins import log_in
from proctor.web.pages import page
from proctor.web.schema import accounts
from proctor.web.sessions import Visitor, drop_cookie, end_session, keep_cookie, site_of, start_session, visitor_of
from proctor.web.strings import languages
from proctor.web.trail import record

router = APIRouter()

Text = Annotated[str, Form(max_length=1000)]
Somebody = Annotated[Visitor | None, Depends(visitor_of)]


@router.get("/login")
def login_page(request: Request, visitor: Somebody, next: str = "") -> Response:  # noqa: A002 (its name in the address)
    """The form; who is logged in already goes on."""
    if visitor is not None:
        return RedirectResponse(local_path(next), 303)
    return page(request, "login", next=local_path(next), fault="")


@router.post("/login")
def login(request: Request, visitor: Somebody, name: Text, password: Text, next: Text = "") -> Response:  # noqa: A002
    """Begins a session; one that there was ends."""
    site = site_of(request)
    attempt = log_in(site, name, password, request.client.host if request.client else "")
    if not attempt.token:
        fault, status = ("login.wait", 429) if attempt.waiting else ("login.wrong", 401)
        return page(request, "login", status=status, next=local_path(next), fault=fault)
    if visitor is not None:
        with site.writing() as connection:
            end_session(connection, visitor.token_hash)
    response = RedirectResponse(local_path(next), 303)
    keep_cookie(site, response, attempt.token)
    return response


@router.post("/logout")
def logout(request: Request, visitor: Somebody) -> Response:
    """Ends the session, here and in the database. What the browser keeps because it is not saved yet stays there for
    its writer, also where somebody else logs out."""
    site = site_of(request)
    if visitor is not None:
        with site.writing() as connection:
            end_session(connection, visitor.token_hash)
    response = RedirectResponse("/login", 303, {"Clear-Site-Data": '"cache"'})
    drop_cookie(site, response)
    return response


@router.get("/invitation/{token}")
def invitation_page(request: Request, token: str) -> Response:
    """The form in which an invited person chooses a password."""
    site = site_of(request)
    with site.reading() as connection:
        account = invited(connection, token, site.now())
    if account is None:
        return page(request, "invitation", status=404, account=None, fault="")
    return page(request, "invitation", account=account["name"], fault="")


@router.post("/invitation/{token}")
def accept_invitation(request: Request, visitor: Somebody, token: str, password: Text, again: Text) -> Response:
    """Sets the password and logs in; the link is used up."""
    site = site_of(request)
    with site.reading() as connection:
        account = invited(connection, token, site.now())
    if account is None:
        return page(request, "invitation", status=404, account=None, fault="")
    fault = password_fault(account["name"], password) or ("password.differ" if password != again else "")
    if fault:
        return page(request, "invitation", status=422, account=account["name"], fault=fault)
    password_hash = hashed(password)  # before the transaction: it takes a while
    with site.writing() as connection:
        if take_up(connection, token, password_hash, site.now()) is None:
            raise HTTPException(404)
        if visitor is not None:
            end_session(connection, visitor.token_hash)
        session = start_session(connection, account["id"], site.now())
    response = RedirectResponse("/", 303)
    keep_cookie(site, response, session)
    return response


@router.post("/language")
def choose_language(request: Request, visitor: Annotated[Visitor, Depends(current)], language: Text) -> Response:
    """The language of the account's pages."""
    if language not in languages():
        raise HTTPException(422)
    site = site_of(request)
    with site.writing() as connection:
        mine = update(accounts).where(accounts.c.id == visitor.account)
        connection.execute(mine.values(language=language))
        record(connection, site.now(), visitor.account, "set language", f"account {visitor.account}")
    return RedirectResponse("/", 303)


def local_path(given: str) -> str:
    """The path, where it is one of this server; else `/`.

    >>> local_path("/item/7?all=1"), local_path("//evil.example"), local_path("https://evil.example"), local_path("/\\\\evil")
    ('/item/7?all=1', '/', '/', '/')
    """
    own = given.startswith("/") and not given.startswith("//") and "\\" not in given
    return given if own and given.isascii() and given.isprintable() and len(given) <= 1000 else "/"

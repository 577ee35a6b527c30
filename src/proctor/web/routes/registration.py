"""Accounts that people make themselves, where a site's registration is open."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from proctor.core import InputError
from proctor.web.accounts import account_name, hashed, password_fault, register_account
from proctor.web.logins import begin_attempt
from proctor.web.pages import language_of, page
from proctor.web.sessions import Visitor, keep_cookie, site_of, start_session, visitor_of

router = APIRouter()

Text = Annotated[str, Form(max_length=1000)]
Somebody = Annotated[Visitor | None, Depends(visitor_of)]


@router.get("/register")
def registration_page(request: Request, visitor: Somebody) -> Response:
    """The form; who is logged in has an account already."""
    if not site_of(request).open_registration:
        raise HTTPException(404)
    if visitor is not None:
        return RedirectResponse("/", 303)
    return page(request, "register", given="", fault="")


@router.post("/register")
def register(request: Request, visitor: Somebody, name: Text, password: Text, again: Text) -> Response:
    """Makes the account and logs in. Each try counts for the address like a failed login: nobody fills the list of
    accounts by a script."""
    site = site_of(request)
    if not site.open_registration or visitor is not None:
        raise HTTPException(404)
    fault = _fault(name, password, again)
    if fault:
        return page(request, "register", status=422, given=name[:80], fault=fault)
    with site.writing() as connection:
        tried = f"new {account_name(name)}"[:80]  # no account's name: attempts to log in are others
        admitted = begin_attempt(connection, tried, request.client.host if request.client else "", site.now())
    if admitted is None:
        return page(request, "register", status=429, given=name[:80], fault="login.wait")
    password_hash = hashed(password)  # outside a transaction: it takes a while
    try:
        with site.writing() as connection:
            language = language_of(request, None)
            account = register_account(connection, name, site.newcomer, language, password_hash, site.now())
            session = start_session(connection, account["id"], site.now())
    except InputError:
        return page(request, "register", status=409, given=name[:80], fault="register.taken")
    response = RedirectResponse("/", 303)
    keep_cookie(site, response, session)
    return response


def _fault(name: str, password: str, again: str) -> str:
    try:
        kept = account_name(name)
    except InputError:
        return "register.bad"
    return password_fault(kept, password) or ("password.differ" if password != again else "")

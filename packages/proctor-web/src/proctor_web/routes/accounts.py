"""Login, invitations, registration and language; for organisers, people and the trail."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection, RowMapping, select, update

from proctor.core import InputError
from proctor_web.accounts import (
    Changed,
    account_name,
    add_account,
    disable,
    hashed,
    invite,
    invited,
    password_fault,
    people_of,
    register_account,
    set_role,
    take_up,
)
from proctor_web.pages import confirm, language_of, page
from proctor_web.routes import OptionalVisitor, Organiser, RowId, Text
from proctor_web.schema import accounts, trail
from proctor_web.sessions import (
    Visitor,
    begin_attempt,
    current,
    drop_cookie,
    end_session,
    keep_cookie,
    log_in,
    site_of,
    start_session,
)
from proctor_web.strings import languages
from proctor_web.trail import person_subject, record, shown_entries

router = APIRouter()

_ENTRIES = 100


@router.get("/login")
def login_page(request: Request, visitor: OptionalVisitor, next: str = "") -> Response:  # noqa: A002 (its name in the address)
    """The login form; visitors who are logged in are redirected."""
    if visitor is not None:
        return RedirectResponse(local_path(next), 303)
    return page(request, "login", next=local_path(next), fault="")


@router.post("/login")
def login(request: Request, visitor: OptionalVisitor, name: Text, password: Text, next: Text = "") -> Response:  # noqa: A002
    """Starts a session; the browser's former session ends."""
    site = site_of(request)
    attempt = log_in(site, name, password, _address(request))
    if not attempt.token:
        fault, status = ("login.wait", 429) if attempt.waiting else ("login.wrong", 401)
        return page(request, "login", status=status, next=local_path(next), fault=fault)
    with site.writing() as connection:
        end_session(connection, visitor)
    return _logged_in(request, attempt.token, local_path(next))


@router.post("/logout")
def logout(request: Request, visitor: OptionalVisitor) -> Response:
    """Ends the session, in the browser and in the database. Unsaved work stays in the browser for its writer."""
    site = site_of(request)
    with site.writing() as connection:
        end_session(connection, visitor)
    response = RedirectResponse("/login", 303, {"Clear-Site-Data": '"cache"'})
    drop_cookie(site, response)
    return response


@router.get("/invitation/{token}")
def invitation_page(request: Request, token: str) -> Response:
    """The form to choose a password."""
    return _invitation_page(request, token)


@router.post("/invitation/{token}")
def accept_invitation(request: Request, visitor: OptionalVisitor, token: str, password: Text, again: Text) -> Response:
    """Sets the password and logs in; the invitation ends."""
    site = site_of(request)
    with site.reading() as connection:
        account = invited(connection, token, site.now())
    fault = _password_fault(account["name"], password, again) if account is not None else ""
    if account is None or fault:
        return _invitation_page(request, token, fault)
    password_hash = hashed(password)  # before the transaction: it takes a while
    with site.writing() as connection:
        if take_up(connection, token, password_hash, site.now()) is None:
            raise HTTPException(404)
        end_session(connection, visitor)
        session = start_session(connection, account["id"], site.now())
    return _logged_in(request, session)


def _invitation_page(request: Request, token: str, fault: str = "") -> Response:
    site = site_of(request)
    with site.reading() as connection:
        account = invited(connection, token, site.now())
    if account is None:
        return page(request, "invitation", status=404, account=None, fault="")
    return page(request, "invitation", status=422 if fault else 200, account=account["name"], fault=fault)


@router.get("/register")
def registration_page(request: Request, visitor: OptionalVisitor) -> Response:
    """The registration form; visitors who are logged in are redirected."""
    if not site_of(request).open_registration:
        raise HTTPException(404)
    if visitor is not None:
        return RedirectResponse("/", 303)
    return page(request, "register", given="", fault="")


@router.post("/register")
def register(request: Request, visitor: OptionalVisitor, name: Text, password: Text, again: Text) -> Response:
    """Adds an account and logs in. Each try counts for the address like a failed login, which stops scripts."""
    site = site_of(request)
    if not site.open_registration or visitor is not None:
        raise HTTPException(404)
    fault = _registration_fault(name, password, again)
    if fault:
        return page(request, "register", status=422, given=name[:80], fault=fault)
    with site.writing() as connection:
        tried = f"new {account_name(name)}"  # not an account's name: logins are counted apart
        admitted = begin_attempt(site, connection, tried, _address(request))
    if admitted is None:
        return page(request, "register", status=429, given=name[:80], fault="login.wait")
    password_hash = hashed(password)  # before the transaction: it takes a while
    try:
        with site.writing() as connection:
            language = language_of(request, None)
            account = register_account(connection, name, site.newcomer, language, password_hash, site.now())
            session = start_session(connection, account["id"], site.now())
    except InputError:
        return page(request, "register", status=409, given=name[:80], fault="register.taken")
    return _logged_in(request, session)


def _registration_fault(name: str, password: str, again: str) -> str:
    return _password_fault(account_name(name), password, again) if _is_name(name) else "register.bad"


def _is_name(text: str) -> bool:
    try:
        account_name(text)
    except InputError:
        return False
    return True


def _password_fault(name: str, password: str, again: str) -> str:
    return password_fault(name, password) or ("password.differ" if password != again else "")


def _logged_in(request: Request, token: str, path: str = "/") -> Response:
    response = RedirectResponse(path, 303)
    keep_cookie(site_of(request), response, token)
    return response


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


@router.post("/language")
def choose_language(request: Request, visitor: Annotated[Visitor, Depends(current)], language: Text) -> Response:
    """Sets the language of the account's pages."""
    if language not in languages():
        raise HTTPException(422)
    site = site_of(request)
    with site.writing() as connection:
        connection.execute(update(accounts).where(accounts.c.id == visitor.account).values(language=language))
        subject = person_subject(connection, visitor.account)
        record(connection, site.now(), visitor.account, "set language", subject)
    return RedirectResponse("/", 303)


def local_path(given: str) -> str:
    """The path if it is on this server, else `/`.

    >>> local_path("/item/7?all=1"), local_path("//evil.example"), local_path("https://evil.example"), local_path("/\\\\evil")
    ('/item/7?all=1', '/', '/', '/')
    """
    own = given.startswith("/") and not given.startswith("//") and "\\" not in given
    return given if own and given.isascii() and given.isprintable() and len(given) <= 1000 else "/"


# -- people and the trail


@router.get("/organise/people")
def people(request: Request, visitor: Organiser) -> Response:
    """All accounts, and the form to add one."""
    del visitor
    return _people_page(request)


@router.post("/organise/people")
def add(request: Request, visitor: Organiser, name: Text, role: Text, language: Text) -> Response:
    """Adds an account, and shows the link of its invitation once."""
    site = site_of(request)
    changed = Changed(visitor.account, site.now())
    _check_role(request, role)
    if language not in languages():
        raise HTTPException(422)
    if not _is_name(name):
        return _people_page(request, fault="register.bad", status=422)
    try:
        with site.writing() as connection:
            account = add_account(connection, name, role, language, changed)
            token = invite(connection, account, changed)
    except InputError:
        return _people_page(request, fault="register.taken", status=422)
    return _people_page(request, name=account["name"], token=token)


@router.post("/organise/people/{account}/invite")
def invite_again(request: Request, visitor: Organiser, account: RowId) -> Response:
    """Shows a new link; the former one ends."""
    site = site_of(request)
    with site.writing() as connection:
        row = _account(connection, account)
        token = invite(connection, row, Changed(visitor.account, site.now()))
    return _people_page(request, name=row["name"], token=token)


@router.post("/organise/people/{account}/role")
def give_role(request: Request, visitor: Organiser, account: RowId, role: Text) -> Response:
    """Gives a person another role, from the next login on."""
    site = site_of(request)
    _check_role(request, role)
    with site.writing() as connection:
        set_role(connection, _other_account(connection, account, visitor), role, Changed(visitor.account, site.now()))
    return RedirectResponse("/organise/people", 303)


@router.post("/organise/people/{account}/{change}")
def enable_or_disable(
    request: Request,
    visitor: Organiser,
    account: RowId,
    change: Annotated[str, Path(pattern="^(disable|enable)$")],
    sure: Text = "",
) -> Response:
    """Disables an account at once, after asking, or enables it again."""
    site = site_of(request)
    if change == "disable" and sure != "yes":
        with site.reading() as connection:
            name = _other_account(connection, account, visitor)["name"]
        return confirm(request, "people.shut_out", "/organise/people", name=name)
    with site.writing() as connection:
        row = _other_account(connection, account, visitor)
        disable(connection, row, Changed(visitor.account, site.now()), undo=change == "enable")
    return RedirectResponse("/organise/people", 303)


@router.get("/organise/trail")
def trail_page(
    request: Request,
    visitor: Organiser,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    drafts: bool = False,
) -> Response:
    """The newest entries of the trail, or those before one; saved drafts only where they are asked for."""
    del visitor
    query = select(trail)
    if before is not None:
        query = query.where(trail.c.id < before)
    if not drafts:
        query = query.where(trail.c.action != "save draft")
    with site_of(request).reading() as connection:
        found = connection.execute(query.order_by(trail.c.id.desc()).limit(_ENTRIES + 1)).mappings().all()
        shown = shown_entries(connection, found[:_ENTRIES])
    older = shown[-1].id if len(found) > _ENTRIES else None
    return page(request, "trail", entries=shown, older=older, drafts=drafts)


def _people_page(request: Request, *, name: str = "", token: str = "", fault: str = "", status: int = 200) -> Response:
    """The page of people, with the link of a new invitation (`name`, `token`), or with a `fault` by
    the key of its text."""
    site = site_of(request)
    with site.reading() as connection:
        found = people_of(connection, site.now())
    link = f"{site.address or str(request.base_url).rstrip('/')}/invitation/{token}" if token else ""
    return page(
        request,
        "people",
        status=status,
        people=found,
        roles=site.roles,
        newcomer=site.newcomer,
        invited=name,
        link=link,
        fault=fault,
    )


def _check_role(request: Request, role: str) -> None:
    if role not in site_of(request).roles:
        raise HTTPException(422)


def _account(connection: Connection, number: int) -> RowMapping:
    row = connection.execute(select(accounts).where(accounts.c.id == number)).mappings().first()
    if row is None:
        raise HTTPException(404)
    return row


def _other_account(connection: Connection, number: int, visitor: Visitor) -> RowMapping:
    """The account, unless it is the visitor's own: so one organiser always remains."""
    if number == visitor.account:
        raise HTTPException(409)
    return _account(connection, number)

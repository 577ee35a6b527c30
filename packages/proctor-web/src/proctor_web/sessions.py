"""Logging in, sessions and when they end, roles, CSRF tokens, and how many failed logins are allowed.

A session is a row in the database and a signed cookie that names it. Either one ends without the other. The database
keeps only the hash of the cookie's secret, so that a copy of the database lets nobody log in.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from fastapi import HTTPException, Request, Response
from itsdangerous import BadSignature, Signer, TimestampSigner
from sqlalchemy import Connection, bindparam, delete, exists, func, insert, or_, select, text, update

from proctor.core import InputError
from proctor_web.accounts import account_name, account_row, is_password
from proctor_web.busy import change_if_free
from proctor_web.proxies import network
from proctor_web.schema import Role, accounts, keyed_hash, logins, new_token, sessions, token_hash, utc_text
from proctor_web.site import Site

IDLE = timedelta(hours=8)
ABSOLUTE = timedelta(days=7)
WINDOW = timedelta(minutes=15)
BY_NAME, BY_ADDRESS = 10, 60
_SEEN_EVERY = timedelta(minutes=1)
_LOGINS_KEPT = timedelta(days=90)
_FORM_AGE_S = 4 * 3600


class LoginNeededError(Exception):
    """Nobody is logged in: pages redirect to the login, everything else is answered with 401."""


@dataclass(frozen=True)
class Visitor:
    """The account that sends a request. `csrf` must come back with each change."""

    account: int
    name: str
    pseudonym: str
    role: Role
    language: str
    csrf: str
    token_hash: str


def site_of(request: Request) -> Site:
    """The site that is served."""
    return cast("Site", request.app.state.site)


def visitor_of(request: Request) -> Visitor | None:
    """The visitor; None without a valid session."""
    if "visitor" not in request.scope:
        request.scope["visitor"] = _find_visitor(site_of(request), request)
    return cast("Visitor | None", request.scope["visitor"])


def current(request: Request) -> Visitor:
    """The visitor; raises `LoginNeededError` where nobody is logged in."""
    visitor = visitor_of(request)
    if visitor is None:
        raise LoginNeededError
    return visitor


def require(*roles: Role) -> Callable[[Request], Awaitable[Visitor]]:
    """A dependency that returns the visitor, and answers 404 to visitors in other roles.

    @router.get("/organise/", dependencies=[Depends(require("organiser"))])
    """

    async def allowed(request: Request) -> Visitor:  # in the event loop: the visitor was found before
        visitor = current(request)
        if visitor.role not in roles:
            raise HTTPException(404)
        return visitor

    return allowed


def _find_visitor(site: Site, request: Request) -> Visitor | None:
    try:
        token = Signer(site.key, salt="session").unsign(request.cookies.get(session_cookie(site), "")).decode()
    except (BadSignature, UnicodeDecodeError):
        return None
    now = site.now()
    live = (
        sessions.c.token_hash == token_hash(token),
        sessions.c.expires > utc_text(now),
        sessions.c.seen > utc_text(now - IDLE),
        accounts.c.disabled.is_(None),
    )
    query = select(accounts, sessions).join(sessions, sessions.c.account == accounts.c.id).where(*live)
    with site.reading() as connection:
        row = connection.execute(query).mappings().first()
    if row is None:
        return None
    if row["seen"] < utc_text(now - _SEEN_EVERY):
        seen = update(sessions).where(sessions.c.token_hash == row["token_hash"]).values(seen=utc_text(now))
        change_if_free(site.engine, lambda connection: connection.execute(seen))  # readers wait for no writer
    names = ("name", "pseudonym", "role", "language", "csrf", "token_hash")
    return Visitor(account=row["account"], **{name: row[name] for name in names})


# -- sessions and cookies


def start_session(connection: Connection, account: int, at: datetime) -> str:
    """Starts a session, removes expired ones, and returns the cookie's secret."""
    token = new_token()
    now = utc_text(at)
    connection.execute(delete(sessions).where(sessions.c.expires < now))
    row = {"account": account, "csrf": new_token(), "created": now, "seen": now, "expires": utc_text(at + ABSOLUTE)}
    connection.execute(insert(sessions).values(token_hash=token_hash(token), **row))
    return token


def end_session(connection: Connection, visitor: Visitor | None) -> None:
    """Ends the visitor's session, if there is one."""
    if visitor is not None:
        connection.execute(delete(sessions).where(sessions.c.token_hash == visitor.token_hash))


def keep_cookie(site: Site, response: Response, token: str) -> None:
    """Sets the session's cookie, out of reach of scripts and of other sites' forms."""
    signed = Signer(site.key, salt="session").sign(token).decode()
    _set_cookie(site, response, session_cookie(site), signed, int(ABSOLUTE.total_seconds()))


def drop_cookie(site: Site, response: Response) -> None:
    """Removes the session's cookie."""
    _set_cookie(site, response, session_cookie(site), "", 0)


def session_cookie(site: Site) -> str:
    """The cookie's name. With `__Host-`, browsers refuse a cookie set by another host or without TLS."""
    return "__Host-proctor" if site.tls else "proctor"


def _set_cookie(site: Site, response: Response, name: str, value: str, age_s: int) -> None:
    response.set_cookie(name, value, max_age=age_s, path="/", secure=site.tls, httponly=True, samesite="lax")


# -- tokens of forms


def form_token(request: Request) -> str:
    """The CSRF token of a visitor without a session: a signed number, kept in its own cookie."""
    if "form_token" not in request.scope:
        signer = TimestampSigner(site_of(request).key, salt="form")
        request.scope["form_token"] = _known_form_token(request) or signer.sign(new_token()).decode()
    return cast("str", request.scope["form_token"])


def keep_form_token(request: Request, response: Response) -> None:
    """Sets the cookie of the form token."""
    site = site_of(request)
    _set_cookie(site, response, _form_cookie(site), form_token(request), _FORM_AGE_S)


def check_token(request: Request, visitor: Visitor | None, given: str) -> None:
    """Answers 403 unless the token is the visitor's."""
    expected = _known_form_token(request) if visitor is None else visitor.csrf
    if not expected or not secrets.compare_digest(given.encode(errors="replace"), expected.encode()):
        raise HTTPException(403)


def _known_form_token(request: Request) -> str:
    """The form token in the browser's cookie; "" where there is none, or an expired one."""
    site = site_of(request)
    given = request.cookies.get(_form_cookie(site), "")
    try:
        TimestampSigner(site.key, salt="form").unsign(given, max_age=_FORM_AGE_S)
    except BadSignature:
        return ""
    return given


def _form_cookie(site: Site) -> str:
    return f"{session_cookie(site)}-form"


# -- logging in
# An attempt is stored as a failure before the password is checked, and becomes a success afterwards: so attempts at the
# same time are counted like attempts in a row. Attempts refused for their number are not counted, and the wait ends.

_HERE = logins.c.address == bindparam("address")
_OF_NAME = logins.c.name_hash == bindparam("name_hash")
_FAILED = select(func.count()).where(logins.c.at > bindparam("since"), logins.c.ok == 0)
_OWNERS_ADDRESS = exists().where(_OF_NAME, _HERE, logins.c.ok == 1).correlate(None)
_FAILURES = select(
    _FAILED.where(_OF_NAME, or_(_HERE, ~_OWNERS_ADDRESS)).scalar_subquery(), _FAILED.where(_HERE).scalar_subquery()
)


@dataclass(frozen=True)
class Attempt:
    """The result of a login. `token` is the new session's secret; without one, `waiting` says that there were too many
    attempts, else the name or the password is wrong (which one is not disclosed)."""

    token: str = ""
    waiting: bool = False


def log_in(site: Site, name: str, password: str, address: str) -> Attempt:
    """Tries a name and a password from an address. Known and unknown names take the same time."""
    with site.writing() as connection:
        try:
            found = account_row(connection, name)
            kept = account_name(name) if found is None else found["name"]
        except InputError:
            found, kept = None, ""
        number = begin_attempt(site, connection, kept, address, None if found is None else found["id"])
    if number is None:
        return Attempt(waiting=True)
    if found is not None and found["disabled"] is not None:
        found = None
    if not is_password("" if found is None else found["password"], password) or found is None:
        return Attempt()
    with site.writing() as connection:
        now = site.now()
        still = select(accounts.c.id).where(accounts.c.id == found["id"], accounts.c.password == found["password"])
        if connection.execute(still.where(accounts.c.disabled.is_(None))).first() is None:  # changed meanwhile
            return Attempt()
        connection.execute(update(logins).where(logins.c.id == number).values(ok=1))
        over = or_(
            logins.c.at < utc_text(now - _LOGINS_KEPT), (logins.c.ok == 0) & (logins.c.at < utc_text(now - WINDOW))
        )
        connection.execute(delete(logins).where(over))
        return Attempt(start_session(connection, found["id"], now))


def begin_attempt(
    site: Site, connection: Connection, name: str, address: str, account: int | None = None
) -> int | None:
    """Stores an attempt and returns its number; None after too many failures within 15 minutes: 10 for the name, or 60
    from the address. From an address where the name's owner has logged in before, only failures from there count for
    the name, so that strangers can't lock anybody out.

    The name is stored as its keyed hash, as it may be that of somebody without an account, or a password typed into the
    wrong field; `account` is the one that has the name."""
    if connection.dialect.name == "postgresql":  # attempts at the same time are counted one by one, as in SQLite
        connection.execute(text("lock table logins in share row exclusive mode"))
    location = network(address)
    at, name_hash = site.now(), keyed_hash(site.key, f"login {name}")
    given = {"name_hash": name_hash, "address": location, "since": utc_text(at - WINDOW)}
    of_name, of_address = connection.execute(_FAILURES, given).one()
    if of_name >= BY_NAME or of_address >= BY_ADDRESS:
        return None
    row = {"name_hash": name_hash, "account": account, "address": location, "at": utc_text(at), "ok": 0}
    return int(connection.execute(insert(logins).values(row).returning(logins.c.id)).scalar_one())

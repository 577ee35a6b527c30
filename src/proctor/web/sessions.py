"""Sessions: a row in the database and a signed cookie that names it. Either one ends without the other.

The database keeps the hash of a cookie's secret, so that nobody who reads a copy of it can log in.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from fastapi import Request, Response
from itsdangerous import BadSignature, Signer, TimestampSigner
from sqlalchemy import Connection, delete, insert, select, update

from proctor.web.schema import Role, accounts, new_token, sessions, utc_text
from proctor.web.site import Site

IDLE = timedelta(hours=8)
ABSOLUTE = timedelta(days=7)
_SEEN_EVERY = timedelta(minutes=1)
_FORM_AGE_S = 4 * 3600


@dataclass(frozen=True)
class Visitor:
    """Who asks, as the session's row and the account say now. `csrf` must come back with each change."""

    account: int
    name: str
    pseudonym: str
    role: Role
    language: str
    csrf: str
    token_hash: str


def start_session(connection: Connection, account: int, at: datetime) -> str:
    """Begins a session, and removes those that have ended; returns the cookie's secret."""
    token = new_token()
    now = utc_text(at)
    connection.execute(delete(sessions).where(sessions.c.expires < now))
    row = {"account": account, "csrf": new_token(), "created": now, "seen": now, "expires": utc_text(at + ABSOLUTE)}
    connection.execute(insert(sessions).values(token_hash=_hash(token), **row))
    return token


def end_session(connection: Connection, token_hash: str) -> None:
    """Ends one session."""
    connection.execute(delete(sessions).where(sessions.c.token_hash == token_hash))


def end_sessions(connection: Connection, account: int) -> None:
    """Ends all sessions of an account: after a new password or role, and when it is disabled."""
    connection.execute(delete(sessions).where(sessions.c.account == account))


def site_of(request: Request) -> Site:
    """The site that is served."""
    return cast("Site", request.app.state.site)


def visitor_of(request: Request) -> Visitor | None:
    """Who asks; None without a session that holds."""
    if "visitor" not in request.scope:
        request.scope["visitor"] = _find(site_of(request), request)
    return cast("Visitor | None", request.scope["visitor"])


def keep_cookie(site: Site, response: Response, token: str) -> None:
    """Hands the session's secret to the browser, out of reach of scripts and of other sites' forms."""
    signed = Signer(site.key, salt="session").sign(token).decode()
    _set(site, response, session_cookie(site), signed, int(ABSOLUTE.total_seconds()))


def drop_cookie(site: Site, response: Response) -> None:
    """Takes the session's cookie back."""
    _set(site, response, session_cookie(site), "", 0)


def session_cookie(site: Site) -> str:
    """The cookie's name. `__Host-` makes browsers refuse one that another host set, or that came without TLS."""
    return "__Host-proctor" if site.tls else "proctor"


def form_token(request: Request) -> str:
    """What forms of a visitor without a session send back: a signed number, kept in a cookie of its own."""
    if "form_token" not in request.scope:
        signer = TimestampSigner(site_of(request).key, salt="form")
        request.scope["form_token"] = known_form_token(request) or signer.sign(new_token()).decode()
    return cast("str", request.scope["form_token"])


def known_form_token(request: Request) -> str:
    """The one that the browser's cookie holds; "" where it has none, or an old one."""
    site: Site = site_of(request)
    given = request.cookies.get(_form_cookie(site), "")
    try:
        TimestampSigner(site.key, salt="form").unsign(given, max_age=_FORM_AGE_S)
    except BadSignature:
        return ""
    return given


def keep_form_token(request: Request, response: Response) -> None:
    """Hands it to the browser."""
    site: Site = site_of(request)
    _set(site, response, _form_cookie(site), form_token(request), _FORM_AGE_S)


def _form_cookie(site: Site) -> str:
    return f"{session_cookie(site)}-form"


def _set(site: Site, response: Response, name: str, value: str, age_s: int) -> None:
    response.set_cookie(name, value, max_age=age_s, path="/", secure=site.tls, httponly=True, samesite="lax")


def _find(site: Site, request: Request) -> Visitor | None:
    try:
        token = Signer(site.key, salt="session").unsign(request.cookies.get(session_cookie(site), "")).decode()
    except (BadSignature, UnicodeDecodeError):
        return None
    now = site.now()
    live = (
        sessions.c.token_hash == _hash(token),
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
        with site.writing() as connection:
            seen = update(sessions).where(sessions.c.token_hash == row["token_hash"])
            connection.execute(seen.values(seen=utc_text(now)))
    names = ("name", "pseudonym", "role", "language", "csrf", "token_hash")
    return Visitor(account=row["account"], **{name: row[name] for name in names})


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

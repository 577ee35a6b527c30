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

from proctor.web.review import ReviewSite
from proctor.web.schema import Role, accounts, new_token, sessions, utc_text

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


def visitor_of(request: Request) -> Visitor | None:
    """Who asks; None without a session that holds."""
    if "visitor" not in request.scope:
        request.scope["visitor"] = _find(request.app.state.review, request)
    return cast("Visitor | None", request.scope["visitor"])


def keep_cookie(review: ReviewSite, response: Response, token: str) -> None:
    """Hands the session's secret to the browser, out of reach of scripts and of other sites' forms."""
    signed = Signer(review.key, salt="session").sign(token).decode()
    _set(review, response, session_cookie(review), signed, int(ABSOLUTE.total_seconds()))


def drop_cookie(review: ReviewSite, response: Response) -> None:
    """Takes the session's cookie back."""
    _set(review, response, session_cookie(review), "", 0)


def session_cookie(review: ReviewSite) -> str:
    """The cookie's name. `__Host-` makes browsers refuse one that another host set, or that came without TLS."""
    return "__Host-proctor" if review.tls else "proctor"


def form_token(request: Request) -> str:
    """What forms of a visitor without a session send back: a signed number, kept in a cookie of its own."""
    if "form_token" not in request.scope:
        signer = TimestampSigner(request.app.state.review.key, salt="form")
        request.scope["form_token"] = known_form_token(request) or signer.sign(new_token()).decode()
    return cast("str", request.scope["form_token"])


def known_form_token(request: Request) -> str:
    """The one that the browser's cookie holds; "" where it has none, or an old one."""
    review: ReviewSite = request.app.state.review
    given = request.cookies.get(_form_cookie(review), "")
    try:
        TimestampSigner(review.key, salt="form").unsign(given, max_age=_FORM_AGE_S)
    except BadSignature:
        return ""
    return given


def keep_form_token(request: Request, response: Response) -> None:
    """Hands it to the browser."""
    review: ReviewSite = request.app.state.review
    _set(review, response, _form_cookie(review), form_token(request), _FORM_AGE_S)


def _form_cookie(review: ReviewSite) -> str:
    return f"{session_cookie(review)}-form"


def _set(review: ReviewSite, response: Response, name: str, value: str, age_s: int) -> None:
    response.set_cookie(name, value, max_age=age_s, path="/", secure=review.tls, httponly=True, samesite="lax")


def _find(review: ReviewSite, request: Request) -> Visitor | None:
    try:
        token = Signer(review.key, salt="session").unsign(request.cookies.get(session_cookie(review), "")).decode()
    except (BadSignature, UnicodeDecodeError):
        return None
    now = review.now()
    live = (
        sessions.c.token_hash == _hash(token),
        sessions.c.expires > utc_text(now),
        sessions.c.seen > utc_text(now - IDLE),
        accounts.c.disabled.is_(None),
    )
    query = select(accounts, sessions).join(sessions, sessions.c.account == accounts.c.id).where(*live)
    with review.reading() as connection:
        row = connection.execute(query).mappings().first()
    if row is None:
        return None
    if row["seen"] < utc_text(now - _SEEN_EVERY):
        with review.writing() as connection:
            seen = update(sessions).where(sessions.c.token_hash == row["token_hash"])
            connection.execute(seen.values(seen=utc_text(now)))
    names = ("name", "pseudonym", "role", "language", "csrf", "token_hash")
    return Visitor(account=row["account"], **{name: row[name] for name in names})


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

"""What holds for every request: the size of bodies, the headers of answers, and that changes come from our own
pages."""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proctor.web.sessions import Visitor, known_form_token, site_of, visitor_of
from proctor.web.site import Site, upload_limit

MOST_BYTES = 1_000_000
"""Of a body, but for the addresses that take files (`Site.uploads`)."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_SAFE = ("GET", "HEAD", "OPTIONS")


class SecurityHeaders:
    """Adds the headers that browsers protect by, and `no-store` to all but static files."""

    def __init__(self, app: ASGIApp, *, tls: bool) -> None:
        self._app = app
        headers = HEADERS | ({"strict-transport-security": "max-age=31536000"} if tls else {})
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kept = b"no-cache" if scope["path"].startswith("/static/") else b"no-store"

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [pair for pair in message.get("headers", []) if pair[0].lower() != b"cache-control"]
                message = {**message, "headers": [*own, *self._headers, (b"cache-control", kept)]}
            await send(message)

        await self._app(scope, receive, with_headers)


class BodyTooLargeError(HTTPException):
    """The body is larger than what is taken at this address."""

    def __init__(self) -> None:
        super().__init__(413)


class BodyLimit:
    """Refuses bodies that are too large, by what they say of their length and by what comes."""

    def __init__(self, app: ASGIApp, *, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = upload_limit(self._site, scope["path"]) or MOST_BYTES
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if not said.isdigit() or int(said[:20]) > most:
            await _refuse(send)
            return
        taken = 0

        async def limited() -> MutableMapping[str, Any]:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise BodyTooLargeError
            return message

        await self._app(scope, limited, send)


async def our_own_pages(request: Request, visitor: Annotated[Visitor | None, Depends(visitor_of)]) -> None:
    """Refuses a change that another site's page may have sent: without the token of the visitor's own pages, in the
    header `X-CSRF-Token` or the form's field `csrf`, or from another origin; and one by a page of somebody else, who
    was logged in in this browser before: a page may name its account in the header `X-Account`."""
    if request.method in _SAFE:
        return
    if _from_elsewhere(request) or _from_another_account(request, visitor):
        raise HTTPException(403)
    if upload_limit(site_of(request), request.url.path) is not None:
        return  # `receive_upload` looks at the field before it keeps a byte of the file
    check_token(request, visitor, request.headers.get("x-csrf-token") or await _field(request))


def check_token(request: Request, visitor: Visitor | None, given: str) -> None:
    """Refuses a token that is not that of the visitor's own pages."""
    expected = known_form_token(request) if visitor is None else visitor.csrf
    if not expected or not secrets.compare_digest(given.encode(errors="replace"), expected.encode()):
        raise HTTPException(403)


async def _field(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"application/x-www-form-urlencoded", "multipart/form-data"}:
        return ""
    found = (await request.form()).get("csrf")
    return found if isinstance(found, str) else ""


def _from_elsewhere(request: Request) -> bool:
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    origin = request.headers.get("origin")
    own = (request.headers.get("host", ""), urlsplit(site_of(request).address).netloc)
    return origin is not None and (not (name := origin.partition("://")[2]) or name not in own)


def _from_another_account(request: Request, visitor: Visitor | None) -> bool:
    said = request.headers.get("x-account")
    return said is not None and (visitor is None or said != str(visitor.account))


async def _refuse(send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": b"too large"})

"""The application of a site: routes, error pages, and what protects every request."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Annotated, Any, cast
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proctor_web.busy import RETRY_AFTER_S, BusyError, WriterGate, busy_reason, limit_waits
from proctor_web.health import Health
from proctor_web.pages import STATIC, page
from proctor_web.protection import HEADERS, SecurityHeaders
from proctor_web.routes import accounts
from proctor_web.sessions import LoginNeededError, Visitor, check_token, site_of, visitor_of
from proctor_web.site import Site, upload_limit
from proctor_web.strings import preferred, text

MOST_BYTES = 1_000_000
"""The maximum size of a body in bytes, except for paths that take files (`Site.uploads`)."""

_LINGER_S, _LINGER_BYTES = 20.0, 2**26
_SAFE = {"GET", "HEAD", "OPTIONS"}
_SECRET = ("password", "again")  # fields that no page repeats
_BODY = "proctor.body"
_ERRORS = (400, 403, 404, 405, 409, 413, 422, 429, 503)


def create_app(site: Site) -> FastAPI:
    """The application of a site: accounts and the trail, which all sites have, and the site's own routes."""
    app = FastAPI(
        title=site.title,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(_check_origin)],
        middleware=[
            Middleware(SecurityHeaders, tls=site.tls),
            Middleware(_BodyLimit, site=site),
            Middleware(Health, site=site),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(site.hosts), www_redirect=False),
            Middleware(_Changes, site=site),
        ],
    )
    for kind, handler in (
        (LoginNeededError, _login_needed),
        (StarletteHTTPException, _http_error),
        (RequestValidationError, _invalid_request),
        (SQLAlchemyError, _database_error),
        (BusyError, _database_error),
        (ClientDisconnect, _gone),
        (Exception, _server_error),
    ):
        app.add_exception_handler(kind, handler)
    limit_waits(site.engine)
    app.state.site = site
    app.state.tally = Counter()
    app.state.gate = WriterGate(app.state.tally)
    app.include_router(accounts.router)
    site.mount(app)
    app.mount("/static/shared", StaticFiles(packages=[("proctor.reports", "assets/shared")]))
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


# -- error pages


def _login_needed(request: Request, error: Exception) -> Response:
    del error
    if request.method != "GET" or not _wants_page(request):
        return PlainTextResponse("log in", 401, {"HX-Redirect": "/login"})
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse("/login" if path == "/" else f"/login?next={quote(path, safe='')}", 303)


def _http_error(request: Request, error: Exception) -> Response:
    return _error_page(request, getattr(error, "status_code", 400))


def _invalid_request(request: Request, error: Exception) -> Response:
    """404 for an impossible path, else 422; an invalid body is never repeated."""
    locations = {one["loc"][0] for one in getattr(error, "errors", list)() if one["loc"]}
    return _error_page(request, 404 if "path" in locations else 422)


def _server_error(request: Request, error: Exception) -> Response:
    del request, error  # the server's log has it, with its traceback
    text = "The server could not answer. What was saved before is kept."
    return PlainTextResponse(text, 500, HEADERS | {"cache-control": "no-store"})


async def _database_error(request: Request, error: Exception) -> Response:
    """503 for a busy database, without a traceback; for any other error as usual."""
    reason = busy_reason(error)
    if not reason:
        raise error
    cast("WriterGate", request.app.state.gate).refuse(reason)
    return await run_in_threadpool(_busy_page, request)


def _busy_page(request: Request) -> Response:
    """Status 503, with a form that sends what was typed again; passwords have to be typed again."""
    later = {"retry-after": str(RETRY_AFTER_S)}
    if not _wants_page(request):
        return PlainTextResponse("503", 503, later)
    fields = _typed(request)
    kept = [(name, value) for name, value in fields if name not in _SECRET]
    secret = [name for name, _ in fields if name in _SECRET]
    path = quote(request.url.path) + (f"?{request.url.query}" if request.url.query else "")
    here = path if not path.startswith("//") else "/"
    posted = request.method == "POST"
    return page(request, "busy", status=503, headers=later, kept=kept, secret=secret, path=here, posted=posted)


def _typed(request: Request) -> list[tuple[str, str]]:
    """The fields of the form in a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body: bytes = request.scope.get(_BODY, b"")
    if kind != "application/x-www-form-urlencoded":
        return []
    return parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=1000)


def _gone(request: Request, error: Exception) -> Response:
    """For nobody: the sender has left before all of the request was here."""
    del request, error
    return PlainTextResponse("gone", 400)


def _error_page(request: Request, status: int) -> Response:
    known = status if status in _ERRORS else 400
    if not _wants_page(request):
        return PlainTextResponse(str(known), known)
    return page(request, "error", status=known, code=known)


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and "hx-request" not in request.headers


# -- protection


def _size(limit: int) -> str:
    """A maximum size, rounded down.

    >>> _size(64 * 2**20 + 200_000), _size(1_000_000), _size(20 * 2**30)
    ('64 MiB', '976 KiB', '20 GiB')
    """
    unit, name = next(
        ((unit, name) for unit, name in ((2**30, "GiB"), (2**20, "MiB")) if limit >= unit), (2**10, "KiB")
    )
    return f"{limit // unit} {name}"


async def _closed(send: Send, status: int, text: bytes) -> None:
    """Refuses a request in plain text, and closes its connection."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(text)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


class _BodyLimit:
    """Refuses bodies that are too large, by their stated and by their actual length, and bodies with two lengths. What was
    answered before all of a body is here is followed by a pause in which the sender finds the answer."""

    def __init__(self, app: ASGIApp, *, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit, headers = upload_limit(self._site, scope["path"]) or MOST_BYTES, dict(scope["headers"])
        stated = headers.get(b"content-length", b"0")
        if b"transfer-encoding" in headers and b"content-length" in headers:  # RFC 9112, 6.1: perhaps two requests
            await _closed(send, 400, b"two lengths of one body")
            return
        body = _Incoming(receive, limit)
        answer = send if b"expect" in headers or stated == b"0" else body.lingering(send)
        if not stated.isdigit() or int(stated[:20]) > limit:
            told = text(
                preferred(headers.get(b"accept-language", b"").decode("latin1")), "error.limit", size=_size(limit)
            )
            await _closed(answer, 413, told.encode())
            return
        await self._app(scope, body.receive, answer)


class _Incoming:
    """The body of a request, of at most `limit` bytes."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._limit = receive, limit
        self._size, self._whole = 0, False

    async def receive(self) -> MutableMapping[str, Any]:
        """The next part. Raises `HTTPException` beyond the limit."""
        message = await self._next()
        if self._size > self._limit:
            raise HTTPException(413)
        return message

    async def _next(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        self._whole = self._whole or not message.get("more_body", False)
        return message

    def lingering(self, send: Send) -> Send:
        """Sends an answer. If the body is not all here, its end waits a while for the rest, which is thrown away: a proxy
        or browser that is still sending would find a broken connection, and not look for the answer."""

        async def answer(message: Message) -> None:
            last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if not last or self._whole:
                await send(message)
                return
            await send({**message, "more_body": True})
            until = self._size + _LINGER_BYTES
            with suppress(TimeoutError):
                async with asyncio.timeout(_LINGER_S):
                    while not self._whole and self._size < until:
                        await self._next()
            await send({"type": "http.response.body", "body": b""})

        return answer


class _Changes:
    """Lets changes through the gate for writers once all of their body is here, so that no slow sender keeps a slot.
    Uploads, which stream, pass it where they write."""

    def __init__(self, app: ASGIApp, *, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _SAFE or upload_limit(self._site, scope["path"]) is not None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            scope[_BODY] = await request.body()
            async with cast("WriterGate", request.app.state.gate).entered():
                await self._app(scope, _repeated(scope[_BODY], receive), send)
            return
        except ClientDisconnect:
            return
        except HTTPException as error:  # too large
            response = await run_in_threadpool(_http_error, request, error)
        except BusyError:  # of the gate, which counted it
            response = await run_in_threadpool(_busy_page, request)
        await response(scope, receive, send)


def _repeated(body: bytes, receive: Receive) -> Receive:
    """Receives a body that was received before."""
    parts = [body]

    async def again() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": parts.pop(), "more_body": False} if parts else await receive()

    return again


async def _check_origin(request: Request, visitor: Annotated[Visitor | None, Depends(visitor_of)]) -> None:
    """Refuses a change that does not come from the visitor's own pages.

    A change needs the visitor's token (header `X-CSRF-Token` or form field `csrf`) and must come from this origin. A
    page may name its account in the header `X-Account`: after another account has logged in, its changes are refused.
    """
    if request.method in _SAFE:
        return
    if _is_foreign(request) or _is_other_account(request, visitor):
        raise HTTPException(403)
    if upload_limit(site_of(request), request.url.path) is None:  # else `receive_upload` checks the token
        check_token(request, visitor, request.headers.get("x-csrf-token") or await _token_field(request))


async def _token_field(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"application/x-www-form-urlencoded", "multipart/form-data"}:
        return ""
    found = (await request.form()).get("csrf")
    await request.close()  # no page reads a file of such a form
    return found if isinstance(found, str) else ""


def _is_foreign(request: Request) -> bool:
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    origin = request.headers.get("origin")
    if origin is None:
        return False
    host = origin.partition("://")[2]
    return not host or host not in (request.headers.get("host", ""), urlsplit(site_of(request).address).netloc)


def _is_other_account(request: Request, visitor: Visitor | None) -> bool:
    stated = request.headers.get("x-account")
    return stated is not None and (visitor is None or stated != str(visitor.account))

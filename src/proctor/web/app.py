"""The application: a site as pages, with everything that protects them."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from proctor.web.access import LoginNeededError
from proctor.web.pages import STATIC, page
from proctor.web.protection import HEADERS, BodyLimit, SecurityHeaders, our_own_pages
from proctor.web.routes import entrance, people, registration
from proctor.web.site import Site

_ERRORS = (400, 403, 404, 405, 409, 413, 422, 429)


def create_app(site: Site) -> FastAPI:
    """The application of a site: the entrance, people and the trail, which all sites have, and its own routes."""
    app = FastAPI(
        title=site.title,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(our_own_pages)],
        middleware=[
            Middleware(SecurityHeaders, tls=site.tls),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(site.hosts), www_redirect=False),
            Middleware(BodyLimit, site=site),
        ],
    )
    for kind, handler in (
        (LoginNeededError, _to_login),
        (HTTPException, _refused),
        (RequestValidationError, _not_understood),
        (Exception, _broken),
    ):
        app.add_exception_handler(kind, handler)
    app.state.site = site
    app.include_router(entrance.router)
    app.include_router(people.router)
    app.include_router(registration.router)
    site.mount(app)
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


def _to_login(request: Request, error: Exception) -> Response:
    del error
    if request.method != "GET" or not _wants_page(request):
        return PlainTextResponse("log in", 401, {"HX-Redirect": "/login"})
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse("/login" if path == "/" else f"/login?next={quote(path, safe='')}", 303)


def _refused(request: Request, error: Exception) -> Response:
    return _told(request, getattr(error, "status_code", 400))


def _not_understood(request: Request, error: Exception) -> Response:
    """A path that can't be one of ours is not there; of a body that makes no sense nothing is repeated."""
    places = {one["loc"][0] for one in getattr(error, "errors", list)() if one["loc"]}
    return _told(request, 404 if "path" in places else 422)


def _broken(request: Request, error: Exception) -> Response:
    del request, error  # the server's log has it, with its traceback
    told = "The server could not answer. What was saved before is kept."
    return PlainTextResponse(told, 500, HEADERS | {"cache-control": "no-store"})


def _told(request: Request, status: int) -> Response:
    known = status if status in _ERRORS else 400
    if not _wants_page(request):
        return PlainTextResponse(str(known), known)
    return page(request, "error", status=known, code=known)


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and "hx-request" not in request.headers

"""The application of a view: its addresses, who may see them (token), which pictures it hands out, and how a page is
sent. It answers GET alone."""

from __future__ import annotations

import csv
import io
import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

import proctor
from proctor.core import InputError, ProctorError, clean, count_of, one_of, percent, plain_name, safe_cell, thousands
from proctor.reports import condition_mark, condition_numbers
from proctor_web.protection import SecurityHeaders
from proctor_web.view.answers import answers
from proctor_web.view.clip import clip_media, clip_page
from proctor_web.view.compare import compare
from proctor_web.view.items import items
from proctor_web.view.judges import judges
from proctor_web.view.one_answer import addressed_answer
from proctor_web.view.one_item import one_item
from proctor_web.view.overview import board_of, overview, run_page, stores
from proctor_web.view.query import FORMATS, column_name, path_of, segments_of
from proctor_web.view.site import TOKEN, Asked, Page, View
from proctor_web.view.words import kind_of, mark_of, state_words

FOLDER = Path(__file__).parent
_COOKIE = "proctor-view"
_KINDS = {b"\xff\xd8": "image/jpeg", b"\x89P": "image/png", b"RI": "audio/wav"}
_PAGES: Mapping[str, Callable[[Asked], Page]] = {
    "": overview,
    "answers": answers,
    "clip": clip_page,
    "compare": compare,
    "judges": judges,
    "items": lambda asked: one_item(asked) if asked.segments[3:] else items(asked),
}


def create_view(view: View, token: str, hosts: Sequence[str], *, tls: bool = False) -> Starlette:
    """The application. With a `token` nothing is answered to who has neither sent it in the address (`?token=`) nor the
    cookie that this leaves. `hosts` are the names that it answers to."""
    app = Starlette(
        routes=[
            Mount("/static/web", StaticFiles(directory=FOLDER.parent / "static")),
            Mount("/static/shared", StaticFiles(packages=[("proctor.reports", "assets/shared")])),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route("/live", _live, methods=["GET"]),
        ],
        middleware=[
            Middleware(SecurityHeaders, tls=tls),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
            Middleware(_Door, token=token, tls=tls),
        ],
    )
    app.state.view = view
    app.state.tally = Counter()
    app.router.redirect_slashes = False
    app.router.default = _pages  # a pattern of a path would not match a line break, which a name may have
    return app


class _Door:
    """Lets nobody in without the token, where there is one; and nothing but GET and HEAD."""

    def __init__(self, app: ASGIApp, *, token: str, tls: bool) -> None:
        self._app, self._token, self._tls = app, token, tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if request.method not in {"GET", "HEAD"}:
            await PlainTextResponse("a view is only read", 405, {"allow": "GET, HEAD"})(scope, receive, send)
        elif not self._token or self._is(request.cookies.get(_COOKIE, "")):
            await self._app(scope, receive, send)
        elif self._is(request.query_params.get(TOKEN, "")):
            # Only to a page of this host: a path that begins with two slashes would lead to another.
            path = "/" + scope["raw_path"].decode("ascii", "replace").partition("?")[0].lstrip("/")
            pairs = [(name, value) for name, value in request.query_params.multi_items() if name != TOKEN]
            query = f"?{_encoded(pairs)}" if pairs else ""
            response = RedirectResponse(path + query, 303)
            response.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict", secure=self._tls)
            await response(scope, receive, send)
        else:
            told = "The address needs the token that proctor view printed: /?token=…"
            await PlainTextResponse(told, 401)(scope, receive, send)

    def _is(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())


def _encoded(pairs: Sequence[tuple[str, str]]) -> str:
    from urllib.parse import urlencode

    return urlencode(pairs)


async def _pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Everything that has no route of its own."""
    request = Request(scope, receive)
    view: View = request.app.state.view
    view.page_asked()
    try:
        response = await _page(request)
        await response(scope, receive, send)
    finally:
        view.page_sent()


async def _page(request: Request) -> Response:
    """Any page. What an address gets wrong is one line, with status 404."""
    view: View = request.app.state.view
    segments = segments_of(request.scope["raw_path"])
    pairs = [(name, value) for name, value in request.query_params.multi_items() if name != TOKEN]
    try:
        if segments[:1] == ["b"] and segments[2:3] in (["picture"], ["shown"]):
            return await _media(view, segments)
        if segments[:1] == ["b"] and segments[2:3] == ["media"]:
            return await clip_media(request, view, segments)
        return await run_in_threadpool(_answered, view, segments, pairs)
    except InputError as error:
        return _fault(request, view, str(error), 404)
    except ProctorError as error:
        return _fault(request, view, str(error), 503)


def _answered(view: View, segments: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Response:
    form = next((value for name, value in pairs if name == "format"), "")
    if form and form not in FORMATS:
        raise InputError("format", found=repr(form), expected=one_of(FORMATS, form))
    part = next((value for name, value in pairs if name == "part"), "")
    benchmark, page = _found(view, segments, pairs)
    if form == "json":
        return JSONResponse(_jsonable(page.data))
    if form == "csv":
        return PlainTextResponse(_csv(page.rows), headers={"content-type": "text/csv; charset=utf-8"})
    return HTMLResponse(_render(view, benchmark, page, part, pairs))


def _found(view: View, segments: Sequence[str], pairs: Sequence[tuple[str, str]]) -> tuple[str, Page]:
    """The benchmark and the page at an address. Raises `InputError` where there is none."""
    if list(segments) == [""]:
        names = [*view.watch.states]
        if len(names) == 1:
            return names[0], overview(Asked.of(view, names[0], pairs, ("b", names[0])))
        return "", stores(view)
    kind, rest = segments[0], segments[1:]
    if kind == "r" and len(rest) == 1:
        try:
            return run_page(view, rest[0])
        except LookupError as error:
            raise InputError("run", found=rest[0][:40], expected="the number of a run in this store") from error
    name = rest[1] if len(rest) > 1 else ""
    if kind != "b" or not rest or name not in _PAGES:
        raise InputError("address", found="/" + "/".join(segments)[:80], expected="a page of this view")
    return rest[0], _PAGES[name](Asked.of(view, rest[0], pairs, segments))


def _render(view: View, benchmark: str, page: Page, part: str, pairs: Sequence[tuple[str, str]]) -> str:
    template = _environment().get_template(
        f"{part or page.template}.html" if _is_part(part) else f"{page.template}.html"
    )
    names = [*view.watch.states]
    state = view.watch.states.get(benchmark)
    data = [(name, value) for name, value in pairs if name not in {"format", "part"}]
    marks = condition_numbers(state.index.conditions) if state else {}
    known = {
        "store": view.name,
        "shown": view.store.shown,
        "benchmarks": names,
        "benchmark": benchmark,
        "title": state.index.card.title if state else view.name,
        "simulated": bool(state and state.index.card.simulated),
        "state": state,
        "tab": page.tab,
        "live": live_of(view, benchmark),
        "version": proctor.__version__,
        "pairs": data,
        "data_query": _encoded(data),
        "marks": {name: Markup(condition_mark(one)) for name, one in marks.items()},  # noqa: S704 - numbers alone
    }
    return template.render({**known, **page.context})


_PARTS = {"runs", "newest", "scorers", "story", "board", "rows", "detail", "figures"}


def _is_part(part: str) -> bool:
    if part and part not in _PARTS:
        raise InputError("part", found=repr(part), expected=one_of(sorted(_PARTS), part))
    return bool(part)


async def _live(request: Request) -> Response:
    """What has changed: counters that a page asks for every second."""
    return JSONResponse(live_of(request.app.state.view, request.query_params.get("b", "")))


def live_of(view: View, benchmark: str) -> dict[str, Any]:
    """The counters of a benchmark, or of the whole store."""
    states = view.watch.states
    state = states.get(benchmark)
    chosen = [state] if state else list(states.values())
    board = board_of(view, state) if state else None
    return {
        "version": sum(one.version for one in chosen),
        "settled": sum(run.progress.settled for one in chosen for run in one.runs),
        "running": sum(len(one.working) for one in chosen),
        "board": None if board is None else board.as_of.isoformat(),
        "computing": state is not None
        and (board is None or board.stale)
        and any(r.progress.settled for r in state.runs),
        "fault": view.watch.fault,
        "seen": view.watch.seen.isoformat(timespec="seconds"),
    }


async def _media(view: View, segments: Sequence[str]) -> Response:
    """A picture as it was shown, or whether all of an answer's pictures can be made again."""
    asked = await run_in_threadpool(Asked.of, view, segments[1], (), segments)
    column, item, answer = await run_in_threadpool(addressed_answer, asked)
    maker = view.shown(segments[1])
    rest = segments[7:]
    if segments[2] == "shown":
        made = await maker.remade(column.run, item, answer)
        wrong = next((found for one in made if (found := one.then.difference(one.now))), "")
        count = sum(len(one.then.prefixes) for one in made)
        said = (
            f"not what was shown: {wrong}"
            if wrong
            else f"made again, and the same: all {count} have the recorded SHA-256"
        )
        return JSONResponse({"same": not wrong, "count": count, "said": said})
    if len(rest) < 2 or not (rest[0].isdigit() and rest[1].isdigit()):
        raise InputError("picture", found="/".join(rest)[:40], expected="REQUEST/NUMBER")
    content = await maker.picture(column.run, item, answer, int(rest[0]), int(rest[1]))
    kind = _KINDS.get(content[:2], "video/mp4" if content[4:8] == b"ftyp" else "application/octet-stream")
    return Response(content, media_type=kind)


def _fault(request: Request, view: View, said: str, status: int) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(clean(said), status)
    page = Page("fault", {"said": said})
    return HTMLResponse(_render(view, "", page, "", ()), status)


def _jsonable(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str, ensure_ascii=False))


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(safe_cell, names))
    for row in rows:
        writer.writerow([safe_cell(row.get(name)) for name in names])
    return out.getvalue()


def prepare_templates() -> None:
    """Compiles the templates of all pages; each is otherwise compiled when it is first needed."""
    environment = _environment()
    for name in environment.list_templates(extensions=["html"]):
        if not name.startswith("web/"):
            environment.get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader(
            [
                FileSystemLoader(FOLDER / "templates"),
                PrefixLoader({"web": FileSystemLoader(FOLDER.parent / "templates")}),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "clean": clean,
        "thousands": thousands,
        "percent": percent,
        "plain": plain_name,
        "mark": mark_of,
        "kind": kind_of,
        "words": state_words,
        "column": column_name,
    }
    environment.globals |= {"path": path_of, "count_of": count_of}
    return environment

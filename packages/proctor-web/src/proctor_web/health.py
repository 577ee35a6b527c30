"""What a load balancer or a monitor asks: `/healthz`, whether the process answers, and `/readyz`, whether it can work.

Both are answered whatever name the server is asked by, to anybody, and tell nothing of the site.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor_web.site import Site

LEAST_FREE = 2**28
"""Bytes that the disk of the site's folder must have: a full one ends everybody's work."""

_PATIENCE_S = 5.0
_KEPT_S = 2.0  # an answer is given again, so that many who ask cost no more than one


class Health:
    """Answers `GET` and `HEAD` of the two paths: 200, or 503 with the names of what does not work."""

    def __init__(self, app: ASGIApp, *, site: Site) -> None:
        self._app, self._site = app, site
        self._found: tuple[str, ...] = ()
        self._until = 0.0
        self._looking = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        known = scope["type"] == "http" and scope["path"] in {"/healthz", "/readyz"}
        if not known or scope["method"] not in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        problems = await self._problems() if scope["path"] == "/readyz" else ()
        body = f"not ready: {', '.join(problems)}" if problems else "ok"
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        status = {"type": "http.response.start", "status": 503 if problems else 200, "headers": headers}
        await send(status)
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else f"{body}\n".encode()})

    async def _problems(self) -> tuple[str, ...]:
        async with self._looking:
            if time.monotonic() > self._until:
                self._found = await self._look()
                self._until = time.monotonic() + _KEPT_S
            return self._found

    async def _look(self) -> tuple[str, ...]:
        looked = asyncio.ensure_future(run_in_threadpool(lambda: tuple(_faults(self._site))))
        done, _ = await asyncio.wait({looked}, timeout=_PATIENCE_S)
        return looked.result() if done else ("the database does not answer",)


def _faults(site: Site) -> Iterator[str]:
    try:
        with site.reading() as connection:
            connection.execute(text("select count(*) from accounts"))
    except SQLAlchemyError:
        yield "the database"
    try:
        disk = os.statvfs(site.folder)
    except OSError:  # it was removed, or its disk is gone
        yield "a folder to write to"
        return
    if disk.f_bavail * disk.f_frsize < LEAST_FREE:
        yield "room on the disk"
    if not os.access(site.folder, os.W_OK):
        yield "a folder to write to"

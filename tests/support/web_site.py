"""A review on SQLite with people in it, and a browser without a window."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from weakref import WeakValueDictionary

import httpx2
from fastapi import FastAPI
from starlette.testclient import TestClient

from proctor_web.accounts import Changed, add_account, hashed, invite, take_up
from proctor_web.app import create_app
from proctor_web.review import ReviewSite
from proctor_web.settings import REVIEW_FILE, STORE_FILE, open_store
from proctor_web.site import Site
from proctor_web.stores import SiteStore

START = datetime(2026, 11, 23, 8, tzinfo=UTC)
PASSWORD = "brown kettle 7"

_APPS: WeakValueDictionary[int, FastAPI] = WeakValueDictionary()
"""The application of each review, which holds it: browsers of a review ask the same one, as people do."""


@dataclass
class Clock:
    """A clock that stands until a test moves it."""

    at: datetime = START

    def __call__(self) -> datetime:
        return self.at

    def pass_by(self, **spans: float) -> None:
        """Moves on, as `timedelta` says it."""
        self.at += timedelta(**spans)


def store_in(folder: Path, store: str | None = None) -> SiteStore:
    """The store of a review whose settings say nothing of it."""
    return SiteStore("review", folder, REVIEW_FILE, STORE_FILE, store or "", "--store")


def site(folder: Path, *, tls: bool = False, store: str | None = None) -> ReviewSite:
    """A review with a clock of its own."""
    return ReviewSite(
        folder=folder,
        title="Simulated procedures, first round",
        engine=open_store(store_in(folder, store)),
        key="k" * 43,
        media=folder,
        hosts=("review.test",),
        tls=tls,
        now=Clock(),
    )


def clock_of(review: Site) -> Clock:
    assert isinstance(review.now, Clock)
    return review.now


def join(review: Site, name: str, role: str = "reviewer", language: str = "en") -> int:
    """An account that has taken up its invitation."""
    with review.writing() as connection:
        account = add_account(connection, name, role, language, Changed(None, review.now()))
        token = invite(connection, account, Changed(None, review.now()))
        assert take_up(connection, token, hashed(PASSWORD), review.now()) is not None
    return int(account["id"])


def browser(review: Site, *, address: str = "192.0.2.1") -> TestClient:
    """One that follows no redirection and asks for pages."""
    scheme = "https" if review.tls else "http"
    app = _APPS.setdefault(id(review), create_app(review))
    client = TestClient(
        app, base_url=f"{scheme}://review.test", follow_redirects=False, headers={"accept": "text/html"}
    )
    client._transport = _OneHop(client, httpx2.ASGITransport(app, client=(address, 50000)))
    return client


class _OneHop(httpx2.BaseTransport):
    """Asks an application within its event loop: a request goes to the loop's thread and back once, where Starlette's
    own transport goes eight times."""

    def __init__(self, client: TestClient, within: httpx2.ASGITransport) -> None:
        self._client, self._within = client, within

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        with self._client._portal_factory() as portal:
            return portal.call(self._answer, request)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._within.handle_async_request(request)
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        content = b"".join([part async for part in answer.stream])
        return httpx2.Response(answer.status_code, headers=answer.headers, stream=httpx2.ByteStream(content))


def csrf_of(answer: httpx2.Response) -> str:
    """The token in a page."""
    found = re.search(r'name="csrf-token" content="([^"]+)"', answer.text)
    assert found is not None, answer.text
    return found[1]


def log_in(client: TestClient, name: str, password: str = PASSWORD, **more: str) -> httpx2.Response:
    """Fills in the form."""
    csrf = csrf_of(client.get("/login"))
    return client.post("/login", data={"csrf": csrf, "name": name, "password": password} | more)


def entered(review: Site, name: str, role: str = "reviewer") -> TestClient:
    """A browser in which a new person is logged in."""
    join(review, name, role)
    client = browser(review)
    answer = log_in(client, name)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return client

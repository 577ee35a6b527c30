"""A database that somebody else has locked: changes are refused with 503 and kept on the page, and readers are served
as ever."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from html import unescape
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import create_engine, text

from proctor_web import busy
from proctor_web.busy import BusyError, WriterGate
from proctor_web.review import ReviewSite
from tests.support.guarded_server import guarded
from tests.support.web_site import PASSWORD, browser, clock_of, csrf_of, entered, join, log_in, site


@contextmanager
def locked(review: ReviewSite) -> Iterator[None]:
    """Another program writes, within the block."""
    if review.engine.dialect.name == "postgresql":
        other = create_engine(review.engine.url)
        with other.begin() as connection:
            connection.execute(text("lock table logins, readings, accounts, sessions in exclusive mode"))
            yield
        other.dispose()
        return
    with closing(sqlite3.connect(review.folder / "review.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.fixture(params=["sqlite", "postgres"])
def both(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReviewSite]:
    """A review on either database, where changes wait for a lock as short as can be."""
    monkeypatch.setattr(busy, "LOCK_WAIT_S", 0.001)
    store = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    made = site(tmp_path, store=store)
    yield made
    made.engine.dispose()


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of a page's form."""
    sheet = page[page.index('class="sheet"') :]
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(.*?)" value="(.*?)"', sheet)}


def test_a_login_is_refused_for_a_moment_and_keeps_the_name(both: ReviewSite, caplog: pytest.LogCaptureFixture) -> None:
    join(both, "anna")
    client = browser(both)
    with locked(both):
        answer = log_in(client, "anna", next="/item/7")
        assert client.get("/login").status_code == 200
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "Nothing was saved yet. What you entered is kept on this page." in answer.text
    assert 'type="password"' in answer.text
    assert PASSWORD not in answer.text
    kept = fields_of(answer.text)
    assert kept.keys() == {"csrf", "name", "next"}
    again = client.post("/login", data=kept | {"password": PASSWORD})
    assert (again.status_code, again.headers["location"]) == (303, "/item/7")
    assert caplog.text == ""
    tally: Counter[str] = client.app.state.tally  # type: ignore[attr-defined]
    (told,) = tally
    assert told.startswith("requests answered with 503, the database: ")
    assert "select" not in told.casefold()


def test_readers_wait_for_nobody(both: ReviewSite) -> None:
    """A page notes once a minute that its reader was seen; not, where that would have to wait."""
    anna = entered(both, "anna")
    clock_of(both).pass_by(minutes=5)
    with locked(both):
        assert anna.get("/").status_code == 200
        saved = anna.post("/language", data={"csrf": csrf_of(anna.get("/")), "language": "de"})
        assert saved.status_code == 503
        assert fields_of(saved.text)["language"] == "de"
    assert anna.post("/language", data=fields_of(saved.text)).status_code == 303


def test_a_page_s_script_is_told_in_plain_text(both: ReviewSite) -> None:
    anna = entered(both, "anna")
    headers = {"accept": "application/json", "x-csrf-token": csrf_of(anna.get("/"))}
    with locked(both):
        answer = anna.post("/language", data={"language": "de"}, headers=headers)
    assert (answer.status_code, answer.text) == (503, "503")


def test_waiting_changes_leave_readers_their_threads(tmp_path: Path) -> None:
    """45 people log in while the database is locked, for as long as it takes: the login page is there at once."""
    review = site(tmp_path)
    count, sent = 45, threading.Semaphore(0)
    with guarded(review, connections=200, per_address=100) as served:
        base, host = f"http://127.0.0.1:{served.port}", {"host": "review.test", "accept": "text/html"}

        def tried(number: int) -> int:
            with httpx2.Client(base_url=base, headers=host, timeout=120) as client:
                csrf = csrf_of(client.get("/login"))
                sent.release()
                return client.post("/login", data={"csrf": csrf, "name": f"n{number}", "password": "x" * 9}).status_code

        with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(count) as pool:
            patch.setattr(busy, "LOCK_WAIT_S", 100.0)
            patch.setattr(busy, "_QUEUE_S", 100.0)
            with locked(review):
                asked = [pool.submit(tried, number) for number in range(count)]
                for _ in range(count):
                    assert sent.acquire(timeout=60)
                with httpx2.Client(base_url=base, headers=host, timeout=60) as reader:
                    assert [reader.get("/login").status_code for _ in range(10)] == [200] * 10
                assert not any(one.done() for one in asked)
            assert [one.result(120) for one in asked] == [401] * count
    review.engine.dispose()


def test_a_locked_database_refuses_all_who_wait_for_it() -> None:
    tally: Counter[str] = Counter()

    async def change(gate: WriterGate, order: list[str], name: str, go_on: asyncio.Event) -> None:
        try:
            async with gate.entered():
                order.append(name)
                await go_on.wait()
        except BusyError as error:
            order.append(f"{name} {error}")

    async def all_of_them() -> list[str]:
        gate, order, go_on = WriterGate(tally, 2), list[str](), asyncio.Event()
        tasks = [asyncio.create_task(change(gate, order, name, go_on)) for name in "abcd"]
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.sleep(0)
        gate.refuse("locked")
        later = [asyncio.create_task(change(gate, order, name, go_on)) for name in "ef"]
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*tasks, *later, return_exceptions=True)
        return order

    assert asyncio.run(all_of_them()) == ["a", "b", "d locked", "e", "f"]
    assert tally == {"requests answered with 503, the database: locked": 2}


def test_changes_at_once_are_made_one_after_the_other_and_none_is_lost(tmp_path: Path) -> None:
    review = site(tmp_path)
    gate = WriterGate(Counter(), 3)
    running, most = 0, 0

    def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        running -= 1

    async def all_of_them() -> None:
        await asyncio.gather(*(gate.run(count) for _ in range(50)))

    asyncio.run(all_of_them())
    assert 1 <= most <= 3
    assert gate._free == 3
    review.engine.dispose()


def test_other_errors_of_the_database_are_no_waiting(tmp_path: Path) -> None:
    review = site(tmp_path)
    with pytest.raises(Exception, match="no such table") as caught, review.reading() as connection:
        connection.execute(text("select * from nowhere"))
    assert busy.busy_reason(caught.value) == ""
    assert busy.busy_reason(ValueError("locked")) == ""
    review.engine.dispose()

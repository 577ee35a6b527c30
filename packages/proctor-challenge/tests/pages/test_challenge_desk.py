"""The desk: one check a team at a time, in whatever process; a fair order; and what refused files cost."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proctor_challenge import uploads
from proctor_challenge.admission import Admission
from proctor_challenge.pages.desk import FairQueue
from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.queue import RECEIVED_S, expire
from proctor_challenge.submissions import DAILY, REFUSED_COST, renew_check, uploads_left
from proctor_challenge.uploads import LEAST_FILE, upload_size
from tests.support.challenge_site import HIDDEN, challenge_site, handed, logged_in, team_of_two
from tests.support.web_site import browser, clock_of, csrf_of, log_in


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ChallengeSite]:
    made = challenge_site(tmp_path)
    team_of_two(made, "Hand Surgeons", "anna", "ben")
    yield made
    made.engine.dispose()


def test_who_used_most_waits_longest() -> None:
    """Team 1 sends costly files again and again; the others come once each."""
    now, order = [0.0], list[str]()

    async def work(queue: FairQueue, name: str, team: int, seconds: float) -> None:
        async with queue.slot(team):
            order.append(name)
            await asyncio.sleep(0)
            now[0] += seconds

    async def all_of_them() -> None:
        queue = FairQueue(1, lambda: now[0])
        await work(queue, "1a", 1, 40)
        await work(queue, "2a", 2, 5)
        async with queue.slot(9):
            jobs = [("1b", 1), ("2b", 2), ("1c", 1), ("3a", 3), ("4a", 4)]
            tasks = [asyncio.create_task(work(queue, name, team, 5)) for name, team in jobs]
            gone = asyncio.create_task(work(queue, "gone", 5, 5))
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        await work(queue, "5a", 5, 1)

    asyncio.run(all_of_them())
    assert order == ["1a", "2a", "3a", "4a", "2b", "1b", "1c", "5a"]


def test_a_turn_that_comes_as_its_owner_leaves_is_passed_on() -> None:
    async def all_of_them() -> list[str]:
        queue, order = FairQueue(1), list[str]()

        async def work(name: str) -> None:
            async with queue.slot(ord(name)):
                order.append(name)

        async with queue.slot(0):
            first, second = asyncio.create_task(work("a")), asyncio.create_task(work("b"))
            await asyncio.sleep(0)
        first.cancel()
        await second
        return order

    assert asyncio.run(all_of_them()) == ["b"]


def test_a_team_has_one_check_at_a_time_in_all_processes(site: ChallengeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anna's file is being checked. Ben's next one is refused here unread, and by another server once it is here."""
    begun, go_on = threading.Event(), threading.Event()

    def check(*_: object) -> Admission:
        begun.set()
        assert go_on.wait(60)
        return Admission()

    monkeypatch.setattr(uploads, "check_upload", check)
    anna, ben = logged_in(site, "anna"), logged_in(site, "ben")
    from proctor_web.app import create_app

    elsewhere = browser(site)
    elsewhere.app = create_app(site)
    elsewhere._transport._within.app = elsewhere.app  # type: ignore[attr-defined]
    assert log_in(elsewhere, "ben").status_code == 303
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(handed, anna, b"first")
        assert begun.wait(60)
        for client in (ben, elsewhere):
            answer = handed(client, b"second")
            assert (answer.status_code, "still being checked" in answer.text) == (409, True)
        go_on.set()
        assert first.result(60).headers["location"] == "/submission/1"
    assert handed(elsewhere, b"second").headers["location"] == "/submission/2"
    assert handed(ben, b"third").headers["location"] == "/submission/3"


def test_a_killed_check_keeps_its_team_from_nothing_for_long(
    site: ChallengeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission())
    with site.writing() as connection:
        from proctor_challenge.submissions import HandIn, hand_in

        made = hand_in(connection, site.challenge, HandIn(1, 1, HIDDEN, "file", "0" * 64, 1, "killed"))
    anna = logged_in(site, "anna")
    assert handed(anna, b"x").status_code == 409
    clock_of(site).pass_by(seconds=100)
    with site.writing() as connection:
        renew_check(connection, site.challenge, made)
    clock_of(site).pass_by(seconds=100)
    assert handed(anna, b"x").status_code == 409
    clock_of(site).pass_by(seconds=30)
    assert handed(anna, b"x").status_code == 303


def test_waiting_for_a_check_is_no_checking(site: ChallengeSite) -> None:
    """A renewed submission does not expire, however long it waits."""
    from proctor_challenge.submissions import HandIn, hand_in

    with site.writing() as connection:
        made = hand_in(connection, site.challenge, HandIn(1, 1, HIDDEN, "file", "0" * 64, 1, "waits"))
    for _ in range(3):
        clock_of(site).pass_by(seconds=RECEIVED_S - 1)
        with site.writing() as connection:
            assert expire(connection, site.now()) == []
            renew_check(connection, site.challenge, made)
    clock_of(site).pass_by(seconds=RECEIVED_S + 1)
    with site.writing() as connection:
        assert expire(connection, site.now()) == [made]


def test_a_refused_file_costs_five_uploads_of_the_day(site: ChallengeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission(("error",)))
    anna = logged_in(site, "anna")

    def left() -> int:
        with site.reading() as connection:
            return uploads_left(connection, site.challenge, 1, HIDDEN)

    assert left() == DAILY == 100
    handed(anna, b"bad")
    assert left() == 100 - REFUSED_COST == 95
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission())
    handed(anna, b"good")
    assert left() == 94
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission(("error",)))
    for number in range(19):
        assert handed(anna, b"bad%d" % number).status_code == 303
    assert left() == -1
    csrf = csrf_of(anna.get("/"))
    answer = anna.post(f"/phase/{HIDDEN}/file", data={"csrf": csrf}, files={"upload": ("a.json", b"bad")})
    assert (answer.status_code, "a refused file counts five times" in answer.text) == (409, True)
    clock_of(site).pass_by(hours=25)
    assert left() == 100


def test_the_size_of_a_file_follows_the_questions(site: ChallengeSite) -> None:
    phase = site.challenge.settings.phase(HIDDEN)
    assert upload_size(site.challenge, phase, "file") == LEAST_FILE == 4 * 2**20
    assert upload_size(site.challenge, phase, "image") == 20 * 2**30
    ones = b"[" + b"1," * 2_200_000 + b"1]"
    answer = handed(logged_in(site, "anna"), ones)
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    assert list(site.challenge.uploads.iterdir()) == []


def test_many_questions_allow_a_larger_file(tmp_path: Path) -> None:
    site = challenge_site(tmp_path)
    phase = site.challenge.settings.phase(HIDDEN)
    file = site.folder / phase.questions / "more.json"
    file.write_text(json.dumps(["question"] * 100_000))
    rest = sum(one.stat().st_size for one in file.parent.rglob("*.json"))
    assert upload_size(site.challenge, phase, "file") == 10 * rest > LEAST_FILE
    site.engine.dispose()


def test_a_check_has_little_memory_and_says_so(site: ChallengeSite, tmp_path: Path) -> None:
    """36 MB of empty lists would take 1 GB."""
    file = tmp_path / "answers.json"
    file.write_bytes(b'[{"qID": "v00-q00", "content": [' + b"[]," * 12_000_000 + b"[]]}]")
    phase = site.challenge.settings.phase(HIDDEN)
    request = {"kind": "file", "path": str(file), "seconds": 600, "benchmark": "focus", "track": "procedure"}
    request |= {"data": str(site.folder / phase.questions), "budget": phase.budget.model_dump(mode="json")}
    done = subprocess.run(
        [sys.executable, "-m", "proctor_challenge.check_process"],
        input=json.dumps(request).encode(),
        capture_output=True,
        check=True,
    )
    told = "found a file that takes more than 512 MB of memory, expected a smaller one"
    assert json.loads(done.stdout)["problems"] == [told]

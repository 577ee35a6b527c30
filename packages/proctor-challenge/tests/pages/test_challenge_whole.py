"""A whole challenge in a real browser: five teams register and hand in files and images; one uses its quota up, one is
late on a third of the questions, one hangs, one crashes, one cheats; the gate lets two through; the final boards are
those of `proctor rank`, and receipts verify. Containers are shown videos; without them all is text."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from proctor_challenge import check_process, uploads
from proctor_challenge.admission import Admission
from proctor_challenge.board_pages import visible_boards
from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import Executor
from proctor_challenge.opening import open_phase
from proctor_challenge.pages import open_challenge
from proctor_challenge.pages.site import ChallengeSite, challenge_accounts
from proctor_challenge.receipts import verify_receipt
from proctor_challenge.settings import Phase
from proctor_challenge.submissions import submissions_of
from proctor_challenge.worker import Worker
from proctor_web import add_person
from tests.support.boxes import podman
from tests.support.challenge_data import focus_answers
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.means import missing
from tests.support.program import proctor
from tests.support.web_keys import served
from tests.support.web_site import PASSWORD
from tests.support.whole_challenge import (
    CHEATS,
    CRASHES,
    HANGS,
    LATE,
    PRE,
    TEST,
    ArchivedPrograms,
    OwnScorer,
    archive_of,
    program,
    whole_folder_of,
)

QUOTA, LATE_ONE, HANGING, CRASHING, CHEATING = "Alpha", "Beta", "Gamma", "Delta", "Epsilon"


@dataclass
class Host:
    """The challenge, the browser, and what the organiser runs."""

    folder: Path
    site: ChallengeSite
    page: Page
    address: str
    organiser: Challenge
    executor: Executor
    numbers: dict[str, int] = field(default_factory=dict)

    async def go(self, path: str) -> str:
        """What a page shows."""
        await self.page.open(self.address + path)
        return await self.page.text()

    async def leave(self) -> None:
        """Nobody is logged in any more. The page is left first: one that renews itself would be told to log in."""
        await self.page.open("about:blank")
        await self.page.call("Network.clearBrowserCookies")

    async def enter(self, name: str) -> None:
        """Logs in; the former user is logged out."""
        await self.leave()
        await self.page.open(self.address + "/login")
        await self.page.send("main form", name=name, password=PASSWORD)

    async def registered(self, team: str) -> None:
        """Somebody makes an account and registers a team."""
        await self.leave()
        await self.page.open(self.address + "/register")
        await self.page.send("main form", name=f"{team}.lead", password=PASSWORD, again=PASSWORD)
        await self.page.open(self.address + "/team")
        form = 'form[action="/team"]'
        await self.page.send(form, name=team, institution="Clinic of " + team, country="at", terms=True)
        assert "Give this join code" in await self.page.text()

    async def handed_in(self, file: Path, kind: str, name: str, phase: str = PRE) -> str:
        """What the page of a new submission shows."""
        await self.page.open(f"{self.address}/phase/{phase}")
        form = f'form[action="/phase/{phase}/{kind}"]'
        await self.page.send(form, {"upload": file}, name=name, description=f"How {name} works")
        return await self.page.text()

    async def worked(self) -> None:
        """A worker runs and marks what waits."""
        worker = Worker(self.organiser, self.executor, OwnScorer(self.organiser), ("file", "image"), gpu="")
        await worker.work(asyncio.Event(), once=True)

    def states(self, team: int) -> list[str]:
        """Of a team's submissions, the oldest first."""
        with self.organiser.reading() as connection:
            return [one["state"] for one in reversed(submissions_of(connection, team))]


def checked_here(challenge: Challenge, phase: Phase, kind: str, upload: Path, suffix: str) -> Admission:
    """The same check without a process of its own, which the tests of handing in start."""
    named = challenge.folder.parent / f"checked{suffix}"
    named.unlink(missing_ok=True)
    named.symlink_to(upload)
    settings = challenge.settings
    data = str(challenge.folder / phase.questions)
    asked = {"kind": kind, "path": str(named), "benchmark": settings.benchmark, "track": settings.track, "data": data}
    return check_process.checked(asked | {"budget": phase.budget.model_dump(mode="json")})


@pytest.mark.parametrize("runs", ["process", pytest.param("podman", marks=pytest.mark.podman)])
def test_a_challenge_from_registration_to_the_final_boards(
    tmp_path: Path, runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = find_chromium()
    if found is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
    executor: Executor = podman() if runs == "podman" else ArchivedPrograms(tmp_path)
    monkeypatch.setattr(uploads, "check_upload", checked_here)
    folder = whole_folder_of(tmp_path, videos=runs == "podman")
    images = images_of(folder, podman=runs == "podman")
    site, organiser = open_challenge(folder, same_user=True), Challenge.open(folder, "organiser")
    invitation = add_person(challenge_accounts(folder), "olga", "organiser", "en").link

    async def go() -> None:
        with served(site) as address:
            async with open_page(str(found)) as page:
                host = Host(folder, site, page, address, organiser, executor)
                await page.open(address + "/invitation/" + invitation.rpartition("/")[2])
                await page.send("main form", password=PASSWORD, again=PASSWORD)
                await first_phase(host, images, oracle=runs == "podman")
                await final_phase(host, images, oracle=runs == "podman")
                await receipts_verify(host, tmp_path)
                assert page.complaints == []

    asyncio.run(go())
    organiser.close()
    site.engine.dispose()


def images_of(folder: Path, *, podman: bool) -> dict[str, Path]:
    """An archive for each team."""
    made = {
        QUOTA: program(folder, "good", 0.95, 1),
        LATE_ONE: program(folder, "late", 1.0, 2, code=LATE),
        "in time": program(folder, "in-time", 0.8, 3),
        HANGING: program(folder, "hangs", 1.0, 4, before=HANGS),
        CRASHING: program(folder, "crashes", 1.0, 5, before=CRASHES),
        CHEATING: program(folder, "cheats", 0.2, 6, code=CHEATS),
    }
    return {name: archive_of(source, podman=podman) for name, source in made.items()}


async def first_phase(host: Host, images: dict[str, Path], *, oracle: bool) -> None:
    """The pre-evaluation: all hand in, and the boards say who goes on."""
    shown = await host.go("/organise/")
    assert shown.count("not opened yet") == 3
    await asyncio.to_thread(open_phase, host.organiser, PRE, host.executor if oracle else None)
    assert "the folder is in order" in await host.page.evaluate(
        f"fetch('{host.address}/organise/').then((one) => one.text())"
    )
    for number, team in enumerate((QUOTA, LATE_ONE, HANGING, CRASHING, CHEATING), start=1):
        await host.registered(team)
        host.numbers[team] = number
        if team == QUOTA:
            for tries in range(3):
                assert "queued" in await host.handed_in(file_of(host, tries), "file", f"try {tries + 1}")
            page = await host.go(f"/phase/{PRE}")
            assert "Its quota is used up" in page
            assert "0 of 3 results left" in page
        else:
            assert "queued" in await host.handed_in(images[team], "image", f"system of {team}")
    await host.worked()
    assert host.states(host.numbers[QUOTA]) == ["scored"] * 3
    assert host.states(host.numbers[LATE_ONE]) == ["scored"]
    assert host.states(host.numbers[HANGING]) == ["timed_out"]
    assert host.states(host.numbers[CRASHING]) == ["crashed"]
    assert host.states(host.numbers[CHEATING]) == ["scored"]
    await host.enter(f"{LATE_ONE}.lead".lower())
    page = await host.go("/submission/4")
    late = re.search(r"too late\s+(\d+)", page)
    assert late is not None
    assert int(late[1]) >= 5
    await host.enter(f"{HANGING}.lead".lower())
    assert "was not ready in time" in await host.go("/submission/5")
    assert "5 attempts left" in await host.go("/submissions")
    await host.leave()
    board = await host.go(f"/board/{PRE}")
    assert board.index(QUOTA) < board.index("plain")
    assert HANGING not in board
    assert CRASHING not in board


def file_of(host: Host, tries: int) -> Path:
    """A file of answers to the public questions, each a little better."""
    skill = (0.4, 0.7, 0.95)[tries]
    file = host.folder.parent / f"answers-{tries}.json"
    return focus_answers(host.folder / "public" / PRE, host.folder / "sealed" / PRE, file, skill, seed=tries)


async def final_phase(host: Host, images: dict[str, Path], *, oracle: bool) -> None:
    """Two pass the gate and hand in images; what they get is what `proctor rank` says of the same answers."""
    await asyncio.to_thread(open_phase, host.organiser, TEST, host.executor if oracle else None)
    passed = []
    for team in host.numbers:
        await host.enter(f"{team}.lead".lower())
        page = await host.go(f"/phase/{TEST}")
        if "has not passed the previous phase" not in page:
            passed.append(team)
    assert passed == [QUOTA, LATE_ONE]
    for team, image in ((QUOTA, images[QUOTA]), (LATE_ONE, images["in time"])):
        await host.enter(f"{team}.lead".lower())
        assert "queued" in await host.handed_in(image, "image", "final", TEST)
    await host.worked()
    assert "not shown yet" in await host.go("/submission/9"), "organisers alone see the test"
    await host.enter("olga")
    page = await host.go(f"/board/{TEST}")
    assert page.index(QUOTA) < page.index(LATE_ONE)
    assert "What this phase has given away" in page
    with host.organiser.reading() as connection:
        settings, now = host.organiser.settings, host.organiser.now()
        shown = visible_boards(connection, settings, TEST, "organiser", now)
    assert shown is not None
    condition = settings.phase(TEST).condition
    assert condition == ("video" if oracle else "text-only")
    theirs = ranked(host.folder, condition, f"{QUOTA}#1", f"{LATE_ONE}#1")
    assert len(theirs) == len(shown["boards"]) == 2
    for mine, other in zip(shown["boards"], theirs, strict=True):
        assert [one["name"] for one in mine["rows"]] == [one["system"].removesuffix("#1") for one in other["systems"]]
        for row, system in zip(mine["rows"], other["systems"], strict=True):
            assert row["mean"] == round(system["mean"], 3)
            for name in ("rank", "rank_low", "rank_high", "won", "lost", "tied"):
                assert row[name] == system[name]


def ranked(folder: Path, condition: str, *systems: str) -> list[dict[str, Any]]:
    """What `proctor rank` prints of the answers to the test."""
    words = [word for name in systems for word in ("--system", name)]
    drawn = ["--draws", "200", "--stability", "20", "--latency", "optional", "--baseline", "plain", "--format", "json"]
    store = folder / "sealed" / f"{TEST}.sqlite"
    done = proctor("rank", "focus", "--store", store, "--condition", condition, *drawn, *words)
    assert done.returncode == 0, done.stderr
    boards: list[dict[str, Any]] = json.loads(done.stdout)
    return boards


async def receipts_verify(host: Host, folder: Path) -> None:
    """The receipts that pages hand out, by the key that a page hands out."""
    cookies = (await host.page.call("Network.getCookies", urls=[host.address]))["cookies"]
    known = {one["name"]: one["value"] for one in cookies}
    with httpx2.Client(base_url=host.address, cookies=known) as client:
        key = client.get("/receipt-key.txt").text.strip()
        for number, team in ((3, QUOTA), (4, LATE_ONE), (8, QUOTA), (9, LATE_ONE)):
            answer = await asyncio.to_thread(client.get, f"/submission/{number}/receipt")
            file = folder / f"receipt-{number}.json"
            file.write_bytes(answer.content)
            assert verify_receipt(file, key).team == team

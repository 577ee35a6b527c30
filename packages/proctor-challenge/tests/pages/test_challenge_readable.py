"""Every page of a challenge in a real browser at 1280, 820 and 390 px, light and dark: contrast, names of fields,
width, headings; and a submission whose page follows by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from itsdangerous import Signer
from sqlalchemy import update

from proctor_challenge import uploads
from proctor_challenge.admission import Admission
from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.schema import submissions
from proctor_web.accounts import find_account
from proctor_web.sessions import start_session
from tests.pages.test_challenge_boards import publish, scored
from tests.support.challenge_site import HIDDEN, challenge_site, handed, logged_in, team_of_two
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.means import missing
from tests.support.web_keys import served, until
from tests.support.web_page import faults
from tests.support.web_site import join

PATHS = {
    "": ["/", "/login", "/register", f"/board/{HIDDEN}", "/terms"],
    "anna": ["/", "/team", "/submissions", "/submission/1", "/submission/3", f"/phase/{HIDDEN}", f"/board/{HIDDEN}"],
    "eve": ["/team"],
    "olga": ["/organise/", "/organise/teams", "/organise/teams/1", "/organise/submissions", "/organise/people", "/submission/2",
             f"/board/{HIDDEN}"],
}  # fmt: skip
LOG = {"exit_code": 1, "signal": None, "out_of_memory": True, "peak_memory": 2**30, "startup_s": 3, "seconds": 80,
       "restarts": 1, "counts": {"answered": 12, "timed_out": 8}, "errors": {"ValueError": 3}, "log": "Traceback\n x"}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChallengeSite:
    """A team with a result, another one without, one that crashed and one that was refused."""
    made = challenge_site(tmp_path)
    for team, person in (("Hand Surgeons", "anna"), ("Tray Watchers", "cleo"), ("Bone Setters", "dan")):
        number = team_of_two(made, team, person)
        scored(made, number, 0.8 - number / 10, number=50) if person != "dan" else None
    for name, role in (("eve", "participant"), ("olga", "organiser")):
        join(made, name, role, "de")
    anna = logged_in(made, "anna")
    problems = ["error: missing: v00-q00: found no answer, expected an answer to every question"]
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission(tuple(problems)))
    handed(anna, b"bad", name="A name that is rather long for a table, " * 4, description="Two\nlines")
    problems.clear()
    handed(anna, b"good")
    with made.writing() as connection:
        crashed = {"state": "crashed", "reason": "crashed", "fault": "participant", "log": LOG, "progress": None}
        connection.execute(update(submissions).where(submissions.c.id == 2).values(crashed))
    publish(made)
    return made


async def come_in(page: Page, site: ChallengeSite, address: str, name: str) -> None:
    with site.writing() as connection:
        token = start_session(connection, find_account(connection, name)["id"], site.now())
    cookie = Signer(site.key, salt="session").sign(token).decode()
    await page.call("Network.setCookie", name="proctor", value=cookie, url=address)


def test_every_page_can_be_read_and_a_state_follows_by_itself(site: ChallengeSite) -> None:
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")

    async def work(address: str) -> dict[str, object]:
        wrong: dict[str, object] = {}
        async with open_page(str(program)) as page:
            for name, own in PATHS.items():
                if name:
                    await come_in(page, site, address, name)
                for path in own:
                    await page.open(address + path)
                    if found := await faults(page):
                        wrong[f"{name} {path}"] = found
            await come_in(page, site, address, "anna")
            await page.open(f"{address}/submission/4")
            with site.writing() as connection:
                connection.execute(update(submissions).where(submissions.c.id == 4).values(state="running"))
            await until(page, "document.querySelector('.state-running')")
            assert page.complaints == []
        site.engine.dispose()
        return wrong

    with served(site) as address:
        assert asyncio.run(work(address)) == {}

"""Every page in a real browser at 1280, 820 and 390 px, light and dark: contrast, names of fields, width, headings."""

from __future__ import annotations

import asyncio
from pathlib import Path

from itsdangerous import Signer
from sqlalchemy import Connection, select

from proctor_web import schema
from proctor_web.accounts import find_account
from proctor_web.forms import FORMS
from proctor_web.readings import Save, seal
from proctor_web.review import ReviewSite
from proctor_web.sessions import start_session
from proctor_web.settings import StudyPlan, StudySettings
from proctor_web.studies import add_study, deal_study, import_items
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.means import missing
from tests.support.web_keys import served
from tests.support.web_page import faults
from tests.support.web_site import join
from tests.support.web_study import READINGS, new_items

PEOPLE = {"anna": "reviewer", "ben": "reviewer", "cleo": "adjudicator", "olga": "organiser"}


def studies_of_all_forms(review: ReviewSite) -> dict[str, int]:
    """A study of each form with two items, of which both readers sealed the first, and differ; the first item's id."""
    first = {}
    with review.writing() as connection:
        for form in FORMS:
            plan = StudyPlan(readers=("anna", "ben"), adjudicators=("cleo",))
            study = add_study(connection, StudySettings(name=form, form=form, items="x", plan=plan), review.now())
            import_items(connection, study, new_items(2, form), review.now())
            deal_study(connection, study, plan, review.now())
            mine = select(schema.study_items.c.id).where(schema.study_items.c.study == study)
            first[form] = int(connection.execute(mine.order_by(schema.study_items.c.id)).scalars().first() or 0)
            for name, said in zip(("anna", "ben"), READINGS[form], strict=True):
                account = find_account(connection, name)["id"]
                seal(connection, account, first[form], Save(1, 0, dict(said), "as I see it"), review.now())
    return first


async def come_in(page: Page, review: ReviewSite, connection: Connection, address: str, name: str) -> None:
    """The browser has the cookie of somebody's session."""
    token = start_session(connection, find_account(connection, name)["id"], review.now())
    cookie = Signer(review.key, salt="session").sign(token).decode()
    await page.call("Network.setCookie", name="proctor", value=cookie, url=address)


def test_every_page_can_be_read(review: ReviewSite) -> None:
    """In German, whose words are longer."""
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
    for name, role in PEOPLE.items():
        join(review, name, role, "de")
    first = studies_of_all_forms(review)
    after = {form: item + 1 for form, item in first.items()}
    organised = ["/organise/study/question", "/organise/study/rating", f"/organise/item/{first['question']}"]
    paths = {
        "anna": ["/", *(f"/item/{item}" for item in after.values()), f"/item/{first['question']}"],
        "cleo": ["/", *(f"/item/{item}" for item in first.values())],
        "olga": ["/organise/", "/organise/people", "/organise/trail", *organised],
    }

    async def work(address: str) -> dict[str, object]:
        wrong: dict[str, object] = {}
        async with open_page(str(program)) as page:
            for name, own in paths.items():
                with review.writing() as connection:
                    await come_in(page, review, connection, address, name)
                for path in own:
                    await page.open(address + path)
                    assert await page.evaluate("document.documentElement.lang") == "de"
                    if found := await faults(page):
                        wrong[f"{name} {path}"] = found
            assert [one for one in page.complaints if "404" not in one] == []  # the items' pictures are not there
        return wrong

    with served(review) as address:
        assert asyncio.run(work(address)) == {}


def test_all_frames_to_order_are_in_sight_on_a_phone(review: ReviewSite) -> None:
    """Who compares frames can't scroll sideways for each pair of them."""
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
    for name, role in PEOPLE.items():
        join(review, name, role, "en")
    path = f"/item/{studies_of_all_forms(review)['order'] + 1}"

    async def work(address: str) -> list[bool]:
        async with open_page(str(program)) as page:
            with review.writing() as connection:
                await come_in(page, review, connection, address, "anna")
            await page.resize(390, 900)
            await page.open(address + path)
            seen = "[...document.querySelectorAll('[data-frame]')].map((one) => one.getBoundingClientRect())"
            return list(await page.evaluate(f"{seen}.map((one) => one.left >= 0 && one.right <= innerWidth)"))

    with served(review) as address:
        assert asyncio.run(work(address)) == [True, True, True]


def test_a_page_that_can_hardly_be_read_is_noticed(tmp_path: Path) -> None:
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
    page_file = tmp_path / "bad.html"
    page_file.write_text(
        "<!doctype html><meta name=viewport content='width=device-width'><body><p style='color:#999'>faint</p>"
        "<input style='border:1px solid #ddd'><div style='width:2000px'>wide</div><button style='height:9px'>x</button>"
    )

    async def work() -> dict[str, dict[str, object]]:
        async with open_page(str(program)) as page:
            await page.open(page_file.as_uri())
            return await faults(page)

    found = asyncio.run(work())
    assert len(found) == 6
    assert all(set(one) >= {"faint", "edges", "nameless", "small", "wide", "headings"} for one in found.values())

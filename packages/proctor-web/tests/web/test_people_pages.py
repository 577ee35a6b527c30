"""People and the trail in the browser: an organiser's pages, closed to everybody else."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from starlette.testclient import TestClient

from proctor_web import schema
from proctor_web.accounts import find_account
from proctor_web.review import ReviewSite
from proctor_web.trail import first_fault
from tests.support.chromium import find_chromium, open_page
from tests.support.means import missing
from tests.support.program import proctor
from tests.support.web_folder import invitations, review_folder, serving
from tests.support.web_keys import write
from tests.support.web_page import faults, press
from tests.support.web_site import PASSWORD, browser, csrf_of, entered, join, log_in


def post(client: TestClient, path: str, **data: str) -> int:
    token = csrf_of(client.get("/"))
    return int(client.post(path, data=data | {"csrf": token}).status_code)


def test_an_organiser_adds_people_who_come_in(review: ReviewSite) -> None:
    olga = entered(review, "olga", "organiser")
    data = {"csrf": csrf_of(olga.get("/organise/people")), "name": "Zoe", "role": "annotator", "language": "de"}
    answer = olga.post("/organise/people", data=data)
    found = re.search(r"<code>http://review\.test(/invitation/[\w-]+)</code>", answer.text)
    assert found is not None
    assert found[1] not in olga.get("/organise/people").text, "shown once"
    zoe = browser(review)
    form = zoe.get(found[1])
    assert zoe.post(found[1], data={"csrf": csrf_of(form), "password": PASSWORD, "again": PASSWORD}).status_code == 303
    assert "Ihre Studien" in zoe.get("/").text
    with review.reading() as connection:
        number = find_account(connection, "zoe")["id"]
    assert post(olga, f"/organise/people/{number}/role", role="adjudicator") == 303
    assert zoe.get("/").status_code == 303, "the role is another: log in again"
    asked = olga.post(f"/organise/people/{number}/disable", data={"csrf": csrf_of(olga.get("/"))})
    assert (asked.status_code, "zoe is logged out at once" in asked.text, 'class="danger"' in asked.text) == (
        200,
        True,
        True,
    )
    assert log_in(zoe, "zoe").status_code == 303, "it was only asked"
    assert post(olga, f"/organise/people/{number}/disable", sure="yes") == 303
    assert log_in(zoe, "zoe").status_code == 401
    assert post(olga, f"/organise/people/{number}/enable") == 303
    assert log_in(zoe, "zoe").status_code == 303
    with review.reading() as connection:
        olgas, zoes = (find_account(connection, name)["pseudonym"] for name in ("olga", "zoe"))
        entries = connection.execute(select(schema.trail).where(schema.trail.c.person == olgas)).mappings().all()
        assert [entry["action"] for entry in entries] == [
            "set password", "add account", "invite", "set role", "disable", "enable",
        ]  # fmt: skip
        assert first_fault(connection) is None
    shown = olga.get("/organise/trail").text
    assert "set role" in shown
    assert "from: annotator, to: adjudicator" in shown
    assert f"account {zoes} (zoe)" in shown
    with review.writing() as connection:  # the name is erased
        connection.execute(update(schema.accounts).where(schema.accounts.c.pseudonym == zoes).values(name=zoes))
    shown = olga.get("/organise/trail").text
    assert f"account {zoes}</td>" in shown
    assert "zoe" not in shown


@pytest.mark.parametrize("role", [role for role in schema.ROLES if role != "organiser"])
def test_for_everybody_else_these_pages_are_not_there(review: ReviewSite, role: str) -> None:
    """And what is sent to them changes nothing: nobody makes themselves an organiser, nor anybody else."""
    join(review, "olga", "organiser")
    eve = entered(review, "eve", role)
    with review.reading() as connection:
        number = find_account(connection, "eve")["id"]
        before = connection.execute(select(func.count()).select_from(schema.trail)).scalar()
    assert eve.get("/organise/people").status_code == eve.get("/organise/trail").status_code == 404
    assert post(eve, "/organise/people", name="mallory", role="organiser", language="en") == 404
    for account in (1, number):
        assert post(eve, f"/organise/people/{account}/role", role="organiser") == 404
        for change in ("invite", "disable", "enable"):
            assert post(eve, f"/organise/people/{account}/{change}") == 404
    with review.reading() as connection:
        assert connection.execute(select(func.count()).select_from(schema.trail)).scalar() == before
        assert find_account(connection, "eve")["role"] == role
    assert "olga" not in eve.get("/").text


def test_an_organiser_can_not_shut_the_last_door(review: ReviewSite) -> None:
    olga = entered(review, "olga", "organiser")
    with review.reading() as connection:
        number = find_account(connection, "olga")["id"]
    assert post(olga, f"/organise/people/{number}/role", role="public") == 409
    assert post(olga, f"/organise/people/{number}/disable") == 409
    assert olga.get("/organise/people").status_code == 200


BAD = [
    ("/organise/people", {"name": "<script>alert(1)</script>", "role": "reviewer", "language": "en"}, 422),
    ("/organise/people", {"name": "{{7*7}}", "role": "reviewer", "language": "en"}, 422),
    ("/organise/people", {"name": "olga", "role": "reviewer", "language": "en"}, 422),
    ("/organise/people", {"name": "zoe", "role": "root", "language": "en"}, 422),
    ("/organise/people", {"name": "zoe", "role": "reviewer", "language": "../../en"}, 422),
    ("/organise/people", {"name": "zoe", "role": "reviewer"}, 422),
    ("/organise/people/1/role", {"role": "root"}, 422),
    ("/organise/people/99/role", {"role": "reviewer"}, 404),
    ("/organise/people/0/disable", {}, 404),
    ("/organise/people/99999999999999999999/disable", {}, 404),
    ("/organise/people/1 or 1=1/disable", {}, 404),
    ("/organise/people/1/delete", {}, 404),
]


@pytest.mark.parametrize(("path", "data", "status"), BAD, ids=lambda one: str(one)[:40])
def test_what_can_not_be_changes_nothing(review: ReviewSite, path: str, data: dict[str, str], status: int) -> None:
    olga = entered(review, "olga", "organiser")
    answer = olga.post(path, data=data | {"csrf": csrf_of(olga.get("/"))})
    assert answer.status_code == status
    assert "<script>alert" not in answer.text
    with review.reading() as connection:
        assert connection.execute(select(func.count()).select_from(schema.accounts)).scalar() == 1
        assert find_account(connection, "olga")["role"] == "organiser"


@pytest.mark.parametrize(("name", "told"), [("olga", "Es gibt schon ein Konto"), ("a b", "Ein Name besteht aus")])
def test_a_name_that_can_not_be_is_refused_in_the_language_of_the_account(
    review: ReviewSite, name: str, told: str
) -> None:
    olga = entered(review, "olga", "organiser")
    olga.post("/language", data={"language": "de", "csrf": csrf_of(olga.get("/"))})
    entry = {"name": name, "role": "reviewer", "language": "de", "csrf": csrf_of(olga.get("/"))}
    page = olga.post("/organise/people", data=entry).text
    assert told in page
    assert "expected" not in page
    trail = olga.get("/organise/trail").text
    with review.reading() as connection:
        olgas = find_account(connection, "olga")["pseudonym"]
    words = ("Konto angelegt", "Sprache gesetzt", f"Konto {olgas} (olga)", "Rolle: Organisation")
    assert all(word in trail for word in words)


def test_the_trail_is_read_page_by_page(review: ReviewSite) -> None:
    olga = entered(review, "olga", "organiser")
    for number in range(60):
        join(review, f"reader{number}")
    first = olga.get("/organise/trail")
    assert first.text.count("<tr>") == 101
    older = re.search(r"/organise/trail\?before=(\d+)", first.text)
    assert older is not None
    second = olga.get("/organise/trail", params={"before": older[1]})
    assert second.text.count("<tr>") == 84
    assert "before=" not in second.text
    for bad in ("0", "x", "9" * 30):
        assert olga.get("/organise/trail", params={"before": bad}).status_code == 422


def test_the_pages_in_a_browser(tmp_path: Path) -> None:
    """Light and dark, wide and narrow, and by keyboard: a person is added without the mouse."""
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
    folder = review_folder(tmp_path / "review")
    invitations(folder)
    link = "/invitation/" + proctor("serve", "users", "add", folder, "olga", "--role", "organiser").stdout.strip()[-43:]

    async def work(address: str) -> None:
        async with open_page(str(program)) as page:
            await page.open(address + link)
            for text in (PASSWORD, PASSWORD):
                await write(page, text)
                await press(page, "Tab")
            await press(page, "Enter", loads=True)
            for path in ("/organise/trail", "/organise/people"):
                await page.open(address + path)
                assert await faults(page) == {}, path
            await page.evaluate("document.getElementById('name').focus()")
            await write(page, "zoe")
            await press(page, "Enter", loads=True)
            assert "zoe" in await page.evaluate("document.querySelector('.good').textContent")
            assert await faults(page) == {}
            assert page.complaints == []

    with serving(folder) as (_, address):
        asyncio.run(work(address))

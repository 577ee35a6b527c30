"""What is typed is kept as its writer's, whatever becomes of sessions, answers and other windows: in a real browser."""

from __future__ import annotations

import asyncio

from sqlalchemy import select

from proctor_web import schema
from proctor_web.readings import Save, save_draft
from proctor_web.review import ReviewSite
from tests.support.chromium import Page
from tests.support.web_keys import press, until, write
from tests.support.web_study import NOW, REJECT, accounts_of
from tests.support.web_work import change_person, log_in, sealed, walk

STATUS = "document.querySelector('[data-status]').textContent"
COMMENT = "document.querySelector('[data-comment]').value"


OFFER = "document.querySelector('[data-offer]')"

LOSE_ONE_ANSWER = """(() => {
  const real = window.fetch; let left = 1;
  window.fetch = async (...sent) => {
    const answer = await real(...sent);
    if (left && sent[0].endsWith("/draft")) { left -= 1; throw new TypeError("lost"); }
    return answer;
  };
})()"""
HOLD_ANSWERS = """(() => {
  const real = window.fetch; window.arrived = 0;
  window.fetch = async (...sent) => {
    const answer = await real(...sent);
    if (sent[0].endsWith("/draft") && !sent[1].keepalive) { window.arrived += 1; await new Promise(() => {}); }
    return answer;
  };
})()"""


async def come_back(page: Page, address: str) -> None:
    """Closes the page, and opens it again."""
    await page.open("about:blank")
    await page.open(address)
    await until(page, "document.querySelector('[data-ready=yes]')")


def comments(review: ReviewSite) -> dict[str, str]:
    """What is kept on the server, by account."""
    query = select(schema.accounts.c.name, schema.readings.c.comment).join(
        schema.readings, schema.readings.c.account == schema.accounts.c.id
    )
    with review.reading() as connection:
        return {row.name: row.comment for row in connection.execute(query)}


def test_what_one_person_types_is_never_kept_as_anothers_who_logged_in_since(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        here = await page.evaluate("location.pathname")
        await change_person(page, "ben")
        await press(page, "c")
        await write(page, "Anna's opinion")
        await until(page, f"{STATUS}.startsWith('ben is now logged in')")
        assert "Your entries as anna are kept in this browser" in await page.evaluate(STATUS)
        await press(page, "Escape", "a", "s")
        await until(page, f"{STATUS}.startsWith('ben is now logged in')")
        assert comments(review) == {}
        await page.open("about:blank")
        await page.open(url + here)
        await until(page, "document.querySelector('[data-ready=yes]')")
        assert (await page.evaluate(COMMENT), await page.evaluate("document.querySelector('.who').textContent")) == (
            "",
            "ben",
        )
        await change_person(page, "anna")
        await page.open("about:blank")
        await page.open(url + here)
        await until(page, f"location.href !== '{url}{here}'")

    walk(review, "question", steps)
    assert comments(review) == {"anna": "Anna's opinion"}
    ((who, one),) = sealed(review)
    assert (who, one["decision"]) == ("anna", "accept")


def test_a_page_goes_on_once_its_own_person_is_logged_in_again(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        await change_person(page, "ben")
        await press(page, "c")
        await write(page, "written between")
        await until(page, f"{STATUS}.startsWith('ben is now logged in')")
        await change_person(page, "anna")
        await until(page, f"{STATUS} === 'Saved.'")

    walk(review, "question", steps)
    assert comments(review) == {"anna": "written between"}


def test_what_is_typed_after_a_lost_acknowledgement_is_saved(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        await page.evaluate(LOSE_ONE_ANSWER)
        await press(page, "c")
        await write(page, "First sentence.")
        await until(page, f"{STATUS}.startsWith('No connection.')")
        assert comments(review) == {"anna": "First sentence."}
        await write(page, " Second sentence.")
        await until(page, f"{STATUS} === 'Saved.'")

    walk(review, "question", steps)
    assert comments(review) == {"anna": "First sentence. Second sentence."}


def test_what_is_typed_after_a_lost_acknowledgement_outlasts_its_page(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        here = url + await page.evaluate("location.pathname")
        await page.evaluate(LOSE_ONE_ANSWER)
        await press(page, "c")
        await write(page, "First.")
        await until(page, f"{STATUS}.startsWith('No connection.')")
        await page.evaluate("window.fetch = () => Promise.reject(new TypeError('no network'))")
        await write(page, " Second.")
        await until(page, f"{STATUS}.startsWith('No connection.')")
        await page.open("about:blank")
        assert comments(review) == {"anna": "First."}
        await page.open(here)
        await until(page, f"{STATUS} === 'Saved.'")
        assert await page.evaluate(f"{OFFER}.hidden") is True

    walk(review, "question", steps)
    assert comments(review) == {"anna": "First. Second."}


def test_what_is_typed_while_a_save_is_under_way_is_saved_when_the_page_is_left(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        here = await page.evaluate("location.pathname")
        await page.evaluate(HOLD_ANSWERS)
        await press(page, "c")
        await write(page, "Alpha.")
        await until(page, "window.arrived === 1")
        await write(page, " Beta: the key is wrong.")
        await press(page, "Escape", "n")
        await until(page, f"location.pathname !== '{here}' && document.querySelector('[data-ready=yes]')")
        for _ in range(3000):
            if comments(review)["anna"] != "Alpha.":
                break
            await asyncio.sleep(0.02)
        assert comments(review) == {"anna": "Alpha. Beta: the key is wrong."}
        await come_back(page, url + here)
        assert await page.evaluate(COMMENT) == "Alpha. Beta: the key is wrong."
        assert await page.evaluate("localStorage.length") == 0

    walk(review, "question", steps)


def test_what_was_typed_beside_another_window_is_offered_and_never_deleted(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        here = url + await page.evaluate("location.pathname")
        item = int(here.rpartition("/")[2])
        with review.writing() as connection:
            other = Save(1, 0, REJECT, "from the other window")
            save_draft(connection, accounts_of(connection)["anna"], item, other, NOW)
        await press(page, "c")
        await write(page, "typed here")
        await until(page, "document.querySelector('[data-missing]').textContent.includes('another window')")
        await write(page, " and on")
        for _ in range(2):  # it is still offered the next time
            await come_back(page, here)
            assert await page.evaluate(COMMENT) == "from the other window"
            assert "typed here and on" in await page.evaluate(f"{OFFER}.innerText")
        await page.evaluate(f"{OFFER}.querySelector('[data-swap]').click()")
        await until(page, f"{STATUS} === 'Saved.'")
        assert comments(review) == {"anna": "typed here and on"}
        await come_back(page, here)
        assert await page.evaluate(COMMENT) == "typed here and on"
        shown = await page.evaluate(f"{OFFER}.innerText")
        assert "from the other window" in shown
        assert "two options are right" in shown
        await page.evaluate(f"{OFFER}.querySelector('[data-discard]').click()")
        await come_back(page, here)
        assert await page.evaluate(f"{OFFER}.hidden") is True
        assert await page.evaluate("localStorage.length") == 0

    page = walk(review, "question", steps)
    assert comments(review) == {"anna": "typed here and on"}
    assert all("409" in one for one in page.complaints)

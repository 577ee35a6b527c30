"""What is typed is kept as its writer's, whatever becomes of sessions, answers and other windows: in a real browser."""

from __future__ import annotations

from sqlalchemy import select

from proctor.web import schema
from proctor.web.review import ReviewSite
from tests.support.chromium import Page
from tests.support.web_keys import press, until, write
from tests.support.web_work import change_person, log_in, sealed, walk

STATUS = "document.querySelector('[data-status]').textContent"
COMMENT = "document.querySelector('[data-comment]').value"


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
        await until(page, f"{STATUS}.startsWith('ben is logged in')")
        assert "What you said as anna is kept in this browser" in await page.evaluate(STATUS)
        await press(page, "Escape", "a", "s")
        await until(page, f"{STATUS}.startsWith('ben is logged in')")
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
        await until(page, f"{STATUS}.startsWith('ben is logged in')")
        await change_person(page, "anna")
        await until(page, f"{STATUS} === 'Saved.'")

    walk(review, "question", steps)
    assert comments(review) == {"anna": "written between"}

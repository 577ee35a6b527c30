"""People at work in a real browser: a study, who is logged in, and what was sealed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from sqlalchemy import select

from proctor.core import VideoClip
from proctor_web import schema
from proctor_web.review import ReviewSite
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.means import missing
from tests.support.web_keys import press, served, until, write
from tests.support.web_site import PASSWORD, join
from tests.support.web_study import new_items, study_of

Walk = Callable[[Page, str], Awaitable[None]]


def walk(review: ReviewSite, form: str, steps: Walk, count: int = 2, media: tuple[VideoClip, ...] = ()) -> Page:
    """Two people in a study, and what happens in a browser."""
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
        raise AssertionError
    for name in ("anna", "ben", "cleo"):
        join(review, name, "adjudicator" if name == "cleo" else "reviewer")
    study_of(review.engine, [replace(one, media=media) for one in new_items(count, form)], form)

    async def go() -> Page:
        with served(review) as url:
            async with open_page(program) as page:
                await steps(page, url)
                return page

    return asyncio.run(go())


async def log_in(page: Page, url: str, name: str = "anna") -> None:
    """Four keys beside name and password: Tab, Enter, and Enter on the study that waits."""
    await page.open(f"{url}/login")
    await until(page, "document.activeElement.id === 'name'")
    await write(page, name)
    await press(page, "Tab")
    await write(page, PASSWORD)
    await press(page, "Enter")
    await until(page, "location.pathname === '/' && document.activeElement.matches('a.first')")
    await press(page, "Enter")
    await until(page, "document.querySelector('[data-ready=yes]')")


def sealed(review: ReviewSite) -> list[tuple[str, dict[str, object]]]:
    query = (
        select(schema.accounts.c.name, schema.readings.c.payload)
        .join(schema.readings, schema.readings.c.account == schema.accounts.c.id)
        .where(schema.readings.c.sealed.is_not(None))
        .order_by(schema.readings.c.id)
    )
    with review.reading() as connection:
        return [(row.name, row.payload) for row in connection.execute(query)]


async def change_person(page: Page, name: str) -> None:
    """Logs out, and another one in, as another window of the same browser does: the open page stays as it is."""
    await page.evaluate(
        f"""(async () => {{
  const token = async (path) => new DOMParser().parseFromString(await (await fetch(path)).text(), "text/html")
    .querySelector("meta[name=csrf-token]").content;
  const send = (path, fields) => fetch(path, {{ method: "POST", body: new URLSearchParams(fields) }});
  await send("/logout", {{ csrf: await token("/") }});
  await send("/login", {{ csrf: await token("/login"), name: "{name}", password: "{PASSWORD}" }});
}})()"""
    )

"""One item of a study, in a real browser in which its reader is logged in: a clock video of 2.4 s beside its form."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from itsdangerous import Signer
from sqlalchemy import select

from proctor.core import VideoClip
from proctor_web import schema
from proctor_web.app import create_app
from proctor_web.review import ReviewSite
from proctor_web.sessions import session_cookie, start_session
from proctor_web.sources import NewItem
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.means import missing
from tests.support.served_app import serving
from tests.support.web_site import join
from tests.support.web_study import study_of

SOURCE = "clock.mp4"
_HANGS_S = 60  # a guard, no property of the page


def one_item_page(
    review: ReviewSite, form: str, body: dict[str, Any], steps: Callable[[Page], Awaitable[None]]
) -> None:
    """What happens on the item's page. The page may complain of nothing."""
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
        raise AssertionError
    write_clock_video(review.media / SOURCE, ClockVideo(range(0, 2400, 40)))
    anna = join(review, "anna")
    join(review, "ben")
    join(review, "cleo", "adjudicator")
    items = study_of(review.engine, [NewItem("q", "v", (VideoClip(source=SOURCE),), body)], form)
    with review.writing() as connection:
        token = start_session(connection, anna, review.now())
    here = replace(review, hosts=("127.0.0.1",))

    async def go() -> None:
        with serving(create_app(here)) as url:
            async with open_page(program) as page, asyncio.timeout(_HANGS_S):
                cookie = Signer(review.key, salt="session").sign(token).decode()
                await page.call("Network.setCookie", name=session_cookie(here), value=cookie, url=url)
                await page.open(f"{url}/item/{items['q']}")
                await until(page, "document.querySelector('[data-player]').dataset.exact === 'true'")
                await steps(page)
                assert page.complaints == []

    asyncio.run(go())


async def until(page: Page, condition: str) -> None:
    """Waits for a condition, looked at with each picture of the screen."""
    await page.evaluate(
        f"new Promise((done) => {{ const look = () => {condition} ? done() : requestAnimationFrame(look); look(); }})"
    )


def sealed_payload(review: ReviewSite) -> dict[str, Any]:
    """What the one sealed reading says."""
    with review.reading() as connection:
        row = connection.execute(select(schema.readings.c.payload, schema.readings.c.sealed)).one()
    assert row.sealed
    return dict(row.payload)

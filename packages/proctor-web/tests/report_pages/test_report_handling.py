"""How a page is used: rows that unfold on phones, contents that stay in view, chips of filters, and a list that holds
thousands of items and draws a few."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.reports import write_report
from proctor.results import Options
from proctor.runs import Store
from tests.report_pages.test_report_browser import in_browser
from tests.support.chromium import Page
from tests.support.report_store import a_benchmark, fill

LANES = """[...document.querySelectorAll('.chart .sys:not(.axis)')].slice(0, 2).map((row) =>
  [...row.querySelectorAll('.lane')].map((lane) => lane.checkVisibility()))"""


def test_a_phone_shows_a_systems_score_with_its_interval_and_the_rest_on_a_tap(chromium: str, report: Path) -> None:
    async def work(page: Page) -> list[Any]:
        await page.resize(390, 844)
        await page.open(report.as_uri())
        inside = """(() => { const row = document.querySelector('.chart .sys:not(.axis)');
          return ['.name', '.score', '.ends', '.track'].map((part) => {
            const box = row.querySelector(part).getBoundingClientRect();
            return box.width > 0 && box.left >= 0 && box.right <= innerWidth; }); })()"""
        found = [await page.evaluate(inside), await page.evaluate(LANES)]
        await page.evaluate("document.querySelector('.chart .unfold').click()")
        found.append(await page.evaluate(LANES))
        found.append(await page.evaluate("document.querySelector('.chart .unfold').getAttribute('aria-expanded')"))
        await page.resize(1280, 800)
        found.append(await page.evaluate(LANES))
        return found

    inside, folded, tapped, expanded, wide = in_browser(chromium, work)
    assert inside == [True] * 4
    assert folded == [[True, False, False, False]] * 2
    assert tapped == [[True] * 4, [True, False, False, False]]
    assert expanded == "true"
    assert wide == [[True] * 4] * 2


def test_the_contents_stay_and_score_what_is_read(chromium: str, report: Path) -> None:
    where = "document.querySelector('.contents').getBoundingClientRect().top"
    current = "(document.querySelector('.contents [aria-current]') || {}).hash"

    async def work(page: Page) -> list[Any]:
        await page.resize(1280, 800)
        await page.open(report.as_uri())
        found = [await page.evaluate("document.querySelector('.contents details').open")]
        await page.evaluate("document.getElementById('items').scrollIntoView({ behavior: 'instant' })")
        await page.evaluate("new Promise((done) => { setTimeout(done, 200); })")
        found += [await page.evaluate(where), await page.evaluate(current)]
        await page.resize(390, 844)
        await page.evaluate("new Promise((done) => { setTimeout(done, 200); })")
        found += [await page.evaluate(where), await page.evaluate("document.querySelector('.contents details').open")]
        return found

    open_wide, top, here, top_narrow, open_narrow = in_browser(chromium, work)
    assert (open_wide, top, here) == (True, 0, "#items")
    assert (top_narrow, open_narrow) == (0, False)


def test_j_and_k_go_from_section_to_section(chromium: str, report: Path) -> None:
    async def work(page: Page) -> list[Any]:
        await page.resize(1280, 800)
        await page.open(report.as_uri())
        found = []
        for key in ("j", "j", "k"):
            await page.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
            found.append(
                await page.evaluate(
                    "[...document.querySelectorAll('main > section')].find((one) => one.getBoundingClientRect().top >= -2).id"
                )
            )
        return found

    assert in_browser(chromium, work) == ["leaderboard", "facets", "leaderboard"]


def test_a_filter_that_is_set_is_a_chip_and_a_click_removes_it(chromium: str, report: Path) -> None:
    chips = "[...document.querySelectorAll('.chip')].map((one) => one.textContent)"
    count = "document.getElementById('count').textContent"

    async def work(page: Page) -> list[Any]:
        await page.open(f"{report.as_uri()}#condition=video&disagree=1")
        found = [await page.evaluate(chips), await page.evaluate("document.querySelector('.fields').hidden")]
        await page.evaluate("document.querySelectorAll('.chip')[1].click()")
        found += [await page.evaluate(chips), await page.evaluate(count)]
        await page.evaluate(
            "[...document.querySelectorAll('.chips button')].find((b) => b.textContent === '+ filter').click()"
        )
        found.append(await page.evaluate("document.getElementById('f-outcome').checkVisibility()"))
        return found

    both, hidden, one, found, visible = in_browser(chromium, work)
    assert both == ["Condition: video ×", "Systems disagree ×"]
    assert (hidden, one, found, visible) == (True, ["Condition: video ×"], "48 of 48 items", True)


ITEMS = 400


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    store = Store(folder / "runs.db")
    fill(store, a_benchmark(items=ITEMS, groups=8), shares={"one": {"video": 0.5}})
    return write_report(store, "toy", folder / "long.html", options=Options(draws=20)).path


def test_of_a_long_list_a_few_rows_exist_and_all_can_be_reached(chromium: str, long_report: Path) -> None:
    rows = "[...document.querySelectorAll('.list .beside')].map((one) => one.textContent.split(' ')[0])"
    chosen = "document.querySelector('#detail h3').textContent"

    async def work(page: Page) -> list[Any]:
        await page.open(long_report.as_uri())
        found = [await page.evaluate(rows), await page.evaluate("document.querySelector('.list').scrollHeight")]
        await page.evaluate("document.querySelector('.list').scrollTop = 1e6")
        await page.evaluate("new Promise((done) => { setTimeout(done, 200); })")
        found += [await page.evaluate(rows), await page.evaluate("document.querySelector('.list').scrollHeight")]
        await page.open("about:blank")
        await page.open(f"{long_report.as_uri()}#item=q250")
        found.append(await page.evaluate(rows))
        await page.evaluate("document.querySelector('.list [aria-current=true]').focus()")
        for _ in range(60):
            await page.call("Input.dispatchKeyEvent", type="rawKeyDown", key="ArrowDown", code="ArrowDown")
        return [*found, await page.evaluate(chosen), await page.evaluate("document.activeElement.textContent")]

    first, height, last, height_after, around, after, focused = in_browser(chromium, work)
    assert first[0] == "q000"
    assert last[-1] == f"q{ITEMS - 1}"
    assert max(map(len, (first, last, around))) <= 120
    assert height == height_after  # the rows that are not drawn keep their room
    assert "q250" in around
    assert after == "q310"
    assert "q310" in focused

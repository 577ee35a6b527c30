"""The item browser in a real browser: filters, the address that keeps them, the keyboard, narrow screens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.chromium import Page, open_page
from tests.support.web_page import faults

T = TypeVar("T")


def in_browser(chromium: str, work: Callable[[Page], Awaitable[T]], *more: str) -> T:
    async def run() -> T:
        async with open_page(chromium, *more) as page:
            found = await work(page)
            assert page.complaints == []
            return found

    return asyncio.run(run())


def text(selector: str) -> str:
    return f"document.querySelector({json.dumps(selector)}).textContent"


FILTERS = {
    "": "48 of 48 items",
    "#q=Describe": "6 of 48 items",
    "#q=describe+STEP+7": "2 of 48 items",
    "#q=step%207&facet.format=choice": "3 of 48 items",
    "#facet.phase=repair&facet.length=0-5+s": "8 of 48 items",
    "#facet.guessable=yes": "10 of 48 items",
    "#status=failed": "1 of 48 items",
    "#status=refused&system=guesser": "1 of 48 items",
    "#status=refused&system=looker": "0 of 48 items",
    "#flagged=1": "1 of 48 items",
    "#flagged=1&system=random": "0 of 48 items",
    "#system=looker&condition=video&outcome=unscored": "1 of 48 items",
    "#q=nowhere+to+be+found": "0 of 48 items",
    "#status=nonsense": "48 of 48 items",
    "#leaderboard": "48 of 48 items",
}


def test_the_address_restores_the_filters(chromium: str, report: Path) -> None:
    async def work(page: Page) -> dict[str, str]:
        found = {}
        for address in FILTERS:
            await page.open("about:blank")
            await page.open(report.as_uri() + address)
            found[address] = await page.evaluate(text("#count"))
        return found

    assert in_browser(chromium, work) == FILTERS


def test_counts_of_the_browser_are_those_of_the_tables(chromium: str, report: Path) -> None:
    """Right and wrong under one condition, asked of the browser, add up to what was scored."""

    async def work(page: Page) -> list[int]:
        found = []
        for outcome in ("right", "partly", "wrong", "unscored"):
            await page.open("about:blank")
            await page.open(f"{report.as_uri()}#system=looker&condition=video&outcome={outcome}")
            found.append(int((await page.evaluate(text("#count"))).split()[0]))
        return found

    right, partly, wrong, unscored = in_browser(chromium, work)
    assert (partly, unscored, right + wrong) == (0, 1, 47)


def test_systems_disagree_under_the_chosen_condition(chromium: str, report: Path) -> None:
    """Compared with the same question asked of the embedded data in Python."""
    script = report.read_text(encoding="utf-8").split('<script id="data" type="application/json">')[1]
    data = json.loads(script.split("</script>")[0])
    expected = []
    for wanted in (False, True):
        found = 0
        for item in data["items"]:
            runs = [(data["runs"][one["run"]], one["outcome"]) for one in item["answers"]]
            ends = {end for run, end in runs if run["condition"] == "black" and (wanted or not run["baseline"])}
            found += {"right", "wrong"} <= ends
        expected.append(f"{found} of 48 items")
    assert [run["system"] for run in data["runs"] if run["baseline"]] == ["random"] * 4

    async def work(page: Page) -> list[str]:
        found = []
        for address in ("#disagree=1&condition=black", "#disagree=1&condition=black&baselines=1"):
            await page.open("about:blank")
            await page.open(report.as_uri() + address)
            found.append(str(await page.evaluate(text("#count"))))
        return found

    assert len({"48 of 48 items", "0 of 48 items", *expected}) == 4
    assert in_browser(chromium, work) == expected


def test_the_most_failed_come_first_and_the_list_shows_what_differs(chromium: str, report: Path) -> None:
    script = report.read_text(encoding="utf-8").split('<script id="data" type="application/json">')[1]
    data = json.loads(script.split("</script>")[0])

    def wrong(item: dict[str, Any]) -> float:
        ends = [one["outcome"] for one in item["answers"] if not data["runs"][one["run"]]["baseline"]]
        scored = [end for end in ends if end != "unscored"]
        return float(sum(end == "wrong" for end in scored)) / len(scored)

    async def work(page: Page) -> list[list[str]]:
        await page.open(f"{report.as_uri()}#sort=failed")
        return [
            list(await page.evaluate(f"[...document.querySelectorAll('.list {part}')].map((one) => one.textContent)"))
            for part in (".beside", ".what")
        ]

    beside, what = in_browser(chromium, work)
    order = [item["id"] for item in sorted(data["items"], key=lambda item: -wrong(item))]
    assert [line.split(" · ")[0] for line in beside] == order
    # Some ask otherwise: no beginning is shared by all, so that none is left out.
    assert any(line == "Which instrument is seen in step 12?" for line in what)
    assert any(line.startswith("Describe step") for line in what)


def test_typing_choosing_and_clearing(chromium: str, report: Path) -> None:
    async def work(page: Page) -> list[str]:
        await page.open(report.as_uri())
        said = []
        await page.evaluate(
            "(() => { const q = document.getElementById('f-q'); q.value = 'step 12'; q.dispatchEvent(new "
            "Event('input')); })()"
        )
        await page.evaluate("new Promise((done) => { setTimeout(done, 400); })")
        said.append(await page.evaluate(text("#count")))
        said.append(await page.evaluate(text("#detail h3")))
        said.append(await page.evaluate("location.hash"))
        await page.evaluate(
            "(() => { const s = document.getElementById('f-outcome'); s.value = 'wrong'; s.dispatchEvent(new "
            "Event('change', {bubbles: true})); })()"
        )
        said.append(await page.evaluate("location.hash"))
        await page.evaluate(
            "[...document.querySelectorAll('button')].find((b) => b.textContent === 'Clear filters').click()"
        )
        said.append(await page.evaluate(text("#count")))
        return said

    assert in_browser(chromium, work) == [
        "1 of 48 items",
        "q012",
        "#q=step+12&item=q012",
        "#q=step+12&outcome=wrong&item=q012",
        "48 of 48 items",
    ]


def test_one_item_shows_everything(chromium: str, report: Path) -> None:
    async def work(page: Page) -> tuple[str, str, int]:
        await page.open(f"{report.as_uri()}#item=q007")
        free = await page.evaluate(text("#detail"))
        await page.open("about:blank")
        await page.open(f"{report.as_uri()}#item=q003")
        choice = await page.evaluate(text("#detail"))
        cards = await page.evaluate("document.querySelectorAll('#detail .card').length")
        return free, choice, cards

    free, choice, cards = in_browser(chromium, work)
    for said in (
        "Describe step 7.",
        "Reference: the clip is placed",
        "Why: It is seen at the end.",
        "Judge rating by the-judge",
        "contradiction",
        "explanation: Neither half holds.",
        "Scores by the-judgeHelpful (0–2)2",
        "900 tokens in, 20 out",
    ):
        assert said in free
    assert "D. clip applier ✓ key" in choice
    assert "Because: connection reset" in choice
    assert cards == 8  # the baseline's letters stand in the table alone


def test_arrows_walk_through_the_list(chromium: str, report: Path) -> None:
    async def work(page: Page) -> list[str]:
        await page.open(report.as_uri())
        await page.evaluate("document.querySelector('.list button').focus()")
        for kind in ("rawKeyDown", "keyUp"):
            await page.call("Input.dispatchKeyEvent", type=kind, key="ArrowDown", code="ArrowDown")
        focused = await page.evaluate("document.activeElement.textContent")
        for kind in ("rawKeyDown", "char", "keyUp"):
            await page.call(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13
            )
        return [focused, await page.evaluate(text("#detail h3")), await page.evaluate("document.activeElement.id")]

    focused, chosen, where = in_browser(chromium, work)
    assert "step 1?" in focused
    assert (chosen, where) == ("q001", "detail")


def test_arrows_choose_in_the_list_and_walk_in_the_chosen_item(chromium: str, report: Path) -> None:
    async def work(page: Page) -> list[str]:
        await page.open(report.as_uri())
        await page.evaluate("document.querySelector('.list button').focus()")
        found = []
        for key in ("ArrowDown", "ArrowDown"):
            await page.call("Input.dispatchKeyEvent", type="rawKeyDown", key=key, code=key)
        found.append(await page.evaluate(text("#detail h3")))
        await page.evaluate("document.getElementById('detail').focus()")
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
            await page.call("Input.dispatchKeyEvent", type="rawKeyDown", key=key, code=key)
        found.append(await page.evaluate(text("#detail h3")))
        found.append(await page.evaluate("location.hash"))
        return found

    assert in_browser(chromium, work) == ["q002", "q003", "#item=q003"]


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_the_page_never_scrolls_sideways(chromium: str, report: Path, width: int) -> None:
    async def work(page: Page) -> tuple[int, int]:
        await page.resize(width, 800)
        await page.open(report.as_uri())
        await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        boxes = await page.evaluate(
            "[...document.querySelectorAll('.wide')].filter((one) => one.scrollWidth > one.clientWidth).length"
        )
        return wide, boxes

    wide, boxes = in_browser(chromium, work)
    assert wide == 0
    assert boxes > 0 or width > 768


def test_on_paper_nothing_is_cut_off(chromium: str, report: Path) -> None:
    """A4 with its margins is 186 mm wide, which is 703 pixels."""

    async def work(page: Page) -> list[int]:
        await page.resize(703, 1000)
        await page.call("Emulation.setEmulatedMedia", media="print")
        await page.open(report.as_uri())
        wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        hidden = await page.evaluate("document.getElementById('browser').offsetHeight")
        return [wide, hidden]

    assert in_browser(chromium, work) == [0, 0]


def test_dark_and_light_have_enough_contrast(chromium: str, report: Path) -> None:
    """Text against its page by the WCAG formula: at least 4.5 to 1 in both."""

    async def work(page: Page) -> list[list[str]]:
        colours = []
        for scheme in ("light", "dark"):
            await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            await page.open(report.as_uri())
            colours.append(
                await page.evaluate(
                    "['body', '.lead', 'a[href]', '.drawing text', 'thead th'].map((one) => {"
                    " const s = getComputedStyle(document.querySelector(one));"
                    " return one.includes('text') ? s.fill : s.color; })"
                    ".concat(getComputedStyle(document.body).backgroundColor)"
                )
            )
            await page.open("about:blank")
        return colours

    light, dark = in_browser(chromium, work)
    assert light[-1] != dark[-1]
    for *inks, paper in (light, dark):
        for ink in inks:
            assert _contrast(ink, paper) >= 4.5, (ink, paper)


def test_everything_on_the_page_can_be_read(chromium: str, report: Path) -> None:
    """Zeros and the edges of fields too, with all folds open, at 1280, 820 and 390 px, in light and dark."""

    async def work(page: Page) -> dict[str, dict[str, Any]]:
        await page.open(report.as_uri())
        await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        return await faults(page)

    assert in_browser(chromium, work) == {}


def _contrast(first: str, second: str) -> float:
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

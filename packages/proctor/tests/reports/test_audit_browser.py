"""The browser of an audit's report: texts stay texts, limits are said, filters, address and keyboard do as they
should."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PIL import Image

from proctor.audits import AuditReport, CorrelationSettings, MetricScores, Rating, RatingsTable
from proctor.core import Item, Judgement, Reference
from proctor.core.formats import FreeTextFormat
from proctor.reports import AuditSource, Question, ReportSummary, asked, write_audit_report
from proctor.reports import Reference as Said
from proctor.reports.content import Limits
from tests.support.audit_page import FEW, embedded, planted_source, read
from tests.support.chromium import Page, open_page
from tests.support.hostile_store import TEXTS
from tests.support.planted_metrics import planted

T = TypeVar("T")


@pytest.fixture(scope="module")
def source() -> AuditSource:
    return planted_source("long", "fair", "flat")


@pytest.fixture(scope="module")
def summary(source: AuditSource, tmp_path_factory: pytest.TempPathFactory) -> ReportSummary:
    return write_audit_report(source, tmp_path_factory.mktemp("audit") / "audit.html")


# -- texts by others


def hostile(tmp_path: Path) -> ReportSummary:
    table, questions, scores = [], {}, {}
    names = list(TEXTS.values())
    for row, text in enumerate(names):
        item = f"{row} {text[:60]}"
        questions[item] = Question(text, (Said(text),), (text[:80],))
        for system in ("plain", names[row - 1][:80]):
            table.append(Rating(item, text, system, text[:40], text[:30], float(row % 3), dataset=names[row % 2][:20]))
            scores[item, system, text[:40]] = float(row)
            table.append(replace(table[-1], dimension="good <b>"))
            scores[item, system, "good <b>"] = float((row * 7) % 5)
    metrics = [MetricScores(text[:60], scores, notes=(text[:200],)) for text in names[:2]]
    found = AuditReport(RatingsTable(tuple(table)), metrics, CorrelationSettings(draws=20))
    made = AuditSource(TEXTS["script"], found, questions, None, TEXTS["svg"])
    return write_audit_report(made, tmp_path / "hostile.html")


def test_hostile_texts_stay_texts(tmp_path: Path, chromium: str) -> None:
    summary = hostile(tmp_path)
    page = read(summary)
    assert [tag for tag, _ in page.elements if tag in {"script", "style", "iframe", "object", "img", "a"}].count(
        "script"
    ) == 2
    assert not any(name.startswith("on") for _, known in page.elements for name in known)
    assert {known.get("href", "#")[:1] for tag, known in page.elements if tag == "a"} == {"#"}  # type: ignore[index]

    async def work(browser: Page) -> list[Any]:
        await browser.open(summary.path.as_uri())
        found = []
        for row in range(len(TEXTS)):
            await browser.evaluate(f"document.querySelectorAll('.list button')[{row}].click()")
            found.append(await browser.evaluate("document.documentElement.dataset.pwned === undefined"))
        inside = "document.querySelectorAll('#browser script, #browser img, #browser svg, #browser a').length"
        return [*found, await browser.evaluate(inside), browser.requests[1:]]

    *safe, inside, requests = in_browser(chromium, work)
    assert safe == [True] * len(TEXTS)
    assert (inside, requests) == (0, [])


def test_limits_are_said(source: AuditSource, tmp_path: Path) -> None:
    limits = Limits(items=20, text=12)
    summary = write_audit_report(source, tmp_path / "short.html", limits)
    assert summary.items == 20
    page = read(summary)
    for line in summary.left_out:
        assert line in page.texts["items"]
    assert summary.left_out[0] == (
        "100 of 120 items are left out of the browser, those with the least disagreement; the numbers above count them."
    )
    assert re.fullmatch(r"\d+ texts shortened to 12 characters \(marked where they stand\)\.", summary.left_out[1])
    assert embedded(summary)["items"][0]["question"][1] > 0
    tiny = write_audit_report(source, tmp_path / "tiny.html", Limits(characters=10))
    assert tiny.items == 0
    assert "120 of 120 items" in tiny.left_out[0]


def test_pictures_where_they_are_at_hand(tmp_path: Path) -> None:
    root = tmp_path / "images"
    root.mkdir()
    Image.new("RGB", (900, 600), "red").save(root / "rash.jpg")
    (root / "broken.jpg").write_bytes(b"no picture")
    table, metrics = planted(5, encounters=4)
    item = table.ratings[0].item
    question = Question("?", images=("rash.jpg", "broken.jpg", "../away.jpg", "gone.jpg"))
    found = AuditReport(table, [metrics["fair"]], FEW)
    summary = write_audit_report(AuditSource("P", found, {item: question}, root), tmp_path / "p.html")
    assert summary.pictures == 1
    assert "3 pictures left out: too large, no JPEG, or not readable." in summary.left_out
    assert "7 questions without a text at hand: the answers stand alone." in summary.left_out
    shown = next(one for one in embedded(summary)["items"] if one["id"] == item)
    assert [len(one) for one in shown["pictures"]] == [2, 1, 1, 1]
    absent = write_audit_report(AuditSource("P", found, {item: question}), tmp_path / "a.html")
    shown = next(one for one in embedded(absent)["items"] if one["id"] == item)
    assert (absent.pictures, shown["pictures"][0]) == (0, ["rash.jpg"])


def test_what_a_judge_said_stands_below_the_ratings(source: AuditSource, tmp_path: Path, chromium: str) -> None:
    one = source.table.ratings[0]
    evidence: Any = [{"reason": "<b>Too short.</b>"}]
    said = Judgement(
        key="k", judge="strict", item_id=one.item, reply={"evidence": evidence}, flags=("prompt-injection",)
    )
    shown = replace(source, judgements={(one.item, one.system): [said]})
    summary = write_audit_report(shown, tmp_path / "said.html")

    async def work(browser: Page) -> list[str]:
        await browser.open(f"{summary.path.as_uri()}#flagged=1")
        texts = "[...document.querySelectorAll('#detail .judgement')].map((one) => one.textContent).join()"
        return [
            str(await browser.evaluate(script)) for script in ("document.querySelector('#count').textContent", texts)
        ]

    count, judgement = in_browser(chromium, work)
    assert count == "1 of 120 items"
    assert judgement == 'Judge rating by strict prompt-injectionevidence: [{"reason": "<b>Too short.</b>"}]'


def test_questions_of_a_benchmark() -> None:
    reference = Reference(answer="Left.", accepted=("To the left.",))
    item = Item(id="q1", group="v1", question="Where?", answer=FreeTextFormat(), reference=reference)
    assert asked([item]) == {"q1": Question("Where?", (Said("Left."), Said("To the left.")))}


# -- the browser


def in_browser(chromium: str, work: Callable[[Page], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_page(chromium) as page:
            found = await work(page)
            assert page.complaints == []
            return found

    return asyncio.run(run())


COUNT = "document.getElementById('count').textContent"
CHOSEN = "document.querySelector('#detail h3').textContent"


def test_the_address_keeps_the_filters(chromium: str, summary: ReportSummary) -> None:
    expected = {
        "": "120 of 120 items",
        "#facet.language=Chinese": "60 of 120 items",
        "#facet.language=English&facet.dataset=one": "30 of 120 items",
        "#dimension=flag": "60 of 120 items",
        "#q=question+two%2F12%2F": "2 of 120 items",
        "#q=usual&system=s2": "120 of 120 items",
        "#metric=flat&gap=above": "0 of 120 items",
        "#system=nobody": "120 of 120 items",
    }

    async def work(page: Page) -> dict[str, str]:
        found = {}
        for address in expected:
            await page.open("about:blank")
            await page.open(summary.path.as_uri() + address)
            found[address] = await page.evaluate(COUNT)
        return found

    assert in_browser(chromium, work) == expected


def test_filters_change_what_disagreement_counts(chromium: str, source: AuditSource, summary: ReportSummary) -> None:
    gaps = {
        key: abs(gap) for key, gap in source.found.discrepancies["fair"].items() if key[2] == "flag" and key[1] == "s3"
    }
    worst = max(gaps, key=lambda key: gaps[key])

    async def work(page: Page) -> list[Any]:
        await page.open(f"{summary.path.as_uri()}#dimension=flag&system=s3&metric=fair")
        heads = "[...document.querySelectorAll('.audited th[scope=col]')].map((one) => one.textContent)"
        beside = "document.querySelector('.list .beside').textContent"
        found = [await page.evaluate(one) for one in (CHOSEN, beside, heads)]
        await page.open("about:blank")
        await page.open(f"{summary.path.as_uri()}#dimension=flag&system=s3&metric=fair&sort=least")
        return [*found, await page.evaluate(beside)]

    chosen, beside, heads, least = in_browser(chromium, work)
    assert round(gaps[chosen, "s3", "flag"], 4) == round(gaps[worst], 4)
    assert beside.startswith(f"disagreement {gaps[worst]:.2f} · ")
    assert heads == ["Dimension", "the raters", "fair"]
    assert least.startswith("disagreement 0.00 · ")


def test_choosing_by_hand_and_by_keyboard(chromium: str, summary: ReportSummary) -> None:
    async def work(page: Page) -> list[Any]:
        await page.open(summary.path.as_uri())
        await page.evaluate("document.querySelector('.list button').focus()")
        for _ in range(2):
            await page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowDown", code="ArrowDown")
        focused = "[...document.querySelectorAll('.list button')].indexOf(document.activeElement)"
        found = [await page.evaluate(focused)]
        await page.evaluate("document.activeElement.click()")
        found += [await page.evaluate(CHOSEN), await page.evaluate("decodeURIComponent(location.hash)")]
        await page.evaluate(
            "(() => { const s = document.getElementById('f-facet.language'); s.value = 'Chinese'; s.dispatchEvent(new "
            "Event('change', {bubbles: true})); })()"
        )
        found.append(await page.evaluate("decodeURIComponent(location.hash)"))
        await page.evaluate(
            "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Clear filters').click()"
        )
        found.append(await page.evaluate(COUNT))
        return found

    file_location, chosen, address, filtered, cleared = in_browser(chromium, work)
    assert file_location == 2
    assert chosen == embedded(summary)["items"][2]["id"]
    assert address == f"#item={chosen}"
    assert filtered.startswith("#facet.language=Chinese&item=")
    assert filtered.endswith("/zh")
    assert cleared == "120 of 120 items"


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(chromium: str, summary: ReportSummary, width: int) -> None:
    async def work(page: Page) -> list[Any]:
        await page.resize(width, 900)
        await page.open(summary.path.as_uri())
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        colours = []
        for scheme in ("light", "dark"):
            await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            colours.append(await page.evaluate("getComputedStyle(document.querySelector('.audited .card h5')).color"))
        return [wide, *colours, page.requests[1:]]

    wide, light, dark, requests = in_browser(chromium, work)
    assert wide <= 0
    assert light != dark
    assert requests == []

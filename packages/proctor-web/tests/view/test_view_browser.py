"""A view in a real browser: with the keyboard alone, at three widths, light and dark, live, with hostile texts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import JsonValue

from proctor.core import ACCURACY, Answer, Benchmark, Frame, Item, Metric, Reference, Score, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.judges import UNRESOLVED
from proctor.media import ShownRecord
from proctor.runs import SHOWN, Store
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.hostile_store import TEXTS, hostile_store, named
from tests.support.means import missing
from tests.support.player_check import READ_CLOCK, truth_of
from tests.support.repeated_store import repeated_store
from tests.support.report_store import a_store
from tests.support.view_site import served
from tests.support.web_keys import press, until
from tests.support.web_page import faults

PAGES = (
    "/b/toy",
    "/b/toy/answers?result=wrong",
    "/b/toy/answers/q007/guesser/video/0?system=guesser",
    "/b/toy/compare?a=looker%2Fvideo&b=guesser%2Fvideo",
    "/b/toy/items",
    "/b/toy/items/q000",
    "/b/toy/judges",
    "/r/1",
    "/nope",
)
FOLLOWED_S = 2.0


def browse(store: Path, work: Callable[[Page, str], Awaitable[None]], media: Path | None = None) -> None:
    """Does something in a browser that shows a view."""
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")

    async def within(address: str) -> None:
        async with open_page(str(program)) as page:
            await page.resize(1280, 900)
            await work(page, address)

    with served(store, media=media) as address:
        asyncio.run(within(address))


async def at(page: Page) -> str:
    """Where the browser is, without the host."""
    return str(await page.evaluate("location.pathname + location.search"))


def test_every_page_can_be_read_at_each_width(toy: Path) -> None:
    async def work(page: Page, address: str) -> None:
        wrong = {}
        for path in PAGES:
            await page.open(address + path)
            if path == "/b/toy":
                await until(page, "document.querySelector('.chart') !== null")
            if found := await faults(page):
                wrong[path] = found
        assert wrong == {}
        assert [one for one in page.complaints if "404" not in one] == []
        assert {request.split("/")[2] for request in page.requests} == {address.split("/")[2]}, "no foreign address"

    browse(toy, work)


def test_live_and_repeated_answers_can_be_read_at_each_width(tmp_path: Path) -> None:
    """What only shows where a run is asked, and where items were answered several times."""
    said = {f"q{number}": "AAA" if number % 2 else "ABA" for number in range(12)}
    store = repeated_store(tmp_path, said)
    run = store.start_run("again", "newcomer", "video", {})

    async def work(page: Page, address: str) -> None:
        await page.open(address + "/b/again")
        await until(page, "document.querySelector('.flips') !== null")
        with store.owning([run]):
            answers = [Answer(item_id=name, parsed="A", text="A") for name in said]
            for answer in answers:
                store.write(run, [(answer, [Score(item_id=answer.item_id, metric="accuracy", value=1.0)])])
            await until(page, "document.querySelectorAll('#newest tr').length === 8")
            await until(page, "document.querySelector('#runs').innerText.includes('running')")
            assert await faults(page) == {}
            before = page.loads
            await page.evaluate("document.querySelector('#newest a').click()")
            await page.loaded(before)
            assert (await at(page)).startswith("/b/again/answers/q11/newcomer/video/0")
        await page.open(address + "/b/again/answers?differ=result")
        assert await faults(page) == {}
        assert await page.evaluate("document.querySelectorAll('#rows [data-key]').length") == 18
        assert page.complaints == []

    browse(tmp_path / "again.db", work)


def test_the_keyboard_is_enough(toy: Path) -> None:
    async def work(page: Page, address: str) -> None:
        opened = "document.querySelector('#opened').dataset.link"
        await page.open(address + "/b/toy")
        before = page.loads
        await press(page, "g", "a")
        await page.loaded(before)
        assert await at(page) == "/b/toy/answers"
        before = page.loads
        await press(page, "w")
        await page.loaded(before)
        assert await at(page) == "/b/toy/answers?result=wrong"
        first = await page.evaluate(opened)
        await press(page, "j")
        await until(page, f"{opened} !== {first!r}")
        second = await page.evaluate(opened)
        assert await page.evaluate("document.querySelector('#rows [aria-current]').getAttribute('href')") == second
        assert await at(page) == second, "the address is that of what is seen"
        await press(page, "k")
        await until(page, f"{opened} === {first!r}")
        await press(page, "p")
        assert await page.evaluate("document.querySelector('[aria-selected=true]').textContent") == "Prompt"
        await press(page, "p")
        assert await page.evaluate("document.querySelector('[aria-selected=true]').textContent") == "Reply"
        await press(page, "x")
        await until(page, "location.search.includes('beside=')")
        await press(page, "/")
        assert await page.evaluate("document.activeElement.id") == "find"
        await page.call("Input.insertText", text="needle driver")
        before = page.loads
        await press(page, "Enter")
        await page.loaded(before)
        assert "q=needle+driver" in await at(page)
        await press(page, "?")
        assert await page.evaluate("document.querySelector('#keys').open")
        await press(page, "Escape")
        before = page.loads
        await press(page, "g", "c")
        await page.loaded(before)
        for key, cell in (("]", "only-b"), ("]", "both"), ("[", "only-b")):
            before = page.loads
            await press(page, key)
            await page.loaded(before)
            assert f"cell={cell}" in await at(page)
        pair = await page.evaluate("[...document.querySelectorAll('.pair select')].map((one) => one.value)")
        before = page.loads
        await press(page, "x")
        await page.loaded(before)
        assert (
            await page.evaluate("[...document.querySelectorAll('.pair select')].map((one) => one.value)") == pair[::-1]
        )
        before = page.loads
        await press(page, "j", "Enter")
        await page.loaded(before)
        assert (await at(page)).startswith("/b/toy/answers/q")

    browse(toy, work)


def test_conditions_are_hidden_and_shown_by_their_numbers(toy: Path) -> None:
    async def work(page: Page, address: str) -> None:
        lanes = "[...document.querySelectorAll('.chart .lane .of bdi')].filter((one) => one.checkVisibility()).map((one) => one.textContent)"
        await page.open(address + "/b/toy")
        await until(page, "document.querySelector('.chart') !== null")
        assert {"video", "text-only", "black", "shuffled"} <= {*await page.evaluate(lanes)}
        await press(page, "2")
        assert "text-only" not in await page.evaluate(lanes)
        await press(page, "2")
        assert "text-only" in await page.evaluate(lanes)

    browse(toy, work)


def test_a_run_is_seen_within_two_seconds(tmp_path: Path) -> None:
    """From the write to the screen, each time."""
    store = a_store(tmp_path)
    run = store.start_run("toy", "newcomer", "video", {})

    async def work(page: Page, address: str) -> None:
        await page.open(address + "/b/toy")
        shown = "[...document.querySelectorAll('#runs tr')].find((one) => one.textContent.includes('newcomer'))?.innerText || ''"
        took = []
        with store.owning([run]):
            for number in range(4):
                answer = Answer(item_id=f"q{number:03d}", text="Answer: A", parsed="A")
                began = time.monotonic()
                store.write(run, [(answer, [Score(item_id=answer.item_id, metric="accuracy", value=1.0)])])
                await until(page, f"({shown}).includes('{number + 1} / 48')")
                took.append(time.monotonic() - began)
            await until(page, f"({shown}).includes('running')")
            assert "1 run running" in await page.text()
        await until(page, f"({shown}).includes('stopped')")
        assert sorted(took)[1] < FOLLOWED_S, took  # half of them: the machine has other work as well

    browse(tmp_path / "toy.db", work)


def test_new_answers_never_move_what_is_read(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    run = store.start_run("toy", "aaa", "black", {})  # it sorts before all others

    async def work(page: Page, address: str) -> None:
        await page.open(address + "/b/toy/answers")
        rows = "[...document.querySelectorAll('#rows [data-key]')].map((one) => one.dataset.key)"
        before = await page.evaluate(rows)
        store.write(run, [(Answer(item_id="q000", text="Answer: A", parsed="A"), [])])
        await until(page, "document.querySelector('#live').textContent.includes('1 new')")
        assert await page.evaluate(rows) == before
        loads = page.loads
        await page.evaluate("document.querySelector('#new').click()")
        await page.loaded(loads)
        assert "aaa" in await page.text()

    browse(tmp_path / "toy.db", work)


def test_a_clip_is_played_by_the_keys_of_the_player(tmp_path: Path) -> None:
    """The picture is the one whose time is in its pixels; `e` goes to the frames that the model got; `g` leaves."""
    video = ClockVideo(times_ms=range(0, 5000, 100), rate=10, keyint=10)
    truth = truth_of(write_clock_video(tmp_path / "a.mp4", video), range(50))
    item = Item(
        id="clip/<b>",
        group="g",
        question="Is it so?",
        answer=BinaryFormat(),
        media=(VideoClip(source="a.mp4", start=1.0, end=4.0),),
        reference=Reference(answer=True),
    )
    store = Store(tmp_path / "clips.db")
    store.add_benchmark(Benchmark("clips", "Clips", (item,), (ACCURACY,), "accuracy"))
    shown: list[JsonValue] = [ShownRecord.of([Frame(b"1", 1.5, "A"), Frame(b"2", 2.7, "B")]).model_dump(mode="json")]
    answer = Answer(item_id=item.id, text="yes", parsed=True, extra={SHOWN: shown})
    run = store.start_run("clips", "m", "video", {})
    store.write(run, [(answer, [Score(item_id=item.id, metric="accuracy", value=1.0)])])

    async def work(page: Page, address: str) -> None:
        clock = "document.querySelector('[data-part=clock]').textContent"
        await page.open(address + "/b/clips/answers")
        before = page.loads
        await page.evaluate(
            "[...document.querySelectorAll('a')].find((one) => one.textContent === 'Play the clip').click()"
        )
        await page.loaded(before)
        assert await at(page) == "/b/clips/clip/clip%2F%3Cb%3E/m/video/0"
        await until(page, f"{clock} === '00:00:01.000' && document.querySelector('[data-player]').ariaBusy === 'false'")
        assert await faults(page) == {}
        for key, moment in ((".", "01.100"), ("e", "01.500"), ("e", "02.700"), ("e", "01.500"), (",", "01.400")):
            await press(page, key)
            await until(page, f"{clock} === '00:00:{moment}'")
        await until(page, "document.querySelector('[data-player]').dataset.exact === 'true'")
        await page.evaluate(READ_CLOCK)
        image = "document.querySelector('[data-part=stage] img')"
        seen = await page.evaluate(f"readClock({image}, {image}.naturalWidth, {image}.naturalHeight, 0)")
        assert seen == truth.numbers[14], "the picture at 1.4 s"
        await press(page, "m", "w", "r")
        assert await page.evaluate("document.querySelector('[data-as-shown]')") is None
        assert (await at(page)).startswith("/b/clips/clip/")
        await until(page, "document.querySelector('[data-player]').dataset.video === 'ready'")
        await press(page, " ")
        await until(page, f"{clock} > '00:00:02.000'")
        await press(page, " ")
        before = page.loads
        await press(page, "g", "a")
        await page.loaded(before)
        assert (await at(page)).startswith("/b/clips/answers")
        assert [one for one in page.complaints if "404" not in one] == []
        assert {request.split("/")[2] for request in page.requests} == {address.split("/")[2]}

    browse(tmp_path / "clips.db", work, media=tmp_path)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    hostile_store(folder).close()
    return folder / "hostile.db"


async def harmless(page: Page, address: str) -> None:
    """Nothing of what was shown so far ran, loads, or leads elsewhere."""
    assert await page.evaluate("document.documentElement.dataset.pwned") is None
    counted = (
        "document.querySelectorAll('main script, main style, main iframe, main [onload], main img[onerror]').length"
    )
    assert await page.evaluate(counted) == 0
    assert await page.evaluate(
        "[...document.querySelectorAll('a[href]')].every((one) => ['http:', 'about:'].includes(one.protocol))"
    )
    hosts = {request.split("/")[2] for request in page.requests if request.startswith("http")}
    assert hosts == {address.split("/")[2]}


def test_hostile_texts_stay_text_where_answers_come_in_and_judges_agree(tmp_path: Path) -> None:
    """The newest answers, the judges' matrix and causes, repetitions, and the names of two runs compared."""
    store = hostile_store(tmp_path)
    names = [item.id for item in store.items("hostile")]
    bold = TEXTS["script"]
    store.declare_metrics("hostile", [Metric("helpful", bold, formats=("choice",)), UNRESOLVED])
    for text in (TEXTS["svg"], TEXTS["link"]):
        for run in store.runs("hostile")[:6]:
            given = [Score(item_id=name, metric="helpful", scorer=named(text), value=1.0) for name in names[:4]]
            label = TEXTS["image"]
            given.append(Score(item_id=names[5], metric="unresolved", scorer=named(text), value=1.0, label=label))
            store.add_scores(run, given)
    again = store.start_run("hostile", TEXTS["image"] + "again", "video", {"repeats": 2})
    for repetition in (0, 1):
        rows = [
            Answer(item_id=name, repetition=repetition, text=text, parsed="AB"[repetition])
            for name, text in zip(names, TEXTS.values(), strict=True)
        ]
        scores = [
            Score(item_id=name, repetition=repetition, metric="accuracy", value=1.0 - repetition) for name in names
        ]
        store.write(again, [(row, [score]) for row, score in zip(rows, scores, strict=True)])
    live = store.start_run("hostile", TEXTS["script"] + "live", "video", {})

    async def work(page: Page, address: str) -> None:
        await page.open(address + "/b/hostile")
        await until(page, "document.querySelector('.flips') !== null")
        with store.owning([live]):
            for name, text in zip(names[:8], TEXTS.values(), strict=False):
                store.write(live, [(Answer(item_id=name, text=text, parsed=text[:90]), [])])
            await until(page, "document.querySelectorAll('#newest tr').length === 8")
        await harmless(page, address)
        assert "</script><script>" in await page.text()
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        for path in ("", "/judges", "/compare"):
            await page.open(f"{address}/b/hostile{path}")
            for width in (1280, 390):
                await page.resize(width, 900)
                assert await page.evaluate(wide) <= 0, (path, width)
        await page.open(address + "/b/hostile/judges")
        await until(page, "document.querySelectorAll('.matrix').length === 3")
        await harmless(page, address)
        assert TEXTS["image"] in await page.text()
        names_of = "[...document.querySelectorAll('.pair select')[0].options].map((one) => one.value)"
        await page.open(address + "/b/hostile/compare")
        first, last = (await page.evaluate(names_of))[:2]
        for a, b in ((first, last), (last, first)):
            await page.open(f"{address}/b/hostile/compare?{urlencode({'a': a, 'b': b, 'cell': 'neither'})}")
            await until(page, "document.querySelector('[data-waits]') === null")
            await harmless(page, address)
        await page.open(address + "/b/hostile/answers?differ=result")
        assert await page.evaluate("document.querySelectorAll('#rows [data-key]').length") == 2 * len(names)
        await harmless(page, address)
        assert [one for one in page.complaints if "404" not in one] == []

    browse(tmp_path / "hostile.db", work)


def test_forty_hostile_answers_execute_nothing(hostile: Path) -> None:
    """Each is opened, on its own page and by the script; nothing of it runs, loads or rearranges."""
    assert len(Store(hostile, create=False).item_numbers("hostile")) == len(TEXTS)

    async def work(page: Page, address: str) -> None:
        await page.open(address + "/b/hostile/answers")
        seen: set[Any] = set()
        for number in range(40):
            link = await page.evaluate("document.querySelector('#opened').dataset.link")
            seen.add(link)
            await harmless(page, address)
            if number % 8 == 7:
                for tab in (2, 3, 4):
                    await page.evaluate(f"document.querySelector('[role=tablist] :nth-child({tab})').click()")
                    await harmless(page, address)
            await press(page, "j")
            await until(page, f"document.querySelector('#opened').dataset.link !== {link!r}")
        assert len(seen) == 40
        for path in ("/b/hostile", "/b/hostile/items", "/b/hostile/compare", "/b/hostile/answers?q=%3Cscript%3E"):
            await page.open(address + path)
            await harmless(page, address)
        assert [one for one in page.complaints if "404" not in one] == []

    browse(hostile, work)


def test_pages_read_without_a_script(toy: Path) -> None:
    async def work(page: Page, address: str) -> None:
        await page.call("Emulation.setScriptExecutionDisabled", value=True)
        await page.open(address + "/b/toy/answers/q007/guesser/video/0")
        text = await page.call("DOM.getDocument", depth=-1)
        assert "All systems" in str(text)
        assert "the-judge" in str(text), "every tab is there, one below the other"

    browse(toy, work)

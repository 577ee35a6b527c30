"""The player in a real browser: the picture asked for is the picture shown, by the clock in its pixels; keys and
touch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from proctor.core import Region, VideoClip
from proctor.media import MediaLibrary
from proctor_web.video import ItemMedia, ShownItem
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.means import missing
from tests.support.player_check import READ_CLOCK, ClockTruth, play_all, seek_all, truth_of
from tests.support.served_app import serving
from tests.support.web_player import clock_kinds, review_app, write_clock_kinds

PICTURES = 60
_HANGS_S = 60  # a guard, no property of the page
SEEKS = (0, 59, 17, 41, 18)
EDITED = PICTURES - 38
"""The edit list hides as many."""


@dataclass(frozen=True)
class Shown:
    """A server of clock videos, an item for each kind, and what each holds."""

    url: str
    truths: dict[str, ClockTruth]
    media: ItemMedia

    def page(self, kind: str) -> str:
        return f"{self.url}/player/{list(self.truths).index(kind)}"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    root = tmp_path_factory.mktemp("clocks")
    files = write_clock_kinds(root, pictures=PICTURES)
    library = MediaLibrary(root, cache_dir=root / "cache")
    for path in files.values():
        library.playback(path.name)
    kinds = clock_kinds()
    truths = {
        kind: truth_of(path, library.index(path.name).pts.tolist(), kinds[kind][1].rotation)
        for kind, path in files.items()
    }
    items = {k: ShownItem(kind, (VideoClip(source=path.name),)) for k, (kind, path) in enumerate(files.items())}
    source = files["constant rate"].name
    items[100] = ShownItem(
        "part", (VideoClip(source=source, start=0.4, end=1.2, region=Region(x=0.5, y=0, width=0.5, height=1)),)
    )
    items[101] = ShownItem("black", (VideoClip(source=source),), condition="black")
    media = ItemMedia(library)
    with serving(review_app(root, media, items, '<p><input id="note"></p>')) as url:
        yield Shown(url, truths, media)


@pytest.fixture(scope="module")
def chromium() -> str:
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
    return str(program)


def in_browser(chromium: str, work: Callable[[Page], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_page(chromium) as page, asyncio.timeout(_HANGS_S):
            await work(page)
            assert page.complaints == []

    asyncio.run(run())


STATE = "(() => { const d = document.querySelector('[data-player]').dataset; return [d.pts, d.exact]; })()"


async def settled(page: Page, pts: int) -> None:
    """Waits until this picture's own JPEG is shown."""
    await until(page, f"String({STATE}) === '{pts},true'")


async def until(page: Page, condition: str) -> None:
    """Waits for a condition, looked at with each picture of the screen."""
    await page.evaluate(
        f"new Promise((done) => {{ const look = () => {condition} ? done() : requestAnimationFrame(look); look(); }})"
    )


async def read(page: Page, name: str) -> Any:
    return await page.evaluate(f"thePlayer().then((player) => player.{name})")


def test_the_picture_asked_for_is_the_picture_shown_in_every_kind_of_video(chromium: str, shown: Shown) -> None:
    async def work(page: Page) -> None:
        for kind, truth in shown.truths.items():
            await page.open(shown.page(kind))
            rows = [row % len(truth.pts) for row in SEEKS]
            sought = await seek_all(page, rows, truth.turn)
            assert [one for one in sought if not one.right(truth)] == [], kind
            assert len(sought) == len(SEEKS)

    assert len(shown.truths) * len(SEEKS) >= 60
    in_browser(chromium, work)


@pytest.mark.parametrize("rate", [0.25, 2])
def test_while_playing_the_page_tells_which_picture_the_browser_shows(chromium: str, shown: Shown, rate: float) -> None:
    async def work(page: Page) -> None:
        for kind in ("variable rate", "59.94 a second", "edit list"):
            truth = shown.truths[kind]
            await page.open(shown.page(kind))
            last = 4 if rate < 1 else len(truth.pts) - 2
            played = await play_all(page, rate, 0, last, truth.turn)
            assert played, kind
            assert [one for one in played if not one.right(truth)] == [], kind
            await settled(page, truth.pts[last])  # it ends on the last picture of the window, exactly

    in_browser(chromium, work)


def test_every_key(chromium: str, shown: Shown) -> None:
    async def work(page: Page) -> None:
        pts = shown.truths["constant rate"].pts
        await page.open(shown.page("constant rate"))
        await page.evaluate(READ_CLOCK)
        await read(page, "ready")
        await settled(page, pts[0])
        for keys, row in (
            ("ArrowRight", 1), (".", 2), ("ArrowLeft", 1), (",", 0), (",", 0), ("Shift+ArrowRight", 25),
            ("Shift+ArrowRight", 50), ("Shift+ArrowLeft", 25), ("End", 59), ("Home", 0), ("e", 12), ("e", 50),
            ("e", 12), ("i", 12), ("Shift+ArrowRight", 37), ("o", 37), ("Home", 12), ("End", 37),
        ):  # fmt: skip
            await page.press(keys)
            await settled(page, pts[row])
        assert await read(page, "loop") == [12, 37]
        assert await read(page, "looping") is True
        await page.press("u", "End")
        await settled(page, pts[59])
        assert await page.evaluate("document.querySelector('output').textContent") == "00:00:02.360"
        assert await page.evaluate("document.querySelector('output').dataset.pts") == str(pts[59])
        await page.press("-", "-")
        assert await read(page, "rate") == 0.25
        await page.press("Home", " ")
        assert await read(page, "moving") == 1
        await page.press("k")
        assert await read(page, "moving") == 0
        await page.press("l", "l")
        assert await read(page, "rate") == 2
        await page.press("End", "j")
        assert await read(page, "rate") == -1
        assert await read(page, "moving") == 2
        await page.press("k")
        assert await read(page, "moving") == 0

    in_browser(chromium, work)


def test_backwards_it_goes_picture_by_picture_to_the_start_of_the_window(chromium: str, shown: Shown) -> None:
    async def work(page: Page) -> None:
        pts = shown.truths["variable rate"].pts
        await page.open(shown.page("variable rate"))
        await page.evaluate(READ_CLOCK)
        await page.evaluate(
            "thePlayer().then(async (p) => { await p.show(9); window.seen = [];"
            "p.root.addEventListener('frame', ({ detail }) => { const i = p.image;"
            "window.seen.push([detail.frame, readClock(i, i.naturalWidth, i.naturalHeight, 0)]); }); })"
        )
        await page.press("j")
        await settled(page, pts[0])
        seen = await page.evaluate("window.seen")
        assert all(row == clock for row, clock in seen)
        assert [row for row, _ in seen] == sorted((row for row, _ in seen), reverse=True)

    in_browser(chromium, work)


def test_until_the_video_is_made_its_pictures_are_shown_one_by_one(
    chromium: str, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown.media, "video", lambda _clip: None)

    async def work(page: Page) -> None:
        pts = shown.truths["B-frames"].pts
        await page.open(shown.page("B-frames"))
        await settled(page, pts[0])
        await page.evaluate(
            "import('/static/player.js').then(async ({ playerOf }) => {"
            "window.one = await playerOf(document.querySelector('[data-player]')); await one.show(50);"
            "window.moved = []; one.root.addEventListener('frame', ({ detail }) => moved.push(detail.exact)); })"
        )
        await page.press("l")
        await settled(page, pts[59])
        assert await page.evaluate("one.ready") is False
        assert await page.evaluate("moved.length > 1 && moved.every(Boolean)")

    in_browser(chromium, work)


def test_what_the_model_saw_is_one_key_away(chromium: str, shown: Shown) -> None:
    async def work(page: Page) -> None:
        await page.open(f"{shown.url}/player/101")
        await page.evaluate(READ_CLOCK)
        await read(page, "ready")
        clock = (
            "thePlayer().then((p) => { const i = p.image; return readClock(i, i.naturalWidth, i.naturalHeight, 0); })"
        )
        await settled(page, 0)
        await page.press(".")
        await settled(page, 640)
        assert await page.evaluate(clock) == 1
        await page.evaluate("thePlayer().then((p) => p.swap())")
        assert await page.evaluate(clock) == -1  # black: no clock to be seen
        assert await page.evaluate("document.querySelector('[data-player]').hasAttribute('data-as-shown')")
        await page.evaluate("thePlayer().then((p) => p.swap())")
        assert await page.evaluate(clock) == 1

    in_browser(chromium, work)


def test_a_region_is_cut_out_of_the_playing_video_as_of_its_pictures(chromium: str, shown: Shown) -> None:
    async def work(page: Page) -> None:
        await page.open(f"{shown.url}/player/100")
        await page.evaluate(READ_CLOCK)
        assert await read(page, "clip") == [10, 29]
        box = "(n) => { const { x, width } = document.querySelector(n).getBoundingClientRect(); return [x, width]; }"
        stage, video = await page.evaluate(f"['.stage', 'video'].map({box})")
        assert video[1] == pytest.approx(2 * stage[1], rel=0.01)
        assert video[0] == pytest.approx(stage[0] - stage[1], rel=0.01)
        sizes = await page.evaluate("thePlayer().then((p) => [p.image.naturalWidth, p.image.naturalHeight])")
        assert sizes == [96, 96]

    in_browser(chromium, work)


def test_typing_into_a_field_does_not_move_the_video(chromium: str, shown: Shown) -> None:
    async def work(page: Page) -> None:
        pts = shown.truths["constant rate"].pts
        await page.open(shown.page("constant rate"))
        await settled(page, pts[0])
        await page.evaluate("document.querySelector('#note').focus()")
        await page.press(*"kill.")
        assert await page.evaluate("document.querySelector('#note').value") == "kill."
        assert await page.evaluate(STATE) == [str(pts[0]), "true"]

    in_browser(chromium, work)


def test_on_a_phone_it_fits_and_its_buttons_do_what_the_keys_do(chromium: str, shown: Shown) -> None:
    async def work(page: Page) -> None:
        pts = shown.truths["constant rate"].pts
        await page.resize(390, 800)
        await page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        await page.open(shown.page("constant rate"))
        await settled(page, pts[0])
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        for name, row in (("next", 1), ("next", 2), ("back", 1)):
            at = await page.evaluate(
                f"(() => {{ const b = document.querySelector('[data-do={name}]').getBoundingClientRect();"
                "return [b.x + b.width / 2, b.y + b.height / 2, b.width, b.height]; })()"
            )
            assert min(at[2:]) >= 44
            for kind, points in (("touchStart", [{"x": at[0], "y": at[1]}]), ("touchEnd", [])):
                await page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
            await settled(page, pts[row])
        slide = "const r = document.querySelector('[type=range]'); r.value = 44; r.dispatchEvent(new Event('input'))"
        await page.evaluate(f"(() => {{ {slide} }})()")
        await settled(page, pts[44])

    in_browser(chromium, work)


def test_a_dropped_connection_is_told_and_the_picture_comes_when_it_is_back(chromium: str, shown: Shown) -> None:
    async def work(page: Page) -> None:
        pts = shown.truths["constant rate"].pts
        await page.open(shown.page("constant rate"))
        await page.evaluate(READ_CLOCK)
        await settled(page, pts[0])
        offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await page.call("Network.emulateNetworkConditions", offline=True, **offline)
        await page.press("End")
        status = "document.querySelector('[data-part=status]').textContent"
        await until(page, f"{status}.startsWith('No connection')")
        assert await page.evaluate(STATE) == [str(pts[0]), "true"]  # what is told is what is seen
        await page.call("Network.emulateNetworkConditions", offline=False, **offline)
        await settled(page, pts[59])
        assert await page.evaluate(status) == ""
        page.complaints.clear()  # the browser's own line about the dropped connection

    in_browser(chromium, work)

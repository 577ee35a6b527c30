"""The report of fifty systems: its items come in packed blocks and are the same as plain ones, small, and every name can be
read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference, Score, Status, generator
from proctor.core.formats import ChoiceFormat
from proctor.reports import ReportSummary, write_report
from proctor.results import Options
from proctor.runs import Store
from tests.report_pages.test_report_browser import in_browser
from tests.support.browser_items import blocks_of, data_of
from tests.support.chromium import Page

SYSTEMS, ITEMS = 50, 80


def a_wide_store(folder: Path) -> Store:
    """Every third run is incomplete; names are as long as those of models are."""
    items = [
        Item(
            id=f"q{number:03d}",
            group=f"v{number % 16:02d}",
            question=f"Which instrument is seen in step {number}?",
            answer=ChoiceFormat(),
            options=("grasper", "scissors", "needle driver", "clip applier"),
            reference=Reference(answer="ABCD"[number % 4]),
            tags={"phase": ("approach", "repair")[number % 2], "length": ("0-5 s", "5-10 s", "10-20 s")[number % 3]},
        )
        for number in range(ITEMS)
    ]
    store = Store(folder / "wide.db")
    store.add_benchmark(Benchmark("wide", "Wide", tuple(items), (ACCURACY,), "accuracy", facets=("phase", "length")))
    for number in range(SYSTEMS):
        run = store.start_run("wide", f"model-{number:02d}-of-a-longer-name", "video", {})
        lots, given = generator(0, run.system).random(ITEMS), list[tuple[Answer, list[Score]]]()
        for row, item in enumerate(items):
            if number % 3 == 0 and row == number:
                given.append((Answer(item_id=item.id, status=Status.FAILED, reason="connection reset"), []))
                continue
            right = bool(lots[row] < 0.3 + 0.013 * number)
            letter = "ABCD"[(row + (not right)) % 4]
            answer = Answer(item_id=item.id, text=f"It is {letter}, since step {row} shows it.", parsed=letter)
            given.append((answer, [Score(item_id=item.id, metric="accuracy", value=float(right))]))
        store.write(run, given)
    return store


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return a_wide_store(tmp_path_factory.mktemp("wide"))


def written(store: Store, out: Path) -> ReportSummary:
    return write_report(store, "wide", out, options=Options(draws=200))


@pytest.fixture(scope="module")
def whole(wide: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(wide, tmp_path_factory.mktemp("whole") / "report.html").path


@pytest.fixture(scope="module")
def packed(wide: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("proctor.reports.packing.PLAIN", 100_000)
        return written(wide, tmp_path_factory.mktemp("packed") / "report.html").path


def test_the_blocks_together_are_the_whole(whole: Path, packed: Path) -> None:
    plain, opened = (one.read_text(encoding="utf-8") for one in (whole, packed))
    assert blocks_of(plain) == []
    assert len(blocks_of(opened)) > 3
    assert data_of(plain) == data_of(opened)
    assert [item["id"] for item in data_of(opened)["items"]] == [f"q{number:03d}" for number in range(ITEMS)]


def test_ten_thousand_items_of_24_systems_fit_into_60_mb(packed: Path) -> None:
    """The bytes of an answer with what belongs to it, times the answers, leave room for the page around them."""
    text = packed.read_text(encoding="utf-8")
    each = sum(map(len, blocks_of(text))) / (ITEMS * SYSTEMS)
    assert each < 60  # about 40 are usual
    assert 10_000 * 24 * each < 45e6
    assert 1_000 * 10 * each < 1.5e6


FOUND = """new Promise((done) => {
  const look = () => {
    const count = document.getElementById("count");
    if (!count) { setTimeout(look, 10); return; }
    done([count.textContent, document.getElementById("detail").textContent,
      [...document.querySelectorAll(".list .beside")].map((one) => one.textContent).join("; "), location.hash]);
  };
  look();
})"""
ADDRESSES = {
    "": "80 of 80 items",
    "#item=q077": "80 of 80 items",
    "#q=step+71": "1 of 80 items",
    "#facet.phase=repair&facet.length=0-5+s": "13 of 80 items",
    "#status=failed": "17 of 80 items",
    "#system=model-49-of-a-longer-name&outcome=wrong": "",
    "#sort=failed&item=q070": "80 of 80 items",
    "#disagree=1": "",
}


def test_filters_and_addresses_find_the_same_in_blocks(chromium: str, whole: Path, packed: Path) -> None:
    async def work(page: Page) -> list[list[Any]]:
        found = []
        for address in ADDRESSES:
            for report in (whole, packed):
                await page.open("about:blank")
                await page.open(report.as_uri() + address)
                found.append(await page.evaluate(FOUND))
        return found

    found = in_browser(chromium, work)
    assert found[::2] == found[1::2]
    for (address, expected), (count, *_) in zip(ADDRESSES.items(), found[::2], strict=True):
        assert expected in count, address
    assert found[2][1].startswith("q077")


NAMES = """[...document.querySelectorAll("svg.drawing")].filter((one) => one.checkVisibility()).map((drawing) =>
  [...drawing.querySelectorAll("text")].filter((one) => /^model-/.test(one.textContent)).map((one) => {
    const box = one.getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom];
  }))"""


@pytest.mark.parametrize("width", [1280, 390])
def test_fifty_names_stand_apart_in_every_drawing(chromium: str, whole: Path, width: int) -> None:
    async def work(page: Page) -> tuple[int, list[list[list[float]]]]:
        await page.resize(width, 800)
        await page.open(whole.as_uri())
        await page.evaluate("document.querySelectorAll('details.fold').forEach((one) => { one.open = true; })")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return await page.evaluate(wide), await page.evaluate(NAMES)

    sideways, drawings = in_browser(chromium, work)
    assert sideways == 0
    assert sum(len(boxes) >= SYSTEMS for boxes in drawings) >= 4
    for boxes in drawings:
        assert all(bottom - top >= 7 for _, top, _, bottom in boxes)
        for row, one in enumerate(boxes):
            for other in boxes[row + 1 :]:
                apart = one[2] <= other[0] + 1 or other[2] <= one[0] + 1 or one[3] <= other[1] + 3
                assert apart or other[3] <= one[1] + 3, (one, other)


@pytest.mark.parametrize("third", [False, True])
def test_a_leader_is_held_against_ranked_systems_alone(tmp_path: Path, third: bool) -> None:
    """Of 16 groups one each: what half lacks can change its rank, so nothing is said of the leader against it."""
    store = Store(tmp_path / "runs.db")
    items = [
        Item(
            id=f"q{number}",
            group=f"v{number}",
            question="Which?",
            answer=ChoiceFormat(),
            options=("grasper", "scissors"),
            reference=Reference(answer="A"),
        )
        for number in range(16)
    ]
    store.add_benchmark(Benchmark("wide", "Wide", tuple(items), (ACCURACY,), "accuracy"))
    for system, right, failed in (("all", 16, 0), ("half", 4, 12), *([("none", 0, 0)] if third else [])):
        run = store.start_run("wide", system, "video", {})
        for row, item in enumerate(items):
            if row >= 16 - failed:
                store.write(run, [(Answer(item_id=item.id, status=Status.FAILED, reason="connection reset"), [])])
                continue
            score = Score(item_id=item.id, metric="accuracy", value=float(row < right))
            store.write(run, [(Answer(item_id=item.id, parsed="A" if row < right else "B"), [score])])
    said = written(store, tmp_path / "report.html").story.answers[0].answer
    if third:
        assert "It is significantly better than every other ranked system; over none +100.0 pts" in said
        assert said.endswith("; 1 system can't be ranked.")
    else:
        assert said.endswith("No other system has a rank to compare it with (see the leaderboard).")

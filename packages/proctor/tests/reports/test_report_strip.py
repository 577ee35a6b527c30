"""An instance of key frames in the report: given, true and predicted order as film strips, the rationale beside."""

from __future__ import annotations

import asyncio
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Picture

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference
from proctor.core.formats import OrderingFormat
from proctor.metrics import code_scorers
from proctor.metrics.ordering import NEIGHBOURS, RUN_METRICS
from proctor.reports import write_report
from proctor.runs import Store
from tests.support.chromium import open_page

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
LABELS = ("A", "B", "C", "D")


def pictures(item: Item) -> list[tuple[str, bytes]]:
    shown = []
    for row, label in enumerate(LABELS):
        buffer = BytesIO()
        Picture.new("RGB", (32, 18), (60 * row, 40, 90)).save(buffer, "JPEG")
        shown.append((label, buffer.getvalue()))
    return shown


@pytest.fixture(scope="module")
def strip_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strip")
    item = Item(
        id="i1",
        group="v1",
        question="In which order were they taken?",
        answer=OrderingFormat(labels=LABELS),
        reference=Reference(answer=["D", "B", "A", "C"], rationale="The scene is checked first."),
        tags={NEIGHBOURS: 3},
    )
    loaded = Benchmark("frames", "Frames", (item,), (ACCURACY, *RUN_METRICS), "accuracy")
    store = Store(str(folder / "runs.db"))
    store.add_benchmark(loaded)
    answers = {
        "good": Answer(item_id="i1", text="D > B > A > C", parsed=["D", "B", "A", "C"]),
        "swapped": Answer(
            item_id="i1", text="...", parsed=["B", "D", "A", "C"], extra={"rationale": f"Hands {HOSTILE}"}
        ),
        "hostile": Answer(item_id="i1", text="...", parsed=[HOSTILE, *["A"] * 200]),
        "silent": Answer(item_id="i1", text="", problem="expected an order"),
        "endless": Answer(item_id="i1", text="D first,", problem="expected an order", extra={"cut_off": True}),
    }
    for system, answer in answers.items():
        run = store.start_run("frames", system, "video", {})
        scores = [one for scorer in code_scorers() for one in asyncio.run(scorer.score(item, answer))]
        store.write(run, [(answer, scores)])
    out = folder / "report.html"
    write_report(store, "frames", out, thumbnails=pictures)
    return out


@pytest.mark.parametrize("width", [1280, 390])
def test_strips_show_the_orders_and_what_stands_in_place(chromium: str, strip_report: Path, width: int) -> None:
    script = """(() => {
      const text = (list) => [...list.querySelectorAll("figcaption")].map((one) => one.textContent);
      const strips = [...document.querySelectorAll(".strip")];
      return {
        strips: strips.map((one) => [one.getAttribute("aria-label"), text(one)]),
        pictures: strips.map((one) => one.querySelectorAll("img").length),
        whys: [...document.querySelectorAll(".why")].map((one) => one.textContent),
        title: document.title,
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      };
    })()"""

    async def work() -> Any:
        async with open_page(chromium, f"--window-size={width},900") as page:
            await page.open(strip_report.as_uri())
            found = await page.evaluate(script)
            assert page.complaints == []
            return found

    found = asyncio.run(work())
    assert found["strips"][:2] == [["As given", [*LABELS]], ["True order", ["D", "B", "A", "C"]]]
    predicted = [captions for name, captions in found["strips"] if name == "Predicted order"]
    assert ["D ✓", "B ✓", "A ✓", "C ✓"] in predicted
    assert ["B ✗", "D ✗", "A ✓", "C ✓"] in predicted
    assert max(map(len, predicted)) == 24
    assert len(predicted) == 3
    assert found["pictures"][:2] == [4, 4]
    assert found["whys"] == [f"Rationale: Hands {HOSTILE}"]
    assert "owned" not in found["title"]
    assert found["wide"] <= 0


def test_a_click_enlarges_a_frame_and_another_gives_it_back(chromium: str, strip_report: Path) -> None:
    """It becomes as wide as all frames of the strip, and stays within the page."""

    async def work() -> list[Any]:
        async with open_page(chromium, "--window-size=1280,900") as page:
            await page.open(strip_report.as_uri())
            first = "document.querySelector('.strip button.frame')"
            found = []
            for step in ("null", f"{first}.click()", f"{first}.click()"):
                await page.evaluate(step)
                found.append(
                    await page.evaluate(
                        f"[{first}.querySelector('img').clientWidth, document.querySelector('.strip').clientWidth,"
                        " document.documentElement.scrollWidth - document.documentElement.clientWidth]"
                    )
                )
            found.append(await page.evaluate(f"{first}.getAttribute('aria-label')"))
            assert page.complaints == []
            return found

    small, large, again, name = asyncio.run(work())
    assert 3 * small[0] < large[0] <= large[1]
    assert again == small
    assert small[2] == large[2] == 0
    assert name == "Enlarge A"


def test_a_reply_that_was_cut_off_is_no_unreadable_one(chromium: str, strip_report: Path) -> None:
    async def work() -> tuple[Any, Any]:
        async with open_page(chromium) as page:
            await page.open(strip_report.as_uri())
            rows = "[...document.querySelectorAll('#items tr')].map((one) => one.innerText.replace(/\\s+/g, ' '))"
            flags = "[...document.querySelectorAll('.flag')].map((one) => one.textContent)"
            return await page.evaluate(rows), await page.evaluate(flags)

    rows, flags = asyncio.run(work())
    assert "silent ✗ unreadable" in rows
    assert "endless ✗ cut off" in rows
    assert flags == ["cut off by the model's token limit"]

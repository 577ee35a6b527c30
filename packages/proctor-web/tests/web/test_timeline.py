"""The bar of marked moments in a real browser: marked, moved from picture to picture by keys and mouse, removed,
sealed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor_web.review import ReviewSite
from tests.support.chromium import Page
from tests.support.web_form import one_item_page, sealed_payload, until
from tests.support.web_page import press

FRAME_S = 0.04


async def marked(page: Page, count: int) -> list[tuple[float, str]]:
    """The marks, once there are so many: a key marks as soon as the player has told where it is."""
    await until(page, f"JSON.parse(document.querySelector('[data-marks]').value || '[]').length === {count}")
    found = json.loads(await page.evaluate("document.querySelector('[data-marks]').value || '[]'"))
    return [(one["time"], one["kind"]) for one in found]


async def shown(page: Page, time: float) -> None:
    """Waits until the picture of this time is there."""
    await until(page, f"document.querySelector('[data-player]').dataset.pts === '{round(time * 16000)}'")
    await until(page, "document.querySelector('[data-player]').dataset.exact === 'true'")


async def location(page: Page, share: float) -> tuple[float, float]:
    left, top, width, height = await page.evaluate(
        "(() => { const b = document.querySelector('.timeline').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
    )
    return left + share * width, top + height / 2


def about(time: float) -> Any:
    return pytest.approx(time, abs=1e-9)


def test_moments_are_marked_moved_and_removed(review: ReviewSite) -> None:
    async def steps(page: Page) -> None:
        await until(page, "document.querySelector('.timeline')")
        await page.press("1", "Shift+ArrowRight")
        await shown(page, 1.0)
        await page.press("2")
        assert await marked(page, 2) == [(0, "insertion"), (about(1.0), "retrieval")]
        await page.evaluate("document.querySelectorAll('.mark')[1].focus()")
        await page.press("ArrowRight", "ArrowRight")
        await shown(page, 1.08)  # the player shows what the mark is moved to
        assert await marked(page, 2) == [(0, "insertion"), (about(1.08), "retrieval")]
        await page.press("Shift+ArrowRight")
        await shown(page, 2.08)
        await page.press("Shift+ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowLeft")  # not before the clip
        await shown(page, 0.0)
        assert await marked(page, 2) == [(0, "insertion"), (0, "retrieval")]
        await page.evaluate("document.querySelectorAll('.mark')[0].focus()")
        await page.press("Delete")
        assert await marked(page, 1) == [(0, "retrieval")]
        await page.drag(await location(page, 0.0), await location(page, 0.25), await location(page, 0.501))
        await shown(page, 1.2)
        assert await marked(page, 1) == [(about(1.2), "retrieval")]
        await page.drag(await location(page, 0.751), await location(page, 0.751))  # a click on the bar leads there
        await shown(page, 1.8)
        assert await marked(page, 1) == [(about(1.2), "retrieval")]
        await page.evaluate("document.activeElement.blur()")
        await press(page, "s", loads=True)

    body = {"kinds": ["insertion", "retrieval"], "tolerance": 1.0}
    one_item_page(review, "moments", body, steps)
    (moment,) = sealed_payload(review)["moments"]
    assert (moment["time"], moment["kind"]) == (about(1.2), "retrieval")

"""The form of choices in a real browser: boxes lie where they were drawn, on the picture of their time."""

from __future__ import annotations

import json
from typing import Any

from proctor_web.review import ReviewSite
from tests.support.chromium import Page
from tests.support.web_form import one_item_page, sealed_payload, until
from tests.support.web_page import press

BODY: dict[str, Any] = {
    "question": "misplaced at 1 s (score 0.90): the clip is seen elsewhere",
    "options": ["accept", "reject"],
    "boxes": [
        {"time": 1.0, "label": "now: clip", "x": 0.1, "y": 0.2, "width": 0.3, "height": 0.4},
        {"time": 1.0, "label": "proposed: clip", "x": 0.5, "y": 0.25, "width": 0.25, "height": 0.5},
        {"time": 2.0, "label": "now: clip", "x": 0.0, "y": 0.0, "width": 1.0, "height": 1.0},
    ],
}
LOCATIONS = """JSON.stringify([...document.querySelectorAll(".marked > div")].map((one) => {
    const picture = one.querySelector("img"), whole = picture.getBoundingClientRect();
    return {loaded: picture.naturalWidth > 0, boxes: [...one.querySelectorAll("rect")].map((rect) => {
        const box = rect.getBoundingClientRect();
        return [(box.x - whole.x) / whole.width, (box.y - whole.y) / whole.height, box.width / whole.width,
            box.height / whole.height].map((value) => Math.round(100 * value) / 100);
    })};
}))"""


def test_boxes_lie_on_the_picture_of_their_time_and_a_key_decides(review: ReviewSite) -> None:
    async def steps(page: Page) -> None:
        await until(page, "[...document.querySelectorAll('.marked img')].every((one) => one.complete)")
        first, second = json.loads(await page.evaluate(LOCATIONS))
        assert (first["loaded"], second["loaded"]) == (True, True)
        assert first["boxes"] == [[0.1, 0.2, 0.3, 0.4], [0.5, 0.25, 0.25, 0.5]]
        assert second["boxes"] == [[0, 0, 1, 1]]
        shown = await page.evaluate("document.querySelector('.marked figcaption').textContent")
        assert " ".join(shown.split()) == "1.00 s now: clip proposed: clip"
        await press(page, "2")
        await press(page, "s", loads=True)

    one_item_page(review, "choice", BODY, steps)
    assert sealed_payload(review) == {"choice": "reject"}

"""Boxes in a real browser: by mouse and by keys alone, on pictures whose hashes they carry; proposals, copies,
sealing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from proctor.core import InputError
from proctor.media import MediaLibrary, Picture
from proctor_web.forms import FORMS
from proctor_web.review import ReviewSite
from tests.support.chromium import Page
from tests.support.web_form import SOURCE, one_item_page, sealed_payload, until
from tests.support.web_page import press

PROPOSALS = [
    {"time": 1.0, "label": "clip", "x": 0.5, "y": 0.5, "width": 0.2, "height": 0.2},
    {"time": 1.0, "label": "stapler", "x": 0.1, "y": 0.1, "width": 0.1, "height": 0.1},
]
BODY: dict[str, Any] = {"classes": ["clip", "stapler"], "times": [0.0, 1.0, 2.0]}


async def drawn(page: Page, count: int) -> list[dict[str, Any]]:
    """The form's boxes, once there are so many and all carry a hash."""
    value = "JSON.parse(document.querySelector('[data-drawn]').value || '[]')"
    await until(page, f"((some) => some.length === {count} && some.every((one) => one.frame_sha256))({value})")
    found = json.loads(await page.evaluate(f"JSON.stringify({value})"))
    assert isinstance(found, list)
    return found


async def point(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where a point of the picture (fractions) is on the screen."""
    box = "document.querySelector('.boxes').getBoundingClientRect()"
    left, top, width, height = await page.evaluate(
        f"(() => {{ document.querySelector('.stage').scrollIntoView(); const b = {box}; return [b.x, b.y, b.width, b.height]; }})()"
    )
    return left + x * width, top + y * height


def extent(box: dict[str, Any]) -> list[float]:
    return [box[name] for name in ("x", "y", "width", "height")]


def near(*values: float) -> Any:
    return pytest.approx(list(values), abs=0.006)


def hash_of(review: ReviewSite, time: float) -> str:
    library = MediaLibrary(review.media).unscaled(painted=False)
    return hashlib.sha256(library.jpegs([Picture(SOURCE, time)])[0]).hexdigest()


def test_by_mouse_a_box_is_drawn_moved_and_resized(review: ReviewSite) -> None:
    async def steps(page: Page) -> None:
        await page.drag(await point(page, 0.1, 0.2), await point(page, 0.2, 0.3), await point(page, 0.4, 0.6))
        (box,) = await drawn(page, 1)
        assert (extent(box), box["label"], box["time"], box["by"]) == (near(0.1, 0.2, 0.3, 0.4), "clip", 0, "hand")
        assert box["frame_sha256"] == hash_of(review, 0.0)
        await page.drag(await point(page, 0.2, 0.4), await point(page, 0.4, 0.5))
        (box,) = await drawn(page, 1)
        assert extent(box) == near(0.3, 0.3, 0.3, 0.4)
        await page.drag(await point(page, 0.6, 0.7), await point(page, 0.5, 0.5))  # its lower right corner
        (box,) = await drawn(page, 1)
        assert extent(box) == near(0.3, 0.3, 0.2, 0.2)
        await page.drag(await point(page, 0.4, 0.4), await point(page, 1.4, 1.4))  # not beyond the picture
        (box,) = await drawn(page, 1)
        assert extent(box) == near(0.8, 0.8, 0.2, 0.2)
        await page.drag(await point(page, 0.1, 0.1), await point(page, 0.1, 0.1))  # a click draws nothing
        await drawn(page, 1)

    one_item_page(review, "boxes", BODY, steps)


def test_by_keys_alone_boxes_are_drawn_copied_interpolated_and_sealed(review: ReviewSite) -> None:
    async def steps(page: Page) -> None:
        await page.press("N", "ArrowRight", "ArrowUp", "Shift+ArrowRight", "Shift+ArrowDown", "2")
        await page.evaluate("document.querySelector('#instance').focus()")
        await page.call("Input.insertText", text="7")
        await page.press("Enter")
        (box,) = await drawn(page, 1)
        assert (extent(box), box["label"], box["instance"]) == (near(0.41, 0.39, 0.21, 0.21), "stapler", "7")
        await until(page, "document.querySelectorAll('[data-instance] canvas').length === 1")
        for time in (1.0, 2.0):
            await page.press("V")
            await until(page, f"document.querySelector('[data-player]').dataset.pts === '{round(time * 16000)}'")
        copies = await drawn(page, 3)
        assert [(one["time"], one["by"]) for one in copies] == [(0, "hand"), (1, "copied"), (2, "copied")]
        assert [one["frame_sha256"] for one in copies] == [hash_of(review, time) for time in (0.0, 1.0, 2.0)]
        await until(page, "document.activeElement.matches('.box.chosen')")
        await page.press(*["ArrowLeft"] * 10)
        await page.press("PageUp")
        await until(page, "document.querySelector('[data-player]').dataset.pts === '16000'")
        await page.evaluate("document.querySelector('.box').focus()")
        await page.press("Delete")
        await drawn(page, 2)
        await page.press("PageUp")
        await until(page, "document.querySelector('[data-player]').dataset.pts === '0'")
        await page.evaluate("document.querySelector('.box').focus()")
        await page.press("L")
        between = next(one for one in await drawn(page, 3) if one["by"] == "interpolated")
        assert (between["time"], extent(between)) == (1, near(0.36, 0.39, 0.21, 0.21))
        assert between["frame_sha256"] == hash_of(review, 1.0)
        await page.press("Escape")
        await press(page, "s", loads=True)

    one_item_page(review, "boxes", BODY, steps)
    said = sealed_payload(review)
    assert [(one["time"], one.get("by", "hand")) for one in said["boxes"]] == [
        (0, "hand"),
        (2, "copied"),
        (1, "interpolated"),
    ]


def test_proposals_are_accepted_or_refused_before_anything_is_sealed(review: ReviewSite) -> None:
    async def steps(page: Page) -> None:
        await page.press("s")
        await until(
            page, "document.querySelector('[data-missing]:not([hidden])')?.textContent.includes('every proposal')"
        )
        await page.press("P")  # leads to the first one
        await until(page, "document.querySelectorAll('.box[data-proposal]').length === 2")
        await page.press("P")
        (box,) = await drawn(page, 1)
        assert (extent(box), box["by"], box["frame_sha256"]) == (
            near(0.5, 0.5, 0.2, 0.2),
            "proposal",
            hash_of(review, 1.0),
        )
        await page.press("R")
        await until(page, "document.querySelectorAll('.box[data-proposal]').length === 0")
        page.complaints.clear()  # the browser's line about the refusal
        await press(page, "s", loads=True)

    one_item_page(review, "boxes", BODY | {"proposals": PROPOSALS}, steps)
    said = sealed_payload(review)
    assert (len(said["boxes"]), said["decided"]) == (1, {"accepted": [0], "refused": [1]})


@pytest.mark.parametrize("decided", [{"accepted": [2]}, {"accepted": [0], "refused": [0]}, {"refused": [1, 1]}])
def test_proposals_that_are_none_and_double_decisions_are_refused(decided: dict[str, Any]) -> None:
    form = FORMS["boxes"]
    body = form.read_body(BODY | {"proposals": PROPOSALS})
    with pytest.raises(InputError, match="reading, proposals"):
        form.read(body, {"decided": decided})


def test_all_proposals_refused_is_a_whole_reading() -> None:
    form = FORMS["boxes"]
    body = form.read_body(BODY | {"proposals": PROPOSALS})
    assert form.missing(body, form.read(body, {"decided": {"refused": [0]}})) == ["boxes.proposals"]
    assert form.missing(body, form.read(body, {"decided": {"refused": [0, 1]}})) == []

"""What ends an item stays in view and says what is still to do; an order is submitted before its sentences are seen."""

from __future__ import annotations

from proctor_web.review import ReviewSite
from tests.support.chromium import Page
from tests.support.web_keys import press, until, write
from tests.support.web_work import log_in, sealed, walk

_IN_VIEW = "(() => { const at = document.querySelector('{}').getBoundingClientRect(); return at.top >= 0 && at.bottom <= innerHeight && at.height > 0; })()"


async def in_view(page: Page, selector: str) -> bool:
    return bool(await page.evaluate(_IN_VIEW.replace("{}", selector)))


def test_a_question_says_what_is_still_to_do_and_leads_to_it(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await page.resize(1280, 600)
        await log_in(page, url)
        todo = "document.querySelector('[data-todo]').textContent"
        assert await page.evaluate(todo) == "Still to do: 4 checks, decision"
        assert await in_view(page, "[data-seal]")
        await press(page, "1", "s")
        await until(page, "!document.querySelector('[data-missing]').hidden")
        assert await page.evaluate(todo) == "Still to do: 3 checks, decision"
        assert await page.evaluate("document.querySelector('[data-missing] li').textContent") == "Not yet complete:"
        assert await in_view(page, "[data-missing]")
        assert await in_view(page, "[data-seal]")
        assert await page.evaluate("document.activeElement.name") == "check-one_right"
        assert await in_view(page, "[name=check-one_right]")
        await press(page, "r")
        assert "the reason" in str(await page.evaluate(todo))
        await write(page, "unclear")
        await press(page, "Escape", "?")
        await until(page, "document.querySelector('dialog[open]')")
        sheet = str(await page.evaluate("document.querySelector('dialog[open]').textContent"))
        assert [word for word in ("Accept", "Reject", "Submit, final", "Later") if word not in sheet] == []
        await press(page, "Escape")
        await until(page, "!document.querySelector('dialog[open]')")
        await press(page, "2", "3", "4")
        assert await page.evaluate(todo) == "Complete. What you submit is final."
        await press(page, "s")
        await until(
            page, "!document.querySelector('[name=decision]:checked') && document.querySelector('[data-ready=yes]')"
        )
        for fingers in (True, False):
            await page.call("Emulation.setTouchEmulationEnabled", enabled=fingers)
            hidden = "matchMedia('(pointer: coarse)').matches === {} && [...document.querySelectorAll('.foot kbd')]"
            wanted = "true" if fingers else "false"
            await until(page, f"{hidden.replace('{}', wanted)}.every((one) => one.checkVisibility() !== {wanted})")

    walk(review, "question", steps)
    ((name, payload),) = sealed(review)
    assert (name, payload["decision"], payload["reason"]) == ("anna", "reject", "unclear")


def test_the_order_is_submitted_by_keys_and_then_each_sentence_is_judged(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        assert "hand is free" not in str(await page.evaluate("document.documentElement.outerHTML"))
        await press(page, "s")
        await until(page, "!document.querySelector('[data-missing]').hidden")
        keys = await page.evaluate("[...document.querySelectorAll('[data-frame]')].map((one) => one.dataset.key)")
        await press(page, keys[1], keys[2])  # B, C: the last frame follows by itself
        await until(page, "document.querySelectorAll('[data-ordered] [data-frame]').length === 3")
        await press(page, "s")
        await until(page, "document.querySelector('[data-level]') && document.querySelector('[data-ready=yes]')")
        assert await page.evaluate("document.querySelector('.bare h2').textContent") == "Recorded order: B → C → A"
        assert await page.evaluate("document.querySelector('[data-todo]').textContent") == "Still to do: 2 sentences"
        await press(page, "k", "e")
        await until(page, "document.activeElement.matches('textarea')")
        await write(page, "C is dark.")
        await press(page, "Escape", "s")
        await until(page, "!document.querySelector('[data-missing]').hidden")
        lacks = "the frames that a corrected sentence cites"
        assert lacks in str(await page.evaluate("document.querySelector('[data-missing]').textContent"))
        await page.evaluate("[...document.querySelectorAll('input[value=C]')].at(-1).click()")
        await press(page, "s")
        await until(page, "document.querySelector('[data-order]') && document.querySelector('[data-ready=yes]')")

    walk(review, "rationale", steps)
    corrected = {"verdict": "correct", "text": "C is dark.", "frames": ["C"]}
    verdicts = {"s1": {"verdict": "keep"}, "s2": corrected}
    assert sealed(review) == [("anna", {"order": ["B", "C", "A"], "ordered": True, "sentences": verdicts})]

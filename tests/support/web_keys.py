"""A served review, and keys pressed in a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from proctor_web.app import create_app
from proctor_web.site import Site
from tests.support.chromium import Page
from tests.support.firefox import FirefoxPage
from tests.support.served_app import serving

_NAMED = {"Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27), "Backspace": ("", 8)}
_ANSWER_S = 5.0
_PATIENCE_S = 60.0  # a guard against a page that hangs


@contextmanager
def served(review: Site) -> Iterator[str]:
    """The review's address while the block lasts."""
    here = replace(review, hosts=("127.0.0.1",))
    with serving(create_app(here)) as address:
        yield address


async def press(page: Page | FirefoxPage, *keys: str, modifiers: int = 0) -> None:
    """Presses and releases keys by name, one after the other; of modifiers Firefox knows Shift (8) alone."""
    if isinstance(page, FirefoxPage):
        await page.press(*keys, shift=modifiers == 8)
        return
    for key in keys:
        text, code = _NAMED.get(key, (key, ord(key.upper()) if len(key) == 1 else 0))
        same = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        await page.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **same)
        await page.call("Input.dispatchKeyEvent", type="keyUp", **same)


async def write(page: Page | FirefoxPage, text: str) -> None:
    """Types a text where the cursor is."""
    if isinstance(page, FirefoxPage):
        await page.press(*text)
        return
    await page.call("Input.insertText", text=text)


async def until(page: Page | FirefoxPage, expression: str) -> None:
    """Waits for a JavaScript expression to be true, through changes of the page."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            try:
                async with asyncio.timeout(_ANSWER_S):
                    if await page.evaluate(f"Boolean({expression})"):
                        return
            except (RuntimeError, TimeoutError):  # the page is changing: some questions are never answered then
                pass
            await asyncio.sleep(0.02)

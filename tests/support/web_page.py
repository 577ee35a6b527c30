"""What can be said of any page of a review in a real browser: contrast, width, names of fields, foreign requests."""

from __future__ import annotations

from typing import Any

from tests.support import web_keys
from tests.support.chromium import Page

_LOOK = """
(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const paper = (one) => {
    for (; one; one = one.parentElement) {
      const found = numbers(getComputedStyle(one).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const ratio = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const ink = (one) => {
    const below = paper(one), said = numbers(getComputedStyle(one).color);
    let veil = 1;
    for (let up = one; up; up = up.parentElement) veil *= Number(getComputedStyle(up).opacity);
    return said.slice(0, 3).map((value, k) => veil * value + (1 - veil) * below[k]);
  };
  const seen = (one) => !one.closest('[aria-hidden=true]') && one.checkVisibility() && one.getBoundingClientRect().left > -99;
  const texts = [...document.querySelectorAll("body *")].filter((one) => seen(one)
    && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  const fields = [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a[href]")].filter(seen);
  return {
    faint: texts.filter((one) => !one.closest(":disabled")).map((one) => [one.tagName,
      one.textContent.trim().slice(0, 40), ratio(ink(one), paper(one))]).filter((one) => one[2] < 4.5),
    edges: fields.filter((one) => ["INPUT", "SELECT", "TEXTAREA"].includes(one.tagName)
      && ratio(numbers(getComputedStyle(one).borderTopColor), paper(one.parentElement)) < 3).length,
    nameless: fields.filter((one) => !(one.labels?.length || one.getAttribute("aria-label")
      || one.getAttribute("aria-labelledby") || one.textContent.trim())).map((one) => one.outerHTML.slice(0, 120)),
    small: fields.filter((one) => one.tagName === "BUTTON" && one.getBoundingClientRect().height < 24).length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    headings: document.querySelectorAll("h1").length,
  };
})()
"""

WIDTHS = (1280, 820, 390)


_GOOD = {"faint": [], "edges": 0, "nameless": [], "small": 0, "wide": 0, "headings": 1}


async def faults(page: Page) -> dict[str, dict[str, Any]]:
    """What is wrong with the open page at each width, in light and dark: texts of too little contrast (`faint`, below
    4.5 to 1), fields whose edge can hardly be seen (`edges`, below 3 to 1), fields without a name, buttons below 24 px,
    how much it is too wide, headings of the first order that are not one."""
    found = {}
    for width in WIDTHS:
        await page.resize(width, 900)
        for scheme in ("light", "dark"):
            await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            seen = await page.evaluate(_LOOK)
            if wrong := {name: seen[name] for name, value in _GOOD.items() if seen[name] != value}:
                found[f"{width} px, {scheme}"] = wrong
    return found


async def press(page: Page, key: str, *, loads: bool = False) -> None:
    """Presses a key; where it leads to another page, waits for that."""
    before = page.loads
    await web_keys.press(page, key)
    if loads:
        await page.loaded(before)

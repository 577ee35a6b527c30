"""Blocks to HTML. Every text is escaped by the template engine; what is not text is made here."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from proctor.reports.blocks import Figure, Prose, Section, Table
from proctor.reports.words import clean, thousands

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["Browser", "embedded_json", "render_page"]

_UNSAFE = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


@dataclass(frozen=True)
class Browser:
    """What stands at the page's end to browse in: its heading, a sentence on it, its script (which finds `panes`, see
    `panes.js`), and styles beyond those that all pages share."""

    title: str
    lead: str
    script: str
    style: str = ""


def items_browser() -> Browser:
    """The browser of a store's report."""
    return Browser(
        "Items and answers",
        "Every question with its key, what each system answered, and how it was marked. Choose on the left, read "
        "on the right; the address keeps your filters.",
        _part("browser.js"),
    )


def embedded_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or begin another.

    >>> embedded_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def render_page(
    *, sections: Sequence[Section], data: Any, browser: Browser | None = None, **context: Any
) -> str:
    """The whole page; its browser is that of items unless another is given. `context` is what the template's
    head names: title, simulated, facts, shown, left_out, version."""
    browser = browser or items_browser()
    style, script = _part("report.css") + browser.style, _part("panes.js") + browser.script
    page: str = _template().render(
        sections=sections,
        browser=browser,
        data=embedded_json(data),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        **context,
    )
    return page


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters |= {"clean": clean, "thousands": thousands}
    environment.tests |= {
        kind.__name__.lower(): lambda one, kind=kind: isinstance(one, kind) for kind in (Prose, Table, Figure)
    }
    return environment.from_string(_part("report.html.j2"))


@cache
def _part(name: str) -> str:
    return (files("proctor.reports.page") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names an inline part: it runs because its hash stands there."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")

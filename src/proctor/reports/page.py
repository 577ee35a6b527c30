"""Blocks to HTML. Every text is escaped by the template engine; what is not text is made here."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from proctor.core import Table, clean, thousands
from proctor.reports.blocks import Figure, Prose, Section, Story

if TYPE_CHECKING:
    from jinja2 import Template

_UNSAFE = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})

_PIECE = 1_000_000  # characters of items that a browser reads at once, in some 10 ms


def embedded_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or begin another.

    >>> embedded_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def render_page(*, story: Story, sections: Sequence[Section], last: Section, data: Any, **context: Any) -> str:
    """The whole page: the story, the sections, the browser, and the last section. `data` is what the browser shows.
    `context` is what the template names besides: title, simulated, withheld, browsing (a sentence on the browser),
    shown, left_out, version."""
    style, script = _part("report.css"), _part("panes.js") + _part("browser.js")
    first, *pieces = _in_pieces(data)
    page: str = _template().render(
        story=story,
        sections=sections,
        last=last,
        data=first,
        pieces=pieces,
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        **context,
    )
    return page


def _in_pieces(data: Any) -> list[str]:
    """The data of the browser with its first items as one text, then more of its items in each: a browser that reads
    a large text at once does nothing else meanwhile."""
    items = [] if data is None else [embedded_json(one) for one in data["items"]]
    if sum(map(len, items)) <= _PIECE:
        return [embedded_json(data)]
    pieces: list[list[str]] = []
    room = 0
    for one in items:
        if len(one) > room:
            pieces.append([])
            room = _PIECE
        pieces[-1].append(one)
        room -= len(one)
    first, *others = [f"[{','.join(piece)}]" for piece in pieces]
    empty = '"items":[]'
    return [embedded_json(data | {"items": []}).replace(empty, f'"items":{first}', 1), *others]


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
    return (files("proctor.reports") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names an inline part: it runs because its hash stands there."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")

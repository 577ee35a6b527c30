"""What the browser holds of texts and pictures, within limits that the page says.

The data are plain JSON that the page's script shows as text: `runs` (system, condition, whether it is a baseline),
`facets` (name, words, values), `statuses`, `items` with their `answers`, `votes` (what judges said), and `ratings` (the
raters' name, metrics, dimensions) where scores stand beside ratings. A text that was shortened is a list: its beginning,
and how many characters are missing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proctor.core import Item, Judgement, clean, count_of

Thumbnails = Callable[[Item], list[tuple[str, bytes]]]
"""Small JPEGs of an item, each with its label."""


@dataclass(frozen=True)
class Limits:
    """How much goes into the page. What is beyond is left out, and the page says how much that is.

    `items` at most; `text` characters of each text; `picture` bytes of each picture and `pictures`
    of all together; `characters` of all answers together.
    """

    items: int = 2000
    text: int = 4000
    picture: int = 8 * 1024
    pictures: int = 24 * 1024 * 1024
    characters: int = 48 * 1024 * 1024


@dataclass
class Shown:
    """What the browser holds, and what it had to leave out. `order` says which items stay, where not all fit."""

    items: int = 0
    items_left_out: int = 0
    answers: int = 0
    texts_cut: int = 0
    pictures: int = 0
    pictures_left_out: int = 0
    unknown_questions: int = 0
    pixels: int = 0
    order: str = ""

    def left_out(self, limits: Limits) -> list[str]:
        """One sentence for each limit that was reached."""
        said = []
        if self.items_left_out:
            said.append(
                f"{self.items_left_out} of {count_of(self.items + self.items_left_out, 'item')} are left out of the "
                f"browser{self.order}; the numbers above count them."
            )
        if self.texts_cut:
            said.append(
                f"{count_of(self.texts_cut, 'text')} shortened to {limits.text} characters (marked where they stand)."
            )
        if self.pictures_left_out:
            said.append(f"{count_of(self.pictures_left_out, 'picture')} left out: too large, no JPEG, or not readable.")
        if self.unknown_questions:
            said.append(
                f"{count_of(self.unknown_questions, 'question')} without a text at hand: the answers stand alone."
            )
        return said


@dataclass
class Content:
    """Makes texts, pictures and judgements fit for the page, and counts them."""

    limits: Limits
    shown: Shown = field(default_factory=Shown)

    def text(self, text: str) -> str | list[Any]:
        """The text, or where it is too long its beginning with the number of characters cut."""
        text = clean(text)
        if len(text) <= self.limits.text:
            return text
        self.shown.texts_cut += 1
        return [text[: self.limits.text], len(text) - self.limits.text]

    def picture(self, name: str, jpeg: bytes | None) -> list[str]:
        """The picture's name, with the picture itself where it is a JPEG and fits."""
        fits = (
            jpeg is not None
            and len(jpeg) <= self.limits.picture
            and self.shown.pixels + len(jpeg) <= self.limits.pictures
            and jpeg.startswith(b"\xff\xd8\xff")
        )
        if jpeg is None or not fits:
            self.shown.pictures_left_out += 1
            return [clean(name)]
        self.shown.pictures += 1
        self.shown.pixels += len(jpeg)
        return [clean(name), base64.b64encode(jpeg).decode("ascii")]

    def vote(self, vote: Judgement) -> dict[str, Any]:
        """What a judge said."""
        reply = {clean(name): self.text(as_text(said)) for name, said in vote.reply.items() if said is not None}
        return {"judge": clean(vote.judge), "reply": reply, "flags": [clean(flag) for flag in vote.flags]}


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""Texts, pictures and judgements for the page of a browser, within limits."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from proctor import core


@dataclass(frozen=True)
class Limits:
    """The limits of the content of a page, which states what was left out: the number of `items`, characters of each
    `text`, bytes of each `picture` and of all `pictures`, `characters` of all items, which a web browser holds at once,
    and `bytes` of items in the page."""

    items: int = 10_000
    text: int = 4000
    picture: int = 128 * 1024
    pictures: int = 24 * 1024 * 1024
    characters: int = 128 * 1024 * 1024
    bytes: int = 48 * 1024 * 1024


@dataclass
class Shown:
    """The content of the browser, and what was left out. `order` is the priority of items if not all fit."""

    items: int = 0
    items_left_out: int = 0
    answers: int = 0
    texts_cut: int = 0
    pictures: int = 0
    pictures_left_out: int = 0
    unknown_questions: int = 0
    replaced: int = 0
    pixels: int = 0
    order: str = ""

    def left_out(self, limits: Limits) -> list[str]:
        """A sentence for each limit that was reached."""
        sentences = []
        if self.items_left_out:
            sentences.append(
                f"{core.thousands(self.items_left_out)} of {core.count_of(self.items + self.items_left_out, 'item')} are left out of the "
                f"browser{self.order}; the numbers above count them."
            )
        if self.texts_cut:
            sentences.append(
                f"{core.count_of(self.texts_cut, 'text')} shortened to {limits.text} characters (marked where they stand)."
            )
        if self.replaced:
            sentences.append(f"Control characters in {core.count_of(self.replaced, 'text')} are shown as \ufffd.")
        if self.pictures_left_out:
            sentences.append(
                f"{core.count_of(self.pictures_left_out, 'picture')} left out: too large, no JPEG, or not readable."
            )
        if self.unknown_questions:
            sentences.append(
                f"{core.count_of(self.unknown_questions, 'question')} without a text at hand: the answers stand alone."
            )
        return sentences


@dataclass
class Content:
    """Prepares texts, pictures and judgements for the page, within the limits."""

    limits: Limits
    shown: Shown = field(default_factory=Shown)

    def text(self, text: str) -> str | list[Any]:
        """The text, or its beginning and the number of missing characters if it is too long."""
        given, text = text, core.clean(text)
        self.shown.replaced += text.count("\ufffd") > given.count("\ufffd")
        if len(text) <= self.limits.text:
            return text
        self.shown.texts_cut += 1
        return [text[: self.limits.text], len(text) - self.limits.text]

    def picture(self, name: str, jpeg: bytes | None) -> list[str]:
        """The picture's name, and the picture itself if it is a JPEG within the limits."""
        fits = (
            jpeg is not None
            and len(jpeg) <= self.limits.picture
            and self.shown.pixels + len(jpeg) <= self.limits.pictures
            and jpeg.startswith(b"\xff\xd8\xff")
        )
        if jpeg is None or not fits:
            self.shown.pictures_left_out += 1
            return [core.clean(name)]
        self.shown.pictures += 1
        self.shown.pixels += len(jpeg)
        return [core.clean(name), base64.b64encode(jpeg).decode("ascii")]

    def judgement(self, judgement: core.Judgement) -> dict[str, Any]:
        """The reply of a judge."""
        # Keys of other replies and empty values are not informative.
        told = {
            name: said for name, said in judgement.reply.items() if name != "judgements" and said not in (None, [], {})
        }
        reply = {core.clean(name): self.text(as_text(said)) for name, said in told.items()}
        return {
            "judge": core.clean(judgement.judge),
            "reply": reply,
            "flags": [core.clean(flag) for flag in judgement.flags],
        }


def as_text(value: Any) -> str:
    """Text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

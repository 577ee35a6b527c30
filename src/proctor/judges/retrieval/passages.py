"""Pages cut into passages that overlap, each of which knows where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import content_hash
from proctor.judges.retrieval.documents import Document
from proctor.metrics.text import tokens

_SEGMENT = re.compile(r"[^\n]*?(?:[。！？；]+|(?<![.!?;])[.!?;]++(?=\s)|\n+|\Z)", re.DOTALL)
_LONG_WORD = 12  # characters that count as one token at most, so that no run without spaces is endless


class Chunking(BaseModel):
    """How long passages are, in tokens (words; in Chinese characters), and how many of them each passage
    shares with the one before, at most."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int = Field(default=160, ge=8, le=2000)
    overlap: int = Field(default=32, ge=0)

    @classmethod
    def of(cls, size: int, overlap: int | None = None) -> Chunking:
        """Passages of this size; where nothing else is said they share a fifth of it."""
        return cls(size=size, overlap=size // 5 if overlap is None else overlap)

    @model_validator(mode="after")
    def _half(self) -> Chunking:
        if self.overlap > self.size // 2:
            raise ValueError("an overlap of at most half the size is expected")
        return self


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document. `page` counts from 1 (None: the document has none), `start` is the place of its
    first character on the page. `id` changes with its document's name, its place and its text."""

    id: str
    source: str
    page: int | None
    start: int
    text: str


def passages_of(documents: Iterable[Document], chunking: Chunking) -> Iterator[Passage]:
    """The passages of documents, in their order. None goes over the end of a page."""
    for document in documents:
        for page in document.pages:
            for start, end in cut(page.text, chunking):
                text = page.text[start:end]
                mark: dict[str, JsonValue] = {
                    "source": document.source,
                    "page": page.number,
                    "start": start,
                    "text": text,
                }
                yield Passage(content_hash(mark)[:16], document.source, page.number, start, text)


def cut(text: str, chunking: Chunking) -> list[tuple[int, int]]:
    """Where passages begin and end, so that every letter is in one of them: whole sentences as far as they are
    short enough, as many as fit.

    >>> text = "Cool the burn. Cover it. See a doctor if it blisters. Keep it clean and dry at night."
    >>> [text[start:end] for start, end in cut(text, Chunking(size=8, overlap=3))]
    ['Cool the burn. Cover it. See a doctor', 'See a doctor if it blisters.', 'if it blisters. Keep it clean and dry', 'and dry at night.']
    """
    pieces = [
        one for start, end in _sentences(text) for one in _short(text, start, end, chunking.overlap or chunking.size)
    ]
    found = []
    first = 0
    while first < len(pieces):
        last, length = first + 1, pieces[first][2]
        while last < len(pieces) and length + pieces[last][2] <= chunking.size:
            length += pieces[last][2]
            last += 1
        found.append((pieces[first][0], pieces[last - 1][1]))
        if last == len(pieces):
            break
        back, shared = last, 0
        while (
            back - 1 > first
            and shared + pieces[back - 1][2] <= chunking.overlap
            and shared + pieces[back - 1][2] + pieces[last][2] <= chunking.size
        ):
            back -= 1
            shared += pieces[back][2]
        first = back
    return found


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    for match in _SEGMENT.finditer(text):
        start, end = match.span()
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if start < end:
            yield start, end


def _short(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int, int]]:
    """A sentence, halved at a space near its middle (else in the middle) until its parts are short enough."""
    waiting = [(start, end)]
    while waiting:
        start, end = waiting.pop()
        while start < end and text[start].isspace():
            start += 1
        length = max(len(tokens(text[start:end])), ceil((end - start) / _LONG_WORD))
        if length <= most or end - start < 2:
            if start < end:
                yield start, end, length
            continue
        middle = (start + end) // 2
        space = text.rfind(" ", start + 1, middle + 1)
        middle = space if space > start else middle
        waiting += [(middle, end), (start, middle)]

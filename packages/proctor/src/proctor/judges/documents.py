"""A folder of documents (text, Markdown, PDF) as pages of text with the hashes of their bytes, and their passages."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from pydantic import Field, JsonValue, model_validator

from proctor.core import (
    ConfigurationError,
    FrozenModel,
    InputError,
    content_hash,
    count_of,
    input_bytes,
    kept_text,
    load_json,
    pip_install,
)
from proctor.judges import pdf_pages
from proctor.metrics.text import tokens

SUFFIXES = (".txt", ".md", ".markdown", ".pdf")
"""The types of documents. Other files, and names that begin with a dot, are ignored."""

_MAX_LENGTH = 5_000_000  # characters: a shelf of textbooks, or a file that is no document
_PDF_TIMEOUT_S = 120  # wall-clock time; the reader itself has a limit of CPU time


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page; `number` counts from 1, and is None if the document has no pages."""

    number: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document by its name below the folder ("wounds/burns.pdf") and the hash of its bytes."""

    source: str
    sha256: str
    pages: tuple[Page, ...]


def document_hashes(folder: Path) -> dict[str, str]:
    """The hash of every document in a folder and its subfolders, sorted by name. Raises `InputError` for a missing folder
    and for one without documents."""
    if not folder.is_dir():
        raise InputError(folder, found="no such folder", expected="a folder of documents")
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    inside = folder.resolve()
    for file in files.values():
        if file.suffix.lower() in SUFFIXES and not file.resolve().is_relative_to(inside):
            raise InputError(file, found="a link that leads out of the folder", expected="a document in it")
    found = {
        name.as_posix(): hashlib.sha256(input_bytes(file, "a document")).hexdigest()
        for name, file in files.items()
        if name.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in name.parts)
    }
    if not found:
        expected = f"documents ({', '.join(SUFFIXES)})"
        raise InputError(folder, found=f"none among {count_of(len(files), 'file')}", expected=expected)
    return dict(sorted(found.items()))


def read_document(folder: Path, source: str, known: Mapping[str, str]) -> Document:
    """The document of this name. Raises `InputError` for a document that can't be read, is not UTF-8, has no text (a scan)
    or more than 5,000,000 characters, or does not have the known hash; `ConfigurationError` for a PDF without the extra
    `retrieval`."""
    file = folder / source
    raw = input_bytes(file, "a document")
    sha256 = hashlib.sha256(raw).hexdigest()
    if sha256 != known[source]:
        raise InputError(file, found="a document that changes meanwhile", expected="one that stays")
    pages = _pdf(file, raw) if file.suffix.lower() == ".pdf" else (Page(None, _text(file, raw)),)
    length = sum(len(page.text) for page in pages)
    if not any(char.isalnum() for page in pages for char in page.text):
        raise InputError(file, found="no text", expected="a document with text (a scan needs it recognised)")
    if length > _MAX_LENGTH:
        raise InputError(file, found=f"{length:,} characters", expected=f"{_MAX_LENGTH:,} or fewer")
    return Document(source, sha256, pages)


def _text(file: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        location = f"byte {error.start}"
    raise InputError(file, location, found="text that is not UTF-8", expected="UTF-8")


def _pdf(file: Path, raw: bytes) -> tuple[Page, ...]:
    """The pages, read by another process, so that a hostile file can't exhaust the time and memory of this one."""
    try:
        import pypdf  # noqa: F401 - the other process needs it
    except ImportError as error:
        raise ConfigurationError(f"a PDF needs the extra 'retrieval' ({pip_install('retrieval')}): {error}") from error
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, and a file of this package
            [sys.executable, "-P", pdf_pages.__file__, str(_MAX_LENGTH)],
            input=raw,
            capture_output=True,
            timeout=_PDF_TIMEOUT_S,
            check=False,
        )
        said = load_json(done.stdout, halves=True)
    except subprocess.TimeoutExpired:
        found = f"a PDF that takes more than {_PDF_TIMEOUT_S} s"
    except ValueError:  # the process was stopped before it wrote anything
        limits = f"{pdf_pages.MAX_SECONDS} s or {pdf_pages.MAX_BYTES // 2**30} GB"
        found = f"a PDF that takes more than {limits}"
    else:
        if "pages" in said:
            return tuple(Page(number, kept_text(text)) for number, text in enumerate(said["pages"], start=1))
        found = str(said["found"])
    raise InputError(file, found=found, expected="one whose text can be read")


_SEGMENT = re.compile(r"[^\n]*?(?:[。！？；]+|(?<![.!?;])[.!?;]++(?=\s)|\n+|\Z)", re.DOTALL)
_LONG_WORD = 12  # characters per token at most, so that text without spaces is divided too


class Chunking(FrozenModel):
    """The length of passages in tokens (words, or characters in Chinese), and the largest number of tokens that a passage
    shares with the one before."""

    size: int = Field(default=160, ge=8, le=2000)
    overlap: int = Field(default=32, ge=0)

    @classmethod
    def of(cls, size: int, overlap: int | None = None) -> Chunking:
        """Passages of this size; by default they share a fifth of it."""
        return cls(size=size, overlap=size // 5 if overlap is None else overlap)

    @model_validator(mode="after")
    def _half(self) -> Chunking:
        if self.overlap > self.size // 2:
            raise ValueError("an overlap of at most half the size is expected")
        return self


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document. `page` counts from 1 (None if the document has no pages), `start` is the index of its first
    character on the page. `id` is a hash of the document's name, the location and the text."""

    id: str
    source: str
    page: int | None
    start: int
    text: str


def passages_of(documents: Iterable[Document], chunking: Chunking) -> Iterator[Passage]:
    """The passages of documents, in their order. No passage crosses the end of a page."""
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
    """The starts and ends of passages, which together contain every letter: as many whole sentences as fit; long sentences
    are divided.

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
    """The parts of a sentence, which is halved at a space near its middle (else in the middle) until they are short."""
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

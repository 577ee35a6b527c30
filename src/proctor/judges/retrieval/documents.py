"""A folder of documents (text, Markdown, PDF) as pages of text, known by the hashes of their bytes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proctor.core import ConfigurationError, InputError
from proctor.core.files import read_bytes

__all__ = ["SUFFIXES", "Document", "Page", "document_hashes", "read_document"]

SUFFIXES = (".txt", ".md", ".markdown", ".pdf")
"""What is read; other files in the folder are none of its documents, nor is what begins with a dot."""

_MOST = 5_000_000  # characters: a shelf of textbooks, or a file that is no document


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page; `number` counts from 1, and is None where a document has no pages."""

    number: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document by its name below the folder ("wounds/burns.pdf") and the hash of its bytes."""

    source: str
    sha256: str
    pages: tuple[Page, ...]


def document_hashes(folder: Path) -> dict[str, str]:
    """The hash of every document in a folder and below, by name, sorted. Raises `InputError` where there is no
    folder, or nothing in it that can be read."""
    if not folder.is_dir():
        raise InputError(folder, found="no such folder", expected="a folder of documents")
    files = {one.relative_to(folder): one for one in folder.rglob("*") if one.is_file()}
    found = {
        name.as_posix(): hashlib.sha256(_bytes(file)).hexdigest()
        for name, file in files.items()
        if name.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in name.parts)
    }
    if not found:
        expected = f"documents ({', '.join(SUFFIXES)})"
        raise InputError(folder, found=f"none among {len(files)} files", expected=expected)
    return dict(sorted(found.items()))


def read_document(folder: Path, source: str, known: Mapping[str, str]) -> Document:
    """The document of this name. Raises `InputError` where it can't be read, is not UTF-8, has no text (a
    scan), more than 5,000,000 characters, or is not the one whose hash is known; `ConfigurationError` for a
    PDF without the extra `retrieval`."""
    file = folder / source
    raw = _bytes(file)
    sha256 = hashlib.sha256(raw).hexdigest()
    if sha256 != known[source]:
        raise InputError(file, found="a document that changes meanwhile", expected="one that stays")
    pages = _pdf(file, raw) if file.suffix.lower() == ".pdf" else (Page(None, _text(file, raw)),)
    length = sum(len(one.text) for one in pages)
    if not any(char.isalnum() for one in pages for char in one.text):
        raise InputError(file, found="no text", expected="a document with text (a scan needs it recognised)")
    if length > _MOST:
        raise InputError(file, found=f"{length:,} characters", expected=f"{_MOST:,} or fewer")
    return Document(source, sha256, pages)


def _bytes(file: Path) -> bytes:
    try:
        return read_bytes(file)
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected="a document") from error


def _text(file: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        place = f"byte {error.start}"
    raise InputError(file, place, found="text that is not UTF-8", expected="UTF-8")


def _pdf(file: Path, raw: bytes) -> tuple[Page, ...]:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise ConfigurationError(
            f"a PDF needs the extra 'retrieval' (pip install 'proctor-eval[retrieval]'): {error}"
        ) from error
    try:
        reader = PdfReader(io.BytesIO(raw))
        if not reader.is_encrypted:
            return tuple(
                Page(number, page.extract_text()) for number, page in enumerate(reader.pages, start=1)
            )
        found = "a PDF with a password"
    except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        found = f"a PDF that can't be read ({error})"  # what a broken file makes the reader stumble over
    raise InputError(file, found=found, expected="one whose text can be read")

"""A separate program that reads a PDF from standard input, with limits of time and memory, and prints its pages as JSON.

It imports little, so that it starts fast. A hostile file ends only this process.
"""

from __future__ import annotations

import io
import json
import logging
import sys

from proctor.core import limit_resources

MAX_SECONDS = 30
MAX_BYTES = 2 * 2**30
MAX_PAGES = 5_000

OTHER_FAULTS = (ValueError, LookupError, TypeError, AttributeError, RecursionError, ArithmeticError, MemoryError)
"""Errors of the library on broken files, besides its own."""


def pages_of(raw: bytes, most_chars: int) -> dict[str, object]:
    """The texts of the pages under "pages", or a description of the problem under "found"."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted:
            return {"found": "a PDF with a password"}
        if len(reader.pages) > MAX_PAGES:
            return {"found": f"{len(reader.pages):,} pages, more than {MAX_PAGES:,}"}
        texts: list[str] = []
        length = 0
        for page in reader.pages:
            texts.append(page.extract_text())
            length += len(texts[-1])
            if length > most_chars:
                return {"found": f"more than {most_chars:,} characters"}
    except (PyPdfError, *OTHER_FAULTS) as error:
        return {"found": f"a PDF that can't be read ({' '.join(str(error).split())[:200]})"}
    return {"pages": texts}


def main() -> None:
    """Sets the limits, reads the PDF, and prints one JSON object."""
    limit_resources(seconds=MAX_SECONDS, memory=MAX_BYTES, final=True)
    json.dump(pages_of(sys.stdin.buffer.read(), int(sys.argv[1])), sys.stdout)


if __name__ == "__main__":
    main()

"""A program of its own: reads a PDF from standard input, within bounds of time and memory, and prints its pages as
JSON.

It imports nothing of Proctor, so that it starts at once; a file that keeps it busy, or fills its memory, ends this
process and no other.
"""

from __future__ import annotations

import io
import json
import logging
import resource
import sys

MOST_SECONDS = 30
MOST_BYTES = 2 * 2**30
MOST_PAGES = 5_000

OTHER_FAULTS = (ValueError, LookupError, TypeError, AttributeError, RecursionError, ArithmeticError, MemoryError)
"""What a broken file makes the library stumble over, beside its own errors."""


def pages_of(raw: bytes, most_chars: int) -> dict[str, object]:
    """The texts of the pages under "pages", or why there are none under "found"."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted:
            return {"found": "a PDF with a password"}
        if len(reader.pages) > MOST_PAGES:
            return {"found": f"{len(reader.pages):,} pages, more than {MOST_PAGES:,}"}
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
    """Reads, and prints one JSON object."""
    for kind, most in ((resource.RLIMIT_AS, MOST_BYTES), (resource.RLIMIT_CPU, MOST_SECONDS)):
        given = resource.getrlimit(kind)[1]
        limit = most if given == resource.RLIM_INFINITY else min(most, given)
        resource.setrlimit(kind, (limit, limit))
    json.dump(pages_of(sys.stdin.buffer.read(), int(sys.argv[1])), sys.stdout)


if __name__ == "__main__":
    main()

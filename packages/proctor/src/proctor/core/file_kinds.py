"""What a file is that is not what it should be: an archive, a workbook, a page, a table where JSON is read."""

from __future__ import annotations

import csv
import json

_MARKS = (
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3\x00", "a database"),
    (b"\xd0\xcf\x11\xe0", "a file of an old Office program"),
)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ZIP, _HEAD = b"PK\x03\x04", 65_536


def kind_of_bytes(raw: bytes) -> str:
    """What bytes are that are not text in UTF-8, in words; "" where their beginning does not say it.

    >>> kind_of_bytes(b"%PDF-1.7"), kind_of_bytes(b"PK\\x03\\x04...xl/workbook.xml"), kind_of_bytes(b"q1,yes")
    ('a PDF', 'an Excel workbook', '')
    """
    if raw.startswith(_ZIP):
        head = raw[:_HEAD]
        return "an Excel workbook" if b"xl/" in head else "a Word document" if b"word/" in head else "a ZIP archive"
    if raw[4:8] == b"ftyp":
        return "a video"
    if raw.startswith(_UTF16) and b"\x00" in raw[:_HEAD]:
        return "text in UTF-16"
    return next((kind for mark, kind in _MARKS if raw.startswith(mark)), "")


def kind_of_text(text: str) -> str:
    """What a text is that should be JSON and is not, in words; "" for JSON that is only broken.

    >>> kind_of_text("id,answer\\nq1,yes\\n"), kind_of_text('{"id": 1}\\n{"id": 2}\\n'), kind_of_text('[{"id": 1')
    ('a table with the columns id, answer', 'JSON lines', '')
    >>> kind_of_text("<!DOCTYPE html><p>Sign in"), kind_of_text("[{'id': 1}]")
    ('a web page (HTML)', 'single quotes, as Python prints objects')
    """
    start = text.lstrip("\ufeff \t\r\n")
    folded = start[:40].casefold()
    if folded.startswith(("<!doctype html", "<html")):
        return "a web page (HTML)"
    if folded.startswith("<"):
        return "XML"
    if start.startswith(("{", "[")):
        return _of_objects(start)
    return _table(start)


def _of_objects(text: str) -> str:
    first, _, rest = text.partition("\n")
    if rest.strip():
        try:
            json.loads(first)
            json.loads(rest.strip().partition("\n")[0])
        except (ValueError, RecursionError):
            pass
        else:
            return "JSON lines"
    plain = text[:200].replace(" ", "")
    return "single quotes, as Python prints objects" if plain.startswith(("{'", "[{'", "['")) else ""


def _table(text: str) -> str:
    lines = text.splitlines()[:2]
    for delimiter in (",", ";", "\t", "|"):
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:
            continue
        if len(rows) == 2 and len(rows[0]) == len(rows[1]) > 1:
            names = [" ".join(name.split())[:40] for name in rows[0][:6]]
            return f"a table with the columns {', '.join(names)}{' …' if len(rows[0]) > 6 else ''}"
    return ""

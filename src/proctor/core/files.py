"""Reading what people give: regular files up to a size, and JSON whose every fault has a place."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["JsonError", "load_json", "read_bytes", "read_text"]

_LIMIT = "PROCTOR_MAX_FILE_MB"
_MOST_MB = 100

_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonError(ValueError):
    """A text that is no JSON. `place` is where ("line 3, column 7", or ""), `found` is what stands there."""

    def __init__(self, place: str, found: str) -> None:
        super().__init__(f"{place}: {found}" if place else found)
        self.place = place
        self.found = found


def read_bytes(file: Path, most_mb: int = _MOST_MB) -> bytes:
    """The content of a regular file of at most so many MB, or as many as the environment's PROCTOR_MAX_FILE_MB says.

    Raises `OSError`, whose `strerror` says why in a few words: also for a pipe, a device or a folder, which could
    keep the reader for ever, for a larger file, and for a name that no file can have.
    """
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL, or half a character, in the name
        raise OSError(errno.EINVAL, "a name that no file can have") from error
    with open(opened, "rb") as stream:  # noqa: PTH123 - by its number, so that what is checked is what is read
        about = os.fstat(opened)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        most = _most_bytes(most_mb)
        content = stream.read(most + 1)
        if len(content) > most:
            larger = f"{about.st_size:,} bytes, more than the {most:,} that {_LIMIT} allows"
            raise OSError(errno.EFBIG, larger)
        return content


def read_text(file: Path, encoding: str = "utf-8") -> str:
    """The text of such a file. Raises `OSError` as `read_bytes` does, and `UnicodeDecodeError`."""
    return read_bytes(file).decode(encoding)


def load_json(
    text: str | bytes,
    *,
    pairs: Callable[[list[tuple[str, Any]]], object] | None = None,
    halves: bool = False,
) -> Any:
    """The value of a JSON text in UTF-8; `pairs` makes what stands for an object.

    Raises `JsonError` for what is no JSON, is nested too deep, has a number of thousands of digits, or (unless
    `halves` are taken) a text with half a character, which nothing could store; `UnicodeDecodeError` for bytes that are no UTF-8.

    >>> load_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> load_json('{"a": [1, 2}')
    Traceback (most recent call last):
    proctor.core.files.JsonError: line 1, column 12: expecting ',' delimiter
    >>> load_json('["\\\\ud800"]')
    Traceback (most recent call last):
    proctor.core.files.JsonError: line 1, column 3: half a character (a lone surrogate)
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise JsonError(f"line {error.lineno}, column {error.colno}", error.msg.lower()) from None
    except RecursionError:
        raise JsonError("", "lists or objects nested too deep") from None
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise
        raise JsonError("", "a number of thousands of digits") from None
    half = None if halves else _SURROGATE.search(text) or _lone_escape(text)
    if half is not None:
        line = text.count("\n", 0, half.start()) + 1
        column = half.start() - text.rfind("\n", 0, half.start())
        raise JsonError(f"line {line}, column {column}", "half a character (a lone surrogate)")
    return value


def _lone_escape(text: str) -> re.Match[str] | None:
    """The first escape that stands for half a character and has no other half beside it."""
    place = 0
    while (found := _HALF.search(text, place)) is not None:
        before = found.start()
        while before and text[before - 1] == "\\":
            before -= 1
        if (found.start() - before) % 2:  # the backslash is itself escaped
            place = found.end()
            continue
        low = _HALF.match(text, found.end())
        if found[0][3] in "89aAbB" and low is not None and low[0][3] in "cCdDeEfF":
            place = low.end()
            continue
        return found
    return None


def _most_bytes(most_mb: int) -> int:
    raw = os.environ.get(_LIMIT, "")
    return (int(raw) if raw.isdecimal() and raw.isascii() and len(raw) < 10 else most_mb) * 2**20

"""A page on disk: whole, or not there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from proctor.core import InputError

__all__ = ["write_whole"]


def write_whole(out: Path, page: str) -> int:
    """Writes the page in UTF-8, its folder too where there is none; the file appears only when it is whole. Gives its
    bytes. Raises `InputError` where it can't be written."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    raw = page.encode("utf-8")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(raw)
        part.replace(out)
    except OSError as error:
        raise InputError(out, found=error.strerror or str(error), expected="a place to write to") from error
    finally:
        with suppress(OSError):  # where there is no such folder, there is no such file either
            part.unlink()
    return len(raw)

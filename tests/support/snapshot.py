"""Texts that are frozen: compared with a plain file beside the test, rewritten only when asked to."""

from __future__ import annotations

import os
from pathlib import Path


def assert_frozen(text: str, file: Path) -> None:
    """The text is the file's, to the byte. `PROCTOR_UPDATE_SNAPSHOTS=1` writes the file instead."""
    if os.environ.get("PROCTOR_UPDATE_SNAPSHOTS") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode())
    assert file.is_file(), f"{file.name} is missing: look at the text, then set PROCTOR_UPDATE_SNAPSHOTS=1"
    assert text == file.read_bytes().decode()

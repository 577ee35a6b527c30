"""A part of FOCUS's questions written to be handed out."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from proctor import core
from proctor.tasks.focus import native
from proctor.tasks.focus.reader import READER, read_folder


def write_questions(data: Path, out: Path, items: Collection[str], *, references: bool, track: str = "") -> None:
    """Writes the requests of these items, with or without their references (see `proctor.core.QuestionWriter`). Raises
    `InputError` for what can't be read."""
    requests, keys = read_folder(data, track or READER.tracks[-1])
    kept = [request for request in requests if request.qID in items], [key for key in keys if key.qID in items]
    native.write_questions(out, *kept, blind=not references)
    about = data / core.ABOUT
    if about.is_file():
        (out / core.ABOUT).write_bytes(core.input_bytes(about))

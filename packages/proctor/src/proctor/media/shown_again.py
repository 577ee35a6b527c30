"""Repeat a recorded request on a new view, to compare what it shows with the record."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import Frame, View
from proctor.media.shown import ClipFile, RecordsShown, ShownRecord, Sound, bytes_of
from proctor.media.views import PlaysSounds, ShowsFiles, ShowsOriginals


async def shown_again(view: View, record: ShownRecord) -> tuple[list[tuple[str, bytes]], ShownRecord]:
    """Repeats a recorded request on a new view: the name and bytes of each picture, file or sound, and the new record.

    Raises `InputError` where a media file is missing or can't be read.
    """
    pictures: Sequence[Frame | ClipFile | Sound]
    if record.asked_as == "files" and isinstance(view, ShowsFiles):
        pictures = await view.files()
    elif record.asked_as == "originals" and isinstance(view, ShowsOriginals):
        pictures = await view.originals()
    elif record.asked_as == "sounds" and isinstance(view, PlaysSounds):
        pictures = await view.sounds(window=record.window)
    else:
        pictures = await view.frames(count=record.count, fps=record.fps, window=record.window)
    found = view.shown[-1] if isinstance(view, RecordsShown) else ShownRecord.of(pictures)
    numbered = enumerate([*pictures], start=1)
    return [(f"{number:03d}{_ending(one)}", bytes_of(one)) for number, one in numbered], found


def _ending(picture: Frame | ClipFile | Sound) -> str:
    if not isinstance(picture, Frame):
        return ".wav" if isinstance(picture, Sound) else ".mp4"
    return ".jpg" if picture.time is None else f"_{picture.time:.2f}s.jpg"

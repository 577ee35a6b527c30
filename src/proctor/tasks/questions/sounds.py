"""Sound in a table of questions: names of audio files with their times, and whether a video's sound belongs to a
row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any

from proctor.core import AudioClip, Item, ParseError, cell_text, count_of, is_empty
from proctor.core.formats import BinaryFormat
from proctor.media import AUDIO_EXTENSIONS
from proctor.tasks.questions.cells import seconds_of, texts_of, undirected

_ENDINGS = "|".join(ending.removeprefix(".") for ending in AUDIO_EXTENSIONS)
_TIMED = re.compile(rf"(?P<file>.+\.(?:{_ENDINGS}))#t=(?P<times>.*)", re.IGNORECASE)
_EXPECTED = "times after a recording's name, as in talk.wav#t=0:10,0:25"
Times = tuple[float | None, float | None]


def split_times(source: str) -> tuple[str, Times | None]:
    """The file of a recording and the times after its name, as W3C's media fragments have them; None without any.
    Raises `ParseError` for times that can't be read.

    >>> split_times("talk.wav#t=0:10,12.5"), split_times("talk.wav"), split_times("ct.dcm#frame=3")
    (('talk.wav', (10.0, 12.5)), ('talk.wav', None), ('ct.dcm#frame=3', None))
    """
    hit = _TIMED.fullmatch(source)
    if hit is None:
        return source, None
    start, _, end = hit["times"].partition(",")
    try:
        times = (
            seconds_of(start.strip() or None, decimal_comma=False),
            seconds_of(end.strip() or None, decimal_comma=False),
        )
    except ParseError as error:
        raise ParseError(expected=_EXPECTED, found=source) from error
    if times == (None, None) or (times[1] is not None and times[1] <= (times[0] or 0.0)):
        raise ParseError(expected=f"{_EXPECTED}, the end after the start", found=source)
    return hit["file"], times


def is_recording(source: str) -> bool:
    """Whether a path names an audio file."""
    return PurePosixPath(source).suffix.lower() in AUDIO_EXTENSIONS


def audio_extension(content: bytes) -> str:
    """The usual ending of an audio file by its first bytes; empty for anything else.

    >>> audio_extension(b"RIFF....WAVEfmt "), audio_extension(b"RIFF....WEBP")
    ('.wav', '')
    """
    if content[:4] == b"RIFF":
        return ".wav" if content[8:12] == b"WAVE" else ""
    heads = ((b"fLaC", ".flac"), (b"OggS", ".ogg"), (b"ID3", ".mp3"), (b"\xff\xfb", ".mp3"), (b"\xff\xf3", ".mp3"))
    return next((ending for head, ending in heads if content.startswith(head)), "")


def names_recordings(cell: Any) -> bool:
    """Whether a cell holds nothing but names of audio files, or an audio file itself."""
    for one in cell if isinstance(cell, list) else [cell]:
        content = one.get("bytes") if isinstance(one, dict) else one
        if isinstance(content, bytes) and content:
            if not audio_extension(content):
                return False
            continue
        names = texts_of(undirected(one.get("path") if isinstance(one, dict) else one))
        if not names or not all(_TIMED.fullmatch(name) or is_recording(name) for name in names):
            return False
    return True


def said_of_sound(cell: Any) -> bool | None:
    """What a cell says of the video's sound, yes or no; None where it says nothing, or names recordings. Raises
    `ParseError` for anything else."""
    if is_empty(cell) or names_recordings(cell):
        return None
    if isinstance(cell, bool):
        return cell
    try:
        return bool(BinaryFormat().from_cell(cell_text(undirected(cell))))
    except ParseError as error:
        expected = (
            f"an audio file ({', '.join(AUDIO_EXTENSIONS)}), or yes or no: whether the video's sound belongs to it"
        )
        raise ParseError(expected=expected, found=error.found) from error


def recordings(files: Sequence[tuple[str, Times | None]], span: Times, *, videos: int) -> list[AudioClip]:
    """The recordings of a row; `span` are the row's start and end. Raises `ParseError` where it can't be said whose
    they are: beside a video they are the video's, and of several recordings nobody's."""
    timed = span != (None, None)
    if timed and any(times is None for _, times in files) and (videos or len(files) > 1):
        expected = "the times of each recording after its name (talk.wav#t=0:10,0:25)"
        raise ParseError(
            expected=expected,
            found=f"start and end with {count_of(videos, 'video')} and {count_of(len(files), 'recording')}",
        )
    if timed and not videos and any(times is not None for _, times in files):
        raise ParseError(expected="start and end, or times after a recording's name", found="both")
    own = [times or (span if not videos else (None, None)) for _, times in files]
    return [
        AudioClip(source=source, start=start or 0.0, end=end)
        for (source, _), (start, end) in zip(files, own, strict=True)
    ]


def sound_line(items: Iterable[Item]) -> str:
    """Whose sound belongs to how many questions; empty where none does."""
    sounding = [item for item in items if item.sounding]
    videos = sum(any(one.kind == "video" for one in item.sounding) for item in sounding)
    recorded = sum(any(one.kind == "audio" for one in item.sounding) for item in sounding)
    told = [
        *([f"the video's belongs to {count_of(videos, 'question')}"] if videos else []),
        *([f"{count_of(recorded, 'question')} with a recording"] if recorded else []),
    ]
    return f"Sound: {', '.join(told)}" if told else ""

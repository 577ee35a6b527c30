"""Subtitles as cues: WebVTT and SRT, as people, editors and services write them."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.core import InputError, input_text, tokens
from proctor_build.pipeline.records import Word

MOST_CUES = 100_000
MOST_CHARS = 5_000
"""The maximum number of characters of one cue."""

_TIME = re.compile(r"(?:(\d{1,3}):)?([0-5]?\d):([0-5]?\d)(?:[.,](\d{1,3}))?", re.ASCII)
_SHORTEST_LINE = 4  # characters: fewer recur by nature
_ARROW = re.compile(r"^\s*(\S+?)\s*-->\s*(\S+)(?:\s.*)?$")
_INLINE = re.compile(r"<(\d[\d:.]*)>")
_TAG = re.compile(r"</?[a-zA-Z][^>]{0,200}>|\{\\[^}]{0,200}\}")  # also SubStation's, which editors leave in SRT
_MAP = re.compile(r"X-TIMESTAMP-MAP\s*=\s*(?P<parts>.*)", re.IGNORECASE)
_SPEAKER = re.compile(r"(?P<name>[^\W\d_a-z][\w.'’()-]*(?: \(?[^\W\d_a-z][\w.'’()-]*){0,4}): (?P<said>.+)", re.DOTALL)
_LEAST_CUES, _MOST_NAMES = 3, 12


def spoken_words(text: str) -> list[str]:
    """The words of a text for comparison with other spellings of the same speech: marks inside numbers split them.

    >>> spoken_words("Slide it, 3,5 cm")
    ['slide', 'it', '3', '5', 'cm']
    """
    return tokens(text, inside="")


@dataclass(frozen=True)
class Cue:
    """A stretch of a transcript; `location` says where in the file. `words` are empty without times of words; `flags`
    are doubts about recognised speech."""

    location: str
    start: float
    end: float
    text: str
    words: tuple[Word, ...] = ()
    flags: tuple[str, ...] = ()


def subtitle_cues(file: Path, *, vtt: bool) -> Iterator[Cue]:
    """The cues of WebVTT, or of SRT, with what rolling captions repeat.

    In WebVTT the header reaches to the first empty line (YouTube writes `Kind:` and `Language:` there), and only an
    empty line ends a cue. A line of blanks ends it where a cue follows. In SRT, lines after an empty line belong to the
    cue before them, unless they begin the next one. Raises `InputError` with the line for broken times, text without
    times, and a header that moves the clock.
    """
    lines = input_text(file, "subtitles", encoding="utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    number, cues = _after_header(file, lines) if vtt else 0, 0
    while number < len(lines):
        if "-->" not in lines[number]:
            if vtt and re.match(r"(?:NOTE|STYLE|REGION)(?:\s|$)", lines[number]):
                while number < len(lines) and lines[number]:
                    number += 1
            elif lines[number].strip() and not _begins_cue(lines, number):
                raise InputError(file, f"line {number + 1}", found=repr(lines[number])[:60], expected=_TIMES)
            number += 1
            continue
        location = f"line {number + 1}"
        start, end = _times(file, location, lines[number])
        until = _end_of_text(lines, number + 1, vtt=vtt)
        text = lines[number + 1 : until]
        inside = next((index for index, line in enumerate(text, number + 2) if "-->" in line), None)
        if inside is not None:
            expected = "a blank line"
            raise InputError(file, f"line {inside}", found="times without a blank line before", expected=expected)
        cues += 1
        if cues > MOST_CUES or sum(map(len, text)) > MOST_CHARS:
            expected = f"at most {MOST_CUES:,} cues of {MOST_CHARS:,} characters"
            raise InputError(file, location, found="more", expected=expected)
        yield _cue(location, start, end, "\n".join(text).strip("\n"))
        number = until


_TIMES = "times (00:01.000 --> 00:02.500)"


def _after_header(file: Path, lines: Sequence[str]) -> int:
    """The first line after the header of WebVTT. Raises `InputError` if there is none, and for a map of the clock."""
    if not re.match(r"WEBVTT(?:\s|$)", lines[0]):
        raise InputError(file, "line 1", found=repr(lines[0])[:60], expected="WEBVTT")
    number = 1
    while number < len(lines) and lines[number] and "-->" not in lines[number]:
        moved = _MAP.match(lines[number])
        if moved is not None and not _stays(moved["parts"]):
            expected = "times on the video's clock: these are a segment's of a stream; join the segments to one file"
            raise InputError(file, f"line {number + 1}", found=lines[number].strip()[:60], expected=expected)
        number += 1
    return number


def _stays(parts: str) -> bool:
    """Whether a map of the clock leaves all times as they are."""
    named = dict(part.split(":", 1) for part in parts.replace(" ", "").split(",") if ":" in part)
    local = _seconds(named.get("LOCAL", ""))
    ticks = named.get("MPEGTS", "")
    return local is not None and ticks.isdecimal() and int(ticks) / 90_000 == local


def _end_of_text(lines: Sequence[str], number: int, *, vtt: bool) -> int:
    """The index behind the last line of a cue's text."""
    while number < len(lines):
        if not lines[number].strip():
            following = next((index for index in range(number, len(lines)) if lines[index].strip()), len(lines))
            if (vtt and not lines[number]) or following == len(lines) or _begins_cue(lines, following):
                return number
        number += 1
    return number


def _begins_cue(lines: Sequence[str], number: int) -> bool:
    """Whether a cue begins at a line: with its times, or a name before them."""
    return "-->" in lines[number] or (number + 1 < len(lines) and "-->" in lines[number + 1])


def _times(file: Path, location: str, line: str) -> tuple[float, float]:
    match = _ARROW.match(line)
    times = [_seconds(group) for group in match.groups()] if match else [None]
    if None in times:
        raise InputError(file, location, found=repr(line)[:60], expected=_TIMES)
    return float(times[0] or 0), float(times[1] or 0)


def _seconds(text: str) -> float | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds, fraction = match.groups()
    whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    return (whole * 1000 + int((fraction or "").ljust(3, "0"))) / 1000


def _cue(location: str, start: float, end: float, raw: str) -> Cue:
    """A cue with its words, if it has inline times (automatic captions): a word begins at the time before it."""
    parts = _INLINE.split(raw)
    words: list[Word] = []
    if len(parts) > 1:
        times = [start, *(found if (found := _seconds(part)) is not None else start for part in parts[1::2]), end]
        last = parts[0].rsplit("\n", 1)[-1]  # lines above it roll: they were said before
        for number, piece in enumerate([last, *parts[2::2]]):
            spoken = _plain(piece).split()
            first, after = times[number], max(times[number], times[number + 1])
            step = (after - first) / max(1, len(spoken))
            words += [
                Word(text=one, start=round(first + location_ * step, 3), end=round(first + (location_ + 1) * step, 3))
                for location_, one in enumerate(spoken)
            ]
    return Cue(location, start, end, _plain(_INLINE.sub("", raw)), tuple(words))


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", text)).split())


def without_repeats(cues: Sequence[Cue]) -> list[Cue]:
    """Cues without the words that repeat the cue before, and without cues that only repeat: rolling captions show a
    line twice, as the new one and as the one above the next."""
    found: list[Cue] = []
    shown: list[str] = []
    for cue in cues:
        words, overlap = cue.text.split(), 0
        if found and cue.start <= found[-1].end + 0.05:
            most = min(len(words), len(shown))
            overlap = next((n for n in range(most, 0, -1) if shown[-n:] == words[:n] and _is_line(words[:n])), 0)
        shown = words
        if overlap == len(words):
            continue
        kept = cue.words if not overlap or len(cue.words) <= len(words) - overlap else cue.words[overlap:]
        found.append(Cue(cue.location, cue.start, cue.end, " ".join(words[overlap:]), kept) if overlap else cue)
    return found


def _is_line(words: Sequence[str]) -> bool:
    """Whether words may be a line that rolled: two at least, or a line of a script without spaces."""
    return len(words) > 1 or len(spoken_words(words[0])) >= _SHORTEST_LINE


def without_speakers(cues: Sequence[Cue]) -> tuple[list[Cue], int]:
    """Cues without the speaker's name before the text ("Jane Doe: …", as Zoom writes it), and the number of names. Names
    are only taken away if every cue has one, and few in all: otherwise what stands before a colon may be said."""
    hits = [_SPEAKER.fullmatch(cue.text) for cue in cues]
    names = Counter(hit["name"] for hit in hits if hit is not None)
    if len(cues) < _LEAST_CUES or not all(hits) or len(names) > min(_MOST_NAMES, len(cues) // 2):
        return list(cues), 0
    kept = []
    for cue, hit in zip(cues, hits, strict=True):
        said = hit["said"] if hit is not None else cue.text
        kept.append(replace(cue, text=said, words=cue.words[-len(said.split()) :]))
    return kept, len(names)

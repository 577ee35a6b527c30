"""Transcripts: subtitles (WebVTT, SRT) and the JSON of speech recognisers, as sentences with words."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.construction.pipeline.records import Word
from proctor.core import InputError, input_text, read_json, validated

SUFFIXES = (".vtt", ".srt", ".json")
_MOST_CUES = 100_000
_MOST_CHARS = 5_000  # of one cue
_TIME = re.compile(r"(?:(\d{1,3}):)?([0-5]?\d):([0-5]?\d)[.,](\d{1,3})", re.ASCII)
_ARROW = re.compile(r"^\s*(\S+)\s*-->\s*(\S+)(?:\s.*)?$")
_INLINE = re.compile(r"<(\d[\d:.]*)>")
_TAG = re.compile(r"</?[a-zA-Z][^>]{0,200}>")
_SENTENCE_END = re.compile(r"[.!?。！？]['\")\]]*$")


@dataclass(frozen=True)
class Cue:
    """A stretch of a transcript as its file has it; `place` is where. `words` are empty where it gives no times of
    words; `flags` are doubts about what was recognised."""

    place: str
    start: float
    end: float
    text: str
    words: tuple[Word, ...] = ()
    flags: tuple[str, ...] = ()


def read_transcript(file: Path) -> list[Cue]:
    """The cues of a transcript in order: WebVTT (also with times inside lines, as automatic captions have them), SRT,
    or the JSON of Whisper, WhisperX, faster-whisper and the transcription protocol of OpenAI.

    Cues that repeat the one before, as rolling captions do, are joined. Raises `InputError` with the line: broken
    times, an end before its start, starts that go back, no speech at all.
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(file, found=f"a file {suffix or 'without a suffix'}", expected=f"one of {', '.join(SUFFIXES)}")
    cues = list(_json_cues(file) if suffix == ".json" else _subtitle_cues(file, vtt=suffix == ".vtt"))
    before = None
    for cue in cues:
        if cue.end <= cue.start:
            raise InputError(file, cue.place, found=f"an end at {cue.end:g} s", expected=f"one after {cue.start:g} s")
        if before is not None and cue.start < before.start:
            expected = f"one not before {before.start:g} s"
            raise InputError(file, cue.place, found=f"a start at {cue.start:g} s", expected=expected)
        before = cue
    found = _without_repeats([cue for cue in cues if cue.text])
    if not found:
        raise InputError(file, found="no speech", expected="a transcript of what is said")
    return found


def _subtitle_cues(file: Path, *, vtt: bool) -> Iterator[Cue]:
    lines = input_text(file, "subtitles", encoding="utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if vtt and not re.match(r"WEBVTT(?:\s|$)", lines[0]):
        raise InputError(file, "line 1", found=repr(lines[0])[:60], expected="WEBVTT")
    number, cues = 1 if vtt else 0, 0
    while number < len(lines):
        if "-->" not in lines[number]:
            if re.match(r"(?:NOTE|STYLE|REGION)(?:\s|$)", lines[number]) and vtt:
                while number < len(lines) and lines[number].strip():
                    number += 1
            elif lines[number].strip() and not _before_times(lines, number):
                expected = "times (00:01.000 --> 00:02.500)"
                raise InputError(file, f"line {number + 1}", found=repr(lines[number])[:60], expected=expected)
            number += 1
            continue
        place = f"line {number + 1}"
        start, end = _times(file, place, lines[number])
        text: list[str] = []
        number += 1
        while number < len(lines) and lines[number].strip():
            if "-->" in lines[number]:
                raise InputError(
                    file, f"line {number + 1}", found="times without a blank line before", expected="a blank line"
                )
            text.append(lines[number])
            number += 1
        cues += 1
        if cues > _MOST_CUES or sum(map(len, text)) > _MOST_CHARS:
            expected = f"at most {_MOST_CUES:,} cues of {_MOST_CHARS:,} characters"
            raise InputError(file, place, found="more", expected=expected)
        yield _cue(place, start, end, "\n".join(text))


def _before_times(lines: Sequence[str], number: int) -> bool:
    """Whether a line is a cue's number or name: its times follow."""
    return number + 1 < len(lines) and "-->" in lines[number + 1]


def _times(file: Path, place: str, line: str) -> tuple[float, float]:
    match = _ARROW.match(line)
    times = [_seconds(one) for one in match.groups()] if match else [None]
    if None in times:
        raise InputError(file, place, found=repr(line)[:60], expected="times (00:01.000 --> 00:02.500)")
    return float(times[0] or 0), float(times[1] or 0)


def _seconds(text: str) -> float | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds, fraction = match.groups()
    whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    return (whole * 1000 + int(fraction.ljust(3, "0"))) / 1000


def _cue(place: str, start: float, end: float, raw: str) -> Cue:
    """With the words between inline times, which automatic captions have: each begins at the time before it."""
    parts = _INLINE.split(raw)
    words: list[Word] = []
    if len(parts) > 1:
        times = [start, *(found if (found := _seconds(one)) is not None else start for one in parts[1::2]), end]
        last = parts[0].rsplit("\n", 1)[-1]  # lines above it roll: they were said before
        for number, piece in enumerate([last, *parts[2::2]]):
            said = _plain(piece).split()
            first, after = times[number], max(times[number], times[number + 1])
            step = (after - first) / max(1, len(said))
            words += [
                Word(text=one, start=round(first + place_ * step, 3), end=round(first + (place_ + 1) * step, 3))
                for place_, one in enumerate(said)
            ]
    return Cue(place, start, end, _plain(_INLINE.sub("", raw)), tuple(words))


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", text)).split())


def _without_repeats(cues: Sequence[Cue]) -> list[Cue]:
    """Rolling captions say a line twice: as the new one, and as the one above the next. What a cue repeats of the one
    before it is left out; so is one that says nothing more."""
    found: list[Cue] = []
    shown: list[str] = []
    for cue in cues:
        words, overlap = cue.text.split(), 0
        if found and cue.start <= found[-1].end + 0.05:
            overlap = next((n for n in range(min(len(words), len(shown)), 1, -1) if shown[-n:] == words[:n]), 0)
        shown = words
        if overlap == len(words):
            continue
        kept = cue.words if not overlap or len(cue.words) <= len(words) - overlap else cue.words[overlap:]
        found.append(Cue(cue.place, cue.start, cue.end, " ".join(words[overlap:]), kept) if overlap else cue)
    return found


class _Spoken(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    start: float | None = Field(default=None, ge=0)
    end: float | None = Field(default=None, ge=0)


class SpokenWord(_Spoken):
    """A word as recognisers write it."""

    word: str = ""
    text: str = ""
    score: float | None = None
    probability: float | None = None

    @property
    def middle(self) -> float:
        """The time of its middle, as far as its times are known."""
        known = [time for time in (self.start, self.end) if time is not None]
        return sum(known) / max(1, len(known))

    @property
    def said(self) -> str:
        return (self.word or self.text).strip()


class SpokenSegment(_Spoken):
    """A segment as recognisers write it; what Whisper says of its own certainty is None where it was not said."""

    text: str = Field(default="", max_length=_MOST_CHARS)
    words: list[SpokenWord] | None = Field(default=None, max_length=_MOST_CHARS)
    avg_logprob: float | None = None
    compression_ratio: float | None = None
    no_speech_prob: float | None = None


class SpokenReply(BaseModel):
    """What a recogniser replies: OpenAI's `verbose_json`, whose words may stand beside its segments. A text without
    segments is none: nobody could say when it was said."""

    text: str = Field(default="", exclude=True)
    segments: list[SpokenSegment] = Field(max_length=_MOST_CHARS)
    words: list[SpokenWord] | None = Field(default=None, max_length=_MOST_CUES)

    @model_validator(mode="after")
    def _timed(self) -> Self:
        if self.text.strip() and not any(one.text.strip() for one in self.segments):
            raise ValueError("a text without segments: times are expected")
        return self

    def words_of(self, number: int) -> list[SpokenWord]:
        """The words of a segment, counted from 0: its own, else those whose middle lies between its start and that of
        the next one, since recognisers round."""
        own, later = self.segments[number].words, self.segments[number + 1 :]
        first = (self.segments[number].start or 0.0) if number else 0.0
        until = next((one.start for one in later if one.start is not None), math.inf)
        return own or [one for one in self.words or [] if first <= one.middle < until]


def _json_cues(file: Path) -> Iterator[Cue]:
    content = read_json(file, "a speech recogniser's JSON")
    segments: Any = content.get("segments") if isinstance(content, dict) else content
    if not isinstance(segments, list) or len(segments) > _MOST_CUES:
        raise InputError(file, found="no list of segments", expected='{"segments": [{"start", "end", "text"}]}')
    loose = _loose_words(file, content)
    for number, entry in enumerate(segments, start=1):
        place = f"segment {number}"
        segment = validated(SpokenSegment, entry, file, place)
        if segment.start is None or segment.end is None:
            raise InputError(file, f"{place}, field 'start' or 'end'", found="nothing", expected="seconds")
        said = segment.words or [one for one in loose if segment.start <= (one.start or 0.0) < segment.end]
        yield Cue(
            place, segment.start, segment.end, " ".join(segment.text.split()), timed(said, segment.start, segment.end)
        )


def _loose_words(file: Path, content: JsonValue | object) -> list[SpokenWord]:
    """The words beside the segments, as the protocol of OpenAI has them."""
    words = content.get("words") if isinstance(content, dict) else None
    if not isinstance(words, list):
        return []
    return [
        validated(SpokenWord, one, file, f"word {number}") for number, one in enumerate(words[:_MOST_CHARS], start=1)
    ]


def timed(words: Sequence[SpokenWord], start: float, end: float) -> tuple[Word, ...]:
    """Words with times. One that the aligner gave none (WhisperX gives none to numbers) lies between its neighbours,
    with the confidence 0: nothing is to be cut there."""
    found: list[Word] = []
    for number, one in enumerate(words):
        if not one.said:
            continue
        first = one.start if one.start is not None else (found[-1].end if found else start)
        later = next((w.start for w in words[number + 1 :] if w.start is not None), end)
        last = one.end if one.end is not None else max(first, min(later, end))
        sure = one.score if one.score is not None else one.probability
        sure = 0.0 if one.start is None or one.end is None else sure
        confidence = None if sure is None else min(1.0, max(0.0, sure))
        found.append(Word(text=one.said, start=first, end=max(first, last), confidence=confidence))
    return tuple(found)


def in_sentences(cues: Sequence[Cue], most_s: float, pause_s: float) -> list[Cue]:
    """Cues joined to sentences: up to a full stop, a pause of `pause_s`, or `most_s` seconds. Subtitles break lines
    where they are full, recognisers where they paused."""
    found: list[Cue] = []
    for cue in cues:
        last = found[-1] if found else None
        joins = (
            last is not None
            and not _SENTENCE_END.search(last.text)
            and cue.start - last.end <= pause_s
            and cue.end - last.start <= most_s
        )
        if last is not None and joins:
            words = (*last.words, *cue.words) if bool(last.words) == bool(cue.words) else ()
            flags = tuple(dict.fromkeys((*last.flags, *cue.flags)))
            found[-1] = Cue(last.place, last.start, max(last.end, cue.end), f"{last.text} {cue.text}", words, flags)
        else:
            found.append(cue)
    return found

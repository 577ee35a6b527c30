"""What is said in a source, as cues and sentences with times: read from a transcript, or recognised from its sound,
with what is rejected.

Transcripts are subtitles (WebVTT, SRT) or the JSON of speech recognisers. Recognised speech is checked for what
recognisers invent.

Sounds are recognised in parts that neither overlap (joining them needs rules for words that differ) nor know the part
before (one loop leads to the next).
"""

from __future__ import annotations

import asyncio
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import InputError, RefusalError, count_of, read_json, validated
from proctor.media import SpeechPart, speech_parts
from proctor_build.pipeline.records import LOW_CONFIDENCE, Call, Refused, Word
from proctor_build.pipeline.stage import WaitingError, Work
from proctor_build.pipeline.subtitles import (
    MOST_CHARS,
    MOST_CUES,
    Cue,
    spoken_words,
    subtitle_cues,
    without_repeats,
    without_speakers,
)

SUFFIXES = (".vtt", ".srt", ".json")
_SENTENCE_END = re.compile(r"[.!?。！？．।॥؟۔።။។]['\")\]’”»」』]*$")


def read_transcript(file: Path) -> Spoken:
    """The cues of a transcript in order: WebVTT (also with times inside lines, as in automatic captions), SRT, or the
    JSON of Whisper, WhisperX, faster-whisper and OpenAI's transcription protocol.

    What rolling captions repeat is left out. Cues without a length are `refused`. Raises `InputError` with the line for
    broken times, an end before its start, a start before the one before it, and no speech at all.
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(file, found=f"a file {suffix or 'without a suffix'}", expected=f"one of {', '.join(SUFFIXES)}")
    cues = list(_json_cues(file) if suffix == ".json" else subtitle_cues(file, vtt=suffix == ".vtt"))
    before, kept, found = None, list[Cue](), Spoken()
    for cue in cues:
        if cue.end < cue.start:
            raise InputError(
                file, cue.location, found=f"an end at {cue.end:g} s", expected=f"one after {cue.start:g} s"
            )
        if before is not None and cue.start < before.start:
            expected = f"one not before {before.start:g} s"
            raise InputError(file, cue.location, found=f"a start at {cue.start:g} s", expected=expected)
        before = cue
        if cue.text and cue.end == cue.start:
            spoken = f"{cue.start:.2f} to {cue.end:.2f} s: {cue.text}"
            found.refused.append(Refused.of(cue.location, "times", "an end after its start", spoken))
        elif cue.text:
            kept.append(cue)
    named, names = without_speakers(kept)
    found.cues = without_repeats(named)
    if not found.cues:
        raise InputError(file, found="no speech", expected="a transcript of what is said")
    if found.refused:
        found.notes.append(f"{count_of(len(found.refused), 'cue')} without a length left out: {found.refused[0].found}")
    if names:
        found.notes.append(f"{count_of(names, 'name')} of speakers before the texts left out")
    return found


class _Spoken(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    start: float | None = Field(default=None, ge=0)
    end: float | None = Field(default=None, ge=0)


class SpokenWord(_Spoken):
    """A word in a recogniser's reply."""

    word: str = ""
    text: str = ""
    score: float | None = None
    probability: float | None = None

    @property
    def middle(self) -> float:
        """The middle of its known times; 0 without any."""
        known = [time for time in (self.start, self.end) if time is not None]
        return sum(known) / max(1, len(known))

    @property
    def spoken(self) -> str:
        return (self.word or self.text).strip()


class SpokenSegment(_Spoken):
    """A segment in a recogniser's reply; Whisper's measures of confidence are None where missing."""

    text: str = Field(default="", max_length=MOST_CHARS)
    words: list[SpokenWord] | None = Field(default=None, max_length=MOST_CHARS)
    avg_logprob: float | None = None
    compression_ratio: float | None = None
    no_speech_prob: float | None = None


class SpokenReply(BaseModel):
    """A recogniser's reply: OpenAI's `verbose_json`, whose words may be listed beside its segments. A text without
    segments is invalid, since its times are unknown."""

    text: str = Field(default="", exclude=True)
    segments: list[SpokenSegment] = Field(max_length=MOST_CHARS)
    words: list[SpokenWord] | None = Field(default=None, max_length=MOST_CUES)

    @model_validator(mode="after")
    def _timed(self) -> Self:
        if self.text.strip() and not any(segment.text.strip() for segment in self.segments):
            raise ValueError("a text without segments: times are expected")
        return self

    def words_of(self, number: int) -> list[SpokenWord]:
        """The words of a segment, counted from 0: its own, else those whose middle is between its start and that of
        the next segment (recognisers round times)."""
        own, later = self.segments[number].words, self.segments[number + 1 :]
        first = (self.segments[number].start or 0.0) if number else 0.0
        until = next((spoken_segment.start for spoken_segment in later if spoken_segment.start is not None), math.inf)
        return own or [word for word in self.words or [] if first <= word.middle < until]


def _json_cues(file: Path) -> Iterator[Cue]:
    content = read_json(file, "a speech recogniser's JSON")
    segments: Any = content.get("segments") if isinstance(content, dict) else content
    if not isinstance(segments, list) or len(segments) > MOST_CUES:
        raise InputError(file, found="no list of segments", expected='{"segments": [{"start", "end", "text"}]}')
    loose = _loose_words(file, content)
    for number, entry in enumerate(segments, start=1):
        location = f"segment {number}"
        segment = validated(SpokenSegment, entry, file, location)
        if segment.start is None or segment.end is None:
            raise InputError(file, f"{location}, field 'start' or 'end'", found="nothing", expected="seconds")
        spoken = segment.words or [
            spoken_word for spoken_word in loose if segment.start <= (spoken_word.start or 0.0) < segment.end
        ]
        fits = _fits(spoken, segment.start, segment.end)
        words = timed(spoken, segment.start, segment.end) if fits else ()
        flags = () if fits else (ODD_WORDS,)
        yield Cue(location, segment.start, segment.end, " ".join(segment.text.split()), words, flags)


def _loose_words(file: Path, content: JsonValue | object) -> list[SpokenWord]:
    """The words beside the segments, as in OpenAI's protocol."""
    words = content.get("words") if isinstance(content, dict) else None
    if not isinstance(words, list):
        return []
    return [
        validated(SpokenWord, one, file, f"word {number}") for number, one in enumerate(words[:MOST_CHARS], start=1)
    ]


def timed(words: Sequence[SpokenWord], start: float, end: float) -> tuple[Word, ...]:
    """Words with times. Words without times (WhisperX gives numbers none) share the time between their neighbours
    equally, with a confidence of 0, so that nothing is cut there."""
    spoken, found = [word for word in words if word.spoken], list[Word]()
    for number, one in enumerate(spoken):
        first = one.start if one.start is not None else (found[-1].end if found else start)
        ahead = spoken[number + 1 :]
        later = next((row for row, word in enumerate(ahead) if word.start is not None), len(ahead))
        until = min(end, ahead[later].start or 0.0) if later < len(ahead) else end
        last = one.end if one.end is not None else first + max(0.0, until - first) / (later + 1)
        sure = one.score if one.score is not None else one.probability
        sure = 0.0 if one.start is None or one.end is None else sure
        confidence = None if sure is None else min(1.0, max(0.0, sure))
        found.append(
            Word(text=one.spoken, start=round(first, 3), end=round(max(first, last), 3), confidence=confidence)
        )
    return tuple(found)


def in_sentences(cues: Sequence[Cue], most_s: float, pause_s: float) -> list[Cue]:
    """Cues joined into sentences: up to a full stop, a pause of `pause_s`, or `most_s` seconds. Subtitles end at full
    lines and recognised segments at pauses, not at sentences."""
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
            found[-1] = Cue(last.location, last.start, max(last.end, cue.end), f"{last.text} {cue.text}", words, flags)
        else:
            found.append(cue)
    return found


ROLE = "speech"
NO_SPEECH = "may be no speech"
REPETITIVE = "repeats itself"
STOCK_PHRASE = "a phrase that recognisers invent"
ECHO = "words of the prompt"
RUNS_OVER = "ends after its sound"
ODD_WORDS = "times of words do not fit"

_EDGE_S = 0.5  # how far recognisers round
_SHORTEST_S = 0.002  # of a segment: times are kept to the millisecond
_SHORTER_S = 1.0
_MOST_ALIKE = 3  # consecutive segments with the same words: nobody repeats a sentence that often
_MOST_COMPRESSED, _NO_SPEECH, _LEAST_LOGPROB = 2.4, 0.6, -1.0
"""Whisper's own thresholds for a failed segment (Radford et al. 2022, section 4.5)."""

_INVENTED = re.compile(
    r"\bthank(?:s| you)(?: (?:so|very) much)? for (?:watching|listening)|\bsubscribe\b|\bsubtitles? (?:are )?(?:made )?by\b"
    r"|\bamara\.org\b|\bsee you (?:in the )?next (?:time|video)\b|\btranscri(?:bed|ption) by\b|\buntertitel(?:ung)? "
    r"(?:von|der|des|im)\b|\bsous-titr|字幕",
    re.IGNORECASE,
)
"""Phrases at the end of films: Whisper was trained on them and writes them for silence."""


@dataclass
class Spoken:
    """What is said in a source: cues in order, rejected segments, notes, and the reply behind each stretch (start,
    end, call)."""

    cues: list[Cue] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    calls: list[tuple[float, float, Call]] = field(default_factory=list)

    def calls_of(self, cue: Cue) -> tuple[Call, ...]:
        """The replies behind a cue."""
        return tuple(call for start, end, call in self.calls if start < cue.end and cue.start < end)


async def recognise(work: Work, video: Path, span: tuple[float, float], longest_s: float) -> Spoken:
    """Recognises speech in a stretch of a video, on the video's own clock; silent parts are not sent.

    Raises `InputError` if the stretch has no sound, and `WaitingError` with the part if the recogniser declines or
    gives no transcript; replies on other parts are cached. `InfrastructureError` passes through.
    """
    asker, found, until, silent, short = work.asker(ROLE), Spoken(), span[0], 0, 0
    parts = speech_parts(video, span, longest_s)
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        until, short = max(until, part.until), short + part.cut_short
        if part.silent:
            silent += 1
            continue
        name, (start, end) = f"{work.unit}-part{len(found.calls) + silent + 1}", part.sound.span
        try:
            reply, call = await asker.hear(SpokenReply, name, part.sound)
        except RefusalError as error:
            why = str(error).removeprefix(f"build.{work.stage}: no draft: ")
            raise WaitingError(f"no transcript of {video.name} from {start:.1f} to {end:.1f} s: {why}") from error
        found.calls.append((start, end, call))
        _Part(name, part, call, _prompt(work)).read(reply, found)
    if not found.calls:
        what = f"no sound from {span[0]:g} to {span[1]:g} s" if until <= span[0] else "silence: nothing can be heard"
        expected = "a narrated video, or a transcript of it"
        raise InputError(work.project.file, f"source {work.unit!r}, {video.name}", found=what, expected=expected)
    _refuse_loops(found)
    if until < span[1] - _SHORTER_S:
        found.notes.append(f"the sound ends at {until:.1f} s of {span[1]:.1f} s")
    if short:
        found.notes.append(f"{count_of(short, 'cut')} where somebody may be speaking")
    if found.cues and not any(cue.words for cue in found.cues):
        found.notes.append("no times of words: events will begin and end with sentences")
    return found


def _prompt(work: Work) -> str:
    return str(work.project.clients(ROLE)[0].spec.settings.get("prompt", ""))


@dataclass(frozen=True)
class _Part:
    name: str
    part: SpeechPart
    call: Call
    prompt: str

    def read(self, reply: SpokenReply, found: Spoken) -> None:
        """Adds the valid segments with their doubts, and the rejected ones with the reason."""
        offset, before = self.part.sound.span[0], 0.0
        for number, one in enumerate(reply.segments):
            name, text = f"{self.name}-{number + 1}", " ".join(one.text.split())
            start, end = (math.nan if time is None else time for time in (one.start, one.end))
            if not text:
                continue
            fault = self._fault(start, end, before)
            if fault is not None:
                spoken = f"{offset + start:.2f} to {offset + end:.2f} s: {text}"
                found.refused.append(Refused.of(name, *fault, spoken, (), (self.call,)))
                continue
            before, last = start, min(end, self._seconds)
            words = reply.words_of(number)
            fits = _fits(words, start, last)
            flags = (
                *([RUNS_OVER] if end > last + _EDGE_S else []),
                *_doubts(one, text, self.prompt),
                *([] if fits else [ODD_WORDS]),
            )
            shifted = tuple(_shifted(word, offset, last) for word in (timed(words, start, last) if fits else ()))
            found.cues.append(Cue(name, round(offset + start, 3), round(offset + last, 3), text, shifted, flags))

    @property
    def _seconds(self) -> float:
        return self.part.sound.span[1] - self.part.sound.span[0]

    def _fault(self, start: float, end: float, before: float) -> tuple[str, str] | None:
        """The kind of a fault and what was expected; None for a valid segment."""
        if math.isnan(start + end):
            return "times", "a start and an end"
        if start >= self._seconds:
            return "times", "a start before the end of its sound"
        if min(end, self._seconds) - start < _SHORTEST_S:
            return "times", "an end after its start"
        if start < before:
            return "times", "a start not before that of the one before it"
        if not self.part.heard(start, min(end, self._seconds)):
            return "silence", "words where something can be heard"
        return None


def _doubts(segment: SpokenSegment, text: str, prompt: str) -> list[str]:
    compression = max(segment.compression_ratio or 0.0, _compression(text))
    doubts = {
        NO_SPEECH: (segment.no_speech_prob or 0.0) > _NO_SPEECH,
        LOW_CONFIDENCE: (segment.avg_logprob or 0.0) < _LEAST_LOGPROB,
        REPETITIVE: compression > _MOST_COMPRESSED,
        STOCK_PHRASE: _INVENTED.search(text) is not None,
        ECHO: _echoes(text, prompt),
    }
    return [doubt for doubt, holds in doubts.items() if holds]


def _fits(words: Sequence[SpokenWord], start: float, end: float) -> bool:
    """Whether the times of words ascend, inside their segment."""
    times = [(word.start, word.end) for word in words if word.start is not None and word.end is not None]
    inside = all(start - _EDGE_S <= first <= last <= end + _EDGE_S for first, last in times)
    return inside and all(a[0] <= b[0] for a, b in pairwise(times))


def _shifted(word: Word, offset: float, last: float) -> Word:
    first = min(word.start, last)
    times = {"start": round(offset + first, 3), "end": round(offset + max(first, min(word.end, last)), 3)}
    return word.model_copy(update=times)


def _compression(text: str) -> float:
    """The ratio of compression, as Whisper computes it: high for repetitive text."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw))


def _echoes(text: str, prompt: str) -> bool:
    """Whether a text of three or more words is a passage of the prompt."""
    spoken = spoken_words(text)
    return len(spoken) >= 3 and f" {' '.join(spoken)} " in f" {' '.join(spoken_words(prompt))} "


def _refuse_loops(found: Spoken) -> None:
    """Keeps the first of three or more consecutive cues with the same words, with a flag."""
    kept: list[Cue] = []
    for _, alike in groupby(found.cues, key=lambda cue: spoken_words(cue.text)):
        first, *more = alike
        if len(more) + 1 < _MOST_ALIKE:
            kept += [first, *more]
            continue
        kept.append(replace(first, flags=tuple(dict.fromkeys((*first.flags, REPETITIVE)))))
        found.refused += [_looped(cue, found.calls_of(cue)) for cue in more]
    found.cues = kept


def _looped(cue: Cue, calls: tuple[Call, ...]) -> Refused:
    spoken = f"{cue.start:.2f} to {cue.end:.2f} s: {cue.text}"
    return Refused.of(cue.location, "loop", "other words than the ones before it", spoken, (), calls)

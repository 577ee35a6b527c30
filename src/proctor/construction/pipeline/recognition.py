"""Speech, recognised where a source has no transcript: part by part, each asked for once, and checked for what
recognisers invent."""

from __future__ import annotations

import asyncio
import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path

from proctor.construction.pipeline.records import LOW_CONFIDENCE, Call, Refused, Word
from proctor.construction.pipeline.stage import WaitingError, Work
from proctor.construction.pipeline.transcripts import Cue, SpokenReply, SpokenSegment, SpokenWord, timed
from proctor.core import InputError, RefusalError, count_of
from proctor.media import SpeechPart, speech_parts

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
_MOST_ALIKE = 3  # segments on end with the same words: nobody says it that often
_MOST_COMPRESSED, _NO_SPEECH, _LEAST_LOGPROB = 2.4, 0.6, -1.0
"""Whisper's own thresholds for a passage that failed (Radford et al. 2022, section 4.5)."""

_INVENTED = re.compile(
    r"\bthank(?:s| you)(?: (?:so|very) much)? for (?:watching|listening)|\bsubscribe\b|\bsubtitles? (?:are )?(?:made )?by\b"
    r"|\bamara\.org\b|\bsee you (?:in the )?next (?:time|video)\b|\btranscri(?:bed|ption) by\b|\buntertitel(?:ung)? "
    r"(?:von|der|des|im)\b|\bsous-titr|字幕",
    re.IGNORECASE,
)
"""What stands at the ends of films, and so in what Whisper learned silence from."""


@dataclass
class Spoken:
    """What is said in a source: cues in order, what was refused, notes, and the reply behind each stretch (start,
    end)."""

    cues: list[Cue] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    calls: list[tuple[float, float, Call]] = field(default_factory=list)

    def calls_of(self, cue: Cue) -> tuple[Call, ...]:
        """The replies that a cue was made from."""
        return tuple(call for start, end, call in self.calls if start < cue.end and cue.start < end)


async def recognise(work: Work, video: Path, span: tuple[float, float], longest_s: float) -> Spoken:
    """What a recogniser hears in a stretch of a video, on the video's own clock. A part in which nothing can be heard
    is not asked about.

    Raises `InputError` where the video has no sound there, and `WaitingError`, which names the stretch, where the
    recogniser declines or gives no transcript; what it said of other parts is kept. `InfrastructureError` passes.
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
    """One part, and what was replied to it."""

    name: str
    part: SpeechPart
    call: Call
    prompt: str

    def read(self, reply: SpokenReply, found: Spoken) -> None:
        """Adds what may stand, with its doubts, and what may not, with the reason."""
        offset, before = self.part.sound.span[0], 0.0
        for number, one in enumerate(reply.segments):
            name, text = f"{self.name}-{number + 1}", " ".join(one.text.split())
            start, end = (math.nan if time is None else time for time in (one.start, one.end))
            if not text:
                continue
            fault = self._fault(start, end, before)
            if fault is not None:
                said = f"{offset + start:.2f} to {offset + end:.2f} s: {text}"
                found.refused.append(Refused.of(name, *fault, said, (), (self.call,)))
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
        """The kind of a fault and what was expected; None where a segment may stand."""
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
    """Whether words go on in time, inside their segment."""
    times = [(one.start, one.end) for one in words if one.start is not None and one.end is not None]
    inside = all(start - _EDGE_S <= first <= last <= end + _EDGE_S for first, last in times)
    return inside and all(a[0] <= b[0] for a, b in pairwise(times))


def _shifted(word: Word, offset: float, last: float) -> Word:
    first = min(word.start, last)
    times = {"start": round(offset + first, 3), "end": round(offset + max(first, min(word.end, last)), 3)}
    return word.model_copy(update=times)


def _compression(text: str) -> float:
    """How often its bytes repeat: their number by that of the compressed ones."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw))


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _echoes(text: str, prompt: str) -> bool:
    """Whether three words or more are the prompt's own, in its order."""
    said = _tokens(text)
    return len(said) >= 3 and f" {' '.join(said)} " in f" {' '.join(_tokens(prompt))} "


def _refuse_loops(found: Spoken) -> None:
    """Of three or more cues on end with the same words the first one stands, with a flag."""
    kept: list[Cue] = []
    for _, alike in groupby(found.cues, key=lambda cue: _tokens(cue.text)):
        first, *more = alike
        if len(more) + 1 < _MOST_ALIKE:
            kept += [first, *more]
            continue
        kept.append(replace(first, flags=tuple(dict.fromkeys((*first.flags, REPETITIVE)))))
        found.refused += [_looped(cue, found.calls_of(cue)) for cue in more]
    found.cues = kept


def _looped(cue: Cue, calls: tuple[Call, ...]) -> Refused:
    said = f"{cue.start:.2f} to {cue.end:.2f} s: {cue.text}"
    return Refused.of(cue.place, "loop", "other words than the ones before it", said, (), calls)

"""The stages `transcript` and `normalise`: sentences with times; and the same without fillers, with standard terms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from proctor.core import NUMBER_WORDS, InputError, RefusalError, Usage, count_of, tokens
from proctor.judges import has_injection
from proctor.media import Catalogue, cache_folder
from proctor_build.pipeline.records import LOW_CONFIDENCE, Call, Refused, Sentence
from proctor_build.pipeline.stage import PROMPTS, Asker, Made, Stage, StageSettings, Work
from proctor_build.pipeline.subtitles import Cue
from proctor_build.pipeline.transcripts import ROLE, in_sentences, read_transcript, recognise

PROMPT_INJECTION = "prompt injection"
_SLACK_S = 2.0  # a last subtitle may stand a little longer than its video


class TranscriptSettings(StageSettings):
    """Cues are joined into sentences of up to `longest_s`, across pauses of up to `pause_s`. Times of words are used
    from a confidence of `confidence`, pauses count as silence from `silence_s`. A speech recogniser gets parts of up to
    `part_s` (ten minutes are 19 MB; the protocol's limit is 25)."""

    longest_s: float = Field(default=20.0, gt=0)
    pause_s: float = Field(default=1.0, ge=0)
    confidence: float = Field(default=0.5, ge=0, le=1)
    silence_s: float = Field(default=5.0, gt=0)
    part_s: float = Field(default=300.0, ge=5, le=600)


class TranscriptStage(Stage[Sentence]):
    """The sentences of a source within its start and end: from its transcript, else by a speech recogniser, which gets
    the sound of that stretch only."""

    name = "transcript"
    summary = "Sentences with times"
    record = Sentence
    settings = TranscriptSettings
    roles = (ROLE,)

    def reads(self, work: Work) -> Sequence[Path]:
        if work.source.transcript:
            return [work.project.path(work.source, name) for name in ("video", "transcript")]
        _check_speech_model(work)
        return [work.project.path(work.source, "video")]

    async def make(self, work: Work) -> Made[Sentence]:
        settings = work.settings(TranscriptSettings)
        video, *transcript = self.reads(work)
        seconds = video_seconds(video)
        work.project.check_trim(work.source, seconds)
        first, last = work.source.start, min(seconds, work.source.end or seconds)
        if transcript:
            spoken = read_transcript(transcript[0])
        else:
            spoken = await recognise(work, video, (first, last), settings.part_s)
        cues = in_sentences(spoken.cues, settings.longest_s, settings.pause_s)
        if transcript and cues[-1].end > seconds + _SLACK_S:
            found = f"speech at {cues[-1].end:g} s, and a video of {seconds:g} s"
            raise InputError(transcript[0], cues[-1].location, found=found, expected="the transcript of this video")
        inside = [cue for cue in cues if cue.end > first and cue.start < last]
        if not inside and not spoken.refused:
            found = f"no speech from {first:g} to {last:g} s"
            raise InputError(work.project.file, f"source {work.unit!r}", found=found, expected="a narrated stretch")
        made = [
            _sentence(work.unit, number, cue, settings.confidence, spoken.calls_of(cue))
            for number, cue in enumerate(inside, start=1)
        ]
        notes = _notes(made, first, last, settings.silence_s, len(cues) - len(inside))
        return Made(made, spoken.refused, [*spoken.notes, *notes])


def _check_speech_model(work: Work) -> None:
    """Raises `InputError` if the project names no speech recogniser."""
    project = work.project
    if ROLE not in project.settings.models:
        expected = f"a transcript, or a model for speech (models: {ROLE})"
        raise InputError(project.file, f"source {work.unit!r}", found="neither", expected=expected)
    spec = project.clients(ROLE)[0].spec
    if not spec.hears:
        expected = "a recogniser of speech: openai-transcription:MODEL, or faster-whisper:FOLDER"
        raise InputError(project.file, f"models: {ROLE}", found=repr(spec.name), expected=expected)


def video_seconds(video: Path) -> float:
    """The length of a video in seconds. Raises `InputError` if it can't be read."""
    index = Catalogue(cache_folder()).index(video)
    first, last = (index.seconds(int(index.pts[row])) for row in (0, -1))
    return last + (last - first) / max(1, len(index.pts) - 1)


def _sentence(source: str, number: int, cue: Cue, confidence: float, calls: tuple[Call, ...]) -> Sentence:
    unsure = [word for word in cue.words if word.confidence is not None and word.confidence < confidence]
    flags = [PROMPT_INJECTION] if has_injection(cue.text) else []
    flags += [LOW_CONFIDENCE] if len(unsure) * 2 > len(cue.words) > 0 else []
    return Sentence(
        id=f"{source}-s{number:03d}",
        source=source,
        start=cue.start,
        end=cue.end,
        text=cue.text,
        words=cue.words,
        flags=tuple(dict.fromkeys((*flags, *cue.flags))),
        calls=calls,
    )


def _notes(made: Sequence[Sentence], first: float, last: float, silence_s: float, outside: int) -> list[str]:
    edges = [first, *(time for sentence in made for time in (sentence.start, sentence.end)), last]
    silent = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= silence_s]
    notes = []
    if silent:
        total = sum(b - a for a, b in silent)
        notes.append(f"{count_of(len(silent), 'silence')}, {total:.0f} of {last - first:.0f} s")
    if outside:
        notes.append(f"{count_of(outside, 'sentence')} outside the trim")
    return notes


_FILLERS = frozenset((
    "uh", "um", "uhm", "er", "erm", "ah", "eh", "hm", "hmm", "mm", "okay", "ok", "well", "right", "alright", "so",
    "like", "just", "really", "basically", "actually", "now",
))  # fmt: skip
_SIDES = frozenset((
    "left", "right", "anterior", "posterior", "superior", "inferior", "medial", "lateral", "proximal", "distal",
    "cranial", "caudal", "cephalad", "caudad", "ventral", "dorsal", "up", "down", "upward", "downward", "upwards",
    "downwards", "clockwise", "counterclockwise", "anticlockwise", "toward", "towards", "away", "above", "below",
    "transverse", "sagittal", "coronal", "longitudinal", "axial", "short", "long", "oblique", "deep", "shallow",
    "increase", "decrease",
))  # fmt: skip
_NOT = frozenset((
    "not", "no", "never", "without", "don't", "doesn't", "didn't", "isn't", "aren't", "can't", "cannot", "won't",
    "shouldn't", "nor",
))  # fmt: skip
_NUMBER_WORDS = frozenset((
    *NUMBER_WORDS, "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand",
    "half", "third", "quarter",
))  # fmt: skip
_SMALL = frozenset((
    "a", "an", "the", "and", "or", "of", "to", "in", "on", "at", "by", "for", "with", "from", "as", "is", "are", "was",
    "were", "be", "been", "it", "its", "this", "that", "these", "those", "we", "you", "i", "he", "she", "they", "our",
    "your", "my", "there", "here", "then",
))  # fmt: skip
_PART = re.compile(r"\d+(?:[.,]\d+)*|\D+")


class NormaliseSettings(StageSettings):
    """`terms` maps words to the standard term (`probe: transducer`); `at_once` is the number of sentences in one
    prompt; without `model` every sentence stays unchanged."""

    terms: dict[str, str] = Field(default={})
    at_once: int = Field(default=40, ge=1, le=200)
    model: bool = True


class _Line(BaseModel):
    number: int
    text: str = Field(min_length=1, max_length=2000)


class _Lines(BaseModel):
    sentences: list[_Line] = Field(max_length=400)


class NormaliseStage(Stage[Sentence]):
    """Sentences without fillers and with standard terms, by a model whose changes are checked."""

    name = "normalise"
    summary = "Fillers out, one term for one thing"
    after = ("transcript",)
    record = Sentence
    settings = NormaliseSettings
    roles = ("writer",)
    prompts = (PROMPTS / "normalise.txt.j2",)

    async def make(self, work: Work) -> Made[Sentence]:
        settings, sentences = work.settings(NormaliseSettings), work.records("transcript", Sentence)
        if not settings.model:
            return Made([_as_said(sentence) for sentence in sentences], notes=["no model: sentences as they were said"])
        made, refused = [], []
        asker = work.asker("writer", self.prompts[0])
        for start in range(0, len(sentences), settings.at_once):
            part = sentences[start : start + settings.at_once]
            replies, call, lost = await _replies(asker, part, settings.terms)
            for number, one in enumerate(part, start=1):
                texts = replies.get(number, [])
                text = texts[0] if texts else ""
                reason = changed(one.text, text, settings.terms) if len(texts) == 1 else f"{len(texts)} lines for it"
                reason = reason if call else replies[0][0]
                calls = (call,) if call else ()
                if reason:
                    no = Refused.of(one.id, "normalise", reason, text, (one.id,), calls)
                    refused.append(no.model_copy(update={"usage": lost}) if number == 1 else no)
                    made.append(_as_said(one))
                else:
                    made.append(_as_said(one, text=text, original=one.text, calls=calls))
        return Made(made, refused)


async def _replies(
    asker: Asker, part: Sequence[Sentence], terms: Mapping[str, str]
) -> tuple[dict[int, list[str]], Call | None, Usage]:
    """The lines by the numbers of their sentences, and the call; without one, why there is none, as number 0, and what
    was spent on it."""
    try:
        lines, call = await asker.ask(
            _Lines, part[0].id, {"sentences": [sentence.text for sentence in part], "terms": dict(terms)}
        )
    except RefusalError as error:
        return {0: [str(error).removeprefix("build.normalise: ")]}, None, error.usage or Usage()
    found: dict[int, list[str]] = {}
    for line in lines.sentences:
        found.setdefault(line.number, []).append(" ".join(line.text.split()))
    return found, call, Usage()


def _as_said(sentence: Sentence, **changes: object) -> Sentence:
    return sentence.model_copy(update={"id": f"{sentence.id}n", "made_from": (sentence.id,), **changes})


def changed(original: str, normalised: str, terms: Mapping[str, str] | None = None) -> str:
    """How a normalised sentence differs in meaning from the original: added or lost content words, numbers, sides,
    directions or negations; "" if it does not. A word may be replaced by its standard term.

    >>> changed("uh so we we slide the probe to the the right", "We slide the transducer to the right.", {"probe": "transducer"})
    ''
    >>> changed("slide to the right", "Slide to the left.")
    "'left' is not in the original"
    >>> changed("angle about ten degrees, not more", "Angle about ten degrees.")
    "'not' is missing"
    """
    known = {_stem(a.casefold()): b.casefold().split() for a, b in (terms or {}).items()}
    before, after = _words(original), _words(normalised)
    allowed = {_stem(word) for word in before} | {_stem(part) for word in before for part in known.get(_stem(word), [])}
    new = next((word for word in after if word not in _SMALL and _stem(word) not in allowed), None)
    if new is not None:
        return f"{new!r} is not in the original"
    replaced = [part for word in before for part in known.get(_stem(word), [word])]
    want, have = _fixed(replaced), _fixed(after)
    if want != have:
        lost, more = Counter(want) - Counter(have), Counter(have) - Counter(want)
        if lost:
            return f"{next(iter(lost))!r} is missing"
        return f"{next(iter(more))!r} is said more often" if more else f"{' '.join(have)!r} in another order"
    kept = {_stem(word) for word in replaced if word not in _SMALL | _FILLERS}
    lost_share = len(kept - {_stem(word) for word in after}) / max(1, len(kept))
    return "" if lost_share <= _MOST_LOST else f"{lost_share:.0%} of its words are missing"


_MOST_LOST = 0.34


def _fixed(words: Sequence[str]) -> list[str]:
    """The numbers, sides, directions and negations in order, without immediate repetitions (stammering). "Right" as a
    filler can't be told from the side, so a sentence that loses it is rejected."""
    once = [one for number, one in enumerate(words) if number == 0 or words[number - 1] != one]
    return [word for word in once if _is_number(word) or word in _SIDES or word in _NOT]


def _words(text: str) -> list[str]:
    parts = (part for word in tokens(text, inside=".,'") for part in _PART.findall(word))
    return [part.strip("'") for part in parts]


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word in _NUMBER_WORDS


def _stem(word: str) -> str:
    """A word without its grammatical ending.

    >>> {_stem(word) for word in ("slide", "slides", "sliding", "slid")} == {"slid"}
    True
    """
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def content_words(text: str) -> frozenset[str]:
    """The stems of the content words.

    >>> sorted(content_words("We are sliding the probe, uh, to the right"))
    ['prob', 'right', 'slid']
    """
    return frozenset(_stem(word) for word in _words(text) if word not in _SMALL | _FILLERS or word in _SIDES)


def sides_and_numbers(text: str) -> frozenset[str]:
    """The sides, directions and numbers in a text.

    >>> sorted(sides_and_numbers("Rotate 90 degrees towards the left"))
    ['90', 'left', 'towards']
    """
    return frozenset(word for word in _words(text) if word in _SIDES or _is_number(word))


def negations(text: str) -> frozenset[str]:
    """The negating words in a text.

    >>> sorted(negations("The hands are not on the chest, without exception"))
    ['not', 'without']
    """
    return frozenset(word for word in _words(text) if word in _NOT)

"""The stage `questions`: drafts about one or more adjacent events, each checked against the rules for questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field

from proctor.construction.pipeline.records import Call, DraftQuestion, ProcedureEvent, Refused
from proctor.construction.pipeline.speech import content_words, sides_and_numbers
from proctor.construction.pipeline.stage import Asker, Made, Stage, StageSettings, Work
from proctor.construction.pipeline.subtitles import spoken_words
from proctor.core import collapse_spaces

M = TypeVar("M", bound=BaseModel)

KEY_STANDS_OUT = "the key is the longest option by far"

FORBIDDEN = {
    "sound": r"\b(?:audio|sound|hear|heard|listen\w*|narrat\w*|voice|spoken|says?|said|tells?|mention\w*|transcript\w*"
    r"|speak\w*|explain\w*)\b",
    "on-screen text": r"\b(?:on-?screen|caption\w*|subtitle\w*|label(?:led|ed|s)?|text|overlay\w*|read-?out\w*"
    r"|written)\b",
    "exact readout": r"\b\d+(?:[.,]\d+)?\s*(?:mm|cm|mhz|hz|db|cm/s|m/s|ml|cc|bpm|degrees?|°|%)(?![a-z])",
    "time in the video": r"\b\d{1,2}:\d{2}\b",
    "two options in one": r"\b(?:all|none|both|neither) of the (?:above|options)\b",
}
"""Patterns that no question may contain, by the reason: systems see pictures only."""

_BROKEN = {
    "options": "options: {}",
    "an option twice": "options: one of them twice",
    "the answer in the stem": "the answer in the stem: {} of its words",
    "asked already": "asked already: another question of this stretch has the same stem",
}


@dataclass(frozen=True)
class BrokenRule:
    """A rule that a question breaks, by its `name`, and the offending `words`.

    >>> print(BrokenRule("sound", "hear"))
    sound: 'hear'
    """

    name: str
    words: str = ""

    def __str__(self) -> str:
        return _BROKEN[self.name].format(self.words) if self.name in _BROKEN else f"{self.name}: {self.words!r}"


class QuestionsSettings(StageSettings):
    """A source gets `per_event` questions for each event plus `per_minute` for each minute of events, rounded, at least
    1 and at most `most`. `free_share` is the share of free responses, `options` the number of options of a choice,
    `tries` the number of attempts at a draft, `overlap` the largest share of the right answer's content words that the
    stem may contain."""

    per_event: float = Field(default=0.5, ge=0)
    per_minute: float = Field(default=1.0, ge=0)
    most: int = Field(default=20, ge=1)
    free_share: float = Field(default=0.5, ge=0, le=1)
    options: int = Field(default=4, ge=2, le=10)
    tries: int = Field(default=3, ge=1, le=10)
    overlap: float = Field(default=0.5, ge=0, le=1)


@dataclass(frozen=True)
class QuestionType:
    """A type of question: what it asks (for the prompt), and the number of adjacent events it is about."""

    name: str
    asks: str
    events: int = 1


@dataclass(frozen=True)
class Planned:
    """A question to be written."""

    id: str
    type: QuestionType
    kind: Literal["mcq", "free"]
    events: tuple[ProcedureEvent, ...]


class ChoiceDraft(BaseModel):
    """A model's draft of a choice; `key` is the number of the right option, from 1."""

    question: str = Field(min_length=10, max_length=1000)
    options: list[str] = Field(min_length=2, max_length=10)
    key: int
    groundtruth: str = Field(min_length=10, max_length=2000)


class FreeDraft(BaseModel):
    """A model's draft of a free response."""

    question: str = Field(min_length=10, max_length=1000)
    answer: str = Field(min_length=5, max_length=2000)
    groundtruth: str = Field(min_length=10, max_length=2000)


def how_many(events: Sequence[ProcedureEvent], settings: QuestionsSettings) -> int:
    """The number of questions for a source; 0 without events."""
    minutes = sum(event.end - event.start for event in events) / 60
    wanted = round(settings.per_event * len(events) + settings.per_minute * minutes)
    return min(settings.most, max(1, wanted)) if events else 0


class QuestionsStage(Stage[DraftQuestion]):
    """Drafts of questions. Types and forms take turns; events are drawn by seed, each equally often. A draft that breaks
    a rule is requested again with the reason, and rejected after the last attempt."""

    name: ClassVar[str] = "questions"
    summary: ClassVar[str] = "Drafts of questions"
    after: ClassVar[tuple[str, ...]] = ("events",)
    record = DraftQuestion
    settings = QuestionsSettings
    roles: ClassVar[tuple[str, ...]] = ("writer",)

    def __init__(self, types: Sequence[QuestionType], prompt: Path) -> None:
        self.types = tuple(types)
        self.prompts = (prompt,)

    async def make(self, work: Work) -> Made[DraftQuestion]:
        settings, events = work.settings(QuestionsSettings), work.records("events", ProcedureEvent)
        asker = work.asker("writer", self.prompts[0])
        made: list[DraftQuestion] = []
        refused: list[Refused] = []
        for planned in self.plan(work, events, settings):
            one = await draft(asker, planned, settings, made)
            if isinstance(one, Refused):
                refused.append(one)
            else:
                made.append(one)
        return Made(made, refused)

    def plan(self, work: Work, events: Sequence[ProcedureEvent], settings: QuestionsSettings) -> Iterator[Planned]:
        """The questions to be written for a source."""
        rng, deck = work.generator("events"), list[int]()
        for number in range(how_many(events, settings)):
            kind = self.types[number % len(self.types)]
            deck = deck or [int(place) for place in rng.permutation(len(events))]
            first = min(deck.pop(), max(0, len(events) - kind.events))
            free = int((number + 1) * settings.free_share) > int(number * settings.free_share)
            about = tuple(events[first : first + kind.events])
            yield Planned(f"{work.unit}-q{number + 1:03d}", kind, "free" if free else "mcq", about)


async def draft(
    asker: Asker, planned: Planned, settings: QuestionsSettings, others: Sequence[DraftQuestion], version: int = 0
) -> DraftQuestion | Refused:
    """Writes a question. Former versions of it used the draws before `version` · `tries`."""

    def check(reply: ChoiceDraft | FreeDraft, calls: tuple[Call, ...]) -> DraftQuestion | str:
        question = _question(planned, reply, calls, version)
        return question if isinstance(question, str) else valid(question, planned.events, settings, others)

    form: type[ChoiceDraft | FreeDraft] = FreeDraft if planned.kind == "free" else ChoiceDraft
    values = {"type": planned.type, "kind": planned.kind, "events": planned.events, "options": settings.options}
    draws = range(version * settings.tries, (version + 1) * settings.tries)
    events = tuple(event.id for event in planned.events)
    failed = Refused(id=planned.id, kind="no draft", reason="a question", made_from=events)
    return await asker.first_valid(form, values, draws, failed, check)


def valid(
    question: DraftQuestion,
    events: Sequence[ProcedureEvent],
    settings: QuestionsSettings,
    others: Sequence[DraftQuestion] = (),
) -> DraftQuestion | str:
    """The question, or the first rule that it breaks."""
    broken = broken_rule(question, events, settings, others)
    return question if broken is None else str(broken)


def _question(
    planned: Planned, reply: ChoiceDraft | FreeDraft, calls: tuple[Call, ...], version: int
) -> DraftQuestion | str:
    form: dict[str, object]
    flags = list(dict.fromkeys(flag for event in planned.events for flag in event.flags))
    if isinstance(reply, ChoiceDraft):
        options = tuple(collapse_spaces(_LETTER.sub("", option)) for option in reply.options)
        if not 1 <= reply.key <= len(options):
            return f"key: a number from 1 to {len(options)} is expected"
        form = {"options": options, "key": reply.key - 1}
        flags += [KEY_STANDS_OUT] if stands_out(options, reply.key - 1) else []
    else:
        form = {"answer": collapse_spaces(reply.answer)}
    return DraftQuestion.model_validate(
        {
            "id": planned.id,
            "made_from": tuple(event.id for event in planned.events),
            "calls": calls,
            "flags": tuple(flags),
            "source": planned.events[0].source,
            "start": min(event.start for event in planned.events),
            "end": max(event.end for event in planned.events),
            "type": planned.type.name,
            "kind": planned.kind,
            "text": collapse_spaces(reply.question),
            "groundtruth": collapse_spaces(reply.groundtruth),
            "version": version,
            **form,
        }
    )


def stands_out(options: Sequence[str], key: int) -> bool:
    """Whether the right option is the longest, and longer than 1.5 times the median length of the others.

    >>> stands_out(("clip", "the grasper", "hook"), 1), stands_out(("clip", "the grasper", "a very long distractor"), 1)
    (True, False)
    """
    others = [len(one) for number, one in enumerate(options) if number != key]
    return len(options[key]) > max(*others, _BY_FAR * max(1, median(others)))


_LETTER = re.compile(r"^\s*[(]?[A-Ja-j][.):]\s+")
_BY_FAR = 1.5
_MOST_ALIKE = 0.9


def broken_rule(
    question: DraftQuestion,
    events: Sequence[ProcedureEvent],
    settings: QuestionsSettings,
    others: Sequence[DraftQuestion] = (),
) -> BrokenRule | None:
    """The first rule that a question breaks, with the offending words (None for none): it speaks of what no picture
    shows; its options are not as requested; its stem contains the right answer's words; it states sides or numbers that
    the events do not; the same question exists already."""
    shown = " ".join((question.text, *question.options))
    for reason, pattern in FORBIDDEN.items():
        hit = re.search(pattern, shown, re.IGNORECASE)
        if hit is not None:
            return BrokenRule(reason, hit[0])
    if question.kind == "mcq":
        if len(question.options) != settings.options:
            return BrokenRule("options", f"{len(question.options)} instead of {settings.options}")
        plain = [" ".join(spoken_words(option)) or option for option in question.options]
        if len(set(plain)) < len(plain):
            return BrokenRule("an option twice")
    right = question.answer if question.kind == "free" else question.options[question.key or 0]
    leak = _leaked(question, right)
    if leak > settings.overlap:
        return BrokenRule("the answer in the stem", f"{leak:.0%}")
    known = sides_and_numbers(" ".join(f"{event.action} {event.intent} {event.quote}" for event in events))
    invented = next((word for word in sorted(sides_and_numbers(question.groundtruth) - known)), None)
    if invented is not None:
        return BrokenRule("not in the events", invented)
    if any(
        _alike(question.text, draft_question.text) and _same_stretch(question, draft_question)
        for draft_question in others
    ):
        return BrokenRule("asked already")
    return None


def _leaked(question: DraftQuestion, right: str) -> float:
    """The share of the right answer's content words that the stem contains, without those of every option."""
    common = frozenset.intersection(*map(content_words, question.options)) if question.options else frozenset[str]()
    words = content_words(right) - common
    return len(words & content_words(question.text)) / len(words) if words else 0.0


def _alike(text: str, other: str) -> bool:
    a, b = content_words(text), content_words(other)
    return bool(a | b) and len(a & b) / len(a | b) >= _MOST_ALIKE


def _same_stretch(draft_question: DraftQuestion, other: DraftQuestion) -> bool:
    return (
        draft_question.source == other.source and draft_question.start < other.end and other.start < draft_question.end
    )

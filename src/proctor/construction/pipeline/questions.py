"""The stage `questions`: drafts about one event or adjacent ones, each checked before it passes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from proctor.construction.pipeline.records import Call, DraftQuestion, ProcedureEvent, Refused
from proctor.construction.pipeline.speech import content_words, sides_and_numbers
from proctor.construction.pipeline.stage import Asker, Made, Stage, StageSettings, Work
from proctor.core import RefusalError

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
"""What no question may speak of, by the reason: a system sees pictures alone."""


class QuestionsSettings(StageSettings):
    """How many questions a source gets: `per_event` for each event and `per_minute` for each minute that events last
    (so that the number grows with duration and density), rounded, at least 1 and at most `most`. `free_share` is the
    share of free responses, `options` the number of options, `tries` how often a draft is asked for; `overlap` is the
    largest share of the key's words of content that the stem may hold."""

    per_event: float = Field(default=0.5, ge=0)
    per_minute: float = Field(default=1.0, ge=0)
    most: int = Field(default=20, ge=1)
    free_share: float = Field(default=0.5, ge=0, le=1)
    options: int = Field(default=4, ge=2, le=10)
    tries: int = Field(default=3, ge=1, le=10)
    overlap: float = Field(default=0.5, ge=0, le=1)


@dataclass(frozen=True)
class QuestionType:
    """A type of question: what it asks, for the prompt, and about how many adjacent events."""

    name: str
    asks: str
    events: int = 1


@dataclass(frozen=True)
class Planned:
    """A question that is to be written."""

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
    """The number of questions of a source; 0 without events."""
    minutes = sum(one.end - one.start for one in events) / 60
    wanted = round(settings.per_event * len(events) + settings.per_minute * minutes)
    return min(settings.most, max(1, wanted)) if events else 0


class QuestionsStage(Stage[DraftQuestion]):
    """Drafts of questions, the types and forms taking turns, the events drawn by seed, each as often as any other. What
    breaks a rule is asked for again, with the reason, and refused in the end."""

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
            (refused if isinstance(one, Refused) else made).append(one)  # type: ignore[arg-type]
        return Made(made, refused)

    def plan(self, work: Work, events: Sequence[ProcedureEvent], settings: QuestionsSettings) -> Iterator[Planned]:
        """What is to be written of a source."""
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
    """One question, asked for until it breaks no rule, at most `tries` times."""
    reason, found, calls = "", "", list[Call]()
    events = tuple(one.id for one in planned.events)
    form: type[ChoiceDraft | FreeDraft] = FreeDraft if planned.kind == "free" else ChoiceDraft
    for number in range(settings.tries):
        try:
            values = {"type": planned.type, "kind": planned.kind, "events": planned.events, "options": settings.options}
            draw = version * settings.tries + number
            said, call = await asker.ask(form, planned.id, values | {"refused": reason}, draw=draw)
        except RefusalError as error:
            return Refused.of(planned.id, "no draft", "a question", str(error), events, tuple(calls))
        calls.append(call)
        question = _question(planned, said, tuple(calls), version)
        reason = question if isinstance(question, str) else broken_rule(question, planned.events, settings, others)
        if not reason and isinstance(question, DraftQuestion):
            return question
        found = said.model_dump_json()
    return Refused.of(planned.id, reason.partition(":")[0], reason, found, events, tuple(calls))


def _question(
    planned: Planned, said: ChoiceDraft | FreeDraft, calls: tuple[Call, ...], version: int
) -> DraftQuestion | str:
    """The draft as a record, or what is wrong with its form."""
    form: dict[str, object]
    flags = list(dict.fromkeys(flag for one in planned.events for flag in one.flags))
    if isinstance(said, ChoiceDraft):
        options = tuple(_tidy(_LETTER.sub("", one)) for one in said.options)
        if not 1 <= said.key <= len(options):
            return f"key: a number from 1 to {len(options)} is expected"
        form = {"options": options, "key": said.key - 1}
        flags += [KEY_STANDS_OUT] if stands_out(options, said.key - 1) else []
    else:
        form = {"answer": _tidy(said.answer)}
    return DraftQuestion.model_validate(
        {
            "id": planned.id,
            "made_from": tuple(one.id for one in planned.events),
            "calls": calls,
            "flags": tuple(flags),
            "source": planned.events[0].source,
            "start": min(one.start for one in planned.events),
            "end": max(one.end for one in planned.events),
            "type": planned.type.name,
            "kind": planned.kind,
            "text": _tidy(said.question),
            "groundtruth": _tidy(said.groundtruth),
            "version": version,
            **form,
        }
    )


def stands_out(options: Sequence[str], key: int) -> bool:
    """Whether the right option is longer than half as much again as the others usually are."""
    others = [len(one) for number, one in enumerate(options) if number != key]
    return len(options[key]) > _BY_FAR * max(1, median(others))


_LETTER = re.compile(r"^\s*[(]?[A-Ja-j][.):]\s+")
_BY_FAR = 1.5
_MOST_ALIKE = 0.9


def _tidy(text: str) -> str:
    return " ".join(text.split())


def broken_rule(
    question: DraftQuestion,
    events: Sequence[ProcedureEvent],
    settings: QuestionsSettings,
    others: Sequence[DraftQuestion] = (),
) -> str:
    """The first rule that a question breaks, with what breaks it ("" where it breaks none): it speaks of what no
    picture shows; its stem holds the key's words; its options are not what was asked for; it states sides or numbers
    that the events do not; it was asked already."""
    shown = " ".join((question.text, *question.options))
    for reason, pattern in FORBIDDEN.items():
        hit = re.search(pattern, shown, re.IGNORECASE)
        if hit is not None:
            return f"{reason}: {hit[0]!r}"
    if question.kind == "mcq":
        if len(question.options) != settings.options:
            return f"options: {len(question.options)} instead of {settings.options}"
        plain = [" ".join(sorted(_all_words(one))) for one in question.options]
        if len(set(plain)) < len(plain):
            return "options: one of them twice"
    right = question.answer if question.kind == "free" else question.options[question.key or 0]
    leak = _leaked(question, right)
    if leak > settings.overlap:
        return f"the answer in the stem: {leak:.0%} of its words"
    told = sides_and_numbers(" ".join(f"{one.action} {one.intent} {one.quote}" for one in events))
    invented = next((word for word in sorted(sides_and_numbers(question.groundtruth) - told)), None)
    if invented is not None:
        return f"not in the events: {invented!r}"
    if any(_alike(question.text, one.text) and _same_stretch(question, one) for one in others):
        return "asked already: another question of this stretch has the same stem"
    return ""


def _leaked(question: DraftQuestion, right: str) -> float:
    """The share of the right answer's words of content that the stem holds; those that every option has give nothing
    away."""
    common = frozenset.intersection(*map(content_words, question.options)) if question.options else frozenset[str]()
    words = content_words(right) - common
    return len(words & content_words(question.text)) / len(words) if words else 0.0


def _alike(text: str, other: str) -> bool:
    a, b = content_words(text), content_words(other)
    return bool(a | b) and len(a & b) / len(a | b) >= _MOST_ALIKE


def _same_stretch(one: DraftQuestion, other: DraftQuestion) -> bool:
    return one.source == other.source and one.start < other.end and other.start < one.end


def _all_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def types_by_name(types: Sequence[QuestionType]) -> Mapping[str, QuestionType]:
    """The types, for a stage that writes one again."""
    return {one.name: one for one in types}

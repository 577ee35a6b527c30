"""The stage `questions`: drafts about events that the writer chooses, each checked against the rules for questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, Field, field_validator, model_validator

from proctor.core import collapse_spaces, count_of
from proctor_build.pipeline.project import Project
from proctor_build.pipeline.records import Call, DraftQuestion, ProcedureEvent, Refused
from proctor_build.pipeline.speech import content_words, sides_and_numbers
from proctor_build.pipeline.stage import Asker, Made, Stage, StageSettings, Work, chosen_template, stage_settings
from proctor_build.pipeline.subtitles import spoken_words

M = TypeVar("M", bound=BaseModel)

KEY_STANDS_OUT = "the key is the longest option by far"
NO_FIT = "no fit"
"""The kind of refusal of events for which the writer finds no type of question."""

_SPEAKER = (
    r"(?:narrat\w*|speaker|operator|sonographer|surgeon|clinician|doctor|physician|radiologist|expert|examiner|instructor"
    r"|presenter|teacher|trainer|lecturer|commentator)"
)
_APART = r"(?![^.?!]*\b(?:apart|from)\b)"  # to tell apart is to see
_TOLD = r"(?:the\s+)?(?:patient|viewer|audience|assistant|nurse|trainee|student|team|camera|us|you)s?\b"
FORBIDDEN = {
    "sound": r"\b(?:audio\w*|audible|hear|heard|listen\w*|narrat\w*|voices?|spoken|speaks?|transcripts?|told|says|said"
    r"|mention(?:s|ed|ing)|(?<!strictly )(?<!generally )(?<!broadly )speaking"
    rf"|(?:does|do|did)\b[^.?!]{{0,40}}\b(?:say|mention|explain|tell{_APART})"
    rf"|{_SPEAKER}\s+(?:\w+\s+)?(?:explain\w*|tells?)|explained\s+(?:in|during|to|at|by\s+(?:the|an?)\s+{_SPEAKER})"
    rf"|tell(?:s|ing)?\s+{_TOLD}{_APART}"
    r"|(?<!speed of )(?<!transmission of )(?<!passage of )"
    r"sounds?(?!\s*(?:beam|wave|transmission|window|attenuation|path|penetration|energy|propagation)))\b",
    "on-screen text": r"\b(?:captions?|subtitles?|text|read-?outs?|written|on-?screen\s+(?:writing|words?|numbers?|values?"
    r"|messages?)|(?:what|which)\s+labels?|labels?\s+(?:say|read|state|name)s?|reads?\s+the\s+labels?)\b",
    "exact readout": r"\b(?:\d+(?:[.,]\d+)?\s*(?:mm|cm|mhz|hz|db|cm/s|m/s|ml|cc|bpm|%)"
    r"|(?!(?:45|90|180|270|360)\s*(?:degrees?|°))\d+(?:[.,]\d+)?\s*(?:degrees?|°))(?![a-z])",
    "time in the video": r"\b\d{1,2}:\d{2}\b",
    "two options in one": r"\b(?:all|none|both|neither) of the (?:above|options)\b",
}
"""Patterns that no question may contain, by the reason: systems see pictures only. Words that only resemble speech or
text on the screen pass ("Explain …", "tell two vessels apart", "a colour overlay", "rotate by 90°")."""

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
    stem may contain. `prompt` is another prompt for the writer: a name of the kind (`paper`), or a template inside the
    project folder."""

    per_event: float = Field(default=0.5, ge=0)
    per_minute: float = Field(default=1.0, ge=0)
    most: int = Field(default=20, ge=1)
    free_share: float = Field(default=0.5, ge=0, le=1)
    options: int = Field(default=4, ge=2, le=10)
    tries: int = Field(default=3, ge=1, le=10)
    overlap: float = Field(default=0.5, ge=0, le=1)
    prompt: str = ""


@dataclass(frozen=True)
class QuestionType:
    """A type of question: what it asks (for the prompt), and the least number of adjacent `events` that it is about (all
    of them in a shorter log)."""

    name: str
    asks: str
    events: int = 1


@dataclass(frozen=True)
class Planned:
    """A question to be written. Of a choice, `order` says how its options are put in order: 0 stands for the right
    option, 1, 2 … for the wrong ones as the writer lists them. The writer chooses `type` and `events` unless they are
    given."""

    id: str
    kind: Literal["mcq", "free"]
    order: tuple[int, ...] = ()
    type: QuestionType | None = None
    events: tuple[ProcedureEvent, ...] = ()


@dataclass(frozen=True)
class EventLog:
    """What the writer chooses from: all events of a source, the types, and what is known of the events, which are numbered
    from 1: `free` are those that may carry a question, in the order of preference, `unfit` those for which no type fits,
    and why."""

    events: tuple[ProcedureEvent, ...]
    types: tuple[QuestionType, ...]
    free: tuple[int, ...] = ()
    unfit: Mapping[int, str] = field(default_factory=dict)


class _Draft(BaseModel):
    """A model's draft; or `fits` is false, with the reason in `why`, and no type of question fits the `events`."""

    fits: bool = True
    why: str = Field(default="", max_length=500)
    type: int = 0
    events: list[int] = Field(default=[], max_length=50)
    question: str = Field(default="", max_length=1000)
    groundtruth: str = Field(default="", max_length=2000)

    @field_validator("type", mode="before")
    @classmethod
    def _numbered(cls, given: object) -> object:
        """The number in "Type 2" and the like."""
        hit = re.search(r"\d+", given) if isinstance(given, str) else None
        return int(hit[0]) if hit is not None and len(hit[0]) < _DIGITS else given

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.fits and not (len(self.question) >= _SHORTEST and len(self.groundtruth) >= _SHORTEST):
            raise ValueError("a question and a groundtruth are expected, or fits: false")
        return self


class ChoiceDraft(_Draft):
    """A model's draft of a choice; `key` is the number of the right option, from 1."""

    options: list[str] = Field(default=[], max_length=10)
    key: int = 0


class FreeDraft(_Draft):
    """A model's draft of a free response."""

    answer: str = Field(default="", max_length=2000)


def how_many(events: Sequence[ProcedureEvent], settings: QuestionsSettings) -> int:
    """The number of questions for a source; 0 without events."""
    minutes = sum(event.end - event.start for event in events) / 60
    wanted = round(settings.per_event * len(events) + settings.per_minute * minutes)
    return min(settings.most, max(1, wanted)) if events else 0


class QuestionsStage(Stage[DraftQuestion]):
    """Drafts of questions. The writer sees the whole log and chooses the type and the events of each question, or says that
    no type fits an event; it is then asked about the others. Forms take turns. The letter of the right option is dealt
    here, before anything reads the options, each letter equally often. A draft that breaks a rule is requested again with
    the reason, and rejected after the last attempt.

    `named` are further prompts by name (see `QuestionsSettings.prompt`)."""

    name: ClassVar[str] = "questions"
    summary: ClassVar[str] = "Drafts of questions"
    after: ClassVar[tuple[str, ...]] = ("events",)
    version: ClassVar[int] = 2
    record = DraftQuestion
    settings = QuestionsSettings
    roles: ClassVar[tuple[str, ...]] = ("writer",)

    def __init__(self, types: Sequence[QuestionType], prompt: Path, named: Mapping[str, Path] | None = None) -> None:
        self.types = tuple(types)
        self.prompts = (prompt,)
        self._named = named or {}

    def prompts_of(self, project: Project) -> Sequence[Path]:
        return (drafting_prompt(project, self.prompts[0], self._named),)

    async def make(self, work: Work) -> Made[DraftQuestion]:
        settings, events = work.settings(QuestionsSettings), tuple(work.records("events", ProcedureEvent))
        asker = work.asker("writer", self.prompts_of(work.project)[0])
        made: list[DraftQuestion] = []
        refused: list[Refused] = []
        unfit, failed = dict[int, str](), Counter[int]()
        for planned in self.plan(work, events, settings):
            while len(unfit) < len(events):
                log = EventLog(events, self.types, preferred(events, made, unfit, failed), dict(unfit))
                one = await draft(asker, planned, log, settings, made)
                if isinstance(one, DraftQuestion):
                    made.append(one)
                    break
                refused.append(one)
                if one.kind != NO_FIT:
                    failed[log.free[0]] += 1
                    break
                numbers = [number for number, event in enumerate(events, start=1) if event.id in one.made_from]
                unfit |= dict.fromkeys(numbers, one.reason)
        return Made(made, refused, [_unused(unfit, events)] if unfit else [])

    def plan(self, work: Work, events: Sequence[ProcedureEvent], settings: QuestionsSettings) -> Iterator[Planned]:
        """The questions to be written for a source: their forms, and where the right options go."""
        rng, letters = work.generator("letters"), list[int]()
        for number in range(how_many(events, settings)):
            name = f"{work.unit}-q{number + 1:03d}"
            if int((number + 1) * settings.free_share) > int(number * settings.free_share):
                yield Planned(name, "free")
                continue
            letters = letters or [int(row) for row in rng.permutation(settings.options)]
            wrong = [int(row) + 1 for row in rng.permutation(settings.options - 1)]
            key = letters.pop()
            yield Planned(name, "mcq", (*wrong[:key], 0, *wrong[key:]))


def preferred(
    events: Sequence[ProcedureEvent],
    made: Sequence[DraftQuestion],
    unfit: Container[int],
    failed: Mapping[int, int] = MappingProxyType({}),
) -> tuple[int, ...]:
    """The numbers (from 1) of the events that may carry a question, in the order of preference: those with the fewest
    questions and `failed` drafts first, of these the ones farthest from any event with a question."""
    asked = Counter(name for draft_question in made for name in draft_question.made_from)
    taken = [number for number, event in enumerate(events, start=1) if asked[event.id]]

    def rank(number: int) -> tuple[int, int, int]:
        known = asked[events[number - 1].id] + failed.get(number, 0)
        return known, -min((abs(number - other) for other in taken), default=0), number

    return tuple(sorted((number for number in range(1, len(events) + 1) if number not in unfit), key=rank))


def drafting_prompt(project: Project, usual: Path, named: Mapping[str, Path]) -> Path:
    """The prompt that the project's settings of the stage `questions` choose."""
    return chosen_template(
        project,
        QuestionsStage.name,
        stage_settings(project, QuestionsStage.name, QuestionsSettings).prompt,
        usual,
        named,
    )


def _unused(unfit: Mapping[int, str], events: Sequence[ProcedureEvent]) -> str:
    return f"no type of question fits {len(unfit)} of {count_of(len(events), 'event')}, by the writer"


async def draft(
    asker: Asker,
    planned: Planned,
    log: EventLog,
    settings: QuestionsSettings,
    others: Sequence[DraftQuestion],
    version: int = 0,
) -> DraftQuestion | Refused:
    """Writes a question. Former versions of it used the draws before `version` · `tries`. The refusal `NO_FIT` says for
    which events (`made_from`) no type fits."""

    def check(reply: ChoiceDraft | FreeDraft, calls: tuple[Call, ...]) -> DraftQuestion | Refused | str:
        if not reply.fits:
            return _unfit(planned, reply, calls, log)
        about = _chosen(planned, reply, log)
        if isinstance(about, str):
            return about
        question = _question(planned, reply, about, calls, version)
        return question if isinstance(question, str) else valid(question, about[1], settings, others)

    form: type[ChoiceDraft | FreeDraft] = FreeDraft if planned.kind == "free" else ChoiceDraft
    values = {
        "types": log.types if planned.type is None else (planned.type,),
        "kind": planned.kind,
        "events": planned.events or log.events,
        "fixed": bool(planned.events),
        "free": log.free,
        "unfit": log.unfit,
        "options": settings.options,
    }
    draws = range(version * settings.tries, (version + 1) * settings.tries)
    events = tuple(event.id for event in planned.events)
    failed = Refused(id=planned.id, kind="no draft", reason="a question", made_from=events)
    return await asker.first_valid(form, values, draws, failed, check)


def _unfit(planned: Planned, reply: _Draft, calls: tuple[Call, ...], log: EventLog) -> Refused:
    """The refusal of the events that the reply names, else of the one that was to be asked about first."""
    listed = planned.events or log.events
    named = [number for number in reply.events if 0 < number <= len(listed) and number not in log.unfit]
    numbers = range(1, len(listed) + 1) if planned.events else named or log.free[:1]
    events = tuple(listed[number - 1].id for number in numbers)
    return Refused.of(planned.id, NO_FIT, collapse_spaces(reply.why) or "no reason given", "", events, calls)


_About = tuple[QuestionType, tuple[ProcedureEvent, ...]]


def _chosen(planned: Planned, reply: _Draft, log: EventLog) -> _About | str:
    """The type and the events of a draft, or the rule that they break."""
    if planned.type is not None and planned.events:
        return planned.type, planned.events
    if not 1 <= reply.type <= len(log.types):
        return f"type: a number from 1 to {len(log.types)} is expected"
    kind, numbers = log.types[reply.type - 1], sorted(set(reply.events))
    if not numbers or numbers[0] < 1 or numbers[-1] > len(log.events):
        return f"events: numbers of the log, 1 to {len(log.events)}, are expected"
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))) or len(numbers) > _MOST_EVENTS:
        return f"events: adjacent ones, at most {_MOST_EVENTS}, are expected"
    if len(numbers) < min(kind.events, len(log.events)):
        return f"events: {kind.events} or more for a question of type {reply.type} are expected"
    if any(number in log.unfit for number in numbers):
        return "events: one of them fits no type, as you said"
    return kind, tuple(log.events[number - 1] for number in numbers)


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
    planned: Planned, reply: ChoiceDraft | FreeDraft, about: _About, calls: tuple[Call, ...], version: int
) -> DraftQuestion | str:
    form: dict[str, object]
    kind, events = about
    flags = list(dict.fromkeys(flag for event in events for flag in event.flags))
    if isinstance(reply, ChoiceDraft):
        options = tuple(collapse_spaces(_LETTER.sub("", option)) for option in reply.options)
        if not 1 <= reply.key <= len(options):
            return f"key: a number from 1 to {len(options)} is expected"
        options, key = dealt(options, reply.key - 1, planned.order)
        if len(options) < _FEWEST:
            return "options: two or more are expected"
        form = {"options": options, "key": key}
        flags += [KEY_STANDS_OUT] if stands_out(options, key) else []
    else:
        form = {"answer": collapse_spaces(reply.answer)}
        if len(str(form["answer"])) < _FEWEST:
            return "answer: one to three sentences are expected"
    return DraftQuestion.model_validate(
        {
            "id": planned.id,
            "made_from": tuple(event.id for event in events),
            "calls": calls,
            "flags": tuple(flags),
            "source": events[0].source,
            "start": min(event.start for event in events),
            "end": max(event.end for event in events),
            "type": kind.name,
            "kind": planned.kind,
            "text": collapse_spaces(reply.question),
            "groundtruth": collapse_spaces(reply.groundtruth),
            "version": version,
            **form,
        }
    )


def dealt(options: tuple[str, ...], key: int, order: Sequence[int]) -> tuple[tuple[str, ...], int]:
    """The options in the order of a plan (see `Planned`), and the position of the right one. Options of another number stay
    as they are: a rule refuses them.

    >>> dealt(("right", "one", "two"), 0, (2, 0, 1))
    (('two', 'right', 'one'), 1)
    """
    if len(order) != len(options):
        return options, key
    listed = (options[key], *(option for row, option in enumerate(options) if row != key))
    return tuple(listed[row] for row in order), order.index(0)


def stands_out(options: Sequence[str], key: int) -> bool:
    """Whether the right option is the longest, and longer than 1.5 times the median length of the others.

    >>> stands_out(("clip", "the grasper", "hook"), 1), stands_out(("clip", "the grasper", "a very long distractor"), 1)
    (True, False)
    """
    others = [len(one) for number, one in enumerate(options) if number != key]
    return len(options[key]) > max(*others, _BY_FAR * max(1, median(others)))


_LETTER = re.compile(r"^\s*[(]?[A-Ja-j][.):]\s+")
_BY_FAR = 1.5
_SHORTEST = 10  # characters of a question
_FEWEST = 2
_DIGITS = 4
_MOST_EVENTS = 5  # of one question
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

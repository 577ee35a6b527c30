"""The stage `repair`: drafts that can be answered without the video are changed, screened again, and in the end
removed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from proctor.construction.pipeline.questions import (
    KEY_STANDS_OUT,
    Planned,
    QuestionsSettings,
    QuestionType,
    broken_rule,
    draft,
    stands_out,
)
from proctor.construction.pipeline.records import Call, DraftQuestion, ProcedureEvent, Refused
from proctor.construction.pipeline.screening import Screening, ScreenSettings, screen
from proctor.construction.pipeline.speech import content_words
from proctor.construction.pipeline.stage import Asker, Made, Stage, StageSettings, Work, stage_settings
from proctor.core import RefusalError, count_of

TO_CONFIRM = "new options: to be confirmed by a clinician"
REWORDED = "new question text: to be confirmed by a clinician"

_PROMPTS = Path(__file__).with_name("prompts")


class ReworkSettings(StageSettings):
    """At most `rounds` changes of a draft, each followed by screening: first its wrong options (of a free response the
    stem), then the whole draft from the same events. What is flagged after the last one is removed, or kept with its
    flags where `keep` says so. `similar` is the largest share of words of content that two options may share."""

    rounds: int = Field(default=2, ge=1, le=6)
    keep: bool = False
    similar: float = Field(default=0.8, gt=0, le=1)
    candidates: int = Field(default=6, ge=1, le=20)


class Reworked(DraftQuestion):
    """A draft as it stands after screening and repair, with its former versions, the oldest first, and the screening of
    this one."""

    former: tuple[DraftQuestion, ...] = ()
    screening: Screening


class _Options(BaseModel):
    distractors: list[str] = Field(min_length=1, max_length=9)


class _Stem(BaseModel):
    question: str = Field(min_length=10, max_length=1000)


class RepairStage(Stage[Reworked]):
    """Repairs what screening flagged. The stem and the right option of a choice stay word for word while its wrong
    options are replaced; the reference of a free response stays while its stem is."""

    name: ClassVar[str] = "repair"
    summary: ClassVar[str] = "Flagged drafts changed or removed"
    after: ClassVar[tuple[str, ...]] = ("events", "questions", "screen")
    whole: ClassVar[bool] = True
    record = Reworked
    settings = ReworkSettings
    roles: ClassVar[tuple[str, ...]] = ("writer", "screen", "judge")

    def __init__(self, types: Sequence[QuestionType], prompt: Path) -> None:
        self._types = {one.name: one for one in types}
        self._draft = prompt
        self.prompts = (prompt, _PROMPTS / "distractors.txt.j2", _PROMPTS / "stem.txt.j2", _PROMPTS / "blind.txt.j2")

    async def make(self, work: Work) -> Made[Reworked]:
        settings = work.settings(ReworkSettings)
        how = stage_settings(work.project, "screen", ScreenSettings)
        first = work.records("questions", DraftQuestion)
        screened = {one.question: one for one in work.records("screen", Screening)}
        current = {one.id: one for one in first}
        former: dict[str, list[DraftQuestion]] = {one.id: [] for one in first}
        refused: list[Refused] = []
        for number in range(settings.rounds):
            flagged = [one for one in current.values() if screened[one.id].flags]
            changed = []
            for one in flagged:
                new = await self._changed(work, one, list(current.values()), settings, again=number > 0)
                if isinstance(new, Refused):
                    refused.append(new)
                else:
                    former[one.id].append(one)
                    current[one.id] = new
                    changed.append(new)
            if not changed:
                break
            again, silent = await screen(work, list(current.values()), how)
            screened = {one.question: one for one in again}
            refused += [one for one in silent if one.id not in {old.id for old in refused}]
        made = []
        for one in current.values():
            found = screened[one.id]
            if found.flags and not settings.keep:
                reason = f"still {' and '.join(found.flags)} after {count_of(len(former[one.id]), 'change')}"
                refused.append(Refused.of(one.id, "removed", reason, one.text, one.made_from, one.calls))
                continue
            fields = one.model_dump() | {"former": former[one.id], "screening": found}
            fields |= {"flags": (*one.flags, *found.flags), "made_from": (one.id, found.id, *one.made_from)}
            made.append(Reworked.model_validate(fields))
        changed_ = sum(bool(former[one.id]) for one in made)
        return Made(
            made, refused, [f"{changed_} changed, {len(first) - len(made)} removed, {len(made)} of {len(first)} stay"]
        )

    async def _changed(
        self, work: Work, one: DraftQuestion, every: Sequence[DraftQuestion], settings: ReworkSettings, *, again: bool
    ) -> DraftQuestion | Refused:
        events = [event for event in work.records("events", ProcedureEvent) if event.id in one.made_from]
        rules = stage_settings(work.project, "questions", QuestionsSettings)
        if again:
            planned = Planned(one.id, self._types[one.type], one.kind, tuple(events))
            others = [other for other in every if other.id != one.id]
            return await draft(work.asker("writer", self._draft), planned, rules, others, one.version + 1)
        if one.kind == "mcq":
            return await _new_options(work.asker("writer", self.prompts[1]), one, every, events, rules, settings)
        return await _new_stem(work.asker("writer", self.prompts[2]), one, events, rules)


def candidates(one: DraftQuestion, every: Sequence[DraftQuestion], most: int) -> list[str]:
    """Right options of other questions of the same type that are wrong here: of other stretches, the ones nearest in
    length and nearest in words first. They are the most plausible wrong options, since each is right somewhere."""
    right = one.options[one.key or 0]
    own = content_words(right)

    def distance(other: str) -> tuple[float, str]:
        words = content_words(other)
        shared = len(words & own) / max(1, len(words | own))
        return abs(len(other) - len(right)) / max(len(other), len(right)) - shared, other

    others = {
        other.options[other.key]
        for other in every
        if other.key is not None
        and other.type == one.type
        and (other.source != one.source or other.end <= one.start or one.end <= other.start)
    }
    return sorted((text for text in others if text not in one.options), key=distance)[:most]


async def _new_options(
    asker: Asker,
    one: DraftQuestion,
    every: Sequence[DraftQuestion],
    events: Sequence[ProcedureEvent],
    rules: QuestionsSettings,
    settings: ReworkSettings,
) -> DraftQuestion | Refused:
    """The same question with other wrong options: right ones of other questions, adapted by a model."""
    key = one.key or 0
    right, reason, calls, found = one.options[key], "", list(one.calls), ""
    lent = candidates(one, every, settings.candidates)
    for number in range(rules.tries):
        wanted = len(one.options) - 1
        values: dict[str, object] = {
            "question": one.text,
            "right": right,
            "candidates": lent,
            "wanted": wanted,
            "refused": reason,
        }
        try:
            said, call = await asker.ask(_Options, one.id, values, draw=number)
        except RefusalError as error:
            return Refused.of(one.id, "no draft", "wrong options", str(error), one.made_from, tuple(calls))
        calls.append(call)
        found = said.model_dump_json()
        texts = [" ".join(text.split()) for text in said.distractors]
        options = (*texts[:key], right, *texts[key:])
        reason = (
            f"options: {len(texts)} instead of {wanted}"
            if len(texts) != wanted
            else too_like(right, texts, settings.similar)
        )
        if not reason:
            new = _as_version(one, calls, TO_CONFIRM, options=options)
            reason = broken_rule(new, events, rules)
            if not reason:
                return new
    return Refused.of(one.id, reason.partition(":")[0], reason, found, one.made_from, tuple(calls))


async def _new_stem(
    asker: Asker, one: DraftQuestion, events: Sequence[ProcedureEvent], rules: QuestionsSettings
) -> DraftQuestion | Refused:
    """The same question in other words, which give less away."""
    reason, calls, found = "", list(one.calls), ""
    for number in range(rules.tries):
        values: dict[str, object] = {"question": one.text, "answer": one.answer, "refused": reason}
        try:
            said, call = await asker.ask(_Stem, one.id, values, draw=number)
        except RefusalError as error:
            return Refused.of(one.id, "no draft", "a question", str(error), one.made_from, tuple(calls))
        calls.append(call)
        found = said.question
        new = _as_version(one, calls, REWORDED, text=" ".join(said.question.split()))
        reason = "the same question" if new.text == one.text else broken_rule(new, events, rules)
        if not reason:
            return new
    return Refused.of(one.id, reason.partition(":")[0], reason, found, one.made_from, tuple(calls))


def _as_version(one: DraftQuestion, calls: Sequence[Call], flag: str, **fields: object) -> DraftQuestion:
    new = one.model_copy(update={"calls": tuple(calls), "version": one.version + 1, **fields})
    stands = new.key is not None and stands_out(new.options, new.key)
    flags = [*(was for was in one.flags if was != KEY_STANDS_OUT), flag, *([KEY_STANDS_OUT] if stands else [])]
    return new.model_copy(update={"flags": tuple(dict.fromkeys(flags))})


def too_like(right: str, wrong: Sequence[str], most: float) -> str:
    """Which wrong option says what the right one does, or what another does ("" for none): by the share of their words
    of content.

    >>> too_like("Slide to the liver edge", ["Slide to the edge of the liver", "Rotate the probe"], 0.8)
    "options: too like another: 'Slide to the edge of the liver'"
    """
    seen = [content_words(right)]
    for text in wrong:
        words = content_words(text)
        if any(words | other and len(words & other) / len(words | other) > most for other in seen):
            return f"options: too like another: {text!r}"
        seen.append(words)
    return ""

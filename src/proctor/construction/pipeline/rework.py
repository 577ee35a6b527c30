"""The stage `repair`: drafts that can be answered without the video are changed and screened again, or removed."""

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
    draft,
    stands_out,
    valid,
)
from proctor.construction.pipeline.records import Call, DraftQuestion, ProcedureEvent, Refused
from proctor.construction.pipeline.screening import GIVEN_AWAY, Screening, ScreenSettings, screen
from proctor.construction.pipeline.speech import content_words
from proctor.construction.pipeline.stage import PROMPTS, Asker, Made, Stage, StageSettings, Work, stage_settings
from proctor.core import collapse_spaces, count_of

TO_CONFIRM = "new options: to be confirmed by a clinician"
REWORDED = "new question text: to be confirmed by a clinician"


class ReworkSettings(StageSettings):
    """A draft is changed at most `rounds` times, each followed by screening: first its wrong options (or the stem of a
    free response), then the whole draft, from the same events. A draft that is still flagged is removed, or kept with
    its flags if `keep` is set. `similar` is the largest share of content words that two options may have in common,
    `candidates` the number of wrong options from other questions in the prompt."""

    rounds: int = Field(default=2, ge=1, le=6)
    keep: bool = False
    similar: float = Field(default=0.8, gt=0, le=1)
    candidates: int = Field(default=6, ge=1, le=20)


class Reworked(DraftQuestion):
    """A draft after screening and repair, with its former versions, oldest first, and its own screening."""

    former: tuple[DraftQuestion, ...] = ()
    screening: Screening


class _Options(BaseModel):
    distractors: list[str] = Field(min_length=1, max_length=9)


class _Stem(BaseModel):
    question: str = Field(min_length=10, max_length=1000)


class RepairStage(Stage[Reworked]):
    """Repairs flagged drafts. New wrong options leave the stem and the right option of a choice unchanged; a new stem
    leaves the reference of a free response unchanged."""

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
        self.prompts = (prompt, *(PROMPTS / f"{name}.txt.j2" for name in ("distractors", "stem", "blind")))

    async def make(self, work: Work) -> Made[Reworked]:
        settings = work.settings(ReworkSettings)
        how = stage_settings(work.project, "screen", ScreenSettings)
        first = work.records("questions", DraftQuestion)
        screened = {one.question: one for one in work.records("screen", Screening)}
        current = {one.id: one for one in first}
        former: dict[str, list[DraftQuestion]] = {one.id: [] for one in first}
        spent = dict.fromkeys(current, tuple[Call, ...]())  # on screenings that later ones replaced
        refused: list[Refused] = []
        for number in range(settings.rounds):
            flagged = [one for one in current.values() if GIVEN_AWAY.intersection(screened[one.id].flags)]
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
            spent = {name: (*calls, *screened[name].calls) for name, calls in spent.items()}
            refused += [one for one in silent if one.id not in {old.id for old in refused}]
        made = []
        for one in current.values():
            found = screened[one.id]
            calls = _behind([*former[one.id], one], spent[one.id])
            given_away = [flag for flag in found.flags if flag in GIVEN_AWAY]
            if given_away and not settings.keep:
                reason = f"still {' and '.join(given_away)} after {count_of(len(former[one.id]), 'change')}"
                refused.append(Refused.of(one.id, "removed", reason, one.text, one.made_from, calls))
                continue
            fields = one.model_dump() | {"calls": calls, "former": former[one.id], "screening": found}
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
            lent = candidates(one, every, settings.candidates)
            asker = work.asker("writer", self.prompts[1])
            return await _new_options(asker, one, lent, events, rules, settings.similar)
        return await _new_stem(work.asker("writer", self.prompts[2]), one, events, rules)


def _behind(versions: Sequence[DraftQuestion], more: Sequence[Call]) -> tuple[Call, ...]:
    """The calls behind all versions of a draft, and more, each once."""
    return tuple(dict.fromkeys([*(call for one in versions for call in one.calls), *more]))


def candidates(one: DraftQuestion, every: Sequence[DraftQuestion], most: int) -> list[str]:
    """Plausible wrong options: right ones of other questions of the same type about other stretches, those of similar
    length and words first."""
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
    candidates: Sequence[str],
    events: Sequence[ProcedureEvent],
    rules: QuestionsSettings,
    similar: float,
) -> DraftQuestion | Refused:
    """The same question with other wrong options, which a model adapts from candidates."""
    key, wanted = one.key or 0, len(one.options) - 1
    right = one.options[key]

    def check(reply: _Options, calls: tuple[Call, ...]) -> DraftQuestion | str:
        wrong = [collapse_spaces(text) for text in reply.distractors]
        if len(wrong) != wanted:
            return f"options: {len(wrong)} instead of {wanted}"
        new = _as_version(one, calls, TO_CONFIRM, options=(*wrong[:key], right, *wrong[key:]))
        return too_like(right, wrong, similar) or valid(new, events, rules)

    values = {"question": one.text, "right": right, "candidates": candidates, "wanted": wanted}
    return await asker.first_valid(_Options, values, range(rules.tries), _failed(one, "wrong options"), check)


async def _new_stem(
    asker: Asker, one: DraftQuestion, events: Sequence[ProcedureEvent], rules: QuestionsSettings
) -> DraftQuestion | Refused:
    """The same question in other words, which reveal less."""

    def check(reply: _Stem, calls: tuple[Call, ...]) -> DraftQuestion | str:
        new = _as_version(one, calls, REWORDED, text=collapse_spaces(reply.question))
        return "the same question" if new.text == one.text else valid(new, events, rules)

    values, failed = {"question": one.text, "answer": one.answer}, _failed(one, "a question")
    return await asker.first_valid(_Stem, values, range(rules.tries), failed, check, shown=lambda reply: reply.question)


def _failed(one: DraftQuestion, expected: str) -> Refused:
    return Refused(id=one.id, kind="no draft", reason=expected, made_from=one.made_from, calls=one.calls)


def _as_version(one: DraftQuestion, calls: tuple[Call, ...], flag: str, **fields: object) -> DraftQuestion:
    new = one.model_copy(update={"calls": calls, "version": one.version + 1, **fields})
    stands = new.key is not None and stands_out(new.options, new.key)
    flags = [*(was for was in one.flags if was != KEY_STANDS_OUT), flag, *([KEY_STANDS_OUT] if stands else [])]
    return new.model_copy(update={"flags": tuple(dict.fromkeys(flags))})


def too_like(right: str, wrong: Sequence[str], most: float) -> str:
    """The first wrong option that resembles the right one or an earlier one ("" for none), by the share of common
    content words.

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

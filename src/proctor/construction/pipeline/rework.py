"""The stage `repair`: drafts that can be answered without the video are changed and screened again, or removed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from proctor.construction.pipeline.draft_options import candidates, in_blocks, too_like
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
from proctor.construction.pipeline.stage import PROMPTS, Asker, Made, Stage, StageSettings, Work, stage_settings
from proctor.core import collapse_spaces, count_of

TO_CONFIRM = "new options: to be confirmed by a clinician"
REWORDED = "new question text: to be confirmed by a clinician"


class ReworkSettings(StageSettings):
    """A draft is changed at most `rounds` times, each followed by screening: first its wrong options (or the stem of a
    free response), then the whole draft, from the same events. A draft that is still flagged is removed, or kept with
    its flags if `keep` is set. `similar` is the largest similarity of two options (see `alike`), `candidates` the number of
    wrong options from other questions in the prompt. With `blocks`, choices first exchange their right answers in blocks,
    without a model (see `in_blocks`), and all are screened again."""

    rounds: int = Field(default=2, ge=1, le=6)
    keep: bool = False
    similar: float = Field(default=0.8, gt=0, le=1)
    candidates: int = Field(default=6, ge=1, le=20)
    blocks: bool = False


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
        self._types = {question_type.name: question_type for question_type in types}
        self._draft = prompt
        self.prompts = (prompt, *(PROMPTS / f"{name}.txt.j2" for name in ("distractors", "stem", "blind")))

    async def make(self, work: Work) -> Made[Reworked]:
        settings = work.settings(ReworkSettings)
        how = stage_settings(work.project, "screen", ScreenSettings)
        first = work.records("questions", DraftQuestion)
        screened = {record.question: record for record in work.records("screen", Screening)}
        current = {draft_question.id: draft_question for draft_question in first}
        former: dict[str, list[DraftQuestion]] = {draft_question.id: [] for draft_question in first}
        spent = dict.fromkeys(current, tuple[Call, ...]())  # on screenings that later ones replaced
        refused: list[Refused] = []
        notes: list[str] = []
        if settings.blocks:
            exchanged, note = in_blocks(first, work.project.settings.seed)
            notes.append(note)
            for name, fields in exchanged.items():
                former[name].append(current[name])
                current[name] = _as_version(current[name], current[name].calls, TO_CONFIRM, **fields)
            rescreened, refused = await screen(work, list(current.values()), how) if exchanged else ([], [])
            screened |= {screening.question: screening for screening in rescreened}
            spent |= {screening.question: screening.calls for screening in rescreened}
        for number in range(settings.rounds):
            flagged = [
                draft_question
                for draft_question in current.values()
                if GIVEN_AWAY.intersection(screened[draft_question.id].flags)
            ]
            changed = []
            for draft_question in flagged:
                new = await self._changed(work, draft_question, list(current.values()), settings, again=number > 0)
                if isinstance(new, Refused):
                    refused.append(new)
                else:
                    former[draft_question.id].append(draft_question)
                    current[draft_question.id] = new
                    changed.append(new)
            if not changed:
                break
            again, silent = await screen(work, list(current.values()), how)
            screened = {screening.question: screening for screening in again}
            spent = {name: (*calls, *screened[name].calls) for name, calls in spent.items()}
            refused += [one for one in silent if one.id not in {old.id for old in refused}]
        made = []
        for draft_question in current.values():
            found = screened[draft_question.id]
            calls = _behind([*former[draft_question.id], draft_question], spent[draft_question.id])
            given_away = [flag for flag in found.flags if flag in GIVEN_AWAY]
            if given_away and not settings.keep:
                reason = f"still {' and '.join(given_away)} after {count_of(len(former[draft_question.id]), 'change')}"
                refused.append(
                    Refused.of(
                        draft_question.id, "removed", reason, draft_question.text, draft_question.made_from, calls
                    )
                )
                continue
            fields = draft_question.model_dump() | {
                "calls": calls,
                "former": former[draft_question.id],
                "screening": found,
            }
            fields |= {
                "flags": (*draft_question.flags, *found.flags),
                "made_from": (draft_question.id, found.id, *draft_question.made_from),
            }
            made.append(Reworked.model_validate(fields))
        changed_ = sum(bool(former[reworked.id]) for reworked in made)
        return Made(
            made,
            refused,
            [*notes, f"{changed_} changed, {len(first) - len(made)} removed, {len(made)} of {len(first)} stay"],
        )

    async def _changed(
        self,
        work: Work,
        draft_question: DraftQuestion,
        every: Sequence[DraftQuestion],
        settings: ReworkSettings,
        *,
        again: bool,
    ) -> DraftQuestion | Refused:
        events = [event for event in work.records("events", ProcedureEvent) if event.id in draft_question.made_from]
        rules = stage_settings(work.project, "questions", QuestionsSettings)
        if again:
            planned = Planned(draft_question.id, self._types[draft_question.type], draft_question.kind, tuple(events))
            others = [other for other in every if other.id != draft_question.id]
            return await draft(work.asker("writer", self._draft), planned, rules, others, draft_question.version + 1)
        if draft_question.kind == "mcq":
            lent = candidates(draft_question, every, settings.candidates, similar=settings.similar)
            asker = work.asker("writer", self.prompts[1])
            return await _new_options(asker, draft_question, lent, events, rules, settings.similar)
        return await _new_stem(work.asker("writer", self.prompts[2]), draft_question, events, rules)


def _behind(versions: Sequence[DraftQuestion], more: Sequence[Call]) -> tuple[Call, ...]:
    """The calls behind all versions of a draft, and more, each once."""
    return tuple(dict.fromkeys([*(call for version in versions for call in version.calls), *more]))


async def _new_options(
    asker: Asker,
    draft_question: DraftQuestion,
    candidates: Sequence[str],
    events: Sequence[ProcedureEvent],
    rules: QuestionsSettings,
    similar: float,
) -> DraftQuestion | Refused:
    """The same question with other wrong options, which a model adapts from candidates."""
    key, wanted = draft_question.key or 0, len(draft_question.options) - 1
    right = draft_question.options[key]

    def check(reply: _Options, calls: tuple[Call, ...]) -> DraftQuestion | str:
        wrong = [collapse_spaces(text) for text in reply.distractors]
        if len(wrong) != wanted:
            return f"options: {len(wrong)} instead of {wanted}"
        new = _as_version(draft_question, calls, TO_CONFIRM, options=(*wrong[:key], right, *wrong[key:]))
        return too_like(right, wrong, similar) or valid(new, events, rules)

    values = {"question": draft_question.text, "right": right, "candidates": candidates, "wanted": wanted}
    return await asker.first_valid(
        _Options, values, range(rules.tries), _failed(draft_question, "wrong options"), check
    )


async def _new_stem(
    asker: Asker, draft_question: DraftQuestion, events: Sequence[ProcedureEvent], rules: QuestionsSettings
) -> DraftQuestion | Refused:
    """The same question in other words, which reveal less."""

    def check(reply: _Stem, calls: tuple[Call, ...]) -> DraftQuestion | str:
        new = _as_version(draft_question, calls, REWORDED, text=collapse_spaces(reply.question))
        return "the same question" if new.text == draft_question.text else valid(new, events, rules)

    values, failed = (
        {"question": draft_question.text, "answer": draft_question.answer},
        _failed(draft_question, "a question"),
    )
    return await asker.first_valid(_Stem, values, range(rules.tries), failed, check, shown=lambda reply: reply.question)


def _failed(draft_question: DraftQuestion, expected: str) -> Refused:
    return Refused(
        id=draft_question.id,
        kind="no draft",
        reason=expected,
        made_from=draft_question.made_from,
        calls=draft_question.calls,
    )


def _as_version(draft_question: DraftQuestion, calls: tuple[Call, ...], flag: str, **fields: object) -> DraftQuestion:
    new = draft_question.model_copy(update={"calls": calls, "version": draft_question.version + 1, **fields})
    stands = new.key is not None and stands_out(new.options, new.key)
    flags = [
        *(was for was in draft_question.flags if was != KEY_STANDS_OUT),
        flag,
        *([KEY_STANDS_OUT] if stands else []),
    ]
    return new.model_copy(update={"flags": tuple(dict.fromkeys(flags))})

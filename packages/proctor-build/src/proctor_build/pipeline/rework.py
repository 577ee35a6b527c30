"""The stage `repair`: drafts that can be answered without the video are changed and screened again, or removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, Field

from proctor.core import collapse_spaces, count_of
from proctor_build.pipeline.draft_options import candidates, in_blocks, too_like
from proctor_build.pipeline.project import Project
from proctor_build.pipeline.questions import (
    KEY_STANDS_OUT,
    EventLog,
    Planned,
    QuestionsSettings,
    QuestionType,
    draft,
    drafting_prompt,
    stands_out,
    valid,
)
from proctor_build.pipeline.records import Call, DraftQuestion, ProcedureEvent, Refused
from proctor_build.pipeline.screening import GIVEN_AWAY, Screening, ScreenSettings, screen
from proctor_build.pipeline.stage import (
    PROMPTS,
    Asker,
    Made,
    Stage,
    StageSettings,
    Work,
    chosen_template,
    stage_settings,
)

TO_CONFIRM = "new options: to be confirmed by a clinician"
REWORDED = "new question text: to be confirmed by a clinician"
LATE = "flagged after the last round of changes: not reworked"
_LATE_ROUNDS = 2  # beyond the settings' rounds, for drafts that are flagged late


class ReworkSettings(StageSettings):
    """A draft is changed at most `rounds` times, each followed by screening: first its wrong options (or the stem of a
    free response), then the whole draft, from the same events. A draft that is still flagged is removed, or kept with
    its flags if `keep` is set; one that was never changed is not removed. `similar` is the largest share of content words
    that two options may have in common, `candidates` the number of wrong options from other questions in the prompt.
    `prompt` is another prompt for wrong options: a name of the kind (`paper`), or a template inside the project folder.
    With `blocks`, choices first exchange their right answers in blocks, without a model (see `in_blocks`), and all are
    screened again."""

    rounds: int = Field(default=2, ge=1, le=6)
    keep: bool = False
    similar: float = Field(default=0.8, gt=0, le=1)
    candidates: int = Field(default=6, ge=1, le=20)
    prompt: str = ""
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
    leaves the reference of a free response unchanged. Drafts that are flagged for the first time after others were changed
    have their turn, too; what is flagged after the last round stays, with a flag.

    `named_drafts` and `named` are further prompts by name, for drafts and for wrong options."""

    name: ClassVar[str] = "repair"
    summary: ClassVar[str] = "Flagged drafts changed or removed"
    after: ClassVar[tuple[str, ...]] = ("events", "questions", "screen")
    whole: ClassVar[bool] = True
    version: ClassVar[int] = 2
    record = Reworked
    settings = ReworkSettings
    roles: ClassVar[tuple[str, ...]] = ("writer", "screen", "judge")

    def __init__(
        self,
        types: Sequence[QuestionType],
        prompt: Path,
        *,
        named_drafts: Mapping[str, Path] | None = None,
        named: Mapping[str, Path] | None = None,
    ) -> None:
        self._types = {question_type.name: question_type for question_type in types}
        self._named_drafts, self._named = named_drafts or {}, named or {}
        self.prompts = (prompt, *(PROMPTS / f"{name}.txt.j2" for name in ("distractors", "stem", "blind")))

    def prompts_of(self, project: Project) -> Sequence[Path]:
        draft_prompt, options, *others = self.prompts
        chosen = stage_settings(project, self.name, ReworkSettings).prompt
        return (
            drafting_prompt(project, draft_prompt, self._named_drafts),
            chosen_template(project, self.name, chosen, options, self._named),
            *others,
        )

    async def make(self, work: Work) -> Made[Reworked]:
        settings = work.settings(ReworkSettings)
        how = stage_settings(work.project, "screen", ScreenSettings)
        first = work.records("questions", DraftQuestion)
        drafts = _Drafts.of(first, work.records("screen", Screening))
        notes: list[str] = []
        if settings.blocks:
            exchanged, note = in_blocks(first, work.project.settings.seed)
            notes.append(note)
            for name, fields in exchanged.items():
                old = drafts.current[name]
                drafts.put(old, _as_version(old, old.calls, TO_CONFIRM, **fields))
            if exchanged:
                drafts.screened_again(*await screen(work, list(drafts.current.values()), how))
        for _ in range(settings.rounds + _LATE_ROUNDS):
            flagged = [one for one in drafts.given_away() if drafts.tried[one.id] < settings.rounds]
            if not flagged:
                break
            changed = False
            for one in flagged:
                again = drafts.tried[one.id] > 0
                every = list(drafts.current.values())
                changed |= drafts.take(one, await self._changed(work, one, every, settings, again=again))
            if changed:
                drafts.screened_again(*await screen(work, list(drafts.current.values()), how))
        made, refused = drafts.outcome(keep=settings.keep)
        changed_ = sum(bool(reworked.former) for reworked in made)
        gone = len(first) - len(made)
        return Made(made, refused, [*notes, f"{changed_} changed, {gone} removed, {len(made)} of {len(first)} stay"])

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
        drafting, options, stem, *_ = self.prompts_of(work.project)
        if again:
            kind, key, wrong = self._types[draft_question.type], draft_question.key or 0, len(draft_question.options)
            order = (*range(1, key + 1), 0, *range(key + 1, wrong)) if draft_question.options else ()  # the same letter
            planned = Planned(draft_question.id, draft_question.kind, order, kind, tuple(events))
            others = [other for other in every if other.id != draft_question.id]
            log = EventLog(planned.events, (kind,))
            asker = work.asker("writer", drafting)
            return await draft(asker, planned, log, rules, others, draft_question.version + 1)
        if draft_question.kind == "mcq":
            lent = candidates(draft_question, every, settings.candidates, similar=settings.similar)
            asker = work.asker("writer", options)
            return await _new_options(asker, draft_question, lent, events, rules, settings.similar)
        return await _new_stem(work.asker("writer", stem), draft_question, events, rules)


@dataclass
class _Drafts:
    """The drafts under repair by id: as they are now, their former versions, their screening, the calls of screenings that
    later ones replaced, how often a change was tried, and what was refused."""

    current: dict[str, DraftQuestion]
    screened: dict[str, Screening]
    former: dict[str, list[DraftQuestion]]
    spent: dict[str, tuple[Call, ...]]
    tried: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)

    @classmethod
    def of(cls, drafts: Sequence[DraftQuestion], screened: Sequence[Screening]) -> Self:
        current = {draft_question.id: draft_question for draft_question in drafts}
        former: dict[str, list[DraftQuestion]] = {name: [] for name in current}
        return cls(current, {one.question: one for one in screened}, former, dict.fromkeys(current, ()))

    def given_away(self) -> list[DraftQuestion]:
        """The drafts that the text gives away."""
        return [one for one in self.current.values() if GIVEN_AWAY.intersection(self.screened[one.id].flags)]

    def take(self, old: DraftQuestion, new: DraftQuestion | Refused) -> bool:
        """Replaces a draft by its change; returns whether there is one."""
        self.tried[old.id] += 1
        if isinstance(new, Refused):
            self.refused.append(new)
            return False
        self.put(old, new)
        return True

    def put(self, old: DraftQuestion, new: DraftQuestion) -> None:
        """Replaces a draft without counting it as a change that was tried."""
        self.former[old.id].append(old)
        self.current[old.id] = new

    def screened_again(self, screened: Sequence[Screening], silent: Sequence[Refused]) -> None:
        """Takes the screenings of all drafts, and the answers that models declined to give."""
        self.screened = {screening.question: screening for screening in screened}
        self.spent = {name: (*calls, *self.screened[name].calls) for name, calls in self.spent.items()}
        self.refused += [one for one in silent if one.id not in {old.id for old in self.refused}]

    def outcome(self, *, keep: bool) -> tuple[list[Reworked], list[Refused]]:
        """The drafts that stay, and what was refused; a draft that is given away is removed if a change of it was tried,
        unless all are to `keep`."""
        made: list[Reworked] = []
        refused = list(self.refused)
        for name, draft_question in self.current.items():
            found, former = self.screened[name], self.former[name]
            calls = _behind([*former, draft_question], self.spent[name])
            given_away = [flag for flag in found.flags if flag in GIVEN_AWAY]
            late = [LATE] if given_away and not self.tried[name] else []
            if given_away and not late and not keep:
                changes = (
                    f"after {count_of(len(former), 'change')}" if former else "and every change of it broke a rule"
                )
                reason = f"still {' and '.join(given_away)} {changes}"
                refused.append(
                    Refused.of(name, "removed", reason, draft_question.text, draft_question.made_from, calls)
                )
                continue
            fields = {
                "calls": calls,
                "former": former,
                "screening": found,
                "flags": (*draft_question.flags, *found.flags, *late),
                "made_from": (name, found.id, *draft_question.made_from),
            }
            made.append(Reworked.model_validate(draft_question.model_dump() | fields))
        return made, refused


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

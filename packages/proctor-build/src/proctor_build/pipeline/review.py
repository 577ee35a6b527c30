"""The stage `review`: questions as readers settled them, from the file of `proctor review export --what consensus`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from proctor.core import Region, collapse_spaces, content_hash, count_of
from proctor.core.formats import MOST_OPTIONS
from proctor_build.pipeline.consensus import (
    ConsensusLine,
    ConsensusSettings,
    ReviewedBody,
    ReviewPart,
    consensus_files,
    read_consensus,
    settled_lines,
)
from proctor_build.pipeline.questions import KEY_STANDS_OUT, QuestionsSettings, broken_rule, stands_out
from proctor_build.pipeline.records import DraftQuestion, ProcedureEvent, Refused
from proctor_build.pipeline.rework import Reworked
from proctor_build.pipeline.screening import Screening, ScreenSettings, screen
from proctor_build.pipeline.stage import PROMPTS, Made, Stage, Work, stage_settings

REVIEW, REJECTED = "review", "rejected in review"
_LONGEST = 10_000
_BY_ORGANISER = "changed in the review before it was read"


class SettledQuestion(Reworked):
    """A question that readers accepted, or edited: a new version with the reason, screened again. The readers' names
    stay in the review."""

    settled: Literal["accepted", "edited"]
    by: Literal["review"] = "review"
    reason: str = ""


class ReviewStage(Stage[SettledQuestion]):
    """Waits until the current version of every question is settled. Accepted questions go on, edited ones as a new
    version; rejected ones are refused with the reason. This settles flags for clinicians; those of screening stay."""

    name: ClassVar[str] = REVIEW
    summary: ClassVar[str] = "Questions as readers settled them"
    after: ClassVar[tuple[str, ...]] = ("events", "repair")
    whole: ClassVar[bool] = True
    optional: ClassVar[bool] = True
    record = SettledQuestion
    settings = ConsensusSettings
    roles: ClassVar[tuple[str, ...]] = ("screen", "judge")
    prompts = (PROMPTS / "blind.txt.j2",)

    def reads(self, work: Work) -> Sequence[Path]:
        return consensus_files(work, work.settings(ConsensusSettings).consensus)

    async def make(self, work: Work) -> Made[SettledQuestion]:
        questions = work.records("repair", Reworked)
        found, others = _settled(work, questions, self.reads(work))
        new = {
            question.id: _as_settled(question, found[question.id])
            for question in questions
            if not found[question.id].rejected
        }
        edited = [settled_question for settled_question in new.values() if settled_question.settled == "edited"]
        silent: list[Refused] = []
        if edited:
            how = stage_settings(work.project, "screen", ScreenSettings)
            screened, silent = await screen(work, edited, how, list(new.values()))
            new |= {one.id: _screened(work, one, each) for one, each in zip(edited, screened, strict=True)}
        rejected = [
            Refused.of(question.id, REJECTED, found[question.id].why, question.text, question.made_from, question.calls)
            for question in questions
            if found[question.id].rejected
        ]
        notes = [
            f"{len(new) - len(edited)} accepted, {len(edited)} edited and screened again, {len(rejected)} rejected"
        ]
        if others:
            notes.append(f"{count_of(others, 'other question')} of the study left out, written there or gone from here")
        return Made(list(new.values()), [*rejected, *silent], notes)


def question_version(draft_question: DraftQuestion, region: Region | None) -> str:
    """A short hash of what readers settle: the stretch of video, the words, and the right option. It does not depend on
    the order of the options, which the split changes."""
    right = draft_question.answer if draft_question.key is None else draft_question.options[draft_question.key]
    shown = region.model_dump(mode="json") if region is not None else None
    texts = [draft_question.text, *sorted(draft_question.options), right, draft_question.groundtruth]
    return content_hash([draft_question.source, draft_question.start, draft_question.end, shown, *texts])[:16]


# -- the file


class _Body(ReviewedBody):
    stem: str = Field(min_length=1, max_length=_LONGEST)
    options: tuple[str, ...] = Field(default=(), max_length=MOST_OPTIONS)
    key: int | None = Field(default=None, ge=0, strict=True)
    answer: str = Field(default="", max_length=_LONGEST)
    explanation: str = Field(default="", max_length=_LONGEST)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        texts = [collapse_spaces(option) for option in self.options]
        if not self.stem.split() or (not texts and not self.answer.split()):
            raise ValueError("a stem with options and a key, or with an answer, is expected")
        if texts and (len(texts) < 2 or not all(texts) or len({*texts}) < len(texts)):
            raise ValueError("two or more different options are expected")
        if texts and (self.key is None or self.key >= len(texts)):
            raise ValueError("the position of the right option as key is expected")
        return self


class _Payload(ReviewPart):
    decision: Literal["accept", "edit", "reject"]
    reason: str = Field(default="", max_length=_LONGEST)


class _Line(ConsensusLine):
    form: Literal["question"]
    payload: _Payload | None
    body: _Body

    @property
    def rejected(self) -> bool:
        return self.payload is not None and self.payload.decision == "reject"

    @property
    def why(self) -> str:
        """The reasons of the settled reading and of the adjudication."""
        return "; ".join(
            dict.fromkeys(
                filter(None, map(collapse_spaces, (self.payload.reason if self.payload else "", self.reason)))
            )
        )


def _settled(work: Work, questions: Sequence[Reworked], files: Sequence[Path]) -> tuple[Mapping[str, _Line], int]:
    """The line that settles each current question, and the number of other accepted ones. Raises `WaitingError` if one
    is open."""
    regions = {source.id: source.region for source in work.sources}
    versions = {question.id: question_version(question, regions[question.source]) for question in questions}
    lines = read_consensus(files, _Line)
    found = settled_lines(work, work.settings(ConsensusSettings).consensus, "question", versions, lines)
    accepted = {line.item for line in lines if line.payload is not None and not line.rejected}
    return found, len(accepted - versions.keys())


# -- the questions


def _as_settled(reworked: Reworked, line: _Line) -> SettledQuestion:
    """The question in the settled words. An edit without an explanation keeps the former one."""
    body = line.body
    words: dict[str, object] = {
        "kind": "mcq" if body.options else "free",
        "text": collapse_spaces(body.stem),
        "options": tuple(map(collapse_spaces, body.options)),
        "key": body.key if body.options else None,
        "answer": "" if body.options else collapse_spaces(body.answer),
        "groundtruth": collapse_spaces(body.explanation) or reworked.groundtruth,
    }
    plain = reworked.model_dump()
    new = reworked.model_copy(update=words)
    if question_version(new, None) == question_version(reworked, None):
        flags = tuple(flag for flag in reworked.flags if flag in {KEY_STANDS_OUT, *reworked.screening.flags})
        fields = plain | {"flags": flags, "settled": "accepted", "reason": line.why}
    else:
        before = DraftQuestion.model_validate(reworked.model_dump(include=set(DraftQuestion.model_fields)))
        fields = plain | words | {"calls": (), "version": reworked.version + 1, "former": (*reworked.former, before)}
        fields |= {"settled": "edited", "reason": line.why or _BY_ORGANISER}
    return SettledQuestion.model_validate(fields)


def _screened(work: Work, question: SettledQuestion, found: Screening) -> SettledQuestion:
    """An edited question with its screening and the flags of its new words."""
    events = [event for event in work.records("events", ProcedureEvent) if event.id in question.made_from]
    broken = broken_rule(question, events, stage_settings(work.project, "questions", QuestionsSettings))
    flags = [*found.flags, *([f"edited against a rule: {str(broken).partition(':')[0]}"] if broken else [])]
    flags += [KEY_STANDS_OUT] if question.key is not None and stands_out(question.options, question.key) else []
    return question.model_copy(update={"screening": found, "flags": tuple(flags)})

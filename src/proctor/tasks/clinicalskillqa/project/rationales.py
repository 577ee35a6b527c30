"""The stages `rationales` and `refine`: why frames stand in their order, by one model, and put clearly by another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from proctor.construction.pipeline import Call, Made, Record, Refused, Stage, StageSettings, Work, several
from proctor.core import RefusalError
from proctor.tasks.clinicalskillqa.project.frames import OrderedFrames, pictures_of
from proctor.tasks.clinicalskillqa.project.guards import CitedSentence, added, rationale_fault

PROMPTS = Path(__file__).with_name("prompts")
AS_DRAFTED = "as drafted"


class RationalesSettings(StageSettings):
    """How often a rationale is asked for, each time with what was wrong with the last one."""

    tries: int = Field(default=3, ge=1, le=10)


class RefineSettings(StageSettings):
    """`new_words` is the number of words of content that a refined rationale may have and its draft has not."""

    new_words: int = Field(default=2, ge=0, le=20)


class DraftRationale(Record):
    """The rationale of an instance, as it stands after a stage."""

    source: str
    instance: str
    sentences: tuple[CitedSentence, ...]


class _SaidSentence(BaseModel):
    text: str = Field(min_length=5, max_length=800)
    frames: list[str] = Field(max_length=26)


class _Said(BaseModel):
    sentences: list[_SaidSentence] = Field(min_length=1, max_length=26)


class _SaidWithOrder(_Said):
    order: list[str] = Field(min_length=2, max_length=26)


class RationalesStage(Stage[DraftRationale]):
    """A model sees the labelled frames and the right order, and says why. What breaks a rule is asked for again, with
    the reason, and refused in the end."""

    name = "rationales"
    summary = "Why frames stand in their order"
    after: ClassVar[tuple[str, ...]] = ("frames",)
    record = DraftRationale
    settings = RationalesSettings
    roles: ClassVar[tuple[str, ...]] = ("writer",)
    prompts = (PROMPTS / "rationale.txt.j2",)

    async def make(self, work: Work) -> Made[DraftRationale]:
        every = await several(lambda one: self._one(work, one), work.records("frames", OrderedFrames))
        return Made(
            [one for one in every if isinstance(one, DraftRationale)],
            [one for one in every if isinstance(one, Refused)],
        )

    async def _one(self, work: Work, one: OrderedFrames) -> DraftRationale | Refused:
        asker, name = work.asker("writer", self.prompts[0]), f"{one.id}-draft"
        shown = await asyncio.to_thread(pictures_of, work.project, one, sorted(one.order))
        values, reason, found, calls = asked_of(work, one), "", "", list[Call]()
        for draw in range(work.settings(RationalesSettings).tries):
            try:
                said, call = await asker.ask(
                    _SaidWithOrder, name, {**values, "refused": reason}, pictures=shown, draw=draw
                )
            except RefusalError as error:
                return Refused.of(name, "no draft", "a rationale", str(error), (one.id,), tuple(calls))
            calls.append(call)
            sentences = _cited(said, one.order)
            reason = _another_order(said.order, one.order) or rationale_fault(sentences, one.order)
            if not reason:
                return _record(name, one, sentences, (one.id,), tuple(calls))
            found = said.model_dump_json()
        return Refused.of(name, reason.partition(":")[0], reason, found, (one.id,), tuple(calls))


class RefineStage(Stage[DraftRationale]):
    """A second model makes the draft clear and takes out what is said twice. Where it claims more than the draft, the
    draft stands."""

    name = "refine"
    summary = "The same, put clearly"
    after: ClassVar[tuple[str, ...]] = ("frames", "rationales")
    record = DraftRationale
    settings = RefineSettings
    roles: ClassVar[tuple[str, ...]] = ("refiner",)
    prompts = (PROMPTS / "refine.txt.j2",)

    async def make(self, work: Work) -> Made[DraftRationale]:
        frames = {one.id: one for one in work.records("frames", OrderedFrames)}
        drafts = work.records("rationales", DraftRationale)
        every = await several(lambda one: self._one(work, frames[one.instance], one), drafts)
        writers = {call.model for one in drafts for call in one.calls}
        same = sorted(writers & {one.name for one in work.project.clients("refiner")})
        notes = [f"{same[0]} refined its own drafts: another model is meant"] if same else []
        return Made([one for one, _ in every], [one for _, one in every if one is not None], notes)

    async def _one(
        self, work: Work, one: OrderedFrames, draft: DraftRationale
    ) -> tuple[DraftRationale, Refused | None]:
        asker, name = work.asker("refiner", self.prompts[0]), f"{one.id}-text"
        shown = await asyncio.to_thread(pictures_of, work.project, one, list(one.order))
        values = {**asked_of(work, one), "sentences": draft.sentences}
        calls: tuple[Call, ...] = ()
        try:
            said, call = await asker.ask(_Said, name, values, pictures=shown)
            calls, sentences = (call,), _cited(said, one.order)
            reason = rationale_fault(sentences, one.order)
            reason = reason or added(sentences, draft.sentences, work.settings(RefineSettings).new_words)
            kind, found = reason.partition(":")[0], said.model_dump_json()
        except RefusalError as error:
            sentences, kind, reason, found = (), "no draft", "a refined rationale", str(error)
        made_from = (draft.id,)
        if not reason:
            return _record(name, one, sentences, made_from, calls), None
        stands = _record(name, one, draft.sentences, made_from, draft.calls).model_copy(update={"flags": (AS_DRAFTED,)})
        return stands, Refused.of(name, kind, reason, found, made_from, calls)


def asked_of(work: Work, one: OrderedFrames) -> Mapping[str, object]:
    """What a prompt says of an instance: the procedure, the labels as they are shown, and the right order."""
    source = next(each for each in work.project.settings.sources if each.id == one.source)
    return {"procedure": source.procedure or one.scenario or "", "labels": sorted(one.order), "order": one.order}


def _cited(said: _Said, order: Sequence[str]) -> tuple[CitedSentence, ...]:
    """Tidied; citations each once, in the order of time, and then those of frames that are not there."""
    place = {label: number for number, label in enumerate(order)}
    return tuple(
        CitedSentence(
            text=" ".join(one.text.split()) or "…",
            frames=tuple(sorted({label.strip() for label in one.frames}, key=lambda x: (place.get(x, len(place)), x))),
        )
        for one in said.sentences
    )


def _another_order(said: Sequence[str], order: Sequence[str]) -> str:
    return "" if tuple(said) == tuple(order) else f"another order: {' > '.join(said)}"


def _record(
    name: str,
    one: OrderedFrames,
    sentences: tuple[CitedSentence, ...],
    made_from: tuple[str, ...],
    calls: tuple[Call, ...],
) -> DraftRationale:
    return DraftRationale(
        id=name, source=one.source, instance=one.id, sentences=sentences, made_from=made_from, calls=calls
    )

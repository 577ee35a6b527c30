"""The stages `rationales`, `refine` and `evidence`: why frames stand in their order, by one model, put clearly by another,
and each sentence checked on the frames that it cites by a third."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from proctor.core import Frame, FrozenModel, InputError, RefusalError, count_of
from proctor.judges import has_injection, several
from proctor.tasks.clinicalskillqa import Pose, PoseSource, facts_of, open_pose
from proctor_build import pipeline
from proctor_build.annotators import given_files
from proctor_build.clinicalskillqa.project.frames import OrderedFrames, pictures_of


class CitedSentence(FrozenModel):
    """A sentence of a rationale, and the frames that show what it says, in the order of time."""

    text: str = Field(min_length=1)
    frames: tuple[str, ...]


UNSEEN = {name: pipeline.FORBIDDEN[name] for name in ("sound", "on-screen text", "exact readout")} | {
    "a voice or an alarm": r"\b(?:shout\w*|call(?:s|ed|ing)? out|beep\w*|alarm\w*|announce\w*|aloud|silen\w*)\b",
    "a clock time": pipeline.FORBIDDEN["time in the video"]
    + r"|\b\d+(?:[.,]\d+)?\s*(?:s|secs?|seconds?|mins?|minutes?)\b",
    "a device's setting": r"\b\d+(?:[.,]\d+)?\s*(?:j|joules?|mmhg|l/min|lit(?:re|er)s?|volts?|kpa)\b",
    "what somebody thinks": r"\b(?:intend\w*|want(?:s|ed|ing)?|decid\w*|think\w*|thought|hop(?:es|ed|ing)|realis\w*"
    r"|realiz\w*|remember\w*|believ\w*|worr\w+)\b",
}
"""What a frame can't show: name and pattern."""

_AT_ONCE = 4


def rationale_fault(sentences: Sequence[CitedSentence], order: Sequence[str]) -> str:
    """The first rule that a rationale breaks, and where ("" for none).

    Every sentence must cite frames, and the frames that it names; together they must cite all frames, and introduce them
    in the right order. They may not state another order, mention what no frame can show, or address the reader.
    """
    position = {label: number for number, label in enumerate(order)}
    fault = next(filter(None, (sentence_fault(sentence, position) for sentence in sentences)), "")
    if fault:
        return fault
    first: dict[str, int] = {}
    for number, one in enumerate(sentences):
        for label in one.frames:
            first.setdefault(label, number)
    left_out = [label for label in order if label not in first]
    if left_out:
        return f"frames left out: {', '.join(left_out)}"
    for earlier, later in pairwise(order):
        if first[later] < first[earlier]:
            return f"another order: {later} is taken up before {earlier}"
    return ""


def sentence_fault(cited_sentence: CitedSentence, location: dict[str, int]) -> str:
    """The fault of one sentence ("" for none); `location` is the position of each label in the right order."""
    if not cited_sentence.frames:
        return f"no frame cited: {cited_sentence.text!r}"
    strange = [
        label for label in (*cited_sentence.frames, *pipeline.mentioned(cited_sentence.text)) if label not in location
    ]
    if strange:
        return f"no such frame: {strange[0]!r}"
    uncited = [label for label in pipeline.mentioned(cited_sentence.text) if label not in cited_sentence.frames]
    if uncited:
        return f"named and not cited: {uncited[0]!r} in {cited_sentence.text!r}"
    wrong = next(((a, b) for a, b in pipeline.stated_order(cited_sentence.text) if location[a] >= location[b]), None)
    if wrong:
        return f"another order: {wrong[0]} before {wrong[1]}"
    for name, pattern in UNSEEN.items():
        hit = re.search(pattern, cited_sentence.text, re.IGNORECASE)
        if hit is not None:
            return f"{name}: {hit[0]!r}"
    return f"{pipeline.PROMPT_INJECTION}: {cited_sentence.text!r}" if has_injection(cited_sentence.text) else ""


def added(refined: Sequence[CitedSentence], draft: Sequence[CitedSentence], most: int) -> str:
    """What refined sentences claim beyond the draft ("" for nothing).

    A sentence may use the content words, numbers, sides and directions of the draft's sentences that cite one of its
    frames; all sentences together may use `most` further content words. Negations may be neither added nor lost. (A similarity of
    texts hardly moves for an added side or a lost "not".)

    >>> was = [CitedSentence(text="Pads lie on the chest.", frames=("B",))]
    >>> was += [CitedSentence(text="Hands are off.", frames=("A",))]
    >>> added([CitedSentence(text="Both hands are clear.", frames=("A",))], was, most=1)
    'not in the draft: both, clear'
    """
    new: list[str] = []
    for cited_sentence in refined:
        near = " ".join(sentence.text for sentence in draft if set(sentence.frames) & set(cited_sentence.frames))
        fixed = pipeline.sides_and_numbers(cited_sentence.text) - pipeline.sides_and_numbers(near)
        if fixed:
            return f"not in the draft: {min(fixed)}"
        new += sorted(
            pipeline.content_words(pipeline.without_labels(cited_sentence.text))
            - pipeline.content_words(pipeline.without_labels(near))
            - _FRAME_WORDS
        )
    if len(new) > most:
        return f"not in the draft: {', '.join(dict.fromkeys(new))}"
    was, now = (pipeline.negations(" ".join(each.text for each in some)) for some in (draft, refined))
    changed = sorted(was ^ now)
    return f"a negation {'lost' if changed[0] in was else 'added'}: {changed[0]}" if changed else ""


_FRAME_WORDS = pipeline.content_words("frame picture image show before after next first last follow precede")


PROMPTS = Path(__file__).with_name("prompts")
AS_DRAFTED = "as drafted"


class RationalesSettings(pipeline.StageSettings):
    """`tries`: how often a rationale is asked for, each time with the fault of the previous one."""

    tries: int = Field(default=3, ge=1, le=10)


class RefineSettings(pipeline.StageSettings):
    """`new_words`: the number of content words that a refined rationale may add to its draft."""

    new_words: int = Field(default=2, ge=0, le=20)


class DraftRationale(pipeline.Record):
    """The rationale of an instance after a stage."""

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


class RationalesStage(pipeline.Stage[DraftRationale]):
    """A model sees the labelled frames and the right order, and explains it. A rationale that breaks a rule is asked for
    again, with the reason, and finally refused."""

    name = "rationales"
    summary = "Why frames stand in their order"
    after: ClassVar[tuple[str, ...]] = ("frames",)
    record = DraftRationale
    settings = RationalesSettings
    roles: ClassVar[tuple[str, ...]] = ("writer",)
    prompts = (PROMPTS / "rationale.txt.j2",)

    async def make(self, work: pipeline.Work) -> pipeline.Made[DraftRationale]:
        every = await several(
            lambda ordered_frames: self._one(work, ordered_frames), work.records("frames", OrderedFrames), _AT_ONCE
        )
        return pipeline.Made(
            [one for one in every if isinstance(one, DraftRationale)],
            [one for one in every if isinstance(one, pipeline.Refused)],
        )

    async def _one(self, work: pipeline.Work, ordered_frames: OrderedFrames) -> DraftRationale | pipeline.Refused:
        asker, name = work.asker("writer", self.prompts[0]), f"{ordered_frames.id}-draft"
        shown = await asyncio.to_thread(pictures_of, work.project, ordered_frames, sorted(ordered_frames.order))

        def check(reply: _SaidWithOrder, calls: tuple[pipeline.Call, ...]) -> DraftRationale | str:
            if tuple(reply.order) != tuple(ordered_frames.order):
                return f"another order: {' > '.join(reply.order)}"
            sentences = _cited(reply, ordered_frames.order)
            return rationale_fault(sentences, ordered_frames.order) or _record(
                name, ordered_frames, sentences, (ordered_frames.id,), calls
            )

        failed = pipeline.Refused(id=name, kind="no draft", reason="a rationale", made_from=(ordered_frames.id,))
        tries = range(work.settings(RationalesSettings).tries)
        return await asker.first_valid(
            _SaidWithOrder, _prompt_values(work, ordered_frames), tries, failed, check, pictures=shown
        )


class RefineStage(pipeline.Stage[DraftRationale]):
    """A second model clarifies the draft and removes repetitions. Where it claims more than the draft, the draft is
    kept."""

    name = "refine"
    summary = "The same, put clearly"
    after: ClassVar[tuple[str, ...]] = ("frames", "rationales")
    record = DraftRationale
    settings = RefineSettings
    roles: ClassVar[tuple[str, ...]] = ("refiner",)
    prompts = (PROMPTS / "refine.txt.j2",)

    async def make(self, work: pipeline.Work) -> pipeline.Made[DraftRationale]:
        frames = {record.id: record for record in work.records("frames", OrderedFrames)}
        drafts = work.records("rationales", DraftRationale)
        every = await several(
            lambda draft_rationale: self._one(work, frames[draft_rationale.instance], draft_rationale), drafts, _AT_ONCE
        )
        writers = {call.model for draft in drafts for call in draft.calls}
        same = sorted(writers & {client.name for client in work.project.clients("refiner")})
        notes = [f"{same[0]} refined its own drafts: another model is meant"] if same else []
        return pipeline.Made([one for one, _ in every], [one for _, one in every if one is not None], notes)

    async def _one(
        self, work: pipeline.Work, ordered_frames: OrderedFrames, draft: DraftRationale
    ) -> tuple[DraftRationale, pipeline.Refused | None]:
        asker, name = work.asker("refiner", self.prompts[0]), f"{ordered_frames.id}-text"
        shown = await asyncio.to_thread(pictures_of, work.project, ordered_frames, list(ordered_frames.order))
        values = {**_prompt_values(work, ordered_frames), "sentences": draft.sentences}
        calls: tuple[pipeline.Call, ...] = ()
        found: object
        try:
            reply, call = await asker.ask(_Said, name, values, pictures=shown)
            calls, sentences = (call,), _cited(reply, ordered_frames.order)
            reason = rationale_fault(sentences, ordered_frames.order)
            reason = reason or added(sentences, draft.sentences, work.settings(RefineSettings).new_words)
            kind, found = reason.partition(":")[0], reply.model_dump_json()
        except RefusalError as error:
            sentences, kind, reason, found = (), "no draft", "a refined rationale", error
        made_from = (draft.id,)
        if not reason:
            return _record(name, ordered_frames, sentences, made_from, calls), None
        stands = _record(name, ordered_frames, draft.sentences, made_from, draft.calls).model_copy(
            update={"flags": (AS_DRAFTED,)}
        )
        return stands, pipeline.Refused.of(name, kind, reason, found, made_from, calls)


def _prompt_values(work: pipeline.Work, ordered_frames: OrderedFrames) -> Mapping[str, object]:
    """The values of a prompt on an instance: the procedure, the labels as they are shown, and the right order."""
    source = next(each for each in work.project.settings.sources if each.id == ordered_frames.source)
    return {
        "procedure": source.procedure or ordered_frames.scenario or "",
        "labels": sorted(ordered_frames.order),
        "order": ordered_frames.order,
    }


def _cited(reply: _Said, order: Sequence[str]) -> tuple[CitedSentence, ...]:
    """The sentences with their citations each once, in the order of time, unknown labels last."""
    position = {label: number for number, label in enumerate(order)}
    return tuple(
        CitedSentence(
            text=" ".join(sentence.text.split()) or "…",
            frames=tuple(
                sorted({label.strip() for label in sentence.frames}, key=lambda x: (position.get(x, len(position)), x))
            ),
        )
        for sentence in reply.sentences
    )


def _record(
    name: str,
    ordered_frames: OrderedFrames,
    sentences: tuple[CitedSentence, ...],
    made_from: tuple[str, ...],
    calls: tuple[pipeline.Call, ...],
) -> DraftRationale:
    return DraftRationale(
        id=name,
        source=ordered_frames.source,
        instance=ordered_frames.id,
        sentences=sentences,
        made_from=made_from,
        calls=calls,
    )


UNCHECKED, BY_POSE = "unchecked", "poses say otherwise"

CLAIMS = {
    "kneeling": r"\bkneel\w*|\bknelt\b|\bon (?:his|her|their|both) knees\b",
    "leaning_over": r"\blean\w* (?:over|forwards?)\b",
    "arms_straight_and_vertical": r"\b(?:straight|locked|extended) (?:arms|elbows)\b"
    r"|\b(?:arms|elbows) (?:are )?(?:straight|locked)",
    "hands_on_chest": r"\bhands? (?:\w+ ){0,3}on (?:the|its|his|her) (?:\w+ )?(?:chest|sternum|breastbone)\b",
    "hands_at_head": r"\bhands? (?:\w+ ){0,3}(?:at|on|around) (?:the|its|his|her) (?:head|face|jaw|chin|forehead)\b",
    "hands_off": r"\bhands? (?:\w+ ){0,3}(?:off|clear of|away from)\b",
}
"""By predicate of poses the words by which a sentence claims it."""


class EvidenceSettings(pipeline.StageSettings):
    """`pose`: a file in the project, either an exported YOLOv8-pose network (.onnx), or keypoints in COCO's format (.json)
    of images named INSTANCE/LABEL. Without one, poses are not checked."""

    pose: str = ""


class CheckedSentence(pipeline.Record):
    """One sentence with the verdict on its frames ("" where the check gave none) and the reason."""

    source: str
    instance: str
    text: str
    frames: tuple[str, ...]
    verdict: Literal["", "supported", "not visible", "contradicted"] = ""
    why: str = ""


class _Verdict(BaseModel):
    verdict: Literal["supported", "not visible", "contradicted"]
    why: str = Field(default="", max_length=600)


class EvidenceStage(pipeline.Stage[CheckedSentence]):
    """Every sentence, flagged where the check does not confirm it on its frames, or gave no verdict."""

    name = "evidence"
    summary = "Sentences checked on their frames"
    after: ClassVar[tuple[str, ...]] = ("frames", "refine")
    makes = "sentences"
    record = CheckedSentence
    settings = EvidenceSettings
    roles: ClassVar[tuple[str, ...]] = ("checker",)
    prompts = (PROMPTS / "evidence.txt.j2",)

    def reads(self, work: pipeline.Work) -> Sequence[Path]:
        named = work.settings(EvidenceSettings).pose
        found = given_files(work.project, named) if named else []
        if named and not found:
            raise InputError(work.project.folder / named, found="no such file", expected="a network or keypoints")
        return found

    async def make(self, work: pipeline.Work) -> pipeline.Made[CheckedSentence]:
        frames = {record.id: record for record in work.records("frames", OrderedFrames)}
        files = self.reads(work)
        poses = open_pose(files[0]) if files else None
        texts = work.records("refine", DraftRationale)
        every = await several(
            lambda each: self._one(work, frames[each[0].instance], *each, poses),
            [(text, number) for text in texts for number in range(len(text.sentences))],
            _AT_ONCE,
        )
        authors = Counter(call.model for text in texts for call in text.calls for _ in text.sentences)
        own = [client.name for client in work.project.clients("checker")[:1] if authors[client.name]]
        notes = [
            f"{one} checked {count_of(authors[one], 'sentence')} of its own: another model is meant" for one in own
        ]
        return pipeline.Made([one for one, _ in every], [one for _, one in every if one is not None], notes)

    async def _one(
        self,
        work: pipeline.Work,
        shown: OrderedFrames,
        rationale: DraftRationale,
        number: int,
        poses: PoseSource | None,
    ) -> tuple[CheckedSentence, pipeline.Refused | None]:
        sentence, name = rationale.sentences[number], f"{shown.id}-s{number + 1:02d}"
        pictures = await asyncio.to_thread(pictures_of, work.project, shown, sentence.frames)
        values = {**_prompt_values(work, shown), "frames": sentence.frames, "sentence": sentence.text}
        verdict, why, flags, refused, calls = "", "", list[str](), None, tuple[pipeline.Call, ...]()
        try:
            reply, call = await work.asker("checker", self.prompts[0]).ask(_Verdict, name, values, pictures=pictures)
            calls = (call,)
            if has_injection(reply.why):
                refused = pipeline.Refused.of(
                    name, pipeline.PROMPT_INJECTION, "a verdict with a reason", reply.why, (rationale.id,), calls
                )
            else:
                verdict, why = reply.verdict, " ".join(reply.why.split())
        except RefusalError as error:
            refused = pipeline.Refused.of(name, "no verdict", "a verdict", error, (rationale.id,))
        flags += [UNCHECKED] if not verdict else [] if verdict == "supported" else [verdict]
        if poses is not None:
            against = await asyncio.to_thread(denied_by_poses, sentence.text, poses.look, shown, pictures)
            flags += [BY_POSE] if against else []
            why = f"{why} {against}".strip()
        return CheckedSentence.model_validate(
            {"id": name, "made_from": (rationale.id,), "calls": calls, "flags": tuple(flags), "source": shown.source}
            | {"instance": shown.id, "text": sentence.text, "frames": sentence.frames, "verdict": verdict, "why": why}
        ), refused


def denied_by_poses(
    text: str, look: Callable[[bytes, str], Pose], shown: OrderedFrames, pictures: Sequence[Frame]
) -> str:
    """The claims of a sentence that poses refute ("" for none): in every cited frame somebody can be measured, and nobody
    does it. Sentences with a negation are left to people."""
    claimed = [name for name, pattern in CLAIMS.items() if re.search(pattern, text, re.IGNORECASE)]
    if not claimed or pipeline.negations(text):
        return ""
    facts = [
        facts_of(look(picture.jpeg, f"{shown.id}/{picture.label.removeprefix('Frame ')}")).rescuers
        for picture in pictures
    ]
    denied = [
        name
        for name in claimed
        if all(some and all(person_facts.holds[name] is False for person_facts in some) for some in facts)
    ]
    return f"Nobody in these frames, by their poses: {', '.join(denied).replace('_', ' ')}." if denied else ""

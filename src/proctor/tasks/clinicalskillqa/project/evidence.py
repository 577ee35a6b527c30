"""The stage `evidence`: whether the frames that a sentence cites show what it says, by another model, and by
measured poses where there are any."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from proctor.construction.annotators import given_files
from proctor.construction.pipeline import (
    STEERING,
    Call,
    Made,
    Record,
    Refused,
    Stage,
    StageSettings,
    Work,
    negations,
    several,
)
from proctor.core import Frame, InputError, RefusalError, count_of
from proctor.judges import has_injection
from proctor.tasks.clinicalskillqa.pose import Pose, PoseSource, facts_of, open_pose
from proctor.tasks.clinicalskillqa.project.frames import OrderedFrames, pictures_of
from proctor.tasks.clinicalskillqa.project.rationales import PROMPTS, DraftRationale, asked_of

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
"""The words by which a sentence claims what poses decide, by predicate."""


class EvidenceSettings(StageSettings):
    """`pose` is a file in the project that poses come from: an exported YOLOv8-pose network (.onnx), or keypoints in
    COCO's format (.json) of images named INSTANCE/LABEL. Without one, poses say nothing."""

    pose: str = ""


class CheckedSentence(Record):
    """One sentence, with what the check of its frames said: `verdict` is empty where no verdict came."""

    source: str
    instance: str
    text: str
    frames: tuple[str, ...]
    verdict: Literal["", "supported", "not visible", "contradicted"] = ""
    why: str = ""


class _Verdict(BaseModel):
    verdict: Literal["supported", "not visible", "contradicted"]
    why: str = Field(default="", max_length=600)


class EvidenceStage(Stage[CheckedSentence]):
    """Every sentence, flagged where the check does not find it in its frames, or found nothing."""

    name = "evidence"
    summary = "Sentences checked on their frames"
    after: ClassVar[tuple[str, ...]] = ("frames", "refine")
    makes = "sentences"
    record = CheckedSentence
    settings = EvidenceSettings
    roles: ClassVar[tuple[str, ...]] = ("checker",)
    prompts = (PROMPTS / "evidence.txt.j2",)

    def reads(self, work: Work) -> Sequence[Path]:
        named = work.settings(EvidenceSettings).pose
        found = given_files(work.project, named) if named else []
        if named and not found:
            raise InputError(work.project.folder / named, found="no such file", expected="a network or keypoints")
        return found

    async def make(self, work: Work) -> Made[CheckedSentence]:
        frames = {one.id: one for one in work.records("frames", OrderedFrames)}
        files = self.reads(work)
        poses = open_pose(files[0]) if files else None
        texts = work.records("refine", DraftRationale)
        every = await several(
            lambda each: self._one(work, frames[each[0].instance], *each, poses),
            [(one, number) for one in texts for number in range(len(one.sentences))],
        )
        authors = Counter(call.model for one in texts for call in one.calls for _ in one.sentences)
        own = [one.name for one in work.project.clients("checker")[:1] if authors[one.name]]
        notes = [
            f"{one} checked {count_of(authors[one], 'sentence')} of its own: another model is meant" for one in own
        ]
        return Made([one for one, _ in every], [one for _, one in every if one is not None], notes)

    async def _one(
        self, work: Work, shown: OrderedFrames, rationale: DraftRationale, number: int, poses: PoseSource | None
    ) -> tuple[CheckedSentence, Refused | None]:
        sentence, name = rationale.sentences[number], f"{shown.id}-s{number + 1:02d}"
        pictures = await asyncio.to_thread(pictures_of, work.project, shown, sentence.frames)
        values = {**asked_of(work, shown), "frames": sentence.frames, "sentence": sentence.text}
        verdict, why, flags, refused, calls = "", "", list[str](), None, tuple[Call, ...]()
        try:
            said, call = await work.asker("checker", self.prompts[0]).ask(_Verdict, name, values, pictures=pictures)
            calls = (call,)
            if has_injection(said.why):
                refused = Refused.of(name, STEERING, "a verdict with a reason", said.why, (rationale.id,), calls)
            else:
                verdict, why = said.verdict, " ".join(said.why.split())
        except RefusalError as error:
            refused = Refused.of(name, "no verdict", "a verdict", str(error), (rationale.id,))
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
    """What the poses of all cited frames deny of what a sentence claims ("" for nothing): nobody in any of them does
    it, and there is somebody to be measured in each. Sentences that negate are left to people."""
    claimed = [name for name, pattern in CLAIMS.items() if re.search(pattern, text, re.IGNORECASE)]
    if not claimed or negations(text):
        return ""
    facts = [facts_of(look(one.jpeg, f"{shown.id}/{one.label.removeprefix('Frame ')}")).rescuers for one in pictures]
    denied = [name for name in claimed if all(some and all(one.holds[name] is False for one in some) for some in facts)]
    return f"Nobody in these frames, by their poses: {', '.join(denied).replace('_', ' ')}." if denied else ""

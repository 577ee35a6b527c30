"""The stage `consensus`: instances as they were settled in the review, by both physicians or by an adjudicator; those that
are rejected leave with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from proctor.construction.annotators import given_files
from proctor.construction.pipeline import Made, Refused, Stage, StageSettings, WaitingError, Work
from proctor.core import InputError, collapse_spaces, count_of, read_jsonl, shell_word, unique_keys, validated
from proctor.tasks.clinicalskillqa.project.frames import OrderedFrames
from proctor.tasks.clinicalskillqa.project.physicians import (
    CORRECT,
    REMOVE,
    Reviewed,
    ReviewPart,
    SettledSentence,
    order_text,
)
from proctor.tasks.clinicalskillqa.project.rationales import CheckedSentence, CitedSentence

AGREED = "agreed"
NOT_SPOKEN_OF = "a frame that no sentence cites"


class ConsensusSettings(StageSettings):
    """The consensus of the review, as a path inside the project: JSON lines of `proctor review export --what consensus`."""

    consensus: str = "sources/consensus.jsonl"


class AgreedFrames(OrderedFrames):
    """A final instance: its frames, its order, and the sentences of its rationale."""

    sentences: tuple[CitedSentence, ...]

    @property
    def rationale(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


class ConsensusStage(Stage[AgreedFrames]):
    """Waits until every instance is settled. A recorded order that neither physician sees leaves without a question; what
    both say is settled; an adjudicator settles the rest."""

    name = "consensus"
    summary = "What both say, or an adjudicator settled"
    after: ClassVar[tuple[str, ...]] = ("frames", "evidence", "physicians")
    whole = True
    version = 2
    record = AgreedFrames
    settings = ConsensusSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return given_files(work.project, work.settings(ConsensusSettings).consensus)

    async def make(self, work: Work) -> Made[AgreedFrames]:
        reviews, files = work.records("physicians", Reviewed), self.reads(work)
        lines = _read(files[0]) if files else {}
        settled = {name: line for name, line in lines.items() if line.current}
        left = [one.instance for one in reviews if not _is_of(settled.get(one.instance), one)]
        if left:
            named = work.settings(ConsensusSettings).consensus
            raise WaitingError(
                f"{named}: {len(left)} of {count_of(len(reviews), 'instance')} to settle (proctor review export REVIEW STUDY "
                f"--what consensus --out {shell_word(work.project.folder / named)} writes what is settled)"
            )
        frames = {record.id: record for record in work.records("frames", OrderedFrames)}
        checked = {record.id: record for record in work.records("evidence", CheckedSentence)}
        every = [_settled(frames[one.instance], one, settled[one.instance], files[0]) for one in reviews]
        made = [one for one in every if isinstance(one, AgreedFrames)]
        kept = {name for agreed_frames in made for name in agreed_frames.made_from}
        doubted = sum(bool(one.flags) for name, one in checked.items() if name in kept)
        others = sum(settled[one.instance].by != AGREED for one in reviews)
        notes = [f"{count_of(others, 'instance')} settled by an adjudicator"]
        notes += [f"{count_of(doubted, 'sentence')} kept by physicians against a flag"] if doubted else []
        return Made(made, [one for one in every if isinstance(one, Refused)], notes)


class _Payload(ReviewPart):
    accepted: bool
    sentences: dict[str, SettledSentence] = Field(default={}, max_length=40)


class _Shown(ReviewPart):
    id: str
    text: str
    frames: tuple[str, ...] = ()


class _Body(ReviewPart):
    recorded: tuple[str, ...]
    sentences: tuple[_Shown, ...]
    origin: str = ""


class _Line(ReviewPart):
    form: Literal["rationale"]
    item: str = Field(min_length=1, max_length=200)
    version: int = Field(ge=1, strict=True)
    current: bool = Field(strict=True)
    by: str = Field(min_length=1, max_length=80)
    payload: _Payload
    reason: str = Field(default="", max_length=20_000)
    body: _Body


def _read(file: Path) -> Mapping[str, _Line]:
    """By instance the line of its newest version. Raises `InputError` for an invalid line, and for a version that is
    settled twice."""
    found: dict[tuple[str, int], _Line] = {}
    for place, value in read_jsonl(file, "the consensus of a study, as JSON lines", pairs=unique_keys):
        line = validated(_Line, value, file, place)
        if (line.item, line.version) in found:
            what = f"version {line.version} of {line.item!r} again"
            raise InputError(file, place, found=what, expected="each version once: the consensus of one study")
        found[line.item, line.version] = line
    return {key[0]: found[key] for key in sorted(found)}


def _is_of(line: _Line | None, reviewed: Reviewed) -> bool:
    """Whether a line settles what both physicians read."""
    return line is not None and line.body.origin == reviewed.version


def _settled(frames: OrderedFrames, reviewed: Reviewed, line: _Line, file: Path) -> AgreedFrames | Refused:
    name = f"{reviewed.instance}-agreed"
    _check_text(reviewed, line, file)
    if not line.payload.accepted:
        found = f"{order_text(reviewed.a.order)}; {order_text(reviewed.b.order)}"
        neither = reviewed.order not in (reviewed.a.order, reviewed.b.order)
        why = "neither physician sees the recorded order" if neither else "rejected in the review"
        reason = "; ".join(filter(None, (why, collapse_spaces(line.reason))))
        return Refused.of(name, "order", reason, found, (reviewed.id,))
    kept = []
    for sentence in reviewed.sentences:
        decision = line.payload.sentences.get(sentence.id)
        if decision is None:
            raise InputError(
                file, reviewed.instance, found=f"no verdict on {sentence.id}", expected="one on each sentence"
            )
        final = decision.of(reviewed.order, file, f"{reviewed.instance}, {sentence.id}")
        if final.verdict == CORRECT:
            kept.append((sentence.id, CitedSentence(text=final.correction, frames=final.frames)))
        elif final.verdict != REMOVE:
            kept.append((sentence.id, CitedSentence(text=sentence.text, frames=sentence.frames)))
    if not kept:
        return Refused.of(name, "rationale", "no sentence is left of it", made_from=(reviewed.id,))
    cited = {label for _, sentence in kept for label in sentence.frames}
    return AgreedFrames.model_validate(
        frames.model_dump()
        | {"id": name, "made_from": (reviewed.id, *(known for known, _ in kept))}
        | {"flags": () if cited == set(reviewed.order) else (NOT_SPOKEN_OF,)}
        | {"sentences": tuple(sentence for _, sentence in kept)}
    )


def _check_text(reviewed: Reviewed, line: _Line, file: Path) -> None:
    """Raises `InputError` where an organiser changed the item in the review: the project's records are its text."""
    here = [(sentence.id, sentence.text, sentence.frames) for sentence in reviewed.sentences]
    there = [(shown.id, shown.text, shown.frames) for shown in line.body.sentences]
    if (here, reviewed.order) != (there, line.body.recorded):
        expected = "the sentences and the order of the project; correct them in a reading, or redo them in the project"
        raise InputError(file, reviewed.instance, found="an item that was changed in the review", expected=expected)

"""The stage `consensus`: instances as two physicians and an adjudicator settled them in a review in the browser. Each
physician puts the frames in order, and only then judges each sentence of the rationale; neither sees the other's reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, Field, JsonValue, model_validator

from proctor.core import InputError, collapse_spaces, content_hash, count_of, shell_word
from proctor_build.clinicalskillqa.project.frames import OrderedFrames
from proctor_build.clinicalskillqa.project.rationales import CheckedSentence, CitedSentence
from proctor_build.pipeline import (
    ConsensusLine,
    ConsensusSettings,
    Made,
    Project,
    RecordToReview,
    Refused,
    ReviewedBody,
    ReviewPart,
    Stage,
    Work,
    consensus_files,
    kind_of,
    mentioned,
    read_consensus,
    records_of,
    settled_lines,
    stated_order,
)

FORM = "rationale"
"""The form of the review."""

CORRECT, REMOVE = "correct", "remove"
UNCLEAR = "unclear"
NOT_SPOKEN_OF = "a frame that no sentence cites"
_LONGEST = 10_000
_FEWEST = 2  # readings of an instance
_ABOUT = {"id", "frames", "order", "text"}


class AgreedFrames(OrderedFrames):
    """A final instance: its frames, its order, and the sentences of its rationale."""

    sentences: tuple[CitedSentence, ...]

    @property
    def rationale(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


class ConsensusStage(Stage[AgreedFrames]):
    """Waits until every instance with a rationale is settled. A recorded order that no physician sees leaves without a
    question; what both say is settled; an adjudicator settles the rest."""

    name = "consensus"
    summary = "What both say, or an adjudicator settled"
    after: ClassVar[tuple[str, ...]] = ("frames", "evidence")
    whole = True
    makes = "instances"
    version = 3
    record = AgreedFrames
    settings = ConsensusSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return consensus_files(work, work.settings(ConsensusSettings).consensus)

    async def make(self, work: Work) -> Made[AgreedFrames]:
        files = self.reads(work)
        shown = _to_review(work.records("frames", OrderedFrames), work.records("evidence", CheckedSentence))
        versions = {one.id: version_of(one, *mine) for one, mine in shown}
        named = work.settings(ConsensusSettings).consensus
        settled = settled_lines(work, named, "instance", versions, read_consensus(files, _Line))
        every = [_settled(one, mine, settled[one.id], files[0]) for one, mine in shown]
        made = [one for one in every if isinstance(one, AgreedFrames)]
        notes = _notes(shown, settled)
        kept = {name for agreed_frames in made for name in agreed_frames.made_from}
        doubted = sum(bool(sentence.flags) for _, mine in shown for sentence in mine if sentence.id in kept)
        notes += [f"{count_of(doubted, 'sentence')} kept by physicians against a flag"] if doubted else []
        return Made(made, [one for one in every if isinstance(one, Refused)], notes)


_Shown = tuple[OrderedFrames, list[CheckedSentence]]  # an instance and its sentences


def _to_review(frames: Sequence[OrderedFrames], sentences: Sequence[CheckedSentence]) -> list[_Shown]:
    """The instances with a rationale."""
    of = {one.id: [sentence for sentence in sentences if sentence.instance == one.id] for one in frames}
    return [(one, of[one.id]) for one in frames if of[one.id]]


def records_to_review(project: Project) -> list[RecordToReview]:
    """The instances that wait for physicians, for the review's form `rationale`. Raises `InputError` where there is none
    yet."""
    kind = kind_of(project)
    shown = _to_review(*(records_of(project, kind.stage(name)) for name in ("frames", "evidence")))
    if not shown:
        location = shell_word(project.folder)
        expected = f"a project whose stage evidence was run (proctor build run {location} --until evidence)"
        raise InputError(project.folder, found="no rationale yet", expected=expected)
    return [RecordToReview(one.id, one.source, one.start, one.end, _body(one, mine)) for one, mine in shown]


def _body(ordered_frames: OrderedFrames, sentences: Sequence[CheckedSentence]) -> dict[str, JsonValue]:
    return {
        "frames": [{"id": frame.label, "time": frame.time} for frame in ordered_frames.frames],
        "recorded": [*ordered_frames.order],
        "sentences": [_shown_sentence(sentence) for sentence in sentences],
        "origin": version_of(ordered_frames, *sentences),
    }


def _shown_sentence(sentence: CheckedSentence) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = {"id": sentence.id, "text": sentence.text, "frames": [*sentence.frames]}
    return shown | {"flags": [*sentence.flags], "why": sentence.why} if sentence.flags else shown


def version_of(*some: BaseModel) -> str:
    """A short hash of what physicians read (the frames of an instance and its sentences), without a model's verdicts."""
    kept = [one.model_dump(mode="json", include=_ABOUT) for one in some]
    return content_hash([*kept])[:16]


# -- the file


class _Decision(ReviewPart):
    """What was settled on a sentence; with `correct`, `text` and `frames` replace it."""

    verdict: Literal["keep", "correct", "remove"]
    text: str = Field(default="", max_length=_LONGEST)
    frames: tuple[str, ...] = Field(default=(), max_length=40)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.verdict == CORRECT and not (self.text.split() and self.frames):
            raise ValueError("a corrected sentence with its text and the frames that it cites is expected")
        return self

    def corrected(self, order: Sequence[str], file: Path, location: str) -> CitedSentence:
        """The correction, with the citations in the order of time. Raises `InputError` for one that cites or names other
        frames, or puts frames in another order."""
        text = collapse_spaces(self.text)
        strange = [label for label in self.frames if label not in order]
        strange += [label for label in mentioned(text) if label not in self.frames]
        if strange:
            expected = "a correction that cites each frame that it names, and frames of the instance alone"
            raise InputError(file, location, found=f"frame {strange[0][:20]}", expected=expected)
        wrong = next((pair for pair in stated_order(text) if order.index(pair[0]) >= order.index(pair[1])), None)
        if wrong is not None:
            raise InputError(
                file, location, found=f"{wrong[0]} before {wrong[1]}", expected=f"the order {' > '.join(order)}"
            )
        return CitedSentence(text=text, frames=tuple(sorted({*self.frames}, key=order.index)))


class _Payload(ReviewPart):
    accepted: bool
    sentences: dict[str, _Decision] = Field(default={}, max_length=40)


class _Order(ReviewPart):
    order: tuple[str, ...] = Field(default=(), max_length=40)


class _Reading(ReviewPart):
    payload: _Order


class _Sentence(ReviewPart):
    id: str
    text: str
    frames: tuple[str, ...] = ()


class _Body(ReviewedBody):
    recorded: tuple[str, ...]
    sentences: tuple[_Sentence, ...]


class _Line(ConsensusLine):
    form: Literal["rationale"]
    payload: _Payload | None
    body: _Body
    readings: tuple[_Reading, ...] = Field(default=(), max_length=100)

    @property
    def orders(self) -> list[tuple[str, ...]]:
        """The order by each reader; empty where it is unclear."""
        return [reading.payload.order for reading in self.readings]


def _notes(shown: Sequence[_Shown], settled: Mapping[str, _Line]) -> list[str]:
    orders = [order == one.order for one, _ in shown for order in settled[one.id].orders]
    return [
        f"{count_of(sum(line.adjudicated for line in settled.values()), 'instance')} settled by an adjudicator",
        f"{sum(orders)} of {count_of(len(orders), 'order')} by physicians as recorded",
    ]


def _settled(
    frames: OrderedFrames, sentences: Sequence[CheckedSentence], line: _Line, file: Path
) -> AgreedFrames | Refused:
    name, made_from = f"{frames.id}-agreed", (frames.id, *(sentence.id for sentence in sentences))
    _check(frames, sentences, line, file)
    payload = line.payload
    if payload is None or not payload.accepted:
        why = (
            "neither physician sees the recorded order" if frames.order not in line.orders else "rejected in the review"
        )
        reason = "; ".join(filter(None, (why, collapse_spaces(line.reason))))
        return Refused.of(name, "order", reason, "; ".join(map(order_text, line.orders)), made_from)
    kept = []
    for sentence in sentences:
        decision = payload.sentences.get(sentence.id)
        if decision is None:
            raise InputError(file, frames.id, found=f"no verdict on {sentence.id}", expected="one on each sentence")
        if decision.verdict == CORRECT:
            location = f"{frames.id}, {sentence.id}"
            kept.append((sentence.id, decision.corrected(frames.order, file, location)))
        elif decision.verdict != REMOVE:
            kept.append((sentence.id, CitedSentence(text=sentence.text, frames=sentence.frames)))
    if not kept:
        return Refused.of(name, "rationale", "no sentence is left of it", made_from=made_from)
    cited = {label for _, sentence in kept for label in sentence.frames}
    return AgreedFrames.model_validate(
        frames.model_dump()
        | {"id": name, "made_from": (frames.id, *(known for known, _ in kept))}
        | {"flags": () if cited == set(frames.order) else (NOT_SPOKEN_OF,)}
        | {"sentences": tuple(sentence for _, sentence in kept)}
    )


def _check(frames: OrderedFrames, sentences: Sequence[CheckedSentence], line: _Line, file: Path) -> None:
    """Raises `InputError` where fewer than two people read the instance, and where an organiser changed it in the review:
    the project's records are its text."""
    if len(line.readings) < _FEWEST:
        expected = f"at least {_FEWEST} (plan: readings: {_FEWEST})"
        raise InputError(file, frames.id, found=count_of(len(line.readings), "reading"), expected=expected)
    here = [(sentence.id, sentence.text, sentence.frames) for sentence in sentences]
    there = [(shown.id, shown.text, shown.frames) for shown in line.body.sentences]
    if (here, frames.order) != (there, line.body.recorded):
        expected = "the sentences and the order of the project; correct them in a reading, or redo them in the project"
        raise InputError(file, frames.id, found="an item that was changed in the review", expected=expected)


def order_text(order: Sequence[str]) -> str:
    """An order as text.

    >>> order_text(("B", "A")), order_text(())
    ('B > A', 'unclear')
    """
    return " > ".join(order) or UNCLEAR

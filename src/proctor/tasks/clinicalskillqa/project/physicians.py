"""The stage `physicians`: two physicians put the frames in order, and only then judge each sentence of the rationale, in a
review in the browser. Neither sees the other's reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.construction.annotators import given_files
from proctor.construction.pipeline import (
    Made,
    Project,
    ProjectSettings,
    Record,
    RecordToReview,
    Stage,
    StageSettings,
    WaitingError,
    Work,
    kind_of,
    mentioned,
    records_of,
    told_order,
)
from proctor.core import (
    FrozenModel,
    InputError,
    collapse_spaces,
    content_hash,
    count_of,
    number_interval,
    read_jsonl,
    shell_word,
    unique_keys,
    validated,
)
from proctor.metrics.ordering import compare_orders
from proctor.stats import Estimate, Resampling, cohen_kappa, mean_interval
from proctor.tasks.clinicalskillqa.project.frames import OrderedFrames
from proctor.tasks.clinicalskillqa.project.rationales import CheckedSentence

FORM = "rationale"
"""The form of the review."""

KEEP, CORRECT, REMOVE = "keep", "correct", "remove"
CHOICES = (KEEP, CORRECT, REMOVE)
UNCLEAR = "unclear"
_LONGEST = 10_000


class PhysiciansSettings(StageSettings):
    """The readings of both physicians, as a path inside the project: JSON lines of `proctor review export`."""

    readings: str = "sources/readings.jsonl"


class SentenceVerdict(FrozenModel):
    """One physician's verdict on a sentence; with `correct`, the `correction` and the `frames` that it cites replace it."""

    verdict: Literal["keep", "correct", "remove"]
    correction: str = ""
    frames: tuple[str, ...] = ()


class OrderVerdict(FrozenModel):
    """The order by one physician; empty where it is unclear."""

    order: tuple[str, ...]
    comment: str = ""


class ReviewedSentence(FrozenModel):
    """A sentence, in the version that both physicians saw, with their verdicts."""

    id: str
    text: str
    frames: tuple[str, ...]
    flags: tuple[str, ...]
    a: SentenceVerdict
    b: SentenceVerdict


class Reviewed(Record):
    """An instance, in the version that both physicians saw, with their verdicts; `by` are their pseudonyms."""

    source: str
    instance: str
    version: str
    order: tuple[str, ...]
    a: OrderVerdict
    b: OrderVerdict
    sentences: tuple[ReviewedSentence, ...] = Field(min_length=1)
    by: tuple[str, ...]


class PhysiciansStage(Stage[Reviewed]):
    """Waits for two readings of each instance, then compares them."""

    name = "physicians"
    summary = "Two physicians, independently"
    after: ClassVar[tuple[str, ...]] = ("frames", "evidence")
    whole = True
    makes = "instances"
    version = 2
    record = Reviewed
    settings = PhysiciansSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return given_files(work.project, work.settings(PhysiciansSettings).readings)

    async def make(self, work: Work) -> Made[Reviewed]:
        shown, sentences = to_review(work.records("frames", OrderedFrames), work.records("evidence", CheckedSentence))
        rationales = {one.id: [each for each in sentences if each.instance == one.id] for one in shown}
        versions = {one.id: version_of(one, *rationales[one.id]) for one in shown}
        files = self.reads(work)
        lines = [line for file in files for line in _read(file)]
        found = {name: _current(lines, name, version) for name, version in versions.items()}
        left = [name for name, some in found.items() if len(some) < 2]
        if left:
            changed = len({*left} & {line.item for line in lines if line.origin != versions.get(line.item)})
            since = f", {changed} of them changed since" if changed else ""
            named = work.settings(PhysiciansSettings).readings
            raise WaitingError(
                f"{named}: {len(left)} of {count_of(len(shown), 'instance')} to be read by two physicians{since} (proctor "
                f"review export REVIEW STUDY --what readings --out {shell_word(work.project.folder / named)} writes "
                "what is submitted)"
            )
        made = [_reviewed(one, rationales[one.id], found[one.id], files[0]) for one in shown]
        return Made(made, notes=agreement(made, work.project.settings))


def to_review(
    frames: Sequence[OrderedFrames], sentences: Sequence[CheckedSentence]
) -> tuple[list[OrderedFrames], Sequence[CheckedSentence]]:
    """The instances with a rationale, and their sentences."""
    with_rationale = {sentence.instance for sentence in sentences}
    return [frame for frame in frames if frame.id in with_rationale], sentences


def records_to_review(project: Project) -> list[RecordToReview]:
    """The instances that wait for physicians, for the review's form `rationale`. Raises `InputError` where there is none
    yet."""
    kind = kind_of(project)
    shown, sentences = to_review(*(records_of(project, kind.stage(name)) for name in ("frames", "evidence")))
    if not shown:
        expected = (
            f"a project whose stage evidence was run (proctor build run {shell_word(project.folder)} --until evidence)"
        )
        raise InputError(project.folder, found="no rationale yet", expected=expected)
    return [
        RecordToReview(one.id, one.source, one.start, one.end, _body(one, mine))
        for one in shown
        for mine in [[sentence for sentence in sentences if sentence.instance == one.id]]
    ]


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


_ABOUT = {"id", "frames", "order", "text"}


def version_of(*some: BaseModel) -> str:
    """A short hash of what physicians read (the frames of an instance and its sentences), without a model's verdicts."""
    kept = [one.model_dump(mode="json", include=_ABOUT) for one in some]
    return content_hash([*kept])[:16]


# -- the file


class ReviewPart(BaseModel):
    """A part of a line; other fields are ignored."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class SettledSentence(ReviewPart):
    """What a reading or a settlement says of a sentence."""

    verdict: Literal["keep", "correct", "remove"]
    text: str = Field(default="", max_length=_LONGEST)
    frames: tuple[str, ...] = Field(default=(), max_length=40)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.verdict == CORRECT and not (self.text.split() and self.frames):
            raise ValueError("a corrected sentence with its text and the frames that it cites is expected")
        return self

    def of(self, order: Sequence[str], file: Path, place: str) -> SentenceVerdict:
        """The verdict, with the citations in the order of time. Raises `InputError` for a correction that cites or names
        other frames, or puts frames in another order."""
        if self.verdict != CORRECT:
            return SentenceVerdict(verdict=self.verdict)
        text = collapse_spaces(self.text)
        strange = [label for label in self.frames if label not in order]
        strange += [label for label in mentioned(text) if label not in self.frames]
        if strange:
            expected = "a correction that cites each frame that it names, and frames of the instance alone"
            raise InputError(file, place, found=f"frame {strange[0][:20]}", expected=expected)
        wrong = next((pair for pair in told_order(text) if order.index(pair[0]) >= order.index(pair[1])), None)
        if wrong is not None:
            raise InputError(
                file, place, found=f"{wrong[0]} before {wrong[1]}", expected=f"the order {' > '.join(order)}"
            )
        cited = tuple(sorted({*self.frames}, key=order.index))
        return SentenceVerdict(verdict=CORRECT, correction=text, frames=cited)


class _Payload(ReviewPart):
    order: tuple[str, ...] = Field(default=(), max_length=40)
    unclear: bool = False
    ordered: bool = False
    sentences: dict[str, SettledSentence] = Field(default={}, max_length=40)


class _Line(ReviewPart):
    form: Literal["rationale"]
    item: str = Field(min_length=1, max_length=200)
    version: int = Field(ge=1, strict=True)
    gold: bool = Field(default=False, strict=True)
    reader: str = Field(min_length=1, max_length=80)
    payload: _Payload
    comment: str = Field(default="", max_length=20_000)
    origin: str = ""


def _read(file: Path) -> list[_Line]:
    """The readings of a study. Raises `InputError` for an invalid line, and for a reading that is there twice."""
    found: dict[tuple[str, int, str], _Line] = {}
    for place, value in read_jsonl(file, "the readings of a study, as JSON lines", pairs=unique_keys):
        line = validated(_Line, value, file, place)
        key = (line.item, line.version, line.reader)
        if key in found:
            what = f"a reading of {line.item!r} by {line.reader} again"
            raise InputError(file, place, found=what, expected="each reading once: those of one study")
        if not line.gold:
            found[key] = line
    return list(found.values())


def _current(lines: Sequence[_Line], instance: str, version: str) -> list[_Line]:
    """The readings of an instance as it is now, by reader."""
    mine = [line for line in lines if line.item == instance and line.origin == version]
    newest = max((line.version for line in mine), default=0)
    return sorted((line for line in mine if line.version == newest), key=lambda line: line.reader)


def _reviewed(
    ordered_frames: OrderedFrames, sentences: Iterable[CheckedSentence], lines: Sequence[_Line], file: Path
) -> Reviewed:
    mine = list(sentences)
    if len(lines) > 2:
        expected = "two (plan: readings: 2)"
        raise InputError(file, ordered_frames.id, found=f"readings by {len(lines)} people", expected=expected)
    first, second = (_said(line, ordered_frames, mine, file) for line in lines)
    reviewed = [
        ReviewedSentence(
            id=each.id, text=each.text, frames=each.frames, flags=each.flags, a=first[1][each.id], b=second[1][each.id]
        )
        for each in mine
    ]
    flags = [] if first[0].order == second[0].order == ordered_frames.order else ["order"]
    flags += [] if all(each.a == each.b for each in reviewed) else ["rationale"]
    return Reviewed(
        id=f"{ordered_frames.id}-review",
        made_from=(ordered_frames.id, *(each.id for each in mine)),
        flags=tuple(flags),
        source=ordered_frames.source,
        instance=ordered_frames.id,
        version=version_of(ordered_frames, *mine),
        order=ordered_frames.order,
        a=first[0],
        b=second[0],
        sentences=tuple(reviewed),
        by=tuple(line.reader for line in lines),
    )


def _said(
    line: _Line, ordered_frames: OrderedFrames, sentences: Sequence[CheckedSentence], file: Path
) -> tuple[OrderVerdict, Mapping[str, SentenceVerdict]]:
    """The order and the verdicts of a reading. Raises `InputError` for one that is not complete."""
    place, order = f"{line.item} by {line.reader}", line.payload.order
    if not line.payload.ordered or sorted(order) != ([] if line.payload.unclear else sorted(ordered_frames.order)):
        expected = f"{', '.join(sorted(ordered_frames.order))} in their order, or unclear"
        raise InputError(file, place, found=f"the order {order_text(order)}", expected=expected)
    names = [sentence.id for sentence in sentences]
    if line.payload.sentences.keys() != {*names}:
        found = f"verdicts on {', '.join(sorted(line.payload.sentences)) or 'no sentence'}"
        raise InputError(file, place, found=found[:200], expected=f"one on each of {', '.join(names)}")
    verdicts = {
        name: decision.of(ordered_frames.order, file, f"{place}, {name}")
        for name, decision in line.payload.sentences.items()
    }
    return OrderVerdict(order=order, comment=collapse_spaces(line.comment)), verdicts


# -- agreement


def agreement(reviews: Sequence[Reviewed], settings: ProjectSettings) -> list[str]:
    """The agreement of two physicians: the share of instances with the same order, the mean Kendall's τ of their orders,
    and Cohen's κ of their verdicts on sentences; a line for each, with the interval over groups of sources."""
    groups, plan = settings.groups, Resampling(seed=settings.seed)
    of = [groups[review.source] for review in reviews]
    same = mean_interval([float(review.a.order == review.b.order) for review in reviews], of, plan.within(0, 1))
    each_order = [float(review.order == reviewed.order) for reviewed in reviews for review in (reviewed.a, reviewed.b)]
    right = mean_interval(each_order, [group for group in of for _ in range(2)], plan.within(0, 1))
    ordered = [review for review in reviews if review.a.order and review.b.order]
    taus = [_tau(reviewed.a.order, reviewed.b.order) for reviewed in ordered]
    tau = mean_interval(taus, [groups[reviewed.source] for reviewed in ordered], plan.within(-1, 1))
    pairs = [(sentence, groups[review.source]) for review in reviews for sentence in review.sentences]
    kappa = cohen_kappa(
        [one.a.verdict for one, _ in pairs],
        [one.b.verdict for one, _ in pairs],
        CHOICES,
        [one for _, one in pairs],
        plan,
    )
    return [
        f"the same of the order by both: {_shown(same, 'instance')}",
        f"Kendall's τ of both orders: {_shown(tau, 'instance')}",
        f"orders as recorded: {_shown(right, 'order')}",
        f"Cohen's κ of keep, correct, remove: {_shown(kappa, 'sentence')}",
    ]


def _tau(a: Sequence[str], b: Sequence[str]) -> float:
    pairs = len(a) * (len(a) - 1) / 2
    return 2 * compare_orders(a, b).all_right / pairs - 1


def _shown(estimate: Estimate, what: str) -> str:
    of = f"({count_of(estimate.n, what)} in {count_of(estimate.groups, 'group')})"
    if estimate.value is None:
        return f"not defined {of}" if estimate.n else "nothing to compare"
    interval = "no interval" if estimate.ci_low is None else number_interval(estimate.ci_low, estimate.ci_high, 2)
    return f"{estimate.value:.2f} [{interval}] {of}"


def order_text(order: Sequence[str]) -> str:
    """An order as text in a cell.

    >>> order_text(("B", "A")), order_text(())
    ('B > A', 'unclear')
    """
    return " > ".join(order) or UNCLEAR

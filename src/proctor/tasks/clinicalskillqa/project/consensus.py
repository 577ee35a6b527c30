"""The stage `consensus`: what both physicians say is final; where they differ, a third table decides; instances that are
rejected leave with the reason."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from proctor.construction.annotators import Cells, given_files, read_rows
from proctor.construction.pipeline import Made, Refused, Stage, StageSettings, WaitingError, Work
from proctor.core import count_of, safe_cell
from proctor.tasks.clinicalskillqa.project.frames import OrderedFrames
from proctor.tasks.clinicalskillqa.project.physicians import (
    CORRECT,
    KEEP,
    REMOVE,
    Reviewed,
    ReviewedSentence,
    SentenceVerdict,
    is_current,
    known_id,
    order_text,
    sentence_verdict,
    version_of,
)
from proctor.tasks.clinicalskillqa.project.rationales import CheckedSentence, CitedSentence

ACCEPT, REJECT = "accept", "reject"
NOT_SPOKEN_OF = "a frame that no sentence cites"
CONSENSUS_COLUMNS = ("id", "version", "frames", "text", "a", "b", "verdict", "correction", "by")


class ConsensusSettings(StageSettings):
    """The table of joint decisions; `proctor build consensus DIR --table` writes the open questions."""

    decisions: str = "sources/consensus.csv"


class AgreedFrames(OrderedFrames):
    """A final instance: its frames, its order, and the sentences of its rationale."""

    sentences: tuple[CitedSentence, ...]

    @property
    def rationale(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


class ConsensusStage(Stage[AgreedFrames]):
    """A recorded order that both confirm is final; where neither does, the instance leaves; where only one does, the
    order is open. A sentence with the same verdict by both is settled; every other one is open."""

    name = "consensus"
    summary = "What both say, or decide together"
    after: ClassVar[tuple[str, ...]] = ("frames", "evidence", "physicians")
    whole = True
    record = AgreedFrames
    settings = ConsensusSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return given_files(work.project, work.settings(ConsensusSettings).decisions)

    async def make(self, work: Work) -> Made[AgreedFrames]:
        reviews = work.records("physicians", Reviewed)
        open_ = list(open_questions(reviews))
        decided = read_consensus(self.reads(work)[0], reviews) if self.reads(work) and open_ else {}
        left = sum(name not in decided for name in open_)
        if left:
            named = work.settings(ConsensusSettings).decisions
            raise WaitingError(
                f"{named}: {count_of(left, 'disagreement')} to decide "
                "(proctor build consensus DIR --table writes what is open)"
            )
        frames = {record.id: record for record in work.records("frames", OrderedFrames)}
        checked = {record.id: record for record in work.records("evidence", CheckedSentence)}
        every = [_settled(frames[review.instance], review, decided) for review in reviews]
        made = [one for one in every if isinstance(one, AgreedFrames)]
        kept = {name for agreed_frames in made for name in agreed_frames.made_from}
        doubted = sum(bool(one.flags) for name, one in checked.items() if name in kept)
        notes = [f"{count_of(len(open_), 'disagreement')} decided together"]
        notes += [f"{count_of(doubted, 'sentence')} kept by physicians against a flag"] if doubted else []
        return Made(made, [one for one in every if isinstance(one, Refused)], notes)


def order_is_open(reviewed: Reviewed) -> bool:
    """Whether only one physician confirms the recorded order."""
    return (reviewed.a.order == reviewed.order) != (reviewed.b.order == reviewed.order)


def open_questions(reviews: Sequence[Reviewed]) -> Iterator[str]:
    """The ids of instances with an open order and of sentences with different verdicts, except in instances that leave
    because of their order."""
    for review in reviews:
        if review.order not in (review.a.order, review.b.order):
            continue
        if order_is_open(review):
            yield review.instance
        yield from (sentence.id for sentence in review.sentences if not sentence.agreed)


def consensus_table(reviews: Sequence[Reviewed]) -> str:
    """The open questions as a table to fill in: `accept` or `reject` an order; keep, correct or remove a sentence."""
    open_, out = set(open_questions(reviews)), io.StringIO()
    writer = csv.DictWriter(out, CONSENSUS_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for reviewed in reviews:
        if reviewed.instance in open_:
            a, b = (_with_comment(order_text(review.order), review.comment) for review in (reviewed.a, reviewed.b))
            text = f"Recorded order: {order_text(reviewed.order)}"
            about = {
                "id": reviewed.instance,
                "version": version_of(reviewed),
                "frames": " ".join(sorted(reviewed.order)),
            }
            writer.writerow(_safe({**about, "text": text, "a": a, "b": b}))
        for sentence in reviewed.sentences:
            if sentence.id in open_:
                a, b = (
                    _with_comment(f"{review.verdict} {review.correction}".strip(), review.comment)
                    for review in (sentence.a, sentence.b)
                )
                about = {"id": sentence.id, "version": version_of(sentence), "frames": " ".join(sentence.frames)}
                writer.writerow(_safe({**about, "text": sentence.text, "a": a, "b": b}))
    return out.getvalue()


def _safe(row: Mapping[str, str]) -> dict[str, object]:
    """The cells, of which a spreadsheet takes none for a formula."""
    return {name: safe_cell(cell) for name, cell in row.items()}


def _with_comment(text: str, comment: str) -> str:
    return f"{text} ({comment})" if comment else text


def read_consensus(file: Path, reviews: Sequence[Reviewed]) -> dict[str, SentenceVerdict]:
    """The decisions by id; on an order `keep` means `accept` and `remove` means `reject`. Rows without a verdict, or on an
    earlier version, stay open. Raises `InputError` with all faults, as `read_review`, and for a row on which nothing is
    open."""
    orders = {review.instance: review for review in reviews}
    sentences = {sentence.id: (sentence, review) for review in reviews for sentence in review.sentences}
    versions = {name: version_of(one) for name, one in orders.items()}
    versions |= {name: version_of(each) for name, (each, _) in sentences.items()}
    known, seen = list(open_questions(reviews)), dict[str, int]()
    found: dict[str, SentenceVerdict] = {}

    def read(cells: Cells) -> None:
        name = known_id(cells, known, seen)
        if not name or cells.empty("verdict") or not is_current(cells, versions[name]):
            return
        cells.text("by", "who decided")
        if name in orders:
            choice = cells.choice("verdict", {ACCEPT: KEEP, REJECT: REMOVE})
            verdict = SentenceVerdict.model_validate({"verdict": choice}) if choice else None
            if not cells.empty("correction"):
                cells.fault("correction", "something", f"nothing: an order is {ACCEPT}ed or {REJECT}ed")
        else:
            each, one = sentences[name]
            verdict = sentence_verdict(cells, each.frames, one.order)
        if verdict is not None:
            found[name] = verdict

    read_rows(file, ("id", "version", "verdict", "correction", "by"), read)
    return found


def _settled(
    frames: OrderedFrames, reviewed: Reviewed, decided: Mapping[str, SentenceVerdict]
) -> AgreedFrames | Refused:
    name = f"{reviewed.instance}-agreed"
    if reviewed.order not in (reviewed.a.order, reviewed.b.order):
        found = f"{order_text(reviewed.a.order)}; {order_text(reviewed.b.order)}"
        return Refused.of(name, "order", "neither physician sees the recorded order", found, (reviewed.id,))
    if order_is_open(reviewed) and decided[reviewed.instance].verdict == REMOVE:
        found = f"{order_text(reviewed.a.order)}; {order_text(reviewed.b.order)}"
        return Refused.of(name, "order", "rejected together", found, (reviewed.id,))
    stays = [(sentence, _final(sentence, decided.get(sentence.id))) for sentence in reviewed.sentences]
    kept = [(each.id, CitedSentence(text=text, frames=each.frames)) for each, text in stays if text]
    if not kept:
        return Refused.of(name, "rationale", "no sentence is left of it", made_from=(reviewed.id,))
    cited = {label for _, sentence in kept for label in sentence.frames}
    return AgreedFrames.model_validate(
        frames.model_dump()
        | {"id": name, "made_from": (reviewed.id, *(known for known, _ in kept))}
        | {"flags": () if cited == set(reviewed.order) else (NOT_SPOKEN_OF,)}
        | {"sentences": tuple(sentence for _, sentence in kept)}
    )


def _final(sentence: ReviewedSentence, decided: SentenceVerdict | None) -> str:
    """The final text of a sentence; "" where it is removed."""
    final = decided if decided is not None and not sentence.agreed else sentence.a
    return {KEEP: sentence.text, CORRECT: final.correction, REMOVE: ""}[final.verdict]

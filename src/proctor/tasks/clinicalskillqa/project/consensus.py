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
        return " ".join(one.text for one in self.sentences)


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
        frames = {one.id: one for one in work.records("frames", OrderedFrames)}
        checked = {one.id: one for one in work.records("evidence", CheckedSentence)}
        every = [_settled(frames[one.instance], one, decided) for one in reviews]
        made = [one for one in every if isinstance(one, AgreedFrames)]
        kept = {name for one in made for name in one.made_from}
        doubted = sum(bool(one.flags) for name, one in checked.items() if name in kept)
        notes = [f"{count_of(len(open_), 'disagreement')} decided together"]
        notes += [f"{count_of(doubted, 'sentence')} kept by physicians against a flag"] if doubted else []
        return Made(made, [one for one in every if isinstance(one, Refused)], notes)


def order_is_open(one: Reviewed) -> bool:
    """Whether only one physician confirms the recorded order."""
    return (one.a.order == one.order) != (one.b.order == one.order)


def open_questions(reviews: Sequence[Reviewed]) -> Iterator[str]:
    """The ids of instances with an open order and of sentences with different verdicts, except in instances that leave
    because of their order."""
    for one in reviews:
        if one.order not in (one.a.order, one.b.order):
            continue
        if order_is_open(one):
            yield one.instance
        yield from (each.id for each in one.sentences if not each.agreed)


def consensus_table(reviews: Sequence[Reviewed]) -> str:
    """The open questions as a table to fill in: `accept` or `reject` an order; keep, correct or remove a sentence."""
    open_, out = set(open_questions(reviews)), io.StringIO()
    writer = csv.DictWriter(out, CONSENSUS_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for one in reviews:
        if one.instance in open_:
            a, b = (_with_comment(order_text(review.order), review.comment) for review in (one.a, one.b))
            text = f"Recorded order: {order_text(one.order)}"
            about = {"id": one.instance, "version": version_of(one), "frames": " ".join(sorted(one.order))}
            writer.writerow(_safe({**about, "text": text, "a": a, "b": b}))
        for each in one.sentences:
            if each.id in open_:
                a, b = (
                    _with_comment(f"{review.verdict} {review.correction}".strip(), review.comment)
                    for review in (each.a, each.b)
                )
                about = {"id": each.id, "version": version_of(each), "frames": " ".join(each.frames)}
                writer.writerow(_safe({**about, "text": each.text, "a": a, "b": b}))
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
    orders = {one.instance: one for one in reviews}
    sentences = {each.id: (each, one) for one in reviews for each in one.sentences}
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


def _settled(frames: OrderedFrames, one: Reviewed, decided: Mapping[str, SentenceVerdict]) -> AgreedFrames | Refused:
    name = f"{one.instance}-agreed"
    if one.order not in (one.a.order, one.b.order):
        found = f"{order_text(one.a.order)}; {order_text(one.b.order)}"
        return Refused.of(name, "order", "neither physician sees the recorded order", found, (one.id,))
    if order_is_open(one) and decided[one.instance].verdict == REMOVE:
        found = f"{order_text(one.a.order)}; {order_text(one.b.order)}"
        return Refused.of(name, "order", "rejected together", found, (one.id,))
    stays = [(each, _final(each, decided.get(each.id))) for each in one.sentences]
    kept = [(each.id, CitedSentence(text=text, frames=each.frames)) for each, text in stays if text]
    if not kept:
        return Refused.of(name, "rationale", "no sentence is left of it", made_from=(one.id,))
    cited = {label for _, sentence in kept for label in sentence.frames}
    return AgreedFrames.model_validate(
        frames.model_dump()
        | {"id": name, "made_from": (one.id, *(known for known, _ in kept))}
        | {"flags": () if cited == set(one.order) else (NOT_SPOKEN_OF,)}
        | {"sentences": tuple(sentence for _, sentence in kept)}
    )


def _final(one: ReviewedSentence, decided: SentenceVerdict | None) -> str:
    """The final text of a sentence; "" where it is removed."""
    final = decided if decided is not None and not one.agreed else one.a
    return {KEEP: one.text, CORRECT: final.correction, REMOVE: ""}[final.verdict]

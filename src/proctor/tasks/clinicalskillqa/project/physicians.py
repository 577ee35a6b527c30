"""The stage `physicians`: two physicians review order and rationale independently, each in a table of their own, with a page
that shows the frames."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from proctor.construction.annotators import Cells, given_files, read_rows
from proctor.construction.pipeline import (
    Made,
    Project,
    ProjectSettings,
    Record,
    Stage,
    StageSettings,
    WaitingError,
    Work,
)
from proctor.core import (
    Frame,
    FrozenModel,
    InputError,
    content_hash,
    count_of,
    number_interval,
    one_of,
    safe_cell,
    write_whole,
)
from proctor.metrics.ordering import compare_orders
from proctor.stats import Estimate, Resampling, cohen_kappa, mean_interval
from proctor.tasks.clinicalskillqa.native import split_order
from proctor.tasks.clinicalskillqa.project.frames import OrderedFrames, pictures_of
from proctor.tasks.clinicalskillqa.project.rationales import CheckedSentence, mentioned, told_order

KEEP, CORRECT, REMOVE = "keep", "correct", "remove"
CHOICES = (KEEP, CORRECT, REMOVE)
UNCLEAR = "unclear"
COLUMNS = ("id", "version", "frames", "text", "flags", "order", "verdict", "correction", "comment", "by")
LONGEST = 800
_ASKED = "In which order were these frames taken?"


class PhysiciansSettings(StageSettings):
    """The tables of the two physicians; `proctor build physicians DIR --table` writes an empty one."""

    a: str = "sources/physician-a.csv"
    b: str = "sources/physician-b.csv"


class SentenceVerdict(FrozenModel):
    """One physician's verdict on a sentence; with `correct`, the `correction` replaces it."""

    verdict: Literal["keep", "correct", "remove"]
    correction: str = ""
    comment: str = ""


class OrderVerdict(FrozenModel):
    """The order by one physician; empty where it is unclear."""

    order: tuple[str, ...]
    comment: str = ""


class ReviewedSentence(FrozenModel):
    """A sentence, in the version that both physicians saw, with their verdicts."""

    id: str
    version: str
    text: str
    frames: tuple[str, ...]
    flags: tuple[str, ...]
    a: SentenceVerdict
    b: SentenceVerdict

    @property
    def agreed(self) -> bool:
        """Whether both have the same verdict and the same correction."""
        return (self.a.verdict, self.a.correction) == (self.b.verdict, self.b.correction)


class Reviewed(Record):
    """An instance, in the version that both physicians saw, with their verdicts; `by` are the physicians."""

    source: str
    instance: str
    version: str
    order: tuple[str, ...]
    a: OrderVerdict
    b: OrderVerdict
    sentences: tuple[ReviewedSentence, ...] = Field(min_length=1)
    by: tuple[str, ...]


@dataclass(frozen=True)
class Review:
    """One physician's table: orders by instance, verdicts by sentence, and who reviewed. `changed` is the number of rows
    on earlier versions, which do not count."""

    orders: Mapping[str, OrderVerdict]
    sentences: Mapping[str, SentenceVerdict]
    by: frozenset[str]
    changed: int = 0


class PhysiciansStage(Stage[Reviewed]):
    """Waits for both tables, then compares them."""

    name = "physicians"
    summary = "Two physicians, independently"
    after: ClassVar[tuple[str, ...]] = ("frames", "evidence")
    whole = True
    makes = "instances"
    record = Reviewed
    settings = PhysiciansSettings

    def reads(self, work: Work) -> Sequence[Path]:
        settings = work.settings(PhysiciansSettings)
        if settings.a == settings.b:
            expected = "a table for each physician"
            raise InputError(work.project.file, "stages: physicians", found=f"{settings.a!r} twice", expected=expected)
        return [*given_files(work.project, settings.a), *given_files(work.project, settings.b)]

    async def make(self, work: Work) -> Made[Reviewed]:
        shown, sentences = to_review(work.records("frames", OrderedFrames), work.records("evidence", CheckedSentence))
        settings, reviews, missing = work.settings(PhysiciansSettings), list[Review](), list[str]()
        for named in (settings.a, settings.b):
            files = given_files(work.project, named)
            review = read_review(files[0], shown, sentences) if files else Review({}, {}, frozenset())
            left = len(shown) - len(review.orders), len(sentences) - len(review.sentences)
            if any(left):
                since = f", of which {review.changed} changed since" if review.changed else ""
                open_ = f"{count_of(left[0], 'order')} and {count_of(left[1], 'sentence')} to review{since}"
                missing.append(f"{named}: {open_}")
            reviews.append(review)
        if missing:
            raise WaitingError(f"{'; '.join(missing)} (proctor build physicians DIR --table writes an empty table)")
        a, b = reviews
        both = sorted(who for who in b.by if who.casefold() in {one.casefold() for one in a.by})
        if both:
            found, expected = f"{both[0]!r} in {settings.a} too", "another physician"
            raise InputError(work.project.folder / settings.b, "column 'by'", found=found, expected=expected)
        made = [_reviewed(ordered_frames, sentences, a, b) for ordered_frames in shown]
        return Made(made, notes=agreement(made, work.project.settings))


def to_review(
    frames: Sequence[OrderedFrames], sentences: Sequence[CheckedSentence]
) -> tuple[list[OrderedFrames], Sequence[CheckedSentence]]:
    """The instances with a rationale, and their sentences."""
    with_rationale = {sentence.instance for sentence in sentences}
    return [frame for frame in frames if frame.id in with_rationale], sentences


def review_table(shown: Sequence[OrderedFrames], sentences: Sequence[CheckedSentence]) -> str:
    """An empty table: for each instance a row for its order, then one for each sentence. A model wrote the text: one
    that a spreadsheet would take for a formula gets a leading apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for ordered_frames in shown:
        row = {
            "id": ordered_frames.id,
            "version": version_of(ordered_frames),
            "frames": " ".join(sorted(ordered_frames.order)),
            "text": _ASKED,
        }
        writer.writerow({name: safe_cell(cell) for name, cell in row.items()})
        for sentence in sentences:
            if sentence.instance == ordered_frames.id:
                fields = {
                    "frames": " ".join(sentence.frames),
                    "text": sentence.text,
                    "flags": "; ".join(sentence.flags),
                }
                row = {"id": sentence.id, "version": version_of(ordered_frames, sentence), **fields}
                writer.writerow({name: safe_cell(cell) for name, cell in row.items()})
    return out.getvalue()


_ABOUT = {"version", "frames", "order", "text", "a", "b"}


def version_of(*some: BaseModel) -> str:
    """A short hash of the content of a row (the frames of an instance, a sentence), without a model's verdicts on it."""
    kept = [one.model_dump(mode="json", include=_ABOUT) for one in some]
    return content_hash([*kept])[:8]


def read_review(file: Path, shown: Sequence[OrderedFrames], sentences: Sequence[CheckedSentence]) -> Review:
    """A physician's table. Rows without order or verdict, and rows on an earlier version, count as not reviewed.

    Raises `InputError` with all faults: an unknown or repeated id; an order that is neither a permutation of the labels
    nor "unclear", or is in a sentence's row; an unknown verdict, or one in an order's row; a correction without the
    verdict `correct`, or the reverse; a correction that names frames that the sentence does not cite, or puts frames in
    another order; a filled-in row without the reviewer's name.
    """
    orders = {ordered_frames.id: ordered_frames.order for ordered_frames in shown}
    texts = {sentence.id: sentence for sentence in sentences}
    frames = {ordered_frames.id: ordered_frames for ordered_frames in shown}
    versions = {ordered_frames.id: version_of(ordered_frames) for ordered_frames in shown}
    versions |= {sentence.id: version_of(frames[sentence.instance], sentence) for sentence in sentences}
    seen: dict[str, int] = {}
    changed: set[str] = set()
    found_orders: dict[str, OrderVerdict] = {}
    found_sentences: dict[str, SentenceVerdict] = {}
    people: set[str] = set()

    def read(cells: Cells) -> None:
        name = known_id(cells, (*orders, *texts), seen)
        filled = [column for column in ("order", "verdict", "correction") if not cells.empty(column)]
        if not name or not filled:
            return
        if not is_current(cells, versions[name]):
            changed.add(name)
            return
        people.add(cells.text("by", "who reviewed it"))
        foreign = [one for one in filled if (one == "order") == (name in texts)]
        if foreign:
            expected = "order in the row of an instance, verdict in that of a sentence"
            cells.fault(foreign[0], f"something in the row of {name}", expected)
        elif name in orders:
            order = _order(cells, orders[name])
            if order is not None:
                found_orders[name] = OrderVerdict(order=order, comment=_comment(cells))
        elif (verdict := sentence_verdict(cells, texts[name].frames, orders[texts[name].instance])) is not None:
            found_sentences[name] = verdict

    read_rows(file, ("id", "version", "order", "verdict", "correction", "by"), read)
    return Review(found_orders, found_sentences, frozenset(people), len(changed))


def is_current(cells: Cells, version: str) -> bool:
    """Whether a row is on the current version; a missing version is a fault."""
    return cells.text("version", "the version that stood in the empty table") == version


def known_id(cells: Cells, known: Sequence[str], seen: dict[str, int]) -> str:
    """The id of a row; "" where it is unknown or repeated, which is a fault."""
    name = cells.text("id", "the id of an instance or a sentence")
    if name and name not in known:
        cells.fault("id", repr(name), one_of(known[:8], name))
    elif name in seen:
        cells.fault("id", f"{name!r} again", f"each id once; row {seen[name]} has it")
    else:
        seen[name] = cells.number
        return name
    return ""


def _order(cells: Cells, labels: Sequence[str]) -> tuple[str, ...] | None:
    text = cells.text("order")
    if text.casefold() == UNCLEAR:
        return ()
    order = tuple(one.upper() for one in split_order(text))
    if sorted(order) != sorted(labels):
        cells.fault("order", repr(text[:60]), f"{', '.join(sorted(labels))} in their order, or {UNCLEAR}")
        return None
    return order


def sentence_verdict(cells: Cells, frames: Sequence[str], order: Sequence[str]) -> SentenceVerdict | None:
    """The verdict on a sentence with these citations, from the columns verdict and correction; None for a fault."""
    verdict = cells.choice("verdict", {choice: choice for choice in CHOICES})
    text = "" if cells.empty("correction") else cells.text("correction", "the sentence as it should be", LONGEST)
    if verdict is None:
        return None
    if (verdict == CORRECT) != bool(text):
        found = "nothing" if verdict == CORRECT else "a correction"
        cells.fault("correction", found, "the sentence as it should be" if verdict == CORRECT else f"verdict {CORRECT}")
        return None
    strange = [label for label in mentioned(text) if label not in frames]
    if strange:
        cells.fault("correction", f"frame {strange[0]}", f"frames that the sentence cites: {', '.join(frames)}")
        return None
    wrong = next((pair for pair in told_order(text) if order.index(pair[0]) >= order.index(pair[1])), None)
    if wrong is not None:
        cells.fault("correction", f"{wrong[0]} before {wrong[1]}", f"the order {' > '.join(order)}")
        return None
    return SentenceVerdict.model_validate({"verdict": verdict, "correction": text, "comment": _comment(cells)})


def _comment(cells: Cells) -> str:
    return "" if cells.empty("comment") else cells.text("comment", "a comment on one line", LONGEST)


def _reviewed(ordered_frames: OrderedFrames, sentences: Iterable[CheckedSentence], a: Review, b: Review) -> Reviewed:
    mine = [sentence for sentence in sentences if sentence.instance == ordered_frames.id]
    reviewed = [
        ReviewedSentence(
            id=each.id,
            version=version_of(ordered_frames, each),
            text=each.text,
            frames=each.frames,
            flags=each.flags,
            a=a.sentences[each.id],
            b=b.sentences[each.id],
        )
        for each in mine
    ]
    first, second = a.orders[ordered_frames.id], b.orders[ordered_frames.id]
    flags = [] if first.order == second.order == ordered_frames.order else ["order"]
    flags += [] if all(each.agreed for each in reviewed) else ["rationale"]
    return Reviewed(
        id=f"{ordered_frames.id}-review",
        made_from=(ordered_frames.id, *(each.id for each in mine)),
        flags=tuple(flags),
        source=ordered_frames.source,
        instance=ordered_frames.id,
        version=version_of(ordered_frames),
        order=ordered_frames.order,
        a=first,
        b=second,
        sentences=tuple(reviewed),
        by=tuple(sorted(a.by | b.by)),
    )


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


_TEMPLATE = Path(__file__).with_name("sheet.html.j2")


def write_frames_sheet(
    project: Project, shown: Sequence[OrderedFrames], sentences: Sequence[CheckedSentence], out: Path
) -> None:
    """Writes a self-contained page: each instance shuffled, then, collapsed, in its right order with the rationale.
    Raises `InputError` where a frame can't be decoded or the page can't be written."""
    from jinja2 import Environment

    instances = [
        {
            "id": ordered_frames.id,
            "mixed": [_figure(frame) for frame in pictures_of(project, ordered_frames, sorted(ordered_frames.order))],
            "order": " > ".join(ordered_frames.order),
            "right": [_figure(frame) for frame in pictures_of(project, ordered_frames, ordered_frames.order)],
            "sentences": [sentence for sentence in sentences if sentence.instance == ordered_frames.id],
        }
        for ordered_frames in shown
    ]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    title = f"{project.settings.title or project.folder.name}: {count_of(len(shown), 'instance')} to review"
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(title=title, instances=instances)
    write_whole(out, page)


def _figure(frame: Frame) -> dict[str, str]:
    return {"label": frame.label, "jpeg": base64.b64encode(frame.jpeg).decode("ascii")}

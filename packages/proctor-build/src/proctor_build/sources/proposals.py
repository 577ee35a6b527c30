"""Proposals of what to hide, and the tables that people fill in: `labels.csv` and `decisions.csv` of a project."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from proctor.core import (
    FrozenModel,
    Region,
    TableFault,
    TableRow,
    cell_number,
    first_problem,
    read_safe_cell,
    read_table,
    safe_cell,
    write_whole,
)
from proctor.media import Redaction, TextOverlay

T = TypeVar("T")

KINDS = ("outside", "text")
"""The kinds that are proposed; people may add rows of other kinds, such as `face`."""
HIDDEN_BY: Mapping[str, Literal["blur", "black"]] = {"outside": "blur"}
COLUMNS = ("source", "kind", "start", "end", "x", "y", "width", "height", "score", "decision", "how", "by", "note")
_LABELS = ("source", "start", "end", "shows")
_SAME = 0.5  # share of the shorter duration, and of the smaller area


class Proposal(FrozenModel):
    """A stretch to decide on, from `start` to `end`: the whole frame or a region; `score` is its highest score from 0 to
    1, None if a person added it."""

    kind: str = Field(min_length=1, max_length=40)
    start: float = Field(ge=0)
    end: float
    region: Region | None = None
    score: float | None = None


@dataclass(frozen=True)
class Decision:
    """A row of `decisions.csv`: a proposal about a source, and what `by` decided (`decision` is empty until then)."""

    source: str
    what: Proposal
    decision: Literal["", "accept", "reject"] = ""
    how: Literal["blur", "black", "remove"] = "black"
    by: str = ""
    note: str = ""

    @property
    def redaction(self) -> Redaction:
        """The redaction, if accepted."""
        return Redaction(start=self.what.start, end=self.what.end, region=self.what.region, how=self.how)


@dataclass(frozen=True)
class LabelledStretch:
    """A row of `labels.csv`: whether the source shows the outside of the body from `start` to `end`."""

    source: str
    start: float
    end: float
    outside: bool


def outside_spans(
    times: Sequence[float], scores: NDArray[np.float64], threshold: float, *, pad_s: float, end: float
) -> list[Proposal]:
    """Runs of frames with scores at or above the threshold, extended by `pad_s` seconds at both ends; runs that then
    overlap or touch are joined.

    >>> spans = outside_spans([0, 1, 2, 3, 4, 5], np.array([0, 0, 0.9, 0.8, 0, 0]), 0.5, pad_s=1.0, end=6.0)
    >>> [(one.start, one.end, one.score) for one in spans]
    [(1.0, 4.0, 0.9)]
    """
    spans: list[tuple[float, float, float]] = []
    for time, score in zip(times, scores.tolist(), strict=True):
        if score < threshold:
            continue
        start, stop = max(0.0, time - pad_s), min(end, time + pad_s)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], stop, max(spans[-1][2], score))
        else:
            spans.append((start, stop, score))
    return [_proposal("outside", start, stop, None, score) for start, stop, score in spans if stop > start]


def text_proposals(found: Iterable[TextOverlay], *, pad_s: float, end: float) -> list[Proposal]:
    """Overlays, extended by `pad_s` seconds at both ends and by a quarter of their height on each side."""
    proposals = []
    for text_overlay in found:
        edge = text_overlay.region.height / 4
        left, top = max(0.0, text_overlay.region.x - edge), max(0.0, text_overlay.region.y - edge)
        right = min(1.0, text_overlay.region.x + text_overlay.region.width + edge)
        bottom = min(1.0, text_overlay.region.y + text_overlay.region.height + edge)
        region = Region(x=left, y=top, width=right - left, height=bottom - top)
        proposals.append(
            _proposal(
                "text",
                max(0.0, text_overlay.start - pad_s),
                min(end, text_overlay.end + pad_s),
                region,
                text_overlay.score,
            )
        )
    return proposals


def _proposal(kind: str, start: float, end: float, region: Region | None, score: float) -> Proposal:
    cut = region and Region(**{name: round(value, 4) for name, value in region.model_dump().items()})
    return Proposal(kind=kind, start=round(start, 3), end=round(end, 3), region=cut, score=round(score, 3))


def read_labels(file: Path, known: Sequence[str]) -> list[LabelledStretch]:
    """The labelled stretches of a project; none without a file. Raises `InputError` with all faults."""
    return _rows(file, _LABELS, lambda row: _label(row, known)) if file.exists() else []


def read_decisions(file: Path, known: Sequence[str]) -> list[Decision]:
    """The rows of `decisions.csv`, decided or not; none without a file. Raises `InputError` with all faults."""
    return _rows(file, COLUMNS, lambda row: _decision(row, known)) if file.exists() else []


def write_decisions(file: Path, decisions: Sequence[Decision]) -> None:
    """Writes the table. Raises `InputError` if it can't be written."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for decision in decisions:
        what, region = decision.what, decision.what.region
        location = [region.x, region.y, region.width, region.height] if region else ["", "", "", ""]
        score = "" if what.score is None else what.score
        cells = [
            decision.source,
            what.kind,
            what.start,
            what.end,
            *location,
            score,
            decision.decision,
            decision.how,
            decision.by,
            decision.note,
        ]
        table.writerow([f"{cell:g}" if isinstance(cell, float) else safe_cell(cell) for cell in cells])
    write_whole(file, out.getvalue())


def merged(there: Sequence[Decision], proposed: Mapping[str, Sequence[Proposal]]) -> list[Decision]:
    """The table after new proposals: decided rows, rows that people added, and each proposal that no decided row of its
    kind covers by half. Former undecided proposals are dropped. Sorted by source and start."""
    kept = [decision for decision in there if decision.decision or decision.what.score is None]
    fresh = [
        Decision(source, what, how=HIDDEN_BY.get(what.kind, "black"))
        for source, some in proposed.items()
        for what in some
        if not any(decision.source == source and decision.decision and _same(decision.what, what) for decision in kept)
    ]
    order = list(proposed)
    return sorted(
        kept + fresh,
        key=lambda decision: (order.index(decision.source), decision.what.start, decision.what.kind, decision.what.end),
    )


def _same(proposal: Proposal, other: Proposal) -> bool:
    if proposal.kind != other.kind or (proposal.region is None) != (other.region is None):
        return False
    if _shared(proposal.start, proposal.end, other.start, other.end) < _SAME:
        return False
    first, second = proposal.region, other.region
    if first is None or second is None:
        return True
    across = _shared(first.x, first.x + first.width, second.x, second.x + second.width)
    return across * _shared(first.y, first.y + first.height, second.y, second.y + second.height) >= _SAME


def _shared(start: float, end: float, other_start: float, other_end: float) -> float:
    return max(0.0, min(end, other_end) - max(start, other_start)) / min(end - start, other_end - other_start)


def _rows(file: Path, columns: Sequence[str], read: Callable[[TableRow], T]) -> list[T]:
    table = read_table(file, columns, lenient=True)
    faults = [fault for fault in table.faults if fault.found != "no rows"]
    found: list[T] = []
    for row in table.rows:
        try:
            found.append(
                read(replace(row, cells={name: str(read_safe_cell(cell)) for name, cell in row.cells.items()}))
            )
        except _CellError as error:
            faults.append(TableFault(row.number, error.column, error.found, error.expected))
    if faults:
        first = faults[0].error(file)
        for more in faults[1:]:
            first.add_note(str(more.error(file)))
        raise first
    return found


class _CellError(ValueError):
    def __init__(self, column: str, found: str, expected: str) -> None:
        super().__init__(column)
        self.column, self.found, self.expected = column, found, expected


def _label(row: TableRow, known: Sequence[str]) -> LabelledStretch:
    start, end = _span(row)
    shows = _one_of(row, "shows", ("inside", "outside"))
    return LabelledStretch(_one_of(row, "source", known), start, end, shows == "outside")


def _decision(row: TableRow, known: Sequence[str]) -> Decision:
    start, end = _span(row)
    decision = _one_of(row, "decision", ("", "accept", "reject"))
    kind = row.cells["kind"].strip()
    how = _one_of(row, "how", ("", "blur", "black", "remove")) or HIDDEN_BY.get(kind, "black")
    by = row.cells["by"].strip()
    if decision and not by:
        raise _CellError("by", "nothing", f"who decided to {decision}")
    try:
        score = None if not row.cells["score"].strip() else _number(row, "score")
        what = Proposal(kind=kind, start=start, end=end, region=_region(row), score=score)
        made = Decision(_one_of(row, "source", known), what, decision, how, by, row.cells["note"])
        _ = made.redaction
    except ValidationError as error:
        problem = first_problem(error)
        raise _CellError(problem.field.partition(".")[0], problem.found, problem.expected) from error
    return made


def _span(row: TableRow) -> tuple[float, float]:
    start, end = _number(row, "start"), _number(row, "end")
    if start < 0 or end <= start:
        raise _CellError("end", row.cells["end"], f"seconds after the start at {start:g}")
    return start, end


def _region(row: TableRow) -> Region | None:
    names = ("x", "y", "width", "height")
    if not any(row.cells[name].strip() for name in names):
        return None
    return Region(**{name: _number(row, name) for name in names})


def _number(row: TableRow, column: str) -> float:
    value = cell_number(row.cells[column].strip())
    if value is None:
        raise _CellError(column, repr(row.cells[column])[:40], "a number")
    return value


def _one_of(row: TableRow, column: str, allowed: Sequence[str]) -> Any:
    text = row.cells[column].strip()
    if text not in allowed:
        shown = ", ".join(one or "nothing" for one in list(allowed)[:8])
        raise _CellError(column, repr(text)[:40], f"one of {shown}")
    return text

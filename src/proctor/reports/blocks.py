"""Blocks of output (figures, prose, folds, sections), which renderers turn into terminal text, HTML, CSV or JSON.

Texts in here are plain and may be hostile; every renderer escapes them. Only a figure's `svg` is markup, and it is
made by `proctor.reports.figures` alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.core import DASH, Cell, Column, Span, Table


@dataclass(frozen=True)
class Figure:
    """A drawing with what it shows in words; the numbers behind it are folded away: as a table (`numbers`),
    or where they are many as the lines of a CSV file (`csv`). `narrow` is the same drawing for a phone, where
    one drawing does not do for both. One of an analysis has a `name` that makes a file's name, a `title`, and the
    `facet` that accuracy is split by, where that is all it shows."""

    svg: str
    caption: str
    numbers: Table | None = None
    csv: str = ""
    narrow: str = ""
    name: str = ""
    title: str = ""
    facet: str = ""


@dataclass(frozen=True)
class Prose:
    """A paragraph, or with `points` a list under it; a `quiet` one is a note to what stands above."""

    text: str
    points: tuple[str, ...] = ()
    quiet: bool = False


@dataclass(frozen=True)
class Folded:
    """Blocks behind a line that opens them."""

    title: str
    blocks: tuple[Block, ...]


Block = Prose | Table | Figure | Folded


@dataclass(frozen=True)
class Section:
    """One section: `key` is its anchor, `lead` says in plain words what it shows. A block that is a
    text is a heading for those after it. A section that is not `opened` is folded on the page."""

    key: str
    title: str
    lead: str
    blocks: Sequence[Block | str] = field(default_factory=tuple)
    opened: bool = False


@dataclass(frozen=True)
class Answer:
    """A question that readers have, and its answer in a sentence or two."""

    question: str
    answer: str


@dataclass(frozen=True)
class Story:
    """The first screen of a report."""

    evaluated: str
    answers: tuple[Answer, ...]
    figure: Figure | None = None


def records_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Records as a table with a column for each key. Numbers are shown with four significant digits; programs get the
    full value."""
    names = list(rows[0]) if rows else []
    heads = tuple(
        Column(name.replace("_", " "), numeric=any(_is_number(row[name]) for row in rows), name=name) for name in names
    )
    cells = tuple(tuple(Cell(_shown(row[name]), raw=row[name]) for name in names) for row in rows)
    return Table(title, heads, cells, title=title)


_MAX_ROWS = 40  # of a table in the page; more are shown as the lines of a CSV file


def recorded_figure(
    name: str,
    title: str,
    svg: str,
    caption: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    facet: str = "",
    narrow: str = "",
) -> Figure:
    """A drawing with its records: as a table if they are few, else as CSV."""
    few = len(rows) <= _MAX_ROWS
    numbers, lines = (records_table(caption, rows), "") if few else (None, _csv(rows))
    return Figure(svg, caption, numbers, lines, narrow, name, title, facet)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    from proctor.runs import safe_cell

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(list(rows[0]))
    for row in rows:
        writer.writerow([f"{one:.5g}" if isinstance(one, float) else safe_cell(one) for one in row.values()])
    return out.getvalue()


def span_of(
    axis: tuple[float, float], low: float | None, number: float | None, high: float | None, mark: float | None
) -> Span | None:
    """A value with its interval as fractions of an axis; None without a value."""
    if number is None or axis[1] <= axis[0]:
        return None

    def share(at: float | None) -> float | None:
        return None if at is None else min(1.0, max(0.0, (at - axis[0]) / (axis[1] - axis[0])))

    return Span(share(low), share(number) or 0.0, share(high), share(mark))


def _is_number(one: object) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool)


def _shown(one: object) -> str:
    if one is None:
        return DASH
    if isinstance(one, bool):
        return "yes" if one else "no"
    return f"{one + 0.0:.4g}".replace("-", "−") if isinstance(one, float) else str(one)  # no −0

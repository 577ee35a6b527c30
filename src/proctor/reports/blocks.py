"""What results are shown as, before they are a terminal's text, HTML, CSV or JSON: tables, figures, prose, folds, sections.

Texts in here are plain and may be hostile; every renderer escapes them. Only a figure's `svg` is markup, and it is
made by `proctor.reports.figures` alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.core import DASH, thousands


@dataclass(frozen=True)
class Span:
    """An interval and its value as shares of an axis (0 left, 1 right), drawn beside the numbers;
    `mark` is a line across the axis, such as the chance level."""

    low: float | None
    value: float
    high: float | None
    mark: float | None = None


@dataclass(frozen=True)
class Cell:
    """One cell: its text, a word set apart from it (`badge`), a second line, or a drawn interval.
    `strong` cells are those to look at. `raw` is what programs get in place of the text."""

    text: str
    badge: str = ""
    below: str = ""
    span: Span | None = None
    strong: bool = False
    raw: object = None


Row = tuple[Cell | str | int, ...]


@dataclass(frozen=True)
class Column:
    """A column's head; `numeric` ones are aligned to the right and never cut. `name` is the column's name for programs
    (else its label); a `drawn` one has intervals alone, and is left out where nothing can be drawn."""

    label: str
    numeric: bool = False
    name: str = ""
    drawn: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first cell of a row is its head. `title` names it, `caption` says in a sentence what it
    shows. A whole number stands for a cell that shows it; 0 is shown quietly."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    foot: Row = ()
    title: str = ""

    def __post_init__(self) -> None:
        for row in (*self.rows, self.foot or self.columns):
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells under {len(self.columns)} columns")

    @property
    def texts(self) -> list[list[str]]:
        """The cells as plain texts, row by row, the foot last."""
        return [[_text(cell) for cell in row] for row in (*self.rows, *([self.foot] if self.foot else []))]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as programs read them: by the columns' names, with raw values where there are any."""
        names = [column.name or column.label for column in self.columns]
        return [dict(zip(names, map(_raw, row), strict=True)) for row in self.rows]


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
    """A question that every reader has, and its answer in a sentence or two."""

    question: str
    answer: str


@dataclass(frozen=True)
class Story:
    """What stands on the first screen."""

    evaluated: str
    answers: tuple[Answer, ...]
    figure: Figure | None = None


def columns(*labels: str) -> tuple[Column, ...]:
    """Columns; a label beginning with ">" is of numbers."""
    return tuple(Column(label.removeprefix(">"), numeric=label.startswith(">")) for label in labels)


def records_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Records as a table, a column a key: numbers with four digits that tell something, and as they are for programs."""
    names = list(rows[0]) if rows else []
    heads = tuple(
        Column(name.replace("_", " "), numeric=any(_is_number(row[name]) for row in rows), name=name) for name in names
    )
    cells = tuple(tuple(Cell(_shown(row[name]), raw=row[name]) for name in names) for row in rows)
    return Table(title, heads, cells, title=title)


_MOST_ROWS = 40  # of a table in the page; more are shown as the lines of a CSV file


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
    """A drawing with the records that it is made from: as a table where they are few, else as CSV."""
    few = len(rows) <= _MOST_ROWS
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
    """The drawn form of a value with its interval on an axis; None where there is no value."""
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


def _text(cell: Cell | str | int) -> str:
    if isinstance(cell, int):
        return thousands(cell)
    if isinstance(cell, str):
        return cell
    parts = [cell.text, f"({cell.badge})" if cell.badge else "", f"({cell.below})" if cell.below else ""]
    return " ".join(part for part in parts if part)


def _raw(cell: Cell | str | int) -> Any:
    if isinstance(cell, Cell):
        return cell.text if cell.raw is None and cell.text not in {"", DASH} else cell.raw
    return cell

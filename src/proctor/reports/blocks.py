"""What a report is made of, before it is HTML: sections of prose, tables, figures and folds.

Texts in here are plain and may be hostile; the page escapes every one of them. Only a figure's `svg` is
markup, and it is made by `proctor.reports.figures` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Block", "Cell", "Column", "Figure", "Folded", "Prose", "Section", "Span", "Table"]


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
    `strong` cells are those to look at."""

    text: str
    badge: str = ""
    below: str = ""
    span: Span | None = None
    strong: bool = False


@dataclass(frozen=True)
class Column:
    """A column's head; `numeric` ones are aligned to the right."""

    label: str
    numeric: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first cell of a row is its head. `caption` says in a sentence what it
    shows. A whole number stands for a cell that shows it; 0 is shown quietly."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell | str | int, ...], ...]
    foot: tuple[Cell | str | int, ...] = ()

    def __post_init__(self) -> None:
        for row in (*self.rows, self.foot or self.columns):
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells under {len(self.columns)} columns")


@dataclass(frozen=True)
class Figure:
    """A drawing with what it shows in words; the numbers behind it are folded away: as a table (`numbers`),
    or where they are many as the lines of a CSV file (`csv`)."""

    svg: str
    caption: str
    numbers: Table | None = None
    csv: str = ""


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
    text is a heading for those after it."""

    key: str
    title: str
    lead: str
    blocks: Sequence[Block | str] = field(default_factory=tuple)

"""Tables as data, before they are a terminal's text, HTML, CSV or JSON; and the names of their columns, one for each figure.

Texts in here are plain and may be hostile; every renderer escapes them. Programs get the keys (JSON, CSV, pandas), people
the heads. A figure that has no head here is shown under its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from proctor.core.formatting import DASH, thousands


@dataclass(frozen=True)
class Span:
    """An interval and its value as shares of an axis (0 left, 1 right), drawn beside the numbers. `mark` is a line
    across the axis, such as the chance level; `series` the number from which colour and shape follow (that of a
    condition: `proctor.reports.figures.marks`).

    >>> Span(0.2, 0.5, 0.8).mark is None
    True
    """

    low: float | None
    value: float
    high: float | None
    mark: float | None = None
    series: int = 0


@dataclass(frozen=True)
class Cell:
    """A cell: its text, a highlighted word (`badge`), a second line (`below`), and a drawn interval (`span`). `strong`
    cells are emphasised. `raw` replaces the text in output for programs.

    >>> Cell("50.0 %", raw=0.5).text
    '50.0 %'
    """

    text: str
    badge: str = ""
    below: str = ""
    span: Span | None = None
    strong: bool = False
    raw: object = None


Row = tuple[Cell | str | int, ...]


@dataclass(frozen=True)
class Column:
    """A column's header. `numeric` columns are aligned to the right and never truncated. `name` is the column's name
    for programs (default: its label). `drawn` columns hold intervals only and are omitted where nothing can be drawn.
    `wrapped` columns may take several lines in renderers that otherwise do not wrap.

    >>> Column("Score", numeric=True).wrapped
    False
    """

    label: str
    numeric: bool = False
    name: str = ""
    drawn: bool = False
    wrapped: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first cell of a row is its header. `caption` is a sentence on what the table shows. An
    integer is a cell with this number; 0 is de-emphasised. Raises `ValueError` for a row with a wrong number of cells.

    >>> Table("Scores.", columns("system", ">score"), (("a", 1),)).records
    [{'system': 'a', 'score': 1}]
    """

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
        """The cells as plain text, row by row, with the foot last."""
        return [[_text(cell) for cell in row] for row in (*self.rows, *([self.foot] if self.foot else []))]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name, with raw values where available."""
        names = [column.name or column.label for column in self.columns]
        return [dict(zip(names, map(_raw, row), strict=True)) for row in self.rows]


def columns(*labels: str) -> tuple[Column, ...]:
    """Columns with these labels; a label with the prefix ">" makes a numeric column.

    >>> [(column.label, column.numeric) for column in columns("system", ">score")]
    [('system', False), ('score', True)]
    """
    return tuple(Column(label.removeprefix(">"), numeric=label.startswith(">")) for label in labels)


def plain_table(title: str, labels: Sequence[str], rows: Sequence[Row], wrapped: Sequence[str] = ()) -> Table:
    """A table with these labels (see `columns`); `wrapped` are the labels of columns that may take several lines.

    >>> plain_table("Files", ("name", ">rows"), [("a.csv", "12")]).records
    [{'name': 'a.csv', 'rows': '12'}]
    """
    heads = tuple(replace(column, wrapped=column.label in wrapped) for column in columns(*labels))
    return Table(title, heads, tuple(rows), title=title)


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


HEADS = {
    "system": "System",
    "condition": "Condition",
    "metric": "Metric",
    "scorer": "Scorer",
    "rank": "Rank",
    "rank_ci": "Rank, 95 % CI",
    "resampled_ranks": "Rank in 95 % of resamples",
    "p_first": "First in resamples",
    "p_best": "First in resamples",
    "mean": "Mean over buckets",
    "rank_by_mean": "Rank by mean (95 % CI)",
    "value": "Score",
    "ci": "95 % CI",
    "gain": "Gain",
    "gain_ci": "Gain, 95 % CI",
    "difference": "Difference",
    "lead": "Lead",
    "p": "p",
    "p_holm": "p (Holm)",
    "p_adjusted": "p (adjusted)",
    "adjusted_for": "Adjusted for",
    "scored_only_first": "Scored only first",
    "scored_only_second": "Scored only second",
    "n": "Items",
    "groups": "Groups",
    "only_first_right": "Only first right",
    "only_second_right": "Only second right",
    "value_of": "Value",
    "sd": "SD",
    "q1": "First quartile",
    "q3": "Third quartile",
    "df": "Degrees of freedom",
}
"""The head of each column by its key. `ci` stands for an interval's two keys (`ci_low`, `ci_high`)."""

_TEXTS = {"system", "condition", "metric", "scorer", "adjusted_for"}


def head(name: str, level: float = 0.95) -> Column:
    """The column of a figure.

    >>> head("value").label, head("ci", 0.9).label, head("p_holm").numeric, head("term").label
    ('Score', '90 % CI', True, 'Term')
    """
    label = HEADS.get(name) or name.replace("_", " ").capitalize()
    return Column(label.replace("95 %", f"{100 * level:g} %"), numeric=name not in _TEXTS, name=name)


def heads(*names: str, level: float = 0.95) -> tuple[Column, ...]:
    """The columns of some figures, in order.

    >>> [column.label for column in heads("system", "value", "ci")]
    ['System', 'Score', '95 % CI']
    """
    return tuple(head(name, level) for name in names)

"""Blocks of output (charts, figures, prose, folds, sections), which renderers turn into terminal text, HTML, CSV or JSON.

Texts in here are plain and may be hostile; every renderer escapes them. Only a figure's `svg` is markup, and it is
made by `proctor.reports.figures` alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from proctor import core
from proctor.core import (
    ACCURACY,
    DASH,
    Cell,
    Column,
    Metric,
    Span,
    Table,
    count_of,
    difference,
    interval,
    number,
    number_interval,
    p_value,
    percent,
    rank_range,
    thousands,
    value,
)

if TYPE_CHECKING:
    from proctor.reports.charts import LeaderboardChart

RANK_INTERVAL_LINE = (
    "The intervals of a board contain all true ranks at once with 95 % confidence if systems fail on single questions; of "
    "systems that fail on whole groups (videos), in as few as 84 of 100 simulated boards."
)
"""What the intervals of ranks promise."""


@dataclass(frozen=True)
class Figure:
    """A figure with a caption. The folded numbers are a table (`numbers`), or lines of CSV if they are many (`csv`).
    `narrow` is a variant of the drawing for phones. Figures of an analysis have a `name` for files, a `title`, and the
    `facet` if they only show accuracy by a facet."""

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
    """A paragraph, optionally followed by a list (`points`). A `quiet` paragraph is a note."""

    text: str
    points: tuple[str, ...] = ()
    quiet: bool = False


@dataclass(frozen=True)
class Folded:
    """Collapsible blocks."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = "Prose | Table | Figure | LeaderboardChart | Folded"


@dataclass(frozen=True)
class Section:
    """A section. `key` is its anchor, `lead` explains what it shows. Blocks that are strings are headings. Sections
    that are not `opened` are folded on the page, with their `finding` beside the title; `count` stands beside the title
    in the contents."""

    key: str
    title: str
    lead: str
    blocks: Sequence[Block | str] = field(default_factory=tuple)
    opened: bool = False
    finding: str = ""
    count: str = ""


@dataclass(frozen=True)
class Answer:
    """A question of readers, and its answer in a sentence or two."""

    question: str
    answer: str


@dataclass(frozen=True)
class Story:
    """The summary at the top of a report: what was evaluated, answers, and the finding in one sentence (`headline`)."""

    evaluated: str
    answers: tuple[Answer, ...]
    headline: str = ""


_NO_INTERVAL = "whisker"
_VALUES = {
    *("value", "mean", "median", "q1", "q3", "lowest", "highest", "whisker_low", "whisker_high", "ci_low", "ci_high"),
    *("p2_5", "p97_5"),
}
_SHARES = {"share", "chance", "p_first", "p_best"}
_DIFFERENCES = {"difference", "gain", "lead"}
_BOUNDS = {"low", "high"}  # of a metric: whole numbers, as they were declared
_TESTS = {"p", "p_holm", "p_adjusted"}


@dataclass(frozen=True)
class Units:
    """What the numbers of records are: values of a `metric` (None: plain numbers with three digits), of which the columns
    `signed` hold differences."""

    metric: Metric | None = None
    signed: tuple[str, ...] = ()

    def shown(self, name: str, one: object) -> str:
        """The value of a column, as the formatter of its kind shows it everywhere."""
        if isinstance(one, float):
            return self._number(name, one)
        if isinstance(one, bool):
            return "yes" if one else "no"
        return DASH if one is None else thousands(one) if isinstance(one, int) else str(one)

    def _number(self, name: str, one: float) -> str:
        if name in _TESTS or name.startswith("p, "):
            return p_value(one)
        if name in _SHARES:
            return percent(one)
        if name in _BOUNDS:
            return f"{one:g}"
        if self.metric is None:
            return number(one)
        if name in (*_DIFFERENCES, *self.signed):
            return difference(self.metric, one)
        if name == "sd":
            return difference(self.metric, one).removeprefix("+")
        return value(self.metric, one) if name in _VALUES else number(one)

    def ends(self, low: Any, high: Any) -> str:
        """An interval, given its ends or None."""
        if isinstance(low, int) and isinstance(high, int):
            return rank_range(low, high)
        return number_interval(low, high) if self.metric is None else interval(self.metric, low, high)


def records_table(title: str, rows: Sequence[Mapping[str, Any]], units: Units = Units()) -> Table:
    """Records as a table with a column for each key, and one for both ends of an interval. `units` say what the numbers
    are; programs get the full value."""
    names = list(rows[0]) if rows else []
    joined = {name: f"{name.removesuffix('_low')}_high" for name in names if name.endswith("_low")}
    joined = {low: high for low, high in joined.items() if high in names and not low.startswith(_NO_INTERVAL)}
    shown = [name for name in names if name not in joined.values()]

    def column(name: str) -> Column:
        if name in joined:
            return _interval_head(name)
        if name in units.signed:
            return replace(core.head("difference"), name=name)
        return replace(core.head(name), numeric=any(_is_number(row[name]) for row in rows))

    def cell(row: Mapping[str, Any], name: str) -> Cell:
        if name in _TESTS and row.get("decides") is False:
            few = f"{count_of(row['groups'], 'group')} can't decide" if name == "p" else DASH
            return Cell(few, raw=row[name])
        if name in joined:
            ends = [row[name], row[joined[name]]]
            return Cell(units.ends(*ends), raw=ends)
        return Cell(units.shown(name, row[name]), raw=row[name])

    cells = tuple(tuple(cell(row, name) for name in shown) for row in rows)
    return Table(title, tuple(map(column, shown)), cells, title=title)


def _interval_head(name: str) -> Column:
    """The column of both ends of an interval, by the key of its lower one."""
    ends = name.removesuffix("_low")
    if ends == "ci":
        return core.head("ci")
    return Column(f"{core.head(ends).label}, {core.head('ci').label}", numeric=True, name=f"{ends}_ci")


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
    units: Units = Units(ACCURACY),
) -> Figure:
    """A drawing with its records: as a table of the columns that vary if they are few, else as CSV. `units` say what the
    numbers are."""
    few = len(rows) <= _MAX_ROWS
    numbers, lines = (records_table(caption, _varying(rows), units), "") if few else (None, _csv(rows))
    return Figure(svg, caption, numbers, lines, narrow, name, title, facet)


def _varying(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records without the columns that are the same in all of them.

    >>> _varying([{"system": "a", "n": 5, "p": None}, {"system": "b", "n": 5, "p": None}])
    [{'system': 'a'}, {'system': 'b'}]
    """
    if len(rows) < 2:
        return [dict(row) for row in rows]
    kept = [name for name in rows[0] if any(row[name] != rows[0][name] for row in rows)]
    return [{name: row[name] for name in kept} for row in rows]


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(core.safe_cell, rows[0]))
    for row in rows:
        writer.writerow([f"{one:.5g}" if isinstance(one, float) else core.safe_cell(one) for one in row.values()])
    return out.getvalue()


def span_of(
    axis: tuple[float, float], low: float | None, middle: float | None, high: float | None, mark: float | None
) -> Span | None:
    """A value with its interval as fractions of an axis; None without a value."""
    if middle is None or axis[1] <= axis[0]:
        return None

    def share(at: float | None) -> float | None:
        return None if at is None else min(1.0, max(0.0, (at - axis[0]) / (axis[1] - axis[0])))

    return Span(share(low), share(middle) or 0.0, share(high), share(mark))


def _is_number(one: object) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool)

"""What every picture has: a drawing, what it shows in words, and the numbers behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.core import ACCURACY
from proctor.reports.blocks import Cell, Column, Figure, Table
from proctor.reports.words import difference, interval, value
from proctor.runs.analysis import Row
from proctor.runs.export import safe_cell

__all__ = ["Picture", "gap_text", "percent", "picture"]

_MOST_ROWS = 40  # of a table in the page; more are shown as the lines of a CSV file


@dataclass(frozen=True)
class Picture:
    """`name` is unique and makes a file's name; `title` stands above the figure; `table` is the analysis' table that
    the picture is drawn from."""

    name: str
    title: str
    table: str
    figure: Figure


def picture(name: str, title: str, table: str, svg: str, *, caption: str, rows: Sequence[Row]) -> Picture:
    """A drawing with its caption and its numbers: as a table where they are few, else as CSV."""
    if len(rows) <= _MOST_ROWS:
        return Picture(name, title, table, Figure(svg, caption, _table(caption, rows)))
    return Picture(name, title, table, Figure(svg, caption, csv=_csv(rows)))


def _table(caption: str, rows: Sequence[Row]) -> Table:
    columns = tuple(Column(name.replace("_", " "), numeric=_numeric(name, rows)) for name in rows[0])
    return Table(caption, columns, tuple(tuple(Cell(_shown(one)) for one in row.values()) for row in rows))


def _numeric(name: str, rows: Sequence[Row]) -> bool:
    return any(isinstance(row[name], int | float) and not isinstance(row[name], bool) for row in rows)


def _shown(one: object) -> str:
    if one is None:
        return "–"
    if isinstance(one, bool):
        return "yes" if one else "no"
    return f"{one:.4g}".replace("-", "−") if isinstance(one, float) else str(one)


def _csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(list(rows[0]))
    for row in rows:
        writer.writerow([f"{one:.5g}" if isinstance(one, float) else safe_cell(one) for one in row.values()])
    return out.getvalue()


def percent(share: float | None) -> str:
    """A share as a percentage with one digit; a dash where there is none.

    >>> percent(0.5), percent(None)
    ('50.0 %', '–')
    """
    return value(ACCURACY, share)


def gap_text(middle: float | None, low: float | None, high: float | None) -> str:
    """A difference of accuracies with its interval, in points.

    >>> gap_text(0.1, -0.02, 0.2)
    '+10.0 pts (−2.0 to 20.0)'
    """
    return f"{difference(ACCURACY, middle)} ({interval(ACCURACY, low, high)})"

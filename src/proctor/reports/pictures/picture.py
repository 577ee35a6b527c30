"""What every picture has: a drawing, what it shows in words, the numbers behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.core import ACCURACY, difference, interval
from proctor.reports.blocks import Figure, records_table
from proctor.runs import AnalysisRow, safe_cell

_MOST_ROWS = 40  # of a table in the page; more are shown as the lines of a CSV file


@dataclass(frozen=True)
class Picture:
    """`name` is unique and makes a file's name; `title` stands above the figure; `table` is the analysis' table that
    the picture is drawn from, `facet` what accuracy is split by, where that is all it shows."""

    name: str
    title: str
    table: str
    figure: Figure
    facet: str = ""


def picture(
    name: str, title: str, table: str, svg: str, *, caption: str, rows: Sequence[AnalysisRow], facet: str = ""
) -> Picture:
    """A drawing with its caption and its numbers: as a table where they are few, else as CSV."""
    if len(rows) <= _MOST_ROWS:
        return Picture(name, title, table, Figure(svg, caption, records_table(caption, rows)), facet)
    return Picture(name, title, table, Figure(svg, caption, csv=_csv(rows)), facet)


def _csv(rows: Sequence[AnalysisRow]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(list(rows[0]))
    for row in rows:
        writer.writerow([f"{one:.5g}" if isinstance(one, float) else safe_cell(one) for one in row.values()])
    return out.getvalue()


def gap_text(middle: float | None, low: float | None, high: float | None) -> str:
    """A difference of accuracies with its interval, in points.

    >>> gap_text(0.1, -0.02, 0.2)
    '+10.0 pts (−2.0 to 20.0)'
    """
    return f"{difference(ACCURACY, middle)} ({interval(ACCURACY, low, high)})"

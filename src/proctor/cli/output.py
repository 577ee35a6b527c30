"""Printing: tables for people, JSON and CSV for programs. Everything shown is escaped."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console, ConsoleDimensions
from rich.markup import escape

from proctor.cli.tables import show_table
from proctor.core import Metric

__all__ = [
    "console",
    "drawn_over",
    "interval",
    "note",
    "print_csv",
    "print_json",
    "print_table",
    "print_tsv",
    "share",
]

_WIDE = 200  # of what is no terminal: nobody wants a table that is wrapped in a file


class _Terminal(Console):
    """Standard output as it is when something is printed: a terminal of some width, or something wide."""

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        if self.file.isatty():
            return super().size
        return ConsoleDimensions(_WIDE, super().size.height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size


console = _Terminal(emoji=False)
_notes = Console(stderr=True, soft_wrap=True, emoji=False)


def print_json(value: Any) -> None:
    """JSON on standard output; never NaN."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """CSV on standard output."""
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    writer.writerows(rows)


def print_tsv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Tab-separated lines on standard output; a tab or a line's end within a cell becomes a space."""
    for row in (columns, *rows):
        cells = ("" if cell is None else " ".join(str(cell).split()) for cell in row)
        sys.stdout.write("\t".join(cells) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: Sequence[str] = ()
) -> None:
    """A table for people: columns beginning with ">" hold numbers, which are aligned to the right and never
    cut (see `show_table`)."""
    console.print(escape(title), style="bold", soft_wrap=True)
    show_table(console, columns, rows, wrapped=wrapped)


def note(text: str) -> None:
    """A line for people beside the output, on standard error."""
    _notes.print(escape(text), style="dim", highlight=False)


def drawn_over(draws: int, seed: int, *, two_level: bool) -> str:
    """How the intervals of a table were drawn."""
    what = "groups, and over items within each" if two_level else "groups"
    return f"Intervals: 95 %, bootstrap over {what}, {draws} draws, seed {seed}."


def interval(metric: Metric, low: float | None, high: float | None) -> str:
    """An interval as people read it; a dash where it cannot be known."""
    if low is None or high is None:
        return "–"
    scale = 100 if metric.percent else 1
    digits = 1 if metric.percent else 2
    return f"{scale * low:.{digits}f} to {scale * high:.{digits}f}"


def share(metric: Metric, value: float | None) -> str:
    """A value as people read it; a dash where there is none."""
    return "–" if value is None else metric.show(value)

"""Printing: tables for people, JSON and CSV for programs. Everything shown is escaped."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleDimensions
from rich.markup import escape

if TYPE_CHECKING:
    from proctor.reports import Block

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
    from proctor.reports import show_table

    console.print(escape(title), style="bold", soft_wrap=True)
    show_table(console, columns, rows, wrapped=wrapped)


def print_blocks(blocks: Sequence[Block | str]) -> None:
    """Tables and prose for people."""
    from proctor.reports import show_block

    for one in blocks:
        show_block(console, one)


def print_records(rows: Sequence[Mapping[str, Any]], *, tabs: bool = False) -> None:
    """Records as CSV, or with tabs between the cells, on standard output; all have the keys of the first."""
    write = print_tsv if tabs else print_csv
    write(list(rows[0]) if rows else [], [list(row.values()) for row in rows])


def note(text: str) -> None:
    """A line for people beside the output, on standard error."""
    _notes.print(escape(text), style="dim", highlight=False)


def drawn_over(draws: int, seed: int, *, two_level: bool) -> str:
    """How the intervals of a table were drawn."""
    what = "groups, and over items within each" if two_level else "groups"
    return f"Intervals: 95 %, bootstrap over {what}, {draws} draws, seed {seed}."

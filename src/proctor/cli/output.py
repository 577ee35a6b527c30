"""Printing: tables for people, JSON and CSV for programs. Everything shown is escaped."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console, ConsoleDimensions
from rich.markup import escape

from proctor.core import Option

if TYPE_CHECKING:
    from proctor.reports import Block

_WIDE = 200  # of what is no terminal: nobody wants a table that is wrapped in a file


class OutputFormat(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Output = Annotated[OutputFormat, Option("For people or for programs.", "--format")]


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


def say(text: str, *, bold: bool = False) -> None:
    """A line on standard output, never cut. Texts may be hostile: no control character, no markup reaches the
    terminal."""
    from proctor.core import clean

    console.print(clean(text), style="bold" if bold else "", markup=False, highlight=False, soft_wrap=True)


def note(*lines: str) -> None:
    """Lines for people beside the output, on standard error."""
    for line in lines:
        _notes.print(escape(line), style="dim", highlight=False)


def print_json(value: Any) -> None:
    """JSON on standard output; never NaN."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def print_records(rows: Sequence[Mapping[str, Any]], *, tabs: bool = False) -> None:
    """Records as CSV, or with tabs between the cells, on standard output; all have the keys of the first."""
    lines = [list(rows[0]) if rows else [], *(list(row.values()) for row in rows)]
    if tabs:  # a tab or a line's end within a cell becomes a space
        cleaned = (["" if cell is None else " ".join(str(cell).split()) for cell in line] for line in lines)
        sys.stdout.write("".join("\t".join(line) + "\n" for line in cleaned))
    else:
        csv.writer(sys.stdout).writerows(lines)


def print_blocks(*blocks: Block | str, apart: bool = False) -> None:
    """Tables and prose for people; with a blank line after each, where they are set `apart`."""
    from proctor.reports import show_block

    for one in blocks:
        show_block(console, one)
        if apart:
            console.print()


def show(output: OutputFormat, rows: Sequence[Mapping[str, Any]], *blocks: Block | str, apart: bool = False) -> None:
    """The same for programs, by its records, or for people, by its blocks."""
    if output is OutputFormat.JSON:
        print_json(rows)
    elif output is OutputFormat.TABLE:
        print_blocks(*blocks, apart=apart)
    else:
        print_records(rows)


def settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """How what is drawn was drawn, as it stands in JSON beside each object."""
    return {"settings": {name: options[name] for name in ("draws", "seed", "two_level") if name in options}}


def drawn_over(draws: int, seed: int, *, two_level: bool) -> str:
    """How the intervals of a table were drawn."""
    what = "groups, and over items within each" if two_level else "groups"
    return f"Intervals: 95 %, bootstrap over {what}, {draws} draws, seed {seed}."

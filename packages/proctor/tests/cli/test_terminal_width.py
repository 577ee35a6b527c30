"""Tables on a real terminal: no number is lost, whatever its width."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from proctor.reports import Block, Prose
from proctor.reports.renderers import show_block, show_table
from tests.support.program import proctor, within_terminal
from tests.support.text_folder import write_text_folder

COLUMNS = ["system", "condition", "question type", ">value", ">interval", *(f">not submitted {k}" for k in range(7))]
ROWS = [
    [f"a-system-with-a-long-name-{k}", "text-only", "temporal grounding", f"{k}7.5 %", f"{k}0.1 to {k}9.9"]
    + [f"{k}{n}00" for n in range(7)]
    for k in range(1, 4)
]


def printed(width: int, *, terminal: bool = True) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None, emoji=False)
    show_table(console, COLUMNS, ROWS)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200, 300])
def test_every_number_is_whole_at_every_width(width: int) -> None:
    said = printed(width)
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= width
    for row in ROWS:
        for cell in row[3:]:
            assert re.search(rf"(?<![\w.]){re.escape(cell)}(?![\w.])", said), cell


@pytest.mark.parametrize(
    "block", ["one long title of a table " * 9, Prose("a sentence of several words " * 9, ("point " * 30,))]
)
def test_prose_and_titles_wrap_at_words_on_a_terminal_alone(block: Block | str) -> None:
    shown = {}
    for terminal in (True, False):
        out = io.StringIO()
        show_block(Console(file=out, width=80, force_terminal=terminal, color_system=None, emoji=False), block)
        shown[terminal] = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    lines = shown[True].splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80
    assert shown[True].split() == shown[False].split()
    assert len(shown[False].splitlines()) == (1 if isinstance(block, str) else 2)


def test_what_fits_is_one_table() -> None:
    assert len(printed(300).splitlines()) == 1 + len(ROWS)
    assert printed(300) == printed(300, terminal=False)


def test_each_table_below_says_whose_rows_they_are() -> None:
    tables = printed(80).split("\n\n")
    assert len(tables) > 1
    for table in tables:
        joined = "".join(table.split())
        assert all(f"name-{k}" in joined or f"-{k}" in joined for k in range(1, 4))


def test_elsewhere_texts_are_shortened_and_numbers_never() -> None:
    said = printed(180, terminal=False)
    assert len(said.splitlines()) == 1 + len(ROWS)
    assert "…" in said
    assert all(cell in said for row in ROWS for cell in row[3:])
    narrow = printed(80, terminal=False)
    assert all(cell in narrow for row in ROWS for cell in row[3:])


def test_the_program_at_eighty_columns(tmp_path: Path) -> None:
    """The same numbers as in a pipe, on a terminal of 80 columns."""
    folder, store = write_text_folder(tmp_path / "data", 12), tmp_path / "runs.db"
    command: list[str | Path] = ["run", "simulated", "--data", folder, "--store", store, "--condition", "text-only"]
    assert proctor(*command, "--system", "random").returncode == 0
    shown: list[str | Path] = ["results", "simulated", "--store", store, "--draws", "200"]
    code, narrow = within_terminal(*shown, columns=80)
    assert code == 0
    piped = proctor(*shown).stdout
    numbers = re.findall(r"\d+\.\d %|\d+\.\d to \d+\.\d", piped)
    assert numbers
    assert all(number in narrow for number in numbers)
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80

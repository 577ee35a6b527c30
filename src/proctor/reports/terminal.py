"""Blocks on a terminal of any width: a number is never cut; what is too wide goes into a second table."""

from __future__ import annotations

from collections.abc import Sequence

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape

from proctor.core import Table, clean
from proctor.reports.blocks import Block, Folded, Prose, Section

_GAP = 2
_NAME = 20  # columns that the name of a row has where it can
_LEAST = 10  # columns that a text keeps, however narrow the terminal


def show_section(console: Console, section: Section) -> None:
    """Its title, then its blocks."""
    _heading(console, section.title, style="bold underline")
    for one in section.blocks:
        show_block(console, one)
        console.print()


def show_block(console: Console, block: Block | str) -> None:
    """Prints one block. Of a figure its numbers are printed, of a table its title, else its caption; columns of drawn
    intervals are left out."""
    if isinstance(block, str):
        _heading(console, block)
    elif isinstance(block, Prose):
        style = "dim" if block.quiet else None
        for line in (*([block.text] if block.text else []), *(f"- {point}" for point in block.points)):
            _line(console, line, style)
    elif isinstance(block, Table):
        _heading(console, block.title or block.caption)
        kept = [k for k, column in enumerate(block.columns) if not column.drawn]
        heads = [f"{'>' if block.columns[k].numeric else ''}{block.columns[k].label}" for k in kept]
        wrapped = [head for head, k in zip(heads, kept, strict=True) if block.columns[k].wrapped]
        show_table(console, heads, [[row[k] for k in kept] for row in block.texts], wrapped=wrapped)
    elif isinstance(block, Folded):
        for one in (block.title, *block.blocks):
            show_block(console, one)
    elif block.numbers is not None:
        show_block(console, block.numbers)


def _heading(console: Console, text: str, style: str = "bold") -> None:
    _line(console, text, style)


def _line(console: Console, text: str, style: str | None) -> None:
    """A terminal gets it wrapped at words; what is no terminal gets it whole."""
    console.print(escape(clean(text)), style=style, soft_wrap=not console.is_terminal, highlight=False)


def show_table(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: Sequence[str] = ()
) -> None:
    """Prints a table; columns beginning with ">" hold numbers and are aligned to the right.

    On a terminal, texts wrap, and columns that find no room are printed below, beside the first ones again.
    Elsewhere texts are shortened (those of `wrapped` columns wrap there, too) before anything is printed below.
    """
    columns, rows = (
        [clean(name) for name in columns],
        [[" ".join(clean(cell).split("\n")) for cell in row] for row in rows],
    )
    room, everything = console.width, list(range(len(columns)))
    wide = [_width(name, [row[k] for row in rows], stacked=False) for k, name in enumerate(columns)]
    least = [_least(name, width, _LEAST) for name, width in zip(columns, wide, strict=True)]
    if _total(wide if console.is_terminal else least) <= room:
        widths = _shrunk(wide, least, room)
        console.print(_table(columns, rows, everything, widths, wrapped))
        return
    slim = [_width(name, [row[k] for row in rows], stacked=True) for k, name in enumerate(columns)]
    keys = _keys(columns)
    figures = max((slim[k] for k in everything[len(keys) :]), default=0)
    floor = max(1, min(_LEAST, (room - figures) // max(1, len(keys)) - _GAP))
    least = [_least(name, width, floor) for name, width in zip(columns, slim, strict=True)]
    whole = [min(slim[k], _NAME) if k in keys else width for k, width in enumerate(least)]
    least = (
        whole if _total([*(whole[k] for k in keys), figures]) <= room else least
    )  # names are not cut for one column more
    for number, shown in enumerate(_blocks(keys, least, room)):
        if number:
            console.print()
        widths = _shrunk([slim[k] for k in shown], [least[k] for k in shown], room)
        console.print(_table(columns, rows, shown, widths, columns))


def _keys(columns: Sequence[str]) -> list[int]:
    """The leading texts, which say whose row it is."""
    lead = next((k for k, name in enumerate(columns) if name.startswith(">")), len(columns))
    return list(range(min(lead, len(columns) - 1)))


def _blocks(keys: Sequence[int], least: Sequence[int], room: int) -> list[list[int]]:
    """Which columns stand together: each table begins with the keys."""
    blocks: list[list[int]] = [[*keys]]
    for k in range(len(keys), len(least)):
        tried = [*blocks[-1], k]
        if _total([least[one] for one in tried]) > room and len(tried) > len(keys) + 1:
            blocks.append([*keys, k])
        else:
            blocks[-1] = tried
    return blocks


def _shrunk(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths with texts made narrower, the widest first, until all fits or each has its least."""
    found = list(widths)
    while _total(found) > room:
        texts = [k for k, width in enumerate(found) if width > least[k]]
        if not texts:
            break
        found[max(texts, key=found.__getitem__)] -= 1
    return found


def _least(name: str, width: int, floor: int) -> int:
    """Numbers keep their width."""
    return width if name.startswith(">") else min(width, floor)


def _width(name: str, cells: Sequence[str], *, stacked: bool) -> int:
    """What a column takes; where room is short its heading may wrap between words."""
    head = name.removeprefix(">")
    heads = head.split() if stacked else [head]
    return max(map(cell_len, [*heads, *cells]), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    shown: Sequence[int],
    widths: Sequence[int],
    wrapped: Sequence[str],
) -> rich_table.Table:
    table = rich_table.Table(box=None, pad_edge=False)
    for k, width in zip(shown, widths, strict=True):
        wraps = columns[k] in wrapped
        table.add_column(
            escape(columns[k].removeprefix(">")),
            justify="right" if columns[k].startswith(">") else "left",
            width=width,
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
        )
    for row in rows:
        table.add_row(*(escape(row[k]) for k in shown))
    return table

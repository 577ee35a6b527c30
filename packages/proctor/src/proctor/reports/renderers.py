"""Render blocks: in a terminal of any width, and as one HTML page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape

from proctor.core import Table, clean, thousands
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section, Story

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markupsafe import Markup

    from proctor.reports.packing import BrowserData

_GAP = 2

_NAME = 20  # columns that the name of a row has where it can

_LEAST = 10  # columns that a text keeps, however narrow the terminal


def show_section(console: Console, section: Section) -> None:
    """Print a section: its title, then its blocks."""
    _heading(console, section.title, style="bold underline")
    for block in section.blocks:
        show_block(console, block)
        console.print()


def show_block(console: Console, block: Block | str) -> None:
    """Print one block. A figure prints its numbers, a table its title (else its caption). Drawn columns are left
    out."""
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
    """Print a line, wrapped at words on a terminal only."""
    console.print(escape(clean(text)), style=style, soft_wrap=not console.is_terminal, highlight=False)


def show_table(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: Sequence[str] = ()
) -> None:
    """Print a table. Columns beginning with ">" hold numbers and are right-aligned.

    On a terminal, texts wrap, and columns without room are printed in another table below, with the first columns
    repeated. Elsewhere, texts are shortened first (those of `wrapped` columns wrap).
    """
    columns = [clean(name) for name in columns]
    rows = [[" ".join(clean(cell).split("\n")) for cell in row] for row in rows]
    room = console.width
    wide = [_width(name, [row[k] for row in rows], stacked=False) for k, name in enumerate(columns)]
    least = [_least(name, width, _LEAST) for name, width in zip(columns, wide, strict=True)]
    if _total(wide if console.is_terminal else least) <= room:
        widths = _shrunk(wide, least, room)
        console.print(_rich_table(columns, rows, list(range(len(columns))), widths, wrapped))
    else:
        _show_stacked(console, columns, rows)


def _show_stacked(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that is too wide as several below each other."""
    room = console.width
    slim = [_width(name, [row[k] for row in rows], stacked=True) for k, name in enumerate(columns)]
    keys = _keys(columns)
    figures = max((_least(columns[k], slim[k], _LEAST) for k in range(len(keys), len(columns))), default=0)
    floor = max(1, min(_LEAST, (room - figures) // max(1, len(keys)) - _GAP))
    least = [_least(name, width, floor) for name, width in zip(columns, slim, strict=True)]
    whole = [min(slim[k], _NAME) if k in keys else width for k, width in enumerate(least)]
    if _total([*(whole[k] for k in keys), figures]) <= room:
        least = whole  # names are not cut for one column more
    for number, shown in enumerate(_blocks(keys, least, room)):
        if number:
            console.print()
        widths = _shrunk([slim[k] for k in shown], [least[k] for k in shown], room)
        console.print(_rich_table(columns, rows, shown, widths, columns))


def _keys(columns: Sequence[str]) -> list[int]:
    """The leading text columns, which name the row."""
    lead = next((k for k, name in enumerate(columns) if name.startswith(">")), len(columns))
    return list(range(min(lead, len(columns) - 1)))


def _blocks(keys: Sequence[int], least: Sequence[int], room: int) -> list[list[int]]:
    """The columns of each table. All begin with the keys."""
    blocks: list[list[int]] = [[*keys]]
    for k in range(len(keys), len(least)):
        tried = [*blocks[-1], k]
        if _total([least[one] for one in tried]) > room and len(tried) > len(keys) + 1:
            blocks.append([*keys, k])
        else:
            blocks[-1] = tried
    return blocks


def _shrunk(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths, with the widest texts narrowed until all fit or have their minimum."""
    shrunk = list(widths)
    while _total(shrunk) > room:
        texts = [k for k, width in enumerate(shrunk) if width > least[k]]
        if not texts:
            break
        shrunk[max(texts, key=shrunk.__getitem__)] -= 1
    return shrunk


def _least(name: str, width: int, floor: int) -> int:
    """Numbers keep their width."""
    return width if name.startswith(">") else min(width, floor)


def _width(name: str, cells: Sequence[str], *, stacked: bool) -> int:
    """The width of a column; the heading of a `stacked` one wraps between words."""
    head = name.removeprefix(">")
    heads = head.split() if stacked else [head]
    return max(map(cell_len, [*heads, *cells]), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _rich_table(
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


_UNSAFE = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})

_STYLES = ("shared/tokens.css", "shared/chart.css", "report.css")
_SCRIPTS = ("shared/chart.js", "panes.js", "contents.js", "browser.js")


def embedded_json(value: Any) -> str:
    """JSON that is safe inside a script element: nothing in it can end the element or begin another.

    >>> embedded_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    from proctor.reports.packing import compact

    return compact(value).translate(_UNSAFE)


def render_page(
    *, story: Story, sections: Sequence[Section], last: Section, data: BrowserData | None, **context: Any
) -> str:
    """Render the page: the story, the sections, the item browser, and the last section. `data` is what the browser
    shows. `context` has the template's other names: title, simulated, withheld, browsing (a sentence on the browser),
    shown, left_out, version."""
    style, script = "".join(map(_asset, _STYLES)), "".join(map(_asset, _SCRIPTS))
    page: str = _template().render(
        story=story,
        sections=sections,
        last=last,
        data="null" if data is None else _plain_json(data),
        blocks=() if data is None else data.blocks,
        style=style,
        style_hash=_csp_hash(style),
        script=script,
        script_hash=_csp_hash(script),
        **context,
    )
    return page


def _plain_json(data: BrowserData) -> str:
    """Everything that is not in blocks."""
    judgements = [data.judgements[number] for number in sorted(data.judgements)]
    head = embedded_json({**data.head, "judgements": judgements})
    items = f'"items":[{",".join(data.items)}]'.translate(_UNSAFE)
    return f"{head[:-1]},{items}}}"


@cache
def _template() -> Template:
    return _environment().get_template("report.html.j2")


def blocks_html(blocks: Iterable[Block | str]) -> str:
    """Blocks as HTML, as they stand in a report. Every text is escaped; it needs `chart.css` and rules for tables."""
    from jinja2 import Template as Loaded

    template: Loaded = _environment().get_template("blocks.html.j2")
    return "\n".join(str(template.module.block(one)) for one in blocks)  # type: ignore[attr-defined]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from proctor.reports.charts import LeaderboardChart, chart_html

    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters |= {"clean": clean, "thousands": thousands, "marker": _marker, "chart": chart_html}
    environment.tests |= {
        kind.__name__.lower(): lambda one, kind=kind: isinstance(one, kind)
        for kind in (Prose, Table, Figure, LeaderboardChart)
    }
    return environment


def _marker(x: float, series: int) -> Markup:
    """The marker of a series in a row that is 16 pixels high."""
    from markupsafe import Markup

    from proctor.reports.figures import SvgCanvas

    canvas = SvgCanvas(140, 16)
    canvas.marker(x, 8, series, 7)
    return Markup(canvas.inner)  # noqa: S704  # numbers and names of colours alone


@cache
def _asset(name: str) -> str:
    return (files("proctor.reports") / "assets" / name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    """The hash of an inline script or style, for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")

"""Matrices: shares, correlations, probabilities of ranks, and significant differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.core import shorten
from proctor.reports.figures.canvas import CHARACTER, LABEL, SLIM_LABEL, WIDE, SvgCanvas, label_width

_ROW, _CELL, _HEADS = 21, 44, 34
_DEEP = 0.6  # opacity of a value of ±1, on which dark text is still readable


@dataclass(frozen=True)
class Matrix:
    """`values[row][column]` from −1 to 1 (None: missing), formatted by `text`. `starts` are columns with a line before
    them. `bands` are named groups of columns (name, first column, number of columns). `counts` are the numbers of
    questions of the columns."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    text: Callable[[float], str]
    starts: Sequence[int] = ()
    bands: Sequence[tuple[str, int, int]] = ()
    counts: Sequence[str] = ()


def draw_matrix(key: str, title: str, matrix: Matrix) -> str:
    """A heat map, blue above 0 and orange below. Column names read upwards, with bands above them."""
    names = [shorten(row, LABEL) for row in matrix.rows]
    heads = [shorten(column, _HEADS) for column in matrix.columns]
    left = label_width([*names, *(["questions"] if matrix.counts else [])])
    cell = min(_CELL, (WIDE - left - 10) / max(1, len(heads)))
    words = 12 + CHARACTER * max((len(name) for name in heads), default=0)
    head = words + (22 if matrix.bands else 0)
    bottom = head + _ROW * len(names)
    drawing = SvgCanvas(left + cell * len(heads) + 10, bottom + (22 if matrix.counts else 6))
    for column, name in enumerate(heads):
        drawing.text(left + cell * (column + 0.5), head - 6, name, size=11, turned=True)
    for row, (name, values) in enumerate(zip(names, matrix.values, strict=True)):
        y = head + _ROW * row
        drawing.text(left - 10, y + _ROW / 2, name, anchor="end")
        _draw_values(drawing, values, matrix.text, (left, y), cell)
    for name, first, count in matrix.bands:
        shown = shorten(name, int(count * cell / CHARACTER))
        drawing.text(left + cell * (first + count / 2), 11, shown, anchor="middle", bold=True)
    for start in (*matrix.starts, *(first for _, first, _ in matrix.bands if first)):
        drawing.rule(left + cell * start, head, bottom, "ink", 1.5)
    for column, asked in enumerate(matrix.counts):
        drawing.text(left + cell * (column + 0.5), bottom + 11, asked, fill="faint", size=9, anchor="middle")
    if matrix.counts:
        drawing.text(left - 10, bottom + 11, "questions", fill="faint", size=10, anchor="end")
    return drawing.svg(key, title, _said(matrix))


def _draw_values(
    drawing: SvgCanvas,
    values: Sequence[float | None],
    text: Callable[[float], str],
    at: tuple[float, float],
    cell: float,
) -> None:
    """The cells of one row, from its left upper corner on."""
    left, y = at
    for column, value in enumerate(values):
        x, said = left + cell * column, "–" if value is None else text(value)
        if value:
            colour = "s0" if value > 0 else "s1"
            drawing.rect(x + 0.3, y + 0.3, cell - 0.6, _ROW - 0.6, colour, opacity=_DEEP * min(1.0, abs(value)))
        ink, size = ("faint", 10) if value is None else ("ink", 11 if cell >= 26 else 9)
        drawing.text(x + cell / 2, y + _ROW / 2, said, fill=ink, size=size, anchor="middle")


def _said(matrix: Matrix) -> list[tuple[str, list[str]]]:
    """The values of each row in words, for who hears the figure."""
    return [
        (
            row,
            [f"{name} {matrix.text(one)}" for name, one in zip(matrix.columns, values, strict=True) if one is not None],
        )
        for row, values in zip(matrix.rows, matrix.values, strict=True)
    ]


@dataclass(frozen=True)
class Verdicts:
    """`signs[row][column]` is 1 if the row is significantly better than the column, −1 if worse, 0 if neither, and None
    on the diagonal and for pairs that were not tested. `texts` are shown in cells with enough space."""

    name: str
    signs: Sequence[Sequence[int | None]]
    texts: Sequence[Sequence[str]] = ()


_MAP, _MAP_CELL, _LEAST, _SMALL_CELL, _ACROSS, _GAP, _MAP_HEAD = 760, 34, 13.5, 18, 3, 34, 70
_NAME = 22  # characters of names; the table has full names
_DIGIT = 5.6  # width of a character in a cell
_KEY = (
    ("up", "s0", "the row is better"),
    ("down", "s1", "the row is worse"),
    ("square", "grid", "no difference shown"),
)


def draw_verdicts(key: str, title: str, names: Sequence[str], verdicts: Verdicts) -> str:
    """A map with numbered row names, and numbers as column names."""
    shown = [f"{shorten(name, _NAME)} · {number}" for number, name in enumerate(names, start=1)]
    left, n = label_width(shown), max(len(names), 1)
    roomy = _DIGIT * max((len(text) for row in verdicts.texts for text in row), default=0) + 8
    cell = min(max(_MAP_CELL, roomy), max((_MAP - left - 10) / n, _LEAST), (WIDE - left - 10) / n)
    high = min(cell, _MAP_CELL)
    drawing = SvgCanvas(max(left + cell * n + 10, 360), _MAP_HEAD + high * n + 8)
    _draw_key(drawing, 14)
    _draw_map(drawing, verdicts, (left, _MAP_HEAD), (cell, high), texts=bool(verdicts.texts) and cell >= roomy)
    for row, name in enumerate(shown):
        drawing.text(left - 10, _MAP_HEAD + high * (row + 0.5), name, size=12 if cell > 14 else 11, anchor="end")
    return drawing.svg(key, title, _better(names, verdicts))


def draw_verdict_panels(key: str, title: str, names: Sequence[str], panels: Sequence[Verdicts]) -> str:
    """Small maps of the buckets, three per row; rows and columns are numbered."""
    n = max(1, len(names))
    cell = min(_SMALL_CELL, (_MAP - 24 - _GAP * _ACROSS) / _ACROSS / n)
    step, line, top = max(cell * n + _GAP, 226.0), 44 + cell * n + 12, 46
    drawing = SvgCanvas(24 + step * min(_ACROSS, len(panels)), top + line * -(-len(panels) // _ACROSS))
    _draw_key(drawing, 4)
    for number, panel in enumerate(panels):
        down, right = divmod(number, _ACROSS)
        x, y = 24 + right * step, top + down * line + 44
        drawing.text(x - 22, y - 28, shorten(panel.name, 31), bold=True, size=11)
        _draw_map(drawing, panel, (x, y), (cell, cell), texts=False)
        for row in range(len(names)):
            drawing.text(x - 5, y + cell * (row + 0.5), str(row + 1), size=9, fill="faint", anchor="end")
    return drawing.svg(
        key, title, [(f"{panel.name}, {name}", said) for panel in panels for name, said in _better(names, panel)]
    )


def _draw_map(
    drawing: SvgCanvas, verdicts: Verdicts, at: tuple[float, float], cell: tuple[float, float], *, texts: bool
) -> None:
    (left, top), (wide, high) = at, cell
    points_of: dict[int, list[tuple[float, float]]] = {1: [], -1: [], 0: []}
    for row, signs in enumerate(verdicts.signs):
        for column, sign in enumerate(signs):
            if sign is not None:
                points_of[sign].append((left + wide * (column + 0.5), top + high * (row + 0.5)))
    every = [point for points in points_of.values() for point in points]
    drawing.shape(every, "square", (wide - 1.5, high - 1.5), "grid", opacity=0.55)
    lift = 0.2 * high if texts else 0.0
    for sign, kind, colour in ((1, "up", "s0"), (-1, "down", "s1")):
        drawing.shape([(x, y - lift) for x, y in points_of[sign]], kind, min(0.62 * high, 11), colour)
    for row, line in enumerate(verdicts.texts if texts else ()):
        for column, text in enumerate(line):
            if verdicts.signs[row][column] is not None:
                drawing.text(left + wide * (column + 0.5), top + high * (row + 0.78), text, size=9, anchor="middle")
    step = 1 if wide >= 12 else 5
    for number in range(1, len(verdicts.signs) + 1):
        if number == 1 or number % step == 0:
            drawing.text(left + wide * (number - 0.5), top - 8, str(number), size=9, fill="faint", anchor="middle")


def _draw_key(drawing: SvgCanvas, x: float) -> None:
    """The key, in two lines to fit on phones."""
    for number, (shape, colour, text) in enumerate(_KEY):
        at, y = x + 150 * (number % 2), 14 + 20 * (number // 2)
        drawing.shape([(at + 5, y)], shape, 10, colour)
        drawing.text(at + 14, y, text, size=11)


def _better(names: Sequence[str], verdicts: Verdicts) -> list[tuple[str, list[str]]]:
    rows = []
    for name, signs in zip(names, verdicts.signs, strict=True):
        better = [shorten(names[column], 30) for column, sign in enumerate(signs) if sign == 1]
        rows.append((name, [f"better than {', '.join(better[:20]) or 'nobody'}"]))
    return rows


_BLOB_ROW, _BLOB_FOOT = 22, 32
_SEEN = 0.004  # smaller probabilities are not drawn


def draw_blobs(
    key: str, title: str, rows: Sequence[str], chances: Sequence[Sequence[float]], ranks: Sequence[int]
) -> str:
    """Blobs for probabilities (rows × ranks): areas are proportional to probabilities; rings mark each row's rank."""
    names = [shorten(row, LABEL) for row in rows]
    left, n = label_width(names), max((len(row) for row in chances), default=0) or 1
    cell = min(_CELL, (WIDE - left - 10) / n)
    bottom = float(_BLOB_ROW * len(names))
    drawing = SvgCanvas(max(left + cell * n + 10, 320), bottom + _BLOB_FOOT)
    for rank in range(1, n + 1):
        x = left + cell * (rank - 0.5)
        drawing.rule(x, 0, bottom)
        if rank == 1 or rank % (1 if cell >= SLIM_LABEL else 5) == 0:
            drawing.text(x, bottom + 14, str(rank), fill="faint", size=10, anchor="middle")
    drawing.text(left - 10, bottom + 14, "rank", fill="faint", size=10, anchor="end")
    size = min(cell, _BLOB_ROW) - 2
    for row, (name, own, rank) in enumerate(zip(names, chances, ranks, strict=True)):
        y = _BLOB_ROW * (row + 0.5)
        drawing.text(left - 10, y, name, anchor="end")
        for column, chance in enumerate(own):
            if chance >= _SEEN:
                drawing.circle(left + cell * (column + 0.5), y, size * chance**0.5 / 2, "s0")
        drawing.circle(left + cell * (rank - 0.5), y, size / 2, edge="ink", width=1)
    description = [
        (
            f"{name}, rank {rank}",
            [f"rank {k} in {100 * chance:.0f} %" for k, chance in enumerate(own, start=1) if chance >= 0.005],
        )
        for name, own, rank in zip(rows, chances, ranks, strict=True)
    ]
    return drawing.svg(key, title, description)

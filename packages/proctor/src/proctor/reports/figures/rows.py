"""Charts with named rows: values with intervals, box plots and stacked counts, in panels, lists or groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from proctor.core import shorten
from proctor.reports.figures.canvas import (
    CHARACTER,
    LABEL,
    SLIM_LABEL,
    WIDE,
    Axis,
    SvgCanvas,
    label_width,
    legend_height,
)
from proctor.reports.figures.marks import LIGHT_GREYS, series_colour


@dataclass(frozen=True)
class Dot:
    """A value with its interval; all None if there is nothing to draw."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> list[float]:
        """The numbers that the axis has to cover."""
        return [one for one in (self.value, self.low, self.high) if one is not None]


@dataclass(frozen=True)
class Box:
    """Quartiles, the ends of the whiskers, and the values beyond them."""

    low: float
    q1: float
    median: float
    q3: float
    high: float
    beyond: Sequence[float] = ()


@dataclass(frozen=True)
class Stack:
    """A stacked bar of counts, one per series; with `shares` the bar has the full width."""

    counts: Sequence[int]
    shares: bool = False


@dataclass(frozen=True)
class ChartSeries:
    """A series of markers or parts of bars: its name, its number (see `proctor.reports.figures.marks`), and a letter for
    use where the name does not fit."""

    name: str
    number: int
    letter: str = ""


_DEEP = {"s0", "s3", "s6"}  # colours that need light text
_HATCHES = ("/", "\\", "x")  # the strokes over greys

Mark = Dot | Box | Stack | Sequence[Dot] | None
"""The content of a row; several dots are one per series."""


@dataclass(frozen=True)
class Panel:
    """A panel: its name, a mark for each row, a dashed vertical line with a label (such as chance), and the number of
    the colour and marker of single dots."""

    name: str
    marks: Sequence[Mark]
    line: tuple[float, str] | None = None
    number: int = 0


SHARES = Axis((0.0, 1.0), (0.0, 0.5, 1.0), ("0 %", "50 %", "100 %"))
"""The axis of stacked shares."""

_ACROSS, _GAP, _FOOT = 3, 40, 28
_ROW, _STEP = 20, 13  # height of a row with one mark, and of each of several marks
_BOLD = 7.8  # average width of a bold character
_TICK_DIGIT = 5.8  # average width of a character of the axis


def draw_rows(
    key: str,
    title: str,
    rows: Sequence[str],
    panels: Sequence[Panel],
    axis: Axis,
    *,
    series: Sequence[ChartSeries] = (),
    width: int = WIDE,
) -> str:
    """Panels side by side, up to three per line on screens and one on phones (`SLIM`), with row names at the left and
    the legend at the top."""
    names = [shorten(row, LABEL if width == WIDE else SLIM_LABEL) for row in rows]
    left = label_width(names)
    across = min(_ACROSS, len(panels)) if width == WIDE else 1
    inner = (width - left - _GAP * across) / across
    several, stacked = _any_mark(panels, Sequence), _any_mark(panels, Stack)
    row = _STEP * len(series) + 12 if several else _ROW
    legend = [(chart_series.number, chart_series.name) for chart_series in series]
    top = _stack_legend_height(series, width) if stacked else legend_height(legend, width - 10)
    named, lined = any(panel.name for panel in panels), any(panel.line for panel in panels)
    head = (24 if named else 0) + (18 if lined or not named else 6)
    line = head + row * len(rows) + (_FOOT if axis.ticks else 6)
    drawing = SvgCanvas(width, top + line * -(-len(panels) // across))
    if stacked:
        _stack_legend(drawing, series, width)
    elif legend:
        drawing.legend(0, 9, legend, width - 10)
    for at, panel in enumerate(panels):
        down, right = divmod(at, across)
        x, y = left + right * (inner + _GAP), top + down * line + head
        field = _Field(drawing, axis, x, y, inner, row, panel.number)
        field.frame(len(rows), panel.line)
        drawing.text(x, y - head + 14, shorten(panel.name, int((inner + _GAP - 12) / _BOLD)), bold=True)
        field.marks(panel.marks, series, names if right == 0 else (), ruled=several)
    return drawing.svg(key, title, _description(rows, panels, series, axis))


def _any_mark(panels: Sequence[Panel], kind: type) -> bool:
    return any(isinstance(mark, kind) for panel in panels for mark in panel.marks)


@dataclass(frozen=True)
class _Field:
    """The drawing area of a panel."""

    drawing: SvgCanvas
    axis: Axis
    left: float
    top: float
    width: float
    row: float
    number: int = 0  # of the colour and marker of single dots

    def x(self, value: float) -> float:
        return self.left + self.width * self.axis.share(value)

    def frame(self, rows: int, line: tuple[float, str] | None) -> None:
        bottom = self.top + self.row * rows
        shown = self._labelled()
        for position, (tick, label) in enumerate(zip(self.axis.ticks, self.axis.labels, strict=True)):
            self.drawing.rule(self.x(tick), self.top, bottom)
            if position in shown:
                self.drawing.text(self.x(tick), bottom + 9, label, fill="faint", size=10, anchor="middle")
        if line is not None:
            self.drawing.rule(self.x(line[0]), self.top, bottom, "faint", dashes="4 3")
            self.drawing.text(self.x(line[0]), self.top - 8, line[1], fill="faint", size=10, anchor="middle")

    def _labelled(self) -> range:
        """The ticks with a label: every one, or every second, third … from 0 on, so that none touches the next."""
        positions = [self.x(tick) for tick in self.axis.ticks]
        sizes = [_TICK_DIGIT * len(label) for label in self.axis.labels]
        zero = next((position for position, tick in enumerate(self.axis.ticks) if abs(tick) < 1e-12), 0)
        for every in range(1, len(positions) + 1):
            kept = range(zero % every, len(positions), every)
            if all(positions[k] - positions[j] > (sizes[j] + sizes[k]) / 2 + 4 for j, k in pairwise(kept)):
                return kept
        return range(0)

    def marks(self, marks: Sequence[Mark], series: Sequence[ChartSeries], names: Sequence[str], *, ruled: bool) -> None:
        """The marks of all rows, with their names (none: without) and rules between them."""
        for row, mark in enumerate(marks):
            middle, above = self.top + self.row * (row + 0.5), self.top + self.row * row
            if ruled and row:
                self.drawing.line([(self.left, above), (self.left + self.width, above)], "grid", 0.6)
            self.mark(middle, mark, series)
            if names:
                self.drawing.text(self.left - 10, middle, names[row], anchor="end")

    def mark(self, y: float, mark: Mark, series: Sequence[ChartSeries]) -> None:
        if isinstance(mark, Stack):
            self._stack(y, mark, series)
        elif isinstance(mark, Box):
            self.box(y, mark, 11)
        elif isinstance(mark, Sequence):
            ups = [y + (number - (len(mark) - 1) / 2) * _STEP for number in range(len(mark))]
            there = [(self.x(dot.value), up) for dot, up in zip(mark, ups, strict=True) if dot.value is not None]
            if len(there) > 1:
                self.drawing.line(there, "faint", 0.8, opacity=0.7)
            for dot, up, one in zip(mark, ups, series, strict=True):
                self.dot(up, dot, one.number)
        elif mark is None or mark.value is None:
            self.drawing.text(self.left + 3, y, "no score", fill="faint", size=10)
        else:
            self.dot(y, mark, self.number)

    def dot(self, y: float, dot: Dot, number: int) -> None:
        if dot.value is None:
            return
        if dot.low is not None and dot.high is not None:
            ends = [(self.x(self.axis.within(end)), y) for end in (dot.low, dot.high)]
            self.drawing.line(ends, series_colour(number), 3)
        self.drawing.marker(self.x(self.axis.within(dot.value)), y, number, 7.5)

    def box(self, y: float, box: Box, height: float) -> None:
        low, q1, median, q3, high = (self.x(one) for one in (box.low, box.q1, box.median, box.q3, box.high))
        self.drawing.line([(low, y), (high, y)], "s0", 1.2)
        for end in (low, high):
            self.drawing.rule(end, y - 0.35 * height, y + 0.35 * height, "s0", 1.2)
        self.drawing.rect(q1, y - height / 2, q3 - q1, height, "grid", edge="s0")
        self.drawing.rule(median, y - 0.62 * height, y + 0.62 * height, "s0", 3.5)
        for one in box.beyond:
            self.drawing.circle(self.x(one), y, 2, "paper", edge="s0")

    def _stack(self, y: float, stack: Stack, series: Sequence[ChartSeries]) -> None:
        total, start = sum(stack.counts), 0.0
        if not total:
            self.drawing.rule(self.left, y - 6, y + 6)
        for entry, count in zip(series, stack.counts, strict=True):
            size = count / total if stack.shares and total else float(count)
            if count:
                left, wide = self.x(start), self.x(start + size) - self.x(start)
                _part(self.drawing, left, y - 7.5, (wide, 15), entry)
                text = entry.letter or str(count)
                if wide > CHARACTER * len(text) + 4:
                    _letter(self.drawing, left + wide / 2, y, text, entry)
            start += size


def _part(drawing: SvgCanvas, x: float, y: float, size: tuple[float, float], series: ChartSeries) -> None:
    """A part of a bar; what is missing is hatched, each kind in its way."""
    wide, high = size
    drawing.rect(x, y, wide, high, series_colour(series.number), edge="paper")
    if series.number >= 0:
        return
    location = -series.number - 1
    kind = _HATCHES[(location + location // len(LIGHT_GREYS)) % len(_HATCHES)]
    for up in [sign for sign in "/\\" if kind in {sign, "x"}]:
        for start in range(-int(high), int(wide), 5):
            drawing.line(_stroke(x, y, size, float(start), rising=up == "/"), "paper", 1)


def _stroke(x: float, y: float, size: tuple[float, float], start: float, *, rising: bool) -> list[tuple[float, float]]:
    """A stroke of 45 degrees from `start`, cut at the sides of a rectangle."""
    wide, high = size
    first, last = max(0.0, start), min(wide, start + high)
    ends = [(at, at - start) for at in (first, max(first, last))]
    return [(x + at, y + (high - down if rising else down)) for at, down in ends]


def _letter(drawing: SvgCanvas, x: float, y: float, text: str, series: ChartSeries) -> None:
    """A letter on a part; over hatching it has a ground of its own."""
    if series.number < 0:
        drawing.rect(x - 5, y - 6, 10, 12, "paper")
    drawing.text(x, y, text, fill=_on(series), size=10, anchor="middle")


def _on(series: ChartSeries) -> str:
    return "ink" if series.number < 0 else "paper" if series_colour(series.number) in _DEEP else "dark"


def _stack_entries(series: Sequence[ChartSeries], width: float) -> list[tuple[float, float, ChartSeries]]:
    entries, x, y = [], 0.0, 10.0
    for entry in series:
        size = 38 + CHARACTER * len(entry.name)
        if x and x + size > width:
            x, y = 0.0, y + 20
        entries.append((x, y, entry))
        x += size
    return entries


def _stack_legend_height(series: Sequence[ChartSeries], width: float) -> float:
    return max((y for _, y, _ in _stack_entries(series, width)), default=0.0) + 14


def _stack_legend(drawing: SvgCanvas, series: Sequence[ChartSeries], width: float) -> None:
    for x, y, entry in _stack_entries(series, width):
        _part(drawing, x, y - 7, (14, 14), entry)
        if entry.letter:
            _letter(drawing, x + 7, y, entry.letter, entry)
        drawing.text(x + 20, y, entry.name)


def _description(
    rows: Sequence[str], panels: Sequence[Panel], series: Sequence[ChartSeries], axis: Axis
) -> list[tuple[str, list[str]]]:
    described = []
    for panel in panels:
        for row, mark in zip(rows, panel.marks, strict=True):
            where = f"{panel.name}, {row}" if panel.name else row
            dots = [("", mark)] if isinstance(mark, Dot) else []
            if isinstance(mark, Sequence):
                dots = [(f"{each.name} ", dot) for each, dot in zip(series, mark, strict=True)]
            parts = [f"{name}{axis.said(dot.value)}" for name, dot in dots if dot.value is not None]
            if isinstance(mark, Box):
                parts = [f"median {axis.said(mark.median)}, {_quartiles(mark, axis)}"]
            if isinstance(mark, Stack):
                parts = [f"{count} {each.name}" for count, each in zip(mark.counts, series, strict=True) if count]
            described.append((where, parts or ["nothing"]))
    return described


_LIST, _LIST_ROW, _SIDE, _LIST_HEAD, _LIST_FOOT = 440, 38, 26, 40, 24
_DIGIT = 6.5  # average width of a character of the numbers


def draw_list(
    key: str,
    title: str,
    rows: Sequence[tuple[str, Dot | Box | None, str]],
    axis: Axis,
    *,
    head: str,
    line: tuple[float, str] | None = None,
) -> str:
    """A narrow panel with the name and text of each row above its mark; `head` is the header of the texts.

    A dot is filled if its interval excludes `line` (a value and its label), and hollow otherwise. An interval that
    exceeds the axis ends in an arrow. The thick line of a box is the median.
    """
    drawing = SvgCanvas(_LIST, _LIST_HEAD + _LIST_ROW * len(rows) + _LIST_FOOT)
    field = _Field(drawing, axis, _SIDE, _LIST_HEAD, _LIST - 2 * _SIDE, _LIST_ROW)
    drawing.text(_LIST - 6, _LIST_HEAD - 30, head, fill="faint", size=11, anchor="end")
    room = int((_LIST - 18 - _DIGIT * max((len(text) for *_, text in rows), default=0)) / CHARACTER)
    bottom = _LIST_HEAD + _LIST_ROW * len(rows)
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        drawing.text(field.x(tick), bottom + 11, label, fill="faint", size=10, anchor="middle")
    if line is not None:
        drawing.text(field.x(line[0]), _LIST_HEAD - 10, line[1], fill="faint", size=11, anchor="middle")
    for number, (name, mark, text) in enumerate(rows):
        top = _LIST_HEAD + _LIST_ROW * number
        drawing.text(6, top + 7, shorten(name, room))
        drawing.text(_LIST - 6, top + 7, text, size=11, anchor="end")
        for tick in axis.ticks:
            drawing.rule(field.x(tick), top + 15, top + 29)
        if line is not None:
            drawing.rule(field.x(line[0]), top + 15, top + 29, "faint", 1.4, "3 2")
        if isinstance(mark, Box):
            field.box(top + 22, mark, 13)
        elif mark is not None:
            _compared(field, top + 22, mark, line)
    return drawing.svg(key, title, [(name, _mark_said(mark, text, axis)) for name, mark, text in rows])


def _quartiles(box: Box, axis: Axis) -> str:
    return f"quartiles {axis.said(box.q1)} and {axis.said(box.q3)}"


def _mark_said(mark: Dot | Box | None, text: str, axis: Axis) -> list[str]:
    quartiles = [_quartiles(mark, axis)] if isinstance(mark, Box) else []
    return [*([text] if text else []), *quartiles]


def _compared(field: _Field, y: float, dot: Dot, line: tuple[float, str] | None) -> None:
    if dot.value is None:
        return
    axis, drawing = field.axis, field.drawing
    apart = False
    if dot.low is not None and dot.high is not None:
        apart = line is not None and not dot.low <= line[0] <= dot.high
        drawing.line([(field.x(axis.within(end)), y) for end in (dot.low, dot.high)], "s0", 2)
        for beyond, end, arrow in ((dot.low < axis.limits[0], 0, "left"), (dot.high > axis.limits[1], 1, "right")):
            if beyond:
                drawing.shape([(field.x(axis.limits[end]), y)], arrow, 9, "s0")
    edge = "ink" if dot.low is None else "s0"
    drawing.circle(field.x(axis.within(dot.value)), y, 3.5, "s0" if apart else "paper", edge=edge, width=1.5)

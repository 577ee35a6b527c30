"""An SVG canvas for drawings in a page, and axes.

Shapes have their colour as an attribute and as a class, so that the page's style sheet adapts drawings to light and
dark mode and print. All coordinates are in pixels. Equal calls give equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice

from proctor.core import Metric, clean, shorten, value
from proctor.reports.figures.marks import LIGHT, LIGHT_GREYS, series_colour, series_shape

COLOURS = (
    {"ink": "#1c1f23", "faint": "#59626d", "grid": "#dfe3e8", "paper": "#ffffff", "dark": "#101418"}
    | {f"s{number}": colour for number, colour in enumerate(LIGHT)}
    | {f"m{number}": colour for number, colour in enumerate(LIGHT_GREYS)}
)
"""The light colours of the design tokens (`assets/shared/tokens.css`) by name, for files outside a page; `dark` is the
same in light and dark mode, for text on light colours."""

MAX_SERIES = len(LIGHT)
WIDE, SLIM = 960, 380
"""The width of drawings for screens, and for phones."""

LABEL, SLIM_LABEL = 30, 16
"""The maximum length of row names in drawings for screens, and for phones; tables have full names."""

CHARACTER = 7.2
"""The average width of a character at a font size of 12 pixels."""

_SMALL = 760  # drawings up to this width keep their size
_NARROW = 460  # drawings up to this width shrink to the width of a phone
_MAX_DESCRIBED, _MAX_PARTS = 40, 12  # maximum rows of a description, and parts of each

SHAPES = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "up": ((-1, 0.8), (1, 0.8), (0, -0.9)),
    "down": ((-1, -0.8), (1, -0.8), (0, 0.9)),
    "left": ((0.8, -1), (0.8, 1), (-0.9, 0)),
    "right": ((-0.8, -1), (-0.8, 1), (0.9, 0)),
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "plus": tuple((x / 3, y / 3) for x, y in (
        (-1, -3), (1, -3), (1, -1), (3, -1), (3, 1), (1, 1), (1, 3), (-1, 3), (-1, 1), (-3, 1), (-3, -1), (-1, -1)
    )),
    "hexagon": tuple((math.sin(k * math.pi / 3), -math.cos(k * math.pi / 3)) for k in range(6)),
}  # fmt: skip
"""Outlines in a box from −1 to 1, with y downwards."""


class SvgCanvas:
    """A drawing with a size in pixels, to which shapes are added from back to front."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "start", turned: bool = False, **style: object
    ) -> None:
        """Text, vertically centred at y; `anchor` is start, middle or end. `turned` text reads upwards. `style`: `fill`
        (a colour's name), `size` in pixels, `bold`."""
        fill, size = str(style.get("fill", "ink")), float(str(style.get("size", 12)))
        given: dict[str, object] = {"x": 0 if turned else x, "y": 0.35 * size + (0 if turned else y), "font-size": size}
        if turned:
            given["transform"] = f"translate({_number(x)} {_number(y)}) rotate(-90)"
        if anchor != "start":
            given["text-anchor"] = anchor
        if style.get("bold"):
            given["font-weight"] = "bold"
        self._add("text", given, fill=fill, text=_plain(text))

    def line(
        self,
        points: Iterable[tuple[float, float]],
        stroke: str,
        width: float = 1,
        *,
        dashes: str = "",
        opacity: float = 1,
    ) -> None:
        """A line through points."""
        path = "M " + " L ".join(f"{_number(x)} {_number(y)}" for x, y in points)
        given: dict[str, object] = {"d": path, "fill": "none", "stroke-width": width}
        given |= {"stroke-dasharray": dashes} if dashes else {}
        self._add("path", given | _opaque(opacity), stroke=stroke)

    def area(self, points: Iterable[tuple[float, float]], fill: str, opacity: float) -> None:
        """A filled area with these corners."""
        path = "M " + " L ".join(f"{_number(x)} {_number(y)}" for x, y in points) + " z"
        self._add("path", {"d": path} | _opaque(opacity), fill=fill)

    def rule(
        self, x: float, top: float, bottom: float, stroke: str = "grid", width: float = 1, dashes: str = ""
    ) -> None:
        """A vertical line."""
        self.line([(x, top), (x, bottom)], stroke, width, dashes=dashes)

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, opacity: float = 1, edge: str = ""
    ) -> None:
        """A rectangle with a thin edge."""
        given: dict[str, object] = {"x": x, "y": y, "width": width, "height": height}
        given |= {"stroke-width": 0.6 if edge == "paper" else 1.2} if edge else {}
        self._add("rect", given | _opaque(opacity), fill=fill, stroke=edge)

    def circle(self, x: float, y: float, radius: float, fill: str = "", *, edge: str = "", width: float = 0.8) -> None:
        """A circle; without `fill` a ring."""
        given: dict[str, object] = {"cx": x, "cy": y, "r": radius}
        given |= {"stroke-width": width} if edge else {}
        self._add("circle", given if fill else given | {"fill": "none"}, fill=fill, stroke=edge)

    def shape(
        self,
        points: Sequence[tuple[float, float]],
        kind: str,
        size: float | tuple[float, float],
        fill: str,
        **style: float,
    ) -> None:
        """A shape (a key of `SHAPES`) at all points as one element; `size` is in pixels, or (width, height); `style`
        may have `opacity`."""
        if not points:
            return
        wide, high = size if isinstance(size, tuple) else (size, size)
        path = " ".join(
            "M "
            + " L ".join(f"{_number(x + a * wide / 2)} {_number(y + b * high / 2)}" for a, b in SHAPES[kind])
            + " z"
            for x, y in points
        )
        self._add("path", {"d": path} | _opaque(style.get("opacity", 1)), fill=fill)

    def marker(self, x: float, y: float, number: int, size: float = 8) -> None:
        """The marker of the series with this number, in its colour."""
        kind = series_shape(number)
        if kind == "circle":
            self.circle(x, y, size / 2, series_colour(number), edge="paper", width=1.2)
        else:
            self.shape([(x, y)], kind, size + 2.4, "paper")  # a ring, as the circle has
            self.shape([(x, y)], kind, size, series_colour(number))

    def legend(self, x: float, y: float, entries: Sequence[tuple[int, str]], room: float) -> None:
        """The markers and names of the series, with a height of `legend_height`."""
        for line in _legend_lines(entries, room):
            at = x
            for number, name in line:
                self.marker(at + 5, y, number)
                self.text(at + 14, y, name)
                at += 30 + CHARACTER * len(name)
            y += 18

    @property
    def inner(self) -> str:
        """The shapes so far, as markup."""
        return "".join(self._parts)

    def svg(self, key: str, title: str, rows: Iterable[tuple[str, Iterable[str]]], note: str = "") -> str:
        """The drawing as inline SVG. `key` is unique on the page. The title and the description (`rows` with their
        names and parts) are for screen readers."""
        described = [
            f"{shorten(name, 60)}: {', '.join(islice(parts, _MAX_PARTS))}"
            for name, parts in islice(rows, _MAX_DESCRIBED)
        ]
        description = "; ".join(described) + ". " + (note or "All numbers stand below.")
        classes = "drawing" if self.width > _SMALL else "drawing small"
        classes += " narrow" if self.width <= _NARROW else ""
        width, height = f"{self.width:.0f}", f"{self.height:.0f}"
        return (
            f'<svg class="{classes}" role="img" aria-labelledby="{key}-t {key}-d" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}"><title id="{key}-t">{_plain(title)}</title>'
            f'<desc id="{key}-d">{_plain(description)}</desc>{"".join(self._parts)}</svg>'
        )

    def _add(self, tag: str, given: dict[str, object], *, fill: str = "", stroke: str = "", text: str = "") -> None:
        painted = [(kind, name) for kind, name in (("fill", fill), ("stroke", stroke)) if name]
        classes = " ".join(f"{kind[0]}-{name}" for kind, name in painted if name != "dark")
        given |= {kind: COLOURS[name] for kind, name in painted} | ({"class": classes} if classes else {})
        shown = "".join(f' {name}="{_number(one)}"' for name, one in given.items())
        self._parts.append(f"<{tag}{shown}>{text}</{tag}>" if text else f"<{tag}{shown}/>")


def _opaque(opacity: float) -> dict[str, object]:
    return {} if opacity >= 1 else {"opacity": f"{opacity:.3g}"}


def _number(number: object) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".") if isinstance(number, float) else str(number)


def _plain(text: str) -> str:
    return escape(clean(text).replace("\n", " "))


def _legend_lines(entries: Sequence[tuple[int, str]], room: float) -> list[list[tuple[int, str]]]:
    lines: list[list[tuple[int, str]]] = [[]]
    x = 0.0
    for number, name in entries:
        shown = shorten(name, LABEL)
        size = 30 + CHARACTER * len(shown)
        if lines[-1] and x + size > room:
            lines.append([])
            x = 0.0
        lines[-1].append((number, shown))
        x += size
    return lines


def legend_height(entries: Sequence[tuple[int, str]], room: float) -> float:
    """The height of a legend."""
    return 18.0 * len(_legend_lines(entries, room)) if entries else 0.0


def label_width(names: Sequence[str]) -> float:
    """The width of the longest name."""
    return 14 + CHARACTER * max((len(name) for name in names), default=0)


def standalone(drawn: str) -> str:
    """The drawing as a standalone SVG file with a white background and its own colours."""
    head, _, body = drawn.partition(">")
    font = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
    start, end, rest = body.partition("</desc>")
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'{head} xmlns="http://www.w3.org/2000/svg" font-family="{font}">{start}{end}{ground}{rest}\n'


_STEPS = (1, 2, 2.5, 5, 10)
_DECADES, _FINE = 3, 2


@dataclass(frozen=True)
class Axis:
    """A value axis: its limits, ticks, labels, and the metric of its values."""

    limits: tuple[float, float]
    ticks: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    metric: Metric | None = None

    def said(self, number: float) -> str:
        """A value as text."""
        return f"{number:.3g}" if self.metric is None else value(self.metric, number)

    def within(self, number: float) -> float:
        """The value, clipped to the limits."""
        return min(max(number, self.limits[0]), self.limits[1])

    def share(self, number: float) -> float:
        """The position of a value: 0 at the lower end, 1 at the upper end."""
        low, high = self.limits
        return (number - low) / (high - low)


def value_axis(metric: Metric, low: float, high: float, *, lines: int = 4) -> Axis:
    """An axis from low to high in the unit of the metric."""
    found = _axis(low, high, lines, 100 if metric.percent else 1, " %" if metric.percent else "", signed=False)
    return replace(found, metric=metric)


def signed_axis(metric: Metric, low: float, high: float, *, lines: int = 6) -> Axis:
    """An axis of differences, which includes 0, with signs; in percentage points for percentages."""
    reach = max(abs(low), abs(high), 1e-9)
    low, high = min(low, -0.15 * reach), max(high, 0.15 * reach)
    return _axis(low, high, lines, 100 if metric.percent else 1, " pts" if metric.percent else "", signed=True)


def plain_axis(low: float, high: float, *, lines: int = 4) -> Axis:
    """An axis of plain numbers from low to high."""
    return _axis(low, high, lines, 1, "", signed=False)


def ratio_axis(low: float, high: float) -> Axis:
    """A logarithmic axis of ratios between 1/1000 and 1000; limits and ticks are log10."""
    first = max(_floor_log10(min(low, 0.5)), -_DECADES)
    last = min(-_floor_log10(1 / max(high, 2.0)), _DECADES)
    digits = (1, 2, 5) if last - first <= _FINE else (1,)
    numbers = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
    inside = [number for number in numbers if 10.0**first <= number <= 10.0**last]
    return Axis((float(first), float(last)), tuple(map(math.log10, inside)), tuple(f"{one:g}" for one in inside))


def _axis(low: float, high: float, lines: int, scale: float, unit: str, *, signed: bool) -> Axis:
    if high <= low:  # a single value gets space on both sides
        room = max(0.05, 0.05 * abs(low))
        low, high = low - room, high + room
    span = (high - low) * scale
    power = 10.0 ** _floor_log10(span / lines)
    step = next(power * factor for factor in _STEPS if span / (power * factor) <= lines + 1e-9)
    first, last = _ceil(low * scale / step), _ceil(high * scale / step + 1e-9) - 1
    if last * step < high * scale - 1e-9 and abs((last + 1) * step - high * scale) < 1e-9:
        last += 1
    numbers = [step * number for number in range(first, last + 1)]
    digits = next((n for n in range(4) if all(abs(round(number, n) - number) < 1e-9 for number in numbers)), 4)
    sign = "+" if signed else ""
    labels = tuple(
        (f"{number:{sign}.{digits}f}" if abs(number) > 1e-12 else "0").replace("-", "−") + unit for number in numbers
    )
    pad = 0.02 * (high - low)
    return Axis((low - pad, high + pad), tuple(number / scale for number in numbers), labels)


def _floor_log10(number: float) -> int:
    return math.floor(math.log10(number))


def _ceil(number: float) -> int:
    return math.ceil(number - 1e-9)

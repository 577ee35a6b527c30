"""From a matplotlib figure to SVG that belongs to a page: no fonts, ids or styles of its own.

matplotlib places everything; the page's style sheet colours it, so that a drawing follows light, dark
and print. A strict content security policy forbids `style=` attributes, so they become attributes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from proctor.core import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, GRID, PAPER = "#1c1f23", "#6b7280", "#dfe3e8", "#fffffe"
DARK = "#101418"  # the same in light and dark: text on a light colour
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c8c8c")
"""Okabe and Ito's colours that hold for colour-blind readers, and two more; each has a marker too."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
MOST_SERIES = len(SERIES)

SHAPES = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "up": ((-1, 0.8), (1, 0.8), (0, -0.9)),
    "down": ((-1, -0.8), (1, -0.8), (0, 0.9)),
    "left": ((0.8, -1), (0.8, 1), (-0.9, 0)),
    "right": ((-0.8, -1), (-0.8, 1), (0.9, 0)),
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
}
"""Outlines in a box from −1 to 1, y downwards."""

_CLASSES = {INK: "ink", FAINT: "faint", GRID: "grid", PAPER: "paper"} | {
    colour: f"s{place}" for place, colour in enumerate(SERIES)
}
_KEPT = {
    "fill",
    "fill-opacity",
    "font-size",
    "font-weight",
    "opacity",
    "stroke",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "proctor",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "axes.unicode_minus": True,
    "path.simplify": False,
    "path.snap": False,
}
WIDE, SLIM = 960, 380
"""Pixels across of a drawing for a screen, and of the same drawing for a phone."""
_SMALL = 760  # pixels; what is not wider keeps its size
_NARROW = 460  # and what is not wider than this shrinks to a phone's width
_DPI = 72  # so that one unit of the drawing is one pixel of the page


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A figure of a size in pixels to draw on, under settings of its own whatever the machine's are."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*missing.*")  # the browser has other fonts
        yield Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="none")


def bare_axes(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Axes without frame or ticks; `box` is left, top, width and height in pixels of the figure."""
    whole_width, whole_height = figure.get_size_inches() * _DPI
    left, top, width, height = box
    axes = figure.add_axes(
        (left / whole_width, 1 - (top + height) / whole_height, width / whole_width, height / whole_height),
        facecolor="none",
    )
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def put(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Text as it is written: never a formula, never out of a control character."""
    merged: dict[str, Any] = {"color": INK, "fontsize": 12, "va": "center_baseline", "clip_on": False} | style
    axes.text(x, y, clean(text).replace("\n", " "), parse_math=False, **merged)


def stamp(
    axes: Axes, points: Sequence[tuple[float, float]], shape: str, size: float | tuple[float, float], **style: Any
) -> None:
    """The same shape (a key of `SHAPES`) at all points as one element, however many.

    `points` are data, `size` is pixels (or width and height); `style` is that of a patch.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not points:
        return
    box = axes.get_window_extent()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    unit = np.array([(right - left) / box.width, (bottom - top) / box.height]) * np.array(size) / 2
    outline = np.array(SHAPES[shape])
    corners = np.array(points)[:, None, :] + (outline * unit)[None]
    closed = np.concatenate([corners, corners[:, :1]], axis=1)
    codes = [Path.MOVETO] + [Path.LINETO] * (len(outline) - 1) + [Path.CLOSEPOLY]
    path = Path(closed.reshape(-1, 2), np.tile(codes, len(points)))
    axes.add_patch(PathPatch(path, **({"linewidth": 0, "clip_on": False} | style)))


def standalone(drawn: str) -> str:
    """A drawing as a file of its own: on white, in its own colours."""
    head, _, body = drawn.partition(">")
    font = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    start, end = body.rpartition("</desc>")[:2]
    rest = body[len(start) + len(end) :]
    return f'{head} xmlns="http://www.w3.org/2000/svg" font-family="{font}">{start}{end}{ground}{rest}\n'


def svg(figure: Figure, *, key: str, title: str, description: str) -> str:
    """The figure as inline SVG. `key` is unique on the page; title and description are for readers who
    do not see it."""
    raw = io.BytesIO()
    figure.savefig(raw, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    root = ElementTree.fromstring(raw.getvalue())  # noqa: S314 - it is our own drawing
    width, height = (f"{side * _DPI:.0f}" for side in figure.get_size_inches())
    used = set(re.findall(r"#([\w.-]+)", raw.getvalue().decode()))
    classes = "drawing" if float(width) > _SMALL else "drawing small"
    classes += " narrow" if float(width) <= _NARROW else ""
    body = "".join(_element(child, key, used) for child in root)
    label = f'<title id="{key}-t">{_text(title)}</title><desc id="{key}-d">{_text(description)}</desc>'
    return (
        f'<svg class="{classes}" role="img" aria-labelledby="{key}-t {key}-d" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}">{label}{body}</svg>'
    )


def _element(element: ElementTree.Element, key: str, used: set[str]) -> str:
    tag = element.tag.rpartition("}")[2]
    if tag in {"metadata", "style"}:
        return ""
    inside = "".join(_element(child, key, used) for child in element)
    text = _text(element.text) if element.text and element.text.strip() else ""
    attributes = _attributes(element, key, used)
    if tag in {"g", "defs"} and not attributes:
        return inside if tag == "g" or not inside else f"<defs>{inside}</defs>"
    if (tag == "g" and not inside) or (tag == "path" and _draws_nothing(attributes)):
        return ""
    shown = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{shown}>{text}{inside}</{tag}>"


def _draws_nothing(attributes: dict[str, str]) -> bool:
    return attributes.get("fill") == "none" and "stroke" not in attributes


def _attributes(element: ElementTree.Element, key: str, used: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    style = element.get("style", "")
    pairs = dict(part.split(":", 1) for part in style.split(";") if ":" in part)
    styled = {name.strip(): value.strip() for name, value in pairs.items()}
    classes = []
    for name, value in styled.items():
        if name in {"fill", "stroke"} and value in _CLASSES:
            classes.append(f"{name[0]}-{_CLASSES[value]}")
        if name in _KEPT:
            found[name] = value.removesuffix("px")
    for qualified, value in element.attrib.items():
        name = qualified.rpartition("}")[2]
        if name == "style" or (name == "id" and value not in used):
            continue
        if name == "transform" and re.match(r"rotate\(-?0 ", value):
            continue
        found[name] = _renamed(name, value, key)
    if classes:
        found["class"] = " ".join(classes)
    return found


def _renamed(name: str, value: str, key: str) -> str:
    """Ids get the figure's key in front: they must be unique on the page."""
    if name == "id":
        return f"{key}-{value}"
    if name == "href":
        return f"#{key}-{value[1:]}"
    if name == "clip-path":
        return value.replace("#", f"#{key}-")
    return " ".join(value.split()) if name == "d" else value


def _text(text: str) -> str:
    return escape(clean(text))

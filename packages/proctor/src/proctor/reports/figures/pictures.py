"""Drawings as files: SVG as they are, PNG and PDF by matplotlib.

A drawing of `SvgCanvas` has texts, lines, rectangles and circles alone, so that this page reads all of it. It is our own
markup: texts in it were escaped when it was drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from proctor.core import need_extra, output_file, whole_file
from proctor.reports.figures.canvas import standalone

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".pdf", ".svg")
"""The endings of pictures."""

_DOTS = 72.0  # pixels of a drawing per inch
_PNG_DOTS = 200
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}
_METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def write_picture(drawn: str | Figure, file: Path) -> Path:
    """Write a drawing (inline SVG, or a figure of matplotlib) as the file's ending says. Equal drawings give equal bytes.

    Raises `InputError` for an ending other than .png, .pdf and .svg, and if the file can't be written.
    """
    file = output_file(file, PICTURES)
    form = file.suffix.lower().removeprefix(".") or "png"
    with whole_file(file) as draft:
        if isinstance(drawn, str) and form == "svg":
            draft.write_text(standalone(drawn), encoding="utf-8")
            return file
        need_extra("plots", f"a picture as .{form}", "matplotlib")
        from matplotlib import rc_context

        figure = figure_of(drawn) if isinstance(drawn, str) else drawn
        with rc_context({"svg.hashsalt": "proctor", "pdf.fonttype": 42}):
            figure.savefig(draft, format=form, dpi=_PNG_DOTS, metadata=_METADATA[form])
    return file


def figure_of(drawn: str) -> Figure:
    """A drawing as a figure of matplotlib, of the same size."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, PathPatch, Rectangle

    root = ElementTree.fromstring(drawn)  # noqa: S314  # our own markup, with escaped texts
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    figure = Figure(figsize=(width / _DOTS, height / _DOTS), facecolor="white")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    for order, shape in enumerate(root):
        given = shape.attrib
        if shape.tag == "text":
            _text(axes, given, shape.text or "", order)
            continue
        style: dict[str, Any] = {
            "facecolor": given.get("fill", "none"),
            "edgecolor": given.get("stroke", "none"),
            "linewidth": float(given.get("stroke-width", 0.8)),
            "alpha": float(given.get("opacity", 1)),
            "zorder": order,
        }
        if dashes := given.get("stroke-dasharray"):
            style["linestyle"] = (0, tuple(map(float, dashes.split())))
        if shape.tag == "rect":
            corner = (float(given["x"]), float(given["y"]))
            axes.add_patch(Rectangle(corner, float(given["width"]), float(given["height"]), **style))
        elif shape.tag == "circle":
            axes.add_patch(Circle((float(given["cx"]), float(given["cy"])), float(given["r"]), **style))
        elif shape.tag == "path":
            axes.add_patch(PathPatch(_path(given["d"]), capstyle="butt", **style))
    return figure


def _text(axes: Any, given: dict[str, str], text: str, order: int) -> None:
    size, x, y = float(given["font-size"]), float(given["x"]), float(given["y"])
    turned = given.get("transform", "")
    if turned:
        x, y = map(float, turned.partition("(")[2].partition(")")[0].split())
    axes.text(
        x,
        y,
        text.replace("$", r"\$"),
        fontsize=size * 0.92,  # the sans serif of matplotlib is wider than that of pages
        color=given.get("fill", "#000000"),
        weight=given.get("font-weight", "normal"),
        ha=_ANCHORS[given.get("text-anchor", "start")] if not turned else "center",
        va="baseline" if not turned else "center",
        rotation=90 if turned else 0,
        zorder=order,
    )


def _path(drawn: str) -> Any:
    """A path of lines: "M x y L x y … z", several after each other."""
    from matplotlib.path import Path as Outline

    points: list[tuple[float, float]] = []
    codes: list[int] = []
    words = iter(drawn.split())
    for word in words:
        if word == "z":
            points.append((0.0, 0.0))
            codes.append(int(Outline.CLOSEPOLY))
        else:
            points.append((float(next(words)), float(next(words))))
            codes.append(int(Outline.MOVETO if word == "M" else Outline.LINETO))
    return Outline(points, codes)

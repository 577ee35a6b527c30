"""Drawings: numbers in, inline SVG out. The same numbers give the same bytes."""

from proctor.reports.figures.axes import Axis, signed_axis, value_axis
from proctor.reports.figures.bars import Bars, draw_bars
from proctor.reports.figures.blobs import Blobs, draw_blobs
from proctor.reports.figures.canvas import MOST_SERIES
from proctor.reports.figures.columns import Columns, draw_columns
from proctor.reports.figures.dots import Dot, Panel, draw_dots
from proctor.reports.figures.slopes import Slopes, draw_slopes

__all__ = [
    "MOST_SERIES",
    "Axis",
    "Bars",
    "Blobs",
    "Columns",
    "Dot",
    "Panel",
    "Slopes",
    "draw_bars",
    "draw_blobs",
    "draw_columns",
    "draw_dots",
    "draw_slopes",
    "signed_axis",
    "value_axis",
]

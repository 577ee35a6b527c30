"""Drawings: numbers in, inline SVG out. The same numbers give the same bytes."""

from proctor.reports.figures.axes import Axis, plain_axis, ratio_axis, signed_axis, value_axis
from proctor.reports.figures.bars import Bars, draw_bars
from proctor.reports.figures.blobs import Blobs, draw_blobs
from proctor.reports.figures.boxes import Box, BoxPanel, draw_box_rows, draw_boxes
from proctor.reports.figures.canvas import MOST_SERIES, standalone
from proctor.reports.figures.columns import Columns, draw_columns
from proctor.reports.figures.dots import Dot, Panel, draw_dots
from proctor.reports.figures.forest import Forest, draw_forest
from proctor.reports.figures.heat import Heat, draw_heat
from proctor.reports.figures.podium import MOST_ON_PODIUM, Podium, draw_podium
from proctor.reports.figures.ranklines import RankLines, draw_rank_lines
from proctor.reports.figures.shares import Part, SharePanel, draw_shares
from proctor.reports.figures.slopes import Slopes, draw_slopes
from proctor.reports.figures.verdicts import Verdicts, draw_verdict_panels, draw_verdicts

__all__ = [
    "MOST_ON_PODIUM",
    "MOST_SERIES",
    "Axis",
    "Bars",
    "Blobs",
    "Box",
    "BoxPanel",
    "Columns",
    "Dot",
    "Forest",
    "Heat",
    "Panel",
    "Part",
    "Podium",
    "RankLines",
    "SharePanel",
    "Slopes",
    "Verdicts",
    "draw_bars",
    "draw_blobs",
    "draw_box_rows",
    "draw_boxes",
    "draw_columns",
    "draw_dots",
    "draw_forest",
    "draw_heat",
    "draw_podium",
    "draw_rank_lines",
    "draw_shares",
    "draw_slopes",
    "draw_verdict_panels",
    "draw_verdicts",
    "plain_axis",
    "ratio_axis",
    "signed_axis",
    "standalone",
    "value_axis",
]

"""Figures as inline SVG. Equal numbers give equal bytes."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.reports.figures.canvas import (
        MAX_SERIES,
        SHAPES,
        Axis,
        SvgCanvas,
        plain_axis,
        ratio_axis,
        signed_axis,
        standalone,
        value_axis,
    )
    from proctor.reports.figures.lines import (
        MAX_ON_PODIUM,
        Curve,
        draw_columns,
        draw_curves,
        draw_podium,
        draw_rank_lines,
    )
    from proctor.reports.figures.marks import GREYS, RIGHT, WRONG, condition_numbers, plot_style, series_shape
    from proctor.reports.figures.matrices import (
        Matrix,
        Verdicts,
        draw_blobs,
        draw_matrix,
        draw_verdict_panels,
        draw_verdicts,
    )
    from proctor.reports.figures.pictures import PICTURES, write_picture
    from proctor.reports.figures.rows import SHARES, Box, ChartSeries, Dot, Mark, Panel, Stack, draw_list, draw_rows
else:
    export_lazily(__name__)

__all__ = [
    "GREYS", "MAX_ON_PODIUM", "MAX_SERIES", "PICTURES", "RIGHT", "SHAPES", "SHARES", "WRONG", "Axis", "Box", "ChartSeries", "Curve", "Dot", "Mark", "Matrix",
    "Panel", "Stack", "SvgCanvas", "Verdicts", "condition_numbers", "draw_blobs", "draw_columns", "draw_curves", "draw_list", "draw_matrix",
    "draw_podium", "draw_rank_lines", "draw_rows", "draw_verdict_panels", "draw_verdicts",
    "plain_axis", "plot_style", "ratio_axis", "series_shape", "signed_axis", "standalone", "value_axis", "write_picture",
]  # fmt: skip

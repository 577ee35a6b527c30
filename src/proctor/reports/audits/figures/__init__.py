"""Drawings that only an audit has: correlations in a grid, and curves of one number over another."""

from proctor.reports.audits.figures.curves import Curve, draw_curves
from proctor.reports.audits.figures.grid import Grid, draw_grid

__all__ = ["Curve", "Grid", "draw_curves", "draw_grid"]

"""Intervals, differences and ranks for clustered items: arrays in, numbers out."""

from proctor.stats.cross import cross_table
from proctor.stats.estimate import Estimate
from proctor.stats.intervals import mean_interval, slice_means
from proctor.stats.multiplicity import holm
from proctor.stats.options import Options, Resampling

__all__ = [
    "Estimate",
    "Options",
    "Resampling",
    "cross_table",
    "holm",
    "mean_interval",
    "slice_means",
]

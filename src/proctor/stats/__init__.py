"""Intervals, differences and ranks for clustered items: arrays in, numbers out."""

from proctor.stats.correlation import correlation
from proctor.stats.cross import cross_table
from proctor.stats.estimate import Estimate
from proctor.stats.intervals import mean_interval, slice_means
from proctor.stats.multiplicity import holm
from proctor.stats.options import Options, Resampling
from proctor.stats.paired import Difference, Pair, paired_difference, paired_differences
from proctor.stats.ranking import Rank, rank_systems

__all__ = [
    "Difference",
    "Estimate",
    "Options",
    "Pair",
    "Rank",
    "Resampling",
    "correlation",
    "cross_table",
    "holm",
    "mean_interval",
    "paired_difference",
    "paired_differences",
    "rank_systems",
    "slice_means",
]

"""Intervals, differences and ranks for clustered items: arrays in, numbers out."""

from proctor.stats.agreement import krippendorff_alpha
from proctor.stats.association import Contrast, Resamples, Sampled, average, contrast
from proctor.stats.buckets import Correction
from proctor.stats.correlation import correlation
from proctor.stats.cross import cross_table
from proctor.stats.dependent import Dependent, steiger, williams
from proctor.stats.estimate import Estimate
from proctor.stats.group_means import group_mean_slices
from proctor.stats.intervals import mean_interval, slice_means
from proctor.stats.multiplicity import holm
from proctor.stats.options import Options, Resampling
from proctor.stats.paired import Difference, Pair, paired_difference, paired_differences
from proctor.stats.ranking import Rank, rank_systems
from proctor.stats.regression import Regression, Term, logistic
from proctor.stats.standings import (
    RULES,
    RankingOptions,
    RankingPlan,
    Rule,
    Stability,
    Standing,
    Standings,
    rank_buckets,
)
from proctor.stats.sums import sums_interval
from proctor.stats.ties import tie_groups
from proctor.stats.voting import borda, copeland, dowdall, minimax

__all__ = [
    "RULES",
    "Contrast",
    "Correction",
    "Dependent",
    "Difference",
    "Estimate",
    "Options",
    "Pair",
    "Rank",
    "RankingOptions",
    "RankingPlan",
    "Regression",
    "Resamples",
    "Resampling",
    "Rule",
    "Sampled",
    "Stability",
    "Standing",
    "Standings",
    "Term",
    "average",
    "borda",
    "contrast",
    "copeland",
    "correlation",
    "cross_table",
    "dowdall",
    "group_mean_slices",
    "holm",
    "krippendorff_alpha",
    "logistic",
    "mean_interval",
    "minimax",
    "paired_difference",
    "paired_differences",
    "rank_buckets",
    "rank_systems",
    "slice_means",
    "steiger",
    "sums_interval",
    "tie_groups",
    "williams",
]

"""Intervals, differences and ranks for clustered items: arrays in, numbers out."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.stats.agreement import krippendorff_alpha
    from proctor.stats.association import Contrast, Resamples, Sampled, average, contrast
    from proctor.stats.buckets import Correction
    from proctor.stats.clusters import Floats, Groups, Ints, group_codes
    from proctor.stats.coefficients import Kind
    from proctor.stats.correlation import carrying_groups, correlation
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
    from proctor.stats.resampling import ratio
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
    from proctor.stats.ties import ordered_ranks, tie_groups
    from proctor.stats.voting import RANK_RULES, borda, copeland, dowdall, minimax, places
else:
    export_lazily(__name__)

__all__ = [
    "RANK_RULES",
    "RULES",
    "Contrast",
    "Correction",
    "Dependent",
    "Difference",
    "Estimate",
    "Floats",
    "Groups",
    "Ints",
    "Kind",
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
    "carrying_groups",
    "contrast",
    "copeland",
    "correlation",
    "cross_table",
    "dowdall",
    "group_codes",
    "group_mean_slices",
    "holm",
    "krippendorff_alpha",
    "logistic",
    "mean_interval",
    "minimax",
    "ordered_ranks",
    "paired_difference",
    "paired_differences",
    "places",
    "rank_buckets",
    "rank_systems",
    "ratio",
    "slice_means",
    "steiger",
    "sums_interval",
    "tie_groups",
    "williams",
]

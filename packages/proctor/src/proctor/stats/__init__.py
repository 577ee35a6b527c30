"""Intervals, differences and ranks for clustered items: arrays in, numbers out."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.stats.agreement import (
        cohen_kappa,
        cross_table,
        fleiss_kappa,
        gwet_ac1,
        krippendorff_alpha,
        percent_agreement,
    )
    from proctor.stats.annotations import (
        FEWEST_DIFFERENCES,
        FEWEST_GROUPS,
        AnnotationTolerance,
        annotation_tolerance,
        box_agreement,
        time_agreement,
        times_paired,
    )
    from proctor.stats.bootstrap import Estimate, Resampling, carrying_groups, ratio, sums_interval, sums_intervals
    from proctor.stats.bradley_terry import PreferenceModel, PreferredSystem, bradley_terry
    from proctor.stats.buckets import Correction, bucket_columns, bucket_mean_interval, mean_over_buckets
    from proctor.stats.clusters import Floats, Groups, Ints, group_codes, linked
    from proctor.stats.corrected import FEWEST_DRAWN, CorrectedMean, PlannedWidth, corrected_mean, planned_widths
    from proctor.stats.correlation import STATISTICS, Contrast, Kind, Resamples, Sampled, average, contrast, correlation
    from proctor.stats.dawid_skene import LabelVotes, LatentLabels, copying, dawid_skene, entropy
    from proctor.stats.group_sums import GroupSums
    from proctor.stats.ladder import HiddenSet, LeastSquaresGain, Optimism, ShownMeans, least_squares, luck
    from proctor.stats.means import group_mean_slices, mean_interval, slice_means
    from proctor.stats.paired import (
        Difference,
        Pair,
        holm,
        holm_known,
        paired_difference,
        paired_differences,
        sums_difference,
    )
    from proctor.stats.ranking import (
        RANK_RULES,
        Rank,
        RankReadings,
        borda,
        competition_ranks,
        copeland,
        ordered_ranks,
        rank_sums,
        rank_systems,
        tie_groups,
    )
    from proctor.stats.regression import Regression, Term, logistic
    from proctor.stats.shares import Share
    from proctor.stats.signflip import can_decide, fewest_groups, least_p
    from proctor.stats.special import prepare_intervals
    from proctor.stats.standings import (
        RULES,
        BucketRankReadings,
        RankingPlan,
        Rule,
        Stability,
        Standing,
        Standings,
        rank_buckets,
    )
    from proctor.stats.ties import TIE_RULES, Removal, TieOrder, TieRule
else:
    export_lazily(__name__)

__all__ = [
    "RANK_RULES",
    "RULES",
    "STATISTICS",
    "BucketRankReadings",
    "Contrast",
    "Correction",
    "Difference",
    "Estimate",
    "Floats",
    "GroupSums",
    "Groups",
    "Ints",
    "Kind",
    "LabelVotes",
    "LatentLabels",
    "Pair",
    "Rank",
    "RankReadings",
    "RankingPlan",
    "Regression",
    "Resamples",
    "Resampling",
    "Rule",
    "Sampled",
    "Share",
    "Stability",
    "Standing",
    "Standings",
    "Term",
    "average",
    "borda",
    "carrying_groups",
    "cohen_kappa",
    "competition_ranks",
    "contrast",
    "copeland",
    "copying",
    "correlation",
    "cross_table",
    "dawid_skene",
    "entropy",
    "group_codes",
    "group_mean_slices",
    "holm",
    "holm_known",
    "krippendorff_alpha",
    "linked",
    "logistic",
    "mean_interval",
    "ordered_ranks",
    "paired_difference",
    "paired_differences",
    "rank_buckets",
    "rank_sums",
    "rank_systems",
    "ratio",
    "slice_means",
    "sums_difference",
    "sums_interval",
    "sums_intervals",
    "tie_groups",
]  # fmt: skip
__all__ += [
    "FEWEST_DIFFERENCES",
    "FEWEST_DRAWN",
    "FEWEST_GROUPS",
    "TIE_RULES",
    "AnnotationTolerance",
    "CorrectedMean",
    "HiddenSet",
    "LeastSquaresGain",
    "Optimism",
    "PlannedWidth",
    "PreferenceModel",
    "PreferredSystem",
    "Removal",
    "ShownMeans",
    "TieOrder",
    "TieRule",
    "annotation_tolerance",
    "box_agreement",
    "bradley_terry",
    "bucket_columns",
    "bucket_mean_interval",
    "can_decide",
    "corrected_mean",
    "fewest_groups",
    "fleiss_kappa",
    "gwet_ac1",
    "least_p",
    "least_squares",
    "luck",
    "mean_over_buckets",
    "percent_agreement",
    "planned_widths",
    "prepare_intervals",
    "time_agreement",
    "times_paired",
]  # fmt: skip

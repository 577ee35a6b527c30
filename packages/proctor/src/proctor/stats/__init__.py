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
    from proctor.stats.heterogeneity import Heterogeneity, heterogeneity, site_variance
    from proctor.stats.interactions import Interaction, PartContrast, interaction
    from proctor.stats.item_analysis import FEWEST_SYSTEMS, ItemAnalysis, item_analysis
    from proctor.stats.judgements import JudgeVariance, judge_variance
    from proctor.stats.ladder import HiddenSet, LeastSquaresGain, Optimism, ShownMeans, least_squares, luck
    from proctor.stats.margins import MOST_P, Margin, MarginTest, margin_test
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
    from proctor.stats.planning import Needed, StudyPlan, VarianceParts, needed_groups, plan_power, variance_parts
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
    from proctor.stats.repetitions import (
        VarianceShares,
        majority_scores,
        repetition_error,
        repetition_variances,
        right_in_all,
        right_in_any,
        same_answers,
        variance_shares,
    )
    from proctor.stats.selective import (
        CalibrationGap,
        CoveragePoint,
        RiskCoverage,
        SureErrors,
        calibration,
        risk_coverage,
        sure_errors,
    )
    from proctor.stats.shapley import shapley_values
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
    "FEWEST_DIFFERENCES", "FEWEST_DRAWN", "FEWEST_GROUPS", "FEWEST_SYSTEMS", "MOST_P", "RANK_RULES", "RULES",
    "STATISTICS", "TIE_RULES", "AnnotationTolerance", "BucketRankReadings", "CalibrationGap", "Contrast",
    "CorrectedMean", "Correction", "CoveragePoint", "Difference", "Estimate", "Floats", "GroupSums", "Groups",
    "Heterogeneity", "HiddenSet", "Interaction", "Ints", "ItemAnalysis", "JudgeVariance", "Kind", "LabelVotes",
    "LatentLabels", "LeastSquaresGain", "Margin", "MarginTest", "Needed", "Optimism", "Pair", "PartContrast",
    "PlannedWidth", "PreferenceModel", "PreferredSystem", "Rank", "RankReadings", "RankingPlan", "Regression",
    "Removal", "Resamples", "Resampling", "RiskCoverage", "Rule", "Sampled", "Share", "ShownMeans", "Stability",
    "Standing", "Standings", "StudyPlan", "SureErrors", "Term", "TieOrder", "TieRule", "VarianceParts",
    "VarianceShares", "annotation_tolerance", "average", "borda", "box_agreement", "bradley_terry",
    "bucket_columns", "bucket_mean_interval", "calibration", "can_decide", "carrying_groups", "cohen_kappa",
    "competition_ranks", "contrast", "copeland", "copying", "corrected_mean", "correlation", "cross_table",
    "dawid_skene", "entropy", "fewest_groups", "fleiss_kappa", "group_codes", "group_mean_slices", "gwet_ac1",
    "heterogeneity", "holm", "holm_known", "interaction", "item_analysis", "judge_variance",
    "krippendorff_alpha", "least_p", "least_squares", "linked", "logistic", "luck", "majority_scores",
    "margin_test", "mean_interval", "mean_over_buckets", "needed_groups", "ordered_ranks", "paired_difference",
    "paired_differences", "percent_agreement", "plan_power", "planned_widths", "prepare_intervals",
    "rank_buckets", "rank_sums", "rank_systems", "ratio", "repetition_error", "repetition_variances",
    "right_in_all", "right_in_any", "risk_coverage", "same_answers", "shapley_values", "site_variance",
    "slice_means", "sums_difference", "sums_interval", "sums_intervals", "sure_errors", "tie_groups",
    "time_agreement", "times_paired", "variance_parts", "variance_shares",
]  # fmt: skip

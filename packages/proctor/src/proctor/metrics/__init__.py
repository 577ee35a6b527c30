"""Scores and metrics computed by code, without asking a model."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.metrics.accuracy import (
        MISSING,
        AccuracyScorer,
        Constants,
        cause_of,
        chance_level,
        chance_of,
        is_right,
        median_positions,
    )
    from proctor.metrics.corpus import ItemSums, MetricEstimate, estimates_of
    from proctor.metrics.graded import GRADED_METRICS, POOLED_PRECISION, GradedScorer, graded_metrics
    from proctor.metrics.over_items import (
        CORPUS_METRICS,
        OVER_ITEMS,
        SILENCE_HELPS,
        FunctionOverItems,
        MetricOverItems,
        installed_over_items,
        item_sums,
        put_over_items,
    )
    from proctor.metrics.prediction_reports import PREDICTION_REPORTS, PredictionScorer
    from proctor.metrics.scorers import (
        SCORERS,
        FunctionMetric,
        build_scorer,
        code_scorers,
        declared_metric,
        in_range,
        metric,
        refuse_over_items,
        scorer_in_file,
    )
else:
    export_lazily(__name__)

__all__ = [
    "CORPUS_METRICS", "GRADED_METRICS", "MISSING", "OVER_ITEMS", "POOLED_PRECISION", "PREDICTION_REPORTS",
    "SCORERS", "SILENCE_HELPS", "AccuracyScorer", "Constants", "FunctionMetric", "FunctionOverItems",
    "GradedScorer", "ItemSums", "MetricEstimate", "MetricOverItems", "PredictionScorer", "build_scorer", "cause_of",
    "chance_level", "chance_of", "code_scorers", "declared_metric", "estimates_of", "graded_metrics", "in_range",
    "installed_over_items", "is_right", "item_sums", "median_positions", "metric", "put_over_items",
    "refuse_over_items", "scorer_in_file",
]  # fmt: skip

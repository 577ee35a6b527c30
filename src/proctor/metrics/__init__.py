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
        median_places,
    )
    from proctor.metrics.corpus import ItemSums, MetricEstimate, estimates_of
    from proctor.metrics.graded import GRADED_METRICS, POOLED_PRECISION, GradedScorer, graded_metrics
    from proctor.metrics.scorers import (
        CORPUS_METRICS,
        SCORERS,
        SILENCE_HELPS,
        FunctionMetric,
        build_scorer,
        code_scorers,
        declared_metric,
        in_range,
        item_sums,
        metric,
        scorer_in_file,
    )
else:
    export_lazily(__name__)

__all__ = [
    "CORPUS_METRICS", "GRADED_METRICS", "MISSING", "POOLED_PRECISION", "SCORERS", "SILENCE_HELPS", "AccuracyScorer",
    "Constants", "FunctionMetric", "GradedScorer", "ItemSums", "MetricEstimate", "build_scorer", "cause_of",
    "chance_level", "chance_of", "code_scorers", "declared_metric", "estimates_of", "graded_metrics", "in_range",
    "is_right", "item_sums", "median_places", "metric", "scorer_in_file",
]  # fmt: skip

"""From parsed answers to numbers, without asking a model."""

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
    from proctor.metrics.corpus import (
        ItemSums,
        MetricEstimate,
        count_estimates,
        nominal_estimates,
        percentage_estimates,
        scale_estimates,
    )
    from proctor.metrics.function import FunctionMetric, declared_metric, in_range, metric
    from proctor.metrics.graded import GRADED_METRICS, POOLED_PRECISION, GradedScorer, graded_metrics, located_estimates
    from proctor.metrics.named import set_estimates, time_estimates
    from proctor.metrics.registry import CORPUS_METRICS, SCORERS, SILENCE_HELPS, build_scorer, code_scorers, item_sums
else:
    export_lazily(__name__)

__all__ = [
    "CORPUS_METRICS", "GRADED_METRICS", "MISSING", "POOLED_PRECISION", "SCORERS", "SILENCE_HELPS", "AccuracyScorer", "Constants",
    "FunctionMetric", "GradedScorer", "ItemSums", "MetricEstimate", "build_scorer", "cause_of", "chance_level",
    "chance_of", "code_scorers", "count_estimates", "declared_metric", "graded_metrics", "in_range", "is_right",
    "item_sums", "located_estimates", "median_places", "metric", "nominal_estimates", "percentage_estimates",
    "scale_estimates", "set_estimates", "time_estimates",
]  # fmt: skip

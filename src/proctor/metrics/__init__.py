"""From parsed answers to numbers, without asking a model."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.metrics.accuracy import (
        MISSING,
        SCORERS,
        AccuracyScorer,
        Constants,
        build_scorer,
        cause_of,
        chance_level,
        chance_of,
        code_scorers,
        is_right,
    )
    from proctor.metrics.corpus import (
        MetricEstimate,
        count_estimates,
        nominal_estimates,
        percentage_estimates,
        set_estimates,
        time_estimates,
    )
    from proctor.metrics.function import FunctionMetric, declared_metric, in_range, metric
else:
    export_lazily(__name__)

__all__ = [
    "MISSING", "SCORERS", "AccuracyScorer", "Constants", "FunctionMetric", "MetricEstimate", "build_scorer", "cause_of",
    "chance_level", "chance_of", "code_scorers", "count_estimates", "declared_metric", "in_range", "is_right", "metric",
    "nominal_estimates", "percentage_estimates", "set_estimates", "time_estimates",
]  # fmt: skip

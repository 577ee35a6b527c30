"""From parsed answers to numbers, without asking a model."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.metrics.accuracy import (
        MISSING,
        SCORERS,
        AccuracyScorer,
        build_scorer,
        cause_of,
        chance_level,
        chance_of,
        code_scorers,
        is_right,
    )
    from proctor.metrics.constants import Constants
    from proctor.metrics.function import FunctionMetric, declared_metric, in_range, metric
    from proctor.metrics.marks import (
        MetricEstimate,
        count_marks,
        match_times,
        nominal_marks,
        percentage_marks,
        set_marks,
        time_marks,
    )
else:
    export_lazily(__name__)

__all__ = [
    "MISSING",
    "SCORERS",
    "AccuracyScorer",
    "Constants",
    "FunctionMetric",
    "MetricEstimate",
    "build_scorer",
    "cause_of",
    "chance_level",
    "chance_of",
    "code_scorers",
    "count_marks",
    "declared_metric",
    "in_range",
    "is_right",
    "match_times",
    "metric",
    "nominal_marks",
    "percentage_marks",
    "set_marks",
    "time_marks",
]

"""The audit: a judge or metric compared with human ratings, whatever they rate."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.audits.agreement import (
        KINDS,
        Agreement,
        Audit,
        Ceiling,
        CorrelationSettings,
        LengthBias,
        RatingCell,
        RatingCells,
        SystemLevel,
        audit,
        lengths,
        paired,
    )
    from proctor.audits.profile import Bias, LengthSlope, MetricProfile, ScoreCalibration, profile
    from proctor.audits.ranking import MetricComparison, MetricRanking, RankedMetric, compare
    from proctor.audits.ratings import (
        ALL,
        Key,
        MetricScores,
        Rating,
        RatingsTable,
        coverage,
        read_metrics,
        read_ratings,
        read_scores,
        recorded_by_system,
        scored,
    )
    from proctor.audits.report import AuditReport, agreement_rows, to_json
else:
    export_lazily(__name__)

__all__ = [
    "ALL", "KINDS", "Agreement", "Audit", "AuditReport", "Bias", "Ceiling", "CorrelationSettings", "Key", "LengthBias",
    "LengthSlope", "MetricComparison", "MetricProfile", "MetricRanking", "MetricScores", "RankedMetric", "Rating",
    "RatingCell", "RatingCells", "RatingsTable", "ScoreCalibration", "SystemLevel", "agreement_rows", "audit",
    "compare", "coverage", "lengths", "paired", "profile", "read_metrics", "read_ratings", "read_scores",
    "recorded_by_system", "scored", "to_json",
]  # fmt: skip

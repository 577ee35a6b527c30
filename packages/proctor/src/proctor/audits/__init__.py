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
    from proctor.audits.comparison import (
        AS_GIVEN,
        LeadRow,
        MetricComparison,
        MetricRanking,
        Part,
        RankedMetric,
        bounds,
        compare,
        leading,
        leads,
    )
    from proctor.audits.official import OFFICIAL_AUDITS, OfficialAudit
    from proctor.audits.perturbations import (
        AGAIN,
        PERTURBATIONS,
        SMALL,
        Material,
        Perturbation,
        ProbedAnswer,
        Sensitivity,
        Shift,
        language_of,
    )
    from proctor.audits.power import Power, PowerPlan, PowerTable, power
    from proctor.audits.profile import Bias, LengthSlope, MetricProfile, ScoreCalibration, profile
    from proctor.audits.rating_columns import RATING_FIELDS, is_rating_table
    from proctor.audits.rating_tables import RatingRows, read_metrics, read_rating_rows, read_ratings, read_scores
    from proctor.audits.ratings import (
        ALL,
        Key,
        MetricScores,
        Rating,
        RatingsTable,
        compared_tables,
        coverage,
        left_out,
        recorded_by_system,
        scored,
        seen_scheme,
    )
    from proctor.audits.report import AuditReport, agreement_rows, leads_json, to_json
    from proctor.audits.splits import SplitLeak, split_items, split_leaks
else:
    export_lazily(__name__)

__all__ = [
    "AGAIN", "ALL", "AS_GIVEN", "KINDS", "OFFICIAL_AUDITS", "PERTURBATIONS", "RATING_FIELDS", "SMALL",
    "Agreement", "Audit", "AuditReport", "Bias", "Ceiling", "CorrelationSettings", "Key", "LeadRow", "LengthBias",
    "LengthSlope", "Material", "MetricComparison", "MetricProfile", "MetricRanking", "MetricScores",
    "OfficialAudit", "Part", "Perturbation", "Power", "PowerPlan", "PowerTable", "ProbedAnswer", "RankedMetric",
    "Rating", "RatingCell", "RatingCells", "RatingRows", "RatingsTable", "ScoreCalibration", "Sensitivity",
    "Shift", "SplitLeak", "SystemLevel", "agreement_rows", "audit", "bounds", "compare", "compared_tables",
    "coverage", "is_rating_table", "language_of", "leading", "leads", "leads_json", "left_out", "lengths",
    "paired", "power", "profile", "read_metrics", "read_rating_rows", "read_ratings", "read_scores",
    "recorded_by_system", "scored", "seen_scheme", "split_items", "split_leaks", "to_json",
]  # fmt: skip

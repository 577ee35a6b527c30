"""Judges: scorers that ask a model, one module per way of marking."""

from proctor.judges.registry import JUDGES, BuildJudge
from proctor.judges.verdict import (
    CONTRADICTION,
    CONTRADICTION_FLAG,
    HALF_UNNAMED,
    RUBRIC,
    RUBRIC_BY_ERROR_TYPE,
    RUBRIC_LABELS,
    VERDICT_METRICS,
    ErrorType,
    Verdict,
    verdict_scores,
)

__all__ = [
    "CONTRADICTION",
    "CONTRADICTION_FLAG",
    "HALF_UNNAMED",
    "JUDGES",
    "RUBRIC",
    "RUBRIC_BY_ERROR_TYPE",
    "RUBRIC_LABELS",
    "VERDICT_METRICS",
    "BuildJudge",
    "ErrorType",
    "Verdict",
    "verdict_scores",
]

"""Judges: scorers that ask a model, one module per way of marking."""

from proctor.judges.binary_vote import JUDGE_VOTE
from proctor.judges.fallback import WithFallback
from proctor.judges.panel import (
    AWAITING_VOTES,
    BY_FALLBACK,
    NO_VERDICT,
    PANEL_ACCURACY,
    RESOLVED,
    TIE,
    UNRESOLVED,
    Panel,
)
from proctor.judges.rationale import RATIONALE_METRICS, TEXT_ONLY_FLAG
from proctor.judges.registry import (
    JUDGES,
    BuildJudge,
    FramesOf,
    OfSeveral,
    SeesFrames,
    build_judge,
    judge_prompt,
)
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
    "AWAITING_VOTES",
    "BY_FALLBACK",
    "CONTRADICTION",
    "CONTRADICTION_FLAG",
    "HALF_UNNAMED",
    "JUDGES",
    "JUDGE_VOTE",
    "NO_VERDICT",
    "PANEL_ACCURACY",
    "RATIONALE_METRICS",
    "RESOLVED",
    "RUBRIC",
    "RUBRIC_BY_ERROR_TYPE",
    "RUBRIC_LABELS",
    "TEXT_ONLY_FLAG",
    "TIE",
    "UNRESOLVED",
    "VERDICT_METRICS",
    "BuildJudge",
    "ErrorType",
    "FramesOf",
    "OfSeveral",
    "Panel",
    "SeesFrames",
    "Verdict",
    "WithFallback",
    "build_judge",
    "judge_prompt",
    "verdict_scores",
]

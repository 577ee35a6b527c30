"""Judges: scorers that ask a model, one module per way of marking."""

from proctor.judges.binary_vote import JUDGE_VOTE
from proctor.judges.panel import AWAITING_VOTES, PANEL_ACCURACY, UNRESOLVED, Panel
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
    "CONTRADICTION",
    "CONTRADICTION_FLAG",
    "HALF_UNNAMED",
    "JUDGES",
    "JUDGE_VOTE",
    "PANEL_ACCURACY",
    "RATIONALE_METRICS",
    "RUBRIC",
    "RUBRIC_BY_ERROR_TYPE",
    "RUBRIC_LABELS",
    "TEXT_ONLY_FLAG",
    "UNRESOLVED",
    "VERDICT_METRICS",
    "BuildJudge",
    "ErrorType",
    "FramesOf",
    "OfSeveral",
    "Panel",
    "SeesFrames",
    "Verdict",
    "build_judge",
    "judge_prompt",
    "verdict_scores",
]

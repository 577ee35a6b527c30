"""Judges: scorers that ask a model, one module per way of marking."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.judges.function import FunctionJudge, JudgeFunction, judge
    from proctor.judges.panel import Panel, WithFallback
    from proctor.judges.registry import (
        JUDGES,
        BuildJudge,
        FramesOf,
        OfSeveral,
        SeesFrames,
        build_dimension_judge,
        build_judge,
        judge_prompt,
        rates_dimensions,
    )
    from proctor.judges.verdict_judges import TEXT_ONLY_FLAG
    from proctor.judges.verdicts import (
        AWAITING_VOTES,
        BY_FALLBACK,
        CONTRADICTION,
        CONTRADICTION_FLAG,
        DECIDED_BY_A_PERSON,
        HALF_UNNAMED,
        JUDGE_VOTE,
        NO_VERDICT,
        PANEL_ACCURACY,
        RATIONALE_METRICS,
        RESOLVED,
        RUBRIC,
        RUBRIC_BY_ERROR_TYPE,
        RUBRIC_LABELS,
        TIE,
        UNRESOLVED,
        VERDICT_METRICS,
        VOTE_MISSING,
        ErrorType,
        PartialScoresError,
        Verdict,
        asked_metrics,
        decided_by,
        decided_scores,
        decided_values,
        is_decided,
        verdict_scores,
    )
else:
    export_lazily(__name__)

__all__ = [
    "AWAITING_VOTES",
    "BY_FALLBACK",
    "CONTRADICTION",
    "CONTRADICTION_FLAG",
    "DECIDED_BY_A_PERSON",
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
    "VOTE_MISSING",
    "BuildJudge",
    "ErrorType",
    "FramesOf",
    "FunctionJudge",
    "JudgeFunction",
    "OfSeveral",
    "Panel",
    "PartialScoresError",
    "SeesFrames",
    "Verdict",
    "WithFallback",
    "asked_metrics",
    "build_dimension_judge",
    "build_judge",
    "decided_by",
    "decided_scores",
    "decided_values",
    "is_decided",
    "judge",
    "judge_prompt",
    "rates_dimensions",
    "verdict_scores",
]

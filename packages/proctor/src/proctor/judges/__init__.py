"""Judges: scorers that ask a model, one module per way of scoring."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.judges.cached_model import (
        CachedModel,
        PromptedModel,
        StoredReply,
        as_said,
        as_text,
        load_prompts,
        prompt_for,
        prompt_hashes,
        several,
    )
    from proctor.judges.documents import Chunking
    from proctor.judges.function import Ask, FunctionJudge, JudgeFunction, judge
    from proctor.judges.panel import Panel, WithFallback
    from proctor.judges.passage_index import IndexSettings, default_folder, load_sentence_encoder, open_index
    from proctor.judges.prompt_injection import (
        FENCE_CLOSE,
        FENCE_NOTE,
        FENCE_OPEN,
        INJECTION_FLAG,
        fenced,
        has_injection,
        sanitize,
        suspicion,
    )
    from proctor.judges.registry import (
        JUDGES,
        FramesOf,
        build_dimension_judge,
        build_judge,
        judge_in_file,
        judge_prompt,
        rates_dimensions,
    )
    from proctor.judges.verdict_metrics import (
        AWAITING_VOTES,
        CONTRADICTION,
        CONTRADICTION_FLAG,
        CRITERIA_SCORE,
        DECIDED_BY_A_PERSON,
        HALF_UNNAMED,
        JUDGE_FLAGS,
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
        metrics_of_kind,
        verdict_scores,
    )
else:
    export_lazily(__name__)

__all__ = [
    "AWAITING_VOTES", "CONTRADICTION", "CONTRADICTION_FLAG", "CRITERIA_SCORE", "DECIDED_BY_A_PERSON", "FENCE_CLOSE",
    "FENCE_NOTE", "FENCE_OPEN", "HALF_UNNAMED", "INJECTION_FLAG", "JUDGES", "JUDGE_FLAGS", "JUDGE_VOTE", "NO_VERDICT",
    "PANEL_ACCURACY", "RATIONALE_METRICS", "RESOLVED", "RUBRIC", "RUBRIC_BY_ERROR_TYPE", "RUBRIC_LABELS", "TIE",
    "UNRESOLVED", "VERDICT_METRICS", "VOTE_MISSING", "Ask", "CachedModel", "Chunking", "ErrorType", "FramesOf",
    "FunctionJudge", "IndexSettings", "JudgeFunction", "Panel", "PartialScoresError", "PromptedModel", "StoredReply",
    "Verdict", "WithFallback", "as_said", "as_text", "asked_metrics", "build_dimension_judge", "build_judge",
    "decided_by", "decided_scores", "decided_values", "default_folder", "fenced", "has_injection", "is_decided",
    "judge", "judge_in_file", "judge_prompt", "load_prompts", "load_sentence_encoder", "metrics_of_kind",
    "open_index", "prompt_for", "prompt_hashes", "rates_dimensions", "sanitize", "several", "suspicion",
    "verdict_scores",
]  # fmt: skip

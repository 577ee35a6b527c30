"""Proctor evaluates multimodal models on clinical procedures.

    >>> import proctor
    >>> benchmark = proctor.load("rexsonovqa", "rexsonovqa", "videos")      # doctest: +SKIP
    >>> run = proctor.run(benchmark, model="openai:gpt-5.2")                # doctest: +SKIP
    >>> run.results()                                                       # doctest: +SKIP

What stands here is loaded when it is first used, so that the import costs nothing.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor import stats
    from proctor.api import (
        Evaluation,
        StudyResult,
        analyze,
        arrange_study,
        audit,
        check,
        choose_model,
        choose_model_async,
        compare,
        confidence,
        corrected,
        critical,
        explain,
        export,
        fetch,
        import_answers,
        import_answers_async,
        judge,
        judge_grid,
        judge_grid_async,
        leaderboard,
        load,
        metric,
        open_store,
        perturb,
        perturb_async,
        plan,
        rank,
        report,
        reproduce,
        results,
        run,
        run_async,
        run_study,
        run_study_async,
        score,
        score_async,
        score_predictions,
        sight,
        sight_async,
        status,
        system,
        validate,
        verify,
    )
    from proctor.core import (
        ACCURACY,
        Answer,
        AudioClip,
        Benchmark,
        ConfigurationError,
        Image,
        InfrastructureError,
        InputError,
        Item,
        Metric,
        ProctorError,
        Reference,
        RefusalError,
        Status,
        VideoClip,
        formats,
    )
else:
    export_lazily(__name__)

__version__ = "0.1.0"

__all__ = [
    "ACCURACY", "Answer", "AudioClip", "Benchmark", "ConfigurationError", "Evaluation", "Image",
    "InfrastructureError", "InputError", "Item", "Metric", "ProctorError", "Reference", "RefusalError",
    "Status", "StudyResult", "VideoClip", "__version__", "analyze", "arrange_study", "audit", "check",
    "choose_model", "choose_model_async", "compare", "confidence", "corrected", "critical", "explain", "export",
    "fetch", "formats", "import_answers", "import_answers_async", "judge", "judge_grid", "judge_grid_async",
    "leaderboard", "load", "metric", "open_store", "perturb", "perturb_async", "plan", "rank", "report",
    "reproduce", "results", "run", "run_async", "run_study", "run_study_async", "score", "score_async",
    "score_predictions", "sight", "sight_async", "stats", "status", "system", "validate", "verify",
]  # fmt: skip

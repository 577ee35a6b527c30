"""What `import proctor` offers: the functions of Proctor, which the commands call too."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.api.analysis import (
        analyze,
        audit,
        compare,
        confidence,
        corrected,
        critical,
        leaderboard,
        rank,
        report,
        results,
    )
    from proctor.api.downloads import fetch
    from proctor.api.evaluation import Evaluation, import_answers, import_answers_async, run, run_async
    from proctor.api.explanations import explain
    from proctor.api.import_export import export, validate
    from proctor.api.planning import plan
    from proctor.api.run_status import status
    from proctor.api.studies import StudyResult, arrange_study, run_study, run_study_async
    from proctor.judges import judge
    from proctor.metrics import metric
    from proctor.shell import (
        check,
        choose_model,
        choose_model_async,
        judge_grid,
        judge_grid_async,
        load,
        open_store,
        perturb,
        perturb_async,
        reproduce,
        score,
        score_async,
        score_predictions,
        sight,
        sight_async,
        verify,
    )
    from proctor.systems import system
else:
    export_lazily(__name__)

__all__ = [
    "Evaluation", "StudyResult", "analyze", "arrange_study", "audit", "check", "choose_model",
    "choose_model_async", "compare", "confidence", "corrected", "critical", "explain", "export", "fetch",
    "import_answers", "import_answers_async", "judge", "judge_grid", "judge_grid_async", "leaderboard", "load",
    "metric", "open_store", "perturb", "perturb_async", "plan", "rank", "report", "reproduce", "results", "run",
    "run_async", "run_study", "run_study_async", "score", "score_async", "score_predictions", "sight",
    "sight_async", "status", "system", "validate", "verify",
]  # fmt: skip

"""What `import proctor` offers: the functions of Proctor, which the commands call too."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.api.analysis import analyze, audit, compare, corrected, critical, leaderboard, rank, report, results
    from proctor.api.downloads import fetch
    from proctor.api.evaluation import Evaluation, import_answers, import_answers_async, run, run_async
    from proctor.api.import_export import export, validate
    from proctor.api.planning import plan
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
    "Evaluation", "analyze", "audit", "check", "choose_model", "choose_model_async", "compare", "corrected",
    "critical", "export", "fetch", "import_answers", "import_answers_async", "judge", "judge_grid",
    "judge_grid_async", "leaderboard", "load", "metric", "open_store", "perturb", "perturb_async", "plan", "rank",
    "report", "reproduce", "results", "run", "run_async", "score", "score_async", "score_predictions", "sight", "sight_async", "system",
    "validate", "verify",
]  # fmt: skip

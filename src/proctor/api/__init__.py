"""Proctor from Python: `import proctor` offers what stands here, and the commands of the shell call the same functions."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.api.access import ModelAccess, SystemLike, build_systems
    from proctor.api.numbers import Drawing, RankOptions, analyze, audit, compare, rank, results
    from proctor.api.output import ReportOptions, export, report, thumbnails_of
    from proctor.api.recorded import import_answers, import_answers_async
    from proctor.api.running import PreparedRun, RunOptions, estimate_run, load, plan_notes, prepare_run, run, run_async
    from proctor.api.scoring import JudgeOptions, PreparedJudge, Scored, prepare_judge, score, score_async
    from proctor.api.sources import Evaluation, open_store
    from proctor.api.tables import AnalysisTables, AuditTable, ComparisonTable, FrameLike, RankingTable, ResultsTable
    from proctor.judges import FunctionJudge, JudgeFunction, judge
    from proctor.metrics import FunctionMetric, metric
    from proctor.systems import FunctionSystem, system
else:
    export_lazily(__name__)

__all__ = [
    "AnalysisTables",
    "AuditTable",
    "ComparisonTable",
    "Drawing",
    "Evaluation",
    "FrameLike",
    "FunctionJudge",
    "FunctionMetric",
    "FunctionSystem",
    "JudgeFunction",
    "JudgeOptions",
    "ModelAccess",
    "PreparedJudge",
    "PreparedRun",
    "RankOptions",
    "RankingTable",
    "ReportOptions",
    "ResultsTable",
    "RunOptions",
    "Scored",
    "SystemLike",
    "analyze",
    "audit",
    "build_systems",
    "compare",
    "estimate_run",
    "export",
    "import_answers",
    "import_answers_async",
    "judge",
    "load",
    "metric",
    "open_store",
    "plan_notes",
    "prepare_judge",
    "prepare_run",
    "rank",
    "report",
    "results",
    "run",
    "run_async",
    "score",
    "score_async",
    "system",
    "thumbnails_of",
]

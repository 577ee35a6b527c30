"""Proctor from Python: `import proctor` offers what stands here, and the commands of the shell call the same
functions."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.api.access import ModelAccess, SystemLike
    from proctor.api.analysis import (
        analyze,
        audit,
        compare,
        leaderboard,
        official_summary,
        policy_of,
        rank,
        report,
        results,
    )
    from proctor.api.benchmarks import CheckTable, admitted, check, load
    from proctor.api.downloads import Fetched, fetch
    from proctor.api.exchange import PLAIN_FORMATS, export, import_answers, import_answers_async, validate
    from proctor.api.execution import PreparedRun, arrange, run, run_async
    from proctor.api.item_audits import ask_option_auditors
    from proctor.api.judge_comparison import AgreementOptions, ComparedJudges, judge_agreement
    from proctor.api.judge_experiments import (
        GridOptions,
        JudgeGrid,
        PerturbationTable,
        ProbeOptions,
        filled_probes,
        judge_grid,
        judge_grid_async,
        perturb,
        perturb_async,
        prepare_probes,
    )
    from proctor.api.judge_fit import FitMethod, FitOptions, FittedJudge, fit_judge, fit_judge_async, prepare_fit
    from proctor.api.judge_training import (
        ClassifierOptions,
        GenerativeOptions,
        train_classifier_judge,
        train_classifier_judge_async,
        train_generative_judge,
    )
    from proctor.api.model_choice import (
        ChooseOptions,
        ChosenModel,
        PreparedChoice,
        arrange_choice,
        choose_model,
        choose_model_async,
    )
    from proctor.api.model_options import ModelOptions, RunOptions, ScoreOptions
    from proctor.api.option_values import facets_of, names_in, size_in_bytes, system_names, validator_names
    from proctor.api.options import (
        AllItems,
        AnalyzeOptions,
        AuditOptions,
        BenchmarkName,
        BenchmarkSource,
        Cache,
        CompareOptions,
        Draws,
        ExportOptions,
        ImportOptions,
        LatencyRule,
        MaxSide,
        Overlay,
        QuestionSeconds,
        RankOptions,
        ReportOptions,
        ReproduceOptions,
        ResultOptions,
        Seed,
        Selection,
        StoreUrl,
        Track,
        declared,
    )
    from proctor.api.reproduction import ReproductionTable, VerificationTable, reproduce, verify, write_shown
    from proctor.api.scores import (
        PreparedScorer,
        Scored,
        judge_prompts_of,
        prepare_scorers,
        ratings_in,
        score,
        score_async,
        score_predictions,
    )
    from proctor.api.sources import Evaluation, join_stores, name_in, open_store
    from proctor.api.tables import AnalysisTables, AuditTable, ComparisonTable, DrawnTable, RankingTable, ResultsTable
    from proctor.api.training import (
        AnswererOptions,
        AnswererTable,
        ParityOptions,
        arrange_answerer,
        check_parity,
        train_answerer,
    )
    from proctor.api.workers import (
        RayWorkers,
        WorkOptions,
        check_place,
        check_travels,
        slurm_job,
        work_async,
        worker_options,
    )
    from proctor.judges import FunctionJudge, JudgeFunction, judge
    from proctor.metrics import FunctionMetric, FunctionOverItems, metric
    from proctor.systems import FunctionSystem, system
else:
    export_lazily(__name__)

__all__ = [
    "PLAIN_FORMATS", "AgreementOptions", "AllItems", "AnalysisTables", "AnalyzeOptions", "AnswererOptions",
    "AnswererTable", "AuditOptions", "AuditTable", "BenchmarkName", "BenchmarkSource", "Cache", "CheckTable",
    "ChooseOptions", "ChosenModel", "ClassifierOptions", "CompareOptions", "ComparedJudges", "ComparisonTable",
    "DrawnTable", "Draws", "Evaluation", "ExportOptions", "Fetched", "FitMethod", "FitOptions", "FittedJudge",
    "FunctionJudge", "FunctionMetric", "FunctionOverItems", "FunctionSystem", "GenerativeOptions", "GridOptions",
    "ImportOptions",
    "JudgeFunction", "JudgeGrid", "LatencyRule", "MaxSide", "ModelAccess", "ModelOptions", "Overlay", "ParityOptions",
    "PerturbationTable", "PreparedChoice", "PreparedRun", "PreparedScorer", "ProbeOptions", "QuestionSeconds",
    "RankOptions", "RankingTable", "RayWorkers", "ReportOptions", "ReproduceOptions", "ReproductionTable",
    "ResultOptions", "ResultsTable", "RunOptions", "ScoreOptions", "Scored", "Seed", "Selection", "StoreUrl",
    "SystemLike", "Track", "VerificationTable", "WorkOptions", "admitted", "analyze", "arrange", "arrange_answerer",
    "arrange_choice", "ask_option_auditors", "audit", "check", "check_parity", "check_place", "check_travels",
    "choose_model", "choose_model_async", "compare", "declared", "export", "facets_of", "fetch", "filled_probes",
    "fit_judge", "fit_judge_async", "import_answers", "import_answers_async", "join_stores", "judge",
    "judge_agreement", "judge_grid", "judge_grid_async", "judge_prompts_of", "leaderboard", "load", "metric",
    "name_in", "names_in", "official_summary", "open_store", "perturb", "perturb_async", "policy_of", "prepare_fit",
    "prepare_probes", "prepare_scorers", "rank", "ratings_in", "report", "reproduce", "results", "run", "run_async",
    "score", "score_async", "score_predictions", "size_in_bytes", "slurm_job", "system", "system_names",
    "train_answerer", "train_classifier_judge", "train_classifier_judge_async", "train_generative_judge", "validate",
    "validator_names", "verify", "work_async", "worker_options", "write_shown",
]  # fmt: skip

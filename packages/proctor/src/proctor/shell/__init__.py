"""What the commands and the functions of `proctor.api` have in common: tables of options, stores and files, models
and their systems, and runs, scorers and training arranged step by step, so that a command can report each step."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.shell.benchmarks import (
        admitted,
        as_lists,
        excerpts_as,
        is_study,
        library_as,
        load,
        loaded_as,
        media_at,
        need_media,
        recalled,
        remember,
    )
    from proctor.shell.explained_sides import explained_sides
    from proctor.shell.file_checks import check
    from proctor.shell.gap_runs import explained_gap, gap_runs
    from proctor.shell.item_audits import ask_option_auditors, flag_guessable
    from proctor.shell.judge_experiments import (
        GridOptions,
        JudgeGrid,
        PerturbationTable,
        PerturbOptions,
        judge_grid,
        judge_grid_async,
        perturb,
        perturb_async,
        prepare_probes,
    )
    from proctor.shell.model_choice import (
        ChooseOptions,
        ChosenModel,
        PreparedChoice,
        arrange_choice,
        choose_model,
        choose_model_async,
        parts_of,
    )
    from proctor.shell.model_options import LoraOptions, ModelOptions, RunOptions, ScoreOptions, ShownOptions
    from proctor.shell.option_values import (
        condition_names,
        facets_of,
        names_in,
        size_in_bytes,
        system_names,
        time_span,
        validator_names,
    )
    from proctor.shell.options import (
        DECIDED,
        JUDGEMENTS,
        PLAIN_FORMATS,
        SUMS,
        TABLE_FORMATS,
        UNRESOLVED,
        AllItems,
        AnalyzeOptions,
        AuditOptions,
        BenchmarkName,
        BenchmarkSource,
        Cache,
        CompareOptions,
        Concurrency,
        Draws,
        ExplainOptions,
        ExportOptions,
        ImportOptions,
        LatencyRule,
        LeaderboardOptions,
        MaxSide,
        MediaFolder,
        OnChange,
        Overlay,
        QuestionSeconds,
        RankOptions,
        ReportOptions,
        ReproduceOptions,
        ResultOptions,
        Seed,
        Selection,
        Stop,
        StoreUrl,
        StudyPlanOptions,
        Track,
        ValidateOptions,
        declared,
        filled,
        listed,
    )
    from proctor.shell.pooling import PooledTable, pool
    from proctor.shell.reproduction import ReproductionTable, VerificationTable, reproduce, verify, write_shown
    from proctor.shell.result_options import metric_names, official_summary, options_of, policy_of
    from proctor.shell.run_preparation import Arranged, PreparedRun, arrange, baseline_notes
    from proctor.shell.scorers import (
        PreparedScorer,
        Scored,
        judge_prompts_of,
        prepare_scorers,
        ratings_in,
        refuse_in_sample,
        score,
        score_async,
        score_predictions,
    )
    from proctor.shell.scoring_report import judge_report, metrics_report
    from proctor.shell.sight_check import SightOptions, arrange_sight, sight, sight_async
    from proctor.shell.single_runs import SingleRun, import_single, plan_single, score_by_code
    from proctor.shell.stores import (
        DEFAULT_STORE,
        Stored,
        StoredRuns,
        existing_store,
        join_stores,
        name_in,
        open_store,
        stored,
        sync_twin,
        wait_for,
    )
    from proctor.shell.study_files import Study, read_study, refuse_beside, study_path
    from proctor.shell.systems import ModelAccess, SystemLike, checked
    from proctor.shell.workers import (
        RayWorkers,
        WorkOptions,
        check_location,
        check_travels,
        slurm_job,
        work_async,
        worker_options,
    )
else:
    export_lazily(__name__)

__all__ = [
    "DECIDED", "DEFAULT_STORE", "JUDGEMENTS", "PLAIN_FORMATS", "SUMS", "TABLE_FORMATS", "UNRESOLVED", "AllItems",
    "AnalyzeOptions", "Arranged", "AuditOptions", "BenchmarkName", "BenchmarkSource", "Cache", "ChooseOptions",
    "ChosenModel", "CompareOptions", "Concurrency", "Draws", "ExplainOptions",
    "ExportOptions", "GridOptions", "ImportOptions", "JudgeGrid", "LatencyRule",
    "LeaderboardOptions", "LoraOptions", "MaxSide", "MediaFolder", "ModelAccess", "ModelOptions", "OnChange",
    "Overlay", "PerturbOptions", "PerturbationTable", "PooledTable", "PreparedChoice", "PreparedRun",
    "PreparedScorer", "QuestionSeconds", "RankOptions", "RayWorkers", "ReportOptions", "ReproduceOptions",
    "ReproductionTable", "ResultOptions", "RunOptions", "ScoreOptions", "Scored", "Seed", "Selection",
    "ShownOptions", "SightOptions", "SingleRun", "Stop", "StoreUrl", "Stored", "StoredRuns", "Study",
    "StudyPlanOptions", "SystemLike", "Track", "ValidateOptions", "VerificationTable", "WorkOptions",
    "admitted", "arrange", "arrange_choice", "arrange_sight", "as_lists", "ask_option_auditors",
    "baseline_notes", "check", "check_location", "check_travels", "checked", "choose_model",
    "choose_model_async", "condition_names", "declared", "excerpts_as", "existing_store", "explained_gap",
    "explained_sides", "facets_of", "filled", "flag_guessable", "gap_runs", "import_single", "is_study", "join_stores",
    "judge_grid", "judge_grid_async", "judge_prompts_of", "judge_report", "library_as", "listed", "load",
    "loaded_as", "media_at", "metric_names", "metrics_report", "name_in", "names_in", "need_media",
    "official_summary", "open_store", "options_of", "parts_of", "perturb", "perturb_async", "plan_single",
    "policy_of", "pool", "prepare_probes", "prepare_scorers", "ratings_in", "read_study", "recalled",
    "refuse_beside", "refuse_in_sample", "remember", "reproduce", "score", "score_async", "score_by_code",
    "score_predictions", "sight", "sight_async", "size_in_bytes", "slurm_job", "stored", "study_path",
    "sync_twin", "system_names", "time_span", "validator_names", "verify", "wait_for", "work_async",
    "worker_options", "write_shown",
]  # fmt: skip

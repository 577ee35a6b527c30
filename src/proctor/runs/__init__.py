"""Runs: the engine that asks, the store that keeps, and the numbers that follow from it."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.runs.analyses import Analysis, analyse, write_tables
    from proctor.runs.boards import (
        ModelChoice,
        board_json,
        board_rows,
        bucket_mean,
        choose_run,
        lead_rows,
        rule_rows,
        wins_of,
    )
    from proctor.runs.bulk import reading_once
    from proctor.runs.comparison import Comparison, Comparisons, compare, compare_runs
    from proctor.runs.costs import Consumption, RunCost, load_consumption, run_costs
    from proctor.runs.database import (
        LOCK_WAIT,
        DamagedStoreError,
        machine_time,
        open_engine,
        reading,
        shown_url,
        store_files,
    )
    from proctor.runs.database import clock as database_clock
    from proctor.runs.decisions import decide, write_open
    from proctor.runs.engine import Limits, Tally, ask, parsed_answer
    from proctor.runs.export import COLUMNS as EXPORT_COLUMNS
    from proctor.runs.export import (
        ExportFormat,
        ScoredAnswer,
        export,
        export_rows,
        pseudonyms_of,
        public_copy,
        scored_answers,
        write_rows,
    )
    from proctor.runs.federation import PooledMetric, SumsFile, group_sums, pool_sums, write_sums
    from proctor.runs.housekeeping import (
        check_file,
        check_store,
        count_scores,
        delete_benchmark,
        delete_runs,
        delete_scores,
        disqualify,
        reinstate,
        rename_system,
        revise_benchmark,
        stored_runs,
    )
    from proctor.runs.judgements import (
        GivenAnswer,
        ItemHistory,
        JudgeAgreement,
        flagged_votes,
        item_history,
        judge_agreement,
        judgements_of,
        rating_summary,
    )
    from proctor.runs.leaderboard import Leaderboard, LeaderboardRow, leaderboard
    from proctor.runs.leases import RunLostError, RunTakenError, lease_time
    from proctor.runs.merging import EvaluationContent, MergedRows, evaluation_content, merge_stores
    from proctor.runs.performance import AnalysisRow, NothingMarkedError
    from proctor.runs.plan import (
        PICTURE_TOKENS,
        Outcome,
        Plan,
        PlanOptions,
        RunEstimate,
        add_baselines,
        chosen_items,
        estimate_runs,
        execute,
        join,
        plan,
        run_settings,
        skipped_baselines,
    )
    from proctor.runs.probing import AnswersOf, NoVotes, Probe, SecondVotes, probe
    from proctor.runs.ranking import Board, Contest, Lacking, Marks, RankedRun, chosen_baselines, rank_runs
    from proctor.runs.ratings import (
        add_recorded_scores,
        answer_keys,
        compared,
        declare_ratings,
        judgements_behind,
        judges_of,
        no_ratings,
        people_ratings,
        rated_cases,
        refuse_other_scale,
        scored_cases,
        similarity_scores,
    )
    from proctor.runs.report_data import OrderedRun, load_answers, load_orders, load_scores, newest_run, status_counts
    from proctor.runs.reproduction import Remake, ReproducedAnswer, Reproducer, Reproduction, recorded
    from proctor.runs.results import (
        Options,
        Result,
        Results,
        audit_stored,
        composition,
        derive_guessable,
        flag_guessable,
        items_outside,
        items_to_audit,
        official_summaries,
        results,
        results_of_recorded,
        summary_title,
    )
    from proctor.runs.run_scores import BOTH, FAILED_POLICIES, policies
    from proctor.runs.schema import BenchmarkCard, check_given_name, id_column, time_column
    from proctor.runs.schema import meta as store_meta
    from proctor.runs.schema import metadata as store_tables
    from proctor.runs.scoring import (
        JudgeLimits,
        JudgeTally,
        PaidVotes,
        import_answers,
        import_systems,
        judge_all,
        score_answers,
        score_changed,
    )
    from proctor.runs.served import other_model, served_notes
    from proctor.runs.settings import declare_scorer
    from proctor.runs.sharing import ItemClaims, OpenOrder, Order, open_orders, place_order, read_parcel, text_hash
    from proctor.runs.store import ORACLE, Run, Store
    from proctor.runs.table import BASELINES, CODE, ItemTable, chosen_runs, load_items
else:
    export_lazily(__name__)

__all__ = [
    "BASELINES", "BOTH", "CODE", "EXPORT_COLUMNS", "FAILED_POLICIES", "LOCK_WAIT", "ORACLE", "PICTURE_TOKENS",
    "Analysis", "AnalysisRow", "AnswersOf", "BenchmarkCard", "Board", "Comparison", "Comparisons", "Consumption",
    "Contest", "DamagedStoreError", "EvaluationContent", "ExportFormat", "GivenAnswer", "ItemClaims", "ItemHistory",
    "ItemTable", "JudgeAgreement", "JudgeLimits", "JudgeTally", "Lacking", "Leaderboard", "LeaderboardRow", "Limits",
    "Marks", "MergedRows", "ModelChoice", "NoVotes", "NothingMarkedError", "OpenOrder", "Options", "Order",
    "OrderedRun", "Outcome", "PaidVotes", "Plan", "PlanOptions", "PooledMetric", "Probe", "RankedRun", "Remake",
    "ReproducedAnswer", "Reproducer", "Reproduction", "Result", "Results", "Run", "RunCost", "RunEstimate",
    "RunLostError", "RunTakenError", "ScoredAnswer", "SecondVotes", "Store", "SumsFile", "Tally", "add_baselines",
    "add_recorded_scores", "analyse", "answer_keys", "ask", "audit_stored", "board_json", "board_rows", "bucket_mean",
    "check_file", "check_given_name", "check_store", "choose_run", "chosen_baselines", "chosen_items", "chosen_runs",
    "compare", "compare_runs", "compared", "composition", "count_scores", "database_clock", "decide",
    "declare_ratings", "declare_scorer", "delete_benchmark", "delete_runs", "delete_scores", "derive_guessable",
    "disqualify", "estimate_runs", "evaluation_content", "execute", "export", "export_rows", "flag_guessable",
    "flagged_votes", "group_sums", "id_column", "import_answers", "import_systems", "item_history", "items_outside",
    "items_to_audit", "join", "judge_agreement", "judge_all", "judgements_behind", "judgements_of", "judges_of",
    "lead_rows", "leaderboard", "lease_time", "load_answers", "load_consumption", "load_items", "load_orders",
    "load_scores", "machine_time", "merge_stores", "newest_run", "no_ratings", "official_summaries", "open_engine",
    "open_orders", "other_model", "parsed_answer", "people_ratings", "place_order", "plan", "policies", "pool_sums",
    "probe", "pseudonyms_of", "public_copy", "rank_runs", "rated_cases", "rating_summary", "read_parcel", "reading",
    "reading_once", "recorded", "refuse_other_scale", "reinstate", "rename_system", "results", "results_of_recorded",
    "revise_benchmark", "rule_rows", "run_costs", "run_settings", "score_answers", "score_changed", "scored_answers",
    "scored_cases", "served_notes", "shown_url", "similarity_scores", "skipped_baselines", "status_counts",
    "store_files", "store_meta", "store_tables", "stored_runs", "summary_title", "text_hash", "time_column",
    "wins_of", "write_open", "write_rows", "write_sums", "write_tables",
]  # fmt: skip
